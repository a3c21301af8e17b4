//! A queue with a CPU quota: in each period, its servers together may use a limited amount of CPU time. When it is used
//! up, they stop until the next period begins (sched-bwc.rst of Linux's documentation). The mean speed of the queue is
//! lower, but a call is served at full speed while quota remains in the period.

use crate::ModelError;
use crate::idle_law::station_demands;
use crate::simulate::{Sampler, Service};
use brimful_core::model::Station;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;

/// Work of less than this number of seconds is a rounding error and is ignored.
const ROUNDING: f64 = 1e-9;

/// A limit of the CPU time that the servers of a station may use in each period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quota {
    /// The quota as a number of servers: the CPU time permitted in a period, divided by the length of the period.
    pub servers: f64,
    /// Length of a period in seconds.
    pub period_s: f64,
}

/// Mean response times of the same random calls with and without a quota, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuotaResponseTimes {
    /// Mean response time without a quota.
    pub without_quota: f64,
    /// Mean response time with the quota.
    pub with_quota: f64,
}

/// Simulates `calls` calls at a station, once with and once without a quota. Background work is ignored, because it
/// does not use the quota. `demands` are in seconds by class, `rates` in calls per second by class.
///
/// # Errors
/// When the station is invalid or has interruptions, which are not simulated.
pub fn simulate_quota(
    station: &Station,
    demands: &[f64],
    rates: &[f64],
    quota: Quota,
    calls: usize,
    seed: u64,
) -> Result<QuotaResponseTimes, ModelError> {
    if station.interruptions.is_some() {
        let text = format!("station `{}` has interruptions, which the simulation of a quota cannot have", station.name);
        return Err(ModelError::Inconsistent(text + ": leave out the one or the other"));
    }
    let service = Sampler::new(Service::Standard, station.scv, &station.name)?;
    let demands = station_demands(station, demands, rates);
    let all: f64 = rates.iter().sum();
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut at = 0.0;
    let mut call = || {
        at -= (-rng.random::<f64>()).ln_1p() / all;
        let mut left = all * rng.random::<f64>();
        let class = rates.iter().position(|rate| {
            left -= rate;
            left < 0.0
        });
        let demand = class.map_or(0.0, |class| demands[class]);
        (at, demand * service.sample(&mut rng))
    };
    let calls: Vec<(f64, f64)> = (0..calls).map(|_| call()).collect();
    let servers = station.servers as usize;
    Ok(QuotaResponseTimes {
        without_quota: mean_sojourn(servers, None, &calls),
        with_quota: mean_sojourn(servers, Some(quota), &calls),
    })
}

/// Mean response time of calls in seconds, served first come, first served. Each call consists of its arrival time and
/// its work, both in seconds.
fn mean_sojourn(servers: usize, quota: Option<Quota>, calls: &[(f64, f64)]) -> f64 {
    let (work, period) = quota.map_or((f64::INFINITY, f64::INFINITY), |q| (q.servers * q.period_s, q.period_s));
    // Arrival time and remaining work of each call. The calls at the front are in service.
    let mut present: VecDeque<(f64, f64)> = VecDeque::new();
    let (mut now, mut left, mut refill, mut sum) = (0.0, work, period, 0.0);
    let mut arrivals = calls.iter().copied().peekable();
    loop {
        let served = present.len().min(servers);
        let next_call = arrivals.peek().map_or(f64::INFINITY, |call| call.0);
        if present.is_empty() {
            if next_call.is_infinite() {
                break;
            }
            if next_call >= refill {
                // The station was idle until this call arrived, so the quota is full again. The next refill is at the
                // next period boundary.
                refill += ((next_call - refill) / period).floor() * period + period;
                left = work;
            }
            now = next_call;
        } else {
            let shortest = present.iter().take(served).map(|call| call.1).fold(f64::INFINITY, f64::min);
            let works = left > 0.0;
            let until_change = if works { shortest.min(left / served as f64) } else { f64::INFINITY };
            let then = (now + until_change).min(next_call).min(refill);
            if works {
                let done = then - now;
                present.iter_mut().take(served).for_each(|call| call.1 -= done);
                left -= done * served as f64;
                // A remaining quota below this value is a rounding error.
                if left < ROUNDING {
                    left = 0.0;
                }
            }
            now = then;
            let mut ended = 0;
            for index in (0..served).rev() {
                if present[index].1 < ROUNDING {
                    sum += now - present[index].0;
                    present.remove(index);
                    ended += 1;
                }
            }
            if now >= refill {
                (left, refill) = (work, refill + period);
            }
            if ended > 0 && now < next_call {
                continue;
            }
        }
        while let Some(call) = arrivals.next_if(|call| call.0 <= now) {
            present.push_back(call);
        }
    }
    sum / calls.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::model::Scheduling;

    fn cpu(servers: u32, scv: f64) -> Station {
        Station { servers, scv, scheduling: Scheduling::Fcfs, ..Station::default() }
    }

    #[test]
    fn without_an_effect_calls_last_as_long_as_in_the_textbook() {
        // A quota of one server does not limit one server, so the mean response time is that of M/M/1: D/(1 − ρ).
        let quota = Quota { servers: 1.0, period_s: 0.01 };
        let QuotaResponseTimes { without_quota, with_quota } =
            simulate_quota(&cpu(1, 1.0), &[0.001], &[500.0], quota, 400_000, 1).unwrap();
        assert!(
            (without_quota / 0.002 - 1.0).abs() < 0.02 && (with_quota / without_quota - 1.0).abs() < 1e-6,
            "{without_quota} {with_quota}"
        );
    }

    #[test]
    fn short_periods_make_a_slower_server() {
        // Half a server in very short periods is a server of half the speed: M/M/1 with doubled demands.
        let quota = Quota { servers: 0.5, period_s: 0.000_02 };
        let sojourns = simulate_quota(&cpu(1, 1.0), &[0.001], &[250.0], quota, 100_000, 1).unwrap();
        assert!((sojourns.with_quota / 0.004 - 1.0).abs() < 0.04, "{sojourns:?}");
    }

    #[test]
    fn in_long_periods_most_calls_are_served_at_full_speed() {
        // The calls use a tenth of the quota, and each call needs only 1 ms. So hardly any call waits for the next
        // period.
        let quota = Quota { servers: 0.5, period_s: 0.1 };
        let sojourns = simulate_quota(&cpu(1, 0.0), &[0.001], &[50.0], quota, 20_000, 1).unwrap();
        assert!((sojourns.with_quota / sojourns.without_quota - 1.0).abs() < 0.01, "{sojourns:?}");
        // Each call arrives alone and needs 1.5 times the quota of a period. Its response time is a period, and then
        // the rest of its work.
        let alone: Vec<(f64, f64)> = (0..50).map(|n| (f64::from(n) + 1e-9, 0.075)).collect();
        assert!((mean_sojourn(1, Some(quota), &alone) - 0.125).abs() < 1e-6);
        // With two calls at once, two servers use up the quota of a period in half the time.
        let pairs: Vec<(f64, f64)> = (0..100).map(|n| (f64::from(n / 2) + 1e-9, 0.05)).collect();
        assert!((mean_sojourn(2, Some(quota), &pairs) - 0.125).abs() < 1e-6);
        assert!((mean_sojourn(2, None, &pairs) - 0.05).abs() < 1e-6);
    }
}
