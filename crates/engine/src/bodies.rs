//! Request bodies that do not leave with their heads: those that wait until the server asks for them
//! (`Expect: 100-continue`; RFC 9110 §10.1.1), and those that are read from files while they are sent.
//!
//! Invariants: of a file, each connection holds one piece or two that the kernel has not taken, whatever the file's size.
//! A connection of HTTP/1 with a body on its way bears no second call, as its request would come between the pieces. A
//! server that answers before it has the whole body gets no more of it, and the connection is closed, as what else it
//! would read there is for it to guess; of HTTP/2, the stream is.

use crate::connection::Phase;
use crate::deadlines::{Armed, Deadlines};
use crate::io::Io;
use crate::shard::{RESET, Shard};
use crate::{EngineError, Requests};
use brimful_core::{End, Limit, Nanos, Observer, Workload};
use brimful_http::Request;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a file that are read at a time.
const PIECE: usize = 64 * 1024;
/// The most bytes that are kept of something that has no size, such as a pipe.
const LARGEST_PIPED: u64 = 1 << 30;
/// Standard input, as command lines name it and as the kernel does.
const STDIN: &str = "-";
const STDIN_FILE: &str = "/dev/stdin";
/// A body is sent this long after its head even if the server has not asked for it: it may not know that it can.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// A file that is the body of requests. A regular file is read anew for each of them, and so mostly from the kernel's
/// cache; what can be read only once, such as a pipe, is kept in memory.
#[derive(Debug)]
pub struct BodyFile {
    content: Content,
    path: PathBuf,
    bytes: u64,
}

#[derive(Debug)]
enum Content {
    File(File),
    Memory(Arc<[u8]>),
}

impl BodyFile {
    /// Opens it; `-` is standard input. Its size is taken here: it is what requests announce.
    ///
    /// # Errors
    /// [`EngineError::BodyFile`] when it cannot be read, or has no size.
    pub fn open(path: &Path) -> Result<BodyFile, EngineError> {
        if let Some(known) = read_once(path, None)? {
            return Ok(BodyFile::in_memory(path, known));
        }
        let failed = |error: io::Error| unreadable(path, &error.to_string());
        let is_stdin = [STDIN, STDIN_FILE].into_iter().any(|name| path == Path::new(name));
        // By its descriptor: standard input may be a socket, which cannot be opened by a name.
        let file = match is_stdin {
            true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            false => File::open(path),
        };
        let file = file.map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.is_dir() {
            return Err(unreadable(path, "it is a directory, and not a regular file or a pipe"));
        }
        if !about.is_file() {
            let content = read_once(path, Some(file))?.unwrap_or_default();
            return Ok(BodyFile::in_memory(path, content));
        }
        Ok(BodyFile { content: Content::File(file), path: path.to_owned(), bytes: about.len() })
    }

    fn in_memory(path: &Path, content: Arc<[u8]>) -> BodyFile {
        BodyFile { bytes: content.len() as u64, content: Content::Memory(content), path: path.to_owned() }
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What stands at this offset, as much as is read at a time and no more than so many bytes.
    fn piece(&self, at: u64, most: usize) -> Result<Vec<u8>, EngineError> {
        let length = self.bytes.saturating_sub(at).min(most.min(PIECE) as u64) as usize;
        let file = match &self.content {
            Content::File(file) => file,
            Content::Memory(content) => {
                return Ok(content.get(at as usize..).and_then(|rest| rest.get(..length)).unwrap_or_default().to_vec());
            }
        };
        let mut piece = vec![0; length];
        file.read_exact_at(&mut piece, at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => unreadable(&self.path, "it has become shorter during the run"),
            _ => unreadable(&self.path, &error.to_string()),
        })?;
        Ok(piece)
    }
}

/// What a path without a size held when it was read first. With a `file`, which is that path, reads it if it has not
/// been read yet: a command may open its body several times, and a pipe has its content once.
fn read_once(path: &Path, file: Option<File>) -> Result<Option<Arc<[u8]>>, EngineError> {
    static READ: Mutex<BTreeMap<PathBuf, Arc<[u8]>>> = Mutex::new(BTreeMap::new());
    let key = if path == Path::new(STDIN_FILE) { Path::new(STDIN) } else { path };
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = read.get(key) {
        return Ok(Some(Arc::clone(known)));
    }
    let Some(file) = file else { return Ok(None) };
    let mut content = Vec::new();
    file.take(LARGEST_PIPED + 1).read_to_end(&mut content).map_err(|error| unreadable(path, &error.to_string()))?;
    if content.len() as u64 > LARGEST_PIPED {
        return Err(unreadable(path, "it goes on after 1 GiB: write it to a file and name that"));
    }
    let content: Arc<[u8]> = content.into();
    read.insert(key.to_owned(), Arc::clone(&content));
    Ok(Some(content))
}

fn unreadable(path: &Path, why: &str) -> EngineError {
    EngineError::BodyFile { path: path.display().to_string(), why: why.to_owned() }
}

/// The bodies on their way, by the slot of their connection.
#[derive(Debug)]
pub struct Bodies<'a> {
    bodies: HashMap<u32, Body<'a>>,
    /// Until when those wait that the server has not asked for.
    patience: Deadlines,
    /// Calls whose bodies cannot be read any more.
    unreadable: Vec<Armed>,
    /// Why the first body could not be read.
    pub error: Option<EngineError>,
}

#[derive(Debug)]
struct Body<'a> {
    left: Left<'a>,
    /// Its call's.
    stamp: u32,
    waits: bool,
}

/// What has not been handed over yet.
#[derive(Debug)]
enum Left<'a> {
    Bytes(Cow<'a, [u8]>),
    /// From an offset on.
    File(&'a BodyFile, u64),
}

impl<'a> Bodies<'a> {
    pub fn new() -> Bodies<'a> {
        Bodies { bodies: HashMap::new(), patience: Deadlines::new(PATIENCE), unreadable: Vec::new(), error: None }
    }

    /// The connection in this slot ends, or its call does. Returns whether some of its body had not been handed over.
    pub fn forget(&mut self, slot: u32) -> bool {
        !self.bodies.is_empty() && self.bodies.remove(&slot).is_some()
    }

    /// When the next one is sent unasked.
    pub fn next(&self) -> Option<Nanos> {
        self.patience.next()
    }

    /// Notes a call whose body cannot be read any more.
    #[cold]
    fn fail(&mut self, call: Armed, error: EngineError) {
        self.unreadable.push(call);
        self.error.get_or_insert(error);
    }

    /// What is to be handed over next for the connection in this slot, and whether that is all.
    fn take(&mut self, slot: u32) -> Option<(Cow<'a, [u8]>, bool)> {
        let Body { left, stamp, .. } = self.bodies.remove(&slot)?;
        let (file, at) = match left {
            Left::Bytes(bytes) => return Some((bytes, true)),
            Left::File(file, at) => (file, at),
        };
        match file.piece(at, PIECE) {
            Ok(piece) => {
                let at = at + piece.len() as u64;
                let all = at >= file.bytes;
                if !all {
                    self.bodies.insert(slot, Body { left: Left::File(file, at), stamp, waits: false });
                }
                Some((piece.into(), all))
            }
            Err(error) => {
                self.fail(Armed { slot, stamp, stream: 0 }, error);
                None
            }
        }
    }
}

impl<'a, W: Workload, R: Requests<'a>, O: Observer, I: Io<'a>> Shard<'a, W, R, O, I> {
    /// Hands over a request whose body does not leave with its head, for the only call of its connection.
    pub(crate) fn send_in_parts(&mut self, slot: u32, request: Cow<'a, Request>, file: Option<&'a BodyFile>) {
        let waits = request.expects_continue();
        let (head, body) = match request {
            Cow::Borrowed(shared) => {
                let (head, body) = shared.parts();
                (Cow::Borrowed(head), Cow::Borrowed(body))
            }
            Cow::Owned(own) => {
                let (head, body) = own.parts();
                (Cow::Owned(head.to_vec()), Cow::Owned(body.to_vec()))
            }
        };
        let token = self.connections.token(slot);
        let Some(call) = self.connections.get_mut(slot).and_then(|connection| connection.calls.front_mut()) else {
            return;
        };
        call.length = head.len();
        let stamp = call.stamp;
        self.io.send(token, head);
        self.hold();
        let left = file.map_or(Left::Bytes(body), |file| Left::File(file, 0));
        self.bodies.bodies.insert(slot, Body { left, stamp, waits });
        if waits {
            self.bodies.patience.arm(self.now, Armed { slot, stamp, stream: 0 });
        } else {
            self.send_on(slot);
        }
    }

    /// The server wants the body of the call on this connection, if it has not got it.
    pub(crate) fn send_body(&mut self, slot: u32) {
        if let Some(body) = self.bodies.bodies.get_mut(&slot).filter(|body| body.waits) {
            body.waits = false;
            self.send_on(slot);
        }
    }

    /// HTTP/2: frames a piece more of a body that comes from a file, unless the server takes none now, or so much waits to
    /// be sent on this connection already that it would be no more than kept.
    pub(crate) fn frame_bodies(&mut self, slot: u32) {
        while let Some(http2) = self.connections.get_mut(slot).and_then(|connection| connection.protocol.http2_mut())
            && let Some(wanted) = http2.wanted()
            && http2.output().len() < PIECE
            && self.io.unsent(slot) < PIECE
            && let Some(call) = http2.get_mut(wanted.stream)
        {
            let piece = match self.requests.body(&call.spec) {
                Some(file) => file.piece(wanted.from, wanted.bytes),
                None => return,
            };
            match piece {
                Ok(piece) => {
                    if self.observer.reads_messages() {
                        self.observer.on_body_piece(&mut call.observed, &piece);
                    }
                    http2.supply(wanted.stream, &piece);
                }
                Err(error) => {
                    let stamp = call.stamp;
                    self.bodies.fail(Armed { slot, stamp, stream: wanted.stream }, error);
                    return;
                }
            }
        }
    }

    /// HTTP/2: a body has been held back until the server asks for it.
    pub(crate) fn await_continue(&mut self, armed: Armed) {
        self.bodies.patience.arm(self.now, armed);
    }

    /// Hands over more of the body of the call on this connection, if there is more and it does not wait.
    pub(crate) fn send_on(&mut self, slot: u32) {
        if self.config.connections.http2 {
            return self.speak(slot);
        }
        if self.bodies.bodies.get(&slot).is_none_or(|body| body.waits) {
            return;
        }
        let is_of_file = matches!(self.bodies.bodies.get(&slot), Some(Body { left: Left::File(..), .. }));
        let Some((piece, all)) = self.bodies.take(slot) else { return };
        let token = self.connections.token(slot);
        if let Some(call) = self.connections.get_mut(slot).and_then(|connection| connection.calls.front_mut()) {
            call.length += piece.len();
            if is_of_file {
                self.observer.on_body_piece(&mut call.observed, &piece);
            }
        }
        self.io.send(token, piece);
        if !all {
            self.io.tell_when_sent(token);
        }
        self.hold();
    }

    /// Ends the calls whose bodies cannot be read any more. With HTTP/1 the connection is closed too, because the
    /// server waits for the rest.
    pub(crate) fn end_unreadable(&mut self) {
        while let Some(call) = self.bodies.unreadable.pop() {
            let is_there = self.connections.get(call.slot).is_some_and(|c| c.phase == Phase::Open && c.bears(call));
            let end = End::ClientLimited(Limit::Body);
            match call.stream {
                _ if !is_there => {}
                0 => self.drop_connection(call.slot, |nth, _| if nth == 0 { end } else { RESET }),
                _ => self.give_up_stream(call, end),
            }
        }
    }

    /// Sends the bodies that no server has asked for in time.
    pub(crate) fn lose_patience(&mut self) {
        if self.bodies.patience.next().is_none() {
            return;
        }
        loop {
            let (bodies, connections) = (&self.bodies.bodies, &self.connections);
            let waits = |armed: Armed| match connections.get(armed.slot).and_then(|open| open.protocol.http2()) {
                Some(http2) => {
                    http2.waits(armed.stream) && http2.get(armed.stream).is_some_and(|c| c.stamp == armed.stamp)
                }
                None => bodies.get(&armed.slot).is_some_and(|body| body.waits && body.stamp == armed.stamp),
            };
            let Some(armed) = self.bodies.patience.expired(self.now, waits) else { return };
            match self.connections.get_mut(armed.slot).and_then(|connection| connection.protocol.http2_mut()) {
                Some(http2) => {
                    http2.proceed(armed.stream);
                    self.speak(armed.slot);
                }
                None => self.send_body(armed.slot),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_piece_by_piece() {
        let path = std::env::temp_dir().join(format!("brimful-body-{}", std::process::id()));
        let content: Vec<u8> = (0..2 * PIECE + 10).map(|i| (i ^ i >> 8) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let file = BodyFile::open(&path).unwrap();
        assert_eq!(file.bytes(), content.len() as u64);
        let mut bodies = Bodies::new();
        bodies.bodies.insert(7, Body { left: Left::File(&file, 0), stamp: 1, waits: false });
        let mut taken = Vec::new();
        while let Some((piece, all)) = bodies.take(7) {
            assert!(piece.len() <= PIECE);
            taken.extend_from_slice(&piece);
            assert_eq!(all, taken.len() == content.len());
        }
        assert_eq!(taken, content);
        assert!(bodies.bodies.is_empty() && bodies.error.is_none());
        // If the file is truncated during the run, the call fails.
        bodies.bodies.insert(7, Body { left: Left::File(&file, PIECE as u64), stamp: 1, waits: false });
        std::fs::write(&path, b"short").unwrap();
        assert!(bodies.take(7).is_none() && bodies.bodies.is_empty());
        let error = bodies.error.unwrap().to_string();
        assert!(error.contains("shorter during the run") && bodies.unreadable.len() == 1, "{error}");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_pipe_is_read_once_and_kept() {
        let path = std::env::temp_dir().join(format!("brimful-pipe-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let content = vec![b'x'; PIECE + 5];
        let writer = std::thread::spawn({
            let (path, content) = (path.clone(), content.clone());
            move || std::fs::write(path, content).unwrap()
        });
        let first = BodyFile::open(&path).unwrap();
        writer.join().unwrap();
        std::fs::remove_file(&path).unwrap();
        let again = BodyFile::open(&path).unwrap();
        for file in [first, again] {
            assert_eq!(file.bytes(), content.len() as u64);
            assert_eq!([file.piece(0, usize::MAX).unwrap(), file.piece(PIECE as u64, 9).unwrap()].concat(), content);
            assert!(file.piece(1 << 40, 9).unwrap().is_empty());
        }
    }

    #[test]
    fn what_is_no_file_is_refused_before_the_run() {
        for (path, why) in [("/nowhere/at/all", "No such file"), ("/", "regular file")] {
            let error = BodyFile::open(Path::new(path)).unwrap_err().to_string();
            assert!(error.contains(path) && error.contains(why), "{error}");
        }
    }
}
