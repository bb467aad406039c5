//! A response body being recorded while it is sent, followed by any number of readers.
//!
//! One writer, the operation, never waits for a reader as long as the body is kept: what does not fit into memory goes to the
//! store in chunks, and a reader that lags behind reads it from there. Only when a body has outgrown what may be kept does
//! the writer wait, for readers that make progress; one that stalls is cut off.
//!
//! A reader sees the end only after the writer has told that the recording is durable ([`Recording::finish`]).

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_core::future::BoxFuture;
use tokio::sync::Notify;

use crate::{
    response::Head,
    store::{ClaimToken, StoreResult, StoredBody},
};

/// How long the writer waits for a reader that takes nothing, once the body is too large to keep.
const STALLED: Duration = Duration::from_secs(30);

/// Where a recording puts what does not fit into memory.
pub(crate) trait Spill: Send + Sync {
    /// The claim under which chunks are written.
    fn token(&self) -> ClaimToken;
    /// Writes a chunk. `false`: the recording's claim is not the current one any more.
    fn write(&self, index: u32, bytes: Bytes) -> BoxFuture<'_, StoreResult<bool>>;
    /// Reads a chunk back.
    fn read(&self, index: u32) -> BoxFuture<'_, StoreResult<Option<Bytes>>>;
}

/// Bounds of one recording, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) memory: usize,
    pub(crate) total: u64,
}

/// How a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The body is whole, and durable.
    Complete,
    /// The body broke off, or another owner has taken over: readers see an error instead of an end.
    Cut,
}

/// The claim that a recording belongs to is not the current one any more.
#[derive(Debug)]
pub(crate) struct Superseded;

/// A response whose body is still being produced.
pub(crate) struct Recording {
    head: Head,
    bounds: Bounds,
    /// `None`: nothing is kept, whatever the bounds say.
    spill: Option<Arc<dyn Spill>>,
    tape: Mutex<Tape>,
    /// Told when there is something new to read.
    grown: Notify,
    /// Told when a reader has taken something, or is gone.
    taken: Notify,
}

#[derive(Debug, Default)]
struct Tape {
    /// The bytes from `base` to `len`.
    memory: VecDeque<Bytes>,
    base: u64,
    len: u64,
    /// Where each spilled chunk ends.
    chunk_ends: Vec<u64>,
    /// Nothing more is kept; what all readers have taken may go.
    overflowed: bool,
    /// Bytes are gone that no chunk holds.
    lossy: bool,
    end: Option<End>,
    readers: HashMap<u64, u64>,
    next_reader: u64,
}

impl Tape {
    fn held(&self) -> u64 {
        self.len - self.base
    }

    fn spilled(&self) -> u64 {
        self.chunk_ends.last().copied().unwrap_or(0)
    }

    /// Forgets what every reader has taken.
    fn forget_taken(&mut self) {
        let needed = self.readers.values().copied().min().unwrap_or(self.len);
        while let Some(first) = self.memory.front() {
            let end = self.base + first.len() as u64;
            if end > needed {
                break;
            }
            self.base = end;
            self.memory.pop_front();
            self.lossy = true;
        }
    }

    /// The bytes at `position`, which memory holds.
    fn at(&self, position: u64) -> Option<Bytes> {
        let mut start = self.base;
        for bytes in &self.memory {
            let end = start + bytes.len() as u64;
            if position < end {
                // The difference is less than the length of a slice.
                return Some(bytes.slice((position - start) as usize..));
            }
            start = end;
        }
        None
    }
}

impl Recording {
    pub(crate) fn new(head: Head, bounds: Bounds, spill: Option<Arc<dyn Spill>>) -> Arc<Self> {
        let tape = Tape { overflowed: spill.is_none(), ..Tape::default() };
        Arc::new(Self { head, bounds, spill, tape: Mutex::new(tape), grown: Notify::new(), taken: Notify::new() })
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    fn tape(&self) -> MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the body.
    pub(crate) async fn push(&self, mut bytes: Bytes) -> Result<(), Superseded> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(self.bounds.memory));
            self.make_room(piece.len() as u64).await?;
            let mut tape = self.tape();
            tape.len += piece.len() as u64;
            tape.memory.push_back(piece);
            tape.overflowed |= tape.len > self.bounds.total;
            if tape.overflowed {
                tape.forget_taken();
            }
            drop(tape);
            self.grown.notify_waiters();
        }
        Ok(())
    }

    async fn make_room(&self, more: u64) -> Result<(), Superseded> {
        loop {
            let chunk = {
                let tape = self.tape();
                if tape.held() + more <= self.bounds.memory as u64 {
                    return Ok(());
                }
                if tape.overflowed { None } else { Some((tape.chunk_ends.len() as u32, concat(&tape.memory))) }
            };
            match (chunk, &self.spill) {
                (Some((index, bytes)), Some(spill)) => match spill.write(index, bytes).await {
                    Ok(true) => {
                        let mut tape = self.tape();
                        tape.base = tape.len;
                        tape.memory.clear();
                        let end = tape.len;
                        tape.chunk_ends.push(end);
                    }
                    Ok(false) => return Err(Superseded),
                    Err(error) => {
                        tracing::error!(%error, "a chunk of a response could not be stored; the response will not be kept");
                        self.tape().overflowed = true;
                    }
                },
                _ => self.wait_for_readers(more).await,
            }
        }
    }

    /// Makes room where nothing is kept any more: waits for the slowest reader, and cuts it off when it has stalled.
    async fn wait_for_readers(&self, more: u64) {
        let taken = self.taken.notified();
        tokio::pin!(taken);
        taken.as_mut().enable();
        {
            let mut tape = self.tape();
            tape.forget_taken();
            if tape.held() + more <= self.bounds.memory as u64 {
                return;
            }
        }
        if tokio::time::timeout(STALLED, taken).await.is_err() {
            self.cut_slowest();
        }
    }

    fn cut_slowest(&self) {
        let mut tape = self.tape();
        if let Some(slowest) = tape.readers.values().copied().min() {
            tape.readers.retain(|_, position| *position != slowest);
        }
        drop(tape);
        self.grown.notify_waiters();
    }

    /// The body so far as it is to be stored, and how many bytes it has.
    pub(crate) fn stored_body(&self) -> StoredBody {
        let tape = self.tape();
        match &self.spill {
            Some(spill) if !tape.overflowed => {
                let rest = concat(&tape.memory);
                match tape.chunk_ends.len() as u32 {
                    0 => StoredBody::Whole(rest),
                    chunks => StoredBody::Chunked { token: spill.token(), chunks, rest },
                }
            }
            _ => StoredBody::NotRetained { bytes: tape.len },
        }
    }

    /// How many bytes there are so far.
    pub(crate) fn len(&self) -> u64 {
        self.tape().len
    }

    /// Nothing but the fact that the operation ran will be kept.
    pub(crate) fn abandon(&self) {
        self.tape().overflowed = true;
    }

    /// Waits until readers of a body that is not kept have taken what its chunks hold: storing it deletes them.
    pub(crate) async fn drain_unkept(&self) {
        loop {
            let taken = self.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            {
                let tape = self.tape();
                let spilled = tape.spilled();
                if !tape.overflowed || tape.readers.values().all(|&position| position >= spilled) {
                    return;
                }
            }
            if tokio::time::timeout(STALLED, taken).await.is_err() {
                self.cut_slowest();
            }
        }
    }

    /// Ends the recording; readers see the end after the last byte.
    pub(crate) fn finish(&self, end: End) {
        self.tape().end.get_or_insert(end);
        self.grown.notify_waiters();
    }

    /// Ends the recording when its writer ends without having done so, for instance with its runtime: readers do not wait
    /// for what will never come.
    pub(crate) fn cut_unless_finished(self: &Arc<Self>) -> CutUnlessFinished {
        CutUnlessFinished(Arc::clone(self))
    }

    /// A reader from the first byte; `None` when the first bytes are gone for good, or are about to be.
    pub(crate) fn read(self: &Arc<Self>) -> Option<Reader> {
        let mut tape = self.tape();
        let chunks_will_go = tape.overflowed && tape.spilled() > 0;
        if tape.lossy || chunks_will_go {
            return None;
        }
        let id = tape.next_reader;
        tape.next_reader += 1;
        tape.readers.insert(id, 0);
        drop(tape);
        Some(Reader { recording: Arc::clone(self), id, position: 0 })
    }
}

/// Made by [`Recording::cut_unless_finished`].
pub(crate) struct CutUnlessFinished(Arc<Recording>);

impl Drop for CutUnlessFinished {
    fn drop(&mut self) {
        self.0.finish(End::Cut);
    }
}

fn concat(pieces: &VecDeque<Bytes>) -> Bytes {
    if let [only] = pieces.iter().collect::<Vec<_>>()[..] {
        return only.clone();
    }
    let mut whole = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    whole.freeze()
}

/// Reads a recording from its first byte to its end, at its own speed.
pub(crate) struct Reader {
    recording: Arc<Recording>,
    id: u64,
    position: u64,
}

enum Step {
    Bytes(Bytes),
    Chunk { index: u32, start: u64 },
    End,
    Cut,
    Wait,
}

impl Reader {
    /// As a response body.
    pub(crate) fn into_body(self) -> Body {
        Body::from_stream(futures_util::stream::unfold(Some(self), |reader| async {
            let mut reader = reader?;
            match reader.next().await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some(reader))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        }))
    }

    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let recording = Arc::clone(&self.recording);
        loop {
            let grown = recording.grown.notified();
            tokio::pin!(grown);
            grown.as_mut().enable();
            let step = self.step();
            match step {
                Step::Bytes(bytes) => return Ok(Some(self.took(bytes))),
                Step::Chunk { index, start } => {
                    let chunk = match &recording.spill {
                        Some(spill) => spill.read(index).await.map_err(io::Error::other)?,
                        None => None,
                    };
                    let chunk = chunk.ok_or_else(|| io::Error::other("a chunk of the recording is gone"))?;
                    // The difference is less than the chunk's length.
                    let skip = ((self.position - start) as usize).min(chunk.len());
                    return Ok(Some(self.took(chunk.slice(skip..))));
                }
                Step::End => return Ok(None),
                Step::Cut => return Err(io::Error::other("the response was cut off")),
                Step::Wait => grown.await,
            }
        }
    }

    fn step(&self) -> Step {
        let tape = self.recording.tape();
        if !tape.readers.contains_key(&self.id) {
            return Step::Cut;
        }
        if self.position >= tape.base {
            if let Some(bytes) = tape.at(self.position) {
                return Step::Bytes(bytes);
            }
            return match tape.end {
                Some(End::Complete) => Step::End,
                Some(End::Cut) => Step::Cut,
                None => Step::Wait,
            };
        }
        let index = tape.chunk_ends.partition_point(|&end| end <= self.position);
        if index == tape.chunk_ends.len() {
            return Step::Cut;
        }
        let start = if index == 0 { 0 } else { tape.chunk_ends[index - 1] };
        Step::Chunk { index: index as u32, start }
    }

    fn took(&mut self, bytes: Bytes) -> Bytes {
        self.position += bytes.len() as u64;
        if let Some(position) = self.recording.tape().readers.get_mut(&self.id) {
            *position = self.position;
        }
        self.recording.taken.notify_waiters();
        bytes
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.recording.tape().readers.remove(&self.id);
        self.recording.taken.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use http::{HeaderMap, StatusCode};
    use http_body_util::BodyExt as _;

    use super::*;

    #[derive(Default)]
    struct Chunks(Mutex<BTreeMap<u32, Bytes>>);

    impl Spill for Chunks {
        fn token(&self) -> ClaimToken {
            ClaimToken(1)
        }
        fn write(&self, index: u32, bytes: Bytes) -> BoxFuture<'_, StoreResult<bool>> {
            self.0.lock().expect("not poisoned").insert(index, bytes);
            Box::pin(async { Ok(true) })
        }
        fn read(&self, index: u32) -> BoxFuture<'_, StoreResult<Option<Bytes>>> {
            let chunk = self.0.lock().expect("not poisoned").get(&index).cloned();
            Box::pin(async { Ok(chunk) })
        }
    }

    fn recording(memory: usize, total: u64) -> (Arc<Recording>, Arc<Chunks>) {
        let chunks = Arc::new(Chunks::default());
        let head = Head::capture(StatusCode::OK, HeaderMap::new());
        let spill: Arc<dyn Spill> = chunks.clone();
        (Recording::new(head, Bounds { memory, total }, Some(spill)), chunks)
    }

    async fn all(reader: Reader) -> Result<Bytes, axum::Error> {
        reader.into_body().collect().await.map(|body| body.to_bytes())
    }

    fn numbers(count: usize) -> Vec<u8> {
        (0..count).flat_map(|n| format!("{n:07}\n").into_bytes()).collect()
    }

    #[tokio::test]
    async fn early_late_and_slow_readers_all_read_the_same_bytes() {
        let (recording, chunks) = recording(64, u64::MAX);
        let text = numbers(100);
        let early = tokio::spawn(all(recording.read().expect("nothing is lost")));
        let slow = recording.read().expect("nothing is lost");
        for piece in text.chunks(13) {
            recording.push(Bytes::copy_from_slice(piece)).await.expect("ours");
            tokio::task::yield_now().await;
        }
        let late = recording.read().expect("nothing is lost");
        recording.finish(End::Complete);
        assert_eq!(early.await.expect("no panic").expect("no cut"), text);
        assert_eq!(all(slow).await.expect("no cut"), text);
        assert_eq!(all(late).await.expect("no cut"), text);
        let chunks = chunks.0.lock().expect("not poisoned");
        assert!(chunks.len() > 5 && chunks.values().all(|chunk| chunk.len() <= 64));
        match recording.stored_body() {
            StoredBody::Chunked { chunks: count, rest, .. } => {
                let stored: Vec<u8> = chunks.values().flatten().copied().chain(rest).collect();
                assert_eq!((count as usize, stored), (chunks.len(), text));
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_body_over_the_bound_reaches_its_reader_whole_and_is_not_kept() {
        let (recording, _) = recording(64, 100);
        let text = numbers(100);
        let live = tokio::spawn(all(recording.read().expect("nothing is lost")));
        for piece in text.chunks(13) {
            recording.push(Bytes::copy_from_slice(piece)).await.expect("ours");
        }
        recording.drain_unkept().await;
        recording.finish(End::Complete);
        assert_eq!(live.await.expect("no panic").expect("no cut"), text);
        assert!(recording.read().is_none(), "its first bytes are gone");
        assert!(matches!(recording.stored_body(), StoredBody::NotRetained { bytes: 800 }));
        assert!(recording.tape().held() <= 64);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_reader_of_a_body_that_is_not_kept_is_cut() {
        let (recording, _) = recording(64, 10);
        let stalled = recording.read().expect("nothing is lost");
        let text = numbers(100);
        for piece in text.chunks(13) {
            recording.push(Bytes::copy_from_slice(piece)).await.expect("ours");
        }
        recording.finish(End::Complete);
        assert!(all(stalled).await.is_err());
    }

    #[tokio::test]
    async fn a_cut_recording_has_no_end() {
        let (recording, _) = recording(64, 100);
        let reader = recording.read().expect("nothing is lost");
        recording.push(Bytes::from_static(b"abc")).await.expect("ours");
        recording.finish(End::Cut);
        recording.finish(End::Complete);
        assert!(all(reader).await.is_err());
    }
}
