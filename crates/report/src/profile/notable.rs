//! Unusual metrics of a traffic profile, which the report mentions at its beginning.

use crate::thresholds::NOTABLE_ERRORS;
use brimful_core::profile::Profile;
use brimful_core::quantity::{count, number, percent};

/// Maximum number of unusual metrics that the report mentions.
const MAX_FACTS: usize = 3;
/// Minimum share of malformed lines that the report mentions. From this share on, too many requests are missing in the
/// profile's metrics.
const NOTABLE_MALFORMED: f64 = 0.01;
/// Minimum share of responses with a client error (4xx) that the report mentions.
const NOTABLE_CLIENT_ERRORS: f64 = 0.10;
/// Minimum share of requests from robots that the report mentions.
const NOTABLE_ROBOTS: f64 = 0.10;
/// Minimum index of dispersion of arrivals that the report mentions. Poisson arrivals have an index of 1. Above this
/// value, a plan that assumes Poisson arrivals provides too little capacity.
const NOTABLE_DISPERSION: f64 = 1.5;
/// Minimum Hurst parameter of arrivals that the report mentions. A value of 0.5 means no long-range dependence.
const NOTABLE_HURST: f64 = 0.6;
/// Tail index below which a heavy-tailed distribution has infinite variance.
const FINITE_VARIANCE_TAIL: f64 = 2.0;
/// Minimum share of requests to the ten most popular URLs that the report mentions.
const NOTABLE_CONCENTRATION: f64 = 0.5;

/// Names the first unusual metrics, or says that there are none.
pub(super) fn text(profile: &Profile) -> String {
    let facts = [
        unread(profile),
        malformed(profile),
        errors(profile, '5', NOTABLE_ERRORS),
        errors(profile, '4', NOTABLE_CLIENT_ERRORS),
        bursts(profile),
        long_range(profile),
        tail(profile),
        robots(profile),
        concentration(profile),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().take(MAX_FACTS).collect();
    if facts.is_empty() { "nothing out of the ordinary".to_owned() } else { facts.join("; ") }
}

fn unread(profile: &Profile) -> Option<String> {
    let cut = profile.sources.iter().filter(|source| source.cut_short.is_some()).count();
    let all = profile.sources.len();
    (cut > 0).then(|| format!("{cut} of {all} sources could not be read to the end"))
}

fn malformed(profile: &Profile) -> Option<String> {
    let share = share(profile.lines.malformed, profile.lines.read)?;
    (share >= NOTABLE_MALFORMED).then(|| format!("{} of the lines are malformed", percent(share)))
}

fn errors(profile: &Profile, hundred: char, from: f64) -> Option<String> {
    let of_hundred = profile.status.iter().filter(|(status, _)| status.len() == 3 && status.starts_with(hundred));
    let errors = of_hundred.fold(0_u64, |sum, (_, n)| sum.saturating_add(*n));
    let share = share(errors, profile.requests)?;
    (share >= from).then(|| format!("{} of the answers are {hundred}xx", percent(share)))
}

/// Names the shortest time scale on which arrivals vary significantly more than Poisson arrivals.
fn bursts(profile: &Profile) -> Option<String> {
    let burst = profile.dispersion.iter().find(|dispersion| dispersion.interval95[0] > NOTABLE_DISPERSION)?;
    let (index, epoch) = (number(burst.index), super::lasting(burst.epoch_s));
    Some(format!("arrivals come in bursts: their variance in {epoch} is {index} times that of Poisson arrivals"))
}

fn long_range(profile: &Profile) -> Option<String> {
    let hurst = profile.hurst.filter(|hurst| hurst.interval95[0] > NOTABLE_HURST)?;
    Some(format!("bursts on all scales (H {})", number(hurst.value)))
}

fn tail(profile: &Profile) -> Option<String> {
    let tail = profile.sizes.tail.filter(|tail| tail.interval95[1] < FINITE_VARIANCE_TAIL)?;
    Some(format!("sizes have a heavy tail (index {})", number(tail.index)))
}

fn robots(profile: &Profile) -> Option<String> {
    // With the policy `drop`, the profile's number of requests does not include those of robots. With `only`, it
    // includes nothing else, so the share is left out.
    let all = match profile.robots.policy.as_str() {
        "keep" => profile.requests,
        _ => profile.requests.saturating_add(profile.robots.requests),
    };
    let share = share(profile.robots.requests, all)?;
    (share >= NOTABLE_ROBOTS && profile.robots.policy != "only")
        .then(|| format!("robots make {} of the requests", percent(share)))
}

fn concentration(profile: &Profile) -> Option<String> {
    let (urls, share) = profile.popularity.concentration.iter().find(|(urls, _)| *urls == 10)?;
    (*share >= NOTABLE_CONCENTRATION && profile.unique_urls > 20)
        .then(|| format!("{} URLs get {} of the requests", count(*urls), percent(*share)))
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
