//! The one law of demands that depend on the load ([`IdleCost`]).
//!
//! At a queue of m servers, I = 1 − b − Σ X_r·(D_r + w·Iᵖ)/m. With w ≥ 0 the right side falls as I grows, with w < 0 it
//! grows by less than I does while no demand would turn negative, so there is one such I; at saturation it is 0. At one
//! server, p = 1 and b = 0 this is the M/G/1 queue whose first request after idleness takes S0 = D + w (Welch 1964,
//! "On a generalized M/G/1 queuing process in which the first customer of each busy period receives exceptional
//! service", Operations Research 12): U = λ·S0/(1 − λ·(D − S0)).
//!
//! With w > 0 it is those who find idle servers that pay ([`crate::exceptional`]).

use brimful_core::model::{IdleCost, Station};

/// What a station's demands, which are those at saturation, are on average where its classes are served at these rates;
/// seconds, by class.
pub fn station_demands(station: &Station, demands: &[f64], rates: &[f64]) -> Vec<f64> {
    let Some(cost) = station.idle_cost else { return demands.to_vec() };
    let idle = idleness(cost, f64::from(station.servers), station.background, demands, rates);
    demands.iter().map(|demand| at_idleness(cost, *demand, idle)).collect()
}

/// What a request pays that finds all servers of the station idle, in seconds of time: w·Iᵖ⁻¹, with I as in the law. 0
/// where idle servers cost nothing.
pub(crate) fn waking(station: &Station, demands: &[f64], rates: &[f64]) -> f64 {
    let Some(cost) = station.idle_cost.filter(|cost| cost.seconds > 0.0) else { return 0.0 };
    let idle = idleness(cost, f64::from(station.servers), station.background, demands, rates);
    cost.seconds * to_the(idle, cost.power.saturating_sub(1))
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
    let more = cost.seconds * to_the(idle, cost.power);
    if demand > 0.0 { (demand + more).max(0.0) } else { 0.0 }
}

fn to_the(idle: f64, power: u32) -> f64 {
    idle.powi(i32::try_from(power).unwrap_or(i32::MAX))
}
