//! Demands that depend on the load ([`IdleCost`]).
//!
//! A request of class r needs D_r + w·Iᵖ seconds on average, where I is the idle share of the capacity, and w and p are
//! the seconds and the power of the [`IdleCost`]. At a queue of m servers, I = 1 − b − Σ X_r·(D_r + w·Iᵖ)/m, where X_r
//! is the throughput of class r and background work uses the share b of the capacity. If the station is interrupted for
//! the share σ of the time, (1 − b)(1 − σ) replaces 1 − b. With w ≥ 0, the right side falls as I grows. With w < 0, it
//! grows more slowly than I, provided that no demand becomes negative. So there is exactly one solution I, which is 0
//! at saturation.
//!
//! For one server, p = 1 and b = 0, this is the M/G/1 queue in which a request that finds the server idle takes
//! S0 = D + w: U = λ·S0/(1 − λ·(D − S0)) (Welch 1964, "On a generalized M/G/1 queuing process in which the first
//! customer of each busy period receives exceptional service", Operations Research 12).
//!
//! With w > 0, only requests that find idle servers take longer; see [`crate::wakeup`].

use crate::interruptions::available_share;
use brimful_core::model::{IdleCost, Station};

/// Mean demands at a station, in seconds by class. `rates` are the completed requests per second by class, and
/// `demands` the demands at saturation.
pub fn station_demands(station: &Station, demands: &[f64], rates: &[f64]) -> Vec<f64> {
    let Some(cost) = station.idle_cost else { return demands.to_vec() };
    let idle = idleness(cost, station, demands, rates);
    demands.iter().map(|demand| demand_at_idleness(cost, *demand, idle)).collect()
}

/// Additional service time of a request that finds all servers of the station idle, in seconds: w·Iᵖ⁻¹. Here w and p
/// are the seconds and the power of the station's [`IdleCost`], and I is the idle share of the capacity. The result is
/// 0 if w is not positive.
pub(crate) fn wakeup_time(station: &Station, demands: &[f64], rates: &[f64]) -> f64 {
    let Some(cost) = station.idle_cost.filter(|cost| cost.seconds > 0.0) else { return 0.0 };
    let idle = idleness(cost, station, demands, rates);
    cost.seconds * power(idle, cost.power.saturating_sub(1))
}

/// I: idle share of the capacity. `rates` are the completed requests per second by class, and `demands` the demands at
/// saturation.
fn idleness(cost: IdleCost, station: &Station, demands: &[f64], rates: &[f64]) -> f64 {
    let servers = f64::from(station.servers);
    let free = available_share(station, demands, rates);
    let used = |idle: f64| {
        let busy: f64 = demands.iter().zip(rates).map(|(d, x)| x * demand_at_idleness(cost, *d, idle)).sum();
        busy / servers
    };
    let mut low = 0.0;
    let mut high = free;
    if used(low) >= free {
        return 0.0;
    }
    // 100 halvings of the interval reach the resolution of `f64`.
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if middle + used(middle) < free { low = middle } else { high = middle }
    }
    low
}

/// Mean demand of one class at the idle share `idle`; 0 for a class that does not visit the station.
fn demand_at_idleness(cost: IdleCost, demand: f64, idle: f64) -> f64 {
    let addition = cost.seconds * power(idle, cost.power);
    if demand > 0.0 { (demand + addition).max(0.0) } else { 0.0 }
}

fn power(idle: f64, exponent: u32) -> f64 {
    idle.powi(i32::try_from(exponent).unwrap_or(i32::MAX))
}
