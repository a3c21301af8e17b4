//! Converts a profile into a `Workload` with the same traffic. The workload has the same classes with their shares, and
//! their most popular URLs with the sizes of the responses. Calls arrive in user sessions, at the rate of the peak
//! window. If the log does not distinguish users, calls arrive by an arrival process with the same bursts.
//!
//! For a response without a body, the workload has a request that any server answers without a body. For 304 (Not
//! Modified), the request has `If-None-Match: *`. For HEAD, the method is HEAD. For 404 (Not Found), the path does not
//! exist.

pub mod arrivals;
mod sessions;

use crate::LogError;
use crate::profile::EMPTY_CLASS;
use arrivals::{FittedArrivals, fit};
use brimful_core::Rate;
use brimful_core::profile::{LogClass as ProfileClass, PopularUrl, Profile};
use brimful_core::url::encode_non_ascii;
use brimful_core::workload::{Load, RequestClass, Url, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of URLs that a request class lists.
const URLS: usize = 200;
/// Maximum number of synthetic URLs in a class. They represent the URLs that the profile does not list.
const MAX_OTHER_URLS: u64 = 100;
/// Minimum share of unlisted URLs in the requests of a class for which the class gets synthetic URLs.
const MIN_OTHER_SHARE: f64 = 0.01;
/// Minimum share of all requests for which responses without a body form a separate class.
const MIN_CLASS_SHARE: f64 = 0.005;
/// Directory of the synthetic URLs, which represent the URLs that the profile does not list.
const SYNTHETIC: &str = "/brimful";
/// A path that does not exist on the server.
const ABSENT: &str = "/brimful/absent";

/// The way in which the calls of a workload arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArrivalChoice {
    /// Calls arrive in user sessions if the log has enough sessions, otherwise one by one.
    #[default]
    Auto,
    /// Calls arrive in user sessions.
    Sessions,
    /// Calls arrive one by one, by an arrival process with the same bursts as the log.
    Requests,
}

/// A workload that was generated from a profile of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedWorkload {
    /// The workload document.
    pub workload: Workload,
    /// A sentence that explains why calls arrive in user sessions, or why they arrive one by one.
    pub arrivals_reason: String,
}

/// Creates a workload with the traffic of a profile's peak window.
///
/// # Errors
/// Returns [`LogError::NoRequests`] if the window has no URL that can be requested, or if `choice` requires sessions
/// but the sessions of the profile cannot be used.
pub fn workload(profile: &Profile, choice: ArrivalChoice) -> Result<GeneratedWorkload, LogError> {
    let mut names = BTreeSet::new();
    let mut classes: Vec<RequestClass> = Vec::new();
    for seen in profile.classes.iter().filter(|class| class.share_requests > 0.0) {
        let made = if seen.name == EMPTY_CLASS { without_body(profile, seen) } else { vec![with_body(seen)] };
        classes.extend(made.into_iter().filter(|class| names.insert(class.name.clone())));
    }
    if classes.is_empty() {
        return Err(LogError::NoRequests(
            "the peak window has no request that a load could be made of: choose another one with --peak".to_owned(),
        ));
    }
    let (load, arrivals_reason) = load(profile, choice)?;
    Ok(GeneratedWorkload { workload: Workload { classes, load: Some(load), tls: None }, arrivals_reason })
}

fn load(profile: &Profile, choice: ArrivalChoice) -> Result<(Load, String), LogError> {
    let lacking = match (choice, sessions::sessions(profile)) {
        (ArrivalChoice::Auto | ArrivalChoice::Sessions, Ok((found, why))) => return Ok((Load::Sessions(found), why)),
        (ArrivalChoice::Sessions, Err(why)) => return Err(LogError::NoRequests(format!("no load of sessions: {why}"))),
        (ArrivalChoice::Auto, Err(why)) => format!("; no sessions: {why}"),
        (ArrivalChoice::Requests, _) => String::new(),
    };
    let FittedArrivals { arrivals, reason } = fit(profile);
    Ok((Load::Open { rate: Rate(profile.peak.rate), arrivals }, reason + &lacking))
}

/// Creates a request class from the responses with a body. It uses only GET, because other methods change data on most
/// servers.
fn with_body(seen: &ProfileClass) -> RequestClass {
    let urls = seen.urls.iter().filter(|url| url.method.is_empty() || url.method == "GET").take(URLS);
    let mut found: Vec<Url> = urls.enumerate().map(|(index, url)| requested(seen, index, url)).collect();
    let others = others(seen, &found);
    found.extend(others);
    RequestClass { urls: found, ..class(&seen.name, seen.share_requests) }
}

/// Synthetic URLs that represent the unlisted URLs of a class. Their size is chosen so that the class keeps its mean
/// size.
fn others(seen: &ProfileClass, listed: &[Url]) -> Vec<Url> {
    let bytes_of = |url: &Url| url.weight * url.bytes.unwrap_or(0) as f64;
    let left = seen.requests as f64 - listed.iter().map(|url| url.weight).sum::<f64>();
    if !listed.is_empty() && left < MIN_OTHER_SHARE * seen.requests as f64 {
        return Vec::new();
    }
    let bytes = (seen.requests as f64 * seen.mean_bytes - listed.iter().map(bytes_of).sum::<f64>()) / left;
    let [least, most] = seen.bytes_range;
    let bytes = if bytes.is_finite() { bytes } else { seen.mean_bytes };
    let bytes = (bytes.round().max(0.0) as u64).clamp(least.min(most), most.max(least));
    let unlisted = seen.unique_urls.saturating_sub(listed.len() as u64).clamp(1, MAX_OTHER_URLS);
    let weight = if left > 0.0 { left / unlisted as f64 } else { 1.0 };
    let path = |index: u64| format!("{SYNTHETIC}/{}/other-{index}", seen.name);
    (0..unlisted).map(|index| Url { path: path(index), weight, bytes: Some(bytes) }).collect()
}

/// The URL to request for a logged URL of a class. It has the logged path, or a synthetic path if the logged path
/// cannot be requested.
fn requested(seen: &ProfileClass, index: usize, url: &PopularUrl) -> Url {
    let path = requestable_path(&url.url).unwrap_or_else(|| format!("{SYNTHETIC}/{}/{index}", seen.name));
    Url { path, weight: url.requests as f64, bytes: Some(url.mean_bytes.round() as u64) }
}

/// The URL in the form in which it can be requested; `None` if this is impossible. Non-ASCII bytes, which logs contain
/// unchanged or escaped like `\xC3`, are percent-encoded.
fn requestable_path(url: &str) -> Option<String> {
    let mut parts = url.split("\\x");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits =
            part.get(..2).filter(|digits| u8::from_str_radix(digits, 16).is_ok_and(|byte| !byte.is_ascii()))?;
        plain.push('%');
        plain.push_str(&digits.to_ascii_uppercase());
        plain.push_str(part.get(2..).unwrap_or_default());
    }
    // A replacement character (U+FFFD) shows that bytes of the URL that were not UTF-8 are lost. So the URL cannot be
    // requested.
    let encoded = encode_non_ascii(&plain);
    (is_requestable(&encoded) && !url.contains(char::REPLACEMENT_CHARACTER)).then(|| encoded.into_owned())
}

/// Whether a URL is a plain path that begins with a slash and does not leave the root.
fn is_requestable(url: &str) -> bool {
    let path = url.split('?').next().unwrap_or_default();
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'#'));
    let goes_down = !path.split('/').any(|part| part == ".." || part == ".") && !path.contains("//");
    url.starts_with('/') && is_plain && goes_down && !path.contains('\0') && path.len() < 1024
}

/// Creates the classes of responses without a body: for HEAD, for 404, and for all other reasons.
fn without_body(profile: &Profile, seen: &ProfileClass) -> Vec<RequestClass> {
    let all: u64 = profile.zero_length.values().sum();
    let share = |reason: &str| profile.zero_length.get(reason).map_or(0.0, |n| *n as f64 / all.max(1) as f64);
    let head = share("head");
    let absent = share("not_found");
    let is_rare = |share: f64| share * seen.share_requests < MIN_CLASS_SHARE;
    let mut made = Vec::new();
    let mut rest = 1.0;
    if !is_rare(head) {
        rest -= head;
        let head = class("empty-head", seen.share_requests * head);
        made.push(RequestClass { method: "HEAD".to_owned(), urls: existing(seen, "head"), ..head });
    }
    if !is_rare(absent) {
        rest -= absent;
        made.push(RequestClass { path: ABSENT.to_owned(), ..class("empty-not-found", seen.share_requests * absent) });
    }
    if rest > 1e-9 {
        let unchanged = class("empty-not-modified", seen.share_requests * rest);
        let headers = BTreeMap::from([("If-None-Match".to_owned(), "*".to_owned())]);
        made.push(RequestClass { headers, urls: existing(seen, "not-modified"), ..unchanged });
    }
    made
}

/// The listed URLs of a class with their weights, for requests that need an existing file of any size.
fn existing(seen: &ProfileClass, name: &str) -> Vec<Url> {
    let urls = seen.urls.iter().filter_map(|url| Some((requestable_path(&url.url)?, url.requests))).take(URLS);
    let mut found: Vec<Url> = urls.map(|(path, requests)| Url { path, weight: requests as f64, bytes: None }).collect();
    if found.is_empty() {
        found.push(Url { path: format!("{SYNTHETIC}/{name}"), weight: 1.0, bytes: Some(1) });
    }
    found
}

fn class(name: &str, weight: f64) -> RequestClass {
    let mut classes = Workload::single_class("GET", "").classes;
    let class = classes.remove(0);
    RequestClass { name: name.to_owned(), weight, ..class }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::profile::Peak;

    fn url(url: &str, requests: u64, mean_bytes: f64) -> PopularUrl {
        PopularUrl { url: url.to_owned(), method: "GET".to_owned(), requests, mean_bytes, ..PopularUrl::default() }
    }

    fn profile() -> Profile {
        let empty = ProfileClass {
            name: EMPTY_CLASS.to_owned(),
            share_requests: 0.4,
            urls: vec![url("/a", 30, 0.0), url("/gone", 10, 0.0)],
            ..ProfileClass::default()
        };
        let small = ProfileClass {
            name: "1-500".to_owned(),
            requests: 61,
            share_requests: 0.6,
            mean_bytes: 197.0,
            bytes_range: [5, 500],
            urls: vec![url("/a", 40, 210.4), url("/x y\u{1b}[2J", 20, 180.0), url("/../etc/passwd", 1, 5.0)],
            ..ProfileClass::default()
        };
        Profile {
            classes: vec![empty, small],
            zero_length: [("not_modified".to_owned(), 30), ("not_found".to_owned(), 10)].into(),
            peak: Peak { rate: 12.5, seconds: 3600, ..Peak::default() },
            ..Profile::default()
        }
    }

    #[test]
    fn its_workload_has_the_mix_the_urls_and_the_sizes() {
        let chosen = workload(&profile(), ArrivalChoice::Auto).unwrap();
        let made = chosen.workload;
        assert_eq!(made.validate(), Ok(()));
        let names: Vec<(&str, f64)> = made.classes.iter().map(|class| (class.name.as_str(), class.weight)).collect();
        let near = |(name, weight): (&str, f64), other: &str, is: f64| name == other && (weight - is).abs() < 1e-12;
        assert!(near(names[0], "empty-not-found", 0.1) && near(names[1], "empty-not-modified", 0.3), "{names:?}");
        assert_eq!(names[2], ("1-500", 0.6));
        assert_eq!(made.classes[2].urls[0], Url { path: "/a".to_owned(), weight: 40.0, bytes: Some(210) });
        let paths: Vec<&str> = made.classes[2].urls.iter().map(|url| url.path.as_str()).collect();
        assert_eq!(
            paths,
            ["/a", "/brimful/1-500/1", "/brimful/1-500/2"],
            "URLs that cannot be requested are replaced by synthetic ones"
        );
        assert!(matches!(made.load, Some(Load::Open { rate, .. }) if rate.0 == 12.5));
        let written = toml::to_string(&made).unwrap();
        assert_eq!(toml::from_str::<Workload>(&written).unwrap(), made);
    }

    #[test]
    fn urls_that_are_not_ascii_are_requested_percent_encoded() {
        for (url, expected) in [
            ("/ü?q=ß", Some("/%C3%BC?q=%C3%9F")),
            (r"/\xC3\xBC?q=\xc3\x9f", Some("/%C3%BC?q=%C3%9F")),
            ("/%C3%BC", Some("/%C3%BC")),
            (r"/\x22", None),
            (r"/\xC", None),
            ("/\u{fffd}", None),
            ("/a b", None),
        ] {
            assert_eq!(requestable_path(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn of_nothing_no_load_is_made() {
        let error = workload(&Profile::default(), ArrivalChoice::Auto).unwrap_err();
        assert!(error.to_string().contains("--peak"));
        let error = workload(&profile(), ArrivalChoice::Sessions).unwrap_err();
        assert!(error.to_string().contains("no load of sessions"), "{error}");
    }
}
