//! What is out of the ordinary in a profile: the few facts that somebody would want to be told first.
//!
//! The thresholds are where a fact begins to change what one does with the figures: 1 % of lines that cannot be read,
//! 1 % of answers that are the server's failures, variances that a plan for Poisson arrivals is too small for.

use brimful_core::profile::Profile;
use brimful_core::quantity::{count, number, percent};

/// So many facts are told.
const MOST: usize = 3;
const MALFORMED: f64 = 0.01;
const SERVER_ERRORS: f64 = 0.01;
const CLIENT_ERRORS: f64 = 0.10;
const ROBOTS: f64 = 0.10;
/// Of Poisson arrivals the index of dispersion is 1.
const DISPERSION: f64 = 1.5;
/// Without long-range dependence H is 0.5.
const HURST: f64 = 0.6;
/// From here on down the variance of sizes has no bound.
const TAIL: f64 = 2.0;
/// What ten URLs get of all requests.
const CONCENTRATION: f64 = 0.5;

/// The first of them, or that there is nothing.
pub(super) fn text(profile: &Profile) -> String {
    let facts = [
        unread(profile),
        malformed(profile),
        errors(profile, '5', SERVER_ERRORS),
        errors(profile, '4', CLIENT_ERRORS),
        bursts(profile),
        long_range(profile),
        tail(profile),
        robots(profile),
        concentration(profile),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().take(MOST).collect();
    if facts.is_empty() { "nothing out of the ordinary".to_owned() } else { facts.join("; ") }
}

fn unread(profile: &Profile) -> Option<String> {
    let cut = profile.sources.iter().filter(|source| source.cut_short.is_some()).count();
    let all = profile.sources.len();
    (cut > 0).then(|| format!("{cut} of {all} sources could not be read to the end"))
}

fn malformed(profile: &Profile) -> Option<String> {
    let share = share(profile.lines.malformed, profile.lines.read)?;
    (share >= MALFORMED).then(|| format!("{} of the lines are malformed", percent(share)))
}

fn errors(profile: &Profile, hundred: char, from: f64) -> Option<String> {
    let of_hundred = profile.status.iter().filter(|(status, _)| status.len() == 3 && status.starts_with(hundred));
    let errors = of_hundred.fold(0_u64, |sum, (_, n)| sum.saturating_add(*n));
    let share = share(errors, profile.requests)?;
    (share >= from).then(|| format!("{} of the answers are {hundred}xx", percent(share)))
}

/// The shortest epoch at which arrivals are surely more variable than Poisson's.
fn bursts(profile: &Profile) -> Option<String> {
    let burst = profile.dispersion.iter().find(|dispersion| dispersion.interval95[0] > DISPERSION)?;
    let (index, epoch) = (number(burst.index), super::lasting(burst.epoch_s));
    Some(format!("arrivals come in bursts: their variance in {epoch} is {index} times that of Poisson arrivals"))
}

fn long_range(profile: &Profile) -> Option<String> {
    let hurst = profile.hurst.filter(|hurst| hurst.interval95[0] > HURST)?;
    Some(format!("bursts on all scales (H {})", number(hurst.value)))
}

fn tail(profile: &Profile) -> Option<String> {
    let tail = profile.sizes.tail.filter(|tail| tail.interval95[1] < TAIL)?;
    Some(format!("sizes have a heavy tail (index {})", number(tail.index)))
}

fn robots(profile: &Profile) -> Option<String> {
    // Under another policy they are no part of the requests.
    let all = match profile.robots.policy.as_str() {
        "keep" => profile.requests,
        _ => profile.requests.saturating_add(profile.robots.requests),
    };
    let share = share(profile.robots.requests, all)?;
    (share >= ROBOTS && profile.robots.policy != "only")
        .then(|| format!("robots make {} of the requests", percent(share)))
}

fn concentration(profile: &Profile) -> Option<String> {
    let (urls, share) = profile.popularity.concentration.iter().find(|(urls, _)| *urls == 10)?;
    (*share >= CONCENTRATION && profile.unique_urls > 20)
        .then(|| format!("{} URLs get {} of the requests", count(*urls), percent(*share)))
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
