//! A TCP server that calls a closure of the test for every connection. Each connection has a thread of its own.
//!
//! A connection stays open until its closure has returned. The server keeps a duplicate of the socket. When the server
//! stops, it shuts the duplicate down, so that a read or write in which the closure waits returns. If a closure panics,
//! dropping the server panics too.
use crate::ports::free_listener;
use crate::{Request, Step, script};
use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A running server whose connections are handled by a closure of the test, which may send any bytes. Dropping this
/// value stops the server.
pub struct RawServer {
    addr: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl RawServer {
    /// Starts a server that calls `behaviour` for every connection, each on a thread of its own. The second argument of
    /// `behaviour` is the number of the connection, from 0.
    pub fn start(behaviour: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> RawServer {
        Self::start_on(free_listener(), behaviour)
    }

    /// Like [`RawServer::start`], but with a listener that the test has opened, for example on a certain port.
    pub fn start_on(listener: TcpListener, behaviour: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> RawServer {
        Self::run(listener, move |_, conn, index| behaviour(conn, index))
    }

    /// Starts a server that sends the bytes that `answer` returns for each request, in order, and keeps connections
    /// open.
    pub fn with_handler(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> RawServer {
        Self::start(move |conn, _| {
            let mut reader = BufReader::new(&conn);
            while let Some(request) = Request::read(&mut reader)
                && (&conn).write_all(&answer(&request)).is_ok()
            {}
        })
    }

    /// The address on which the server listens.
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

/// Servers with predefined behaviours. Unless documented otherwise, they read a whole request first: if unread bytes
/// were left, closing the connection would send RST instead of FIN.
impl RawServer {
    /// Closes each connection without reading or writing. The client receives FIN, or RST if its request arrived
    /// before.
    pub fn closes_on_accept() -> RawServer {
        Self::start(script([Step::Close]))
    }

    /// Reads all requests and never responds.
    pub fn never_answers() -> RawServer {
        Self::start(script([Step::Drain]))
    }

    /// Responds with bytes that are not HTTP, then closes the connection.
    pub fn garbage() -> RawServer {
        let garbage = b"\x00\x01\xfe\xff this is not HTTP \r\n\r\n\r\n".to_vec();
        Self::start(script([Step::Request, Step::Send(garbage), Step::Finish]))
    }

    /// Responds with `Content-Length` and keeps connections open. The response to `HEAD` has no body.
    pub fn content_length(body: impl Into<Vec<u8>>) -> RawServer {
        let body = body.into();
        let head = head_with_length(body.len()).into_bytes();
        Self::with_handler(move |request| head_and_body(request, &head, &body))
    }

    /// Responds with chunked transfer coding, one chunk for each element of `chunks`, and keeps connections open. The
    /// response to `HEAD` has no body.
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

    /// Responds with a body whose length is not given: the end of the connection is the end of the body.
    pub fn close_delimited(body: impl Into<Vec<u8>>) -> RawServer {
        let mut answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
        answer.extend(body.into());
        Self::start(script([Step::Request, Step::Send(answer), Step::Finish]))
    }

    /// Responds with this status and without a body, and keeps connections open. If the status is 204 or 304, there is
    /// no `Content-Length`.
    pub fn status(code: u16) -> RawServer {
        let length = if matches!(code, 204 | 304) { "" } else { "Content-Length: 0\r\n" };
        let answer = format!("HTTP/1.1 {code} Status\r\n{length}\r\n").into_bytes();
        Self::with_handler(move |_| answer.clone())
    }

    /// Responds with a `Content-Length` that is greater than the body's length by `missing`, then closes the
    /// connection.
    pub fn truncated(body: impl Into<Vec<u8>>, missing: usize) -> RawServer {
        let body = body.into();
        let mut answer = head_with_length(body.len() + missing).into_bytes();
        answer.extend(body);
        Self::start(script([Step::Request, Step::Send(answer), Step::Finish]))
    }

    /// Responds with the body `hello\n`, and pauses after each byte of head and body. Keeps connections open.
    pub fn one_byte_at_a_time(pause: Duration) -> RawServer {
        Self::start(script([Step::Request, Step::Trickle(with_length(b"hello\n"), pause)]))
    }

    /// Sends the first `bytes` bytes of a response of one megabyte, then resets the connection.
    pub fn resets_after(bytes: usize) -> RawServer {
        let mut answer = with_length(&[b'x'; 1 << 20]);
        answer.truncate(bytes);
        Self::start(script([Step::Request, Step::Send(answer), Step::Reset]))
    }

    /// Responds to `requests` requests on each connection, then closes the connection without having sent `Connection:
    /// close`. If `requests` is 0, closes the connection when a request has arrived.
    pub fn closes_after(requests: usize) -> RawServer {
        let answering = [Step::Request, Step::Send(with_length(b"hello\n"))];
        Self::start(script(answering.into_iter().cycle().take((2 * requests).max(1)).chain([Step::Close])))
    }

    /// Responds to `requests` requests in total. Then the server closes all connections and refuses new ones.
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

/// The state that the accepting thread, the connections' threads and the server's handle share.
struct Shared {
    listener: TcpListener,
    /// Duplicates of the sockets of open connections, by connection number; `None` after the server has stopped.
    open: Mutex<Option<HashMap<usize, TcpStream>>>,
    connections: AtomicUsize,
}

impl Shared {
    /// Accepts connections until the server stops. The scope waits for the threads of all connections, and panics if
    /// one of them has panicked.
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

    /// Stops listening, and ends the reads and writes in which closures wait. May be called more than once.
    fn halt(&self) {
        let open = self.open().take().unwrap_or_default();
        // On Linux, shutting down a listener makes a waiting accept() return, and the port refuses further connections.
        // The call fails if the listener was already shut down.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        for conn in open.values() {
            // Shutting down fails if the client has already closed the connection.
            let _ = conn.shutdown(Shutdown::Both);
        }
    }

    fn open(&self) -> MutexGuard<'_, Option<HashMap<usize, TcpStream>>> {
        self.open.lock().expect("no thread panics while it holds this lock")
    }
}

/// When dropped, after a connection's closure has returned or panicked, removes the duplicate of the connection's
/// socket. This closes the connection.
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

/// Returns a response with status 200, this body and its `Content-Length`.
pub fn with_length(body: &[u8]) -> Vec<u8> {
    [head_with_length(body.len()).as_bytes(), body].concat()
}

fn head_with_length(length: usize) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")
}

fn head_and_body(request: &Request, head: &[u8], body: &[u8]) -> Vec<u8> {
    if request.method == "HEAD" { head.to_vec() } else { [head, body].concat() }
}
