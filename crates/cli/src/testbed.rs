//! `brimful testbed`: runs a command on an emulated network, in which the server and each client are separate hosts,
//! with a wide-area network between them.
//!
//! stdout and the exit code come from the command. Messages go to stderr.

pub mod args;

use crate::command_line;
use crate::exit::UsageError;
use crate::output::{OutFile, print_note};
use anyhow::Context;
use args::{TestbedArgs, TestbedInitArgs};
use brimful_core::Nanos;
use brimful_core::cpus::CpuList;
use brimful_core::quantity::{count, percent};
use brimful_core::testbed::{Client, Link, Router, SCHEMA, Testbed};
use brimful_core::text::strip_bom;
use brimful_testbed::{
    CpuRequest, Cpus, LinkSettings, NetworkSettings, RttHistogram, Rtts, RunningTestbed, TestbedError, TestbedResults,
    UnknownHostError,
};
use std::time::SystemTime;

/// Maximum 99th percentile of the time by which the router forwards packets late, in microseconds. Above it, a warning
/// is printed.
const MAX_LATENESS_US: f64 = 200.0;

/// Runs the command in a test bed. Returns the command's exit code.
pub fn main(args: &TestbedArgs) -> anyhow::Result<u8> {
    let shape = network_settings(args)?;
    let fill = |word: &String| brimful_testbed::fill_addresses(word, shape.clients);
    let command: Vec<String> =
        args.command.iter().map(fill).collect::<Result<_, UnknownHostError>>().map_err(usage_error)?;
    let out = OutFile::create_optional(args.out.as_deref(), "--out")?;
    if out.as_ref().is_some_and(|out| out.name().is_none()) {
        return Err(UsageError("stdout belongs to the command: give --out a file".to_owned()).into());
    }
    let list = |cpus: &Option<CpuList>| cpus.as_ref().map(|list| list.0.clone());
    let wanted =
        CpuRequest { server: list(&args.server_cpus), clients: list(&args.client_cpus), router: args.router_cpu };
    let cpus = Cpus::choose(&brimful_os::cpus::online(), &wanted).map_err(with_exit_code)?;
    // `become_root` works only in a process with a single thread, because it creates a user namespace (unshare(2)).
    brimful_testbed::become_root().map_err(with_exit_code)?;
    let seed = shape.seed;
    let began_at = SystemTime::now();
    let began = brimful_os::clock::now();
    let bed = RunningTestbed::start(shape, cpus).map_err(with_exit_code)?;
    if !bed.has_packet_steering() && !args.quiet {
        print_note(
            "note: receive work cannot be moved to other CPUs, so the router's CPU does the receive work of all hosts",
        );
    }
    let exit_code = brimful_testbed::run(&bed, &command).map_err(with_exit_code)?;
    let measured = bed.stop().context("the router ended too early; please report this with its messages")?;
    if !args.quiet {
        report_lines(&measured, seed).iter().for_each(|line| print_note(line));
    }
    let TestbedResults { shape, server, clients, router } = measured;
    let document = Testbed {
        schema: SCHEMA.to_owned(),
        started_at: humantime::format_rfc3339_micros(began_at).to_string(),
        brimful_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command_line::without_url_credentials(),
        seed,
        duration_s: (brimful_os::clock::now() - began).as_secs_f64(),
        exit_code,
        link: shape,
        server,
        clients,
        router,
    };
    if let Some(out) = out {
        out.commit(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    }
    Ok(exit_code)
}

/// Runs the hidden command that is the first process inside the test bed. It starts the user's command, and returns the
/// command's exit code.
pub fn run_init(args: &TestbedInitArgs) -> anyhow::Result<u8> {
    brimful_testbed::run_init(args.parent, &args.command).map_err(with_exit_code)
}

/// The settings of the emulated network that the flags describe.
fn network_settings(args: &TestbedArgs) -> anyhow::Result<NetworkSettings> {
    let rtts = match &args.rtts {
        None => Rtts::Spread(args.rtt),
        Some(path) => {
            let name = path.display();
            let text = std::fs::read_to_string(path).map_err(|error| {
                UsageError(format!("cannot read {name}: {error}; give --rtts a file of lines like `20ms..40ms, 0.25`"))
            })?;
            Rtts::Drawn(
                strip_bom(&text).parse::<RttHistogram>().map_err(|error| UsageError(format!("{name}: {error}")))?,
            )
        }
    };
    let link = LinkSettings {
        loss: args.loss,
        reorder: args.reorder,
        bytes_per_s: args.rate.map(|bits| bits / 8.0),
        queue: args.queue,
    };
    let clock = || Nanos::from(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()).0 / 1000;
    let clients = args.clients as usize;
    let up_share = args.up_share;
    Ok(NetworkSettings { clients, rtts, up_share, link, seed: args.seed.unwrap_or_else(clock) })
}

/// The lines of the report on the packets, and on the time by which the router forwarded them late.
fn report_lines(measured: &TestbedResults, seed: u64) -> Vec<String> {
    let TestbedResults { server, clients, router, .. } = measured;
    let links = || clients.iter().flat_map(|client: &Client| [client.up, client.down]);
    let sum = |count: fn(Link) -> u64| links().map(count).sum::<u64>();
    let packets = sum(|link| link.packets);
    let lost = sum(|link| link.lost_packets);
    let full = sum(|link| link.queue_full_packets);
    let mut lines = vec![format!("testbed: seed {seed}; {}", lateness(router))];
    let offered = packets + lost + full;
    if lost + full > 0 {
        let share = |n: u64| percent(n as f64 / offered as f64);
        lines.push(format!(
            "testbed: of {} packets, {} ({}) were lost by --loss, {} ({}) were dropped by full queues of --rate",
            count(offered),
            count(lost),
            share(lost),
            count(full),
            share(full)
        ));
    }
    let unread = server.unread_packets + clients.iter().map(|client| client.host.unread_packets).sum::<u64>();
    for (packets, why) in [
        (unread, "were dropped before the router could read them: give the router its own CPU with --router-cpu"),
        (router.no_room_packets, "exceeded the router's memory and were dropped: use a lower --rtt or a --rate"),
        (router.refused_packets, "were refused by the kernel of their destination host"),
        (
            router.backlog_packets,
            "were dropped by CPUs whose backlogs were full: sysctl -w net.core.netdev_max_backlog=10000",
        ),
    ] {
        if packets > 0 {
            lines.push(format!("WARNING: {} packets {why}", count(packets)));
        }
    }
    if router.late_us.is_some_and(|late| late.p99 > MAX_LATENESS_US) {
        let warning = "WARNING: delays are longer than requested: give the router its own CPU with --router-cpu";
        lines.push(warning.to_owned());
    }
    lines
}

fn lateness(router: &Router) -> String {
    let Some(late) = router.late_us else { return "the router forwarded no packets".to_owned() };
    let time = |us: f64| Nanos::from_secs_f64(us / 1e6).to_rounded_string();
    format!(
        "the router forwarded {} packets: half of them at most {} late, 99 % at most {}, all at most {}",
        count(router.delivered_packets),
        time(late.p50),
        time(late.p99),
        time(late.max)
    )
}

fn with_exit_code(error: TestbedError) -> anyhow::Error {
    if error.is_usage() { usage_error(error) } else { error.into() }
}

fn usage_error(error: impl ToString) -> anyhow::Error {
    UsageError(error.to_string()).into()
}
