//! `brimful replay`: the requests of access logs are made again, at the log's own times.

mod against_flat;
mod length;

use crate::args::{DetailArgs, OutputArgs, RequestArgs, examples};
use crate::characterize::failed;
use crate::exit::{Exit, UsageError};
use crate::hdr::HdrArgs;
use crate::load::{deliver_record, request_plan};
use crate::output::{OutFile, first_failure, say};
use crate::progress;
use brimful_accesslog::detect::Formats;
use brimful_accesslog::format::Format;
use brimful_accesslog::logs::Logs;
use brimful_accesslog::read::{Kept, Progress, ReadOptions, ReadSummary};
use brimful_accesslog::replay::{CLASSES, Call, MapRule, Options, Replayer, Summary};
use brimful_accesslog::{Entry, LogError};
use brimful_core::profile::Lines;
use brimful_core::quantity::{count, counted, number};
use brimful_core::record::Record;
use brimful_core::workload::{Load, LogReplay, Workload};
use brimful_core::{Nanos, Rate};
use brimful_run::{RunPlan, StreamedCall, run_log};
use brimful_workload::Speed;
use clap::Args;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// `brimful replay`.
#[derive(Debug, Args)]
#[command(
    after_help = examples::REPLAY,
    next_help_heading = "Replay",
    override_usage = "brimful replay [OPTIONS] <LOG>... <URL>"
)]
pub struct ReplayArgs {
    /// Access logs: files, compressed or not, patterns, or - for stdin; those of several servers are merged by time. And
    /// the server's URL, like http://127.0.0.1:8080/; its path is not asked for
    #[arg(required = true, value_name = "LOG… URL", help_heading = None)]
    pub places: Vec<String>,
    /// The log's gaps divided by this, like 2x; 0.5x is half as fast
    #[arg(long, value_name = "FACTOR", default_value = "1x")]
    pub speed: Speed,
    /// The same requests at a constant rate, the log's mean times --speed
    #[arg(long)]
    pub flatten: bool,
    /// Both, one after the other, and what the difference is: what the log's bursts cost the server
    #[arg(long, conflicts_with = "flatten")]
    pub against_flat: bool,
    /// End after this time
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// A format by name, or as the server's own configuration writes it [default: found out]
    #[arg(long, value_name = "FORMAT")]
    pub format: Vec<String>,
    /// Send requests of these methods; others change something on most servers [default: GET,HEAD]
    #[arg(long, value_name = "METHOD,…", value_delimiter = ',')]
    pub methods: Vec<String>,
    /// Ask for other paths: what begins with /old/ begins with /new/ instead (repeatable)
    #[arg(long, value_name = "/OLD/=/NEW/")]
    pub map: Vec<MapRule>,
    /// Make a file of each answer's size below this document root, and ask for it in place of what the log names
    #[arg(long, value_name = "DIR", conflicts_with = "map")]
    pub fileset: Option<PathBuf>,
    /// Sort requests that are out of order within this time of the log
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub sort_within: Nanos,
    /// Cut pauses between calls that are longer than this, like 10s
    #[arg(long, value_name = "TIME", value_parser = pause)]
    pub max_gap: Option<Nanos>,
    /// Requests and connections.
    #[command(flatten)]
    pub request: RequestArgs,
    /// Histograms for other tools.
    #[command(flatten)]
    pub hdr: HdrArgs,
    /// Output.
    #[command(flatten)]
    pub output: OutputArgs,
    /// How much of a Record is shown.
    #[command(flatten)]
    pub detail: DetailArgs,
}

/// Reads a pause, of which there is some.
fn pause(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos::ZERO) => Err("a pause of 0 s would make all calls at once: give one like 10s".to_owned()),
        Ok(pause) => Ok(pause),
        Err(error) => Err(error.to_string()),
    }
}

impl ReplayArgs {
    /// The logs, and the server's URL: the one word that is a URL, else the last.
    fn logs_and_url(&self) -> Result<(Vec<String>, &str), UsageError> {
        let is_url = |word: &&String| word.contains("://");
        let mut urls = self.places.iter().filter(is_url);
        let url = match (urls.next(), urls.next()) {
            (Some(url), None) => url,
            (Some(first), Some(second)) => {
                return Err(UsageError(format!("one server is asked: give either {first} or {second}")));
            }
            _ => self.places.last().filter(|_| self.places.len() > 1).ok_or_else(|| {
                UsageError("a log and a server are needed: brimful replay access.log http://127.0.0.1:8080/".to_owned())
            })?,
        };
        let logs: Vec<String> = self.places.iter().filter(|place| *place != url).cloned().collect();
        if logs.is_empty() {
            return Err(UsageError(format!("which log is to be replayed? brimful replay access.log {url}")));
        }
        Ok((logs, url))
    }

    /// The logs.
    fn logs(&self) -> Vec<String> {
        self.logs_and_url().map(|(logs, _)| logs).unwrap_or_default()
    }
}

/// What is replayed, besides what the flags say.
#[derive(Clone, Copy, Debug)]
struct How {
    /// At this constant rate, in calls per second.
    flattened: Option<f64>,
    /// So many calls.
    most: u64,
    /// How long it will last, as far as that is known.
    lasts: Nanos,
}

/// What came of it.
struct Replayed {
    record: Record,
    /// What was read from the logs; `None` if the run ended before the logs did, or they could not be read to their
    /// ends.
    fed: Option<Fed>,
    /// Why the logs could not be read to their ends.
    unread: Option<LogError>,
}

/// What was read, and handed over.
struct Fed {
    read: ReadSummary,
    summary: Summary,
    calls: u64,
    /// When the last of them was due.
    last: Nanos,
}

/// Runs it.
pub fn main(args: &ReplayArgs) -> anyhow::Result<Exit> {
    if args.request.workload.is_some() {
        return Err(UsageError("a log says itself what is requested: leave out --workload".to_owned()).into());
    }
    args.logs_and_url()?;
    if args.flatten {
        read_twice(args, "--flatten")?;
    }
    if args.against_flat {
        if args.hdr.hdr.is_some() {
            return Err(UsageError("--hdr is of one run: leave out --against-flat".to_owned()).into());
        }
        return against_flat::main(args);
    }
    let out = OutFile::optional(args.output.out.as_deref(), "--out")?;
    let hdr = args.hdr.open()?;
    let plan = plan(args)?;
    plan.validate()?;
    let stop = progress::stop_flag()?;
    let length = length::measure(args, &stop)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    let flattened = match (args.flatten, &length) {
        (true, Some(length)) => Some(rate_of(length.calls, length.last, "--flatten")?),
        _ => None,
    };
    let lasts = length::say_length(args, length.as_ref());
    let done = replayed(args, plan, How { flattened, most: u64::MAX, lasts }, &stop)?;
    done.account(args);
    let delivered = deliver_record(&done.record, &args.output, args.detail, out);
    first_failure(delivered, [hdr.map_or(Ok(()), |file| file.write(&done.record)), done.read_to_its_end()])
}

fn plan(args: &ReplayArgs) -> anyhow::Result<RunPlan> {
    let (logs, url) = args.logs_and_url()?;
    let mut plan = request_plan(url, &args.request)?;
    let class = Workload::single("GET", "/").classes.remove(0);
    let log = LogReplay {
        files: logs,
        speed: args.speed.get(),
        flattened: args.flatten,
        max_gap_s: args.max_gap.map(Nanos::as_secs_f64),
    };
    plan.workload = Workload {
        classes: CLASSES
            .iter()
            .map(|name| brimful_core::workload::RequestClass { name: (*name).to_owned(), ..class.clone() })
            .collect(),
        load: Some(Load::Log(log)),
        tls: plan.workload.tls.take(),
    };
    plan.window = args.duration.unwrap_or(Nanos::MAX);
    Ok(plan)
}

/// One run. The logs are read while it goes on.
fn replayed(args: &ReplayArgs, mut plan: RunPlan, how: How, stop: &AtomicBool) -> anyhow::Result<Replayed> {
    let lasts = plan.window.min(how.lasts);
    plan.live = progress::is_shown(lasts, args.output.quiet).then(Arc::default);
    let fed = Mutex::new(None);
    let feed = |push: &mut dyn FnMut(StreamedCall) -> bool| {
        let read = feed(args, how, push, stop);
        *fed.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
    };
    let load = || run_log(&plan, Box::new(feed), stop);
    let what = if how.flattened.is_some() { "flat" } else { "replay" };
    let record = progress::during(what, lasts, plan.live.as_deref(), load);
    // Why nothing was read says more than that there was nothing to do.
    match (record, fed.into_inner().unwrap_or_else(PoisonError::into_inner)) {
        (Ok(record), Some(Err(error))) if record.counts.scheduled > 0 => {
            Ok(Replayed { record, fed: None, unread: Some(error) })
        }
        (_, Some(Err(error))) => Err(failed(error)),
        (Err(_), Some(Ok(fed))) if fed.calls == 0 && fed.read.lines.read > 0 => {
            Err(UsageError(length::no_call(&fed.read, &fed.summary)).into())
        }
        (record, Some(Ok(fed))) => Ok(Replayed { record: record?, fed: Some(fed), unread: None }),
        (record, None) => Ok(Replayed { record: record?, fed: None, unread: None }),
    }
}

fn options(args: &ReplayArgs, flattened: Option<f64>) -> Options {
    let mut options = Options {
        speed: args.speed.get(),
        flattened,
        window_ns: i64::try_from(args.sort_within.0).unwrap_or(i64::MAX),
        max_gap_ns: args.max_gap.map(|gap| gap.0),
        map: args.map.clone(),
        fileset: args.fileset.clone(),
        ..Options::default()
    };
    if !args.methods.is_empty() {
        options.methods.clone_from(&args.methods);
    }
    options
}

fn reading(args: &ReplayArgs) -> Result<ReadOptions, LogError> {
    let formats: Vec<Format> = args.format.iter().map(|format| Format::parse(format)).collect::<Result<_, _>>()?;
    let formats = (!formats.is_empty()).then(|| Formats::given(formats));
    Ok(ReadOptions { formats, ..ReadOptions::default() })
}

/// Reads the logs and hands over their calls, until nobody wants more.
fn feed(
    args: &ReplayArgs,
    how: How,
    push: &mut dyn FnMut(StreamedCall) -> bool,
    stop: &AtomicBool,
) -> Result<Fed, LogError> {
    let ends = args.duration.unwrap_or(Nanos::MAX);
    let (mut calls, mut last) = (0, Nanos::ZERO);
    let mut emit = |call: Call| {
        let due = Nanos(call.due_ns);
        if due >= ends || calls >= how.most || stop.load(Ordering::Relaxed) {
            return false;
        }
        (calls, last) = (calls + 1, due);
        let headers = if call.unchanged { vec![("If-None-Match".to_owned(), "*".to_owned())] } else { Vec::new() };
        let Call { class, method, path, .. } = call;
        push(StreamedCall { due, class, method, path, headers })
    };
    let mut replayer = Replayer::new(options(args, how.flattened));
    let (mut wrong, mut wanted) = (None, true);
    let options = reading(args)?;
    let enough = options.enough.clone();
    let mut sink = |entry: &Entry<'_>| {
        if !wanted || wrong.is_some() {
            enough.store(true, Ordering::Relaxed);
            return Kept::No;
        }
        match replayer.add(entry, &mut emit) {
            Ok((goes_on, is_call)) => {
                wanted = goes_on;
                if is_call { Kept::Yes } else { Kept::No }
            }
            Err(error) => {
                wrong = Some(error);
                Kept::No
            }
        }
    };
    let read = Logs::open(&args.logs(), options)?.read(&mut sink, &mut |_: &Progress| {})?;
    if let Some(error) = wrong {
        return Err(error);
    }
    let summary = if wanted { replayer.finish(&mut emit) } else { replayer.summary() };
    Ok(Fed { read, summary, calls, last })
}

/// Calls per second of so many, of which the last was due then.
fn rate_of(calls: u64, last: Nanos, flag: &str) -> anyhow::Result<f64> {
    if calls < 2 || last == Nanos::ZERO {
        return Err(UsageError(format!("a log of a single moment has no mean rate: leave out {flag}")).into());
    }
    Ok(Rate((calls - 1) as f64 / last.as_secs_f64()).0)
}

fn read_twice(args: &ReplayArgs, flag: &str) -> anyhow::Result<()> {
    if args.logs().iter().any(|log| log == "-") {
        return Err(UsageError(format!("{flag} reads the logs twice, which stdin cannot be: give files")).into());
    }
    Ok(())
}

impl Replayed {
    /// # Errors
    /// The logs could not be read to their ends, and the rest was not replayed.
    fn read_to_its_end(self) -> anyhow::Result<()> {
        self.unread.map_or(Ok(()), |error| Err(failed(error)))
    }

    /// Says what became of the lines, and of the requests that they are.
    fn account(&self, args: &ReplayArgs) {
        if let Some(fed) = self.fed.as_ref().filter(|_| !args.output.quiet) {
            account(&fed.read, &fed.summary, &self.record);
        }
    }
}

/// What became of lines.
pub fn lines(lines: &Lines) -> String {
    format!(
        "{} lines read = {} parsed + {} malformed + {} filtered out",
        count(lines.read),
        count(lines.parsed),
        count(lines.malformed),
        count(lines.filtered)
    )
}

fn load_of(record: &Record) -> Option<&Load> {
    record.workload.as_ref().and_then(|workload| workload.load.as_ref())
}

/// What became of the lines, and of the requests that they are.
fn account(read: &ReadSummary, summary: &Summary, record: &Record) {
    say(&lines(&read.lines));
    if let Some(left_out) = length::left_out(summary) {
        say(&format!("not sent: {left_out}"));
    }
    if summary.late > 0 {
        say(&format!(
            "{} came too far behind their time to be sorted (--sort-within): they were due at once",
            count(summary.late)
        ));
    }
    if summary.ahead > 0 {
        say(&format!("{} have stamps far ahead of the lines around them: they were due at once", count(summary.ahead)));
    }
    if summary.set_back > 0 {
        say(&format!(
            "the logs' clock was set back {}: their time went on from there",
            counted(summary.set_back, "time")
        ));
    }
    if summary.pauses_cut > 0 && !matches!(load_of(record), Some(Load::Log(log)) if log.flattened) {
        let cut = Nanos(summary.cut_ns);
        say(&format!("{} cut by {} in all (--max-gap)", counted(summary.pauses_cut, "pause"), length::lasting(cut)));
    }
    if record.duration_s > 0.0 {
        say(&format!("{} calls/s on average", number(record.counts.scheduled as f64 / record.duration_s)));
    }
}
