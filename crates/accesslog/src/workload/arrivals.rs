//! Fits an arrival process to the bursts of a log. The fit uses the index of dispersion for counts (IDC: variance
//! divided by mean) in epochs of several lengths t.
//!
//! Poisson arrivals have an index of 1 for every length. Otherwise, two processes are fitted, and the one whose indices
//! are closer (in squared logarithms) is chosen. The first process has bursts at random times: MMPP(2). Its index is
//! I(t) = 1 + 2σ²τ/m · (1 − τ/t·(1 − e^(−t/τ))) for a rate of mean m, variance σ² and correlation time τ (Fischer &
//! Meier-Hellstern 1993). The second process is fitted only if the Hurst parameter H is significantly above one half.
//! It is the self-similar process `selfsimilar:H`, with I(t) = 1 + m·c²·t·(t/t₀)^(2H−2). Its rate in steps of t₀ = 100
//! ms has a coefficient of variation of c = 30 %.

use brimful_core::profile::{Dispersion, Profile};
use brimful_core::quantity::number;

/// A fitted arrival process, and the reason why it was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedArrivals {
    /// The process in the notation of `--arrivals`, such as `mmpp:4,10%,2s`.
    pub arrivals: String,
    /// The reason why this process was chosen, as a sentence.
    pub reason: String,
}

/// Maximum difference of the index of dispersion from 1 for which arrivals count as Poisson arrivals, even if the
/// difference is statistically significant.
const NEAR_POISSON: f64 = 0.15;
/// Coefficient of variation of the rate of the process `selfsimilar:H`, in intervals of [`NOISE_STEP_S`] seconds.
const NOISE: f64 = 0.3;
const NOISE_STEP_S: f64 = 0.1;
/// Minimum and maximum fraction of the time that bursts may occupy.
const SHARES: [f64; 2] = [0.02, 0.5];
/// Mean burst lengths that are tried: the first one in seconds, the factor from one to the next, and the last one as a
/// multiple of the longest epoch.
const LENGTHS: (f64, f64, f64) = (0.05, 1.25, 4.0);

/// Returns the arrival process that fits the peak window of a profile best.
pub fn fit(profile: &Profile) -> FittedArrivals {
    let rate = profile.peak.rate;
    let curve = &profile.dispersion;
    let fitted = |arrivals: String, reason: String| FittedArrivals { arrivals, reason };
    if curve.is_empty() || rate <= 0.0 {
        let why = "poisson: there is not enough data to see whether requests come in bursts";
        return fitted("poisson".to_owned(), why.to_owned());
    }
    let widest = curve.iter().map(|at| at.index).fold(f64::NEG_INFINITY, f64::max);
    let is_poisson = |at: &Dispersion| {
        (at.index - 1.0).abs() <= NEAR_POISSON || (at.interval95[0] <= 1.0 && 1.0 <= at.interval95[1])
    };
    if curve.iter().all(|at| is_poisson(at) || at.index < 1.0) {
        let why = format!("poisson: the index of dispersion is at most {} (1 is Poisson)", number(widest));
        return fitted("poisson".to_owned(), why);
    }
    let bursts = Bursts::fit(curve, rate, profile.burstiness.map(|known| known.b));
    let noise = profile.hurst.filter(|hurst| hurst.interval95[0] > 0.5).map(|hurst| {
        let h = hurst.value.clamp(0.51, 0.99);
        (h, squared_log_error(curve, |t| noise_index(rate, h, t)))
    });
    let far = |error: f64| format!("a factor of {}", number((error / curve.len() as f64).sqrt().exp()));
    match noise.filter(|(_, error)| *error < bursts.error) {
        Some((h, error)) => fitted(
            format!("selfsimilar:{}", number(h)),
            format!(
                "self-similar noise is off the index of dispersion by {} on average, bursts at random times by {}",
                far(error),
                far(bursts.error)
            ),
        ),
        None => {
            let other = noise.map_or_else(
                || "no long-range dependence is shown".to_owned(),
                |(_, error)| format!("self-similar noise by {}", far(error)),
            );
            let why = format!(
                "bursts at random times are off the index of dispersion by {} on average; {other}",
                far(bursts.error)
            );
            fitted(bursts.to_string(), why)
        }
    }
}

/// An MMPP(2): an arrival process that switches at random between a high rate in bursts and a low rate between bursts.
struct Bursts {
    /// The ratio of the rate in bursts to the mean rate.
    ratio: f64,
    /// The fraction of the time that bursts occupy.
    share: f64,
    /// Mean length of a burst, in seconds.
    length_s: f64,
    error: f64,
}

impl Bursts {
    /// Fits the process to the indices of dispersion in `curve`. `share` is the measured fraction of the time in
    /// bursts; if it is unknown, 0.2 is assumed. This fraction is not fitted, because the curve does not determine it.
    fn fit(curve: &[Dispersion], rate: f64, share: Option<f64>) -> Bursts {
        let share = share.unwrap_or(0.2).clamp(SHARES[0], SHARES[1]);
        let (from, factor, beyond) = LENGTHS;
        let longest = beyond * curve.iter().map(|at| at.epoch_s).fold(0.0, f64::max);
        let lengths = (0..100).map(|i| from * factor.powi(i)).take_while(|length_s| *length_s <= longest);
        let tried = lengths.map(|length_s| {
            // The correlation time is the reciprocal of a sum of two rates: the rate at which bursts begin and the rate
            // at which they end.
            let tau = length_s * (1.0 - share);
            // The variance of the rate is fitted by least squares. The residuals are relative to the measured index.
            let shape = |t: f64| 2.0 * tau / rate * (1.0 - tau / t * (1.0 - (-t / tau).exp()));
            let weigh = |at: &Dispersion| (shape(at.epoch_s) / at.index, (at.index - 1.0) / at.index);
            let (products, squares) = curve.iter().map(weigh).fold((0.0, 0.0), |(p, s), (x, y)| (p + x * y, s + x * x));
            let most = rate.powi(2) * (1.0 - share) / share;
            let variance = (products / squares).clamp(0.0, most);
            let ratio = 1.0 + (variance / rate.powi(2) * (1.0 - share) / share).sqrt();
            let error = squared_log_error(curve, |t| 1.0 + variance * shape(t));
            Bursts { ratio: ratio.min(0.999 / share), share, length_s, error }
        });
        let none = Bursts { ratio: 1.0, share, length_s: 1.0, error: f64::INFINITY };
        tried.fold(none, |best, next| if next.error < best.error { next } else { best })
    }
}

impl std::fmt::Display for Bursts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let milliseconds = (self.length_s * 1000.0).round().max(1.0);
        write!(f, "mmpp:{:.3},{:.1}%,{milliseconds}ms", self.ratio, 100.0 * self.share)
    }
}

/// Index of dispersion of `selfsimilar:H` in epochs of length `t`. The variance of the mean rate in an epoch is
/// proportional to t^(2H−2).
fn noise_index(rate: f64, h: f64, t: f64) -> f64 {
    1.0 + rate * NOISE.powi(2) * t * (t / NOISE_STEP_S).powf(2.0 * h - 2.0)
}

/// Sum of the squared differences between the logarithms of `index` and of the measured indices in `curve`.
fn squared_log_error(curve: &[Dispersion], index: impl Fn(f64) -> f64) -> f64 {
    curve.iter().map(|at| (index(at.epoch_s) / at.index.max(1e-6)).ln().powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::profile::{Burstiness, Hurst, Peak};

    fn profile(rate: f64, index: impl Fn(f64) -> f64) -> Profile {
        let at = |k: i32| {
            let epoch_s = 2f64.powi(k);
            let index = index(epoch_s);
            Dispersion { epoch_s, epochs: 1000, index, interval95: [0.95 * index, 1.05 * index] }
        };
        Profile {
            peak: Peak { rate, seconds: 3600, ..Peak::default() },
            dispersion: (0..8).map(at).collect(),
            ..Profile::default()
        }
    }

    #[test]
    fn what_has_no_bursts_is_poisson() {
        assert_eq!(fit(&profile(50.0, |_| 1.08)).arrivals, "poisson");
        assert_eq!(fit(&profile(50.0, |_| 0.6)).arrivals, "poisson");
        assert_eq!(fit(&Profile::default()).arrivals, "poisson");
    }

    #[test]
    fn bursts_come_back_with_their_length_and_height() {
        // Bursts have four times the mean rate, occupy a tenth of the time, and last 2 s on average.
        let (rate, ratio, share, length): (f64, f64, f64, f64) = (100.0, 4.0, 0.1, 2.0);
        let low: f64 = (1.0 - ratio * share) / (1.0 - share);
        let variance = rate * rate * share * (1.0 - share) * (ratio - low).powi(2);
        let tau = length * (1.0 - share);
        let mut made =
            profile(rate, |t| 1.0 + 2.0 * variance * tau / rate * (1.0 - tau / t * (1.0 - (-t / tau).exp())));
        made.burstiness = Some(Burstiness { epoch_s: 1.0, a: 3.5, b: 0.1, peak_to_mean: 5.0 });
        let FittedArrivals { arrivals, reason: why } = fit(&made);
        let parts: Vec<&str> = arrivals.trim_start_matches("mmpp:").split(',').collect();
        let number = |text: &str| text.trim_end_matches("ms").trim_end_matches('%').parse::<f64>().unwrap();
        assert!((number(parts[0]) / ratio - 1.0).abs() < 0.1 && number(parts[1]) == 10.0, "{arrivals} ({why})");
        assert!((number(parts[2]) / 2000.0 - 1.0).abs() < 0.15, "{arrivals} ({why})");
    }

    #[test]
    fn noise_at_all_scales_is_told_from_bursts() {
        let mut made = profile(200.0, |t| noise_index(200.0, 0.85, t));
        made.hurst = Some(Hurst { value: 0.85, interval95: [0.8, 0.9], from_s: 1.0, to_s: 256.0 });
        assert_eq!(fit(&made).arrivals, "selfsimilar:0.850", "{:?}", fit(&made));
        made.hurst = None;
        assert!(fit(&made).arrivals.starts_with("mmpp:"));
    }
}
