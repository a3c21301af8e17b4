//! `brimful survey`: runs a survey, shows its progress, prints its summary, and writes its report.

pub mod args;
mod display;
mod fleet;

use crate::exit::{self, Exit};
use crate::flags::values::MaxConnections;
use crate::output::{LinesFile, OutFile, deliver, first_failure, page, text_or_document};
use crate::progress;
use crate::remote::remote_config;
use crate::run_options::run_options;
use anyhow::Context;
use args::SurveyArgs;
use brimful_core::record::ReasonCode;
use brimful_core::survey::{ObjectiveOutcome, RateUnderObjective, Survey};
use brimful_http::Version;
use brimful_monitor::{ProcessSelector, listener_owners, online_cpus};
use brimful_os::machine::this_machine;
use brimful_report::load::Detail;
use brimful_run::{Endpoint, RunOptions, run_guardian};
use brimful_survey::{Change, ConnectionLimit, Subject, SurveyPlan, demo_classes, survey};
use display::Display;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Runs the survey. Prints the summary, and writes the document and the report.
pub fn main(args: &SurveyArgs) -> anyhow::Result<Exit> {
    let mut plan = plan(args)?;
    let out = OutFile::create_optional(args.output.out.as_deref(), "--out")?;
    let path = args.report.clone().unwrap_or_else(default_report);
    let report = OutFile::create(&path, "--report")?;
    let history = LinesFile::open_optional(args.record_to.as_deref(), "--record-to")?;
    let stop = progress::stop_flag()?;
    let display = Display::new(args.output.quiet);
    plan.live.clone_from(&display.live);
    let fleet = fleet::start(args, shared_streams(args), &stop)?;
    let mut survey = display.with_updates(|| survey(&plan, fleet, &stop, &mut |step| display.show(&step)))?;
    survey.labels = args.request.labels()?;
    survey.machine = Some(this_machine());
    survey.report = report.name();
    let written = page(|| brimful_report::html::html(&survey)).and_then(|page| report.commit(&page));
    if written.is_err() {
        survey.report = None;
    }
    let json = brimful_report::json::survey(&survey)?;
    let detail = if args.full { Detail::Full } else { Detail::Main };
    let text = || brimful_report::survey::text(&survey, detail);
    let text = if args.output.json { json.clone() } else { text_or_document(text, &json) };
    // If the document is written neither to `--out` nor into the report, the document is printed, because the text of
    // the summary contains only some of its values.
    let needs_document = written.is_err() && out.is_none() && !args.output.json;
    let delivered = deliver(out, &json, &if needs_document { text + "\n" + &json } else { text });
    let delivered = match (written, delivered) {
        (Ok(()), delivered) => delivered,
        (Err(report), Ok(())) if needs_document => Err(report.context("the document is on stdout instead")),
        (Err(report), Ok(())) => Err(report),
        (Err(report), Err(document)) => Err(document.context(format!("{report:#}; and then"))),
    };
    first_failure(delivered, [history.map_or(Ok(()), |file| file.append(&survey))])?;
    Ok(exit_code(&survey))
}

fn exit_code(survey: &Survey) -> Exit {
    let interrupted = survey.verdict.reasons.iter().any(|reason| reason.code == ReasonCode::Interrupted);
    let exit = exit::code_for_verdict(&survey.verdict, interrupted);
    let is_missed = |result: &RateUnderObjective| result.outcome == ObjectiveOutcome::MissedAtLightLoad;
    if exit == Exit::Ok && survey.objectives.iter().any(is_missed) { Exit::MissedObjective } else { exit }
}

fn plan(args: &SurveyArgs) -> anyhow::Result<SurveyPlan> {
    let online = online_cpus();
    let (mut like, subject) = if args.demo {
        (demo_options(args)?, Subject::Demo)
    } else {
        let url = args.url.as_deref().unwrap_or_default();
        let mut like = run_options(url, &args.request)?;
        if let Some(streams) = shared_streams(args) {
            like.server.connections.pipeline = streams;
        }
        let subject = match &args.watch_from {
            Some(address) => {
                Subject::Remote(remote_config(address, args.token_file.as_deref(), args.watch_ca.clone())?)
            }
            None if args.black_box => Subject::BlackBox,
            None => Subject::Local(server_processes(args, &like.server.endpoint)?),
        };
        (like, subject)
    };
    let mut server_cpus = args.server_cpus.as_ref().map(|list| list.0.clone());
    if args.demo && online.len() > 1 {
        server_cpus.get_or_insert_with(|| vec![online[0]]);
        if args.request.generator.cpus.is_none() {
            like.generator.cpus = vec![online[1]];
        }
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(SurveyPlan {
        subject,
        template: like,
        live: None,
        server_cpus,
        level_duration: args.level,
        max_load: args.max_load,
        max_delay: args.max_delay,
        connection_limit: match args.max_connections {
            None => ConnectionLimit::Pool,
            Some(MaxConnections::AtMost(most)) => ConnectionLimit::AtMost(most),
            Some(MaxConnections::Unlimited) => ConnectionLimit::Unlimited,
        },
        objectives: args.slo.clone(),
        thorough: args.thorough,
        change: args.what_if.or((args.demo && args.thorough).then_some(Change::Quota(0.5))),
        version,
    })
}

/// Number of HTTP/2 streams per connection, unless a flag sets it: RFC 9113 recommends that servers allow at least this
/// number (§6.5.2). Calls share connections once all open connections are in use. More connections would cause more
/// handshakes while the server is overloaded, and with TLS it might never recover.
fn shared_streams(args: &SurveyArgs) -> Option<usize> {
    const STREAMS: usize = 100;
    let request = &args.request;
    let is_kept = !matches!(request.calls_per_connection(), Ok(Some(1)));
    (request.http == Version::Http2 && request.connections.pipeline.is_none() && is_kept).then_some(STREAMS)
}

/// The options of `--demo`. The survey starts the demo server later, so the address of this server is not known here.
/// The endpoint is a placeholder: the address of a listener that existed for a moment.
fn demo_options(args: &SurveyArgs) -> anyhow::Result<RunOptions> {
    let stand_in = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let mut options = run_options(&stand_in.local_addr()?.to_string(), &args.request)?;
    if args.request.workload.is_none() {
        options.load.workload = demo_classes();
    }
    Ok(options)
}

fn server_processes(args: &SurveyArgs, endpoint: &Endpoint) -> anyhow::Result<Vec<ProcessSelector>> {
    if !args.process.is_empty() {
        return Ok(args.process.clone());
    }
    // A Unix socket has no port. In this case the survey itself reports that it watches no process.
    let Some(port) = endpoint.port() else { return Ok(Vec::new()) };
    let owners = listener_owners(port)
        .context("the server's processes cannot be watched (--black-box surveys it by its responses alone)")?;
    Ok(owners.into_iter().map(ProcessSelector::Pid).collect())
}

fn default_report() -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let now = now.replace(['-', ':', 'Z'], "").replace('T', "-");
    PathBuf::from(format!("brimful-survey-{now}.html"))
}

/// Undoes the survey's change of the server's CPUs or quota as soon as stdin ends. The survey starts this command with
/// a pipe as stdin, so stdin ends when the survey ends, even if the survey is killed.
pub fn restore_former_state() -> anyhow::Result<Exit> {
    // A signal that ends the survey, sent by a terminal or by a shell's job control, must not end this process as well.
    let ignored = Arc::default();
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        flag::register(signal, Arc::clone(&ignored)).context("cannot ignore signals")?;
    }
    rustix::process::setsid().context("this command restores the server after a survey; only a survey starts it")?;
    run_guardian(std::io::stdin().lock(), std::io::stdout().lock())
        .context("cannot read the server's former settings")?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command, FromArgMatches};

    #[test]
    fn http2_calls_share_connections_unless_a_flag_sets_the_streams_or_each_call_has_its_own() {
        let shared = |flags: &[&str]| {
            let words = [&["survey", "https://server/"], flags].concat();
            let matches = SurveyArgs::augment_args(Command::new("survey")).get_matches_from(words);
            shared_streams(&SurveyArgs::from_arg_matches(&matches).unwrap())
        };
        assert_eq!(shared(&["--http", "2"]), Some(100));
        for flags in [
            [].as_slice(),
            &["--http", "2", "--streams", "1"],
            &["--http", "2", "--new-connection"],
            &["--http", "2", "--calls-per-connection", "1"],
            &["--http", "2", "-H", "Connection: close"],
        ] {
            assert_eq!(shared(flags), None, "{flags:?}");
        }
    }
}
