//! Tests the report of a profile in which all metrics are known, and that of a profile with control characters in
//! names.

use super::*;
use crate::format::DEFAULT_WIDTH;
use brimful_accesslog::compare::compare;
use brimful_core::profile::{
    Arrivals, Burstiness, BusyHours, Dispersion, FormatShare, Hurst, Lines, LogClass, Peak, PopularUrl, Robots,
    SecondCounts, Sessions, Sizes, SlowestHour, Source, Tail, Times, UrlPopularity, UrlTimes,
};
use brimful_core::units::Rate;
use std::collections::BTreeMap;

fn counts(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
}

fn percentiles(of: &[(&str, f64)]) -> BTreeMap<String, f64> {
    of.iter().map(|(of, x)| ((*of).to_owned(), *x)).collect()
}

fn times(mean: f64) -> Times {
    let percentiles = percentiles(&[("50", 0.6 * mean), ("90", 2.0 * mean), ("95", 3.0 * mean), ("99", 6.0 * mean)]);
    Times { samples: 500, mean, scv: 1.5, percentiles, max: 20.0 * mean }
}

fn class(name: &str, range: &str, share_requests: f64, share_bytes: f64, mean_bytes: f64) -> LogClass {
    LogClass {
        name: name.to_owned(),
        range: range.to_owned(),
        derived_from: "cluster 1 of 2".to_owned(),
        requests: (3_600.0 * share_requests) as u64,
        share_requests,
        share_bytes,
        mean_bytes,
        bytes_range: [1, 100_000],
        bytes_scv: 0.8,
        unique_urls: 120,
        urls: Vec::new(),
        mean_service_s: Some(0.0123),
        service_s: Some(times(0.0123)),
    }
}

/// Arrivals on two days of the week, Saturday and Sunday.
fn arrivals() -> Arrivals {
    let by_hour: Vec<u64> = (0..24).map(|hour| if (8..20).contains(&hour) { 100 * hour } else { 10 }).collect();
    let day = |scale: f64| -> Vec<f64> { by_hour.iter().map(|n| scale * *n as f64 / 3600.0).collect() };
    let mut grid = vec![vec![0.0; 24]; 7];
    (grid[5], grid[6]) = (day(0.6), day(0.4));
    Arrivals {
        mean_rate: 0.125,
        busiest_second: 9,
        busiest_minute: 70,
        from: "2026-03-07T00:00:00Z".to_owned(),
        step_s: 3600,
        rates: grid[5].iter().chain(&grid[6]).copied().collect(),
        by_hour: by_hour.clone(),
        by_weekday: vec![0, 0, 0, 0, 0, 12_960, 8_640],
        by_weekday_and_hour: grid,
        busy_hours: Some(BusyHours {
            name: "weekends 8–20".to_owned(),
            weekdays: vec![5, 6],
            from_hour: 8,
            to_hour: 20,
            rate: 1.5,
            other_rate: 0.25,
            explained: 0.8,
        }),
        seconds: Some(SecondCounts {
            from: "2026-03-07T19:00:00Z".to_owned(),
            counts: (0..3600).map(|second| if second == 1000 { 9 } else { second % 3 }).collect(),
        }),
    }
}

fn a_profile() -> Profile {
    let url = |url: &str, method: &str, requests: u64, requests_error: u64| PopularUrl {
        url: url.to_owned(),
        method: method.to_owned(),
        requests,
        requests_error,
        mean_bytes: 12_345.0,
    };
    let mut workload = Workload::single_class("GET", "/");
    workload.load = Some(Load::poisson(Rate(1.0)));
    Profile {
        schema: brimful_core::profile::SCHEMA.to_owned(),
        brimful_version: "0.1.0".to_owned(),
        command: vec!["brimful".to_owned(), "characterize".to_owned()],
        sources: vec![
            Source { path: "access.log.1".to_owned(), lines: 12_000, bytes: 2_400_000, cut_short: None },
            Source { path: "access.log".to_owned(), lines: 9_700, bytes: 1_940_000, cut_short: None },
        ],
        format: "combined".to_owned(),
        format_sample: vec![],
        formats: vec![
            FormatShare { name: "combined".to_owned(), share: 0.9981 },
            FormatShare { name: "common".to_owned(), share: 0.0019 },
        ],
        lines: Lines {
            read: 21_700,
            parsed: 21_600,
            malformed: 2,
            filtered: 98,
            first_malformed: vec![MalformedLine {
                file: "access.log".to_owned(),
                line: 17,
                column: 42,
                expected: "a status of three digits".to_owned(),
                text: "10.0.0.1 - - [07/Mar/2026:00:00:01 +0000] OK".to_owned(),
            }],
            out_of_order: 7,
        },
        from: "2026-03-07T00:00:00Z".to_owned(),
        to: "2026-03-08T23:59:58Z".to_owned(),
        timezone: "UTC".to_owned(),
        requests: 21_600,
        bytes: 234_000_000,
        peak: Peak {
            from: "2026-03-07T19:00:00Z".to_owned(),
            seconds: 3600,
            rate: 1.0,
            requests: 3_600,
            chosen_by_user: false,
        },
        arrivals: arrivals(),
        status: counts(&[("200", 18_000), ("304", 3_200), ("404", 390), ("500", 10)]),
        methods: counts(&[("GET", 21_000), ("POST", 590), ("HEAD", 10)]),
        zero_length: counts(&[("not_modified", 3_200), ("head", 10)]),
        sizes: Sizes {
            responses: 18_390,
            mean: 12_724.0,
            percentiles: percentiles(&[
                ("50", 3_210.0),
                ("90", 32_100.0),
                ("95", 54_321.0),
                ("99", 150_000.0),
                ("99.9", 1.2e6),
            ]),
            max: 12_000_000,
            complementary: vec![(1.0, 1.0), (1e6, 0.001)],
            tail: Some(Tail { index: 1.32, interval95: [1.21, 1.43], from_bytes: 60_000, responses: 700 }),
        },
        service_s: Some(times(0.025)),
        upstream_s: None,
        slowest_hour: Some(SlowestHour {
            from: "2026-03-08T03:00:00Z".to_owned(),
            service_s: times(0.4),
            median_p95_s: 0.075,
        }),
        slowest_urls: vec![
            UrlTimes {
                url: "/search?q=brim".to_owned(),
                method: "POST".to_owned(),
                service_s: times(0.3),
                time_share: 0.33,
            },
            UrlTimes { url: "/".to_owned(), method: "GET".to_owned(), service_s: times(0.02), time_share: 0.1 },
        ],
        classes: vec![
            class("small", "1 – 9,876 bytes", 0.81, 0.22, 3_400.0),
            class("large", "9,877 – 12,000,000 bytes", 0.19, 0.78, 52_000.0),
        ],
        classes_by: "size: two clusters of the minimal spanning tree, as a third one would hold 1 % of the requests"
            .to_owned(),
        dispersion: vec![
            Dispersion { epoch_s: 1.0, epochs: 3600, index: 1.9, interval95: [1.8, 2.0] },
            Dispersion { epoch_s: 10.0, epochs: 360, index: 3.4, interval95: [2.9, 4.0] },
        ],
        burstiness: Some(Burstiness { epoch_s: 10.0, a: 1.8, b: 0.31, peak_to_mean: 4.2 }),
        hurst: Some(Hurst { value: 0.78, interval95: [0.71, 0.85], from_s: 1.0, to_s: 256.0 }),
        hurst_missing: None,
        interarrival_s: Some(times(8.0)),
        unique_urls: 1_234,
        unique_clients: 567,
        unique_error: 0.0081,
        popularity: UrlPopularity {
            zipf: Some(0.97),
            zipf_fit: Some(0.98),
            concentration: vec![(1, 0.08), (10, 0.35), (100, 0.71)],
            urls: vec![url("/", "GET", 1_728, 0), url("/search?q=brim", "POST", 590, 12)],
        },
        robots: Robots { policy: "keep".to_owned(), requests: 432, bytes: 1_200_000 },
        sessions: Some(Sessions {
            gap_s: 1800.0,
            burst_gap_s: 1.0,
            sessions: 500,
            rate: 0.0029,
            requests: times(43.0),
            length_s: times(600.0),
            bursts: times(9.0),
            requests_per_burst: times(4.8),
            think_s: times(35.0),
            cut_short: 0,
        }),
        workload: Some(workload),
        workload_arrivals_reason: "the index of dispersion is 1.9 in a second".to_owned(),
        notes: vec!["All stamps are whole seconds.".to_owned()],
    }
}

fn is_fit(text: &str) {
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(DEFAULT_WIDTH), "{widest:?} columns:\n{text}");
    assert!(!text.contains(|c: char| c.is_control() && c != '\n') && !text.contains('\u{202e}'), "{text:?}");
    assert!(text.lines().all(|line| line.trim_end() == line), "a line ends in a space:\n{text}");
    assert!(text.ends_with('\n') && !text.contains("\n\n\n"), "{text}");
}

#[test]
fn a_profile_reads_like_this() {
    let text = text(&a_profile());
    assert_eq!(text, WHOLE, "{text}");
    is_fit(&text);
}

#[test]
fn the_account_of_the_lines_is_always_there() {
    for profile in [a_profile(), Profile::default()] {
        let text = text(&profile);
        is_fit(&text);
        let lines = text.lines().nth(2).into_iter().chain(text.lines().nth(3)).chain(text.lines().nth(4));
        let account = lines.into_iter().find(|line| line.starts_with("lines ")).expect("counts of lines");
        let of = |name: &str| {
            let before = account.split(&format!(" {name}")).next().unwrap();
            before.rsplit(' ').next().unwrap().replace(',', "").parse::<u64>().unwrap()
        };
        assert_eq!(of("read"), of("parsed") + of("malformed") + of("filtered"), "{account}");
    }
}

#[test]
fn a_plain_terminal_gets_no_blocks() {
    let blocks = text(&a_profile());
    let text = brimful_core::text::to_ascii(&blocks);
    is_fit(&text);
    assert!(text.contains("#") && !text.contains("\\u"), "every character has a replacement in ASCII: {text}");
}

#[test]
fn charts_are_as_high_as_their_figures() {
    assert_eq!(arrivals::sparkline(&[0.0, 0.1, 4.0, 8.0]), "·▁▄█");
    assert_eq!(arrivals::sparkline(&[0.0, f64::NAN, f64::INFINITY]).chars().count(), 3);
    assert_eq!(arrivals::sparkline(&[]), "");
}

/// A profile in which every field that comes from a log contains the text `name`.
fn hostile(name: &str) -> Profile {
    let name = || name.to_owned();
    let mut profile = a_profile();
    (profile.format, profile.from, profile.to, profile.timezone) = (name(), name(), name(), name());
    (profile.classes_by, profile.workload_arrivals_reason, profile.hurst_missing) = (name(), name(), Some(name()));
    (profile.hurst, profile.peak.from, profile.robots.policy) = (None, name(), name());
    profile.notes.push(name());
    profile.formats[0].name = name();
    for source in &mut profile.sources {
        (source.path, source.cut_short) = (name(), Some(name()));
    }
    for line in &mut profile.lines.first_malformed {
        (line.file, line.expected, line.text) = (name(), name(), name());
    }
    for counts in [&mut profile.status, &mut profile.methods, &mut profile.zero_length] {
        counts.insert(name(), 50_000);
    }
    for class in &mut profile.classes {
        (class.name, class.range, class.derived_from) = (name(), name(), name());
    }
    for url in &mut profile.popularity.urls {
        (url.url, url.method) = (name(), name());
    }
    profile
}

#[test]
fn names_in_logs_cannot_steer_the_terminal_nor_widen_it() {
    for name in ["\u{1b}[2J\u{9b}1m\u{202e}\r\n\u{7}x", &"wide".repeat(200), &"\u{1b}".repeat(300), &"a b ".repeat(300)]
    {
        is_fit(&text(&hostile(name)));
        let found = compare(&a_profile(), &hostile(name));
        is_fit(&comparison(name, &found));
    }
}

#[test]
fn a_profile_of_large_numbers_fits() {
    let mut profile = a_profile();
    (profile.requests, profile.bytes) = (u64::MAX, u64::MAX);
    profile.unique_urls = u64::MAX / 2;
    for class in &mut profile.classes {
        (class.mean_bytes, class.bytes_scv, class.unique_urls) = (1e12, 1e6, 123_456_789);
        class.range = "1,234,567 – 12,345,678,901 bytes".to_owned();
        class.derived_from = "cluster 12 of 123 by the minimal spanning tree".to_owned();
    }
    is_fit(&text(&profile));
}

#[test]
fn what_is_notable_comes_first() {
    let notable = |change: fn(&mut Profile)| {
        let mut profile = a_profile();
        (profile.hurst, profile.sizes.tail, profile.dispersion) = (None, None, Vec::new());
        change(&mut profile);
        notable::text(&profile)
    };
    assert_eq!(notable(|_| ()), "nothing out of the ordinary");
    assert_eq!(notable(|p| p.lines.malformed = 2_170), "10.0 % of the lines are malformed");
    assert_eq!(notable(|p| *p.status.entry("502".into()).or_default() = 998), "4.7 % of the answers are 5xx");
    assert_eq!(notable(|p| *p.status.entry("403".into()).or_default() = 3_930), "20.0 % of the answers are 4xx");
    assert_eq!(notable(|p| p.robots.requests = 10_800), "robots make 50.0 % of the requests");
    assert_eq!(notable(|p| p.popularity.concentration[1].1 = 0.6), "10 URLs get 60.0 % of the requests");
    let cut = notable(|p| p.sources[0].cut_short = Some("unexpected end".into()));
    assert_eq!(cut, "1 of 2 sources could not be read to the end");
}

#[test]
fn spans_have_at_most_two_units() {
    let shown = [0.0, 1.0, 90.0, 120.0, 3600.0, 5430.0, 86_400.0, 97_200.0, 200_000.0, f64::NAN].map(lasting);
    let expected = ["0 s", "1 s", "90 s", "2 min", "1 h", "1 h 31 min", "1 day", "1 day 3 h", "2 days 7 h", "-"];
    assert_eq!(shown, expected);
}

#[test]
fn rates_over_time_are_a_history() {
    let csv = csv(&a_profile());
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 1 + 48);
    assert_eq!(rows[0], "time,requests_per_second");
    assert!(rows[1].starts_with("2026-03-07T00:00:00Z,0.0016"), "{}", rows[1]);
    assert!(rows[48].starts_with("2026-03-08T23:00:00Z,"), "{}", rows[48]);
    let series = brimful_forecast::Series::parse(&csv, brimful_forecast::Unit::Rates, None).unwrap();
    assert_eq!((series.step_s, series.rates.len()), (3600, 48));
}

#[test]
fn a_comparison_says_what_is_apart() {
    let same = compare(&a_profile(), &a_profile());
    let shown = comparison("before.json", &same);
    assert!(shown.contains("verdict     alike in all "), "{shown}");
    let mut other = a_profile();
    (other.peak.rate, other.sizes.mean) = (2.0, 99_999.0);
    let found = compare(&a_profile(), &other);
    let shown = comparison("before.json", &found);
    is_fit(&shown);
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("mean rate in the peak window 1.00/s 2.00/s ✗ +100 % 0.050/s"), "{shown}");
    assert!(shown.contains("verdict     apart in 2 of "), "{shown}");
    assert!(words.ends_with("figures: mean rate in the peak window; mean bytes of an answer"), "{shown}");

    let compared = Compared { profile: &other, against: Against::new("before.json".to_owned(), &found) };
    let json = crate::json::document("profile", &compared).unwrap();
    let read: Profile = serde_json::from_str(&json).unwrap();
    assert_eq!(read, other, "the profile's keys are unchanged");
    assert!(json.contains("\"alike\": false"), "{json}");
}

const WHOLE: &str = "\
21,600 requests in 2 days, 0.125/s on average, 234 MB in answers: 2026-03-07T00:00:00Z to
2026-03-08T23:59:58Z.
peak        1.00/s, 8.00 times the mean, in 1 h from 2026-03-07T19:00:00Z; busiest minute 70,
            busiest second 9 requests
lines       21,700 read = 21,600 parsed + 2 malformed + 98 filtered; 7 of them out of order
format      combined 99.8 %, common 0.2 %; from access.log.1, access.log
notable     arrivals come in bursts: their variance in 1 s is 1.90 times that of Poisson arrivals;
            bursts on all scales (H 0.780); sizes have a heavy tail (index 1.32)

by hour     ▁▁▁▁▁▁▁▁▄▄▅▅▆▆▆▇▇███▁▁▁▁ 0 to 23 o'clock, UTC; most at 19, 11.6 %
over time   ▁▁▁▁▁▁▁▁▄▄▅▅▆▆▆▇▇███▁▁▁▁▁▁▁▁▁▁▁▁▃▃▃▄▄▄▄▅▅▅▆▆▁▁▁▁
            in steps of 1 h; at most 0.317/s in 1 h
by second   ·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·█▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁▂·▁
            requests in each second from 2026-03-07T19:16:00Z, around the busiest second of the peak
            window: 1.09/s on average, at most 9

            0           6           12          18
Monday                                                         0.0 %
Tuesday                                                        0.0 %
Wednesday                                                      0.0 %
Thursday                                                       0.0 %
Friday                                                         0.0 %
Saturday    ░░░░░░░░░░░░░░░░▒▒▒▒▓▓▓▓▓▓▓▓▓▓██████████░░░░░░░░  60.0 %
Sunday      ░░░░░░░░░░░░░░░░▒▒▒▒▒▒▒▒▒▒▒▒▒▒▓▓▓▓▓▓▓▓▓▓░░░░░░░░  40.0 %
            mean rate of each hour, 0 (blank) to 0.317/s (█), and each day's requests
busy hours  weekends 8–20: 1.50/s on average, 0.250/s in all other hours; this explains 80.0 % of
            the variance among the hours of the week

status      200 83.3 %, 304 14.8 %, 404 1.8 %, 500 10×
methods     GET 97.2 %, POST 2.7 %, HEAD 10×
sizes       mean 12.7 kB, 50 % 3,210 B, 90 % 32.1 kB, 95 % 54.3 kB, 99 % 150 kB, 99.9 % 1.20 MB,
            largest 12.0 MB; of 18,390 answers with a body
tail        index 1.32 (1.21 … 1.43) from 60.0 kB on, 700 answers: the variance has no bound
no body     14.9 % of the answers: not modified 14.8 %, head 10×
robots      432 requests, 1.20 MB; kept, --robots drop leaves them out

class  range                     requests    data     mean    scv  URLs  service  derived from
small  1 – 9,876 bytes             81.0 %  22.0 %  3,400 B  0.800   120  12.3 ms  cluster 1 of 2
large  9,877 – 12,000,000 bytes    19.0 %  78.0 %  52.0 kB  0.800   120  12.3 ms  cluster 1 of 2
classes     size: two clusters of the minimal spanning tree, as a third one would hold 1 % of the
            requests

distinct    1,234 URLs, 567 clients (standard error 0.81 %)
popularity  the n-th URL is asked for as n^−0.970 (R² 0.980); the first 1, 10, 100 have 8.0 %,
            35.0 %, 71.0 % of the requests

requests  ±  share     mean  URL
   1,728     8.0 %  12.3 kB  /
     590 12  2.7 %  12.3 kB  POST /search?q=brim

bursts      a 1.80, b 0.310 in epochs of 10 s; the fullest has 4.20 times the mean
dispersion  1.90 (1.80 … 2.00) in 1 s, 3.40 (2.90 … 4.00) in 10 s; 1 is Poisson's
Hurst       0.780 (0.710 … 0.850), from 1 s to 4 min; 0.5 is without memory

times             number     mean   scv     50 %     90 %     95 %    99 %     max
server               500  25.0 ms  1.50  15.0 ms  50.0 ms  75.0 ms  150 ms  500 ms
between requests     500   8.00 s  1.50   4.80 s   16.0 s   24.0 s  48.0 s   160 s

server, by class  number     mean   scv     50 %     90 %     95 %     99 %     max
small                500  12.3 ms  1.50  7.38 ms  24.6 ms  36.9 ms  73.8 ms  246 ms
large                500  12.3 ms  1.50  7.38 ms  24.6 ms  36.9 ms  73.8 ms  246 ms

slowest     95 % of 500 requests took at most 1.20 s, in the hour from 2026-03-08T03:00:00Z; in the
            usual hour 75.0 ms

requests  of time     mean     50 %     95 %    99 %     max  slowest URLs
     500   33.0 %   300 ms   180 ms   900 ms  1.80 s  6.00 s  POST /search?q=brim
     500   10.0 %  20.0 ms  12.0 ms  60.0 ms  120 ms  400 ms  /

sessions    500, 10.4/h new ones; a pause of 30 min ends one, one of 1 s a burst
of a session         number    mean   scv    50 %     90 %     95 %     99 %       max
requests                500    43.0  1.50    25.8     86.0      129      258       860
length                  500   600 s  1.50   360 s  1,200 s  1,800 s  3,600 s  12,000 s
bursts                  500    9.00  1.50    5.40     18.0     27.0     54.0       180
requests of a burst     500    4.80  1.50    2.88     9.60     14.4     28.8      96.0
think time              500  35.0 s  1.50  21.0 s   70.0 s    105 s    210 s     700 s

workload    1 class, poisson at 1.00/s; the index of dispersion is 1.9 in a second

0.01 % of all lines are malformed; the first:
access.log:17:42: expected a status of three digits
  | 10.0.0.1 - - [07/Mar/2026:00:00:01 +0000] OK

beware      All stamps are whole seconds.
";
