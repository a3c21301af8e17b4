//! How busy each resource was when, in what operators have: a CSV of time and utilizations, what sysstat, `iostat` and
//! `vmstat` print, a Record, or a log of `brimful watch`. Which of them a text is, its content tells.
//!
//! Shares are 0 to 1. A CPU is busy when it is neither idle nor waits for a disk: what a hypervisor takes (steal)
//! counts as busy, because no request can have it. Stretches are in the order of time and do not overlap.

mod clock;
mod document;
mod iostat;
mod sadf;
mod samples;
mod sar;
mod table;
#[cfg(test)]
mod tests;
mod vmstat;

use jiff::tz::TimeZone;

/// What a CPU resource is called.
const CPU: &str = "cpu";
/// Shorter steps are taken several at a time: a request may be counted in one and use the CPU in the one before, and
/// stamps of whole seconds are as far off as half of one.
const STEP_S: f64 = 10.0;
/// But so many steps should be left: of fewer, regression makes little.
const STEPS: f64 = 20.0;
/// What is read, for messages.
const KINDS: &str = "a CSV with a header like time,cpu,disk; `sar -u` and `sar -d`, `mpstat`, `pidstat`, or `sadf -d FILE -- -u -d`; \
                     `iostat -x -t`; `vmstat -t`; a Record; or kernel.jsonl of `brimful watch --log`";

/// Of some resources, step after step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Utilization {
    /// Their names, the CPUs first.
    pub resources: Vec<String>,
    /// In the order of time.
    pub steps: Vec<Step>,
    /// Of how many CPUs the first resource is the mean, where the text tells.
    pub cpus: Option<u32>,
    /// Whether there were times without a zone, which were read by the clocks of the one that was given.
    pub is_local: bool,
    /// What to know of how it was read.
    pub notes: Vec<String>,
}

/// One step of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When it begins, in milliseconds since 1970.
    pub from_ms: i64,
    /// How long it is.
    pub seconds: f64,
    /// Busy share of each resource, 0..1.
    pub shares: Vec<f64>,
}

impl Step {
    /// When it ends, in milliseconds since 1970.
    pub fn to_ms(&self) -> i64 {
        self.from_ms.saturating_add((self.seconds * 1000.0).round() as i64)
    }
}

/// Reads any of them. Times without a zone are those that its clocks show; what is said of an error is what to do about it.
pub fn parse(text: &str, zone: &TimeZone) -> Result<Utilization, String> {
    let text = brimful_core::text::without_mark(text);
    let kind = kind(text);
    let mut found = match kind {
        Kind::Document => document::read(text),
        Kind::Sadf => sadf::read(text, zone),
        Kind::Vmstat => vmstat::read(text, zone),
        Kind::Iostat => iostat::read(text, zone),
        Kind::Sar => sar::read(text, zone),
        Kind::Table => table::read(text, zone),
    }?;
    if matches!(kind, Kind::Sadf | Kind::Vmstat | Kind::Iostat | Kind::Sar) {
        // Their stamps have no fractions: what was is half a second later on average.
        found.steps.iter_mut().for_each(|step| step.from_ms = step.from_ms.saturating_add(500));
    }
    let found = found.in_longer_steps();
    match found.steps.len() {
        0 | 1 => Err("it has fewer than two steps of time: regression needs many, of different loads".to_owned()),
        _ => Ok(found),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Document,
    Sadf,
    Vmstat,
    Iostat,
    Sar,
    Table,
}

fn kind(text: &str) -> Kind {
    let any = |is: &dyn Fn(&str) -> bool| text.lines().any(is);
    if text.trim_start().starts_with('{') {
        Kind::Document
    } else if text.contains("# hostname;interval;timestamp") {
        Kind::Sadf
    } else if any(&vmstat::is_header) {
        Kind::Vmstat
    } else if any(&iostat::is_header) {
        Kind::Iostat
    } else if text.trim_start().starts_with("Linux ") || any(&sar::is_header) {
        Kind::Sar
    } else {
        Kind::Table
    }
}

impl Utilization {
    /// The same with steps as long as regression needs them, where there are enough.
    fn in_longer_steps(mut self) -> Utilization {
        let total: f64 = self.steps.iter().map(|step| step.seconds).sum();
        let mut lengths: Vec<f64> = self.steps.iter().map(|step| step.seconds).collect();
        lengths.sort_by(f64::total_cmp);
        let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0.0);
        let least = STEP_S.min(total / STEPS);
        if usual <= 0.0 || least < 2.0 * usual {
            return self;
        }
        let mut longer: Vec<Step> = Vec::new();
        for step in &self.steps {
            // A gap ends a step, however short that is then.
            let goes_on = |open: &&mut Step| {
                open.seconds + 0.5 * usual < least && (step.from_ms - open.to_ms()) as f64 <= 500.0 * usual
            };
            match longer.last_mut().filter(goes_on) {
                Some(open) => open.extend(step),
                None => longer.push(step.clone()),
            }
        }
        longer.retain(|step| step.seconds >= 0.5 * least);
        if (longer.len() as f64) < 0.5 * STEPS {
            return self;
        }
        let (usual, least) = (brimful_core::quantity::number(usual), brimful_core::quantity::number(least));
        self.notes.push(format!("steps of {usual} s are taken together to some {least} s"));
        Utilization { steps: longer, ..self }
    }
}

impl Step {
    /// Takes in the one that follows.
    fn extend(&mut self, next: &Step) {
        let seconds = self.seconds + next.seconds;
        for (share, more) in self.shares.iter_mut().zip(&next.shares) {
            *share = (*share * self.seconds + more * next.seconds) / seconds;
        }
        self.seconds = seconds;
    }
}
