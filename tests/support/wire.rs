//! HTTP by hand: connections that are cut, stalled or left half open.

#![allow(dead_code, unreachable_pub, reason = "each test file is a program of its own that uses a part of it")]

use std::time::Duration;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

use crate::support::{Agent, URI};

/// How long a test waits for bytes that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With the chunk of length zero.
    Whole,
    /// Without it.
    Cut,
}

/// An activated request, as bytes.
pub fn bytes_of(request: &Value) -> Vec<u8> {
    let body = request.to_string();
    let length = body.len();
    format!(
        "POST / HTTP/1.1\r\nHost: agent\r\nContent-Type: application/json\r\nA2A-Extensions: {URI}\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A connection. Dropped, it is closed, whatever was going on.
pub struct Wire {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Wire {
    pub async fn connect(agent: &Agent) -> Self {
        let stream = TcpStream::connect(&agent.address).await.expect("the agent accepts");
        Self { stream, received: Vec::new() }
    }

    /// A connection whose client can hold but a few kilobytes that it has not read.
    pub async fn connect_narrow(agent: &Agent) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a size");
        let stream = socket.connect(agent.address.parse().expect("an address")).await.expect("the agent accepts");
        Self { stream, received: Vec::new() }
    }

    /// A connection that has sent a whole request.
    pub async fn send(agent: &Agent, request: &Value) -> Self {
        let mut wire = Self::connect(agent).await;
        wire.write(&bytes_of(request)).await;
        wire
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the agent reads");
    }

    /// Tells the agent that nothing more will be sent.
    pub async fn close_half(&mut self) {
        self.stream.shutdown().await.expect("the connection is open");
    }

    /// Closes the connection with a reset; what is under way is lost.
    pub fn reset(self) {
        self.stream.set_zero_linger().expect("an option");
    }

    /// Reads at most `limit` bytes more; 0 at the end.
    pub async fn read_some(&mut self, limit: usize) -> usize {
        let mut buffer = vec![0; limit];
        let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut buffer)).await.expect("bytes come");
        // A reset is an end as well.
        let count = read.unwrap_or(0);
        self.received.extend_from_slice(&buffer[..count]);
        count
    }

    /// Reads until a text has come.
    pub async fn read_until(&mut self, text: &str) {
        while !self.text().contains(text) {
            assert!(self.read_some(4096).await > 0, "the response ended without {text:?}: {}", self.text());
        }
    }

    /// Reads what comes within a time, and says whether the connection has ended.
    pub async fn read_for(&mut self, time: Duration) -> bool {
        let reading = async { while self.read_some(4096).await > 0 {} };
        tokio::time::timeout(time, reading).await.is_ok()
    }

    /// Reads to the end of the connection.
    pub async fn read_to_end(&mut self) -> Ended {
        while self.read_some(1 << 16).await > 0 {}
        if self.received.ends_with(b"0\r\n\r\n") { Ended::Whole } else { Ended::Cut }
    }

    /// Everything that has come, head and framing included.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }

    /// The part of a chunked body that has come.
    pub fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let Some(start) = find(&self.received, b"\r\n\r\n") else { return body };
        let mut rest = &self.received[start + 4..];
        while let Some(line) = find(rest, b"\r\n") {
            let size = std::str::from_utf8(&rest[..line]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
            let size = size.expect("a chunk's size");
            rest = &rest[line + 2..];
            body.extend_from_slice(&rest[..size.min(rest.len())]);
            let Some(next) = rest.get(size + 2..) else { break };
            rest = next;
        }
        body
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
