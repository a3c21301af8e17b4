//! `brimful httperf`: runs a test with httperf's own options and report, so that scripts for httperf continue to work
//! (Mosberger & Jin 1998; httperf(1) of version 0.9). A binary with the name `httperf` does the same.
//!
//! The options become a Workload and a plan for the same engine that `load` uses. A connection of httperf becomes a
//! session with one connection, which makes its calls one after another or in bursts. Options without effect cause a
//! warning with the reason.

mod echo;
mod exchanges;
mod getopt;
mod options;
mod plan;

use crate::exit::{Exit, UsageError};
use crate::output::{print, print_note};
use crate::progress;
use brimful_core::record::Record;
use brimful_core::{Nanos, record};
use brimful_report::httperf::{HttperfMetrics, HttperfSessionMetrics, text};
use brimful_run::{RunObserver, RunOutput, run};
use brimful_stats::ConnectionDetail;
use options::{Options, Period};
use rustix::process::{Resource, getrlimit};
use std::ffi::OsString;
use std::path::Path;

/// The arguments after `httperf`, if the name of this program or its first argument is `httperf`.
pub fn arguments(mut args: impl Iterator<Item = OsString>) -> Option<Vec<String>> {
    let called_httperf = |name: OsString| Path::new(&name).file_name().is_some_and(|name| name == "httperf");
    if !args.next().is_some_and(called_httperf) && args.next()? != "httperf" {
        return None;
    }
    Some(args.map(|word| word.to_string_lossy().into_owned()).collect())
}

/// Runs the test that the options describe, and prints httperf's report.
pub fn main(words: &[String]) -> anyhow::Result<Exit> {
    let options = Options::parse(words).map_err(UsageError)?;
    if options.help {
        print(&echo::help())?;
        return Ok(Exit::Ok);
    }
    if options.version {
        print(&format!("brimful {}, as httperf 0.9.0\n", env!("CARGO_PKG_VERSION")))?;
        return Ok(Exit::Ok);
    }
    plan::warnings(&options).iter().for_each(|warning| print_note(&format!("httperf: warning: {warning}")));
    let plan = plan::plan(&options)?;
    let stop = progress::stop_flag()?;
    print(&(echo::command_line(&options) + "\n"))?;
    let observer = RunObserver { detail: true, call_hook: exchanges::call_hook(&options), ..RunObserver::default() };
    let RunOutput { record, detail } = run(&plan, &observer, &stop)?;
    print(&text(&record, &extra(&options, &record, detail)))?;
    for reason in &record.verdict.reasons {
        print_note(&format!("httperf: warning: these figures do not describe the server: {}", reason.message));
    }
    Ok(if record.interrupted { Exit::Interrupted } else { Exit::Ok })
}

/// The values in httperf's report that the Record does not contain.
fn extra(options: &Options, record: &Record, detail: Option<ConnectionDetail>) -> HttperfMetrics {
    let cpu_s = cpu_s(&record.generator);
    let Some(detail) = detail else { return HttperfMetrics { cpu_s, ..HttperfMetrics::default() } };
    let duration = Nanos::from_secs_f64(record.duration_s);
    let sessions = HttperfSessionMetrics {
        rate: detail.session_rate(duration),
        fail_time_s: detail.fail_time_us().map(|times| times.mean / 1e6),
        lengths: detail.session_lengths().to_vec(),
    };
    let burst = match options.period {
        // Connections start one after another, so the longest burst is a single connection. If only one connection was
        // attempted, httperf reports 0.
        Period::OneAfterAnother => u32::from(record.counts.connect_attempts > 1),
        _ => detail.max_connect_burst(),
    };
    HttperfMetrics {
        max_connect_burst: burst,
        reply_size: detail.response_size(),
        cpu_s,
        sessions: options.has_sessions().then_some(sessions),
        descriptor_limit: options.verbose.then(descriptor_limit),
    }
}

/// Number of file descriptors that this process may open: the hard limit, to which the engine raises the soft limit.
fn descriptor_limit() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// CPU time of the load generator in user mode and in the kernel, in seconds. The kernel counts the two in ticks. If a
/// test is too short for ticks, all CPU time counts as kernel time, because most of it is.
fn cpu_s(generator: &record::Generator) -> (f64, f64) {
    match (generator.cpu_user_s, generator.cpu_system_s) {
        (Some(user), Some(system)) => (user, system),
        _ => (0.0, generator.cpu_s.unwrap_or(0.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn httperf_is_recognized_by_program_name_and_first_argument() {
        let read = |line: &str| arguments(line.split(' ').map(OsString::from));
        let some = |words: &[&str]| Some(words.iter().map(ToString::to_string).collect());
        assert_eq!(read("/usr/bin/httperf --hog -v"), some(&["--hog", "-v"]));
        assert_eq!(read("./httperf httperf"), some(&["httperf"]));
        assert_eq!(read("brimful httperf --hog"), some(&["--hog"]));
        assert_eq!(read("brimful load httperf"), None);
        assert_eq!(arguments(std::iter::empty()), None);
    }
}
