//! `brimful testbed`: a command among a server and its clients that are hosts of their own, with a wide area between
//! them.
//!
//! stdout is the command's; what is said here goes to stderr. The exit code is the command's as well.

pub mod args;

use crate::exit::UsageError;
use crate::output::{OutFile, say};
use anyhow::Context;
use args::{InsideArgs, TestbedArgs};
use brimful_core::Nanos;
use brimful_core::cpus::CpuList;
use brimful_core::quantity::{count, percent};
use brimful_core::secret::without_credentials;
use brimful_core::testbed::{Client, Link, Router, SCHEMA, Testbed};
use brimful_core::text::without_mark;
use brimful_testbed::{
    Bed, CpuRequest, Cpus, LinkShape, NoSuchHost, RttHistogram, Rtts, Shape, TestbedError, TestbedResults,
};
use std::process::ExitCode;
use std::time::SystemTime;

/// Later than this, 99th percentile, the router is worth a warning.
const LATE_US: f64 = 200.0;

/// Runs it.
pub fn main(args: &TestbedArgs) -> ExitCode {
    match run(args) {
        Ok(code) => code.into(),
        Err(error) => crate::ended(Err(error)),
    }
}

/// The first process among those of the command.
pub fn inside(args: &InsideArgs) -> ExitCode {
    match brimful_testbed::run_init(args.parent, &args.command) {
        Ok(code) => code.into(),
        Err(error) => crate::ended(Err(told(error))),
    }
}

fn run(args: &TestbedArgs) -> anyhow::Result<u8> {
    let shape = shape(args)?;
    let fill = |word: &String| brimful_testbed::fill_addresses(word, shape.clients);
    let command: Vec<String> = args.command.iter().map(fill).collect::<Result<_, NoSuchHost>>().map_err(usage)?;
    let out = OutFile::optional(args.out.as_deref(), "--out")?;
    if out.as_ref().is_some_and(|out| out.name().is_none()) {
        return Err(UsageError("stdout is the command's: give --out a file".to_owned()).into());
    }
    let list = |cpus: &Option<CpuList>| cpus.as_ref().map(|list| list.0.clone());
    let wanted =
        CpuRequest { server: list(&args.server_cpus), clients: list(&args.client_cpus), router: args.router_cpu };
    let cpus = Cpus::choose(&brimful_os::cpus::online(), &wanted).map_err(told)?;
    // Before there is any thread.
    brimful_testbed::become_root().map_err(told)?;
    let (seed, began_at, began) = (shape.seed, SystemTime::now(), brimful_os::clock::now());
    let bed = Bed::start(shape, cpus).map_err(told)?;
    if !bed.is_steered() && !args.quiet {
        say("note: receive work is not steered: the router's CPU does that of all hosts");
    }
    let exit_code = brimful_testbed::run(&bed, &command).map_err(told)?;
    let measured = bed.stop().context("the router has ended early; report this, with what it said")?;
    if !args.quiet {
        said(&measured, seed).iter().for_each(|line| say(line));
    }
    let TestbedResults { shape, server, clients, router } = measured;
    let document = Testbed {
        schema: SCHEMA.to_owned(),
        started_at: humantime::format_rfc3339_micros(began_at).to_string(),
        brimful_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command_line(),
        seed,
        duration_s: (brimful_os::clock::now() - began).as_secs_f64(),
        exit_code,
        shape,
        server,
        clients,
        router,
    };
    if let Some(out) = out {
        out.commit(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    }
    Ok(exit_code)
}

/// This program's, without credentials in URLs.
fn command_line() -> Vec<String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.map(|word| if word.contains("://") { without_credentials(&word).into_owned() } else { word }).collect()
}

/// The network that the flags describe.
fn shape(args: &TestbedArgs) -> anyhow::Result<Shape> {
    let rtts = match &args.rtts {
        None => Rtts::Spread(args.rtt),
        Some(path) => {
            let name = path.display();
            let text = std::fs::read_to_string(path).map_err(|error| {
                UsageError(format!("cannot read {name}: {error}; give --rtts a file of lines like `20ms..40ms, 0.25`"))
            })?;
            Rtts::Drawn(
                without_mark(&text).parse::<RttHistogram>().map_err(|error| UsageError(format!("{name}: {error}")))?,
            )
        }
    };
    let link = LinkShape {
        loss: args.loss,
        reorder: args.reorder,
        bytes_per_s: args.rate.map(|bits| bits / 8.0),
        queue: args.queue,
    };
    let clock = || Nanos::from(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()).0 / 1000;
    let (clients, up_share) = (args.clients as usize, args.up_share);
    Ok(Shape { clients, rtts, up_share, link, seed: args.seed.unwrap_or_else(clock) })
}

/// What the router did, in sentences.
fn said(measured: &TestbedResults, seed: u64) -> Vec<String> {
    let TestbedResults { server, clients, router, .. } = measured;
    let links = || clients.iter().flat_map(|client: &Client| [client.up, client.down]);
    let sum = |of: fn(Link) -> u64| links().map(of).sum::<u64>();
    let (packets, lost, full) = (sum(|l| l.packets), sum(|l| l.lost_packets), sum(|l| l.queue_full_packets));
    let mut lines = vec![format!("testbed: seed {seed}; {}", lateness(router))];
    let offered = packets + lost + full;
    if lost + full > 0 {
        let share = |n: u64| percent(n as f64 / offered as f64);
        lines.push(format!(
            "testbed: of {} packets, {} ({}) were lost as asked for, {} ({}) found the rate's queue full",
            count(offered),
            count(lost),
            share(lost),
            count(full),
            share(full)
        ));
    }
    let unread = server.unread_packets + clients.iter().map(|client| client.host.unread_packets).sum::<u64>();
    for (packets, why) in [
        (unread, "were dropped before the router could read them: give it a CPU of its own with --router-cpu"),
        (router.no_room_packets, "found no room in the router: use a lower --rtt or a --rate"),
        (router.refused_packets, "were not taken by the kernel of the host they were for"),
        (
            router.backlog_packets,
            "were dropped by CPUs whose backlogs were full: sysctl -w net.core.netdev_max_backlog=10000",
        ),
    ] {
        if packets > 0 {
            lines.push(format!("WARNING: {} packets {why}", count(packets)));
        }
    }
    if router.late_us.is_some_and(|late| late.p99 > LATE_US) {
        let warning = "WARNING: delays are longer than asked for: give the router a CPU of its own with --router-cpu";
        lines.push(warning.to_owned());
    }
    lines
}

fn lateness(router: &Router) -> String {
    let Some(late) = router.late_us else { return "no packet passed the router".to_owned() };
    let time = |us: f64| Nanos::from_secs_f64(us / 1e6).rounded();
    format!(
        "the router delivered {} packets, half of them at most {} late, 99 % at most {}, all at most {}",
        count(router.delivered_packets),
        time(late.p50),
        time(late.p99),
        time(late.max)
    )
}

fn told(error: TestbedError) -> anyhow::Error {
    if error.is_usage() { usage(error) } else { error.into() }
}

fn usage(error: impl ToString) -> anyhow::Error {
    UsageError(error.to_string()).into()
}
