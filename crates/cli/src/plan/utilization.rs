//! Reads utilizations of resources over time, in the formats that operators have: a CSV of time and utilizations, the
//! output of sysstat, `iostat` and `vmstat`, a Record, or a log of `brimful watch`. The format is detected from the
//! content.
//!
//! Utilizations are 0 to 1. A CPU is busy when it is neither idle nor waiting for a disk. Time stolen by a hypervisor
//! counts as busy, because requests cannot use it. The time steps are in order and do not overlap.

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

/// Name of the CPU resource.
const CPU: &str = "cpu";
/// Minimum length of a time step, in seconds. Shorter steps are merged, because a request may be logged one step after
/// it used the CPU, and timestamps in whole seconds are off by up to half a second.
const MIN_STEP_S: f64 = 10.0;
/// Minimum number of time steps that should remain after short steps are merged. A regression needs many steps.
const MIN_STEPS: f64 = 20.0;
/// Error message if the text has fewer than two time steps.
pub const TOO_FEW_STEPS: &str = "it has fewer than two time steps: a regression needs many, with different loads";
/// The formats that can be read, for error messages.
const FORMATS: &str = "a CSV with a header like time,cpu,disk; `sar -u` and `sar -d`, `mpstat`, `pidstat`, or `sadf -d FILE -- -u -d`; \
                     `iostat -x -t`; `vmstat -t`; a Record; or kernel.jsonl of `brimful watch --log`";

/// Utilizations of resources in each time step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Utilization {
    /// Names of the resources. The first is the CPU. In a CSV without a column `cpu`, it is the first column.
    pub resources: Vec<String>,
    /// The steps in the order of time.
    pub steps: Vec<UtilizationStep>,
    /// Number of CPUs over which the utilization of the CPU is a mean; `None` if the text does not state it.
    pub cpus: Option<u32>,
    /// Whether the text has timestamps without a time zone. They were read in the zone that the caller passed.
    pub has_local_times: bool,
    /// Notes on how the text was read, for example that short steps were merged.
    pub notes: Vec<String>,
}

/// A time step, with the utilization of each resource.
#[derive(Clone, Debug, PartialEq)]
pub struct UtilizationStep {
    /// Start of the step, in milliseconds since 1970.
    pub start_ms: i64,
    /// Length of the step, in seconds.
    pub seconds: f64,
    /// Utilization of each resource, from 0 to 1.
    pub shares: Vec<f64>,
}

impl UtilizationStep {
    /// End of the step, in milliseconds since 1970.
    pub fn end_ms(&self) -> i64 {
        self.start_ms.saturating_add((self.seconds * 1000.0).round() as i64)
    }
}

/// Parses utilizations from a text: a CSV, the output of sysstat, `iostat` or `vmstat`, a Record, or a log of
/// `brimful watch`. Timestamps without a time zone are read in `zone`. Error messages say what to do.
pub fn parse(text: &str, zone: &TimeZone) -> Result<Utilization, String> {
    let text = brimful_core::text::strip_bom(text);
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
        // The timestamps are in whole seconds, so samples were taken half a second later than stated, on average.
        found.steps.iter_mut().for_each(|step| step.start_ms = step.start_ms.saturating_add(500));
    }
    let found = found.in_longer_steps();
    match found.steps.is_empty() {
        true => Err(TOO_FEW_STEPS.to_owned()),
        false => Ok(found),
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
    let any_line = |is_header: &dyn Fn(&str) -> bool| text.lines().any(is_header);
    if text.trim_start().starts_with('{') {
        Kind::Document
    } else if text.contains("# hostname;interval;timestamp") {
        Kind::Sadf
    } else if any_line(&vmstat::is_header) {
        Kind::Vmstat
    } else if any_line(&iostat::is_header) {
        Kind::Iostat
    } else if text.trim_start().starts_with("Linux ") || any_line(&sar::is_header) {
        Kind::Sar
    } else {
        Kind::Table
    }
}

impl Utilization {
    /// Merges short time steps into steps of about [`MIN_STEP_S`], or into shorter ones if fewer than [`MIN_STEPS`]
    /// would remain.
    fn in_longer_steps(mut self) -> Utilization {
        let total: f64 = self.steps.iter().map(|step| step.seconds).sum();
        let mut lengths: Vec<f64> = self.steps.iter().map(|step| step.seconds).collect();
        lengths.sort_by(f64::total_cmp);
        let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0.0);
        let wanted = MIN_STEP_S.min(total / MIN_STEPS);
        if usual <= 0.0 || wanted < 2.0 * usual {
            return self;
        }
        let mut longer: Vec<UtilizationStep> = Vec::new();
        for step in &self.steps {
            // A gap between steps ends the current merged step, even if it is shorter than wanted.
            let can_be_extended = |open: &&mut UtilizationStep| {
                open.seconds + 0.5 * usual < wanted && (step.start_ms - open.end_ms()) as f64 <= 500.0 * usual
            };
            match longer.last_mut().filter(can_be_extended) {
                Some(open) => open.extend(step),
                None => longer.push(step.clone()),
            }
        }
        longer.retain(|step| step.seconds >= 0.5 * wanted);
        if (longer.len() as f64) < 0.5 * MIN_STEPS {
            return self;
        }
        let [usual, wanted] = [usual, wanted].map(brimful_core::quantity::number);
        self.notes.push(format!("steps of {usual} s are merged to about {wanted} s"));
        Utilization { steps: longer, ..self }
    }
}

impl UtilizationStep {
    /// Merges the next time step into this one.
    fn extend(&mut self, next: &UtilizationStep) {
        let seconds = self.seconds + next.seconds;
        for (share, more) in self.shares.iter_mut().zip(&next.shares) {
            *share = (*share * self.seconds + more * next.seconds) / seconds;
        }
        self.seconds = seconds;
    }
}
