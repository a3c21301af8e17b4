use super::super::urls::{hash_url, url};
use super::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const HOUR: i64 = 3_600 * NS_PER_S;

fn add(windows: &mut Windows, time_ns: i64, target: &str, bytes: u64) {
    let entry = Entry { time_ns, method: b"GET", target: target.as_bytes(), bytes: Some(bytes), ..Entry::default() };
    let url = url(entry.target);
    let hash = hash_url(&windows.hasher, url);
    windows.add(&entry, Some(target), (url, hash));
}

fn windows(given: Option<(i64, i64)>) -> Windows {
    Windows::new(3_600, given, RandomState::default())
}

#[test]
fn the_busiest_of_many_hours_is_whole() {
    let mut rng = Pcg64::seed_from_u64(1);
    let mut windows = windows(None);
    let (mut counts, mut with_bodies) = ([0u64; 100], 0);
    for hour in 0..100 {
        let requests = if hour == 41 { 500 } else { rng.random_range(10..400) };
        for i in 0..requests {
            // One timestamp in ten is up to an hour too early.
            let late = if i % 10 == 0 { rng.random_range(0..HOUR) } else { 0 };
            let time = hour * HOUR + rng.random_range(0..HOUR) - late;
            counts[(time / HOUR).max(0) as usize] += u64::from(time >= 0);
            with_bodies += u64::from(i % 5 > 0);
            add(&mut windows, time, &format!("/{}", i % 7), (i % 5) as u64);
        }
    }
    assert!(windows.kept.len() <= RECENT_WINDOWS + 1);
    let busiest = windows.clone().take_busiest().unwrap();
    assert_eq!(busiest.from_ns, 41 * HOUR);
    let all: u64 = windows.sizes().sorted().iter().map(|size| size.count).sum();
    assert_eq!(all, with_bodies);
    assert_eq!((busiest.requests, busiest.seconds), (*counts.iter().max().unwrap(), 3_600));
    let with_body: u64 = busiest.sizes.sorted().iter().map(|size| size.count).sum();
    assert_eq!(with_body + busiest.zero_length, busiest.requests);
    assert_eq!(busiest.urls.sorted().iter().map(|url| url.requests).sum::<u64>(), busiest.requests);
    assert_eq!(busiest.requests_by_key.values().map(|keyed| keyed.requests).sum::<u64>(), busiest.requests);
    assert_eq!(busiest.requests_by_key.values().map(|keyed| keyed.bytes).sum::<u64>(), busiest.bytes);
}

#[test]
fn a_log_that_is_no_longer_than_a_window_is_one() {
    let mut windows = windows(None);
    let noon = 12 * HOUR;
    for minute in [-29, 0, 15, -30, 28] {
        add(&mut windows, noon + minute * 60 * NS_PER_S, "/", 1);
    }
    let whole = windows.clone().take_busiest().unwrap();
    assert_eq!((whole.from_ns, whole.requests), (noon - HOUR / 2, 5));
    add(&mut windows, noon + HOUR / 2, "/", 1);
    let busiest = windows.clone().take_busiest().unwrap();
    assert_eq!((busiest.from_ns, busiest.requests), (noon, 4));
}

#[test]
fn the_whole_is_the_same_whether_it_lies_in_one_window_or_in_two() {
    let described = |from_ns: i64| {
        let mut windows = windows(None);
        for i in 0..400 {
            let bytes = (i % 23) as u64;
            add(&mut windows, from_ns + i * 5 * NS_PER_S, &format!("/{}", i % 17), bytes);
        }
        let whole = windows.clone().take_busiest().unwrap();
        assert_eq!((whole.from_ns, whole.seconds), (from_ns - 60 * NS_PER_S, 3_600));
        let urls: Vec<_> = whole.urls.sorted().iter().map(|url| (url.url.clone(), url.requests)).collect();
        let keyed: Vec<_> = whole.requests_by_key.iter().map(|(key, keyed)| (key.clone(), keyed.requests)).collect();
        (windows.kept.len(), (whole.requests, whole.bytes, whole.zero_length, whole.sizes.sorted(), urls, keyed))
    };
    let (one, two) = (described(HOUR), described(HOUR + HOUR / 2));
    assert_eq!((one.0, two.0, one.1.0), (1, 2, 400));
    assert_eq!(one.1, two.1);
}

#[test]
fn memory_that_is_used_again_has_nothing_of_before() {
    let mut windows = windows(None);
    for hour in 0..40 {
        for i in 0..(hour % 10 + 1) {
            add(&mut windows, hour * HOUR + i, &format!("/{hour}/{i}"), (hour % 3) as u64);
        }
    }
    for (window, _) in &windows.kept {
        let hour = window.from_ns / HOUR;
        let sizes = window.sizes.sorted().iter().map(|size| size.count).sum::<u64>();
        assert_eq!((window.requests, window.bytes), ((hour % 10 + 1) as u64, ((hour % 10 + 1) * (hour % 3)) as u64));
        assert_eq!(
            (sizes + window.zero_length, window.requests_by_key.len() as u64),
            (window.requests, window.requests)
        );
        let of_hour = format!("/{hour}/").into_bytes();
        assert!(window.urls.sorted().iter().all(|url| url.requests == 1 && url.url.starts_with(&of_hour)));
        assert_eq!(window.urls.sorted().len() as u64, window.requests);
    }
}

#[test]
fn only_the_given_window_is_kept() {
    let mut windows = windows(Some((HOUR / 2, HOUR)));
    for minute in 0..120 {
        add(&mut windows, minute * 60 * NS_PER_S, "/", 1);
    }
    assert_eq!(windows.sizes().sorted().iter().map(|size| size.count).sum::<u64>(), 120);
    let given = windows.take_busiest().unwrap();
    assert_eq!((given.from_ns, given.seconds, given.requests), (HOUR / 2, 1_800, 30));
    let mut never = self::windows(Some((HOUR, HOUR)));
    add(&mut never, HOUR, "/", 1);
    assert!(never.take_busiest().is_none());
}

#[test]
fn keys_are_bounded() {
    let mut windows = windows(None);
    for i in 0..1_000u64 {
        add(&mut windows, 0, &format!("/{i}"), i);
    }
    let window = windows.take_busiest().unwrap();
    assert_eq!((window.requests_by_key.len(), window.requests_by_key[OTHER_KEY].requests), (MAX_KEYS + 1, 936));
    let other = &window.requests_by_key[OTHER_KEY];
    assert_eq!((other.min_bytes, other.max_bytes, other.bytes), (64, 999, (64..1_000).sum()));
    assert_eq!(other.sum_of_squared_bytes, (64..1_000u64).map(|i| (i * i) as f64).sum::<f64>());
}

#[test]
fn times_at_the_ends_of_the_range_have_a_window() {
    let mut windows = windows(None);
    for time in [i64::MIN, i64::MAX, i64::MIN + 1, i64::MAX - 1, -1, 0] {
        add(&mut windows, time, "/", 1);
    }
    assert_eq!(windows.take_busiest().map(|window| window.requests), Some(2));
}
