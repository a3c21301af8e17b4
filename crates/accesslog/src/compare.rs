//! Compares two profiles metric by metric, and decides whether the traffic of two logs is alike.
//!
//! The result contains the tolerance of each metric, in the metric's own unit. The tolerance of a share of requests
//! includes random variation. A metric that is missing in one profile is in the result, but does not affect the
//! decision. Rates, shares of request classes and the index of dispersion are compared in the peak window of each log,
//! which is its busiest time. All other metrics are compared over the whole logs.

use crate::profile::EMPTY_CLASS;
use brimful_core::profile::{Dispersion, LogClass, Profile, Sessions, Times};
use std::collections::BTreeSet;

/// Relative tolerance of request rates. It exceeds the errors that a load generator and the boundaries of the measured
/// window cause.
const RATE_TOLERANCE: f64 = 0.05;
/// Absolute tolerance of shares of requests, as a fraction (0 to 1). The shares in two peak hours usually differ by
/// more.
const SHARE_TOLERANCE: f64 = 0.02;
/// Number of standard errors that are added to the tolerance of a share. The standard error is that of a binomial
/// share, computed from the number of requests in the profile with fewer requests. In 95 of 100 cases, random variation
/// is less than two standard errors.
const STANDARD_ERRORS: f64 = 2.0;
/// Relative tolerance of response sizes. It is greater than the tolerance of rates, because means of heavy-tailed sizes
/// vary more.
const SIZE_TOLERANCE: f64 = 0.10;
/// Absolute tolerance of the exponent of Zipf's law, which describes the popularity of URLs. Exponents that are fitted
/// to a few thousand requests vary by this amount.
const ZIPF_TOLERANCE: f64 = 0.10;
/// Relative tolerance of the metrics of user sessions. It is large because some sessions begin before the log or end
/// after it.
const SESSION_TOLERANCE: f64 = 0.20;
/// Minimum share of the requests with a method in one of the profiles for which the shares of this method are compared.
const MIN_METHOD_SHARE: f64 = 0.01;
/// Length of the intervals in which requests are counted for the index of dispersion, in seconds.
const EPOCH_S: f64 = 1.0;

/// The result of comparing the profiles of two logs.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The compared metrics.
    pub differences: Vec<Difference>,
    /// Whether all metrics that both profiles have are within tolerance; false if there is no such metric.
    pub all_within_tolerance: bool,
}

/// The values of one metric in two profiles, and whether they agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Name of the metric.
    pub metric: String,
    /// Unit of the metric.
    pub unit: Unit,
    /// The metric's value in the first profile; `None` if unknown.
    pub before: Option<f64>,
    /// The metric's value in the second profile; `None` if unknown.
    pub after: Option<f64>,
    /// Relative difference: `after`/`before` − 1; `None` if a value is unknown or `before` is 0.
    pub relative_difference: Option<f64>,
    /// The tolerance, in the metric's unit.
    pub tolerance: f64,
    /// Whether the values differ by at most the tolerance; `None` if a value is unknown.
    pub is_within_tolerance: Option<bool>,
}

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A rate per second.
    Rate,
    /// A fraction, 0 to 1.
    Share,
    /// A number of bytes.
    Bytes,
    /// A number of seconds.
    Seconds,
    /// A number without a unit.
    Number,
}

/// Compares the second profile with the first, which is the reference.
pub fn compare(before: &Profile, after: &Profile) -> Comparison {
    let pair = Pair { before, after };
    let mut differences = vec![
        pair.relative("mean rate in the peak window", Unit::Rate, RATE_TOLERANCE, |p| {
            Some(p.peak.rate).filter(|r| *r > 0.0)
        }),
        pair.dispersion(),
    ];
    differences.extend(pair.classes());
    differences.extend(pair.sizes());
    differences.extend(pair.status());
    differences.extend(pair.methods());
    differences.push(pair.share("answers without a body", |p| sum(p.zero_length.values())));
    differences.push(pair.absolute("exponent of Zipf's law", Unit::Number, ZIPF_TOLERANCE, |p| p.popularity.zipf));
    differences.extend(pair.sessions());
    let held = || differences.iter().filter_map(|difference| difference.is_within_tolerance);
    let all_within_tolerance = held().all(|holds| holds) && held().next().is_some();
    Comparison { differences, all_within_tolerance }
}

#[derive(Clone, Copy)]
struct Pair<'a> {
    before: &'a Profile,
    after: &'a Profile,
}

impl Pair<'_> {
    /// Compares a metric. Its tolerance is the fraction `by` of the value in the first profile.
    fn relative(self, name: &str, unit: Unit, by: f64, figure: impl Fn(&Profile) -> Option<f64>) -> Difference {
        let before = figure(self.before);
        Difference::new(name, unit, before, figure(self.after), by * before.map_or(0.0, f64::abs))
    }

    /// Compares a metric whose absolute tolerance is `by`, in the metric's unit.
    fn absolute(self, name: &str, unit: Unit, by: f64, figure: impl Fn(&Profile) -> Option<f64>) -> Difference {
        Difference::new(name, unit, figure(self.before), figure(self.after), by)
    }

    /// Compares the fraction of all requests that belong to a group. `count` returns the number of requests of this
    /// group in a profile.
    fn share(self, name: &str, count: impl Fn(&Profile) -> u64) -> Difference {
        let share = |p: &Profile| ratio(count(p) as f64, p.requests as f64);
        let requests = self.before.requests.min(self.after.requests);
        share_difference(name, share(self.before), share(self.after), requests)
    }

    /// Compares the index of dispersion (variance divided by mean) of the number of requests per second. The tolerance
    /// is chosen so that the values agree if their confidence intervals overlap.
    fn dispersion(self) -> Difference {
        let [before, after] = [self.before, self.after].map(|p| per_second(&p.dispersion));
        // The tolerance is the sum of two differences: from the lower index to its upper confidence bound, and from the
        // higher index to its lower confidence bound.
        let tolerance = before.zip(after).map_or(0.0, |(before, after)| match after.index >= before.index {
            true => before.interval95[1] - before.index + after.index - after.interval95[0],
            false => before.index - before.interval95[0] + after.interval95[1] - after.index,
        });
        let [before, after] = [before, after].map(|dispersion| dispersion.map(|d| d.index));
        Difference::new("dispersion of requests per second", Unit::Number, before, after, tolerance)
    }

    /// Compares each class's share of the requests and of the bytes.
    fn classes(self) -> Vec<Difference> {
        type Share = fn(&LogClass) -> f64;
        let before = &self.before.classes;
        let after = &self.after.classes;
        let requests = total(before).min(total(after));
        // In a profile without classes, the share is unknown. In a profile that has classes but lacks this class, the
        // share is 0.
        let share = |of: &[LogClass], class: Option<&LogClass>, share: Share| {
            (!of.is_empty()).then(|| class.map_or(0.0, share))
        };
        let shares: [(&str, Share); 2] =
            [("requests", |class| class.share_requests), ("data", |class| class.share_bytes)];
        let pairs = class_pairs(before, after);
        let differences = pairs.iter().flat_map(|(name, b, a)| {
            shares.map(|(what, figure)| {
                let figures = (share(before, *b, figure), share(after, *a, figure));
                share_difference(&format!("class {name}: share of {what}"), figures.0, figures.1, requests)
            })
        });
        differences.collect()
    }

    fn sizes(self) -> Vec<Difference> {
        let known = |p: &Profile| p.sizes.responses > 0;
        let percentile = |p: &Profile, of: &str| p.sizes.percentiles.get(of).copied();
        vec![
            self.relative("mean bytes of an answer", Unit::Bytes, SIZE_TOLERANCE, |p| known(p).then_some(p.sizes.mean)),
            self.relative("median bytes of an answer", Unit::Bytes, SIZE_TOLERANCE, |p| percentile(p, "50")),
            self.relative("95th percentile of bytes", Unit::Bytes, SIZE_TOLERANCE, |p| percentile(p, "95")),
        ]
    }

    fn status(self) -> Vec<Difference> {
        let responses_of_class = |p: &Profile, digit: char| {
            let all = p.status.iter().filter(|(status, _)| status.len() == 3 && status.starts_with(digit));
            sum(all.map(|(_, n)| n))
        };
        let share = |digit: char| self.share(&format!("answers {digit}xx"), |p| responses_of_class(p, digit));
        ['2', '3', '4', '5'].map(share).into()
    }

    fn methods(self) -> Vec<Difference> {
        let names: BTreeSet<&String> = self.before.methods.keys().chain(self.after.methods.keys()).collect();
        let count = |p: &Profile, name: &str| p.methods.get(name).copied().unwrap_or(0);
        let difference = |name: &&String| self.share(&format!("method {name}"), |p| count(p, name));
        let is_common =
            |d: &Difference| [d.before, d.after].into_iter().flatten().any(|share| share >= MIN_METHOD_SHARE);
        names.iter().map(difference).filter(is_common).collect()
    }

    fn sessions(self) -> Vec<Difference> {
        let mean = |p: &Profile, times: fn(&Sessions) -> &Times| {
            p.sessions.as_ref().map(times).filter(|times| times.samples > 0).map(|times| times.mean)
        };
        let figure = |name: &str, unit: Unit, times: fn(&Sessions) -> &Times| {
            self.relative(name, unit, SESSION_TOLERANCE, |p| mean(p, times))
        };
        vec![
            figure("length of a session", Unit::Seconds, |s| &s.length_s),
            figure("requests of a session", Unit::Number, |s| &s.requests),
            figure("think time", Unit::Seconds, |s| &s.think_s),
        ]
    }
}

impl Difference {
    fn new(metric: &str, unit: Unit, before: Option<f64>, after: Option<f64>, tolerance: f64) -> Difference {
        let [before, after] = [before, after].map(|figure| figure.filter(|figure| figure.is_finite()));
        let tolerance = if tolerance.is_finite() { tolerance.max(0.0) } else { 0.0 };
        let both = before.zip(after);
        Difference {
            metric: metric.to_owned(),
            unit,
            before,
            after,
            relative_difference: both.and_then(|(before, after)| Some(ratio(after, before)? - 1.0)),
            tolerance,
            // The factor and the addend allow for rounding errors.
            is_within_tolerance: both.map(|(before, after)| (after - before).abs() <= tolerance * (1.0 + 1e-9) + 1e-12),
        }
    }
}

/// Compares two shares, with a tolerance of [`SHARE_TOLERANCE`] plus random variation.
fn share_difference(name: &str, before: Option<f64>, after: Option<f64>, requests: u64) -> Difference {
    let chance = before.zip(after).map_or(0.0, |(before, after)| {
        let share = (0.5 * (before + after)).clamp(0.0, 1.0);
        ratio(share * (1.0 - share), requests as f64).map_or(0.0, f64::sqrt)
    });
    Difference::new(name, Unit::Share, before, after, SHARE_TOLERANCE + STANDARD_ERRORS * chance)
}

/// Pairs the classes of two profiles by name. If the names differ but the numbers of classes are equal, classes are
/// paired by order, because size classes are named after sizes, which are rarely equal in two logs. The class of
/// responses without a body is always paired by name.
fn class_pairs<'a>(
    before: &'a [LogClass],
    after: &'a [LogClass],
) -> Vec<(String, Option<&'a LogClass>, Option<&'a LogClass>)> {
    let named = |classes: &'a [LogClass], name: &str| classes.iter().find(|class| class.name == name);
    let [with_body, other_with_body] = [before, after].map(|all| all.iter().filter(|class| class.name != EMPTY_CLASS));
    let has_all = with_body.clone().all(|class| named(after, &class.name).is_some());
    let mut pairs = Vec::new();
    if let (empty, other) = (named(before, EMPTY_CLASS), named(after, EMPTY_CLASS))
        && (empty.is_some() || other.is_some())
    {
        pairs.push((EMPTY_CLASS.to_owned(), empty, other));
    }
    if with_body.clone().count() == other_with_body.clone().count() && !has_all {
        let in_order = with_body.zip(other_with_body);
        pairs.extend(in_order.map(|(b, a)| (format!("{} / {}", b.name, a.name), Some(b), Some(a))));
        return pairs;
    }
    pairs.extend(with_body.map(|class| (class.name.clone(), Some(class), named(after, &class.name))));
    let new = other_with_body.filter(|class| named(before, &class.name).is_none());
    pairs.extend(new.map(|class| (class.name.clone(), None, Some(class))));
    pairs
}

fn per_second(dispersion: &[Dispersion]) -> Option<Dispersion> {
    dispersion.iter().copied().find(|dispersion| (dispersion.epoch_s - EPOCH_S).abs() < 1e-6)
}

fn total(classes: &[LogClass]) -> u64 {
    sum(classes.iter().map(|class| &class.requests))
}

fn sum<'a>(counts: impl Iterator<Item = &'a u64>) -> u64 {
    counts.fold(0, |sum, count| sum.saturating_add(*count))
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole != 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::profile::{Peak, Sizes, UrlPopularity};
    use std::collections::BTreeMap;

    fn class(name: &str, requests: u64, share_requests: f64, share_bytes: f64) -> LogClass {
        LogClass { name: name.to_owned(), requests, share_requests, share_bytes, ..LogClass::default() }
    }

    fn counts(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    fn times(mean: f64) -> Times {
        Times { samples: 100, mean, ..Times::default() }
    }

    fn a_profile() -> Profile {
        Profile {
            requests: 10_000,
            peak: Peak { rate: 100.0, ..Peak::default() },
            dispersion: vec![Dispersion { epoch_s: 1.0, epochs: 3600, index: 2.0, interval95: [1.8, 2.2] }],
            classes: vec![class("small", 8_000, 0.8, 0.3), class("large", 2_000, 0.2, 0.7)],
            sizes: Sizes {
                responses: 9_000,
                mean: 10_000.0,
                percentiles: [("50", 2_000.0), ("95", 40_000.0)].map(|(of, b)| (of.to_owned(), b)).into(),
                ..Sizes::default()
            },
            status: counts(&[("0", 10), ("200", 8_990), ("304", 900), ("404", 100)]),
            methods: counts(&[("GET", 9_800), ("POST", 190), ("PATCH", 10)]),
            zero_length: counts(&[("not_modified", 900), ("not_found", 100)]),
            popularity: UrlPopularity { zipf: Some(1.0), ..UrlPopularity::default() },
            sessions: Some(Sessions {
                length_s: times(300.0),
                requests: times(8.0),
                think_s: times(30.0),
                ..Sessions::default()
            }),
            ..Profile::default()
        }
    }

    /// The names of the metrics that are out of tolerance.
    fn metrics_out_of_tolerance(before: &Profile, after: &Profile) -> Vec<String> {
        let comparison = compare(before, after);
        let apart =
            comparison.differences.into_iter().filter(|difference| difference.is_within_tolerance == Some(false));
        let apart: Vec<String> = apart.map(|difference| difference.metric).collect();
        assert_eq!(comparison.all_within_tolerance, apart.is_empty());
        apart
    }

    #[test]
    fn a_profile_is_like_itself_in_all_that_it_knows() {
        let comparison = compare(&a_profile(), &a_profile());
        assert!(comparison.all_within_tolerance);
        for difference in &comparison.differences {
            assert_eq!(
                (difference.before, difference.is_within_tolerance),
                (difference.after, Some(true)),
                "{difference:?}"
            );
        }
        let figures: Vec<&str> = comparison.differences.iter().map(|difference| difference.metric.as_str()).collect();
        assert!(figures.contains(&"class large: share of data") && figures.contains(&"method POST"), "{figures:?}");
        assert!(!figures.contains(&"method PATCH"), "rare methods must not be compared");
        assert!(
            !compare(&Profile::default(), &Profile::default()).all_within_tolerance,
            "empty profiles must not count as alike"
        );
    }

    #[test]
    fn each_figure_is_noticed_beyond_its_tolerance_and_not_within() {
        type Change = fn(&mut Profile, f64);
        let cases: [(&str, Change, f64, f64); 9] = [
            ("mean rate in the peak window", |p, x| p.peak.rate = x, 104.9, 105.1),
            ("mean bytes of an answer", |p, x| p.sizes.mean = x, 9_010.0, 8_990.0),
            (
                "95th percentile of bytes",
                |p, x| *p.sizes.percentiles.entry("95".into()).or_default() = x,
                43_990.0,
                44_010.0,
            ),
            // The tolerance is 2 percentage points plus two standard errors of 0.3 points: 900 of 10,000 responses may
            // become up to 1,160.
            ("answers 3xx", |p, x| *p.status.entry("304".into()).or_default() = x as u64, 1_150.0, 1_170.0),
            ("method POST", |p, x| *p.methods.entry("POST".into()).or_default() = x as u64, 410.0, 450.0),
            ("exponent of Zipf's law", |p, x| p.popularity.zipf = Some(x), 1.09, 1.11),
            ("length of a session", |p, x| p.sessions.as_mut().unwrap().length_s.mean = x, 359.0, 361.0),
            ("requests of a session", |p, x| p.sessions.as_mut().unwrap().requests.mean = x, 6.5, 6.3),
            ("think time", |p, x| p.sessions.as_mut().unwrap().think_s.mean = x, 35.9, 36.1),
        ];
        for (figure, change, within, beyond) in cases {
            let with = |x: f64| {
                let mut after = a_profile();
                change(&mut after, x);
                metrics_out_of_tolerance(&a_profile(), &after)
            };
            assert_eq!(with(within), [""; 0], "{figure}");
            assert_eq!(with(beyond), [figure]);
        }
    }

    #[test]
    fn dispersions_are_alike_where_their_intervals_meet() {
        let with = |index: f64, interval95: [f64; 2]| {
            let dispersion = vec![Dispersion { epoch_s: 1.0, epochs: 3600, index, interval95 }];
            Profile { dispersion, ..a_profile() }
        };
        assert_eq!(metrics_out_of_tolerance(&a_profile(), &with(2.5, [2.19, 2.8])), [""; 0]);
        assert_eq!(
            metrics_out_of_tolerance(&a_profile(), &with(2.5, [2.21, 2.8])),
            ["dispersion of requests per second"]
        );
        assert_eq!(metrics_out_of_tolerance(&a_profile(), &with(1.6, [1.4, 1.81])), [""; 0]);
        assert_eq!(
            metrics_out_of_tolerance(&a_profile(), &with(1.6, [1.4, 1.79])),
            ["dispersion of requests per second"]
        );
    }

    #[test]
    fn shares_of_few_requests_may_differ_by_more() {
        let with = |requests: u64, share: f64| Profile {
            requests,
            classes: vec![
                class("small", (requests as f64 * share) as u64, share, 0.3),
                class("large", (requests as f64 * (1.0 - share)) as u64, 1.0 - share, 0.7),
            ],
            ..Profile::default()
        };
        assert_eq!(metrics_out_of_tolerance(&with(100, 0.5), &with(100_000, 0.6)), [""; 0]);
        let both = ["class small: share of requests", "class large: share of requests"];
        assert_eq!(metrics_out_of_tolerance(&with(10_000, 0.5), &with(100_000, 0.6)), both);
    }

    #[test]
    fn classes_are_compared_by_name_else_by_order() {
        let with = |classes: Vec<LogClass>| Profile { classes, ..a_profile() };
        let other_order = with(vec![class("large", 2_000, 0.2, 0.7), class("small", 8_000, 0.8, 0.3)]);
        assert_eq!(metrics_out_of_tolerance(&a_profile(), &other_order), [""; 0]);
        let renamed = with(vec![class("a", 8_000, 0.8, 0.3), class("b", 2_000, 0.2, 0.7)]);
        assert_eq!(metrics_out_of_tolerance(&a_profile(), &renamed), [""; 0]);
        assert!(compare(&a_profile(), &renamed).differences.iter().any(|d| d.metric.starts_with("class large / b: ")));
        let with_empty = |name: &str, empty: f64, rest: f64| {
            with(vec![class(EMPTY_CLASS, 1_000, empty, 0.0), class(name, 9_000, rest, 1.0)])
        };
        assert_eq!(metrics_out_of_tolerance(&with_empty("1-100", 0.1, 0.9), &with_empty("2-99", 0.11, 0.89)), [""; 0]);
        let none = with(vec![class("3-100", 10_000, 1.0, 1.0)]);
        assert_eq!(
            metrics_out_of_tolerance(&with_empty("1-100", 0.01, 0.99), &none),
            [""; 0],
            "a small share of responses without a body must be within tolerance"
        );
        assert_eq!(metrics_out_of_tolerance(&with_empty("1-100", 0.1, 0.9), &none).len(), 2);
        let one = with(vec![class("small", 10_000, 1.0, 1.0)]);
        assert_eq!(
            metrics_out_of_tolerance(&a_profile(), &one).len(),
            4,
            "a missing class must count as a share of zero"
        );
        assert_eq!(metrics_out_of_tolerance(&one, &a_profile()).len(), 4);
        let unknown = with(Vec::new());
        assert_eq!(metrics_out_of_tolerance(&a_profile(), &unknown), [""; 0], "unknown classes must not be compared");
    }

    #[test]
    fn what_is_not_known_or_no_number_has_no_verdict() {
        let after = Profile { sessions: None, ..a_profile() };
        let comparison = compare(&a_profile(), &after);
        let think = comparison.differences.iter().find(|d| d.metric == "think time").unwrap();
        assert_eq!(
            (think.before, think.after, think.relative_difference, think.is_within_tolerance),
            (Some(30.0), None, None, None)
        );
        assert!(comparison.all_within_tolerance);
        let mut broken = a_profile();
        (broken.peak.rate, broken.sizes.mean) = (f64::INFINITY, f64::NAN);
        assert!(compare(&a_profile(), &broken).all_within_tolerance);
        // If the first value is zero, the relative difference is undefined.
        let none = Difference::new("x", Unit::Share, Some(0.0), Some(0.5), 0.1);
        assert_eq!((none.relative_difference, none.is_within_tolerance), (None, Some(false)));
    }
}
