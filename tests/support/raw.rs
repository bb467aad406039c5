//! HTTP/1.1 byte by byte, for what a well-behaved client hides.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use super::Agent;

/// A response as it came over the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct RawAnswer {
    pub status_line: String,
    /// In order, repeats kept.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl RawAnswer {
    /// All values of a header, in order.
    pub fn all(&self, name: &str) -> Vec<&[u8]> {
        let named = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_slice()).collect()
    }

    /// Everything but these headers.
    pub fn without(mut self, names: &[&str]) -> Self {
        self.headers.retain(|(name, _)| !names.iter().any(|other| name.eq_ignore_ascii_case(other)));
        self
    }
}

impl Agent {
    /// Posts a body with these header lines, byte for byte, on a connection of its own.
    pub async fn post_raw(&self, lines: &[&[u8]], body: &str) -> RawAnswer {
        let mut request = format!("POST / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address).into_bytes();
        for line in lines {
            request.extend_from_slice(line);
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        let address = self.address.clone();
        let exchange = tokio::task::spawn_blocking(move || exchange(&address, &request));
        parse(&exchange.await.expect("the exchange does not panic"))
    }
}

fn exchange(address: &str, request: &[u8]) -> Vec<u8> {
    let mut connection = TcpStream::connect(address).expect("the agent accepts");
    connection.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    connection.write_all(request).expect("the agent reads");
    let mut response = Vec::new();
    connection.read_to_end(&mut response).expect("the agent answers");
    response
}

fn parse(response: &[u8]) -> RawAnswer {
    let end = response.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let mut lines = response[..end].split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let status_line = String::from_utf8_lossy(lines.next().expect("a status line")).into_owned();
    let headers = lines.map(|line| {
        let colon = line.iter().position(|&byte| byte == b':').expect("name and value");
        (String::from_utf8_lossy(&line[..colon]).into_owned(), line[colon + 1..].trim_ascii().to_vec())
    });
    RawAnswer { status_line, headers: headers.collect(), body: response[end + 4..].to_vec() }
}
