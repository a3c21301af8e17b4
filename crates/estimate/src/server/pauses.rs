//! Pauses of the server: times in which it serves no calls, such as during garbage collection.
//!
//! A pause is a gap between two completed calls that is much longer than usual while calls are in progress
//! ([`super::gaps`]). A server has pauses only if they occur in at least two measurements with closed-loop clients,
//! because a single one may be a disturbance of the host. Shorter pauses are part of the variability of service times.
//!
//! Pauses may occur per second or per call. The number of pauses in T seconds with N calls is Poisson distributed with
//! the mean ν·T + γ·N. Both rates are fitted to all loads by maximum likelihood. One of them is 0, unless the
//! likelihood with both is significantly larger.
//!
//! In the model, pauses are the interruptions of a station ([`Interruptions`]): they begin at random times, whether calls
//! are queued or not, and an interrupted call resumes afterwards. Pauses have the length L and the rate ν, and take the
//! share σ of the time. With the utilization ρ by calls, pauses increase the mean response time by ν·E\[L²\]·(1 −
//! σ)/(2(1 − σ − ρ)), and reduce the capacity by the factor 1 − σ. No pause begins during another one, because two
//! pauses without a completed call between them are detected as one. Percentiles come from a replay with random pauses
//! ([`HostSlowness::with_pauses`](brimful_model::HostSlowness::with_pauses)).

use super::blocks::{Measurement, OfferedLoad, ReplayedMeasurement, ServerFacts};
use super::gaps::{Pause, gaps, is_closed, pause_thresholds};
use crate::window::{CompletedCalls, RunStretch, overlap};
use brimful_core::model::Interruptions;
use brimful_core::moments::Moments;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{ContinuousCDF, Gamma};
use std::collections::BTreeMap;

/// Minimum number of measurements with closed-loop clients that must contain a pause.
const MIN_MEASUREMENTS: usize = 2;
/// Minimum share of the pauses that a measurement can detect. Other measurements are not used to estimate the rates of
/// pauses.
const MIN_VISIBLE: f64 = 0.5;
/// Tolerance for rounding errors of pause lengths, in seconds.
const ROUNDING: f64 = 1e-9;
/// Minimum increase of the log likelihood for a fit with pauses per second and pauses per call, instead of one of them:
/// half of the 95 % quantile of χ² with one degree of freedom (Wilks 1938).
const NOTABLE_LIKELIHOOD: f64 = 1.92;
/// Minimum share of time without pauses, which prevents a division by zero.
const MIN_RUNNING: f64 = 0.01;
/// Minimum squared coefficient of variation of pause lengths. Below it, all pauses are assumed to have the same length.
const MIN_LENGTH_SCV: f64 = 1e-3;
/// Duration of the measurement of the idle server, in seconds.
const IDLE_SECONDS: f64 = 1.0;

/// Distinguishes pauses of the server from ordinary gaps between completed calls.
#[derive(Clone, Debug, Default)]
pub(super) struct PauseDetector {
    /// The minimum length of a gap that is a pause, in seconds, for each load of the calibration.
    thresholds: BTreeMap<OfferedLoad, f64>,
    /// Mean gap between completed calls at the highest rate, in seconds. The gap that a pause causes is longer than the
    /// pause by this length.
    usual_gap: f64,
    /// Number of CPUs that the server keeps busy during a pause.
    pub busy: f64,
}

/// Rates and lengths of the server's pauses.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pauses {
    /// Pauses per second that occur at any load, even without calls.
    pub per_second: f64,
    /// Additional pauses per completed call.
    pub per_call: f64,
    /// Lengths of the detected pauses, in seconds.
    pub lengths: Vec<f64>,
    /// Number of CPUs that the server keeps busy during a pause.
    pub busy: f64,
}

impl PauseDetector {
    /// Detects the pauses in all measurements. Removes their effect from the measurements and from the facts, which
    /// then describe the server between pauses. `None` if the server has no pauses.
    pub fn detect_and_remove(
        blocks: &mut [Vec<ReplayedMeasurement>],
        facts: &mut ServerFacts,
    ) -> Option<PauseDetector> {
        let mut detector = PauseDetector::new(blocks)?;
        for replayed in blocks.iter_mut().flatten() {
            replayed.measurement.timeline.pauses = detector.pauses_of(&replayed.measurement);
        }
        detector.busy = busy_cpus(blocks.iter().flatten().map(|replayed| &replayed.measurement));
        for replayed in blocks.iter_mut().flatten() {
            remove_pauses(&mut replayed.measurement, detector.busy, f64::from(facts.servers));
        }
        remove_idle_pauses(facts, &Pauses::new(&detector, blocks.iter()));
        Some(detector)
    }

    /// Determines the minimum length of a pause for each load, from all measurements. `None` if the server has no
    /// pauses.
    fn new(blocks: &[Vec<ReplayedMeasurement>]) -> Option<PauseDetector> {
        let mut by_load: BTreeMap<OfferedLoad, Vec<&Measurement>> = BTreeMap::new();
        for replayed in blocks.iter().flatten() {
            by_load.entry(replayed.measurement.load).or_default().push(&replayed.measurement);
        }
        let thresholds = pause_thresholds(&by_load);
        let highest_rate = by_load.values().flatten().filter(|it| is_closed(it.load)).map(|it| it.rate());
        let usual_gap = 1.0 / highest_rate.fold(0.0, f64::max);
        let detector = PauseDetector { thresholds, usual_gap, busy: 0.0 };
        let has_pause = |it: &&&Measurement| is_closed(it.load) && !detector.pauses_of(it).is_empty();
        let paused = by_load.values().flatten().filter(has_pause).count();
        (usual_gap.is_finite() && paused >= MIN_MEASUREMENTS).then_some(detector)
    }

    /// The pauses during one calibration measurement.
    fn pauses_of(&self, measurement: &Measurement) -> Vec<Pause> {
        let timeline = &measurement.timeline;
        let threshold = self.thresholds.get(&measurement.load).copied().unwrap_or(f64::INFINITY);
        self.longer_than(threshold, &timeline.completed, &timeline.arrivals, is_closed(measurement.load))
    }

    /// The pauses during an open load whose rate was not measured during calibration.
    pub fn pauses_under(&self, completed: &CompletedCalls, arrivals: &[(f64, usize)]) -> Vec<Pause> {
        let open = self.thresholds.iter().filter(|(load, _)| !is_closed(**load));
        let threshold = open.map(|(_, threshold)| *threshold).reduce(f64::max).unwrap_or(f64::INFINITY);
        self.longer_than(threshold, completed, arrivals, false)
    }

    fn longer_than(
        &self,
        threshold: f64,
        completed: &CompletedCalls,
        arrivals: &[(f64, usize)],
        is_closed: bool,
    ) -> Vec<Pause> {
        let gaps = gaps(completed, arrivals, is_closed).into_iter();
        gaps.filter(|(_, length)| *length >= threshold)
            .map(|(start, length)| (start, length - self.usual_gap))
            .collect()
    }

    /// Share of pauses with these lengths that are detected under a load of `rate` calls per second. A pause is
    /// detected only if a call is in progress when the pause begins, or arrives early enough during the pause.
    /// Closed-loop clients always have calls in progress.
    fn visible_share(&self, load: OfferedLoad, rate: f64, lengths: &[f64]) -> f64 {
        let Some(threshold) = self.thresholds.get(&load) else { return 0.0 };
        let present = if is_closed(load) { 1.0 } else { (rate * self.usual_gap).min(1.0) };
        let is_seen = |length: &f64| {
            let early = length + self.usual_gap - threshold;
            if early > -ROUNDING { 1.0 - (1.0 - present) * (-rate * early.max(0.0)).exp() } else { 0.0 }
        };
        lengths.iter().map(is_seen).sum::<f64>() / lengths.len() as f64
    }
}

impl Pauses {
    /// Estimates the rates of pauses from measurements in which `detector` detected the pauses.
    pub fn new<'a>(detector: &PauseDetector, blocks: impl Iterator<Item = &'a Vec<ReplayedMeasurement>>) -> Pauses {
        let measurements: Vec<&Measurement> = blocks.flatten().map(|replayed| &replayed.measurement).collect();
        let closed = || measurements.iter().filter(|it| is_closed(it.load));
        let lengths: Vec<f64> = closed().flat_map(|it| it.timeline.pauses.iter().map(|(_, length)| *length)).collect();
        if lengths.is_empty() {
            return Pauses::default();
        }
        let mut observed = Vec::new();
        for measurement in &measurements {
            let completed = &measurement.timeline.completed;
            let (seconds, calls) = (completed.seconds(), completed.calls());
            let visible = detector.visible_share(measurement.load, calls / seconds, &lengths);
            if visible >= MIN_VISIBLE && seconds > 0.0 {
                observed.push(Exposure {
                    pauses: measurement.timeline.pauses.len() as f64,
                    seconds: visible * seconds,
                    calls: visible * calls,
                });
            }
        }
        let (per_second, per_call) = rates(&observed);
        Pauses { per_second, per_call, lengths, busy: detector.busy }
    }

    /// Whether the server has no pauses.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Pauses per second at `rate` completed calls per second.
    pub fn rate_at(&self, rate: f64) -> f64 {
        self.per_second + self.per_call * rate
    }

    /// Mean length of a pause, in seconds.
    pub fn mean(&self) -> f64 {
        self.lengths.iter().sum::<f64>() / (self.lengths.len() as f64).max(1.0)
    }

    /// Squared coefficient of variation of the pause lengths.
    fn scv(&self) -> f64 {
        let variance = Moments::from_values(&self.lengths).and_then(|moments| moments.variance()).unwrap_or(0.0);
        variance / self.mean().powi(2)
    }

    /// The pauses as interruptions of a station of the model; `None` if the server has no pauses.
    pub fn interruptions(&self) -> Option<Interruptions> {
        (!self.is_empty()).then(|| Interruptions {
            per_second: self.per_second,
            per_call: self.per_call,
            mean_length: self.mean(),
            length_scv: self.scv(),
        })
    }

    /// Returns a function that draws random pause lengths. They have a gamma distribution with the mean and the
    /// variance of the detected lengths. Drawing detected lengths instead would omit longer pauses, which are too rare
    /// to occur during calibration.
    fn length_sampler(&self) -> impl Fn(&mut Pcg64Mcg) -> f64 {
        let scv = self.scv();
        let mean = self.mean();
        let gamma = (scv > MIN_LENGTH_SCV).then(|| Gamma::new(1.0 / scv, 1.0 / (mean * scv)).ok()).flatten();
        move |rng| gamma.map_or(mean, |gamma| gamma.inverse_cdf(rng.random()))
    }

    /// Share of the time that the server spends in pauses, at `rate` completed calls per second.
    pub fn share_at(&self, rate: f64) -> f64 {
        self.rate_at(rate) * self.mean()
    }

    /// Capacity of a station with pauses, in calls per second. `capacity` is its capacity between pauses.
    pub fn capacity(&self, capacity: f64) -> f64 {
        (1.0 - self.per_second * self.mean()).max(0.0) / (1.0 / capacity + self.per_call * self.mean())
    }

    /// Draws random pauses during `seconds` seconds with a load of `rate` calls per second. Each pause also has a
    /// random number from 0 to 1, which determines whether it also occurs at a lower load ([`Pauses::occurring_at`]).
    pub fn draw(&self, rate: f64, seconds: f64, rng: &mut Pcg64Mcg) -> Vec<(Pause, f64)> {
        // A pause can only begin outside of other pauses, so the rate of pauses in the remaining time is higher than
        // their overall rate.
        let per_second = self.rate_at(rate) / (1.0 - self.share_at(rate)).max(MIN_RUNNING);
        let mut drawn = Vec::new();
        if self.is_empty() || per_second <= 0.0 {
            return drawn;
        }
        let length = self.length_sampler();
        let mut at = 0.0;
        loop {
            at -= (-rng.random::<f64>()).ln_1p() / per_second;
            if at >= seconds {
                return drawn;
            }
            let length = length(rng);
            drawn.push(((at, length), rng.random()));
            at += length;
        }
    }

    /// Selects those of the drawn pauses that also occur if the load is `rate` calls per second instead of `drawn_for`.
    /// A pause occurs if its random number from 0 to 1 is below the ratio of the rates of pauses at the two loads.
    pub fn occurring_at(&self, drawn: &[(Pause, f64)], rate: f64, drawn_for: f64) -> impl Iterator<Item = Pause> {
        let share = self.rate_at(rate) / self.rate_at(drawn_for);
        drawn.iter().filter(move |(_, mark)| *mark < share).map(|(pause, _)| *pause)
    }
}

/// Number of pauses that were detected in a measurement, with its duration in seconds and its number of calls.
#[derive(Clone, Copy, Debug)]
struct Exposure {
    pauses: f64,
    seconds: f64,
    calls: f64,
}

/// Maximum likelihood estimates of two rates: pauses per second, and pauses per call.
fn rates(observed: &[Exposure]) -> (f64, f64) {
    let sum = |figure: fn(&Exposure) -> f64| observed.iter().map(figure).sum::<f64>();
    let (pauses, seconds, calls) = (sum(|it| it.pauses), sum(|it| it.seconds), sum(|it| it.calls));
    let log_likelihood = |(per_second, per_call): (f64, f64)| {
        let of_one = |it: &Exposure| {
            let expected = per_second * it.seconds + per_call * it.calls;
            if it.pauses > 0.0 { it.pauses * expected.ln() - expected } else { -expected }
        };
        observed.iter().map(of_one).sum::<f64>()
    };
    let by_time = (pauses / seconds, 0.0);
    let by_calls = (0.0, pauses / calls);
    let single = if log_likelihood(by_calls) > log_likelihood(by_time) { by_calls } else { by_time };
    // Expectation maximization. Each iteration divides every pause between the two causes, in proportion to the current
    // rates.
    let mut both = (0.5 * by_time.0, 0.5 * by_calls.1);
    for _ in 0..200 {
        let expected = |it: &Exposure| both.0 * it.seconds + both.1 * it.calls;
        let due_to_time: f64 =
            observed.iter().map(|it| it.pauses * both.0 * it.seconds / expected(it).max(f64::MIN_POSITIVE)).sum();
        both = (due_to_time / seconds, (pauses - due_to_time) / calls);
    }
    if log_likelihood(both) > log_likelihood(single) + NOTABLE_LIKELIHOOD { both } else { single }
}

/// Mean number of CPUs that the server keeps busy during a pause. It is computed from the short intervals that contain
/// pauses: their CPU time, minus the usual CPU time outside of pauses.
fn busy_cpus<'a>(measurements: impl Iterator<Item = &'a Measurement>) -> f64 {
    let mut work = 0.0;
    let mut paused = 0.0;
    for measurement in measurements.filter(|it| is_closed(it.load)) {
        let pauses = &measurement.timeline.pauses;
        let stretches = &measurement.timeline.stretches;
        let of_stretch = |index: usize| paused_in(pauses, &stretches[index]);
        let (with, without): (Vec<usize>, Vec<usize>) = (0..stretches.len()).partition(|it| of_stretch(*it) > 0.0);
        let total =
            |indices: &[usize], figure: &dyn Fn(usize) -> f64| indices.iter().map(|it| figure(*it)).sum::<f64>();
        let work_of = |index: usize| stretches[index].work;
        let seconds_of = |index: usize| stretches[index].seconds;
        let usual = total(&without, &work_of) / total(&without, &seconds_of);
        if !usual.is_finite() {
            continue;
        }
        let length = total(&with, &of_stretch);
        work += total(&with, &work_of) - usual * (total(&with, &seconds_of) - length);
        paused += length;
    }
    if paused > 0.0 { (work / paused).max(0.0) } else { 0.0 }
}

/// Removes the effect of pauses from a measurement, so that it describes the server between pauses. `busy` is the
/// number of CPUs that the server keeps busy during a pause.
fn remove_pauses(measurement: &mut Measurement, busy: f64, servers: f64) {
    let timeline = &mut measurement.timeline;
    remove_from_stretches(&mut timeline.stretches, &timeline.pauses, busy);
    let window = (timeline.warm_up, timeline.warm_up + measurement.seconds);
    let length: f64 = timeline.pauses.iter().map(|(start, length)| overlap((*start, start + length), window)).sum();
    let seconds = measurement.seconds;
    let remaining = seconds - length;
    if length <= 0.0 || remaining <= 0.0 {
        return;
    }
    let without = |cpus: f64, in_pause: f64, over: f64| ((cpus * seconds - in_pause * length) / over).max(0.0);
    if !is_closed(measurement.load) {
        // Under an open load, pauses change neither the arrival rate nor the duration, so only the CPU time is
        // corrected.
        let kernel = &mut measurement.kernel;
        kernel.busy = kernel.busy.map(|cpus| without(cpus, busy, seconds));
        return;
    }
    measurement.kernel.busy = measurement.kernel.busy.map(|cpus| without(cpus, busy, remaining).min(servers));
    measurement.kernel.idle = measurement.kernel.idle.map(|cpus| without(cpus, servers - busy, remaining));
    measurement.throughput.iter_mut().for_each(|rate| *rate *= seconds / remaining);
    measurement.seconds = remaining;
}

/// Subtracts the CPU time during pauses from the short intervals of a run. `busy` is the number of busy CPUs in a
/// pause.
pub(super) fn remove_from_stretches(stretches: &mut [RunStretch], pauses: &[Pause], busy: f64) {
    for stretch in stretches {
        stretch.work = (stretch.work - busy * paused_in(pauses, stretch)).max(0.0);
    }
}

/// Time of a short interval in which the server paused, in seconds.
fn paused_in(pauses: &[Pause], stretch: &RunStretch) -> f64 {
    let span = (stretch.start_s, stretch.start_s + stretch.seconds);
    pauses.iter().map(|(start, length)| overlap((*start, start + length), span)).sum()
}

/// Sets the CPU usage of the idle server to 0 if pauses alone can explain it: the idle server was measured only for a
/// short time, so its CPU usage is uncertain.
fn remove_idle_pauses(facts: &mut ServerFacts, pauses: &Pauses) {
    let mean = pauses.per_second * IDLE_SECONDS;
    let share = (mean + 3.0 * mean.sqrt()) * pauses.mean() / IDLE_SECONDS;
    let remaining = |used: f64, in_pauses: f64| if used <= in_pauses { 0.0 } else { used };
    facts.idle_busy = remaining(facts.idle_busy, pauses.busy * share);
    facts.background = remaining(facts.background, share);
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::model::{Model, ModelClass, Scheduling, Station};
    use brimful_model::{HostSlowness, Method, solve_open, trajectory};
    use rand::SeedableRng;

    #[test]
    fn pauses_are_attributed_to_time_or_to_calls() {
        let loads = [(20.0, 20_000.0), (8.0, 4_800.0), (8.0, 3_200.0), (8.0, 1_600.0)];
        let seen = |per_second: f64, per_call: f64| {
            let exposure = |(seconds, calls): (f64, f64)| Exposure {
                pauses: (per_second * seconds + per_call * calls).round(),
                seconds,
                calls,
            };
            rates(&loads.map(exposure))
        };
        let (per_second, per_call) = seen(2.0, 0.0);
        assert!((per_second - 2.0).abs() < 0.1 && per_call == 0.0, "{per_second} {per_call}");
        let (per_second, per_call) = seen(0.0, 0.003);
        assert!(per_second == 0.0 && (per_call - 0.003).abs() < 0.000_2, "{per_second} {per_call}");
        let (per_second, per_call) = seen(10.0, 0.02);
        assert!((per_second - 10.0).abs() < 1.0 && (per_call - 0.02).abs() < 0.002, "{per_second} {per_call}");
    }

    #[test]
    fn drawn_pauses_have_the_rate_of_the_load() {
        let pauses = Pauses { per_second: 1.0, per_call: 0.01, lengths: vec![0.01, 0.03], busy: 0.0 };
        let mut rng = Pcg64Mcg::seed_from_u64(3);
        let drawn = pauses.draw(500.0, 1000.0, &mut rng);
        assert!((drawn.len() as f64 / 6000.0 - 1.0).abs() < 0.05, "{}", drawn.len());
        let at_less_load = pauses.occurring_at(&drawn, 100.0, 500.0).count() as f64;
        assert!((at_less_load / 2000.0 - 1.0).abs() < 0.1, "{at_less_load}");
        assert!((pauses.capacity(1000.0) - 0.98 / 0.0012).abs() < 1e-9);
    }

    /// The mean response time of a simulation and of the solver is S/A + λ·E[S²]/(2A(A − ρ)) + ν·E[L²]·A/(2(A − ρ)). A
    /// is the share of time without pauses, S the service time, λ the rate of calls, ρ the utilization, ν the rate of
    /// pauses, and L their length.
    #[test]
    fn the_mean_wait_is_that_of_a_replay() {
        let pauses = Pauses { per_second: 1.0, per_call: 0.01, lengths: vec![0.02, 0.03], busy: 0.0 };
        let (rate, demand, seconds) = (600.0, 0.001, 2_000.0);
        let cpu = Station { scheduling: Scheduling::Fcfs, ..Station::default() };
        let class = ModelClass { rate: Some(rate), ..ModelClass::default() };
        let mut model =
            Model { stations: vec![cpu], classes: vec![class], demands: vec![vec![demand]], ..Model::default() };
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let mut at = 0.0;
        let arrivals: Vec<(f64, usize)> = std::iter::from_fn(|| {
            at -= (-rng.random::<f64>()).ln_1p() / rate;
            (at < seconds).then_some((at, 0))
        })
        .collect();
        let drawn = pauses.draw(rate, seconds, &mut rng).into_iter().map(|(pause, _)| pause);
        let course = HostSlowness::default().with_pauses(drawn);
        let times: Vec<f64> = trajectory(&model, course, 1, arrivals).unwrap().map(|it| it.response).collect();
        let found = times.iter().sum::<f64>() / times.len() as f64;
        let running = 1.0 - pauses.share_at(rate);
        let busy = rate * demand;
        let calls = demand / running + rate * 2.0 * demand * demand / (2.0 * running * (running - busy));
        let mean_square = pauses.mean().powi(2) * (1.0 + pauses.scv());
        let expected = calls + pauses.rate_at(rate) * mean_square * running / (2.0 * (running - busy));
        assert!((found / expected - 1.0).abs() < 0.05, "{found} {expected}");
        model.stations[0].interruptions = pauses.interruptions();
        let solved = solve_open(&model, Method::Erlang).unwrap();
        assert!((solved.mean_response_time / expected - 1.0).abs() < 1e-9, "{solved:?} {expected}");
        assert!((solved.saturation_rate / pauses.capacity(1.0 / demand) - 1.0).abs() < 1e-9, "{solved:?}");
    }
}
