//! An HTTP server with one worker, which serves the requests of all connections one at a time, in the order of their
//! arrival.
//!
//! The test of coordinated omission uses this server. Requests are due every 10 ms, the service time is 1 ms, and one
//! request takes 100 ms longer (the stall). So the response time of each request, measured from its due time, is known
//! in advance. A load generator that waits for a response before it sends the next request would measure shorter times.
//!
//! The body of a response is the number of its request in the order of service, from 0. Requests are served in the
//! order of epoll's ready list, which is read after every request. Connections are accepted in the order in which they
//! were established. A request arrives, in this sense, only after its connection was accepted.
use crate::Request;
use crate::ports::free_listener;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::net::listen;
use std::collections::{HashMap, VecDeque};
use std::hint::spin_loop;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The last part of a service time is a busy wait. A sleep would end late, because of the timer slack (50 µs) and the
/// scheduler.
const SPIN: Duration = Duration::from_micros(200);

/// Starts a server with this service time. `stall` contains the number of a request and a time: the service of this
/// request takes longer by this time. Requests are numbered from 0 in order of arrival, over all connections.
pub fn start_serial_server(service: Duration, stall: Option<(usize, Duration)>) -> SerialServer {
    let listener = free_listener();
    // The queue is long, because the server does not accept connections during the stall.
    listen(&listener, 4096).expect("lengthen the accept queue");
    let addr = listener.local_addr().expect("read the address of a bound listener");
    let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).expect("create an eventfd"));
    let for_worker = Arc::clone(&stop);
    let worker = thread::spawn(move || Worker::new(listener, for_worker, service, stall).run());
    SerialServer { addr, stop, worker: Some(worker) }
}

/// A running serial server. Dropping this value waits for the request in service, then stops the server.
pub struct SerialServer {
    addr: SocketAddr,
    stop: Arc<OwnedFd>,
    worker: Option<JoinHandle<()>>,
}

impl SerialServer {
    /// The address on which the server listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of the server: `http://ADDRESS/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }
}

impl Drop for SerialServer {
    fn drop(&mut self) {
        rustix::io::write(&*self.stop, &1u64.to_ne_bytes()).expect("wake the worker by its eventfd");
        let outcome = self.worker.take().map_or(Ok(()), JoinHandle::join);
        if let Err(panic) = outcome
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

const LISTENER: u64 = 0;
const STOP: u64 = 1;
const FIRST_CONNECTION: u64 = 2;

struct Worker {
    listener: TcpListener,
    stop: Arc<OwnedFd>,
    service: Duration,
    stall: Option<(usize, Duration)>,
    epoll: OwnedFd,
    connections: HashMap<u64, Connection>,
    next_id: u64,
    /// The connections with waiting requests, in order of arrival. A connection is in the queue once for each of its
    /// requests.
    waiting: VecDeque<u64>,
}

struct Connection {
    stream: TcpStream,
    /// The received bytes of a request that is still incomplete.
    received: Vec<u8>,
}

impl Worker {
    fn new(listener: TcpListener, stop: Arc<OwnedFd>, service: Duration, stall: Option<(usize, Duration)>) -> Worker {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("create an epoll instance");
        listener.set_nonblocking(true).expect("make a listener non-blocking");
        let worker = Worker {
            listener,
            stop,
            service,
            stall,
            epoll,
            connections: HashMap::new(),
            next_id: FIRST_CONNECTION,
            waiting: VecDeque::new(),
        };
        worker.watch(&worker.listener, LISTENER);
        worker.watch(&*worker.stop, STOP);
        worker
    }

    fn run(mut self) {
        let mut index = 0;
        while self.receive_arrivals() {
            let Some(id) = self.waiting.pop_front() else {
                continue;
            };
            let stall = self.stall.filter(|(at, _)| *at == index).map_or(Duration::ZERO, |(_, length)| length);
            wait_exactly(self.service + stall);
            let body = index.to_string();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            index += 1;
            // Writing fails if the client has gone or does not read. Then close its connection.
            if let Some(connection) = self.connections.get_mut(&id)
                && connection.stream.write_all(answer.as_bytes()).is_err()
            {
                self.connections.remove(&id);
            }
        }
    }

    /// Accepts and reads everything that has arrived. Waits for an event if no request is in the queue. Returns false
    /// if the server must stop.
    fn receive_arrivals(&mut self) -> bool {
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = if self.waiting.is_empty() { None } else { Some(&now) };
        let mut events = Vec::with_capacity(1024);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => panic!("cannot wait for events: {e}"),
        }
        for event in &events {
            match event.data.u64() {
                STOP => return false,
                LISTENER => self.accept_all(),
                id => self.receive(id),
            }
        }
        true
    }

    fn accept_all(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true).expect("make a connection non-blocking");
            stream.set_nodelay(true).expect("set TCP_NODELAY on an open socket");
            self.watch(&stream, self.next_id);
            self.connections.insert(self.next_id, Connection { stream, received: Vec::new() });
            self.next_id += 1;
        }
    }

    /// Reads the available bytes of a connection, and queues every complete request.
    fn receive(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let mut bytes = [0; 16 * 1024];
        match connection.stream.read(&mut bytes) {
            Ok(length @ 1..) => connection.received.extend_from_slice(&bytes[..length]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Ok(0) | Err(_) => {
                self.connections.remove(&id);
                return;
            }
        }
        let mut rest = &connection.received[..];
        let mut taken = 0;
        while Request::read(&mut rest).is_some() {
            taken = connection.received.len() - rest.len();
            self.waiting.push_back(id);
        }
        connection.received.drain(..taken);
    }

    fn watch(&self, fd: impl AsFd, id: u64) {
        let data = epoll::EventData::new_u64(id);
        epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN).expect("add a descriptor to an epoll instance");
    }
}

/// Waits for `length`. If the CPU is not busy, the wait is at most a few microseconds too long.
fn wait_exactly(length: Duration) {
    let end = Instant::now() + length;
    thread::sleep(length.saturating_sub(SPIN));
    while Instant::now() < end {
        spin_loop();
    }
}
