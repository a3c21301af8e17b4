//! Compares the index of dispersion of counts (IDC) of the MMPP with its formula (Heffes & Lucantoni 1986, the equation
//! of the variance–time curve): with r = r₁ + r₂, IDC(t) = 1 + 2(λ₁−λ₂)²r₁r₂ / (r²(λ₁r₂+λ₂r₁)) · (1 − (1−e^−rt)/(rt)).

use crate::statistics::{aggregate, arrivals, counts, mean, variance};
use brimful_core::Nanos;

#[test]
fn dispersion_follows_its_closed_form_at_every_time_scale() {
    // For the process `mmpp:4,10%,1s` at 100 calls/s: λ₁ = 400, λ₂ = 100·0.6/0.9, r₁ = 1, r₂ = 1/9. The limit of the
    // index of dispersion for long times is about 181.
    let (fast, slow, r1, r2) = (400.0, 100.0 * 0.6 / 0.9, 1.0, 1.0 / 9.0);
    let r: f64 = r1 + r2;
    let limit = 2.0 * f64::powi(fast - slow, 2) * r1 * r2 / (r * r * (fast * r2 + slow * r1));
    let closed_form = |t: f64| 1.0 + limit * (1.0 - (1.0 - (-r * t).exp()) / (r * t));

    let slots = 1_000_000;
    let all = counts(arrivals("mmpp:4,10%,1s", 100.0, 1), Nanos::from_millis(100), slots);
    for n in [1, 3, 10, 30, 100, 300] {
        let expected = closed_form(n as f64 / 10.0);
        // Each of the twenty intervals of 5,000 s yields an independent estimate, because an interval is thousands of
        // times as long as the time over which the rates of the process are correlated.
        let estimates: Vec<f64> = all
            .chunks_exact(slots / 20)
            .map(|stretch| aggregate(stretch, n))
            .map(|sums| variance(&sums) / mean(&sums))
            .collect();
        let error = 5.0 * (variance(&estimates) / 20.0).sqrt();
        assert!((mean(&estimates) - expected).abs() < error, "{n}: {} not {expected} ± {error}", mean(&estimates));
        assert!(error < 0.2 * expected, "{n}: an error of ±{error} is too large for this test");
    }
}
