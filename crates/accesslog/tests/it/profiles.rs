//! Tests profiles of traffic with known parameters, of unusual traffic, and of real logs.

use brimful_accesslog::detect::Formats;
use brimful_accesslog::profile::{ClassBy, Options, Profiler, RobotFilter};
use brimful_accesslog::read::{EntryDecision, ReadOptions, ReadSummary, read};
use brimful_accesslog::{Entry, LogError};
use brimful_core::profile::{Lines, Profile};
use jiff::tz::TimeZone;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, LogNormal, Pareto, Zipf};
use rand_pcg::Pcg64;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// 2024-03-04, a Monday, 00:00 UTC.
const MONDAY_S: i64 = 1_709_510_400;
const NS: i64 = 1_000_000_000;

/// A request that owns its texts, in contrast to an `Entry`.
#[derive(Clone, Debug, Default)]
struct Request {
    time_ns: i64,
    target: String,
    client: String,
    user_agent: String,
    status: u16,
    bytes: Option<u64>,
    service_ns: Option<u64>,
}

impl Request {
    fn entry(&self) -> Entry<'_> {
        Entry {
            time_ns: self.time_ns,
            has_subsecond_time: true,
            method: b"GET",
            target: self.target.as_bytes(),
            client: self.client.as_bytes(),
            user_agent: self.user_agent.as_bytes(),
            status: self.status,
            bytes: self.bytes,
            service_ns: self.service_ns,
            ..Entry::default()
        }
    }
}

/// Creates the summary of logs with these counts of lines.
fn read_of(parsed: u64, filtered: u64) -> ReadSummary {
    let lines = Lines { read: parsed + filtered, parsed, filtered, ..Lines::default() };
    ReadSummary { lines, sources: Vec::new(), formats: Formats::from_list(Vec::new()) }
}

fn try_profile<'a>(entries: impl IntoIterator<Item = Entry<'a>>, options: Options) -> Result<Profile, LogError> {
    let mut profiler = Profiler::new(options);
    let (mut parsed, mut filtered) = (0, 0);
    for entry in entries {
        match profiler.add(&entry) {
            EntryDecision::Accepted => parsed += 1,
            EntryDecision::FilteredOut => filtered += 1,
        }
    }
    profiler.finish(&read_of(parsed, filtered))
}

fn profile(requests: &[Request], options: Options) -> Profile {
    try_profile(requests.iter().map(Request::entry), options).unwrap()
}

/// Generates Poisson arrivals from Monday 10:00 on, with one hour at each of `rates`. The popularity of the 2,000 URLs
/// follows Zipf's law with exponent 1.0. Sizes above 30,000 bytes have a Pareto tail with index 1.2. 15 % of the
/// responses are 304 (Not Modified).
fn known(rates: &[f64]) -> Vec<Request> {
    let mut rng = Pcg64::seed_from_u64(1);
    let (zipf, clients) = (Zipf::new(2_000.0, 1.0).unwrap(), 5_000u32);
    let (body, tail) = (LogNormal::new(8.0, 0.8).unwrap(), Pareto::new(30_000.0, 1.2).unwrap());
    let mut requests = Vec::new();
    for (hour, rate) in (10..).zip(rates) {
        let mut second = 0.0;
        loop {
            let pause: f64 = Exp1.sample(&mut rng);
            second += pause / rate;
            if second >= 3_600.0 {
                break;
            }
            let is_tail = rng.random_bool(0.1);
            let bytes: f64 = if is_tail { tail.sample(&mut rng) } else { f64::min(body.sample(&mut rng), 30_000.0) };
            let is_modified = rng.random_bool(0.85);
            requests.push(Request {
                time_ns: (MONDAY_S + hour * 3_600) * NS + (second * 1e9) as i64,
                target: format!("/page/{}?x=1", zipf.sample(&mut rng)),
                client: format!("10.0.0.{}", rng.random_range(0..clients)),
                user_agent: "Mozilla/5.0".to_owned(),
                status: if is_modified { 200 } else { 304 },
                bytes: is_modified.then_some(bytes as u64 + 1),
                service_ns: Some((Distribution::<f64>::sample(&Exp1, &mut rng) * 5e6) as u64),
            });
        }
    }
    requests
}

#[test]
fn a_log_made_of_known_parts_has_these_parameters() {
    let requests = known(&[20.0, 50.0]);
    let n = requests.len() as u64;
    let found = profile(&requests, Options::default());
    assert_eq!((found.requests, found.lines.parsed, &*found.timezone), (n, n, "UTC"));
    assert!(found.from.starts_with("2024-03-04T10:00:00.") && found.to.starts_with("2024-03-04T11:59:59."));
    assert!((found.arrivals.mean_rate - 35.0).abs() < 0.5, "{}", found.arrivals.mean_rate);
    assert_eq!(
        (&*found.peak.from, found.peak.seconds, found.peak.chosen_by_user),
        ("2024-03-04T11:00:00Z", 3_600, false)
    );
    assert!((found.peak.rate - 50.0).abs() < 0.5, "{}", found.peak.rate);
    let busy: u64 = requests.iter().filter(|r| r.time_ns >= (MONDAY_S + 11 * 3_600) * NS).count() as u64;
    assert_eq!((found.peak.requests, found.arrivals.by_hour[11], found.arrivals.by_hour[9]), (busy, busy, 0));
    assert_eq!((found.arrivals.step_s, found.arrivals.rates.len()), (60, 120));
    assert!((found.arrivals.by_weekday_and_hour[0][11] - busy as f64 / 3_600.0).abs() < 1e-9);
    assert!(found.dispersion.iter().all(|at| (at.index - 1.0).abs() < 0.8), "{:?}", found.dispersion);
    assert!((found.dispersion[0].index - 1.0).abs() < 0.1);
    assert!(found.hurst.is_some_and(|hurst| (hurst.value - 0.5).abs() < 0.1), "{:?}", found.hurst);
    let pauses = found.interarrival_s.unwrap();
    assert!((pauses.mean - 1.0 / found.arrivals.mean_rate).abs() < 1e-4 && pauses.samples == n - 1);
    assert!(found.popularity.zipf.is_some_and(|zipf| (zipf - 1.0).abs() < 0.05), "{:?}", found.popularity.zipf);
    let exact: HashSet<_> = requests.iter().map(|request| &request.target).collect();
    assert!((found.unique_urls as f64 / exact.len() as f64 - 1.0).abs() < 3.0 * found.unique_error);
    assert!((found.unique_clients as f64 / 5_000.0 - 1.0).abs() < 3.0 * found.unique_error);
    assert_eq!(&*found.popularity.urls[0].url, "/page/1?x=1");
    let tail = found.sizes.tail.unwrap();
    assert!((tail.index - 1.2).abs() < 0.1, "{tail:?}");
    assert_eq!(found.sizes.responses + found.zero_length["not_modified"], n);
    assert_eq!((found.status["304"], found.methods["GET"]), (found.zero_length["not_modified"], n));
    assert_eq!(found.bytes, requests.iter().filter_map(|request| request.bytes).sum::<u64>());
    let service = found.service_s.unwrap();
    assert!((service.mean / 0.005 - 1.0).abs() < 0.02 && (service.scv - 1.0).abs() < 0.05, "{service:?}");
    assert_eq!(found.classes.iter().map(|class| class.requests).sum::<u64>(), busy);
    assert_eq!(found.notes, Vec::<String>::new());
}

#[test]
fn a_little_disorder_changes_only_the_times_between_requests() {
    let mut requests = known(&[5.0, 15.0]);
    let mut ordered = profile(&requests, Options::default());
    let mut rng = Pcg64::seed_from_u64(2);
    for at in 0..requests.len() - 10 {
        let other = at + rng.random_range(0..10);
        requests.swap(at, other);
    }
    let mut disordered = profile(&requests, Options::default());
    for profile in [&mut ordered, &mut disordered] {
        // These metrics may depend on the order of the requests, so they are not compared. Sums of times have other
        // rounding errors, and bursts may end elsewhere.
        (profile.interarrival_s, profile.sessions) = (None, None);
        profile.classes.iter_mut().for_each(|class| class.mean_service_s = None);
        let of_classes = profile.classes.iter_mut().filter_map(|class| class.service_s.as_mut());
        let of_urls = profile.slowest_urls.iter_mut().map(|url| &mut url.service_s);
        let of_hour = profile.slowest_hour.iter_mut().map(|hour| &mut hour.service_s);
        let all = of_classes.chain(&mut profile.service_s).chain(of_urls).chain(of_hour);
        all.for_each(|service| service.scv = 0.0);
    }
    assert_eq!(ordered, disordered);
}

#[test]
fn robots_are_counted_and_left_out() {
    let mut requests = known(&[1.0]);
    requests.iter_mut().step_by(4).for_each(|request| request.user_agent = "Googlebot/2.1".to_owned());
    let robots = requests.iter().step_by(4);
    let (count, bytes) = (robots.clone().count() as u64, robots.filter_map(|request| request.bytes).sum::<u64>());
    for (policy, name, kept) in [
        (RobotFilter::Keep, "keep", requests.len() as u64),
        (RobotFilter::Drop, "drop", requests.len() as u64 - count),
        (RobotFilter::Only, "only", count),
    ] {
        let found = profile(&requests, Options { robots: policy, ..Options::default() });
        assert_eq!((found.requests, &*found.robots.policy), (kept, name));
        assert_eq!((found.robots.requests, found.robots.bytes), (count, bytes));
    }
}

#[test]
fn a_given_peak_window_is_taken() {
    let requests = known(&[20.0, 6.0, 2.0]);
    let from = (MONDAY_S + 12 * 3_600 + 600) * NS;
    let options = |peak| Options { peak: Some(peak), ..Options::default() };
    let found = profile(&requests, options((from, from + 900 * NS)));
    assert_eq!((&*found.peak.from, found.peak.seconds, found.peak.chosen_by_user), ("2024-03-04T12:10:00Z", 900, true));
    assert!((found.peak.rate - 2.0).abs() < 0.25 && found.classes.iter().all(|class| class.requests < 2_500));
    // The specified window extends beyond the log. Rates must refer only to the part that the log covers.
    let found = profile(&requests, options((MONDAY_S * NS, (MONDAY_S + 11 * 3_600) * NS)));
    assert_eq!((&*found.peak.from, found.peak.seconds), ("2024-03-04T10:00:00Z", 3_600));
    let nothing = try_profile(requests.iter().map(Request::entry), options((0, NS))).unwrap_err().to_string();
    assert!(nothing.contains("from 1970-01-01T00:00:00Z to 1970-01-01T00:00:01Z"), "{nothing}");
}

#[test]
fn windows_zones_and_keys_are_as_they_were_asked_for() {
    let requests = known(&[2.0, 4.0]);
    let by_url =
        ClassBy::Url(vec![("first".to_owned(), "/page/1".to_owned()), ("pages".to_owned(), "/page/*".to_owned())]);
    let zone = TimeZone::get("Asia/Kolkata").unwrap();
    let found = profile(&requests, Options { zone, window_s: 600, class_by: by_url, ..Options::default() });
    assert_eq!((&*found.timezone, found.peak.seconds), ("Asia/Kolkata", 600));
    assert!(found.from.ends_with("+05:30") && found.peak.from.ends_with("0:00+05:30"), "{}", found.peak.from);
    // In this time zone, 11:00 to 12:00 UTC is 16:30 to 17:30.
    assert!(found.arrivals.by_hour[17] > found.arrivals.by_hour[15] && found.arrivals.by_hour[11] == 0);
    let names: BTreeSet<&str> = found.classes.iter().map(|class| &*class.name).collect();
    assert_eq!(names, ["first", "pages"].into());
    assert_eq!(found.classes.iter().map(|class| class.requests).sum::<u64>(), found.peak.requests);
}

#[test]
fn sessions_are_shown_if_they_are_wanted() {
    let requests = known(&[5.0]);
    let found = profile(&requests, Options::default()).sessions.unwrap();
    assert!(
        found.sessions > 1_000 && (found.requests.mean * found.sessions as f64 - requests.len() as f64).abs() < 1e-3
    );
    assert_eq!(profile(&requests, Options { sessions: false, ..Options::default() }).sessions, None);
}

#[test]
fn no_request_is_an_error_that_says_what_became_of_the_lines() {
    let error = Profiler::new(Options::default()).finish(&read_of(0, 1_234)).unwrap_err().to_string();
    assert!(error.contains("1,234 were left out"), "{error}");
}

#[test]
fn what_is_odd_is_noted() {
    let at = |time_s: f64| Request { time_ns: (time_s * 1e9) as i64, target: "/".to_owned(), ..Request::default() };
    let notes = |times: &mut dyn Iterator<Item = f64>| {
        profile(&times.map(at).collect::<Vec<_>>(), Options::default()).notes.join("\n")
    };
    let monday = MONDAY_S as f64;
    assert!(notes(&mut (0..100).map(|i| monday + 305.0 + f64::from(i) * 3_600.0)).contains("minute 05 of their hour"));
    assert!(notes(&mut (0..100).map(|i| monday + 7.0 + f64::from(i) * 60.0)).contains("second 07 of their minute"));
    assert!(notes(&mut (0..100).map(|i| monday + f64::from(i) / 200.0)).contains("in one second"));
    assert!(notes(&mut (0..100).map(|i| monday + f64::from(i) / 4.0)).contains("24.8 s only"));
    assert!(notes(&mut (0..100).map(|i| 9e9 + f64::from(i))).contains("in the future: 100"));
    assert!(notes(&mut (0..200).map(|i| if i == 7 { 0.0 } else { monday + f64::from(i) })).contains("all others: 1;"));
    assert!(notes(&mut (0..9).map(|i| monday + f64::from(i))).contains("does not say how large"));
    let whole = [Entry { bytes: Some(1), target: b"/", ..Entry::default() }; 2];
    assert!(try_profile(whole, Options::default()).unwrap().notes.iter().any(|note| note.contains("whole seconds")));
}

#[test]
fn all_distinct_and_spread_over_decades() {
    let mut profiler = Profiler::new(Options { class_by: ClassBy::Host, ..Options::default() });
    let mut rng = Pcg64::seed_from_u64(3);
    let n = 60_000u64;
    for i in 0..n {
        let (target, client) = (format!("/{i}/{}", "x".repeat((i % 3_000) as usize)), format!("client-{i}"));
        let (host, user_agent) = (format!("host-{i}.example"), format!("agent {i}"));
        let entry = Entry {
            time_ns: (MONDAY_S + rng.random_range(-5_000..5_000i64) * 86_400 + (i % 86_400) as i64) * NS,
            target: target.as_bytes(),
            client: client.as_bytes(),
            host: host.as_bytes(),
            user_agent: user_agent.as_bytes(),
            bytes: Some(i * i),
            method: b"GET",
            status: (i % 700) as u16,
            ..Entry::default()
        };
        assert_eq!(profiler.add(&entry), EntryDecision::Accepted);
    }
    let found = profiler.finish(&read_of(n, 0)).unwrap();
    assert_eq!(found.requests, n);
    assert!(found.arrivals.rates.len() <= 2_000 && found.arrivals.by_hour.iter().sum::<u64>() <= n);
    assert!((found.unique_urls as f64 / n as f64 - 1.0).abs() < 3.0 * found.unique_error, "{}", found.unique_urls);
    assert!((found.unique_clients as f64 / n as f64 - 1.0).abs() < 3.0 * found.unique_error);
    assert!(found.notes.iter().any(|note| note.contains("more days than can be counted")), "{:?}", found.notes);
    assert!(found.popularity.urls.len() <= 100 && found.popularity.zipf.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn accounts_add_up_whatever_comes(
        entries in prop::collection::vec(
            (any::<i64>(), prop::collection::vec(any::<u8>(), 0..6), any::<u16>(), any::<[Option<u64>; 2]>()),
            1..40,
        ),
        window_s: u64, close: bool, by_status: bool,
    ) {
        let class_by = if by_status { ClassBy::Status } else { ClassBy::Host };
        let zone = TimeZone::get("America/New_York").unwrap();
        let options = Options { window_s, class_by, zone, ..Options::default() };
        let entries: Vec<Entry<'_>> = entries.iter().map(|(time_ns, text, status, [bytes, service_ns])| Entry {
            time_ns: if close { *time_ns % (86_400 * NS) } else { *time_ns },
            method: text, target: text, host: text, client: text, user_agent: text,
            status: *status, bytes: *bytes, service_ns: *service_ns, upstream_ns: *bytes,
            ..Entry::default()
        }).collect();
        let n = entries.len() as u64;
        let found = try_profile(entries, options).unwrap();
        prop_assert_eq!(found.requests, n);
        prop_assert_eq!(found.status.values().sum::<u64>(), n);
        prop_assert_eq!(found.methods.values().sum::<u64>(), n);
        prop_assert_eq!(found.zero_length.values().sum::<u64>() + found.sizes.responses, n);
        prop_assert!(found.arrivals.by_hour.iter().sum::<u64>() <= n);
        prop_assert_eq!(found.arrivals.by_hour.iter().sum::<u64>(), found.arrivals.by_weekday.iter().sum::<u64>());
        prop_assert!(found.peak.requests <= n && found.peak.rate.is_finite() && found.arrivals.mean_rate.is_finite());
        prop_assert!(serde_json::to_string(&found).is_ok_and(|json| !json.is_empty()));
    }
}

/// The directory of real logs; `None` if this machine has none.
fn real_logs() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/logs");
    let directory = std::env::var_os("BRIMFUL_LOGS").map_or_else(beside, PathBuf::from);
    if directory.is_dir() {
        return Some(directory);
    }
    println!("skipped: there are no logs in {}; name a directory in BRIMFUL_LOGS", directory.display());
    None
}

#[test]
fn real_logs_have_profiles() {
    let Some(directory) = real_logs() else { return };
    let mut profiles = 0;
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        let mut profiler = Profiler::new(Options::default());
        let paths = [path.to_string_lossy().into_owned()];
        let read = read(&paths, ReadOptions::default(), &mut |entry| profiler.add(entry), &mut |_| ());
        // Some sample logs have invented formats, which cannot be read.
        let Ok(read) = read else { continue };
        if read.lines.parsed == 0 {
            continue;
        }
        let found = profiler.finish(&read).unwrap();
        profiles += 1;
        let name = path.file_name().unwrap().to_string_lossy();
        assert_eq!(found.requests, found.lines.parsed, "{name}");
        assert_eq!(found.lines.parsed + found.lines.malformed + found.lines.filtered, found.lines.read, "{name}");
        assert_eq!(found.status.values().sum::<u64>(), found.requests, "{name}");
        assert_eq!(found.zero_length.values().sum::<u64>() + found.sizes.responses, found.requests, "{name}");
        assert!(found.unique_urls > 0 && found.unique_clients > 0 && !found.classes.is_empty(), "{name}");
        if name.starts_with("elastic") {
            assert!(found.notes.iter().any(|note| note.contains("minute 05")), "{:?}", found.notes);
            assert!(found.robots.requests > 500 && found.requests > 9_990);
        }
        if name.starts_with("nasa") {
            assert!(found.peak.requests > 3_000 && found.popularity.zipf.is_some(), "{:?}", found.peak);
        }
    }
    assert!(profiles >= 1, "there is no log in the directory");
}
