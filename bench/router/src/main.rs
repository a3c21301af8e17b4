//! Measures how exact the delays of the test bed's router are. A client sends datagrams to the server at a constant
//! rate. Each datagram contains the time at which it was sent.
//!
//! The program prints two errors, which are the actual delay minus the requested delay, in microseconds. `router` is
//! the lateness of packets that leave the router, measured by the router itself. `end to end` is measured from the
//! sender's `send` to the receiver's `recv`. It also includes the processing in two sockets, the time until the router
//! reads a packet, and the wake-up of the receiver. A first run without a delay measures this overhead.
#![forbid(unsafe_code)]

use anyhow::Context;
use brimful_core::Nanos;
use brimful_core::cpus::CpuList;
use brimful_os::{clock::now, cpus};
use brimful_testbed::{
    CpuRequest, Cpus, HostNumber, LinkSettings, NetworkSettings, RttRange, Rtts, RunningTestbed, SERVER,
};
use clap::Parser;
use std::net::UdpSocket;
use std::time::Duration;

/// Measures the error of the delays of the test bed's router.
#[derive(Parser)]
struct Args {
    /// Datagrams per second
    #[arg(long, default_value = "50000")]
    rate: u64,
    /// Round-trip time; a datagram is delayed by half of it
    #[arg(long, default_value = "40ms")]
    rtt: RttRange,
    /// Duration of each run
    #[arg(long, default_value = "10s")]
    duration: Nanos,
    /// Bytes of a datagram
    #[arg(long, default_value = "100")]
    size: usize,
    /// CPU of the sender
    #[arg(long)]
    client_cpus: Option<CpuList>,
    /// CPU of the receiver
    #[arg(long)]
    server_cpus: Option<CpuList>,
    /// CPU of the router
    #[arg(long)]
    router_cpu: Option<usize>,
}

#[allow(clippy::print_stdout, reason = "numbers alone")]
fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    brimful_testbed::become_root()?;
    println!(
        "{:>10} {:>9} {:>9} {:>7} {:>12} {:>8} {:>8} {:>8} {:>8}",
        "delay", "sent", "received", "lost", "error, µs", "p50", "p99", "p99.9", "max"
    );
    for rtt in [RttRange::default(), args.rtt] {
        measure(&args, rtt)?;
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "numbers alone")]
fn measure(args: &Args, rtt: RttRange) -> anyhow::Result<()> {
    let settings =
        NetworkSettings { clients: 1, rtts: Rtts::Spread(rtt), up_share: 0.5, link: LinkSettings::default(), seed: 1 };
    let list = |cpus: &Option<CpuList>| cpus.as_ref().map(|list| list.0.clone());
    let wanted =
        CpuRequest { server: list(&args.server_cpus), clients: list(&args.client_cpus), router: args.router_cpu };
    let cpus = Cpus::choose(&cpus::online(), &wanted)?;
    let bed = RunningTestbed::start(settings.clone(), cpus.clone())?;
    let receiver = bed.on_host(SERVER, || UdpSocket::bind((SERVER.ipv4(), 9)))??;
    let sender = bed.on_host(HostNumber(1), || UdpSocket::bind((HostNumber(1).ipv4(), 0)))??;
    sender.connect((SERVER.ipv4(), 9))?;
    receiver.set_read_timeout(Some(Duration::from_secs(1)))?;
    let (server_cpu, client_cpu) = (cpus.server.first().copied(), cpus.clients.first().copied());
    let delay = Nanos(settings.rtts.range_for_client(0, 1).min.0 / 2);
    let (sent, mut errors) = std::thread::scope(|scope| {
        let receiving = scope.spawn(move || receive(&receiver, delay, server_cpu));
        let sending = scope.spawn(move || send(&sender, args, client_cpu));
        (sending.join(), receiving.join())
    });
    let (sent, errors) =
        (sent.ok().context("the sender panicked")??, errors.as_mut().ok().context("the receiver panicked")?);
    errors.sort_unstable();
    let quantile_us = |q: f64| {
        let rank = ((errors.len() as f64 - 1.0) * q).round() as usize;
        errors.get(rank).map_or(0.0, |ns| *ns as f64 / 1e3)
    };
    let lost = sent.saturating_sub(errors.len() as u64);
    println!(
        "{:>10} {sent:>9} {:>9} {lost:>7} {:>12} {:>8.1} {:>8.1} {:>8.1} {:>8.1}",
        delay.to_string(),
        errors.len(),
        "end to end",
        quantile_us(0.5),
        quantile_us(0.99),
        quantile_us(0.999),
        quantile_us(1.0)
    );
    let router = bed.stop().context("the router ended early")?.router;
    let late = router.late_us.context("no packet passed the router")?;
    println!(
        "{:>10} {:>9} {:>9} {:>7} {:>12} {:>8.1} {:>8.1} {:>8.1} {:>8.1}   CPU time {:.1} s",
        "", "", router.delivered_packets, "", "router", late.p50, late.p99, late.p999, late.max, router.cpu_s
    );
    Ok(())
}

/// Sends datagrams at the requested rate, and returns their number.
fn send(socket: &UdpSocket, args: &Args, cpu: Option<usize>) -> anyhow::Result<u64> {
    prepare(cpu)?;
    let mut datagram = vec![0; args.size.clamp(8, 1400)];
    let (began, gap) = (now(), 1e9 / args.rate.max(1) as f64);
    let total = (args.duration.as_secs_f64() * args.rate as f64) as u64;
    for number in 0..total {
        let due = began + Nanos((number as f64 * gap) as u64);
        let left = due - now();
        if left > Nanos::from_micros(5) {
            std::thread::sleep(left.into());
        }
        datagram[..8].copy_from_slice(&now().0.to_ne_bytes());
        socket.send(&datagram)?;
    }
    Ok(total)
}

/// Receives datagrams until none has arrived for a second. Returns the lateness of each datagram in nanoseconds.
fn receive(socket: &UdpSocket, delay: Nanos, cpu: Option<usize>) -> Vec<u64> {
    let mut errors = Vec::new();
    let mut datagram = [0; 2048];
    // If pinning the thread fails, the measurement is only less exact.
    let _ = prepare(cpu);
    while let Ok(length) = socket.recv(&mut datagram) {
        let arrived = now();
        if let (8.., Ok(sent)) = (length, datagram[..8].try_into().map(u64::from_ne_bytes)) {
            errors.push((arrived - (Nanos(sent) + delay)).0);
        }
    }
    errors
}

/// Pins this thread to a CPU, and sets the slack of its timers to the minimum.
fn prepare(cpu: Option<usize>) -> anyhow::Result<()> {
    if let Some(cpu) = cpu {
        cpus::pin_this_thread(cpu)?;
    }
    Ok(rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?)
}
