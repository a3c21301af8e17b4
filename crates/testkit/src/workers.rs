//! An HTTP server whose workers each serve one connection until it is closed, like the workers of Apache's prefork MPM.
//! If all workers are busy, connections wait in the kernel's accept queue.
use crate::Request;
use crate::ports::free_listener;
use std::collections::HashMap;
use std::io::{BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A running server. Dropping this value stops it.
pub struct WorkerServer {
    addr: SocketAddr,
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    listener: TcpListener,
    service: Duration,
    /// Whether each connection is closed after its first response.
    closes: bool,
    /// Duplicates of the sockets of the workers' connections; `None` after the server has stopped.
    open: Mutex<Option<HashMap<usize, TcpStream>>>,
    connections: AtomicUsize,
}

impl WorkerServer {
    /// Starts a server that keeps each connection open until the client closes it. Before each response, the worker
    /// uses the CPU for the duration `service`.
    pub fn with_keep_alive(workers: usize, service: Duration) -> WorkerServer {
        WorkerServer::start(workers, service, false)
    }

    /// Starts a server that closes each connection after its first response.
    pub fn without_keep_alive(workers: usize, service: Duration) -> WorkerServer {
        WorkerServer::start(workers, service, true)
    }

    fn start(workers: usize, service: Duration, closes: bool) -> WorkerServer {
        let listener = free_listener();
        let addr = listener.local_addr().expect("read the address of a bound listener");
        let open = Mutex::new(Some(HashMap::new()));
        let shared = Arc::new(Shared { listener, service, closes, open, connections: AtomicUsize::new(0) });
        let worker = |_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work())
        };
        let workers = (0..workers).map(worker).collect();
        WorkerServer { addr, shared, workers }
    }

    /// The URL of the server: `http://ADDRESS/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }

    /// Number of connections that workers have accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for WorkerServer {
    fn drop(&mut self) {
        let open = self.shared.open().take().unwrap_or_default();
        // Shutting down a listener makes a waiting accept() return. The call fails if the listener was already shut
        // down.
        let _ = rustix::net::shutdown(&self.shared.listener, rustix::net::Shutdown::Both);
        for connection in open.values() {
            // Shutting down fails if the client has already closed the connection.
            let _ = connection.shutdown(Shutdown::Both);
        }
        for worker in self.workers.drain(..) {
            if let Err(panic) = worker.join()
                && !thread::panicking()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl Shared {
    fn work(&self) {
        while let Ok((connection, _)) = self.listener.accept() {
            let index = self.connections.fetch_add(1, Ordering::SeqCst);
            match &mut *self.open() {
                Some(open) => open.insert(index, connection.try_clone().expect("duplicate a descriptor")),
                None => return,
            };
            self.serve(&connection);
            if let Some(open) = &mut *self.open() {
                open.remove(&index);
            }
        }
    }

    /// Responds to the requests of one connection until the client closes it.
    fn serve(&self, mut connection: &TcpStream) {
        let head = if self.closes { "Connection: close\r\n" } else { "" };
        let answer = format!("HTTP/1.1 200 OK\r\n{head}Content-Length: 6\r\n\r\nhello\n");
        let mut reader = BufReader::new(connection);
        while Request::read(&mut reader).is_some() {
            let end = Instant::now() + self.service;
            while Instant::now() < end {
                std::hint::spin_loop();
            }
            if connection.write_all(answer.as_bytes()).is_err() || self.closes {
                return;
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, Option<HashMap<usize, TcpStream>>> {
        self.open.lock().expect("no thread panics while it holds this lock")
    }
}
