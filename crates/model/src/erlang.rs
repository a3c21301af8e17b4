//! M/M/m: waiting times for one of m servers (A. K. Erlang, 1917).
//!
//! `offered` is the offered load a = λ·S in erlangs: the mean number of busy servers. There is no steady state for a ≥
//! m.

/// Probability that an arriving request must wait in M/M/m (Erlang's C formula). It is 0 without load, and 1 at or
/// above saturation.
pub fn erlang_c(servers: u32, offered: f64) -> f64 {
    if offered <= 0.0 {
        return 0.0;
    }
    let rho = offered / f64::from(servers);
    if rho < 1.0 {
        let b = erlang_b(servers, offered);
        b / ((1.0 - rho) + rho * b)
    } else {
        1.0
    }
}

/// Mean wait in M/M/m in seconds. Background work uses the share `background` of the servers' capacity. The wait is
/// infinite at or above saturation.
pub fn mmm_wait(arrival_rate: f64, mean_service: f64, servers: u32, background: f64) -> f64 {
    let service = mean_service / (1.0 - background);
    let rho = arrival_rate * service / f64::from(servers);
    if rho < 1.0 { service * wait_per_service(servers, rho) } else { f64::INFINITY }
}

/// Ratio of the mean wait in M/M/m to the mean service time, at utilization `rho` < 1.
pub(crate) fn wait_per_service(servers: u32, rho: f64) -> f64 {
    let m = f64::from(servers);
    erlang_c(servers, rho * m) / (m * (1.0 - rho))
}

/// Blocking probability B of M/M/m/m, for an offered load a > 0.
///
/// The recurrence 1/B(k) = 1 + (k/a)·1/B(k−1) is expanded into a sum: 1/B(m) = Σ_j Π_{i<j} (m − i)/a. All terms are
/// positive, so no digits cancel. The terms rise and then fall, so the sum ends after about √m terms instead of m. If
/// the sum overflows, B is practically zero.
fn erlang_b(servers: u32, offered: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for free in (1..=servers).rev() {
        term *= f64::from(free) / offered;
        sum += term;
        if term < 1e-20 * sum || sum.is_infinite() {
            break;
        }
    }
    1.0 / sum
}

/// Mean wait in seconds at a first-come-first-served station where each class has exponential service times with a mean
/// of its own. This is the wait of M/M/m times a factor for the unequal means (Lee & Longton 1959; exact for one
/// server).
///
/// `rates` are the arrival rates λ per second, and `demands` the demands D in seconds, by class. Background work uses
/// the share `background` (0..1) of the capacity. The wait is infinite at saturation.
pub fn exponential_wait(rates: &[f64], demands: &[f64], servers: u32, background: f64) -> f64 {
    let moment = |k: i32| rates.iter().zip(demands).map(|(rate, demand)| rate * demand.powi(k)).sum::<f64>();
    let rate = moment(0);
    let work = moment(1);
    if work <= 0.0 {
        return 0.0;
    }
    mmm_wait(rate, work / rate, servers, background) * (rate * moment(2) / work.powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_recurrence(servers: u32, offered: f64) -> f64 {
        (1..=servers).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b))
    }

    #[test]
    fn agrees_with_the_recurrence_from_one_server_to_thousands() {
        for servers in [1, 2, 3, 8, 64, 300, 1000, 5000, 20_000] {
            for rho in [1e-9, 0.01, 0.3, 0.8, 0.97, 0.999, 0.999_999] {
                let offered = rho * f64::from(servers);
                let (ours, theirs) = (erlang_b(servers, offered), by_recurrence(servers, offered));
                let close = (ours - theirs).abs() <= 1e-11 * theirs || theirs < 1e-290;
                assert!(close, "m {servers} rho {rho}: {ours} {theirs}");
            }
        }
    }

    #[test]
    fn known_values() {
        // Published tables: the blocking probability B(m, a), and the probability of waiting C(m, a), of m servers at
        // the offered load a.
        assert!((erlang_b(10, 5.0) - 0.018_384_570).abs() < 1e-9);
        assert!((erlang_c(10, 8.0) - 0.409_180_2).abs() < 1e-7);
        assert_eq!(erlang_c(1, 0.7), 0.7);
    }

    #[test]
    fn extreme_loads_and_numbers_of_servers_are_handled() {
        assert_eq!(erlang_c(4, 0.0), 0.0);
        assert_eq!(erlang_c(4, 4.0), 1.0);
        assert_eq!(erlang_c(0, 1.0), 1.0);
        assert_eq!(erlang_c(3, f64::MIN_POSITIVE), 0.0);
        assert_eq!(mmm_wait(10.0, 0.1, 1, 0.0), f64::INFINITY);
        assert_eq!(mmm_wait(1.0, 0.1, 0, 0.0), f64::INFINITY);
        assert_eq!(mmm_wait(1.0, 0.1, 1, 1.0), f64::INFINITY);
    }

    #[test]
    fn billions_of_servers_take_no_time() {
        let c = erlang_c(u32::MAX, 0.999_99 * f64::from(u32::MAX));
        assert!((0.0..1.0).contains(&c));
    }

    #[test]
    fn background_work_slows_the_servers() {
        assert_eq!(mmm_wait(3.0, 0.1, 2, 0.5), mmm_wait(3.0, 0.2, 2, 0.0));
    }
}
