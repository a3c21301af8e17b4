//! `brimful characterize`: access logs become a profile of their traffic, and the Workload that has it.
//!
//! Ctrl-C leaves out what comes later in the logs: the account of the lines stays whole, and the profile says so.

pub mod args;
mod filter;
mod meter;

use crate::exit::{Exit, UsageError};
use crate::output::{OutFile, complain, deliver, print, print_document};
use crate::plan::model::{from_json, name};
use crate::plan::page;
use crate::progress;
use args::{CharacterizeArgs, ClassesBy, ComingBy, RobotPolicy};
use brimful_accesslog::compare::compare;
use brimful_accesslog::detect::Formats;
use brimful_accesslog::format::Format;
use brimful_accesslog::logs::Logs;
use brimful_accesslog::profile::{ClassBy, Options, Profiler, Robots};
use brimful_accesslog::read::{Kept, ReadOptions};
use brimful_accesslog::workload::{ArrivalChoice, workload};
use brimful_accesslog::{Entry, LogError};
use brimful_core::profile::{self, Profile};
use brimful_core::secret;
use brimful_core::text::{bytes_without_mark, one_line, without_mark};
use brimful_report::profile::{Against, Compared, comparison, csv, text};
use filter::{Filter, instant, window};
use jiff::tz::{Offset, TimeZone};
use meter::Meter;
use serde::Deserialize;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// So many malformed lines are kept and shown.
const FIRST_MALFORMED: usize = 5;

/// Runs it.
pub fn main(args: &CharacterizeArgs) -> anyhow::Result<Exit> {
    if args.list_formats {
        print(&(Format::names().join("\n") + "\n"))?;
        return Ok(Exit::Ok);
    }
    // What is wrong with flags is said before anything is read, whatever the clocks of the logs.
    let zone = args.timezone.clone().unwrap_or(TimeZone::UTC);
    let _ = (options(args, &zone)?, filter(args, &zone)?);
    let formats = formats(args)?;
    let other = args.against.as_deref().map(read_profile).transpose()?;
    // As many as there are to compare with.
    let classes = other.as_ref().map(|other| other.classes.len()).filter(|n| *n > 0);
    let out = OutFile::optional(args.out.as_deref(), "--out")?;
    let html = OutFile::optional(args.html.as_deref(), "--html")?;
    let stop = progress::stop_flag()?;
    let Some((profile, interrupted)) = characterize(args, classes, formats, &stop)? else {
        complain("interrupted before there was any request to say something about");
        return Ok(Exit::Interrupted);
    };
    let compared = other.as_ref().map(|other| compare(other, &profile));
    let path = args.against.as_deref().map(name).unwrap_or_default();
    let json = match &compared {
        None => brimful_report::json::document("profile", &profile)?,
        Some(found) => {
            let against = Against::new(path.clone(), found);
            brimful_report::json::document("profile", &Compared { profile: &profile, against })?
        }
    };
    let shown = match &compared {
        _ if args.json => json.clone(),
        None => text(&profile),
        Some(found) => text(&profile) + "\n" + &comparison(&path, found),
    };
    let written = page(html, "profile", &profile);
    match document(args.out.as_deref(), &profile, json) {
        Ok(document) => deliver(out, &document, &shown)?,
        Err(error) => {
            if args.json {
                print_document(&shown)?
            } else {
                print(&shown)?
            };
            return Err(error);
        }
    }
    written?;
    Ok(match compared {
        _ if interrupted => Exit::Interrupted,
        Some(found) if !found.alike => Exit::Objective,
        _ => Exit::Ok,
    })
}

/// Reads all logs; whether that was interrupted. Nothing if it was before anything was read.
fn characterize(
    args: &CharacterizeArgs,
    classes: Option<usize>,
    formats: Option<Formats>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Option<(Profile, bool)>> {
    let reading =
        ReadOptions { formats, first_malformed: FIRST_MALFORMED, enough: stop.clone(), ..ReadOptions::default() };
    let logs = Logs::open(&args.logs, reading).map_err(failed)?;
    let (zone, of_zone) = clock(args, &logs);
    let filter = filter(args, &zone)?;
    let mut options = options(args, &zone)?;
    options.classes = options.classes.or(classes);
    let mut profiler = Profiler::new(options);
    let mut left_out = 0_u64;
    let mut sink = |entry: &Entry<'_>| {
        if stop.load(Ordering::Relaxed) {
            left_out += 1;
            return Kept::No;
        }
        if filter.keeps(entry) { profiler.add(entry) } else { Kept::No }
    };
    let mut meter = Meter::new(args.quiet);
    let read = logs.read(&mut sink, &mut |progress| meter.show(progress)).map_err(failed)?;
    drop(meter);
    let interrupted = stop.load(Ordering::Relaxed);
    if interrupted && read.lines.parsed == 0 {
        return Ok(None);
    }
    let mut profile = profiler.finish(&read).map_err(failed)?;
    profile.notes.extend(of_zone);
    if interrupted {
        let filtered = match left_out {
            0 => String::new(),
            n => format!(" {} requests that had been read count as filtered.", brimful_core::quantity::count(n)),
        };
        let note = format!("Interrupted: what came later in the logs is left out.{filtered}");
        profile.notes.insert(0, note);
    }
    env!("CARGO_PKG_VERSION").clone_into(&mut profile.brimful_version);
    profile.command = command();
    let coming = match args.load {
        None => ArrivalChoice::Auto,
        Some(ComingBy::Sessions) => ArrivalChoice::Sessions,
        Some(ComingBy::Requests) => ArrivalChoice::Requests,
    };
    match workload(&profile, coming) {
        Ok(chosen) => (profile.workload, profile.workload_arrivals_why) = (Some(chosen.workload), chosen.why),
        Err(error) if coming == ArrivalChoice::Sessions => return Err(failed(error)),
        Err(error) => profile.workload_arrivals_why = error.to_string(),
    }
    Ok(Some((profile, interrupted)))
}

/// Whose clocks hours and days are by: those of `--timezone`, else the logs' own; and a note where it is these.
fn clock(args: &CharacterizeArgs, logs: &Logs) -> (TimeZone, Option<String>) {
    if let Some(zone) = &args.timezone {
        return (zone.clone(), None);
    }
    let offset_s = logs.offset_s().filter(|offset_s| *offset_s != 0);
    let Some((offset, offset_s)) = offset_s.and_then(|s| Some((Offset::from_seconds(s).ok()?, s))) else {
        return (TimeZone::UTC, None);
    };
    let (sign, minutes) = (if offset_s < 0 { '-' } else { '+' }, offset_s.unsigned_abs() / 60);
    let shown = match minutes % 60 {
        0 => format!("UTC{sign}{}", minutes / 60),
        rest => format!("UTC{sign}{}:{rest:02}", minutes / 60),
    };
    let note = format!(
        "Hours and days are those of the log's own clocks, {shown}; for others, or where clocks were changed meanwhile, \
         give --timezone."
    );
    (TimeZone::fixed(offset), Some(note))
}

/// The command line, as documents state it.
fn command() -> Vec<String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let without = |word: String| match word.contains("://") {
        true => secret::without_credentials(&word).into_owned(),
        false => word,
    };
    words.map(without).collect()
}

fn options(args: &CharacterizeArgs, zone: &TimeZone) -> anyhow::Result<Options> {
    let peak = args.peak.as_deref().map(|peak| window(peak, zone, "--peak")).transpose()?;
    if args.session_gap.0 == 0 {
        return Err(UsageError("--session-gap more than 0s is needed, or --no-sessions".to_owned()).into());
    }
    Ok(Options {
        zone: zone.clone(),
        window_s: args.window,
        peak,
        robots: match args.robots {
            RobotPolicy::Keep => Robots::Keep,
            RobotPolicy::Drop => Robots::Drop,
            RobotPolicy::Only => Robots::Only,
        },
        class_by: match &args.classes_by {
            ClassesBy::Size => ClassBy::Size,
            ClassesBy::Url(patterns) => ClassBy::Url(patterns.clone()),
            ClassesBy::Status => ClassBy::Status,
            ClassesBy::Host => ClassBy::Host,
        },
        classes: args.classes.map(usize::from),
        sessions: !args.no_sessions,
        session_gap_s: args.session_gap.as_secs_f64(),
        ..Options::default()
    })
}

fn filter(args: &CharacterizeArgs, zone: &TimeZone) -> anyhow::Result<Filter> {
    let at = |time: &Option<String>, flag: &str| time.as_deref().map(|time| instant(time, zone, flag)).transpose();
    let filter = Filter {
        since: at(&args.since, "--since")?,
        until: at(&args.until, "--until")?,
        status: args.filter_status.clone(),
        urls: args.filter_url.clone(),
    };
    if filter.since.zip(filter.until).is_some_and(|(since, until)| since >= until) {
        return Err(UsageError("nothing lies between --since and --until: give a later --until".to_owned()).into());
    }
    Ok(filter)
}

/// Those that flags name; without any they are found out.
fn formats(args: &CharacterizeArgs) -> anyhow::Result<Option<Formats>> {
    let mut formats = Vec::new();
    for format in &args.format {
        formats.push(Format::parse(format).map_err(|error| UsageError(format!("--format: {error}")))?);
    }
    if let Some(path) = &args.format_from {
        let bytes = std::fs::read(path).map_err(|source| failed(LogError::Io { path: path.clone(), source }))?;
        let of_file = Format::of_configuration(&String::from_utf8_lossy(bytes_without_mark(&bytes)));
        formats.extend(of_file.map_err(|error| UsageError(format!("{}: {error}", path.display())))?);
        if formats.is_empty() {
            return Err(UsageError(format!(
                "{} defines no format of an access log: name the file with its log_format or LogFormat, or give --format",
                path.display()
            ))
            .into());
        }
    }
    Ok((!formats.is_empty()).then(|| Formats::given(formats)))
}

/// The schema of any document.
#[derive(Deserialize)]
struct Schema {
    schema: String,
}

/// The profile to compare with.
fn read_profile(path: &Path) -> anyhow::Result<Profile> {
    let text =
        std::fs::read_to_string(path).map_err(|source| failed(LogError::Io { path: path.to_owned(), source }))?;
    let wrong = |why: String| UsageError(format!("{}: {why}", name(path)));
    let text = without_mark(&text);
    let schema = from_json::<Schema>(text).map_or(String::new(), |document| document.schema);
    if schema != profile::SCHEMA {
        let what = "this is no profile: give a file that `brimful characterize --out FILE.json` wrote";
        return Err(wrong(what.to_owned()).into());
    }
    Ok(from_json(text).map_err(wrong)?)
}

/// What goes into the file of `--out`, by its name.
fn document(out: Option<&Path>, profile: &Profile, json: String) -> anyhow::Result<String> {
    let extension = out.and_then(Path::extension).map(|extension| extension.to_ascii_lowercase());
    match extension.as_ref().and_then(|extension| extension.to_str()) {
        Some("toml") => workload_toml(profile),
        Some("csv") => Ok(csv(profile)),
        _ => Ok(json),
    }
}

/// The Workload alone, with what it comes from.
fn workload_toml(profile: &Profile) -> anyhow::Result<String> {
    let why = one_line(&profile.workload_arrivals_why);
    let Some(workload) = &profile.workload else {
        return Err(UsageError(format!("there is no Workload for --out: {why}")).into());
    };
    let (from, seconds) = (one_line(&profile.peak.from), profile.peak.seconds);
    let head =
        format!("# The traffic of {seconds} s from {from}, from access logs by `brimful characterize`.\n# {why}\n\n");
    Ok(head + &toml::to_string(workload)?)
}

/// What an error means to a script, and what to do about it where the system alone has spoken.
pub fn failed(error: LogError) -> anyhow::Error {
    let hint = match &error {
        LogError::Io { source, .. } => match source.kind() {
            ErrorKind::NotFound => "; check the path",
            ErrorKind::PermissionDenied => "; read it as a member of its group (`ls -l` shows which), or with sudo",
            _ => "",
        },
        LogError::NoMatch(_) => "",
        _ => return UsageError(error.to_string()).into(),
    };
    anyhow::anyhow!("{error}{hint}")
}
