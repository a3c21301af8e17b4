//! The reference server: a web server with known service demands. It is used for demonstrations, and for tests that
//! compare measurements with the true CPU times.
//!
//! Requests have classes, and each class has a configured demand of CPU time. A request uses exactly this CPU time on
//! the worker thread that serves it, or a random time from the exponential distribution with this mean. The time is
//! measured by the thread's own CPU clock. All workers share one epoll instance. Each takes one request at a time from
//! it, in the order in which the sockets became ready. So m workers are an FCFS queue with m servers: no worker is idle
//! while a request waits. With Poisson arrivals, this is an M/G/m queue.
//!
//! Instead of a single demand, a class may have several [`ServiceStep`]s. A step is an amount of CPU time; a fixed
//! amount of work, whose CPU time depends on the caches; CPU time under a lock that all requests share; a sleep; or a
//! read from a disk. A pool may limit the number of requests in service at the same time. A request occupies its worker
//! during all steps, like a process of Apache's prefork MPM. So a server with sleep steps needs more workers than CPUs.
//!
//! Invariants:
//! - The CPU times of the classes and of "other" in [`Target::cpu_times`] add up to the CPU time that the workers used.
//! - Memory is bounded for each connection: request bodies are discarded, and heads longer than 16 KiB are rejected.
//! - When a connection is processed, at most one of its requests is served. Then the connection waits in the queue
//!   again, so pipelined requests do not overtake the requests of other clients.
//!
//! If a rate limit is configured, requests that exceed it get a 429 response, like those of a gateway in front of a
//! server.
//!
//! HTTP/1 and HTTP/2 share one port, with or without TLS. Requests on HTTP/2 streams are served one after another, like
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
