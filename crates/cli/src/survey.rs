//! `brimful survey`: the whole loop, with its progress, its summary and its report.

use crate::args::{MaxConnections, SurveyArgs, given};
use crate::exit::{self, Exit};
use crate::fleet;
use crate::load::{request_plan, watched_from};
use crate::output::{OutFile, deliver, page, say, text_or_document};
use crate::progress;
use anyhow::Context;
use brimful_core::quantity::{number, rate, whole_percent};
use brimful_core::record::ReasonCode;
use brimful_core::survey::{Level, Survey};
use brimful_core::text::{one_line, visible};
use brimful_core::{Nanos, panics};
use brimful_estimate::PredictedFigure;
use brimful_http::Version;
use brimful_monitor::{ProcessSelector, listener_owners, online_cpus};
use brimful_run::{Crew, Endpoint, RunPlan};
use brimful_stats::Live;
use brimful_survey::{
    Change, ConnectionLimit, PredictedLevel, Predictions, Step, Subject, SurveyPlan, demo_classes, survey,
};
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// Runs it.
pub fn main(args: &SurveyArgs) -> anyhow::Result<Exit> {
    let mut plan = plan(args)?;
    let out = OutFile::optional(args.output.out.as_deref(), "--out")?;
    let path = args.report.clone().unwrap_or_else(default_report);
    let report = OutFile::create(&path, "--report")?;
    let stop = progress::stop_flag()?;
    let display = Display::new(args.output.quiet);
    plan.template.live.clone_from(&display.live);
    let crew = crew(args, &stop)?;
    let mut survey = display.during(|| survey(&plan, crew, &stop, &mut |step| display.step(&step)))?;
    survey.report = report.name();
    let written = page(|| brimful_report::html::html(&survey)).and_then(|page| report.commit(&page));
    if written.is_err() {
        survey.report = None;
    }
    let json = brimful_report::json::survey(&survey)?;
    let text = || brimful_report::survey::text(&survey);
    let text = if args.output.json { json.clone() } else { text_or_document(text, &json) };
    // The text alone leaves out much of what was measured.
    let lost = written.is_err() && out.is_none() && !args.output.json;
    let delivered = deliver(out, &json, &if lost { text + "\n" + &json } else { text });
    match (written, delivered) {
        (Ok(()), delivered) => delivered?,
        (Err(report), Ok(())) if lost => return Err(report.context("the document is on stdout instead")),
        (Err(report), Ok(())) => return Err(report),
        (Err(report), Err(document)) => return Err(document.context(format!("{report:#}; and then"))),
    }
    Ok(exit_of(&survey))
}

fn exit_of(survey: &Survey) -> Exit {
    let interrupted = survey.verdict.reasons.iter().any(|reason| reason.code == ReasonCode::Interrupted);
    exit::of_verdict(&survey.verdict, interrupted)
}

fn plan(args: &SurveyArgs) -> anyhow::Result<SurveyPlan> {
    let online = online_cpus();
    let (mut like, subject) = if args.demo {
        (demo_plan(args)?, Subject::Demo)
    } else {
        let url = args.url.as_deref().unwrap_or_default();
        let mut like = request_plan(url, &args.request)?;
        if let Some(streams) = shared_streams(args) {
            like.connections.pipeline = streams;
        }
        let subject = match &args.watch_from {
            Some(address) => Subject::Remote(watched_from(address, args.token_file.as_deref(), args.watch_ca.clone())?),
            None if args.black_box => Subject::BlackBox,
            None => Subject::Local(server_processes(args, &like.endpoint)?),
        };
        (like, subject)
    };
    let mut server_cpus = args.server_cpus.as_ref().map(|list| list.0.clone());
    if args.demo && online.len() > 1 {
        server_cpus.get_or_insert_with(|| vec![online[0]]);
        if args.request.generator.cpus.is_none() {
            like.cpus = vec![online[1]];
        }
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(SurveyPlan {
        subject,
        template: like,
        server_cpus,
        level: args.level,
        max_load: args.max_load,
        max_delay: args.max_delay,
        connection_limit: match args.max_connections {
            None => ConnectionLimit::Pool,
            Some(MaxConnections::AtMost(most)) => ConnectionLimit::AtMost(most),
            Some(MaxConnections::Unlimited) => ConnectionLimit::Unlimited,
        },
        change: args.what_if.or(args.demo.then_some(Change::Quota(0.5))),
        version,
    })
}

/// How many calls by HTTP/2 share a connection where all are taken, unless it was said: as many as a server should allow
/// (RFC 9113 §6.5.2). A connection more for each would be a handshake more just when the server is late, and a server
/// that TLS costs much would never get out of that.
fn shared_streams(args: &SurveyArgs) -> Option<usize> {
    const MOST: usize = 100;
    let request = &args.request;
    let is_kept = !matches!(request.calls_per_connection(), Ok(Some(1)));
    (request.http == Version::Http2 && request.connections.pipeline.is_none() && is_kept).then_some(MOST)
}

/// The fleet that is to make the loads, if one was asked for.
fn crew(args: &SurveyArgs, stop: &AtomicBool) -> anyhow::Result<Option<Crew>> {
    let (Some(shards), Some(url)) = (args.shards, &args.url) else { return Ok(None) };
    let flag = |name: &str, value: &dyn std::fmt::Display| OsString::from(format!("--{name}={value}"));
    let mut words = vec![OsString::from("crew"), flag("shards", &shards.0)];
    words.extend(args.address.iter().map(|address| flag("address", address)));
    words.extend(args.shards_per_node.map(|number| flag("shards-per-node", &number.0)));
    words.extend(given::of_requests(&std::env::args_os().collect::<Vec<_>>()));
    words.extend(shared_streams(args).map(|streams| flag("streams", &streams)));
    words.push(url.into());
    Ok(Some(Crew::start(shards.0, fleet::command(&words)?, stop)?))
}

/// The demonstration has no address yet: the survey learns it when it has started the server. Until then an address that
/// answers stands in for it.
fn demo_plan(args: &SurveyArgs) -> anyhow::Result<RunPlan> {
    let stand_in = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let plan = request_plan(&stand_in.local_addr()?.to_string(), &args.request)?;
    let workload = if args.request.workload.is_some() { plan.workload.clone() } else { demo_classes() };
    Ok(RunPlan { workload, ..plan })
}

fn server_processes(args: &SurveyArgs, endpoint: &Endpoint) -> anyhow::Result<Vec<ProcessSelector>> {
    if !args.process.is_empty() {
        return Ok(args.process.clone());
    }
    // Of a Unix socket, the survey itself says why not.
    let Some(port) = endpoint.port() else { return Ok(Vec::new()) };
    let owners =
        listener_owners(port).context("nothing is seen of the server (--black-box surveys it by its answers alone)")?;
    Ok(owners.into_iter().map(ProcessSelector::Pid).collect())
}

fn default_report() -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let now = now.replace(['-', ':', 'Z'], "").replace('T', "-");
    PathBuf::from(format!("brimful-survey-{now}.html"))
}

/// Shows each step: a bar on a terminal, a line elsewhere.
struct Display {
    quiet: bool,
    bar: Option<ProgressBar>,
    /// What the run under way has seen, where a bar shows it.
    live: Option<Arc<Live>>,
    current: Mutex<Option<(Instant, Nanos)>>,
}

impl Display {
    fn new(quiet: bool) -> Display {
        use std::io::IsTerminal;
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| progress::bar("", Nanos::from_secs(1)));
        let live = bar.is_some().then(Arc::default);
        Display { quiet, bar, live, current: Mutex::default() }
    }

    fn step(&self, step: &Step) {
        let line = match step {
            Step::Begin(what, lasts) => {
                if let Some(bar) = &self.bar {
                    // A step without a load of its own has seen nothing.
                    self.live.iter().for_each(|live| live.restart());
                    bar.set_length(lasts.0 / 1_000_000);
                    bar.set_prefix(one_line(what).into_owned());
                    if let Ok(mut current) = self.current.lock() {
                        *current = Some((Instant::now(), *lasts));
                    }
                    return;
                }
                format!("{what} ({})", lasts.rounded())
            }
            Step::EstimatedDuration(lasts) => {
                format!("  the survey takes about {} in all, longer where a level is disturbed", in_minutes(*lasts))
            }
            Step::Note(text) => format!("  {text}"),
            Step::Predicted(predictions) => format!("  {}", predicted(predictions)),
            Step::Level(level) => format!("  {}", summary(level)),
        };
        match &self.bar {
            Some(bar) => bar.println(visible(&line)),
            None if !self.quiet => say(&line),
            None => {}
        }
    }

    /// Keeps the bar moving while `body` runs.
    fn during<T>(&self, body: impl FnOnce() -> T) -> T {
        let (Some(bar), Some(live)) = (&self.bar, &self.live) else { return body() };
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let refresh = || {
                while !done.load(Ordering::Relaxed) {
                    if let Ok(Some((began, lasts))) = self.current.lock().as_deref() {
                        progress::show(bar, *began, *lasts, &progress::described(&live.so_far()));
                    }
                    std::thread::park_timeout(Duration::from_millis(200));
                }
            };
            // Without its bar the survey goes on.
            scope.spawn(move || panics::caught(refresh));
            let result = body();
            done.store(true, Ordering::Relaxed);
            bar.finish_and_clear();
            result
        })
    }
}

/// To the second: `2 min 5 s`.
fn in_minutes(time: Nanos) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// All predictions, for whoever wants to know that they came first.
fn predicted(predictions: &Predictions) -> String {
    let time = |seconds| Nanos::from_secs_f64(seconds).rounded();
    let level = |level: &PredictedLevel| {
        let PredictedFigure { median, interval90: [low, high] } = level.expected.response;
        let (name, share) = (&level.name, whole_percent(level.fraction));
        format!("\n    {name} at {share}, {}: {} ({} … {})", rate(level.rate), time(median), time(low), time(high))
    };
    let levels: Vec<String> = predictions.levels.iter().map(level).collect();
    let between = predictions.saturation_spread.map_or(String::new(), |spread| {
        let [low, high] = spread.interval90;
        format!(" ({} … {})", rate(low), rate(high))
    });
    let saturation = rate(predictions.saturation);
    format!(
        "predicted, with 90 % intervals: the most {saturation}{between}; a call takes on average{}",
        levels.concat()
    )
}

fn summary(level: &Level) -> String {
    let time = |seconds: Option<f64>| seconds.map_or("-".to_owned(), |s| Nanos::from_secs_f64(s).rounded());
    let busy = level.utilization.measured.map_or("-".to_owned(), whole_percent);
    let doubt = if level.verdict.valid { "" } else { "; in doubt" };
    format!(
        "{} at {}: {} answers/s, {} on average, server {busy} busy{doubt}",
        level.workload,
        rate(level.offered),
        number(level.throughput.measured.unwrap_or(0.0)),
        time(level.response_time_s.measured),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    #[test]
    fn calls_by_http2_share_a_connection_unless_that_was_said_or_each_has_one() {
        let shared = |flags: &[&str]| {
            let words = [&["brimful", "survey", "https://server/"], flags].concat();
            let Command::Survey(args) = Cli::parse_from(words).command else { panic!("it is a survey") };
            shared_streams(&args)
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
