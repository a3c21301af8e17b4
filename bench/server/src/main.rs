//! Servers for comparing load generators. Each command is a server with one behaviour, on a free port of 127.0.0.1.
//!
//! The first line on stdout is the port. For every line on stdin, the server prints its counts as a line of JSON. It
//! ends at the end of stdin, so it ends with the program that started it. Use `taskset` to pin it to a CPU.
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

/// A server for comparing load generators, on a free port of 127.0.0.1.
#[derive(Debug, Parser)]
#[command(version)]
enum Args {
    /// Answers every request immediately
    Answer,
    /// Answers immediately and records when each request arrived; it polls, so that its own wake-up adds no delay
    Stamp {
        /// Largest number of recorded requests; further ones are answered but not recorded
        #[arg(long)]
        limit: usize,
        /// File for the arrivals, written at the end: per request, nanoseconds of CLOCK_MONOTONIC and the connection's
        /// number, both 64 bits, little-endian
        #[arg(long)]
        out: PathBuf,
    },
    /// Answers every request after a delay, so that every client opens a connection of its own
    Hold {
        /// The delay, in seconds
        #[arg(long)]
        pause_s: u64,
    },
    /// Never accepts, and fills its own accept queue: the kernel ignores every attempt to connect
    Full,
    /// Accepts one connection at a time, at most this many per second, and answers one request on each
    Slow {
        /// Maximum number of connections that the server accepts per second
        #[arg(long)]
        per_second: u32,
    },
}

/// The counts so far. The thread that serves writes them, and the thread that reports reads them.
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
    // The counters are never freed, because the thread that serves uses them until the process ends.
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

/// Handle of the thread that serves. When the server stops, the thread returns the recorded arrivals, if there are any.
type Server = JoinHandle<Vec<u8>>;

fn serve(listener: OwnedFd, mode: Mode, counters: &'static Counters) -> io::Result<Server> {
    let answering = Answering::new(listener, mode, counters)?;
    Ok(spawn(move || answering.run()))
}

/// Starts the thread that serves. If it fails, the process exits, so that no broken server is measured.
fn spawn(serve: impl FnOnce() -> io::Result<Vec<u8>> + Send + 'static) -> Server {
    thread::spawn(move || {
        serve().unwrap_or_else(|error| {
            eprintln!("brimful-bench-server: {error}");
            std::process::exit(1)
        })
    })
}

/// Prints the port, and then the counts for every line on stdin.
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
    // Accepted sockets inherit this option from the listening socket.
    sockopt::set_tcp_nodelay(&socket, true)?;
    net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    net::listen(&socket, backlog)?;
    let addr = SocketAddr::try_from(net::getsockname(&socket)?)?;
    Ok((socket, addr))
}
