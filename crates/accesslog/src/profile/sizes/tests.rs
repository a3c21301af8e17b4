use super::super::histogram::bounds;
use super::*;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp, LogNormal, Pareto};
use rand_pcg::Pcg64;
use std::collections::BTreeMap;

fn counts(sizes: &[u64]) -> SizeCounts {
    let mut counts = SizeCounts::default();
    sizes.iter().for_each(|bytes| counts.add(*bytes, None));
    counts
}

fn described(sizes: &[u64]) -> Sizes {
    size_metrics(&counts(sizes), sizes.iter().copied().max().unwrap_or(0))
}

#[test]
fn every_size_is_counted_with_its_times() {
    let mut counts = SizeCounts::default();
    counts.add(500, Some(3_000));
    counts.add(20, None);
    counts.add(500, Some(4_000));
    counts.add(500, None);
    let sizes: Vec<_> =
        counts.sorted().iter().map(|s| (s.bytes, s.count, s.sum_bytes, s.service_ns, s.timed_responses)).collect();
    assert_eq!(sizes, [(20, 1, 20.0, 0.0, 0), (500, 3, 1500.0, 7_000.0, 2)]);
}

#[test]
fn sizes_are_those_of_a_map_and_memory_is_used_again() {
    let (mut counts, mut rng) = (SizeCounts::default(), Pcg64::seed_from_u64(6));
    for most in [50_000_u64, 7, 300_000, 900] {
        let mut map = BTreeMap::<u64, u64>::new();
        for _ in 0..60_000 {
            let bytes = rng.random_range(0..most) * 4_096;
            counts.add(bytes, None);
            *map.entry(bytes).or_default() += 1;
        }
        let found: BTreeMap<u64, u64> = counts.sorted().iter().map(|size| (size.bytes, size.count)).collect();
        assert!(counts.is_exact() && found == map, "{most}");
        counts.clear();
        assert!(counts.sorted().is_empty() && counts.is_exact());
    }
}

#[test]
fn what_is_counted_in_parts_is_counted_as_a_whole() {
    let mut rng = Pcg64::seed_from_u64(7);
    for (sizes, parts) in [(5_000, 3), (60_000, 2), (200_000, 3)] {
        let (mut whole, mut sum) = (SizeCounts::default(), SizeCounts::default());
        for part in 0..parts {
            let mut counts = SizeCounts::default();
            // The first of the added counts has at most 900 distinct sizes, so its sizes are counted exactly.
            let most = if part == 0 { 900 } else { sizes };
            for _ in 0..80_000 {
                let bytes = 1 + rng.random_range(0..most) * 97;
                counts.add(bytes, Some(5));
                whole.add(bytes, None);
            }
            sum.add_all(&counts);
        }
        assert_eq!((sum.sorted(), sum.is_exact()), (whole.sorted(), whole.is_exact()), "{sizes}");
    }
}

#[test]
fn of_many_distinct_sizes_steps_are_counted_and_nothing_is_lost() {
    let mut rng = Pcg64::seed_from_u64(1);
    let sizes: Vec<u64> = (0..300_000).map(|_| rng.random_range(1..10_000_000)).collect();
    let counts = counts(&sizes);
    let sorted = counts.sorted();
    assert!(!counts.is_exact() && sorted.len() <= STEPS);
    assert_eq!((counts.cells.capacity(), counts.times.capacity()), (0, 0));
    assert!(sorted.is_sorted_by(|a, b| a.bytes < b.bytes));
    assert_eq!(sorted.iter().map(|s| s.count).sum::<u64>(), 300_000);
    let total = sizes.iter().sum::<u64>() as f64;
    assert!((sorted.iter().map(|s| s.sum_bytes).sum::<f64>() / total - 1.0).abs() < 1e-12);
    let described = size_metrics(&counts, 9_999_999);
    for (name, share) in PERCENTILES {
        let off = described.percentiles[name] / (share * 1e7) - 1.0;
        assert!(off.abs() < 0.02, "{name} %: {}", described.percentiles[name]);
    }
    assert_eq!(bounds(step(1 << 40)).0, 1 << 40);
}

#[test]
fn percentiles_and_the_complementary_distribution_are_those_of_the_sorted_sizes() {
    let mut rng = Pcg64::seed_from_u64(2);
    let mut sizes: Vec<u64> = (0..5_000).map(|_| rng.random_range(1..60_000)).collect();
    let described = described(&sizes);
    sizes.sort_unstable();
    for (name, share) in PERCENTILES {
        assert_eq!(described.percentiles[name], sizes[(share * 5_000.0).ceil() as usize - 1] as f64, "{name} %");
    }
    assert!((40..=60).contains(&described.complementary.len()));
    for (bytes, share) in described.complementary {
        let above = sizes.iter().filter(|size| **size as f64 > bytes).count();
        assert_eq!(share, above as f64 / 5_000.0, "{bytes} bytes");
    }
}

#[test]
fn few_sizes_are_no_distribution() {
    assert_eq!(described(&[]), Sizes::default());
    let same = described(&[7; 1_000]);
    assert_eq!((same.mean, same.percentiles["99.9"], same.max, same.tail), (7.0, 7.0, 7, None));
    assert_eq!(same.complementary, []);
    assert_eq!(described(&[1, u64::MAX, u64::MAX]).max, u64::MAX);
}

#[test]
fn the_index_of_a_tail_is_found() {
    for (seed, index) in [(1, 1.2), (2, 1.2), (3, 1.5), (4, 2.5)] {
        let mut rng = Pcg64::seed_from_u64(seed);
        let (body, heavy) = (LogNormal::<f64>::new(8.0, 1.0).unwrap(), Pareto::new(40_000.0, index).unwrap());
        let draw = |i: u32| {
            if i.is_multiple_of(10) { heavy.sample(&mut rng) } else { body.sample(&mut rng).min(40_000.0) }
        };
        let sizes: Vec<u64> = (0..60_000).map(draw).map(|bytes| bytes as u64 + 1).collect();
        let tail = described(&sizes).tail.unwrap();
        // The chosen threshold may differ from the true threshold, which adds an error. So the tolerance is 15 %, which
        // is wider than the 95 % interval.
        assert!((tail.index - index).abs() < 0.15 * index, "{index} is estimated as {tail:?}");
        assert!(tail.responses >= 100 && tail.interval95[0] < tail.index && tail.index < tail.interval95[1]);
    }
}

#[test]
fn sizes_that_fall_faster_than_a_power_have_a_steep_tail_or_none() {
    let mut rng = Pcg64::seed_from_u64(5);
    let exponential = Exp::<f64>::new(1.0 / 10_000.0).unwrap();
    let sizes: Vec<u64> = (0..20_000).map(|_| exponential.sample(&mut rng) as u64 + 1).collect();
    assert!(described(&sizes).tail.is_none_or(|tail| tail.index > 3.0), "{:?}", described(&sizes).tail);
    assert_eq!(described(&sizes[..99]).tail, None, "99 sizes must be too few for a tail");
}
