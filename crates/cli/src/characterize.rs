//! `brimful characterize`: makes a profile of the traffic in access logs, and a Workload with the same properties.
//!
//! Ctrl-C skips the rest of the logs. The profile then notes the interruption, and contains the lines read until then.

pub mod args;
mod filter;
mod meter;

use crate::access_logs::log_error;
use crate::command_line;
use crate::documents::{display_name, from_json, schema};
use crate::exit::{Exit, UsageError};
use crate::output::{OutFile, deliver, print, print_document, print_error};
use crate::progress;
use crate::results::write_page;
use args::{ArrivalUnit, CharacterizeArgs, ClassCriterion, RobotPolicy};
use brimful_accesslog::compare::compare;
use brimful_accesslog::detect::Formats;
use brimful_accesslog::format::Format;
use brimful_accesslog::logs::Logs;
use brimful_accesslog::profile::{ClassBy, Options, Profiler, RobotFilter};
use brimful_accesslog::read::{EntryDecision, ReadOptions};
use brimful_accesslog::workload::{ArrivalChoice, workload};
use brimful_accesslog::{Entry, LogError};
use brimful_core::profile::{self, Profile};
use brimful_core::text::{one_line, strip_bom, strip_bom_bytes};
use brimful_report::profile::{Against, Compared, comparison, csv, seconds_csv, text};
use filter::{Filter, parse_instant, parse_window};
use jiff::tz::{Offset, TimeZone};
use meter::ProgressMeter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of malformed lines that are kept and shown.
const SHOWN_MALFORMED_LINES: usize = 5;

/// Reads the logs, prints their profile, and writes the files that the flags request.
pub fn main(args: &CharacterizeArgs) -> anyhow::Result<Exit> {
    if args.list_formats {
        print(&(Format::names().join("\n") + "\n"))?;
        return Ok(Exit::Ok);
    }
    // The times in flags are parsed here only to report errors in them before the logs are read. They are parsed again
    // when the time zone of the logs is known.
    let zone = args.timezone.clone().unwrap_or(TimeZone::UTC);
    let _ = (options(args, &zone)?, filter(args, &zone)?);
    let formats = formats(args)?;
    let other = args.against.as_deref().map(read_profile).transpose()?;
    // By default, the number of classes is that of the profile in `--against`.
    let classes = other.as_ref().map(|other| other.classes.len()).filter(|n| *n > 0);
    let out = OutFile::create_optional(args.out.as_deref(), "--out")?;
    let html = OutFile::create_optional(args.html.as_deref(), "--html")?;
    let seconds = OutFile::create_optional(args.seconds.as_deref(), "--seconds")?;
    let stop = progress::stop_flag()?;
    let Some((profile, interrupted)) = characterize(args, classes, formats, &stop)? else {
        print_error("interrupted before the first request was read");
        return Ok(Exit::Interrupted);
    };
    let compared = other.as_ref().map(|other| compare(other, &profile));
    let path = args.against.as_deref().map(display_name).unwrap_or_default();
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
    let written = write_page(html, "profile", &profile).and_then(|()| write_seconds(seconds, &profile));
    match out_content(args.out.as_deref(), &profile, json) {
        Ok(content) => deliver(out, &content, &shown)?,
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
        Some(found) if !found.all_within_tolerance => Exit::MissedObjective,
        _ => Exit::Ok,
    })
}

/// Reads all logs. Returns the profile, and whether the user interrupted the reading; `None` if the interruption came
/// before the first line.
fn characterize(
    args: &CharacterizeArgs,
    classes: Option<usize>,
    formats: Option<Formats>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Option<(Profile, bool)>> {
    let reading =
        ReadOptions { formats, max_malformed: SHOWN_MALFORMED_LINES, stop: stop.clone(), ..ReadOptions::default() };
    let logs = Logs::open(&args.logs, reading).map_err(log_error)?;
    let (zone, zone_note) = time_zone(args, &logs);
    let filter = filter(args, &zone)?;
    let mut options = options(args, &zone)?;
    options.classes = options.classes.or(classes);
    let mut profiler = Profiler::new(options);
    let mut skipped = 0_u64;
    let mut sink = |entry: &Entry<'_>| {
        if stop.load(Ordering::Relaxed) {
            skipped += 1;
            return EntryDecision::FilteredOut;
        }
        if filter.keeps(entry) { profiler.add(entry) } else { EntryDecision::FilteredOut }
    };
    let mut meter = ProgressMeter::new(args.quiet);
    let read = logs.read(&mut sink, &mut |progress| meter.show(progress)).map_err(log_error)?;
    drop(meter);
    let interrupted = stop.load(Ordering::Relaxed);
    if interrupted && read.lines.parsed == 0 {
        return Ok(None);
    }
    let mut profile = profiler.finish(&read).map_err(log_error)?;
    profile.notes.extend(zone_note);
    if interrupted {
        let filtered = match skipped {
            0 => String::new(),
            n => format!(
                " {} requests that were read after the interrupt count as filtered.",
                brimful_core::quantity::count(n)
            ),
        };
        let note = format!("Interrupted: the rest of the logs is missing.{filtered}");
        profile.notes.insert(0, note);
    }
    env!("CARGO_PKG_VERSION").clone_into(&mut profile.brimful_version);
    profile.command = command_line::without_url_credentials();
    let coming = match args.load {
        None => ArrivalChoice::Auto,
        Some(ArrivalUnit::Sessions) => ArrivalChoice::Sessions,
        Some(ArrivalUnit::Requests) => ArrivalChoice::Requests,
    };
    match workload(&profile, coming) {
        Ok(chosen) => {
            (profile.workload, profile.workload_arrivals_reason) = (Some(chosen.workload), chosen.arrivals_reason)
        }
        Err(error) if coming == ArrivalChoice::Sessions => return Err(log_error(error)),
        Err(error) => profile.workload_arrivals_reason = error.to_string(),
    }
    Ok(Some((profile, interrupted)))
}

/// The time zone of hours and days: `--timezone`, or else the offset of the logs. The second value is a note that the
/// logs' offset is used.
fn time_zone(args: &CharacterizeArgs, logs: &Logs) -> (TimeZone, Option<String>) {
    if let Some(zone) = &args.timezone {
        return (zone.clone(), None);
    }
    let offset_s = logs.offset_s().filter(|offset_s| *offset_s != 0);
    let Some((offset, offset_s)) = offset_s.and_then(|s| Some((Offset::from_seconds(s).ok()?, s))) else {
        return (TimeZone::UTC, None);
    };
    let sign = if offset_s < 0 { '-' } else { '+' };
    let minutes = offset_s.unsigned_abs() / 60;
    let shown = match minutes % 60 {
        0 => format!("UTC{sign}{}", minutes / 60),
        rest => format!("UTC{sign}{}:{rest:02}", minutes / 60),
    };
    let note = format!(
        "Hours and days are in the log's own time zone, {shown}. Use --timezone for another one, or if the log contains a \
         change of daylight saving time."
    );
    (TimeZone::fixed(offset), Some(note))
}

fn options(args: &CharacterizeArgs, zone: &TimeZone) -> anyhow::Result<Options> {
    let peak = args.peak.as_deref().map(|peak| parse_window(peak, zone, "--peak")).transpose()?;
    if args.session_gap.0 == 0 {
        return Err(
            UsageError("--session-gap must be more than 0s; --no-sessions detects no sessions".to_owned()).into()
        );
    }
    Ok(Options {
        zone: zone.clone(),
        window_s: args.window,
        peak,
        robots: match args.robots {
            RobotPolicy::Keep => RobotFilter::Keep,
            RobotPolicy::Drop => RobotFilter::Drop,
            RobotPolicy::Only => RobotFilter::Only,
        },
        class_by: match &args.classes_by {
            ClassCriterion::Size => ClassBy::Size,
            ClassCriterion::Url(patterns) => ClassBy::Url(patterns.clone()),
            ClassCriterion::Status => ClassBy::Status,
            ClassCriterion::Host => ClassBy::Host,
        },
        classes: args.classes.map(usize::from),
        size_ranges: args.size_classes.clone(),
        sessions: !args.no_sessions,
        session_gap_s: args.session_gap.as_secs_f64(),
        ..Options::default()
    })
}

fn filter(args: &CharacterizeArgs, zone: &TimeZone) -> anyhow::Result<Filter> {
    let instant_of =
        |time: &Option<String>, flag: &str| time.as_deref().map(|time| parse_instant(time, zone, flag)).transpose();
    let filter = Filter {
        since: instant_of(&args.since, "--since")?,
        until: instant_of(&args.until, "--until")?,
        status: args.filter_status.clone(),
        urls: args.filter_url.clone(),
    };
    if filter.since.zip(filter.until).is_some_and(|(since, until)| since >= until) {
        return Err(UsageError("there is no time between --since and --until: give a later --until".to_owned()).into());
    }
    Ok(filter)
}

/// The formats that the flags name; `None` to detect them.
fn formats(args: &CharacterizeArgs) -> anyhow::Result<Option<Formats>> {
    let mut formats = Vec::new();
    for format in &args.format {
        formats.push(Format::parse(format).map_err(|error| UsageError(format!("--format: {error}")))?);
    }
    if let Some(path) = &args.format_from {
        let bytes = std::fs::read(path).map_err(|source| log_error(LogError::Io { path: path.clone(), source }))?;
        let of_file = Format::from_configuration(&String::from_utf8_lossy(strip_bom_bytes(&bytes)));
        formats.extend(of_file.map_err(|error| UsageError(format!("{}: {error}", path.display())))?);
        if formats.is_empty() {
            return Err(UsageError(format!(
                "{} defines no log format: name the file that has a log_format or LogFormat, or use --format",
                path.display()
            ))
            .into());
        }
    }
    Ok((!formats.is_empty()).then(|| Formats::from_list(formats)))
}

/// Reads the profile in the file of `--against`.
fn read_profile(path: &Path) -> anyhow::Result<Profile> {
    let text =
        std::fs::read_to_string(path).map_err(|source| log_error(LogError::Io { path: path.to_owned(), source }))?;
    let wrong = |why: String| UsageError(format!("{}: {why}", display_name(path)));
    let text = strip_bom(&text);
    if schema(text) != profile::SCHEMA {
        let what = "this is not a profile: give a file that `brimful characterize --out FILE.json` wrote";
        return Err(wrong(what.to_owned()).into());
    }
    Ok(from_json(text).map_err(wrong)?)
}

/// Writes the requests in each second of the peak window to the file of `--seconds`.
fn write_seconds(file: Option<OutFile>, profile: &Profile) -> anyhow::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let csv = seconds_csv(profile).ok_or_else(|| {
        let message = "--seconds: the peak window is too long or too large to have counts for each second: choose a shorter one \
                       with --window or --peak";
        UsageError(message.to_owned())
    })?;
    file.commit(&csv)
}

/// The content of the file of `--out`. The file's extension determines its format.
fn out_content(out: Option<&Path>, profile: &Profile, json: String) -> anyhow::Result<String> {
    let extension = out.and_then(Path::extension).map(|extension| extension.to_ascii_lowercase());
    match extension.as_ref().and_then(|extension| extension.to_str()) {
        Some("toml") => workload_toml(profile),
        Some("csv") => Ok(csv(profile)),
        _ => Ok(json),
    }
}

/// The Workload in TOML, with a comment on its origin.
fn workload_toml(profile: &Profile) -> anyhow::Result<String> {
    let why = one_line(&profile.workload_arrivals_reason);
    let Some(workload) = &profile.workload else {
        return Err(UsageError(format!("no Workload can be made for --out: {why}")).into());
    };
    let from = one_line(&profile.peak.from);
    let seconds = profile.peak.seconds;
    let head =
        format!("# The traffic of {seconds} s from {from}, from access logs by `brimful characterize`.\n# {why}\n\n");
    Ok(head + &toml::to_string(workload)?)
}
