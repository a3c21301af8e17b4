//! Estimates how much the host's speed changes between calibration and a later measurement.
//!
//! If the host's speed changes slowly, a later measurement may differ more from calibration than the measurements of
//! the calibration differ from each other. The logarithm of the slowness (the CPU time of a call, relative to its mean
//! at the same load) is modelled as the sum of an Ornstein-Uhlenbeck process and independent noise. The memory of the
//! process is the time after which a deviation decays to the share e⁻¹. It may be longer than calibration. The expected
//! change is a weighted mean over many such processes. The weights are products of the restricted likelihood (Patterson
//! & Thompson 1971) and a prior (Bayesian model averaging: Hoeting et al. 1999). The prior is proportional to the
//! square root of the memory, because calibration contains little information about a long memory. It was chosen by
//! simulation: without it, fewer prediction intervals contain the measurement on hosts whose speed persists for a
//! minute (`intervals_hold_on_a_host_whose_speed_persists_for_a_minute` in `brimful-survey`).

use super::blocks::OfferedLoad;
use nalgebra::{Cholesky, DMatrix, DVector};

/// Candidates for the memory of the process (the time after which a deviation decays to the share e⁻¹), in seconds.
const MEMORIES_S: [f64; 10] = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
/// Candidates for the variance of the independent noise, relative to the variance of the Ornstein-Uhlenbeck process.
const NOISES: [f64; 7] = [0.002, 0.02, 0.1, 0.3, 1.0, 3.0, 10.0];

/// Start and duration of a future measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasurementTime {
    /// Seconds from the end of calibration to the start of the measurement. The host's speed may have changed by then.
    pub ahead_s: f64,
    /// Duration of the measurement, in seconds.
    pub seconds: f64,
}

/// The mean slowness of the host during one calibration measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlownessReading {
    /// Middle of the measurement, in seconds since the start of calibration.
    pub at_s: f64,
    /// The load during the measurement. Only measurements of the same load can be compared.
    pub load: OfferedLoad,
    /// Natural logarithm of the slowness: the CPU time of a call, relative to its mean at the same load.
    pub log_slowness: f64,
}

/// The expected slowness of the host after calibration, given its slowness during calibration.
#[derive(Clone, Debug, Default)]
pub(super) struct LaterDrift {
    /// Time from the middle of each measurement to the end of calibration, in seconds.
    ages_s: Vec<f64>,
    processes: Vec<WeightedProcess>,
}

/// A candidate for the random process of the host's log slowness, and its weight in the mean over all candidates.
#[derive(Clone, Debug)]
struct WeightedProcess {
    memory_s: f64,
    /// Weight of this process in the mean. [`WeightedProcess::new`] sets it to the logarithm of the restricted
    /// likelihood, and [`LaterDrift::new`] converts it to a share of all weights.
    weight: f64,
    /// Variance of the process, without the independent noise.
    variance: f64,
    /// Inverse of the correlation matrix of the measurements. It is projected so that the mean of each load has no
    /// effect.
    precision: DMatrix<f64>,
    /// The product of `precision` and the vector of the measured log slowness values.
    weighted_readings: DVector<f64>,
}

impl LaterDrift {
    /// Computes the weight of each candidate process from the measurements of a calibration that ended at `end_s`
    /// seconds.
    pub fn new(readings: &[SlownessReading], end_s: f64) -> LaterDrift {
        let ages_s: Vec<f64> = readings.iter().map(|reading| end_s - reading.at_s).collect();
        let mut processes: Vec<WeightedProcess> = MEMORIES_S
            .into_iter()
            .flat_map(|memory_s| NOISES.map(|noise| (memory_s, noise)))
            .filter_map(|(memory_s, noise)| WeightedProcess::new(readings, &ages_s, memory_s, noise))
            .collect();
        let most = processes.iter().map(|process| process.weight).fold(f64::NEG_INFINITY, f64::max);
        for process in &mut processes {
            process.weight = (process.weight - most).exp() * process.memory_s.sqrt();
        }
        let sum: f64 = processes.iter().map(|process| process.weight).sum();
        processes.iter_mut().for_each(|process| process.weight /= sum);
        LaterDrift { ages_s, processes }
    }

    /// Expected square of the difference between the log slowness of the measurement at `time` and of the calibration;
    /// 0 if nothing was measured during calibration.
    pub fn mean_square(&self, time: MeasurementTime) -> f64 {
        self.processes.iter().map(|process| process.weight * process.square(&self.ages_s, time)).sum()
    }
}

impl WeightedProcess {
    /// Fits the variance of a process to the measurements. `None` if there are too few measurements, or if they do not
    /// differ.
    fn new(readings: &[SlownessReading], ages_s: &[f64], memory_s: f64, noise: f64) -> Option<WeightedProcess> {
        let count = readings.len();
        let mut loads: Vec<OfferedLoad> = readings.iter().map(|reading| reading.load).collect();
        loads.sort_unstable();
        loads.dedup();
        let freedom = count.checked_sub(loads.len()).filter(|freedom| *freedom > 1)? as f64;
        let means = DMatrix::from_fn(count, loads.len(), |row, column| {
            f64::from(u8::from(readings[row].load == loads[column]))
        });
        let values = DVector::from_iterator(count, readings.iter().map(|reading| reading.log_slowness));
        let correlation = correlations(ages_s, memory_s) + DMatrix::identity(count, count) * noise;
        let decomposed = Cholesky::new(correlation)?;
        let inverse = decomposed.inverse();
        let projected = &inverse * &means;
        let information = Cholesky::new(means.transpose() * &projected)?;
        let precision = inverse - &projected * information.inverse() * projected.transpose();
        let weighted_readings = &precision * &values;
        let variance = values.dot(&weighted_readings) / freedom;
        let log_determinant = |factor: &DMatrix<f64>| 2.0 * factor.diagonal().map(f64::ln).sum();
        let likelihood =
            -0.5 * (freedom * variance.ln() + log_determinant(&decomposed.l()) + log_determinant(&information.l()));
        (variance > 0.0 && likelihood.is_finite()).then_some(WeightedProcess {
            memory_s,
            weight: likelihood,
            variance,
            precision,
            weighted_readings,
        })
    }

    /// Expected square of the difference between the log slowness of the measurement at `time` and of the calibration,
    /// according to this process.
    fn square(&self, ages_s: &[f64], time: MeasurementTime) -> f64 {
        let MeasurementTime { ahead_s, seconds } = time;
        let memory = self.memory_s;
        let count = ages_s.len() as f64;
        let decay = 1.0 - (-seconds / memory).exp();
        // Covariance of the mean over the later measurement with each calibration measurement, as a multiple of the
        // variance of the process.
        let later = DVector::from_iterator(
            ages_s.len(),
            ages_s.iter().map(|age| (-(ahead_s + age) / memory).exp() * decay * memory / seconds),
        );
        let among = correlations(ages_s, memory);
        let of_mean = DVector::from_iterator(ages_s.len(), among.row_iter().map(|row| row.sum() / count));
        let variance_of_later = 2.0 * memory / seconds * (1.0 - memory / seconds * decay);
        let variance_of_difference = variance_of_later - 2.0 * later.sum() / count + of_mean.sum() / count;
        let difference = later - of_mean;
        let expected = difference.dot(&self.weighted_readings);
        let explained = difference.dot(&(&self.precision * &difference));
        expected.powi(2) + self.variance * (variance_of_difference - explained).max(0.0)
    }
}

/// Correlation of the process between the times of all pairs of measurements.
fn correlations(ages_s: &[f64], memory_s: f64) -> DMatrix<f64> {
    let count = ages_s.len();
    DMatrix::from_fn(count, count, |row, column| (-(ages_s[row] - ages_s[column]).abs() / memory_s).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// Measurements of three loads in turn, one per second, for 45 seconds.
    fn readings(log_slowness: impl Fn(f64) -> f64) -> Vec<SlownessReading> {
        (0..45)
            .map(|second| SlownessReading {
                at_s: f64::from(second),
                load: OfferedLoad::Level(20 * (second as u32 % 3)),
                log_slowness: log_slowness(f64::from(second)),
            })
            .collect()
    }

    fn spread(readings: &[SlownessReading], ahead_s: f64, seconds: f64) -> f64 {
        LaterDrift::new(readings, 45.0).mean_square(MeasurementTime { ahead_s, seconds }).sqrt()
    }

    #[test]
    fn a_host_of_constant_speed_does_not_drift() {
        assert_eq!(spread(&readings(|_| 0.0), 20.0, 8.0), 0.0);
        assert_eq!(spread(&readings(|_| 0.0)[..3], 20.0, 8.0), 0.0, "one reading of each load shows nothing");
    }

    /// Estimated change of the host's speed: root mean square over 30 simulated hosts. In each second, the log slowness
    /// of a host is `persistence` times its previous value, plus a random number between −0.05 and 0.05.
    fn typical_spread(persistence: f64, ahead_s: f64, seconds: f64) -> f64 {
        let squares = (0..30).map(|seed| {
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            let mut course = vec![0.0];
            while course.len() < 45 {
                course.push(persistence * course[course.len() - 1] + 0.1 * (rng.random::<f64>() - 0.5));
            }
            spread(&readings(|at| course[at as usize]), ahead_s, seconds).powi(2)
        });
        (squares.sum::<f64>() / 30.0).sqrt()
    }

    #[test]
    fn a_slow_drift_continues_after_calibration() {
        let step = 0.1 / 12.0_f64.sqrt();
        let [soon, later] = [2.0, 40.0].map(|ahead| typical_spread(1.0, ahead, 8.0));
        // The variance of a random walk grows in proportion to time. The difference between a mean over 8 s and a mean
        // over 45 s that ended 40 s earlier has the variance of 45/3 + 40 + 8/3 steps of the walk.
        let truth = step * (45.0_f64 / 3.0 + 40.0 + 8.0 / 3.0).sqrt();
        assert!(later > soon && (0.6..1.4).contains(&(later / truth)), "{soon}, {later}, true value {truth}");
    }

    #[test]
    fn fast_changes_cancel_in_a_later_level() {
        let deviation = 0.1 / 12.0_f64.sqrt();
        let spread = typical_spread(0.0, 20.0, 20.0);
        assert!(spread > 0.0 && spread < 0.7 * deviation, "{spread}, a reading deviates by {deviation}");
    }

    /// The predicted spread does not change if the slowness at one load is multiplied by a constant: each load has a
    /// mean of its own, so only changes within a load count as drift.
    #[test]
    fn differences_between_loads_are_no_drift() {
        let mut shifted = readings(|at| 0.05 * (at / 7.0).sin());
        let expected = spread(&shifted, 10.0, 8.0);
        for reading in &mut shifted {
            reading.log_slowness += if reading.load == OfferedLoad::Level(20) { 0.7 } else { 0.0 };
        }
        assert!((spread(&shifted, 10.0, 8.0) / expected - 1.0).abs() < 1e-6);
    }
}
