use super::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::BTreeMap;

/// 2026-03-02 (a Monday) 00:00 UTC, in seconds since 1970.
const MONDAY: i64 = 1_772_409_600;

fn calendar(times_s: &[i64]) -> Calendar {
    let mut calendar = Calendar::default();
    times_s.iter().for_each(|second| calendar.add(second * NS_PER_S, *second));
    calendar
}

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").unwrap()
}

#[test]
fn counts_are_those_of_a_map_in_whatever_order_stamps_come() {
    let mut rng = Pcg64::seed_from_u64(1);
    let times: Vec<i64> = (0..20_000).map(|_| MONDAY - 5_000 + rng.random_range(0..200_000i64)).collect();
    let calendar = calendar(&times);
    let (mut seconds, mut minutes) = (BTreeMap::<i64, u64>::new(), BTreeMap::<i64, u64>::new());
    for time in &times {
        *seconds.entry(*time).or_default() += 1;
        *minutes.entry(time.div_euclid(60) * 60).or_default() += 1;
    }
    assert_eq!(calendar.minutes().collect::<BTreeMap<_, _>>(), minutes);
    assert_eq!(calendar.busiest_minute(), *minutes.values().max().unwrap());
    assert_eq!(calendar.busiest_second, *seconds.values().max().unwrap());
    let range = MONDAY - 1_234..MONDAY + 8_000;
    let expected: Vec<u64> = range.clone().map(|second| seconds.get(&second).copied().unwrap_or(0)).collect();
    assert_eq!(calendar.counts_per_second(range), Some(expected));
    let mut windows = BTreeMap::<i64, u64>::new();
    minutes.iter().for_each(|(minute, count)| *windows.entry(minute.div_euclid(7_200) * 7_200).or_default() += count);
    let (from, requests) = calendar.busiest_window(7_200).unwrap();
    assert_eq!((requests, windows[&from]), (*windows.values().max().unwrap(), requests));
    let span = calendar.span().unwrap();
    let (first, last) = (times.iter().min().unwrap() * NS_PER_S, times.iter().max().unwrap() * NS_PER_S);
    assert_eq!(span, Span { first_ns: first, last_ns: last, requests: 20_000, stray_requests: 0 });
}

#[test]
fn a_course_has_all_requests_in_few_steps() {
    for (days, step_s) in [(1, 60), (3, 300), (20, 900), (80, 3_600), (400, 21_600), (999, 43_200), (1_900, 86_400)] {
        let times: Vec<i64> = (0..days * 50).map(|i| MONDAY + 3_333 + i * DAY_S / 50).collect();
        let calendar = calendar(&times);
        let rate_history = calendar.rate_history(&calendar.span().unwrap(), &berlin());
        assert_eq!(rate_history.step_s, step_s, "{days} days");
        assert!(
            rate_history.rates.len() <= 2_000
                && rate_history.from_s <= times[0]
                && times[0] < rate_history.from_s + step_s
        );
        let sum: f64 = rate_history.rates.iter().sum();
        assert!((sum * step_s as f64 - times.len() as f64).abs() < 1e-6 * times.len() as f64);
        assert!(rate_history.rates.last().is_some_and(|rate| *rate > 0.0));
    }
    let years: Vec<i64> = (0..365 * 20).step_by(5).map(|day| MONDAY + day * DAY_S).collect();
    let calendar = calendar(&years);
    let rate_history = calendar.rate_history(&calendar.span().unwrap(), &TimeZone::UTC);
    assert_eq!(
        (rate_history.step_s % DAY_S, rate_history.from_s),
        (0, MONDAY.div_euclid(rate_history.step_s) * rate_history.step_s)
    );
    assert!((1_000..=2_000).contains(&rate_history.rates.len()), "{}", rate_history.rates.len());
}

#[test]
fn days_of_23_and_25_hours_are_counted_by_their_clocks() {
    // One request in the middle of each hour, for four weeks. The clocks change to summer time on 2026-03-29 at 01:00
    // UTC.
    let times: Vec<i64> = (0..4 * 168).map(|hour| MONDAY + 14 * DAY_S + hour * HOUR_S + 1_800).collect();
    let calendar = calendar(&times);
    let week = calendar.week(&calendar.span().unwrap(), &berlin());
    assert_eq!(week.by_hour.iter().sum::<u64>(), times.len() as u64);
    assert_eq!(week.by_weekday.iter().sum::<u64>(), times.len() as u64);
    // In local time, the log extends from Monday 01:30 to Monday 01:30, so 01:30 occurs once more than on 28 days. The
    // clocks skipped 02:30 once, so 02:30 occurs once less.
    assert_eq!((week.by_hour[1], week.by_hour[2], week.by_hour[3]), (29, 27, 28));
    assert_eq!(week.by_weekday[6], 4 * 24 - 1);
    for (hour, rate) in week.rates.iter().flatten().enumerate() {
        assert!((rate * 3_600.0 - 1.0).abs() < 0.35, "hour {hour} of the week: {rate}");
    }
    assert!((week.rates[2][12] * 3_600.0 - 1.0).abs() < 1e-9, "a rate must be the mean of four equal hours");
    // The week contains 2026-10-25. At 01:00 UTC on this day, the clocks are set back, so the local time 02:30 occurs
    // twice.
    let autumn: Vec<i64> = (0..24 * 7).map(|hour| 1_792_454_400 + hour * HOUR_S + 1_800).collect();
    let calendar = self::calendar(&autumn);
    let week = calendar.week(&calendar.span().unwrap(), &berlin());
    assert_eq!(week.by_hour[2], 8);
}

#[test]
fn zones_of_half_hours_are_right() {
    let zone = TimeZone::get("Asia/Kolkata").unwrap();
    // Monday 00:00 UTC is 05:30 in this zone. There are 20 requests until 06:00, and 40 in the hour after.
    let times: Vec<i64> = (0..20).map(|i| MONDAY + i * 90).chain((0..40).map(|i| MONDAY + 1_800 + i * 90)).collect();
    let calendar = calendar(&times);
    let week = calendar.week(&calendar.span().unwrap(), &zone);
    assert_eq!((week.by_hour[5], week.by_hour[6], week.by_weekday[0]), (20, 40, 60));
    assert!((week.rates[0][5] - 20.0 / 1_800.0).abs() < 1e-9, "{}", week.rates[0][5]);
}

#[test]
fn stray_stamps_do_not_stretch_the_span() {
    let mut times: Vec<i64> = (0..1_000).map(|i| MONDAY + i * 10).collect();
    times.extend([0, MONDAY + 400 * DAY_S, MONDAY - 31 * DAY_S]);
    let span = calendar(&times).span().unwrap();
    assert_eq!((span.first_ns, span.last_ns, span.stray_requests), (MONDAY * NS_PER_S, (MONDAY + 9_990) * NS_PER_S, 3));
    // Two groups with equally many requests, a year apart. Expects that neither group is discarded as requests with
    // wrong times.
    let both: Vec<i64> = (0..100).flat_map(|i| [MONDAY + i, MONDAY + 365 * DAY_S + i]).collect();
    let span = calendar(&both).span().unwrap();
    assert_eq!((span.requests, span.stray_requests, span.first_ns), (200, 0, MONDAY * NS_PER_S));
    assert_eq!(Calendar::default().span(), None);
}

#[test]
fn memory_has_a_bound_and_what_is_not_known_is_not_said() {
    let mut calendar = Calendar::default();
    let mut rng = Pcg64::seed_from_u64(3);
    for _ in 0..20_000 {
        let second = MONDAY + rng.random_range(-5_000..5_000) * DAY_S;
        calendar.add(second * NS_PER_S, second);
    }
    assert_eq!((calendar.days.len(), calendar.hours.len()), (MAX_DAYS, MAX_HOURS));
    assert_eq!(calendar.hour_places.len(), MAX_HOURS);
    let counted: u64 = calendar.days.iter().map(|day| day.requests).sum();
    assert!(calendar.uncounted_requests > 0 && counted + calendar.uncounted_requests == 20_000);
    let known = calendar.days.iter().filter(|day| {
        let from = day.number * DAY_S;
        calendar
            .counts_per_second(from..from + 3_600)
            .is_some_and(|seconds| seconds.iter().sum::<u64>() == day.requests)
    });
    assert!((1..=MAX_HOURS).contains(&known.count()));
    for extreme in [i64::MIN, i64::MAX, 0, -1] {
        let mut calendar = Calendar::default();
        calendar.add(extreme, extreme.div_euclid(NS_PER_S));
        let span = calendar.span().unwrap();
        let (rate_history, week) = (calendar.rate_history(&span, &berlin()), calendar.week(&span, &berlin()));
        assert_eq!((rate_history.rates.len(), week.by_hour.iter().sum::<u64>()), (1, 1));
    }
}

#[test]
fn the_busiest_hours_keep_their_seconds() {
    let mut calendar = calendar(&(0..1_000).map(|i| MONDAY + i).collect::<Vec<_>>());
    for hour in 1..3_000 {
        calendar.add((MONDAY + hour * HOUR_S) * NS_PER_S, MONDAY + hour * HOUR_S);
    }
    assert_eq!(calendar.counts_per_second(MONDAY..MONDAY + 3_600).map(|seconds| seconds.iter().sum()), Some(1_000u64));
    assert_eq!(
        calendar.counts_per_second(MONDAY + 3_600..MONDAY + 4 * 3_600),
        None,
        "the seconds of these hours were dropped"
    );
    assert_eq!(
        calendar.counts_per_second(MONDAY - 7_200..MONDAY - 3_600),
        Some(vec![0; 3_600]),
        "hours without requests must have counts of zero"
    );
}
