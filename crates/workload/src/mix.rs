//! Chooses the request of each call. The class is an independent random draw from the mix of classes. Within the class,
//! the target is drawn by weight or popularity.
//!
//! A class that requests its targets in order, or whose requests are templates, is *numbered*: each call has a number
//! within the class. The engine generates the request from this number. In a schedule that all shards share, the
//! numbers are 0, 1, 2 … If each shard has its own schedule, shard i of n uses the numbers i, i + n, i + 2n … So no two
//! calls of a load have the same number.

use crate::{Chooser, Shard, rng};
use brimful_core::alias::AliasTable;
use brimful_core::workload::{RequestClass, Workload};
use brimful_core::{CallSpec, ClassId, RequestId};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::cell::Cell;
use std::sync::Arc;

/// A reproducible sequence of requests, in the proportions of the mix.
#[derive(Clone, Debug)]
pub struct Mix {
    slots: Arc<Slots>,
    /// For each class, the number of its next call. It is used only for numbered classes, whose requests are generated
    /// from this number.
    next: Vec<Cell<u64>>,
    /// Difference between the numbers of two successive calls of a class: the number of shards with schedules of their
    /// own.
    step: u64,
    rng: Pcg64,
}

/// The tables from which requests are drawn; all shards share them. A slot is one possible result of a draw. A numbered
/// class, whose requests are generated from a number, has one slot. Any other class has one slot per request. Slots are
/// in the order of the classes and, within a class, of its requests.
#[derive(Debug)]
struct Slots {
    shares: AliasTable,
    /// The only possible call; `None` if several calls are possible.
    only: Option<CallSpec>,
    /// Index of each class's first slot (possible result of a draw). Because there are usually few classes, this list
    /// stays in the CPU cache.
    first: Vec<u32>,
    /// Whether each class is numbered: its requests are generated from a number, not drawn.
    numbered: Vec<bool>,
}

/// An error in the class shares of a mix.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum MixError {
    /// There is no class, a share is negative or not finite, or all shares are zero.
    #[error("a mix needs at least one share above zero and none below; got {0:?}")]
    Shares(Vec<f64>),
}

/// Maximum number of shares that an error message lists.
const MAX_SHARES_SHOWN: usize = 10;
/// Mask of the bits of a [`RequestId`] that contain a call's number. The highest bit marks a scripted request.
const NUMBER_MASK: u64 = (1 << 63) - 1;

impl Mix {
    /// A mix of classes with one request each. `shares` has one entry per class; the entries need not sum to 1.
    ///
    /// # Errors
    /// [`MixError::Shares`] if no class can be drawn.
    pub fn new(shares: &[f64], seed: u64) -> Result<Mix, MixError> {
        Mix::drawing(shares, (0..shares.len() as u32).collect(), vec![false; shares.len()], seed)
    }

    /// The mix of all requests of a workload. The files that the workload names must have been read.
    ///
    /// # Errors
    /// [`MixError::Shares`] if no request can be drawn.
    pub fn from_workload(workload: &Workload, seed: u64) -> Result<Mix, MixError> {
        let (mut shares, mut first) = (Vec::new(), Vec::new());
        let numbered: Vec<bool> = workload.classes.iter().map(RequestClass::identifies_calls_by_number).collect();
        for (index, (class, share)) in workload.classes.iter().zip(workload.mix()).enumerate() {
            first.push(shares.len() as u32);
            if numbered[index] || class.len() == 1 {
                shares.push(share);
            } else {
                let total: f64 = (0..class.len()).map(|place| class.weight(place)).sum();
                shares.extend((0..class.len()).map(|place| share * class.weight(place) / total));
            }
        }
        Mix::drawing(&shares, first, numbered, seed)
    }

    /// Returns this mix for a shard that has its own schedule. Its random draws are independent of the other shards'
    /// draws, so that shards do not make the same requests at the same time.
    #[must_use]
    pub fn for_shard(mut self, shard: Shard, seed: u64) -> Mix {
        self.next.iter_mut().for_each(|next| next.set(shard.index));
        self.step = shard.count;
        self.rng = rng(seed.wrapping_add(shard.index), 2);
        self
    }

    /// Returns the call that the random number `u` selects. `u` is uniformly distributed on [0, 1). If the class
    /// generates its requests from numbers, this is the class's next call.
    pub(crate) fn call_at(&self, u: f64) -> CallSpec {
        let slot = self.slots.shares.index_at(u);
        let class = self.slots.class(slot);
        let request = if self.slots.numbered[usize::from(class.0)] { self.next_number(class) } else { slot as u64 };
        CallSpec { class, request: RequestId(request), session: None }
    }

    fn next_number(&self, class: ClassId) -> u64 {
        let next = &self.next[usize::from(class.0)];
        let number = next.get();
        next.set(number.wrapping_add(self.step));
        number & NUMBER_MASK
    }

    fn drawing(shares: &[f64], first: Vec<u32>, numbered: Vec<bool>, seed: u64) -> Result<Mix, MixError> {
        let error = || MixError::Shares(shares.iter().copied().take(MAX_SHARES_SHOWN).collect());
        let next = vec![Cell::new(0); numbered.len()];
        let shares = AliasTable::new(shares).ok_or_else(error)?;
        let mut slots = Slots { shares, only: None, first, numbered };
        if slots.shares.len() == 1 && !slots.numbered.contains(&true) {
            let call = CallSpec { class: slots.class(0), request: RequestId(0), session: None };
            slots.only = Some(call);
        }
        Ok(Mix { slots: Arc::new(slots), next, step: 1, rng: rng(seed, 2) })
    }
}

impl Slots {
    /// The class to which a slot (a possible result of a draw) belongs.
    fn class(&self, slot: usize) -> ClassId {
        let classes_up_to_slot = self.first.partition_point(|first| *first as usize <= slot);
        ClassId(classes_up_to_slot.saturating_sub(1) as u16)
    }
}

impl Chooser for Mix {
    /// Skips all calls in one step if possible. This works because each call uses one random number, and the random
    /// number generator can skip numbers. If the mix has several slots and a numbered class, calls are drawn one by one
    /// to count those of the class.
    fn skip_calls(&mut self, n: u64) {
        let has_one_slot = self.slots.shares.len() == 1;
        if !has_one_slot && self.slots.numbered.contains(&true) {
            for _ in 0..n {
                self.next();
            }
        } else if has_one_slot {
            self.next.iter().for_each(|next| next.set(next.get().wrapping_add(n.wrapping_mul(self.step))));
        } else {
            self.rng.advance(u128::from(n));
        }
    }
}

impl Iterator for Mix {
    type Item = CallSpec;

    #[inline]
    fn next(&mut self) -> Option<CallSpec> {
        if self.slots.only.is_some() {
            return self.slots.only;
        }
        let u = if self.slots.shares.len() == 1 { 0.0 } else { self.rng.random() };
        Some(self.call_at(u))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::workload::Url;
    use proptest::prelude::*;

    fn read(toml: &str) -> Workload {
        let workload: Workload = toml::from_str(toml).unwrap();
        workload.validate().unwrap();
        workload
    }

    #[test]
    fn classes_come_in_their_proportions_and_those_without_a_share_never() {
        let n = 100_000;
        let mut counts = [0u32; 4];
        for call in Mix::new(&[0.0, 7.0, 3.0, 0.0], 3).unwrap().take(n) {
            counts[call.class.0 as usize] += 1;
        }
        assert_eq!((counts[0], counts[3]), (0, 0));
        let share = f64::from(counts[1]) / n as f64;
        assert!((share - 0.7).abs() < 5.0 * (0.21 / n as f64).sqrt(), "share {share}");
    }

    #[test]
    fn numbers_of_calls_continue_beyond_32_bits() {
        let workload = read("[[class]]\nname='x'\npath='/{seq}'");
        for first in [(1 << 31) - 1000, (1 << 32) - 1000] {
            let mix = Mix::from_workload(&workload, 5).unwrap();
            mix.next.iter().for_each(|next| next.set(first));
            let numbers = mix.take(1_000_000).map(|call| call.request.0);
            assert!(numbers.eq(first..first + 1_000_000), "each number must occur exactly once");
        }
    }

    #[test]
    fn a_request_belongs_to_its_class() {
        let mut workload = Workload::single_class("GET", "/a");
        let url = |path: &str| Url { path: path.to_owned(), weight: 1.0, bytes: None };
        let mut other = RequestClass { name: "other".to_owned(), path: String::new(), ..workload.classes[0].clone() };
        other.urls = vec![url("/b"), url("/c"), url("/d")];
        workload.classes.push(other);
        let mut counts = [0u32; 4];
        for call in Mix::from_workload(&workload, 5).unwrap().take(60_000) {
            assert_eq!(call.class.0, u16::from(call.request.0 > 0));
            counts[call.request.0 as usize] += 1;
        }
        assert!(counts[0].abs_diff(30_000) < 700 && counts[1..].iter().all(|n| n.abs_diff(10_000) < 500), "{counts:?}");
    }

    /// Expects that the probability of request i is proportional to i^-s. A χ² test at the significance level 1e-6
    /// compares the frequencies of the most popular requests, and of all other requests together.
    #[test]
    fn popularity_is_zipfs() {
        const FIRST: usize = 50;
        for exponent in [0.0, 0.8, 1.2] {
            let toml = format!("[[class]]\nname='x'\npath='/'\nfile_set={{files=10000}}\npopularity='zipf:{exponent}'");
            let n = 200_000;
            let mut counts = vec![0.0; FIRST + 1];
            for call in Mix::from_workload(&read(&toml), 7).unwrap().take(n) {
                counts[(call.request.0 as usize).min(FIRST)] += 1.0;
            }
            let weight = |place: usize| (place as f64 + 1.0).powf(-exponent);
            let total: f64 = (0..10_000).map(weight).sum();
            let rest: f64 = (FIRST..10_000).map(weight).sum();
            let expected = (0..FIRST).map(weight).chain([rest]).map(|weight| weight / total * n as f64);
            let chi2: f64 =
                counts.iter().zip(expected).map(|(is, should): (&f64, f64)| (is - should).powi(2) / should).sum();
            // With 50 degrees of freedom and a correct mix, χ² exceeds 120 with a probability below 1e-6.
            assert!(chi2 < 120.0, "{exponent}: {chi2}");
        }
    }

    #[test]
    fn numbered_calls_are_numbered_by_class() {
        let toml = "[[class]]\nname='x'\npath='/{seq}'\n[[class]]\nname='y'\npath='/'\n[[class]]\nname='z'\n\
                    urls=[{path='/a'},{path='/b'}]\norder='listed'";
        let mut seen = [0; 3];
        for call in Mix::from_workload(&read(toml), 1).unwrap().take(1000) {
            let class = usize::from(call.class.0);
            assert_eq!(call.request.0, if class == 1 { 1 } else { seen[class] });
            seen[class] += 1;
        }
        assert!(seen.iter().all(|n| *n > 250), "{seen:?}");
    }

    #[test]
    fn shards_with_their_own_schedules_use_different_numbers() {
        let mix = Mix::from_workload(&read("[[class]]\nname='x'\npath='/{seq}'"), 1).unwrap();
        let of_shard = |shard| mix.clone().for_shard(shard, 1).take(4).map(|call| call.request.0);
        let mut numbers: Vec<u64> = Shard::WHOLE.split(3).flat_map(of_shard).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..12).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn who_passes_over_calls_comes_to_the_same_ones(passed in 0u64..300, seed: u64, kind in 0usize..4) {
            let toml = [
                "[[class]]\nname='x'\npath='/{seq}'",
                "[[class]]\nname='x'\npath='/{seq}'\n[[class]]\nname='y'\npath='/'",
                "[[class]]\nname='x'\npath='/s'\nfile_set={files=100}\npopularity='zipf:1'",
                "[[class]]\nname='x'\npath='/s'\nfile_set={files=100,ratio=0.3}\n[[class]]\nname='y'\nurls=[{path='/'}]",
            ][kind];
            let mut one = Mix::from_workload(&read(toml), seed).unwrap();
            let mut other = one.clone();
            one.skip_calls(passed);
            for _ in 0..passed {
                other.next();
            }
            prop_assert_eq!(one.take(20).collect::<Vec<_>>(), other.take(20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_mix_without_requests_is_rejected() {
        for shares in [&[][..], &[0.0, 0.0], &[1.0, -1.0], &[f64::NAN]] {
            assert!(Mix::new(shares, 0).is_err(), "{shares:?}");
        }
        let unread: Workload = toml::from_str("[[class]]\nname='x'\nurls_file='urls'").unwrap();
        assert!(Mix::from_workload(&unread, 0).is_err());
    }
}
