//! Converts the sessions of a profile to the sessions of a workload. New sessions arrive as a Poisson process, because
//! users start them independently (Paxson & Floyd 1995, §3). Each session has bursts of calls, separated by think
//! times.
//!
//! The distributions of the workload have the percentiles and the mean of the profile. Between percentiles, values are
//! interpolated linearly.

use brimful_core::Rate;
use brimful_core::profile::{Profile, Times};
use brimful_core::quantity::{count, number};
use brimful_core::workload::{BetweenBursts, SessionArrivals, Sessions, Spread};

/// Minimum number of sessions for an estimate of their number of requests.
const MIN_SESSIONS: u64 = 100;
/// Minimum mean number of requests per session. With a smaller mean, nearly all sessions are single requests.
const MIN_REQUESTS: f64 = 1.2;
/// Maximum median think time for which connections stay open between two page requests, in seconds. It is Apache's
/// default `KeepAliveTimeout`, after which the server closes an idle connection.
const KEEP_ALIVE_S: f64 = 5.0;
/// Maximum number of connections that a browser opens to one server.
const CONNECTIONS: u32 = 6;
/// Probability of the quantile that is added to the profile's percentiles. Its value is chosen so that the distribution
/// has the right mean.
const FITTED_QUANTILE: f64 = 0.999;

/// Returns user sessions for a workload with the traffic of the peak window, and the reason why calls can arrive in
/// sessions. The error is the reason why sessions cannot be used.
pub fn sessions(profile: &Profile) -> Result<(Sessions, String), String> {
    let Some(found) = &profile.sessions else { return Err("sessions were not looked for".to_owned()) };
    if found.sessions < MIN_SESSIONS {
        return Err(format!("{} sessions are too few to know their length by", count(found.sessions)));
    }
    if found.requests.mean < MIN_REQUESTS {
        return Err(format!("sessions have {} requests on average", number(found.requests.mean)));
    }
    if found.cut_short > found.sessions / 100 {
        return Err("too many sessions were open at once to follow each to its end".to_owned());
    }
    let median = found.think_s.percentiles.get("50").copied().unwrap_or(0.0);
    let rate = Rate(profile.peak.rate / found.requests.mean);
    if !(rate.0.is_finite() && rate.0 > 0.0) {
        return Err("the peak window has no rate".to_owned());
    }
    let session_arrivals = SessionArrivals::Open { rate, arrivals: "poisson".to_owned() };
    let sessions = Sessions {
        bursts: spread(&found.bursts, 1.0),
        calls_per_burst: spread(&found.requests_per_burst, 1.0),
        think_s: spread(&found.think_s, found.burst_gap_s),
        connections: CONNECTIONS,
        between_bursts: if median > KEEP_ALIVE_S { BetweenBursts::Close } else { BetweenBursts::Keep },
        in_progress: true,
        ..Sessions::with_arrivals(session_arrivals)
    };
    let why = format!(
        "the log has {} sessions of {} requests on average; new sessions are a Poisson process, like those of \
         independent users",
        count(found.sessions),
        number(found.requests.mean)
    );
    Ok((sessions, why))
}

/// A distribution with the percentiles and the mean of `times`, and no value below `least`.
fn spread(times: &Times, least: f64) -> Spread {
    let mean = times.mean.max(least);
    if times.samples == 0 || times.max <= least {
        return Spread::Constant(mean);
    }
    let mut points = vec![[0.0, least]];
    let known = times.percentiles.iter().filter_map(|(name, value)| Some([name.parse::<f64>().ok()? / 100.0, *value]));
    let mut known: Vec<[f64; 2]> = known.filter(|[share, _]| *share > 0.0 && *share < FITTED_QUANTILE).collect();
    known.sort_by(|a, b| a[0].total_cmp(&b[0]));
    for [share, value] in known {
        let before = points[points.len() - 1][1];
        points.push([share, value.clamp(before, times.max.max(before))]);
    }
    let [from, low] = points[points.len() - 1];
    // The added quantile must contribute the rest of the mean. Each quantile contributes half of the probability
    // between its two neighbours.
    let most = times.max.max(low);
    let rest = mean - mean_of(&points) - (FITTED_QUANTILE - from) * low / 2.0 - (1.0 - FITTED_QUANTILE) * most / 2.0;
    let rare = (2.0 * rest / (1.0 - from)).clamp(low, most);
    points.extend([[FITTED_QUANTILE, rare], [1.0, most]]);
    // The added quantile is limited by its neighbours, so the mean may still be wrong. All values are scaled to correct
    // it.
    let factor = (mean - least) / (mean_of(&points) - least);
    points.iter_mut().for_each(|point| point[1] = least + (point[1] - least) * factor);
    Spread::Quantiles(points)
}

/// The mean of a piecewise linear quantile function.
fn mean_of(points: &[[f64; 2]]) -> f64 {
    points.windows(2).map(|pair| (pair[1][0] - pair[0][0]) * (pair[0][1] + pair[1][1]) / 2.0).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::profile::{self, Peak};

    fn times(samples: u64, mean: f64, percentiles: &[(&str, f64)], max: f64) -> Times {
        let percentiles = percentiles.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Times { samples, mean, scv: 1.0, percentiles, max }
    }

    fn a_profile() -> Profile {
        let sessions = profile::Sessions {
            gap_s: 1800.0,
            burst_gap_s: 1.0,
            sessions: 1_000,
            rate: 0.1,
            requests: times(1_000, 8.0, &[], 300.0),
            bursts: times(1_000, 2.5, &[("50", 1.0), ("90", 5.0), ("95", 9.0), ("99", 20.0)], 80.0),
            requests_per_burst: times(2_500, 3.2, &[("50", 2.0), ("90", 8.0), ("95", 11.0), ("99", 20.0)], 50.0),
            think_s: times(1_500, 60.0, &[("50", 20.0), ("90", 150.0), ("95", 300.0), ("99", 700.0)], 1_799.0),
            ..profile::Sessions::default()
        };
        Profile { sessions: Some(sessions), peak: Peak { rate: 16.0, ..Peak::default() }, ..Profile::default() }
    }

    #[test]
    fn its_sessions_have_their_rate_and_their_means() {
        let (made, why) = sessions(&a_profile()).unwrap();
        assert_eq!(made.session_arrivals, SessionArrivals::Open { rate: Rate(2.0), arrivals: "poisson".to_owned() });
        assert!(made.in_progress && made.between_bursts == BetweenBursts::Close);
        for (spread, mean, least) in
            [(&made.bursts, 2.5, 1.0), (&made.calls_per_burst, 3.2, 1.0), (&made.think_s, 60.0, 1.0)]
        {
            let Spread::Quantiles(points) = spread else { panic!("{spread:?}") };
            assert!((mean_of(points) / mean - 1.0).abs() < 1e-9, "{points:?}");
            assert!((spread.mean() / mean - 1.0).abs() < 1e-9, "{points:?}");
            assert_eq!((points[0], points[points.len() - 1][0]), ([0.0, least], 1.0));
            assert!(points.is_sorted_by(|a, b| a[0] < b[0] && a[1] <= b[1]), "{points:?}");
        }
        assert!(why.contains("1,000 sessions of 8.00 requests"), "{why}");
    }

    #[test]
    fn short_thoughts_leave_connections_open() {
        let mut profile = a_profile();
        let found = profile.sessions.as_mut().unwrap();
        found.think_s = times(1_500, 3.0, &[("50", 2.0), ("90", 5.0)], 30.0);
        found.bursts = times(1_000, 1.0, &[("50", 1.0)], 1.0);
        let (made, _) = sessions(&profile).unwrap();
        assert_eq!((made.between_bursts, made.bursts), (BetweenBursts::Keep, Spread::Constant(1.0)));
    }

    #[test]
    fn what_is_no_session_makes_none() {
        let refused = |change: fn(&mut profile::Sessions)| {
            let mut profile = a_profile();
            change(profile.sessions.as_mut().unwrap());
            sessions(&profile).unwrap_err()
        };
        assert!(refused(|found| found.sessions = 99).contains("too few"));
        assert!(refused(|found| found.requests.mean = 1.1).contains("requests on average"));
        assert!(refused(|found| found.cut_short = 11).contains("too many"));
        assert!(sessions(&Profile::default()).unwrap_err().contains("not looked for"));
    }
}
