//! The burstiness of the arrivals in each run, and the cost of bursts.
//!
//! The burstiness b is the share of epochs (intervals of equal length) with more arrivals than the mean. It exceeds 0
//! in every run by chance, so it is set to 0 unless the arrivals are significantly more dispersed than Poisson
//! arrivals. Then a line, D = D_f + α·b, is fitted to the demands D of an average request in the runs
//! ([`crate::fit_burst_demand`]). All runs use epochs of the same length, the longest epoch of any run.

use super::cpu::CpuFit;
use super::figures::is_bursty;
use super::runs::{Run, Runs};
use crate::EstimateError;
use crate::burstiness::{
    BurstDemand, BurstFactors, BurstLevel, Dispersion, burst_factors, dispersion_curve, fit_burst_demand,
    with_burstiness,
};
use brimful_core::JsonSchema;
use brimful_core::model::Model;
use brimful_core::quantity::percent;
use serde::Serialize;

/// Minimum difference between the highest and the lowest burstiness b of the runs. Below it, the effect of b on the
/// demand is not fitted.
const MIN_RANGE: f64 = 0.05;

/// Burstiness of the arrivals in the runs, and the effect of bursts on the demand of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Bursts {
    /// Burstiness of each run with an open load. Closed loads are left out, because their arrivals wait for responses.
    pub runs: Vec<BurstRun>,
    /// The demand D of an average request as a function of the burstiness b: D = D_f + α·b. `None` if b varies by less
    /// than 0.05 over the runs, or if the line cannot be fitted.
    pub demand: Option<BurstDemand>,
    /// The burstiness b for which the model's demands are valid: the mean b of the runs that the demands were fitted
    /// to.
    pub measured_at_b: f64,
    /// Requests per second at which the model saturates at the highest measured burstiness b; `None` if `demand` is
    /// `None`.
    pub saturation_rate: Option<f64>,
}

/// Burstiness of the arrivals in one run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BurstRun {
    /// Index of the Record in the input, from 0.
    pub record: usize,
    /// Length of an epoch (the interval in which arrivals are counted), in seconds.
    pub epoch_s: f64,
    /// Burstiness of the arrivals, even if it is not significant.
    pub factors: BurstFactors,
    /// The index of dispersion in windows of 1, 2, 4, … epochs (intervals of `epoch_s` seconds).
    pub dispersion: Vec<Dispersion>,
    /// Whether the arrivals are significantly more dispersed than Poisson arrivals, counted in windows of one epoch.
    pub bursty: bool,
    /// Burstiness b: the share of epochs with more arrivals than the mean, or 0 if the arrivals are not bursty.
    pub b: f64,
}

/// Measures the burstiness of all runs, and fits its effect on the demand.
pub(super) fn fit(runs: &Runs, cpu: &CpuFit, model: &Model) -> Result<Bursts, EstimateError> {
    let all = || runs.used.iter().chain(&runs.bursty_runs);
    let epoch_s = all().filter_map(|r| Some(r.arrivals.as_ref()?.0)).fold(0.0, f64::max);
    let mut seen: Vec<(&Run, BurstRun)> = all().filter_map(|run| Some((run, burst_run(run, epoch_s)?))).collect();
    seen.sort_by_key(|(run, _)| run.record);
    let is_used = |run: &Run| runs.used.iter().any(|used| used.record == run.record);
    let b_of_used: Vec<f64> = seen.iter().filter(|(run, _)| is_used(run)).map(|(_, burst)| burst.b).collect();
    let measured_at_b = b_of_used.iter().fold(0.0, |sum, b| sum + b) / b_of_used.len().max(1) as f64;
    let lowest = seen.iter().map(|(_, burst)| burst.b).fold(f64::INFINITY, f64::min);
    let highest = seen.iter().map(|(_, burst)| burst.b).fold(0.0, f64::max);
    let demand = if highest - lowest < MIN_RANGE { None } else { fit_burst_demand(&levels(&seen, runs, cpu)).ok() };
    let effect = demand.map(|demand| with_burstiness(model, "cpu", &demand, measured_at_b, highest)).transpose()?;
    Ok(Bursts {
        runs: seen.into_iter().map(|(_, burst)| burst).collect(),
        demand,
        measured_at_b,
        saturation_rate: effect.map(|e| e.saturation_rate),
    })
}

/// For each run: its burstiness, and its demand of an average request of the model's mix. Runs may have different
/// mixes, so the model's mean demand is multiplied by the ratio of measured to fitted demand in the run.
fn levels(seen: &[(&Run, BurstRun)], runs: &Runs, cpu: &CpuFit) -> Vec<BurstLevel> {
    let mix = runs.mix();
    let mean = mix.iter().zip(&cpu.demands).map(|(x, d)| x * d).sum::<f64>() / mix.iter().sum::<f64>();
    let level = |(run, burst): &(&Run, BurstRun)| {
        let explained = cpu.run_demand(run, runs.servers);
        BurstLevel { b: burst.b, demand: mean * explained.measured_s / explained.fitted_s }
    };
    seen.iter().map(level).filter(|level| level.demand.is_finite() && level.demand > 0.0).collect()
}

fn burst_run(run: &Run, epoch_s: f64) -> Option<BurstRun> {
    let (length, counts) = run.arrivals.as_ref()?;
    let ratio = ((epoch_s / length).round() as usize).max(1);
    let counts: Vec<u64> =
        counts.chunks_exact(ratio).map(|c| c.iter().fold(0, |sum: u64, n| sum.saturating_add(*n))).collect();
    let factors = burst_factors(&counts, epoch_s).ok()?;
    let bursty = is_bursty(&counts);
    let b = if bursty { factors.b } else { 0.0 };
    Some(BurstRun { record: run.record, epoch_s, factors, dispersion: dispersion_curve(&counts).ok()?, bursty, b })
}

impl Bursts {
    /// A warning if bursts increase the demand significantly.
    pub(super) fn warning(&self) -> Option<String> {
        let demand = self.demand.filter(|d| d.alpha.ci95_half_width.is_some_and(|ci| d.alpha.value > ci))?;
        let b = self.runs.iter().map(|r| r.b).fold(0.0, f64::max);
        Some(format!(
            "a request costs {} more in the bursts that were measured (b = {b:.2}) than without: the model's demands hold \
             at b = {:.2}",
            percent(demand.demand(b) / demand.demand(0.0) - 1.0),
            self.measured_at_b
        ))
    }
}
