//! The options of a watch, derived from its flags.

use super::args::WatchArgs;
use crate::exit::{Exit, UsageError};
use crate::flags::values::GroupInterval;
use brimful_core::Nanos;
use brimful_core::units::Count;
use brimful_monitor::{GroupName, Intervals, MonitorConfig, NetNamespace, ProcessSelector};
use std::io::IsTerminal;

/// Sampling interval if `--interval` is not given.
const DEFAULT_INTERVAL: Nanos = Nanos::from_secs(1);

/// The targets, duration and display of a watch.
pub struct WatchOptions {
    /// Configuration of the monitor: what it samples, and at which intervals.
    pub config: MonitorConfig,
    /// Description of the watched programs and ports.
    pub targets: String,
    /// Duration of the watch; `None` if only the user ends it.
    pub duration: Option<Nanos>,
    /// Maximum number of sampling intervals.
    pub count: u64,
    /// Whether to watch for one interval, and then print all metrics.
    pub once: bool,
    /// Whether to print the results as JSON.
    pub json: bool,
    /// Whether to print the metrics at the end in tables like those of the WebMonitor paper (Almeida, Almeida & Yates
    /// 1997).
    pub paper_tables: bool,
    /// The kind of live display.
    pub view: View,
}

/// The reason why a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The watch reached the duration or the number of intervals that the user specified.
    Planned,
    /// The watch was stopped before its planned end.
    Stopped,
}

/// The kind of live display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// A screen with all metrics, which is redrawn.
    Screen,
    /// One line of text per interval.
    Lines,
    /// No live display.
    Hidden,
}

impl WatchOptions {
    /// Derives the options from the flags.
    pub fn new(args: &WatchArgs) -> anyhow::Result<WatchOptions> {
        if args.duration == Some(Nanos::ZERO) || args.count == Some(Count(0)) {
            return Err(UsageError(
                "a watch needs at least one interval: use --duration of more than 0s, --count of at least 1".to_owned(),
            )
            .into());
        }
        let mut intervals = intervals(args)?;
        if args.once {
            // With --once, all groups of metrics need the same interval, so that a single interval has metrics of every
            // group.
            let longest = GroupName::ALL.iter().filter_map(|&group| intervals.get(group)).max();
            for group in GroupName::ALL {
                intervals.set(group, intervals.get(group).and(longest));
            }
        }
        let config = MonitorConfig {
            processes: processes(args),
            ports: args.port.clone(),
            modules: args.module.clone(),
            cpus: args.cpus.as_ref().map(|list| list.0.clone()).unwrap_or_default(),
            netns: args.netns.clone().unwrap_or(NetNamespace::Server),
            intervals,
            pin: None,
            ebpf: !args.no_ebpf,
            requests_duty: args.requests.unwrap_or_default(),
        };
        Ok(WatchOptions {
            config,
            targets: description(args),
            duration: args.duration,
            count: if args.once { 1 } else { args.count.map_or(u64::MAX, |count| count.0) },
            once: args.once,
            json: args.json,
            paper_tables: args.paper_tables,
            view: view(args),
        })
    }

    /// The exit code of the watch. If the watch has no planned end, Ctrl-C is its regular end.
    pub fn exit_code(&self, ended: StopReason) -> Exit {
        let endless = self.duration.is_none() && self.count == u64::MAX;
        if ended == StopReason::Planned || endless { Exit::Ok } else { Exit::Interrupted }
    }
}

fn intervals(args: &WatchArgs) -> anyhow::Result<Intervals> {
    let mut intervals = Intervals::uniform(DEFAULT_INTERVAL);
    for GroupInterval(group, interval) in &args.interval {
        if group.is_none() {
            intervals = Intervals::uniform(*interval);
        }
    }
    for GroupInterval(group, interval) in &args.interval {
        let Some(group) = group else { continue };
        if !args.groups.is_empty() && !args.groups.contains(group) {
            let message = format!("--interval names the group {group}, which is not in --groups: add it there");
            return Err(UsageError(message).into());
        }
        intervals.set(*group, Some(*interval));
    }
    let everywhere = args.interval.iter().rev().find(|GroupInterval(group, _)| group.is_none());
    let asked_for = args.requests.is_some() || args.groups.contains(&GroupName::Requests);
    if asked_for && intervals.get(GroupName::Requests).is_none() {
        intervals.set(
            GroupName::Requests,
            Some(everywhere.map_or(DEFAULT_INTERVAL, |GroupInterval(_, interval)| *interval)),
        );
    }
    for group in GroupName::ALL {
        let added = group == GroupName::Requests && args.requests.is_some();
        if !args.groups.is_empty() && !args.groups.contains(&group) && !added {
            intervals.set(group, None);
        }
    }
    Ok(intervals)
}

/// The programs that the user named, or else the programs that listen on the ports.
fn processes(args: &WatchArgs) -> Vec<ProcessSelector> {
    let named: Vec<ProcessSelector> = args.programs.iter().chain(&args.process).cloned().collect();
    let owners = args.port.iter().map(|&port| ProcessSelector::Port(port));
    if named.is_empty() { owners.collect() } else { named }
}

/// A description of the watched programs and ports.
fn description(args: &WatchArgs) -> String {
    let ports: Vec<String> = args.port.iter().map(u16::to_string).collect();
    let ports = match ports.len() {
        0 => None,
        1 => Some(format!("port {}", ports[0])),
        _ => Some(format!("ports {}", ports.join(", "))),
    };
    let name = |selector: &ProcessSelector| match selector {
        ProcessSelector::Name(name) => name.clone(),
        ProcessSelector::Pid(pid) => format!("pid {pid}"),
        ProcessSelector::Port(port) => format!("the program on port {port}"),
        ProcessSelector::Cgroup(path) => format!("cgroup {}", path.display()),
    };
    let modules = args.module.iter().map(|file| file.display().to_string());
    let parts: Vec<String> =
        ports.into_iter().chain(args.programs.iter().chain(&args.process).map(name)).chain(modules).collect();
    if parts.is_empty() { "this machine".to_owned() } else { parts.join(", ") }
}

/// Chooses the display. A screen needs a terminal, on stdout to draw on and on stdin to read keys.
fn view(args: &WatchArgs) -> View {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    match args {
        _ if args.paper_tables => View::Hidden,
        // Stdout is reserved for the document.
        _ if args.out.as_ref().is_some_and(|out| out.as_os_str() == "-") => View::Hidden,
        WatchArgs { json: false, once: false, quiet: false, .. } if terminal && !dumb => View::Screen,
        WatchArgs { json: false, once: false, quiet: false, .. } => View::Lines,
        _ => View::Hidden,
    }
}
