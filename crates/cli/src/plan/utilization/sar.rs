//! What `sar -u`, `sar -d`, `mpstat` and `pidstat` print: a first line with the date, then for each activity a header that begins
//! with a time, and lines that begin with one. The header's is that of the sample before its first line, a line's that of
//! its end. Only the time of day is told, by clocks of 12 or 24 hours, so midnight is seen as a time that is much
//! smaller than the one before. The programs that `pidstat` shows are taken together: theirs is the share of all CPUs.

use super::clock::{self, Course, time_of_day};
use super::samples::{Samples, figure};
use super::{CPU, Utilization};
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// What lines are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Cpu,
    Disk,
    Programs,
}

/// Where a text is.
#[derive(Default)]
struct Reading<'a> {
    date: Option<Date>,
    /// Times of each activity: a saved file tells one activity after the other, each from the morning on.
    courses: [Option<Course>; 3],
    activity: Option<Activity>,
    columns: Vec<&'a str>,
    cpus: Option<u32>,
    notes: Vec<String>,
    samples: Samples,
}

/// Whether a line is the header of an activity that tells how busy something was.
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

pub(super) fn read(text: &str, zone: &TimeZone) -> Result<Utilization, String> {
    let mut reading = Reading::default();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("Linux ") {
            reading.begin(line);
        } else {
            reading.line(line, zone).map_err(|why| format!("line {number}: {why}"))?;
        }
    }
    if reading.samples.is_empty() {
        return Err("it has no lines of CPUs with %idle or of disks with %util: print it with `sar -u`, `sar -d`, \
                    `mpstat 60` or `pidstat -C nginx 60`"
            .to_owned());
    }
    let found = reading.samples.finish();
    let is_mean = found.resources.first().is_some_and(|name| name == CPU);
    let cpus = reading.cpus.filter(|_| is_mean);
    Ok(Utilization { is_local: true, cpus, notes: reading.notes, ..found })
}

impl<'a> Reading<'a> {
    /// The first line of what a command prints: `Linux 6.1.0 (host)  11/22/2026  _x86_64_  (2 CPU)`.
    fn begin(&mut self, line: &str) {
        let date = date_in(line);
        self.date = date.and_then(clock::date);
        self.cpus = cpus_in(line).or(self.cpus);
        (self.courses, self.activity) = ([None; 3], None);
        if let Some(date) = date.filter(|date| clock::is_ambiguous(date)) {
            let note = format!(
                "{date} is read as the month, the day and the year; `S_TIME_FORMAT=ISO sar` prints dates that are clear"
            );
            self.notes.push(note);
            self.notes.dedup();
        }
    }

    fn line(&mut self, line: &'a str, zone: &TimeZone) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        // `Average:`, whatever it is in other languages, and lines of other kinds.
        let Some((second, taken)) = time_of_day(&words) else { return Ok(()) };
        let fields = words.get(taken..).unwrap_or_default();
        if !fields.iter().any(|field| figure(field).is_some()) {
            // A header, or a restart, after which there is a header.
            self.activity = activity(fields);
            self.columns = fields.to_vec();
            return self.go_to(second, true, zone);
        }
        let is_whole = match self.activity {
            // Commands may have words.
            Some(Activity::Programs) => fields.len() >= self.columns.len(),
            _ => fields.len() == self.columns.len(),
        };
        if self.activity.is_none() || !is_whole {
            return Ok(());
        }
        self.go_to(second, false, zone)?;
        self.sample(fields);
        Ok(())
    }

    /// What one line tells of the stretch that ends at its time.
    fn sample(&mut self, fields: &[&str]) {
        let Some(Course { before_ms, at_ms, .. }) = *self.course() else { return };
        let field = |name: &str| self.columns.iter().position(|column| *column == name).and_then(|at| fields.get(at));
        let number = |name: &str| field(name).and_then(|text| figure(text));
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

    fn course(&mut self) -> &mut Option<Course> {
        let [cpu, disk, programs] = &mut self.courses;
        match self.activity {
            Some(Activity::Disk) => disk,
            Some(Activity::Programs) => programs,
            _ => cpu,
        }
    }

    fn go_to(&mut self, second: i64, is_header: bool, zone: &TimeZone) -> Result<(), String> {
        if self.activity.is_none() {
            return Ok(());
        }
        let date =
            self.date.ok_or("there is no line with the date before it, which begins with `Linux`: keep all of it")?;
        let far = || "that is no time that can be counted with".to_owned();
        match self.course() {
            Some(course) if is_header => course.restart(second, zone).ok_or_else(far),
            Some(course) => course.go_to(second, zone).ok_or_else(far),
            none => {
                *none = Some(Course::begin(date, second, zone).ok_or_else(far)?);
                Ok(())
            }
        }
    }
}

/// The date in a first line: what stands between the host's name and the architecture.
pub(super) fn date_in(line: &str) -> Option<&str> {
    let after = line.split_once(')')?.1;
    let date = after.split(['_', '(']).next()?.trim();
    (!date.is_empty()).then_some(date)
}

/// How many CPUs a first line tells of.
pub(super) fn cpus_in(line: &str) -> Option<u32> {
    let (_, after) = line.rsplit_once('(')?;
    after.strip_suffix(" CPU)").or_else(|| after.trim_end().strip_suffix(" CPU)"))?.parse().ok().filter(|n| *n > 0)
}
