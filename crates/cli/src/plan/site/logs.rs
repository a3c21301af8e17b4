//! Counts requests and bytes in access logs, by time step and size class. Also finds the time zone of the logs.

use crate::access_logs::{describe_line_counts, log_error};
use crate::plan::args::site::SiteArgs;
use crate::plan::utilization::Utilization;
use brimful_accesslog::Entry;
use brimful_accesslog::profile::{EMPTY_CLASS, Options, Profiler, SizeRanges};
use brimful_accesslog::read::{EntryDecision, ReadOptions, read};
use brimful_core::profile::Profile;
use jiff::tz::{Offset, TimeZone};
use std::fs::File;
use std::io::Read;

/// Number of bytes of a log that are searched for a timestamp with an offset from UTC.
const HEAD_BYTES: u64 = 64 * 1024;
/// Maximum number of time steps with which the first and the last step are used, although the logs may cover only a
/// part of them.
const FEW_STEPS: usize = 10;

/// The profile of the traffic in the logs. It defines the size classes.
pub(super) fn profile(logs: &[String], reading: ReadOptions) -> anyhow::Result<Profile> {
    let mut profiler = Profiler::new(Options { sessions: false, ..Options::default() });
    let read = read(logs, reading, &mut |entry| profiler.add(entry), &mut |_| {}).map_err(log_error)?;
    profiler.finish(&read).map_err(log_error)
}

/// The size classes of requests.
pub(super) struct LogClasses {
    names: Vec<String>,
    by: ClassBounds,
    /// Index of the class of responses without a body, if there is one.
    empty_class: Option<usize>,
}

enum ClassBounds {
    /// Ranges of sizes, from `--size-classes` or `--as-the-paper`.
    Ranges(SizeRanges),
    /// The smallest size of each class of the profile, in ascending order, and the index of the class.
    Profile(Vec<(u64, usize)>),
}

impl LogClasses {
    /// The classes of `--size-classes`, the classes of Menascé et al. (CMG 1999) with `--as-the-paper`, or else the
    /// classes of the profile.
    pub fn new(args: &SiteArgs, profile: &Profile) -> LogClasses {
        let ranges = args.size_classes.clone().or_else(|| args.as_the_paper.then(SizeRanges::menasce_1999));
        let Some(ranges) = ranges else { return LogClasses::of_profile(profile) };
        // Menascé et al. (CMG 1999) number the classes by size, from 1.
        let name = |class| if args.as_the_paper { format!("class{}", class + 1) } else { ranges.name(class) };
        LogClasses {
            names: (0..ranges.class_count()).map(name).collect(),
            empty_class: Some(0),
            by: ClassBounds::Ranges(ranges),
        }
    }

    fn of_profile(profile: &Profile) -> LogClasses {
        let names: Vec<String> = profile.classes.iter().map(|class| class.name.clone()).collect();
        let empty_class = names.iter().position(|name| name == EMPTY_CLASS);
        let sized = profile.classes.iter().enumerate().filter(|(index, _)| Some(*index) != empty_class);
        let from = sized.map(|(index, class)| (class.bytes_range[0], index)).collect();
        LogClasses { names, by: ClassBounds::Profile(from), empty_class }
    }

    fn class_of(&self, bytes: u64) -> usize {
        match &self.by {
            ClassBounds::Ranges(ranges) => ranges.class_of(bytes),
            ClassBounds::Profile(from) => {
                let after = from.partition_point(|(least, _)| *least <= bytes);
                let sized = from.get(after.saturating_sub(1)).map_or(0, |(_, class)| *class);
                if bytes == 0 { self.empty_class.unwrap_or(sized) } else { sized }
            }
        }
    }
}

/// Requests and bytes in each time step, by class.
pub(super) struct StepCounts {
    /// Names of the classes that have requests in these steps.
    pub classes: Vec<String>,
    /// Index of the class of responses without a body, if it has requests.
    pub empty_class: Option<usize>,
    /// Number of requests, steps × classes.
    pub requests: Vec<Vec<f64>>,
    /// Number of bytes of responses, steps × classes.
    pub bytes: Vec<Vec<f64>>,
    /// A sentence with the number of lines read, by outcome.
    pub lines_summary: String,
    /// Notes for the user, such as which classes have no requests.
    pub notes: Vec<String>,
}

impl StepCounts {
    /// Counts the requests in the logs, and the bytes of their responses, in the time steps of `utilization`.
    pub fn count(
        logs: &[String],
        reading: ReadOptions,
        classes: LogClasses,
        utilization: &Utilization,
    ) -> anyhow::Result<StepCounts> {
        let steps = &utilization.steps;
        let mut requests = vec![vec![0.0; classes.names.len()]; steps.len()];
        let mut bytes_sent = requests.clone();
        let mut sink = |entry: &Entry<'_>| {
            // If the log's timestamps are in whole seconds, requests arrived half a second later than logged, on
            // average.
            let at_ms =
                entry.time_ns.div_euclid(1_000_000).saturating_add(if entry.has_subsecond_time { 0 } else { 500 });
            let after = steps.partition_point(|step| step.start_ms <= at_ms);
            let Some(step) = after.checked_sub(1).filter(|step| at_ms < steps[*step].end_ms()) else {
                return EntryDecision::FilteredOut;
            };
            let bytes = entry.bytes.unwrap_or(0);
            let class = classes.class_of(bytes);
            requests[step][class] += 1.0;
            bytes_sent[step][class] += bytes as f64;
            EntryDecision::Accepted
        };
        let read = read(logs, reading, &mut sink, &mut |_| {}).map_err(log_error)?;
        let counted = StepCounts {
            classes: classes.names,
            empty_class: classes.empty_class,
            requests,
            bytes: bytes_sent,
            lines_summary: describe_line_counts(&read.lines),
            notes: Vec::new(),
        };
        Ok(counted.without_unused_classes())
    }

    /// Removes classes without requests in the used steps: their demands cannot be estimated.
    fn without_unused_classes(self) -> StepCounts {
        let steps = self.steps();
        let is_used = |class: &usize| steps.iter().any(|step| self.requests[*step][*class] > 0.0);
        let (used, unused): (Vec<usize>, Vec<usize>) = (0..self.classes.len()).partition(is_used);
        if unused.is_empty() || used.is_empty() {
            return self;
        }
        let keep = |table: &[Vec<f64>]| -> Vec<Vec<f64>> {
            table.iter().map(|row| used.iter().map(|class| row[*class]).collect()).collect()
        };
        let names: Vec<&str> = unused.iter().map(|class| self.classes[*class].as_str()).collect();
        let note = format!("no request of {} is in these steps, so the model does not have it", names.join(", "));
        StepCounts {
            classes: used.iter().map(|class| self.classes[*class].clone()).collect(),
            empty_class: self.empty_class.and_then(|empty| used.iter().position(|class| *class == empty)),
            requests: keep(&self.requests),
            bytes: keep(&self.bytes),
            notes: self.notes.into_iter().chain([note]).collect(),
            lines_summary: self.lines_summary,
        }
    }

    /// The steps with requests, without the first and the last one, which the logs may cover only partly.
    pub fn steps(&self) -> Vec<usize> {
        let has_any = |step: &usize| self.requests[*step].iter().sum::<f64>() > 0.0;
        let reached: Vec<usize> = (0..self.requests.len()).filter(has_any).collect();
        match reached.len() {
            0..=FEW_STEPS => reached,
            n => reached[1..n - 1].to_vec(),
        }
    }
}

/// The offset from UTC in the first timestamp that has one. Compressed logs are not searched.
pub(super) fn zone(logs: &[String]) -> Option<TimeZone> {
    let head = |log: &String| {
        // Reading from a pipe would consume its data.
        let is_file = std::fs::metadata(log).is_ok_and(|metadata| metadata.is_file());
        let mut head = Vec::new();
        File::open(log).ok().filter(|_| is_file)?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
        Some(head)
    };
    let offset_s = logs.iter().filter_map(head).find_map(|head| offset_s(&head))?;
    Offset::from_seconds(offset_s).ok().map(TimeZone::fixed)
}

/// Returns the offset from UTC, in seconds, of the first time in a text like `10/Oct/2000:13:55:36 -0700` or
/// `2000-10-10T13:55:36-07:00`. It is positive east of Greenwich.
fn offset_s(text: &[u8]) -> Option<i32> {
    text.windows(9).enumerate().find_map(|(at, clock)| {
        let [b':' | b'T', _, _, b':', _, _, b':', _, _] = clock else { return None };
        let rest = text.get(at + 9..)?;
        let fraction = rest.iter().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',')).count();
        let rest = rest.get(fraction..)?;
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        let sign = match rest.first()? {
            b'+' => 1,
            b'-' => -1,
            b'Z' => return Some(0),
            _ => return None,
        };
        let digits: Vec<i32> = rest[1..]
            .iter()
            .filter(|byte| **byte != b':')
            .map_while(|byte| byte.is_ascii_digit().then(|| i32::from(byte - b'0')))
            .take(4)
            .collect();
        let [h1, h2, m1, m2] = digits[..] else { return None };
        let hours = 10 * h1 + h2;
        let minutes = 10 * m1 + m2;
        (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_log_is_found() {
        for (text, expected) in [
            (r#"::1 - - [10/Oct/2000:13:55:36 -0730] "GET / HTTP/1.1" 200 5"#, Some(-27_000)),
            (r#"{"time":"2026-10-10T13:55:36.123+02:00","status":200}"#, Some(7200)),
            (r#"2026-10-10T13:55:36Z GET /"#, Some(0)),
            ("1795325500.123 GET /", None),
            ("10/Oct/2000:13:55:36 +", None),
            ("10/Oct/2000:13:55:36 +99", None),
            ("", None),
        ] {
            assert_eq!(offset_s(text.as_bytes()), expected, "{text}");
        }
    }
}
