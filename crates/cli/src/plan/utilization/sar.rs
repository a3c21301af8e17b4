//! Reads the output of `sar -u`, `sar -d`, `mpstat` and `pidstat`: a first line with the date, then for each activity
//! (CPUs, disks or programs) a header and lines, each of which begins with a time of day. The time of a line is the end
//! of its interval. The time of a header is the start of the first interval. Midnight is recognized by a time that is
//! much earlier than the previous one. The CPU shares of the programs that `pidstat` shows are added up.

use super::clock::{self, LineTimes, time_of_day};
use super::samples::{Samples, parse_number};
use super::{CPU, Utilization};
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The activity (CPUs, disks or programs) that lines of the output report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Cpu,
    Disk,
    Programs,
}

/// The state of the parser of sar's output.
#[derive(Default)]
struct Reader<'a> {
    date: Option<Date>,
    /// The times of the lines of each activity. A file has all lines of one activity before those of the next one, and
    /// the lines of each activity begin at the start of the day.
    times: [Option<LineTimes>; 3],
    activity: Option<Activity>,
    columns: Vec<&'a str>,
    cpus: Option<u32>,
    notes: Vec<String>,
    samples: Samples,
}

/// Whether a line is the header of an activity with utilizations.
pub(super) fn is_header(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    time_of_day(&words).is_some_and(|(_, taken)| activity(words.get(taken..).unwrap_or_default()).is_some())
}

fn activity(columns: &[&str]) -> Option<Activity> {
    let has = |name: &str| columns.contains(&name);
    match () {
        () if has("CPU") && has("%idle") => Some(Activity::Cpu),
        () if has("PID") && has("%CPU") => Some(Activity::Programs),
        () if has("DEV") && has("%util") => Some(Activity::Disk),
        () => None,
    }
}

/// Reads utilizations from the output of `sar`, `mpstat` or `pidstat`. Times are read in `zone`.
pub(super) fn read(text: &str, zone: &TimeZone) -> Result<Utilization, String> {
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("Linux ") {
            reader.begin(line);
        } else {
            reader.line(line, zone).map_err(|why| format!("line {number}: {why}"))?;
        }
    }
    if reader.samples.is_empty() {
        return Err(
            "it has no lines of CPUs with %idle or of disks with %util: use the output of `sar -u`, `sar -d`, \
                    `mpstat 60` or `pidstat -C nginx 60`"
                .to_owned(),
        );
    }
    let found = reader.samples.finish();
    let is_mean = found.resources.first().is_some_and(|name| name == CPU);
    let cpus = reader.cpus.filter(|_| is_mean);
    Ok(Utilization { has_local_times: true, cpus, notes: reader.notes, ..found })
}

impl<'a> Reader<'a> {
    /// Reads the first line of the output: `Linux 6.1.0 (host)  11/22/2026  _x86_64_  (2 CPU)`.
    fn begin(&mut self, line: &str) {
        let date = date_in(line);
        self.date = date.and_then(clock::date);
        self.cpus = cpus_in(line).or(self.cpus);
        self.times = [None; 3];
        self.activity = None;
        if let Some(date) = date.filter(|date| clock::is_ambiguous(date)) {
            let note =
                format!("{date} is read as month, day and year; `S_TIME_FORMAT=ISO sar` prints unambiguous dates");
            self.notes.push(note);
            self.notes.dedup();
        }
    }

    fn line(&mut self, line: &'a str, zone: &TimeZone) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        // `Average:`, in any language, and other lines without a time are skipped.
        let Some((second, taken)) = time_of_day(&words) else { return Ok(()) };
        let fields = words.get(taken..).unwrap_or_default();
        if !fields.iter().any(|field| parse_number(field).is_some()) {
            // The line is a header of an activity, or it reports a restart of the machine and a header follows.
            self.activity = activity(fields);
            self.columns = fields.to_vec();
            return self.advance_to(second, true, zone);
        }
        let is_whole = match self.activity {
            // The command in the last column may contain spaces.
            Some(Activity::Programs) => fields.len() >= self.columns.len(),
            _ => fields.len() == self.columns.len(),
        };
        if self.activity.is_none() || !is_whole {
            return Ok(());
        }
        self.advance_to(second, false, zone)?;
        self.sample(fields);
        Ok(())
    }

    /// Adds the utilization in a line of the current activity.
    fn sample(&mut self, fields: &[&str]) {
        let Some(LineTimes { before_ms, at_ms, .. }) = *self.line_times() else { return };
        let field = |name: &str| self.columns.iter().position(|column| *column == name).and_then(|at| fields.get(at));
        let number = |name: &str| field(name).and_then(|text| parse_number(text));
        match self.activity {
            Some(Activity::Cpu) => {
                if let (Some(cpu), Some(idle)) = (field("CPU"), number("%idle")) {
                    let name = if *cpu == "all" { CPU.to_owned() } else { format!("{CPU}{cpu}") };
                    let busy = 1.0 - (idle + number("%iowait").unwrap_or(0.0)) / 100.0;
                    self.samples.add(before_ms, at_ms, &name, busy);
                }
            }
            Some(Activity::Disk) => {
                if let (Some(disk), Some(busy)) = (field("DEV"), number("%util")) {
                    self.samples.add(before_ms, at_ms, disk, busy / 100.0);
                }
            }
            Some(Activity::Programs) => {
                if let Some(busy) = number("%CPU") {
                    let cpus = f64::from(self.cpus.unwrap_or(1));
                    self.samples.add_part(before_ms, at_ms, CPU, busy / 100.0 / cpus);
                }
            }
            None => {}
        }
    }

    /// The times of lines of the current activity.
    fn line_times(&mut self) -> &mut Option<LineTimes> {
        let [cpu, disk, programs] = &mut self.times;
        match self.activity {
            Some(Activity::Disk) => disk,
            Some(Activity::Programs) => programs,
            _ => cpu,
        }
    }

    fn advance_to(&mut self, second: i64, is_header: bool, zone: &TimeZone) -> Result<(), String> {
        if self.activity.is_none() {
            return Ok(());
        }
        let date =
            self.date.ok_or("there is no line with the date before it, which begins with `Linux`: keep that line")?;
        let out_of_range = || "the time is out of range".to_owned();
        match self.line_times() {
            Some(times) if is_header => times.restart(second, zone).ok_or_else(out_of_range),
            Some(times) => times.advance_to(second, zone).ok_or_else(out_of_range),
            none => {
                *none = Some(LineTimes::start(date, second, zone).ok_or_else(out_of_range)?);
                Ok(())
            }
        }
    }
}

/// The date in the first line of the output: the text between the host's name and the architecture.
pub(super) fn date_in(line: &str) -> Option<&str> {
    let after = line.split_once(')')?.1;
    let date = after.split(['_', '(']).next()?.trim();
    (!date.is_empty()).then_some(date)
}

/// The number of CPUs in the first line of the output.
pub(super) fn cpus_in(line: &str) -> Option<u32> {
    let (_, after) = line.rsplit_once('(')?;
    after.strip_suffix(" CPU)").or_else(|| after.trim_end().strip_suffix(" CPU)"))?.parse().ok().filter(|n| *n > 0)
}
