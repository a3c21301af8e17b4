//! An example of a custom generator and a custom collector, without any change to the engine (Mosberger & Jin 1998,
//! §3).
//!
//! [`Pairs`] implements [`Workload`]: it decides which call is due, and when. [`Slowest`] implements [`Observer`]: it
//! measures the calls. The engine knows neither of them, and they do not know each other. Start it with:
//!
//!     cargo run -p brimful-engine --example own_parts

use brimful_core::event::{CallSpec, ClassId, End, Event, NextCall, Outcome};
use brimful_core::workload::Workload as WorkloadDocument;
use brimful_core::{Nanos, Observer, Workload};
use brimful_engine::{Close, Config, ConnectionPolicy, Engine, FixedRequests, RequestSettings, run};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;
use std::thread;

/// A workload of pairs of simultaneous calls, one pair every 20 ms, like a browser that fetches a page and its style
/// sheet.
struct Pairs {
    /// Number of calls that this workload has begun.
    begun: u64,
    pairs: u64,
}

impl Workload for Pairs {
    fn next(&mut self, now: Nanos, _in_flight: usize) -> NextCall {
        // The due time comes from the schedule, not from the clock: if the engine sends the call late, the latency
        // still counts from the due time.
        let due = Nanos::from_millis(20 * (self.begun / 2));
        if self.begun == 2 * self.pairs {
            NextCall::Done
        } else if due > now {
            NextCall::NotBefore(due)
        } else {
            self.begun += 1;
            NextCall::Due { due, call: CallSpec::for_class(ClassId(0)) }
        }
    }
}

/// An observer that keeps the number of completed calls and the highest latency.
#[derive(Default)]
struct Slowest {
    completed: u64,
    response_time: Nanos,
}

impl Observer for Slowest {
    /// This observer keeps no data for an individual call.
    type PerCall = ();

    fn on(&mut self, (): &mut (), event: &Event) {
        if let Event::Ended(Outcome { due, at, end: End::Completed { .. }, .. }) = *event {
            self.completed += 1;
            self.response_time = self.response_time.max(at - due);
        }
    }

    fn merge(&mut self, other: Slowest) {
        self.completed += other.completed;
        self.response_time = self.response_time.max(other.response_time);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let slowest = measure(serve()?, 10)?;
    println!("{} calls completed, the slowest in {} µs", slowest.completed, slowest.response_time.0 / 1000);
    Ok(())
}

/// Sends this many pairs of calls to the server at this address, and returns the observer with its results.
fn measure(address: SocketAddr, pairs: u64) -> Result<Slowest, Box<dyn std::error::Error>> {
    let settings = RequestSettings {
        authority: address.to_string(),
        version: brimful_http::Version::Http11,
        is_secure: false,
        headers: Vec::new(),
        close: Close::Server,
    };
    let requests = FixedRequests::render(&WorkloadDocument::single_class("GET", "/"), &settings)?;
    let config = Config {
        engine: Engine::Auto,
        tick: None,
        address: address.into(),
        tls: None,
        http2: false,
        min_connections: 0,
        connections: ConnectionPolicy { connect_timeout: Some(Nanos::from_secs(5)), ..ConnectionPolicy::default() },
        window: Nanos::from_secs(60),
        start: Nanos::ZERO,
        cpus: Vec::new(),
    };
    // One shard, that is, one thread of the load generator. Each element has a workload, its requests and an observer.
    let shards = vec![(Pairs { begun: 0, pairs }, &requests, Slowest::default())];
    Ok(run(&config, shards, &AtomicBool::new(false))?.observer)
}

/// Starts a server that answers one request per connection and then closes the connection. Returns its address.
fn serve() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
            });
        }
    });
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collector_sees_every_call_of_the_generator() {
        let slowest = measure(serve().unwrap(), 3).unwrap();
        assert_eq!(slowest.completed, 6);
        assert!(slowest.response_time > Nanos::ZERO);
    }
}
