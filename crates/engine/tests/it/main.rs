//! Tests of the engine with real sockets. Each test runs with epoll and with io_uring.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod accounting;
mod bodies;
mod call_recorder;
mod case;
mod destinations;
mod expected;
mod framing;
mod hostile;
mod http2;
mod limits;
mod overload;
mod own_requests;
mod panics;
mod pipeline;
mod resets;
mod retries;
mod sessions;
mod slow;
mod support;
mod timing;
mod tls;
