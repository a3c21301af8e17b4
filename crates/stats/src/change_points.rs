//! Finds the change points of a series: the values from which its mean level is different. The values are a metric of
//! successive runs, such as the throughput in each nightly benchmark.
//!
//! The method is E-divisive (Matteson & James, Journal of the American Statistical Association 109, 2014). A segment is
//! divided at the position where the energy distance between the values before and after it is largest. It is divided
//! only if a permutation test finds that this distance is significant. Both parts are then examined in the same way. A
//! short segment can be divided in so few ways that random permutations often reproduce the same division, so even the
//! clearest change may fail the test. For short segments, a change is also significant if Student's t-test finds it.
//! That test assumes normally distributed noise.
//!
//! Besides the whole segment, shorter intervals of a fixed grid are examined (Kovács et al., Biometrika 110, 2023), so
//! that a change that is reverted after a few values is found too.
//!
//! The permutation test assumes that the order of the values within a segment is random. If the speed of a host drifts
//! slowly, this assumption is wrong: a drift that exceeds the scatter between neighbouring runs is reported as a
//! change.

use crate::student::t_probability;
use brimful_core::moments::Moments;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// Probability of reporting any change in a series without changes.
const FALSE_ALARM_PROBABILITY: f64 = 0.01;
/// Number of random permutations of a segment in the permutation test.
const PERMUTATIONS: usize = 499;
/// Number of permutations after which the permutation test ends early if the change is clear ([`CLEAR_RATIO`]).
const PERMUTATIONS_OF_CLEAR_CHANGE: usize = 30;
/// A change is clear if the energy distance between the values before and after it is this many times the largest such
/// distance in the permuted series. The tail of the distribution of these distances is exponential. So the probability
/// of exceeding twice the largest of [`PERMUTATIONS_OF_CLEAR_CHANGE`] distances is far below
/// [`FALSE_ALARM_PROBABILITY`].
const CLEAR_RATIO: f64 = 2.0;
/// The t-test is made only if there are fewer ways than this to divide the values of an interval into parts of the same
/// two lengths. A random permutation then yields the same division, or its mirror image, with a probability of more
/// than half of [`FALSE_ALARM_PROBABILITY`].
const FEW_DIVISIONS: f64 = 4.0 / FALSE_ALARM_PROBABILITY;
/// Minimum number of values before the first change, between changes, and after the last one. The mean distance of
/// fewer values has no meaning.
pub const MIN_SEGMENT: usize = 3;
/// Lengths of the intervals that are examined besides the whole segment. Each length is half of the one before, and
/// intervals of the same length overlap by half.
const INTERVAL_LENGTHS: [usize; 6] = [256, 128, 64, 32, 16, 8];
/// Maximum number of values for which the distances of all pairs are added one by one. For more values, sorting is
/// faster.
const MAX_PAIRED: usize = 128;
/// Number of passes in which every change is moved to the best position between its neighbours.
const REFINEMENTS: usize = 2;
/// The seed of the permutations is fixed, so that a series always has the same changes.
const SEED: u64 = 1;

/// Returns the index of the first value after each change, in increasing order. All values must be finite.
pub fn change_points(values: &[f64]) -> Vec<usize> {
    let mut splitter = Splitter::default();
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let mut points = Vec::new();
    let mut segments = vec![(0, values.len())];
    while let Some((begin, end)) = segments.pop() {
        let splits = splitter.significant_splits(&values[begin..end], &mut random);
        let mut start = begin;
        for point in splits.iter().map(|length| begin + length) {
            segments.push((start, point));
            points.push(point);
            start = point;
        }
        if start > begin {
            segments.push((start, end));
        }
    }
    points.sort_unstable();
    for _ in 0..REFINEMENTS {
        splitter.refine(values, &mut points);
    }
    points
}

/// The division of a segment of a series into two parts: the values before and after a change.
#[derive(Clone, Copy, Debug)]
struct Split {
    /// Number of values before the change.
    length: usize,
    /// The energy distance between both parts, multiplied by n·m / (n + m) for parts of n and m values.
    distance: f64,
}

/// The best division of an interval of a segment.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    begin: usize,
    end: usize,
    /// The split. Its length counts from the start of the segment, not of the interval.
    split: Split,
}

impl Candidate {
    /// Whether the values of the interval can be divided into two parts of the split's lengths in only a few ways.
    fn has_few_divisions(&self) -> bool {
        let (count, length) = (self.end - self.begin, self.split.length - self.begin);
        let smaller = length.min(count - length);
        // The binomial coefficient of `count` and `length`.
        (1..=smaller).fold(1.0, |ways, k| ways * (count - smaller + k) as f64 / k as f64) < FEW_DIVISIONS
    }

    /// Whether the means before and after the split differ by Student's t-test with equal variances, at the
    /// significance level `level`.
    fn passes_t_test(&self, values: &[f64], level: f64) -> bool {
        let parts = [&values[self.begin..self.split.length], &values[self.split.length..self.end]];
        let [Some(before), Some(after)] = parts.map(Moments::from_values) else { return false };
        let counts = [before.count() as f64, after.count() as f64];
        let freedom = counts[0] + counts[1] - 2.0;
        let squares = counts[0] * before.population_variance() + counts[1] * after.population_variance();
        let standard_error = (squares / freedom * (1.0 / counts[0] + 1.0 / counts[1])).sqrt();
        let probability = t_probability(freedom, (after.mean() - before.mean()) / standard_error);
        standard_error > 0.0 && probability.is_some_and(|probability| probability < level)
    }
}

/// Number of splits that are examined in a segment of `count` values. The significance level of each t-test is divided
/// by this number (Bonferroni), because the best of these splits is tested.
fn count_splits(count: usize) -> usize {
    let lengths = intervals(count).map(|(begin, end)| end - begin);
    lengths.chain([count]).map(|length| (length + 1).saturating_sub(2 * MIN_SEGMENT)).sum()
}

/// Finds the best split of a segment. The buffers are reused, because the permutation test computes hundreds of splits.
#[derive(Default)]
struct Splitter {
    /// The indices of the values, sorted by value.
    order: Vec<usize>,
    /// The rank of each value.
    ranks: Vec<usize>,
    /// The sum of each value's distances to all values.
    distance_sums: Vec<f64>,
    left: LeftPart,
    /// The sum of each value's distances to the values on its left.
    to_left: Vec<f64>,
    /// The sum of each value's distances to the values on its right.
    to_right: Vec<f64>,
}

impl Splitter {
    /// The significant changes of a segment: for each, the number of values before it, in increasing order. They are
    /// the change with the largest energy distance, if it is significant, and all clear changes ([`CLEAR_RATIO`]).
    fn significant_splits(&mut self, values: &[f64], random: &mut Pcg64Mcg) -> Vec<usize> {
        let mut candidates = self.splits(values);
        let largest_first = |one: &Candidate, other: &Candidate| other.split.distance.total_cmp(&one.split.distance);
        candidates.sort_by(largest_first);
        let Some(best_candidate) = candidates.first() else { return Vec::new() };
        let best = best_candidate.split;
        // If both tests are made, each has half of the significance level, so that the probability of a false alarm
        // stays the same.
        let mut level = FALSE_ALARM_PROBABILITY;
        if best_candidate.has_few_divisions() {
            level /= 2.0;
            if best_candidate.passes_t_test(values, level / count_splits(values.len()) as f64) {
                return vec![best.length];
            }
        }
        let allowed = (level * (PERMUTATIONS + 1) as f64) as usize - 1;
        let (mut larger, mut largest) = (0, 0.0_f64);
        let mut permuted = values.to_vec();
        for done in 1..=PERMUTATIONS {
            permuted.shuffle(random);
            let distance = self.largest_distance(&permuted);
            largest = largest.max(distance);
            larger += usize::from(distance >= best.distance);
            if larger > allowed {
                return Vec::new();
            }
            if done == PERMUTATIONS_OF_CLEAR_CHANGE && best.distance > CLEAR_RATIO * largest {
                return clear_splits(&candidates, CLEAR_RATIO * largest);
            }
        }
        vec![best.length]
    }

    /// The best split of the whole segment, and the best split of each of its intervals.
    fn splits(&mut self, values: &[f64]) -> Vec<Candidate> {
        let whole = [(0, values.len())];
        let best = |(begin, end): (usize, usize)| {
            let split = self.split(&values[begin..end])?;
            Some(Candidate { begin, end, split: Split { length: begin + split.length, ..split } })
        };
        whole.into_iter().chain(intervals(values.len())).filter_map(best).collect()
    }

    /// The largest energy distance of any split, in the whole segment or in one of its intervals.
    fn largest_distance(&mut self, values: &[f64]) -> f64 {
        let whole = [(0, values.len())];
        let distances = whole.into_iter().chain(intervals(values.len()));
        let distances = distances.filter_map(|(begin, end)| Some(self.split(&values[begin..end])?.distance));
        distances.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Moves each change to the best position between its neighbours. `points` are the sorted positions of the changes.
    fn refine(&mut self, values: &[f64], points: &mut [usize]) {
        for index in 0..points.len() {
            let begin = index.checked_sub(1).map_or(0, |before| points[before]);
            let end = points.get(index + 1).copied().unwrap_or(values.len());
            if let Some(split) = self.split(&values[begin..end]) {
                points[index] = begin + split.length;
            }
        }
    }

    /// The split with the largest energy distance. `None` if there are too few values.
    ///
    /// The energy distance of parts X and Y is 2·E|X−Y| − E|X−X′| − E|Y−Y′| (Matteson & James, equation 5, with α = 1).
    /// If a value moves from the right part to the left part, each of these three sums changes by the distances of this
    /// value to the values of one part.
    fn split(&mut self, values: &[f64]) -> Option<Split> {
        let count = values.len();
        match count {
            ..=MAX_PAIRED => self.sum_pairs(values),
            _ => self.sum_by_rank(values),
        }
        let (mut within_left, mut between) = (0.0, 0.0);
        let mut within_right = self.to_left.iter().sum::<f64>();
        let mut best: Option<Split> = None;
        let scale = 2.0 / count as f64;
        for length in 0..(count + 1).saturating_sub(MIN_SEGMENT) {
            if length >= MIN_SEGMENT {
                let (n, m) = (length as f64, (count - length) as f64);
                // The energy distance, multiplied by n·m / (n + m) for parts of n and m values.
                let distance = scale * (between - within_left * m / (n - 1.0) - within_right * n / (m - 1.0));
                if best.is_none_or(|best| distance > best.distance) {
                    best = Some(Split { length, distance });
                }
            }
            let (to_left, to_right) = (self.to_left[length], self.to_right[length]);
            within_left += to_left;
            within_right -= to_right;
            between += to_right - to_left;
        }
        best
    }

    /// Sums the distances of each value to the values on its left and on its right, pair by pair.
    fn sum_pairs(&mut self, values: &[f64]) {
        self.to_left.clear();
        self.to_right.clear();
        for (index, &value) in values.iter().enumerate() {
            self.to_left.push(sum_of_distances(value, &values[..index]));
            self.to_right.push(sum_of_distances(value, &values[index + 1..]));
        }
    }

    /// Sums the distances of each value to the values on its left and on its right. A Fenwick tree makes this O(n log
    /// n).
    fn sum_by_rank(&mut self, values: &[f64]) {
        self.rank(values);
        self.left.clear(values.len());
        self.to_left.clear();
        self.to_right.clear();
        for ((&value, &rank), &to_all) in values.iter().zip(&self.ranks).zip(&self.distance_sums) {
            let to_left = self.left.distances(value, rank);
            self.to_left.push(to_left);
            self.to_right.push(to_all - to_left);
            self.left.add(value, rank);
        }
    }

    /// Determines the rank of each value, and the sum of its distances to all values.
    fn rank(&mut self, values: &[f64]) {
        let count = values.len();
        self.order.clear();
        self.order.extend(0..count);
        self.order.sort_unstable_by(|&one, &other| values[one].total_cmp(&values[other]));
        self.ranks.resize(count, 0);
        self.distance_sums.resize(count, 0.0);
        let sum: f64 = values.iter().sum();
        let mut smaller = 0.0;
        for (rank, &index) in self.order.iter().enumerate() {
            let value = values[index];
            self.ranks[index] = rank;
            self.distance_sums[index] = value * (2.0 * rank as f64 - count as f64) + sum - 2.0 * smaller;
            smaller += value;
        }
    }
}

/// The sum of the distances of `value` to the other values. Several partial sums let the compiler use vector
/// instructions.
fn sum_of_distances(value: f64, others: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let chunks = others.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().map(|other| (value - other).abs()).sum();
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, other)| *sum += (value - other).abs());
    }
    sums.iter().sum::<f64>() + rest
}

/// The splits whose energy distance exceeds `distance`, in increasing order of position. `candidates` are sorted by
/// distance, largest first. A candidate is left out if its interval contains a split with a larger distance, because
/// that split may be the candidate's cause.
fn clear_splits(candidates: &[Candidate], distance: f64) -> Vec<usize> {
    let mut lengths: Vec<usize> = Vec::new();
    for Candidate { begin, end, split } in candidates.iter().filter(|candidate| candidate.split.distance > distance) {
        if !lengths.iter().any(|length| begin < length && length < end) {
            lengths.push(split.length);
        }
    }
    lengths.sort_unstable();
    lengths
}

/// The values before a split. Two Fenwick trees contain their counts and their sums, by rank (Fenwick, Software:
/// Practice and Experience 24, 1994).
#[derive(Default)]
struct LeftPart {
    nodes: Vec<(f64, f64)>,
    count: f64,
    sum: f64,
}

impl LeftPart {
    /// Removes all values, and prepares for values with ranks below `ranks`.
    fn clear(&mut self, ranks: usize) {
        self.nodes.clear();
        self.nodes.resize(ranks + 1, (0.0, 0.0));
        (self.count, self.sum) = (0.0, 0.0);
    }

    fn add(&mut self, value: f64, rank: usize) {
        self.count += 1.0;
        self.sum += value;
        let mut node = rank + 1;
        while let Some((count, sum)) = self.nodes.get_mut(node) {
            *count += 1.0;
            *sum += value;
            node += node & node.wrapping_neg();
        }
    }

    /// The sum of the distances of a value with the rank `rank` to all values before the split.
    fn distances(&self, value: f64, rank: usize) -> f64 {
        let (mut smaller_count, mut smaller_sum) = (0.0, 0.0);
        let mut node = rank;
        while node > 0 {
            smaller_count += self.nodes[node].0;
            smaller_sum += self.nodes[node].1;
            node &= node - 1;
        }
        value * (2.0 * smaller_count - self.count) + self.sum - 2.0 * smaller_sum
    }
}

/// The intervals `(begin, end)` of a segment of `count` values that are examined in addition to the whole segment.
fn intervals(count: usize) -> impl Iterator<Item = (usize, usize)> {
    INTERVAL_LENGTHS.into_iter().filter(move |&length| length < count).flat_map(move |length| {
        let steps = (count - length).div_ceil(length / 2);
        (0..=steps).map(move |step| {
            let begin = (step * (length / 2)).min(count - length);
            (begin, begin + length)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;
    use rand_distr::{Distribution, Normal};

    /// A series of random values. Each element of `levels` is a number of values and their mean. The values have a
    /// standard deviation of 1.
    fn series(random: &mut Pcg64Mcg, levels: &[(usize, f64)]) -> Vec<f64> {
        let noise = Normal::new(0.0, 1.0).unwrap();
        levels.iter().flat_map(|&(count, level)| vec![level; count]).map(|level| level + noise.sample(random)).collect()
    }

    fn near(found: &[usize], expected: &[usize]) -> bool {
        found.len() == expected.len() && found.iter().zip(expected).all(|(one, other)| one.abs_diff(*other) <= 1)
    }

    #[test]
    fn distances_are_those_of_the_definition() {
        let mut random = Pcg64Mcg::seed_from_u64(4);
        for count in [6, 7, 20, MAX_PAIRED + 2] {
            // The values are integers from 0 to 8, so some of them are equal.
            let values: Vec<f64> = (0..count).map(|_| f64::from(random.random_range(0..9_u8))).collect();
            let pairs = |one: &[f64], other: &[f64]| -> f64 {
                one.iter().flat_map(|x| other.iter().map(move |y| (x - y).abs())).sum()
            };
            let distance = |length: usize| {
                let (left, right) = values.split_at(length);
                let (n, m) = (left.len() as f64, right.len() as f64);
                let within = pairs(left, left) / (n * (n - 1.0)) + pairs(right, right) / (m * (m - 1.0));
                n * m / (n + m) * (2.0 * pairs(left, right) / (n * m) - within)
            };
            let largest = (MIN_SEGMENT..=count - MIN_SEGMENT).map(distance).fold(f64::NEG_INFINITY, f64::max);
            let split = Splitter::default().split(&values).unwrap();
            assert!((split.distance - largest).abs() < 1e-9 && (distance(split.length) - largest).abs() < 1e-9);
        }
    }

    #[test]
    fn a_series_without_changes_has_none() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let alarms = (0..200).filter(|_| !change_points(&series(&mut random, &[(60, 10.0)])).is_empty()).count();
        // At a false alarm probability of 1 %, 2 false alarms are expected in 200 series. More than 7 have a
        // probability of 0.1 %.
        assert!(alarms <= 7, "{alarms} of 200");
        assert_eq!(change_points(&[3.0; 50]), Vec::<usize>::new());
    }

    #[test]
    fn steps_and_a_change_that_is_undone_are_found() {
        let mut random = Pcg64Mcg::seed_from_u64(6);
        let found = change_points(&series(&mut random, &[(30, 10.0), (30, 15.0), (20, 8.0)]));
        assert!(near(&found, &[30, 60]), "{found:?}");
        let found = change_points(&series(&mut random, &[(100, 10.0), (8, 16.0), (100, 10.0)]));
        assert!(near(&found, &[100, 108]), "{found:?}");
        let found = change_points(&series(&mut random, &[(3000, 10.0), (3000, 12.0)]));
        assert!(near(&found, &[3000]), "{found:?}");
    }

    #[test]
    fn many_steps_of_a_long_series_are_found() {
        let mut random = Pcg64Mcg::seed_from_u64(8);
        let levels: Vec<(usize, f64)> = (0..20).map(|step| (100, if step % 2 == 0 { 10.0 } else { 14.0 })).collect();
        let found = change_points(&series(&mut random, &levels));
        let expected: Vec<usize> = (1..20).map(|step| 100 * step).collect();
        assert!(near(&found, &expected), "{found:?}");
    }

    #[test]
    fn short_series_have_no_changes() {
        for count in 0..2 * MIN_SEGMENT {
            assert_eq!(change_points(&vec![1.0; count]), Vec::<usize>::new());
        }
    }

    #[test]
    fn a_step_in_a_history_of_a_few_runs_is_found() {
        // With 6 and 4 values, 1 % of all permutations divide the values in the same way. A change is found only if at
        // least MIN_SEGMENT values follow it.
        let throughput = [10.43, 10.23, 10.29, 10.91, 10.34, 10.69, 9.23, 9.11, 9.13, 9.03];
        assert_eq!(change_points(&throughput), [6]);
        assert_eq!(change_points(&[0.3, 2.4, 1.5, -0.9, -0.5, 99.7, 98.3, 99.1, 149.0, 149.7, 149.5, 149.1]), [5, 8]);
        // Without noise, no t-test is possible.
        assert_eq!(change_points(&[1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0]), Vec::<usize>::new());
    }

    #[test]
    fn short_series_without_changes_have_few_false_alarms() {
        let mut random = Pcg64Mcg::seed_from_u64(9);
        for count in [7, 9, 11, 14] {
            let alarms = (0..400).filter(|_| !change_points(&series(&mut random, &[(count, 10.0)])).is_empty()).count();
            // At a false alarm probability of 1 %, 4 false alarms are expected in 400 series. More than 11 have a
            // probability of 0.1 %.
            assert!(alarms <= 11, "{alarms} of 400 with {count} values");
        }
    }

    #[test]
    fn an_outlier_is_no_change() {
        let mut random = Pcg64Mcg::seed_from_u64(7);
        let mut values = series(&mut random, &[(40, 10.0)]);
        values[20] = 100.0;
        assert_eq!(change_points(&values), Vec::<usize>::new());
    }
}
