//! Tests that the self-similar processes vary on all time scales as their Hurst parameter requires. `energies` computes
//! the variation of the counts on each scale; successive scales (octaves) differ by a factor of 2. The growth of the
//! variation from scale to scale must match the Hurst parameter, and each value must match the theoretical variation.

use crate::statistics::{arrivals, counts, energies, hurst, mean};
use brimful_core::Nanos;

const SLOT: Nanos = Nanos::from_millis(100);
const HURST: [f64; 4] = [0.6, 0.7, 0.8, 0.9];

/// The theoretical result of `energies` for fractional Gaussian noise at `octave`, which compares sums of 2^(octave −
/// 1) slots. `variance` is the variance of the number of calls per slot.
fn expected_energy(h: f64, variance: f64, octave: usize) -> f64 {
    let growth = 2.0 * h - 1.0;
    variance * 2f64.powf((octave - 1) as f64 * growth) * (2.0 - 2f64.powf(growth))
}

#[test]
fn fractional_noise_scales_exactly() {
    for h in HURST {
        let slots = 1 << 15;
        let counts = counts(arrivals(&format!("selfsimilar:{h}"), 1000.0, 1), SLOT, slots);
        let energies = energies(&counts);

        // The standard error of the estimated Hurst parameter is 0.004, and slightly larger because the Poisson
        // variance was subtracted. The tolerance, 0.025, is more than five standard errors.
        let (estimate, error) = hurst(&energies, 1);
        assert!(error < 0.0041 && (estimate - h).abs() < 0.025, "H = {h} estimated as {estimate}");

        // The rate has a coefficient of variation of 30 %, around a mean of 100 calls per slot. The mean of m squares
        // of Gaussian values has a relative standard error of √(2/m), before the Poisson variance is subtracted.
        for (index, (energy, details)) in energies.iter().enumerate() {
            let expected = expected_energy(h, f64::powi(0.3 * 100.0, 2), index + 1);
            let error = 5.0 * (2.0 / *details as f64).sqrt() * (expected + 100.0);
            assert!((energy - expected).abs() < error, "H = {h}, octave {}: {energy} not {expected}", index + 1);
        }

        // The standard deviation of the mean rate of a run, relative to the mean rate, is 30 %·slots^(H−1).
        let error = 4.0 * 0.3 * (slots as f64).powf(h - 1.0);
        assert!((mean(&counts) / 100.0 - 1.0).abs() < error, "H = {h}: {} calls per slot", mean(&counts));
    }
}

#[test]
fn pareto_sources_scale_from_some_seconds_on() {
    for h in HURST {
        let counts = counts(arrivals(&format!("selfsimilar:{h},pareto"), 250.0, 1), SLOT, 1 << 18);
        let energies = energies(&counts);

        // The estimate uses sums of 64 slots (6.4 s) and more. Its standard error is 0.012. In addition, it is too
        // high, because 64 slots contain only a few dozen on and off times (Abry & Veitch 1998). This bias increases as
        // α approaches 2; it is 0.06 at H = 0.6.
        let (estimate, error) = hurst(&energies, 7);
        assert!(error < 0.0121 && (-0.05..0.1).contains(&(estimate - h)), "H = {h} estimated as {estimate}");

        // For large t, the variance of the number of calls expected in a time t approaches 16·r²·σ²·t^2H, with σ² =
        // least^α / (2·mean·(α−1)(2−α)(3−α)) and the rate r of one source (Willinger et al. 1997, Theorem 1, equal on
        // and off times). The variance approaches this limit from below. At H = 0.6, it is close to the limit only
        // after hours.
        let (alpha, mean_s, source_rate) = (3.0 - 2.0 * h, 0.1, 250.0 / 8.0);
        let least_s: f64 = mean_s * (alpha - 1.0) / alpha;
        let limit = least_s.powf(alpha) / (2.0 * mean_s * (alpha - 1.0) * (2.0 - alpha) * (3.0 - alpha));
        let variance = 16.0 * f64::powi(source_rate, 2) * limit * SLOT.as_secs_f64().powf(2.0 * h);
        let heights: Vec<f64> =
            (7..=10).map(|octave| energies[octave - 1].0 / expected_energy(h, variance, octave)).collect();
        let least = if h < 0.65 { 0.4 } else { 0.7 };
        assert!((least..1.1).contains(&mean(&heights)), "H = {h}: {heights:?} of the limit");
    }
}
