//! Changes of the host's speed during calibration, and their effect on later measurements.
//!
//! Slowness is the CPU time of a call, divided by its mean at the same load. Each calibration measurement shows the
//! slowness of the host in short intervals. The intervals of all measurements form one series; where a measurement does
//! not show the slowness, the series repeats the measurement before it. To predict a later measurement, excerpts of the
//! series with the same duration are drawn at random (moving blocks: Künsch 1989). The differences between the excerpts
//! are then increased to the change of speed that is expected until the later measurement ([`super::later_drift`]).

use super::blocks::{Measurement, OfferedLoad, PooledLoads, ReplayedMeasurement, ServerFacts};
use super::later_drift::{LaterDrift, MeasurementTime, SlownessReading};
use super::model_fit::{ModelFit, quantile};
use super::slowness::{drift_share, mean_slowness};
use brimful_core::moments::Moments;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Minimum CPU utilization of a measurement that shows the host's speed. Below it, the CPU time of a call depends more
/// on the cost of waking the idle server than on the host's speed.
const MIN_UTILIZATION: f64 = 0.3;
/// Minimum number of calls in a measurement whose throughput shows the host's speed.
const MIN_CALLS: f64 = 20.0;
/// Minimum ratio of the differences between excerpts of the calibration to the expected later change of the host's
/// speed. Below it, the differences are not increased, because both are almost zero.
const NEGLIGIBLE: f64 = 1e-4;
/// The 95 % quantile of the standard normal distribution.
const NORMAL_95: f64 = 1.645;

/// The slowness of the host over time during calibration: the CPU time of a call, relative to its mean at the same
/// load.
#[derive(Clone, Debug, Default)]
pub(super) struct Drift {
    /// Consecutive short intervals, each with its duration in seconds and the host's slowness.
    course: Vec<(f64, f64)>,
    /// Total duration of `course` in seconds.
    seconds: f64,
    /// Minimum factor by which the deviations of the log slowness between drawn excerpts are multiplied. It exceeds 1,
    /// because the variance between a few blocks is itself uncertain (Student's t).
    widening: f64,
    /// The expected change of the host's speed between calibration and a later measurement.
    later: LaterDrift,
    /// The host's speed in each block of the calibration, relative to the mean of all blocks.
    pub speed_by_block: Vec<f64>,
}

/// Slowness of the host during one measurement: the CPU time of a call, relative to its mean at the same load.
struct HostSlowness {
    load: OfferedLoad,
    /// The CPU time of a call, divided by the mean over all measurements of the same load.
    seen: f64,
    /// The mean slowness of the host: `seen`, corrected for the small number of measurements of the same load.
    level: f64,
    /// Number of calls in all intervals.
    calls: f64,
    /// For each short interval: its duration in seconds, the ratio of its slowness to `level`, and its number of calls.
    stretches: Vec<(f64, f64, f64)>,
    /// Seconds from the start of this measurement to the start of the next measurement that shows the host's speed.
    lasts: f64,
}

impl HostSlowness {
    /// Creates the slowness of a measurement. `seen` is relative to the mean of the `pooled` measurements of the same
    /// load. This mean contains the measurement itself, so the variance of `seen` is too small by the factor 1 −
    /// 1/`pooled` (Bessel's correction).
    fn new(load: OfferedLoad, seen: f64, pooled: usize, stretches: Vec<(f64, f64, f64)>, lasts: f64) -> HostSlowness {
        let n = pooled as f64;
        let enlargement = if pooled > 1 { (n / (n - 1.0)).sqrt() } else { 1.0 };
        let calls = stretches.iter().map(|(.., calls)| calls).sum();
        HostSlowness { load, seen, level: seen.powf(enlargement), calls, stretches, lasts }
    }
}

impl Drift {
    /// Computes the host's slowness over time during calibration. The result is empty if no measurement shows the
    /// host's speed.
    pub fn new(fit: &ModelFit, facts: &ServerFacts, loads: &PooledLoads, blocks: &[Vec<ReplayedMeasurement>]) -> Drift {
        let slowness_of = |replayed: &ReplayedMeasurement| host_slowness(fit, facts, loads, &replayed.measurement);
        let seen: Vec<Vec<HostSlowness>> = blocks.iter().map(|block| block_slowness(block, &slowness_of)).collect();
        let all = || seen.iter().flatten();
        let lasts: f64 = all().map(|measurement| measurement.lasts).sum();
        let mean = all().map(|measurement| measurement.level * measurement.lasts).sum::<f64>() / lasts;
        if !(mean.is_finite() && mean > 0.0) {
            return Drift { widening: 1.0, ..Drift::default() };
        }
        // Remove the variance that is due to differences between calls, so that only changes of the host's speed
        // remain.
        let variability = fit.variability(&facts.mix);
        let share_of_levels = drift_share(all().map(|seen| (seen.level / mean, seen.calls)), variability, 0.0);
        let stretches = all().flat_map(|seen| seen.stretches.iter().map(|(_, slowness, calls)| (*slowness, *calls)));
        let share_of_stretches = drift_share(stretches, variability, 0.0);
        let mut drift = Drift { widening: widening(blocks.len()), ..Drift::default() };
        let mut readings = Vec::new();
        let mut now = 0.0;
        for measurement in all() {
            readings.push(SlownessReading {
                at_s: now + measurement.lasts / 2.0,
                load: measurement.load,
                log_slowness: measurement.seen.ln(),
            });
            now += measurement.lasts;
        }
        if share_of_levels > 0.0 {
            drift.later = LaterDrift::new(&readings, now);
        }
        for block in &seen {
            let block_start = drift.course.len();
            for measurement in block {
                let level = 1.0 + share_of_levels * (measurement.level / mean - 1.0);
                let mut remaining = measurement.lasts;
                for (length, slowness, _) in measurement.stretches.iter().cycle() {
                    if remaining <= 0.0 {
                        break;
                    }
                    let length = length.min(remaining);
                    drift.course.push((length, level * (1.0 + share_of_stretches * (slowness - 1.0))));
                    remaining -= length;
                }
            }
            drift.speed_by_block.extend(mean_slowness(&drift.course[block_start..]).map(|slowness| 1.0 / slowness));
        }
        drift.seconds = drift.course.iter().map(|(length, _)| length).sum();
        let mean_speed = drift.speed_by_block.iter().sum::<f64>() / drift.speed_by_block.len() as f64;
        drift.speed_by_block.iter_mut().for_each(|speed| *speed /= mean_speed);
        drift
    }

    /// Draws `count` excerpts of the calibration, each as long as the later measurement at `time`. An excerpt consists
    /// of intervals, each with its duration in seconds and the host's slowness. The excerpts begin at equal distances
    /// after a random start, so that together they represent the whole calibration (systematic sampling). They are
    /// empty if calibration does not show the host's speed.
    pub fn draws(&self, count: usize, time: MeasurementTime, rng: &mut Pcg64Mcg) -> Vec<Vec<(f64, f64)>> {
        let first: f64 = rng.random();
        let mut parts: Vec<Vec<(f64, f64)>> = (0..count)
            .map(|index| self.part((index as f64 + first) / count as f64 * self.seconds, time.seconds))
            .collect();
        self.widen(&mut parts, time);
        parts
    }

    /// Increases the deviations of the excerpts (`parts`) from the median, so that the excerpts differ as much as the
    /// later measurement at `time` is expected to differ from calibration.
    fn widen(&self, parts: &mut [Vec<(f64, f64)>], time: MeasurementTime) {
        let Some(mean) = mean_slowness(&self.course).filter(|_| !parts.is_empty()) else { return };
        let deviations: Vec<f64> =
            parts.iter().map(|part| mean_slowness(part).map_or(0.0, |part| (part / mean).ln())).collect();
        let square = deviations.iter().map(|deviation| deviation.powi(2)).sum::<f64>() / deviations.len() as f64;
        let within = square.sqrt();
        let later = (self.later.mean_square(time) - self.variance_of_fits()).max(0.0).sqrt();
        // On a host of constant speed, both deviations are almost zero, and their ratio has no meaning.
        let widening = if within > NEGLIGIBLE * later { (later / within).max(self.widening) } else { self.widening };
        // Deviations are relative to the median excerpt, whose slowness does not change. So the median of the
        // predictions does not change.
        let mut sorted = deviations.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let median = quantile(&sorted, 0.5);
        for (part, deviation) in parts.iter_mut().zip(deviations) {
            let factor = ((widening - 1.0) * (deviation - median)).exp();
            part.iter_mut().for_each(|(_, slowness)| *slowness *= factor);
        }
    }

    /// Variance of the logarithm of the host's mean speed between the models of the bootstrap, which are fitted to
    /// random draws of blocks. The differences between these models' predictions already include this variance.
    fn variance_of_fits(&self) -> f64 {
        let speeds: Vec<f64> = self.speed_by_block.iter().map(|speed| speed.ln()).collect();
        let variance = Moments::from_values(&speeds).and_then(|moments| moments.variance()).unwrap_or(0.0);
        variance / blocks_to_draw(speeds.len()) as f64
    }

    /// The excerpt of the calibration that begins at `start` and lasts `seconds` seconds. After the end, the
    /// calibration is continued from its start.
    fn part(&self, start: f64, seconds: f64) -> Vec<(f64, f64)> {
        let mut to_skip = start;
        let mut remaining = seconds;
        let mut drawn = Vec::new();
        for (length, slowness) in self.course.iter().cycle() {
            let skipped = to_skip.min(*length);
            to_skip -= skipped;
            let length = (length - skipped).min(remaining);
            if length > 0.0 {
                drawn.push((length, *slowness));
                remaining -= length;
            }
            if remaining <= 0.0 {
                break;
            }
        }
        drawn
    }
}

/// Ratio of the 95 % quantile for a future block to the 95 % quantile of the measured blocks. The blocks are assumed to
/// be normally distributed, with mean and variance estimated from `blocks` blocks.
fn widening(blocks: usize) -> f64 {
    let n = blocks as f64;
    let Ok(t) = StudentsT::new(0.0, 1.0, n - 1.0) else { return 1.0 };
    t.inverse_cdf(0.95) / NORMAL_95 * (1.0 + 1.0 / n).sqrt()
}

/// Number of calibration blocks to draw for each sample of the bootstrap.
///
/// Drawing all n blocks would make the intervals too narrow if n is small: the variance would be too small by the
/// factor (n − 1)/n, and the quantile would be that of a normal distribution. With fewer drawn blocks, the intervals
/// are as wide as with Student's t distribution.
pub(super) fn blocks_to_draw(blocks: usize) -> usize {
    let Some(freedom) = blocks.checked_sub(1).filter(|freedom| *freedom > 0) else { return blocks };
    let quantile = StudentsT::new(0.0, 1.0, freedom as f64).map_or(NORMAL_95, |t| t.inverse_cdf(0.95));
    ((freedom as f64 * (NORMAL_95 / quantile).powi(2)).round() as usize).max(1)
}

/// The slowness of the host during each measurement of a block. A measurement that does not show the host's speed is
/// left out, and its duration is added to the measurement before it.
fn block_slowness(
    block: &[ReplayedMeasurement],
    slowness_of: &dyn Fn(&ReplayedMeasurement) -> Option<HostSlowness>,
) -> Vec<HostSlowness> {
    let mut seen: Vec<HostSlowness> = Vec::new();
    let mut not_shown = 0.0;
    for replayed in block {
        match (slowness_of(replayed), seen.last_mut()) {
            (Some(slowness), _) => seen.push(slowness),
            (None, Some(previous)) => previous.lasts += replayed.measurement.until_next(),
            (None, None) => not_shown += replayed.measurement.until_next(),
        }
    }
    // The first measurement that shows the host's speed also represents the time before it.
    if let Some(first) = seen.first_mut() {
        first.lasts += not_shown;
    }
    seen
}

/// The slowness of the host during a measurement, relative to all measurements of the same load. `None` if the
/// measurement does not show the host's speed, because it has too little load or too few calls.
fn host_slowness(
    fit: &ModelFit,
    facts: &ServerFacts,
    loads: &PooledLoads,
    measurement: &Measurement,
) -> Option<HostSlowness> {
    let pooled = loads.get(&measurement.load)?;
    let all = &pooled.measurement;
    let lasts = measurement.until_next();
    if let Some(mean_cost) = all.cost(facts.idle_busy).filter(|_| !measurement.timeline.stretches.is_empty()) {
        if all.kernel.busy? < MIN_UTILIZATION * f64::from(facts.servers) {
            return None;
        }
        let mix: Vec<f64> = all.throughput.iter().map(|rate| rate / all.rate()).collect();
        let saturated = mix.iter().zip(&fit.cpu.demands).map(|(share, demand)| share * demand).sum();
        let expected = fit.expected_cost(facts, saturated, mean_cost, all.rate());
        let timeline = &measurement.timeline;
        let counted = timeline.stretches.iter().filter(|stretch| stretch.start_s >= timeline.warm_up);
        let mut stretches: Vec<(f64, f64, f64)> = counted
            .map(|stretch| (stretch.seconds, expected.slowness(stretch), stretch.calls))
            .filter(|(_, slowness, _)| is_factor(*slowness))
            .collect();
        let seconds: f64 = stretches.iter().map(|(length, ..)| length).sum();
        let level = stretches.iter().map(|(length, slowness, _)| length * slowness).sum::<f64>() / seconds;
        stretches.iter_mut().for_each(|(_, slowness, _)| *slowness /= level);
        return is_factor(level).then(|| HostSlowness::new(measurement.load, level, pooled.blocks, stretches, lasts));
    }
    // With closed-loop clients without think time, the throughput is proportional to the host's speed.
    let closed = matches!(measurement.load, OfferedLoad::Clients(_) | OfferedLoad::SingleClass(..));
    let calls = measurement.rate() * measurement.seconds;
    let level = all.rate() / measurement.rate();
    let stretches = vec![(measurement.seconds, 1.0, calls)];
    let shows_it = closed && calls >= MIN_CALLS && is_factor(level);
    shows_it.then(|| HostSlowness::new(measurement.load, level, pooled.blocks, stretches, lasts))
}

fn is_factor(slowness: f64) -> bool {
    slowness.is_finite() && slowness > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// `draws` returns an empty list if no excerpts are requested. It used to panic if no draw of the bootstrap could
    /// be fitted.
    #[test]
    fn no_draws_of_a_known_course_are_empty() {
        let drift = Drift { course: vec![(1.0, 0.9), (1.0, 1.1)], seconds: 2.0, widening: 1.0, ..Drift::default() };
        let time = MeasurementTime { ahead_s: 1.0, seconds: 1.0 };
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        assert_eq!(drift.draws(0, time, &mut rng), Vec::<Vec<(f64, f64)>>::new());
        assert_eq!(drift.draws(2, time, &mut rng).len(), 2);
    }

    /// Excerpts of a constant series do not change. In a varying series, only the excerpts that deviate from the median
    /// change.
    #[test]
    fn parts_are_enlarged_around_their_median() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let time = MeasurementTime { ahead_s: 1.0, seconds: 1.0 };
        let steady = Drift { course: vec![(10.0, 1.0)], seconds: 10.0, widening: 2.0, ..Drift::default() };
        assert!(steady.draws(5, time, &mut rng).iter().all(|part| mean_slowness(part) == Some(1.0)));
        let course = [0.8, 1.0, 1.0, 1.0, 1.25].map(|slowness| (1.0, slowness)).to_vec();
        let drift = Drift { course, seconds: 5.0, widening: 2.0, ..Drift::default() };
        let mut drawn: Vec<f64> =
            drift.draws(100, time, &mut rng).iter().filter_map(|part| mean_slowness(part)).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        assert!((quantile(&drawn, 0.5) - 1.0).abs() < 0.02, "{drawn:?}");
        assert!(drawn[0] < 0.7 && drawn[99] > 1.45, "{drawn:?}");
    }
}
