//! Servers for comparing load generators, one behaviour each, on a free port of 127.0.0.1.
//!
//! The first line on stdout is that port. Every line on stdin is answered with one line of JSON, what was counted so far; the
//! end of stdin ends the server, so it cannot outlive the harness that started it. Pin it with `taskset`.
#![forbid(unsafe_code)]

mod answer;
mod edge;
mod head;

use answer::{Answering, Mode};
use clap::Parser;
use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io::{self, BufRead, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What the server does with a connection.
#[derive(Debug, Parser)]
#[command(version)]
enum Args {
    /// Answers every request at once
    Answer,
    /// Answers at once, and notes when each request arrived; it never sleeps, so that its own waking is not in the notes
    Stamp {
        /// Requests to have room for; what exceeds it is answered but not noted
        #[arg(long)]
        limit: usize,
        /// File for the notes, written at the end: per request, nanoseconds of CLOCK_MONOTONIC and the connection's number, both
        /// 64 bits, little-endian
        #[arg(long)]
        out: PathBuf,
    },
    /// Answers every request after a pause, so that as many connections are opened as there are clients
    Hold {
        /// The pause, in seconds
        #[arg(long)]
        pause_s: u64,
    },
    /// Never accepts, and has its accept queue filled from the start: every attempt to connect is ignored
    Full,
    /// Accepts one connection at a time, at most this many per second, and answers one request on each
    Slow {
        /// Connections per second
        #[arg(long)]
        per_second: u32,
    },
}

/// What a server has done so far. Written by the thread that serves, read by the one that reports.
#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    requests: AtomicU64,
    stop: AtomicBool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("brimful-bench-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> io::Result<()> {
    // Lives as long as the process, like the thread that uses it.
    let counters: &'static Counters = Box::leak(Box::default());
    let backlog = match args {
        Args::Full => edge::FULL_BACKLOG,
        Args::Slow { .. } => 128,
        _ => 4096,
    };
    let (listener, addr) = listen(backlog)?;
    let server = match args {
        Args::Answer => serve(listener, Mode::AtOnce, counters)?,
        Args::Stamp { limit, .. } => serve(listener, Mode::Stamp { limit: *limit }, counters)?,
        Args::Hold { pause_s } => serve(listener, Mode::Hold(Duration::from_secs(*pause_s)), counters)?,
        Args::Full => spawn(move || edge::full(&listener, addr)),
        Args::Slow { per_second } => {
            let slot = Duration::from_secs(1) / (*per_second).max(1);
            spawn(move || edge::slow(&listener, slot, counters))
        }
    };
    report(addr, counters)?;
    if let Args::Stamp { out, .. } = args {
        counters.stop.store(true, Ordering::Relaxed);
        let stamps = server.join().map_err(|_| io::Error::other("the serving thread panicked"))?;
        std::fs::write(out, stamps)?;
    }
    Ok(())
}

/// A thread that serves, and returns its notes, if it makes any, when it is stopped.
type Server = JoinHandle<Vec<u8>>;

fn serve(listener: OwnedFd, mode: Mode, counters: &'static Counters) -> io::Result<Server> {
    let answering = Answering::new(listener, mode, counters)?;
    Ok(spawn(move || answering.run()))
}

/// A server that fails takes the process with it: the harness must not measure what is left.
fn spawn(serve: impl FnOnce() -> io::Result<Vec<u8>> + Send + 'static) -> Server {
    thread::spawn(move || {
        serve().unwrap_or_else(|error| {
            eprintln!("brimful-bench-server: {error}");
            std::process::exit(1)
        })
    })
}

/// Tells the port, then the counters as often as asked.
fn report(addr: SocketAddr, counters: &Counters) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", addr.port())?;
    stdout.flush()?;
    for line in io::stdin().lock().lines() {
        line?;
        let connections = counters.connections.load(Ordering::Relaxed);
        let requests = counters.requests.load(Ordering::Relaxed);
        writeln!(stdout, r#"{{"connections": {connections}, "requests": {requests}}}"#)?;
        stdout.flush()?;
    }
    Ok(())
}

fn listen(backlog: i32) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Accepted sockets inherit it.
    sockopt::set_tcp_nodelay(&socket, true)?;
    net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    net::listen(&socket, backlog)?;
    let addr = SocketAddr::try_from(net::getsockname(&socket)?)?;
    Ok((socket, addr))
}
