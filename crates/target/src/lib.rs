//! The reference server: a web server whose service demands are known, for demonstrations and for tests that need the
//! truth to compare a measurement with.
//!
//! A request of a class burns CPU on the worker thread that serves it, by the thread's own CPU clock: exactly the
//! configured demand, or an exponential draw with that mean. All workers share one epoll instance and take one request
//! from it at a time, in the kernel's ready order, so that m workers are one FCFS queue with m servers and never idle
//! while a request waits: an M/G/m queue, if the arrivals are Poisson.
//!
//! A class may do more, one [`Step`] after another: a fixed amount of work, whose CPU time depends on the caches; CPU
//! time under a lock that all requests share; a sleep; a read from a disk. A pool may limit how many requests are
//! served at once. The worker stays with its request all the while, as a process of Apache's prefork MPM does, so a
//! server that sleeps needs more workers than CPUs.
//!
//! Invariants:
//! - What [`Target::truth`] books under the classes and under "other" adds up to the CPU time the workers have used.
//! - Memory is bounded by the connections: no request body is kept and no head longer than 16 KiB is read.
//! - A connection takes one turn at a time, one request per turn; pipelining does not let it overtake the others.
//!
//! A limit on the rate of requests answers those above it 429, as a gateway in front of a server does.
//!
//! HTTP/1 and HTTP/2 are spoken on the same port, by TLS or in the clear; a stream of HTTP/2 waits for its turn as a
//! pipelined request does.
//!
//! There is no idle timeout: a client may hold its connection open as long as the server runs.
//!
//! `GET /NAME` requests the class NAME, `GET /` the first class, and `GET /__truth` the truth as JSON.
#![forbid(unsafe_code)]

mod burn;
mod certificate;
mod chunked;
mod connection;
mod desk;
mod disk;
mod error;
mod limiter;
mod listen;
mod pages;
mod pool;
mod request;
mod server;
mod service;
mod speaks;
mod transport;
mod truth;
mod work;
mod worker;

pub use certificate::CERTIFIED_NAME;
pub use error::TargetError;
pub use server::{Target, TargetConfig};
pub use service::{Distribution, ServiceClass, Step};
pub use truth::{ClassTruth, PoolTruth, Truth};
