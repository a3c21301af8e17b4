//! The part of a profile's report about requests and responses: status codes, methods, sizes, classes, URLs and robots.

use super::{apart, foreign, foreign_words, said};
use crate::format::{figure, interval, narrow, number as known, shorten, table, words};
use brimful_core::profile::{LogClass, PopularUrl, Profile, Sizes};
use brimful_core::quantity::{bytes, count, number, percent, small_percent};
use std::collections::BTreeMap;

/// Maximum number of entries in a list of shares. All further entries are combined.
const MAX_COUNTS: usize = 8;
/// Maximum number of URLs that the report lists.
const MAX_URLS: usize = 10;

/// Describes status codes, methods, sizes, and responses without a body.
pub(super) fn text(profile: &Profile) -> String {
    let all = profile.requests;
    let none = |status: &str| if status == "0" { "none".to_owned() } else { foreign(status, 20) };
    let named = |name: &str| foreign(name, 20);
    let reason = |name: &str| foreign(&name.replace('_', " "), 20);
    let empty = profile.zero_length.values().fold(0_u64, |sum, n| sum.saturating_add(*n));
    let mut text = String::new();
    if !profile.status.is_empty() {
        text += &said("status", &shares(&profile.status, all, none));
    }
    if !profile.methods.is_empty() {
        text += &said("methods", &shares(&profile.methods, all, named));
    }
    if profile.sizes.responses > 0 {
        text += &sizes(&profile.sizes);
    }
    if empty > 0 {
        let share = percent(empty as f64 / all.max(1) as f64);
        text += &said("no body", &format!("{share} of the answers: {}", shares(&profile.zero_length, all, reason)));
    }
    text + &robots(profile)
}

/// Lists each count as a share of `all`, the largest first: `200 85.1 %, 304 10.2 %`.
fn shares(counts: &BTreeMap<String, u64>, all: u64, name: impl Fn(&str) -> String) -> String {
    let mut sorted: Vec<(&String, &u64)> = counts.iter().collect();
    sorted.sort_by_key(|(name, n)| (std::cmp::Reverse(**n), *name));
    let share = |n: u64| {
        let share = n as f64 / all.max(1) as f64;
        if share < 0.001 && n > 0 { count(n) + "×" } else { percent(share) }
    };
    let mut shown: Vec<String> =
        sorted.iter().take(MAX_COUNTS).map(|(key, n)| format!("{} {}", name(key), share(**n))).collect();
    let rest = sorted.iter().skip(MAX_COUNTS).fold(0_u64, |sum, (_, n)| sum.saturating_add(**n));
    if rest > 0 {
        shown.push(format!("others {}", share(rest)));
    }
    shown.join(", ")
}

fn sizes(sizes: &Sizes) -> String {
    let mut percentiles: Vec<(f64, f64)> =
        sizes.percentiles.iter().filter_map(|(of, size)| Some((of.parse().ok()?, *size))).collect();
    percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    let shown: Vec<String> = percentiles.iter().map(|(of, size)| format!("{of} % {}", bytes(*size))).collect();
    let what = format!(
        "mean {}, {}, largest {}; of {} answers with a body",
        bytes(sizes.mean),
        shown.join(", "),
        bytes(sizes.max as f64),
        count(sizes.responses)
    );
    let tail = sizes.tail.map(|tail| {
        let [low, high] = tail.interval95;
        let means = match tail.index {
            index if index <= 1.0 => "neither mean nor variance has a bound",
            index if index < 2.0 => "the variance has no bound",
            _ => "mean and variance have bounds",
        };
        let (from, n) = (bytes(tail.from_bytes as f64), count(tail.responses));
        let index = number(tail.index);
        said("tail", &format!("index {index} ({}) from {from} on, {n} answers: {means}", interval(low, high, known)))
    });
    said("sizes", &what) + &tail.unwrap_or_default()
}

fn robots(profile: &Profile) -> String {
    let robots = &profile.robots;
    let done = match robots.policy.as_str() {
        "drop" => "left out",
        "only" => "all that this is about",
        _ => "kept, --robots drop leaves them out",
    };
    if robots.requests == 0 && robots.policy != "only" {
        return String::new();
    }
    said("robots", &format!("{} requests, {}; {done}", count(robots.requests), bytes(robots.bytes as f64)))
}

/// A table of the request classes, as in Table 1 of Menascé et al. (1999).
pub(super) fn classes(profile: &Profile) -> String {
    if profile.classes.is_empty() {
        return String::new();
    }
    let columns = vec![
        words("class", 0),
        words("range", 2),
        figure("requests", 2, None),
        figure("data", 2, None),
        figure("mean", 2, None),
        figure("scv", 2, None),
        figure("URLs", 2, None),
        figure("service", 2, None),
        words("derived from", 2),
    ];
    let row = |class: &LogClass| {
        vec![
            foreign(&class.name, 20),
            foreign(&class.range, 24),
            percent(class.share_requests),
            percent(class.share_bytes),
            bytes(class.mean_bytes),
            number(class.bytes_scv),
            count(class.unique_urls),
            crate::format::seconds(class.mean_service_s),
            foreign(&class.derived_from, 24),
        ]
    };
    let table = narrow(columns, profile.classes.iter().map(row).collect(), &["service", "scv", "URLs"]);
    let by = foreign_words(&profile.classes_by);
    table + &if by.is_empty() { String::new() } else { said("classes", &by) }
}

/// Describes how many of the requests go to the most popular URLs, and lists these URLs.
pub(super) fn popularity(profile: &Profile) -> String {
    let popularity = &profile.popularity;
    let mut text = String::new();
    if profile.unique_urls.max(profile.unique_clients) > 0 {
        let (urls, clients) = (count(profile.unique_urls), count(profile.unique_clients));
        let error = small_percent(profile.unique_error);
        text += &said("distinct", &format!("{urls} URLs, {clients} clients (standard error {error})"));
    }
    let zipf = popularity.zipf.map(|s| {
        let fit = popularity.zipf_fit.map_or(String::new(), |fit| format!(" (R² {})", number(fit)));
        format!("the n-th URL is asked for as n^−{}{fit}", number(s))
    });
    let (urls_counted, shares): (Vec<String>, Vec<String>) =
        popularity.concentration.iter().map(|(urls, share)| (count(*urls), percent(*share))).unzip();
    let first = format!("the first {} have {} of the requests", urls_counted.join(", "), shares.join(", "));
    let first = Some(first).filter(|_| !shares.is_empty());
    let facts: Vec<String> = [zipf, first].into_iter().flatten().collect();
    if !facts.is_empty() {
        text += &said("popularity", &facts.join("; "));
    }
    apart([text, urls(&popularity.urls, profile.requests)])
}

fn urls(urls: &[PopularUrl], requests: u64) -> String {
    if urls.is_empty() {
        return String::new();
    }
    let columns = [
        figure("requests", 0, None),
        figure("±", 1, None),
        figure("share", 2, None),
        figure("mean", 2, None),
        words("URL", 2),
    ];
    let row = |url: &PopularUrl| {
        let asked =
            if url.method.is_empty() || url.method == "GET" { String::new() } else { foreign(&url.method, 10) + " " };
        let error = if url.requests_error == 0 { String::new() } else { count(url.requests_error) };
        vec![
            count(url.requests),
            error,
            percent(url.requests as f64 / requests.max(1) as f64),
            bytes(url.mean_bytes),
            asked + &shorten(&brimful_core::text::one_line(&url.url), 48),
        ]
    };
    table(&columns, &urls.iter().take(MAX_URLS).map(row).collect::<Vec<_>>())
}
