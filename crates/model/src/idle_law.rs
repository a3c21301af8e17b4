//! The one law of demands that depend on the load ([`IdleCost`]).
//!
//! At a queue of m servers, I = 1 − b − Σ X_r·(D_r + w·Iᵖ)/m. With w ≥ 0 the right side falls as I grows, with w < 0 it
//! grows by less than I does while no demand would turn negative, so there is one such I; at saturation it is 0.

use brimful_core::model::{IdleCost, Station};

/// What a station's demands, which are those at saturation, are where its classes are served at these rates; seconds,
/// by class.
pub fn station_demands(station: &Station, demands: &[f64], rates: &[f64]) -> Vec<f64> {
    let Some(cost) = station.idle_cost else { return demands.to_vec() };
    let idle = idleness(cost, f64::from(station.servers), station.background, demands, rates);
    demands.iter().map(|demand| at_idleness(cost, *demand, idle)).collect()
}

/// Share of the capacity that nobody uses where the classes are served at these rates; `demands` are those at
/// saturation.
fn idleness(cost: IdleCost, servers: f64, background: f64, demands: &[f64], rates: &[f64]) -> f64 {
    let free = 1.0 - background;
    let used = |idle: f64| {
        let busy: f64 = demands.iter().zip(rates).map(|(d, x)| x * at_idleness(cost, *d, idle)).sum();
        busy / servers
    };
    let (mut low, mut high) = (0.0, free);
    if used(low) >= free {
        return 0.0;
    }
    // To the last digit.
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if middle + used(middle) < free { low = middle } else { high = middle }
    }
    low
}

/// D of one class at this idleness. A class that does not visit pays nothing.
fn at_idleness(cost: IdleCost, demand: f64, idle: f64) -> f64 {
    let more = cost.seconds * idle.powi(i32::try_from(cost.power).unwrap_or(i32::MAX));
    if demand > 0.0 { (demand + more).max(0.0) } else { 0.0 }
}
