//! The load levels of a sweep, from the flags `--sweep` and `--sweep-clients`. A load level is a rate of calls or a
//! number of clients, at which the server is measured for some time.

use crate::exit::UsageError;
use crate::flags::values::Arrivals;
use brimful_core::sweep::SweepKind;
use brimful_core::workload::{AttemptPace, Load};
use brimful_core::{Nanos, Rate};
use clap::Args;
use std::str::FromStr;

/// Maximum number of load levels (rates, or numbers of clients) of a sweep.
const MAX_LEVELS: usize = 100;

/// Flags for a sweep: loads at rising rates or numbers of clients.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// Make the load at rising rates, like 100:16000:x2 or 1000:5000:+500
    ///
    /// Each rate is offered for --duration, after a rest of a second. The table shows how much the server completes at and
    /// beyond its capacity.
    #[arg(long, value_name = "FROM:TO:STEP", hide_short_help = true)]
    #[arg(conflicts_with_all = ["rate", "clients", "s_clients", "stages", "speed", "requests", "calibrate", "slo"])]
    #[arg(conflicts_with_all = ["wsess", "wsesslog", "users", "shard", "start_at", "keep", "print", "trace", "hdr", "sweep_clients"])]
    pub sweep: Option<SweepValues>,
    /// Make the load with rising numbers of S-Clients, like 32:4096:x2
    #[arg(long, value_name = "FROM:TO:STEP", hide_short_help = true)]
    #[arg(conflicts_with_all = ["rate", "clients", "s_clients", "arrivals", "stages", "speed", "requests", "calibrate", "slo"])]
    #[arg(conflicts_with_all = ["wsess", "wsesslog", "users", "shard", "start_at", "keep", "print", "trace", "hdr"])]
    pub sweep_clients: Option<SweepValues>,
}

/// The rates, or the numbers of S-Clients (Banga & Druschel 1997), of a sweep: at least one value, in ascending order,
/// all above 0.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepValues(Vec<f64>);

/// The load levels of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Levels<'a> {
    /// Whether the values are rates of calls or numbers of S-Clients (Banga & Druschel 1997).
    pub kind: SweepKind,
    /// The load levels in ascending order: rates in calls per second, or numbers of clients.
    pub values: &'a [f64],
}

impl SweepArgs {
    /// The load levels to measure; `None` without a sweep.
    pub fn levels(&self) -> Option<Levels<'_>> {
        let rates = self.sweep.as_ref().map(|steps| Levels { kind: SweepKind::Rate, values: &steps.0 });
        let clients =
            || self.sweep_clients.as_ref().map(|steps| Levels { kind: SweepKind::SClients, values: &steps.0 });
        rates.or_else(clients)
    }
}

impl Levels<'_> {
    /// The lowest load level: a rate in calls per second, or a number of clients.
    pub fn first(&self) -> f64 {
        self.values[0]
    }

    /// The load at one level, which is a rate or a number of clients. `think` is the think time of S-Clients (Banga &
    /// Druschel 1997).
    ///
    /// # Errors
    /// Returns [`UsageError`] if the arrivals are a trace, which has its own rate.
    pub fn load(&self, level: f64, arrivals: &Arrivals, think: Nanos) -> Result<Load, UsageError> {
        match (self.kind, arrivals) {
            (SweepKind::SClients, _) => Ok(Load::SClients { attempts: level as u64, pace: AttemptPace::Think(think) }),
            (SweepKind::Rate, Arrivals::Process(process)) => {
                Ok(Load::Open { rate: Rate(level), arrivals: process.to_string() })
            }
            (SweepKind::Rate, Arrivals::Trace(_)) => {
                Err(UsageError("a trace has its own rate: remove --sweep, or use --speed 2x".to_owned()))
            }
        }
    }
}

impl FromStr for SweepValues {
    type Err = String;

    fn from_str(text: &str) -> Result<SweepValues, String> {
        let form = "write it as FROM:TO:STEP, like 100:16000:x2 or 1000:5000:+500";
        let [from, to, step] = text.split(':').collect::<Vec<_>>()[..] else {
            return Err(form.to_owned());
        };
        let value = |text: &str| text.parse::<Rate>().map(|rate| rate.0).map_err(|error| error.to_string());
        let (from, to) = (value(from)?, value(to)?);
        if !(from > 0.0 && from <= to && to.is_finite()) {
            return Err(format!("FROM must be above 0 and at most TO; {form}"));
        }
        let (factor, difference) = match (step.strip_prefix('x'), step.strip_prefix('+')) {
            (Some(factor), _) => (factor.parse().map_err(|_| form.to_owned())?, 0.0),
            (_, Some(difference)) => (1.0, value(difference)?),
            (None, None) => return Err(form.to_owned()),
        };
        let next = |level: &f64| Some(level * factor + difference).filter(|_| *level < to).map(|next| next.min(to));
        let values: Vec<f64> = std::iter::successors(Some(from), next).take(MAX_LEVELS + 1).collect();
        let is_rising = factor >= 1.0;
        if values.len() > MAX_LEVELS || !is_rising {
            return Err(format!("a sweep has at most {MAX_LEVELS} levels: use a larger step"));
        }
        Ok(SweepValues(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_factors_or_differences_and_end_at_the_last_level() {
        let steps = |text: &str| text.parse::<SweepValues>().unwrap().0;
        assert_eq!(steps("100:800:x2"), [100.0, 200.0, 400.0, 800.0]);
        assert_eq!(steps("100:500:x2"), [100.0, 200.0, 400.0, 500.0]);
        assert_eq!(steps("1k:2k:+400"), [1_000.0, 1_400.0, 1_800.0, 2_000.0]);
        assert_eq!(steps("5:5:x2"), [5.0]);
        for text in ["", "100", "100:800", "100:800:2", "0:8:x2", "8:4:x2", "1:8:x1", "1:8:x0.5", "1:8:+0", "1:8:xNaN"]
        {
            assert!(text.parse::<SweepValues>().is_err(), "{text}");
        }
        assert!("1:1000000:+1".parse::<SweepValues>().unwrap_err().contains("at most 100 levels"));
    }
}
