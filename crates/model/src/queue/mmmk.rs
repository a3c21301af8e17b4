//! M/M/m/K: m servers and room for K requests in total. A request that finds the station full is rejected.
//!
//! A birth-death process (Erlang 1917 for K = m; Kleinrock 1975, §3.6), stable at any load. The probabilities are
//! summed from the most likely state outwards and only as far as they matter, so nothing overflows. Cost: at most K
//! steps, usually about √K.

use crate::ModelError;
use brimful_core::number::{check_non_negative, check_positive};
use serde::Serialize;

/// A solved M/M/m/K queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mmmk {
    /// Probability that no request is present.
    pub empty: f64,
    /// Probability that the station is full, which is the share of arrivals that are rejected.
    pub blocking: f64,
    /// X: requests served per second.
    pub throughput: f64,
    /// U: utilization of the servers, between 0 and 1.
    pub utilization: f64,
    /// N: mean number of requests present.
    pub number: f64,
    /// R: mean response time of admitted requests, in seconds.
    pub response_time: f64,
    /// Mean waiting time of admitted requests, in seconds.
    pub wait: f64,
}

/// Solves the queue for `arrival_rate` requests per second, a mean service time in seconds, `servers` servers, and room
/// for `capacity` ≥ `servers` requests.
pub fn mmmk(arrival_rate: f64, mean_service: f64, servers: u32, capacity: u32) -> Result<Mmmk, ModelError> {
    let rate = check_non_negative(arrival_rate, || "the arrival rate".into())?;
    let service = check_positive(mean_service, || "the mean service time".into())?;
    if servers == 0 || capacity < servers {
        let text = format!(
            "room for {capacity} requests at {servers} servers: there must be servers, and room for all of them"
        );
        return Err(ModelError::Inconsistent(text));
    }
    let offered = check_non_negative(rate * service, || "the offered load".into())?;
    let sums = Sums::around_the_mode(offered, servers, capacity);
    let (number, busy) = (sums.number / sums.all, sums.busy / sums.all);
    let throughput = busy / service;
    let response_time = if busy > 0.0 { number / throughput } else { service };
    Ok(Mmmk {
        empty: sums.empty / sums.all,
        blocking: sums.full / sums.all,
        throughput,
        utilization: busy / f64::from(servers),
        number,
        response_time,
        wait: (response_time - service).max(0.0),
    })
}

/// Sums over the numbers of requests present. The weight of a state is its probability divided by that of the most
/// likely state.
#[derive(Default)]
struct Sums {
    all: f64,
    number: f64,
    busy: f64,
    empty: f64,
    full: f64,
}

impl Sums {
    fn around_the_mode(offered: f64, servers: u32, capacity: u32) -> Self {
        let busy = |n: u32| f64::from(n.min(servers));
        // The weight of n requests exceeds the weight of n − 1 requests if the offered load exceeds the number of
        // servers that n requests keep busy.
        let mode = if offered >= f64::from(servers) { capacity } else { offered as u32 };
        let mut sums = Sums::default();
        sums.add(mode, 1.0, servers, capacity);
        let mut weight = 1.0;
        for n in mode + 1..=capacity {
            weight *= offered / busy(n);
            if weight < 1e-20 * sums.all {
                break;
            }
            sums.add(n, weight, servers, capacity);
        }
        weight = 1.0;
        for n in (0..mode).rev() {
            weight *= busy(n + 1) / offered;
            if weight < 1e-20 * sums.all {
                break;
            }
            sums.add(n, weight, servers, capacity);
        }
        sums
    }

    fn add(&mut self, n: u32, weight: f64, servers: u32, capacity: u32) {
        self.all += weight;
        self.number += weight * f64::from(n);
        self.busy += weight * f64::from(n.min(servers));
        if n == 0 {
            self.empty = weight;
        }
        if n == capacity {
            self.full = weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probabilities of 0 to K requests, computed directly by the definition.
    fn summed(offered: f64, servers: u32, capacity: u32) -> Vec<f64> {
        let mut weights = vec![1.0];
        for n in 1..=capacity {
            weights.push(weights[n as usize - 1] * offered / f64::from(n.min(servers)));
        }
        let all: f64 = weights.iter().sum();
        weights.iter().map(|w| w / all).collect()
    }

    #[test]
    fn probabilities_match_the_definition_below_and_above_saturation() {
        for (offered, servers, capacity) in
            [(0.5, 1, 1), (1.5, 2, 5), (8.0, 8, 40), (30.0, 4, 9), (1e-6, 3, 3), (1.0, 1, 50)]
        {
            let p = summed(offered, servers, capacity);
            let solved = mmmk(offered / 0.2, 0.2, servers, capacity).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * (a.abs() + b.abs());
            let number: f64 = p.iter().enumerate().map(|(n, p)| n as f64 * p).sum();
            assert!(close(solved.blocking, p[capacity as usize]) && close(solved.empty, p[0]), "{solved:?} {p:?}");
            assert!(close(solved.number, number) && close(solved.response_time, number / solved.throughput));
            assert!(
                close(solved.throughput, offered / 0.2 * (1.0 - solved.blocking)),
                "every request that is not rejected is served"
            );
        }
    }

    #[test]
    fn without_room_to_wait_it_is_erlang_b() {
        assert!((mmmk(5.0, 1.0, 10, 10).unwrap().blocking - 0.018_384_570).abs() < 1e-9);
    }

    #[test]
    fn extreme_capacities_and_loads_are_solved() {
        let roomy = mmmk(0.8, 1.0, 1, u32::MAX).unwrap();
        assert!((roomy.number - 4.0).abs() < 1e-9 && roomy.blocking == 0.0, "{roomy:?}");
        let many = mmmk(9e5, 1.0, 1_000_000, 2_000_000).unwrap();
        assert!((many.number / 9e5 - 1.0).abs() < 1e-9, "{many:?}");
        let flooded = mmmk(1e9, 1.0, 3, 100).unwrap();
        assert!((flooded.throughput - 3.0).abs() < 1e-12 && (flooded.number - 100.0).abs() < 1e-6, "{flooded:?}");
        let idle = mmmk(0.0, 1.0, 3, 5).unwrap();
        assert_eq!((idle.empty, idle.number, idle.response_time, idle.wait), (1.0, 0.0, 1.0, 0.0));
    }

    #[test]
    fn invalid_parameters_are_an_error() {
        for (rate, service, servers, capacity) in
            [(-1.0, 1.0, 1, 1), (1.0, 0.0, 1, 1), (1.0, 1.0, 0, 1), (1.0, 1.0, 3, 2)]
        {
            assert!(mmmk(rate, service, servers, capacity).is_err());
        }
        assert!(mmmk(1e300, 1e300, 1, 1).is_err());
    }
}
