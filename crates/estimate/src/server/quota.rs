//! What the server would do with a quota of CPU time, which stops it when it is used up until the next period.

use super::{ServerFit, Spread};
use crate::EstimateError;
use brimful_core::model::Station;
use brimful_model::{Quota, Sojourns, under_quota};

/// Calls that are simulated for a mean response time.
const CALLS: usize = 40_000;

/// What the model says of a server with a quota.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limited {
    /// Calls of the mix per second at which something is full.
    pub saturation: f64,
    /// The same over so many seconds on a host as variable as calibration saw it.
    pub saturation_spread: Option<Spread>,
    /// Of all CPUs, by the server's processes, then.
    pub utilization: f64,
}

impl ServerFit {
    /// With the quota, for so many seconds. What a call costs a server that has no rest stays as it was.
    pub fn limited(&self, quota: Quota, seconds: f64) -> Limited {
        let (facts, mix) = (&self.facts, &self.facts.mix);
        let demand: f64 = mix.iter().zip(&self.once.cpu.1).map(|(share, demand)| share * demand).sum();
        let free = self.saturation();
        let saturation = ((quota.servers - facts.idle_busy).max(0.0) / demand).min(free);
        let scaled = |spread: Spread| Spread {
            median: spread.median * saturation / free,
            interval90: spread.interval90.map(|rate| rate * saturation / free),
        };
        Limited {
            saturation,
            saturation_spread: self.expect_saturation(mix, seconds).map(scaled),
            utilization: ((facts.idle_busy + saturation * demand) / f64::from(facts.servers)).min(1.0),
        }
    }

    /// Mean response time when calls of the mix come at this rate: without a quota, and what stopping and going adds.
    ///
    /// # Errors
    /// When the model cannot be solved.
    pub fn response_limited(&self, quota: Quota, rate: f64, seed: u64) -> Result<Option<f64>, EstimateError> {
        let Some(free) = self.predict(rate)?.response else { return Ok(None) };
        let (cpu, demands) = &self.once.cpu;
        let cpu = Station { scv: self.once.service_scv, ..cpu.clone() };
        let rates: Vec<f64> = self.facts.mix.iter().map(|share| rate * share).collect();
        let Sojourns { free: without, limited } = under_quota(&cpu, demands, &rates, quota, CALLS, seed)?;
        Ok(Some(free + limited - without))
    }
}
