//! A TCP server that runs a test's closure on every connection, one thread per connection.
//!
//! A connection stays open until its closure has returned. The server keeps a duplicate of the socket: when the server
//! stops, it uses the duplicate to wake a closure that is blocked in a read or a write. If a closure panics, dropping
//! the server panics.
use crate::ports::free_listener;
use crate::{Request, Step, script};
use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A running server; it stops when dropped.
pub struct RawServer {
    addr: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl RawServer {
    /// Runs `behaviour` for every connection on a thread of its own; the second argument counts connections from 0.
    pub fn start(behaviour: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> RawServer {
        Self::start_on(free_listener(), behaviour)
    }

    /// Like [`RawServer::start`], but on the test's own listener, for a certain address or port.
    pub fn start_on(listener: TcpListener, behaviour: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> RawServer {
        Self::run(listener, move |_, conn, index| behaviour(conn, index))
    }

    /// Starts a server that sends what `answer` returns for each request, in order, and keeps the connection open.
    pub fn with_handler(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> RawServer {
        Self::start(move |conn, _| {
            let mut reader = BufReader::new(&conn);
            while let Some(request) = Request::read(&mut reader)
                && (&conn).write_all(&answer(&request)).is_ok()
            {}
        })
    }

    /// The listening address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of the server: `http://ADDRESS/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }

    /// Number of connections accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Number of open connections.
    pub fn open_connections(&self) -> usize {
        self.shared.open().as_ref().map_or(0, HashMap::len)
    }

    fn run(listener: TcpListener, behaviour: impl Fn(&Shared, TcpStream, usize) + Send + Sync + 'static) -> RawServer {
        let addr = listener.local_addr().expect("read the address of a bound listener");
        let shared =
            Arc::new(Shared { listener, open: Mutex::new(Some(HashMap::new())), connections: AtomicUsize::new(0) });
        let for_acceptor = Arc::clone(&shared);
        let acceptor = thread::spawn(move || for_acceptor.accept(&behaviour));
        RawServer { addr, shared, acceptor: Some(acceptor) }
    }
}

/// Predefined behaviours. Unless documented otherwise, they read a whole request first, so that the connection ends
/// with a clean FIN.
impl RawServer {
    /// Closes the connection without reading or writing anything. The client receives FIN, or RST if its request
    /// arrived before.
    pub fn closes_on_accept() -> RawServer {
        Self::start(script([Step::Close]))
    }

    /// Reads all requests and never answers.
    pub fn never_answers() -> RawServer {
        Self::start(script([Step::Drain]))
    }

    /// Answers with bytes that are not HTTP, then closes the connection.
    pub fn garbage() -> RawServer {
        let garbage = b"\x00\x01\xfe\xff this is not HTTP \r\n\r\n\r\n".to_vec();
        Self::start(script([Step::Request, Step::Send(garbage), Step::Finish]))
    }

    /// Keeps connections open and answers with `Content-Length`; the answer to `HEAD` has no body.
    pub fn content_length(body: impl Into<Vec<u8>>) -> RawServer {
        let body = body.into();
        let head = head_with_length(body.len()).into_bytes();
        Self::with_handler(move |request| head_and_body(request, &head, &body))
    }

    /// Keeps connections open and answers with chunked transfer coding, one chunk per element of `chunks`; the answer
    /// to `HEAD` has no body.
    pub fn chunked(chunks: &[impl AsRef<[u8]>]) -> RawServer {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        let mut body = Vec::new();
        for chunk in chunks.iter().map(AsRef::as_ref).filter(|chunk| !chunk.is_empty()) {
            body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"0\r\n\r\n");
        Self::with_handler(move |request| head_and_body(request, &head, &body))
    }

    /// Answers with a body of unspecified length, which ends with the connection.
    pub fn close_delimited(body: impl Into<Vec<u8>>) -> RawServer {
        let mut answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
        answer.extend(body.into());
        Self::start(script([Step::Request, Step::Send(answer), Step::Finish]))
    }

    /// Keeps connections open and answers with this status, without a body. If the status is 204 or 304, there is no
    /// `Content-Length`.
    pub fn status(code: u16) -> RawServer {
        let length = if matches!(code, 204 | 304) { "" } else { "Content-Length: 0\r\n" };
        let answer = format!("HTTP/1.1 {code} Status\r\n{length}\r\n").into_bytes();
        Self::with_handler(move |_| answer.clone())
    }

    /// Announces `missing` bytes more than it sends, then closes the connection.
    pub fn truncated(body: impl Into<Vec<u8>>, missing: usize) -> RawServer {
        let body = body.into();
        let mut answer = head_with_length(body.len() + missing).into_bytes();
        answer.extend(body);
        Self::start(script([Step::Request, Step::Send(answer), Step::Finish]))
    }

    /// Keeps connections open and sends head and body (`hello\n`) byte by byte, with a pause after each byte.
    pub fn one_byte_at_a_time(pause: Duration) -> RawServer {
        Self::start(script([Step::Request, Step::Trickle(with_length(b"hello\n"), pause)]))
    }

    /// Sends the first `bytes` bytes of an answer of one megabyte, then resets the connection.
    pub fn resets_after(bytes: usize) -> RawServer {
        let mut answer = with_length(&[b'x'; 1 << 20]);
        answer.truncate(bytes);
        Self::start(script([Step::Request, Step::Send(answer), Step::Reset]))
    }

    /// Answers `requests` requests per connection, then closes the connection without sending `Connection: close`. If
    /// `requests` is 0, closes it as soon as a request has arrived.
    pub fn closes_after(requests: usize) -> RawServer {
        let answering = [Step::Request, Step::Send(with_length(b"hello\n"))];
        Self::start(script(answering.into_iter().cycle().take((2 * requests).max(1)).chain([Step::Close])))
    }

    /// Answers `requests` requests in total, then stops: all connections are closed, and new ones are refused.
    pub fn dies_after(requests: usize) -> RawServer {
        let seen = AtomicUsize::new(0);
        Self::run(free_listener(), move |shared, conn, _| {
            let mut reader = BufReader::new(&conn);
            while Request::read(&mut reader).is_some() {
                let number = seen.fetch_add(1, Ordering::SeqCst);
                let answered = number < requests && (&conn).write_all(&with_length(b"hello\n")).is_ok();
                if number + 1 >= requests {
                    shared.halt();
                }
                if !answered {
                    return;
                }
            }
        })
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.shared.halt();
        let outcome = self.acceptor.take().map_or(Ok(()), JoinHandle::join);
        if let Err(panic) = outcome
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// State shared by the acceptor, the connections and the handle.
struct Shared {
    listener: TcpListener,
    /// Duplicates of the open connections, by index; `None` once the server has stopped.
    open: Mutex<Option<HashMap<usize, TcpStream>>>,
    connections: AtomicUsize,
}

impl Shared {
    /// Accepts connections until the server stops. The scope joins every connection's thread and propagates its panic.
    fn accept(&self, behaviour: &(impl Fn(&Shared, TcpStream, usize) + Sync)) {
        thread::scope(|scope| {
            for index in 0.. {
                let conn = match self.listener.accept() {
                    Ok((conn, _)) => conn,
                    Err(_) if self.open().is_none() => return,
                    Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                    Err(e) => panic!("cannot accept a connection: {e}"),
                };
                match &mut *self.open() {
                    Some(open) => open.insert(index, conn.try_clone().expect("duplicate a connection's descriptor")),
                    None => return,
                };
                self.connections.fetch_add(1, Ordering::SeqCst);
                scope.spawn(move || {
                    let _closer = Closer { shared: self, index };
                    behaviour(self, conn, index);
                });
            }
        });
    }

    /// Stops listening and wakes every blocked closure. Calling it again has no effect.
    fn halt(&self) {
        let open = self.open().take().unwrap_or_default();
        // On Linux, this ends a blocked accept(), and further connection attempts are refused. It fails if the listener
        // was shut down before.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        for conn in open.values() {
            // This fails if the peer has already closed the connection.
            let _ = conn.shutdown(Shutdown::Both);
        }
    }

    fn open(&self) -> MutexGuard<'_, Option<HashMap<usize, TcpStream>>> {
        self.open.lock().expect("no thread panics while it holds this lock")
    }
}

/// Drops the duplicate of a connection when the connection's closure has returned or panicked. This closes the
/// connection.
struct Closer<'a> {
    shared: &'a Shared,
    index: usize,
}

impl Drop for Closer<'_> {
    fn drop(&mut self) {
        if let Some(open) = &mut *self.shared.open() {
            open.remove(&self.index);
        }
    }
}

/// A response with status 200, this body and its `Content-Length`.
pub fn with_length(body: &[u8]) -> Vec<u8> {
    [head_with_length(body.len()).as_bytes(), body].concat()
}

fn head_with_length(length: usize) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")
}

fn head_and_body(request: &Request, head: &[u8], body: &[u8]) -> Vec<u8> {
    if request.method == "HEAD" { head.to_vec() } else { [head, body].concat() }
}
