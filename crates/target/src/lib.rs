//! The reference server: a web server with known service demands, for demonstrations and for tests that compare a
//! measurement with the true CPU times.
//!
//! A request of a class uses CPU time on the worker thread that serves it, measured by the thread's own CPU clock:
//! exactly the configured demand, or an exponential draw with that mean. All workers share one epoll instance and take
//! one request from it at a time, in the kernel's ready order. So m workers form one FCFS queue with m servers. No
//! server is idle while a request waits. If the arrivals are Poisson, this is an M/G/m queue.
//!
//! A class may have several [`ServiceStep`]s: a fixed amount of work, whose CPU time depends on the caches; CPU time
//! under a lock that all requests share; a sleep; a read from a disk. A pool may limit how many requests are served at
//! once. The worker is occupied during all steps, like a process of Apache's prefork MPM, so a server that sleeps needs
//! more workers than CPUs.
//!
//! Invariants:
//! - The CPU times of the classes and of "other" in [`Target::cpu_times`] add up to the CPU time that the workers used.
//! - Memory is bounded by the number of connections: no request body is kept, and no head longer than 16 KiB is read.
//! - A connection takes one turn at a time, and a turn serves at most one request, so pipelined requests do not
//!   overtake the requests of other clients.
//!
//! With a limit on the request rate, requests above it get a 429 response, as from a gateway in front of a server.
//!
//! HTTP/1 and HTTP/2 share one port, with or without TLS. The requests on HTTP/2 streams wait for their turns like
//! pipelined requests.
//!
//! There is no idle timeout: a client may keep its connection open for as long as the server runs.
//!
//! `GET /NAME` requests the class NAME, `GET /` the first class, and `GET /__truth` the true CPU times as JSON.
#![forbid(unsafe_code)]

mod burn;
mod certificate;
mod chunked;
mod connection;
mod disk;
mod error;
mod limiter;
mod listen;
mod pages;
mod pool;
mod protocol;
mod request;
mod server;
mod service;
mod state;
mod transport;
mod truth;
mod work;
mod worker;

pub use certificate::CERTIFIED_NAME;
pub use error::TargetError;
pub use server::{Target, TargetConfig};
pub use service::{Distribution, ServiceClass, ServiceStep};
pub use truth::{ClassCpuTimes, PoolUsage, ReferenceCpuTimes};
