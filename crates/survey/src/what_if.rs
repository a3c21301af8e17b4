//! A change of the server that is predicted, then made, measured and undone: the first question that is put to a model
//! (Menascé, Almeida & Dowdy), held against an answer.

use crate::found::Halt;
use crate::level::{About, Trial};
use crate::method::{Method, both, with_load};
use crate::predictions::times;
use brimful_core::quantity;
use brimful_core::record::{ReasonCode, Verdict};
use brimful_core::survey::{Comparison, Level, WhatIf};
use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, Rate};
use brimful_estimate::{Quota, QuotaPrediction, ServerFit};
use brimful_monitor::quota_period_s;
use std::fmt;
use std::str::FromStr;

/// How many times as long as a level each of the two loads lasts, closed and open.
pub(crate) const LASTS: f64 = 0.5;
/// The share of the predicted capacity at which the mean response time is measured.
const HALF: f64 = 0.5;

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The server's processes may use this share of its CPUs.
    Quota(f64),
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        let share = text.strip_prefix("quota=").and_then(|share| share.strip_suffix('%'));
        let share = share.and_then(|percent| percent.parse::<f64>().ok()).map(|percent| percent / 100.0);
        match share.filter(|share| (0.05..1.0).contains(share)) {
            Some(share) => Ok(Change::Quota(share)),
            None => {
                Err(format!("`{text}` is no change that can be made: use quota=SHARE, like quota=50%, from 5 to 99 %"))
            }
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change::Quota(share) = self;
        write!(f, "quota={}%", (1e4 * share).round() / 1e2)
    }
}

impl Method<'_> {
    /// Makes the change and undoes it at once, before anything is measured that would be in vain if it were not allowed.
    pub(crate) fn rehearse(&mut self) -> Result<Option<Change>, Halt> {
        let Some(change) = self.setup.change else { return Ok(None) };
        let done = self.bench.limit(Some(self.quota(change).servers)).and_then(|()| self.bench.limit(None));
        match done {
            Ok(()) => Ok(Some(change)),
            Err(error) if self.setup.lenient => {
                self.note(format!("left out in the end: what if {change}: {error}"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn quota(&self, Change::Quota(share): Change) -> Quota {
        let servers = share * f64::from(self.setup.servers());
        Quota { servers, period_s: quota_period_s(servers) }
    }

    /// Predicts what the change does, makes it, measures, and undoes it whatever came of that.
    pub(crate) fn what_if(&mut self, fit: &ServerFit, change: Change) -> Result<(), Halt> {
        let quota = self.quota(change);
        let lasts = times(LASTS, self.setup.level);
        let limited = fit.with_quota(quota, lasts.as_secs_f64());
        let rate = HALF * limited.saturation;
        let response = fit.response_with_quota(quota, rate, self.setup.seed)?;
        self.note(format!(
            "predicted, what if {change}: the most {}, and a call takes {} on average at half of that",
            quantity::rate(limited.saturation),
            response.map_or("-".to_owned(), |seconds| Nanos::from_secs_f64(seconds).rounded())
        ));
        self.begin(format!("what if {change}"), lasts + lasts);
        let before = self.anchor(lasts)?;
        // What a quota of ours does is not held against the server.
        let throttled = self.found.throttled.clone();
        self.bench.limit(Some(quota.servers))?;
        let measured = self.measure_limited(rate, lasts);
        self.bench.limit(None)?;
        self.found.throttled = throttled;
        let [closed, open] = measured?;
        let speed = both(before, self.anchor(lasts)?);
        self.found.what_if = Some(compared(change, quota, &limited, (rate, response), [&closed, &open], speed));
        Ok(())
    }

    /// As many clients as leave the server no rest, then calls at random at this rate.
    fn measure_limited(&mut self, rate: f64, lasts: Nanos) -> Result<[Level; 2], Halt> {
        let load = |load| with_load(&self.setup.workload, load);
        let closed = load(Load::Closed { clients: self.found.clients, think: Nanos::ZERO });
        let open = load(Load::poisson(Rate(rate)));
        Ok([self.level_limited(&closed, lasts)?, self.level_limited(&open, lasts)?])
    }

    fn level_limited(&mut self, workload: &Workload, lasts: Nanos) -> Result<Level, Halt> {
        let trial: Trial = self.try_once(workload, lasts)?;
        self.check(&trial)?;
        let mut level = trial.level(workload, &About::calibration("mix", 1.0), self.setup.servers());
        let mut reasons = level.verdict.reasons;
        reasons.retain(|reason| reason.code != ReasonCode::Throttled);
        level.verdict = Verdict::from_reasons(reasons);
        Ok(level)
    }
}

fn compared(
    change: Change,
    quota: Quota,
    limited: &QuotaPrediction,
    (offered, response): (f64, Option<f64>),
    [closed, open]: [&Level; 2],
    speed: Option<f64>,
) -> WhatIf {
    let beside = |predicted: Option<f64>, level: Comparison| Comparison {
        measured_ci95_half_width: level.measured_ci95_half_width,
        ..Comparison::new(predicted, level.measured)
    };
    let capacity = Comparison {
        interval90: limited.saturation_spread.map(|spread| spread.interval90),
        ..beside(Some(limited.saturation), closed.throughput)
    };
    let reasons = [closed, open].into_iter().flat_map(|level| level.verdict.reasons.clone()).collect();
    WhatIf {
        change: change.to_string(),
        cpus: quota.servers,
        period_s: quota.period_s,
        saturation_rate: capacity.given_host(speed.map(|speed| limited.saturation * speed)),
        utilization: beside(closed.utilization.measured.map(|_| limited.utilization), closed.utilization),
        offered,
        response_time_s: beside(response, open.response_time_s),
        host_speed: speed,
        verdict: Verdict::from_reasons(reasons),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_and_written() {
        assert_eq!("quota=50%".parse(), Ok(Change::Quota(0.5)));
        assert_eq!("quota=12.5%".parse::<Change>().unwrap().to_string(), "quota=12.5%");
        for text in ["quota=0%", "quota=100%", "quota=0.5", "workers=2", "quota=NaN%", ""] {
            assert!(text.parse::<Change>().is_err_and(|error| error.contains("quota=SHARE")), "{text}");
        }
    }
}
