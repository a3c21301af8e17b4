//! Which class each call belongs to and what it requests: an independent draw per call from the mix.

use crate::{Chooser, rng};
use brimful_core::workload::Workload;
use brimful_core::{CallSpec, ClassId, RequestId};
use rand::RngExt;
use rand_pcg::Pcg64;

/// A reproducible sequence of requests, in the proportions of the mix.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Cumulative shares of the requests; the last is 1.
    cumulative: Vec<f64>,
    /// The class of each request.
    classes: Vec<ClassId>,
    rng: Pcg64,
}

/// Why a mix cannot be drawn from.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum MixError {
    /// No class, a share below zero or not finite, or nothing but zeros.
    #[error("a mix needs at least one share above zero and none below; got {0:?}")]
    Shares(Vec<f64>),
}

impl Mix {
    /// `shares`, one per class, in any scale, where each class has one request.
    ///
    /// # Errors
    /// [`MixError::Shares`] when no class can be drawn from them.
    pub fn new(shares: &[f64], seed: u64) -> Result<Mix, MixError> {
        Mix::drawing(shares, (0..shares.len()).map(|class| ClassId(class as u16)).collect(), seed)
    }

    /// All requests of a workload.
    ///
    /// # Errors
    /// [`MixError::Shares`] when none can be drawn.
    pub fn of(workload: &Workload, seed: u64) -> Result<Mix, MixError> {
        let (classes, shares): (Vec<ClassId>, Vec<f64>) =
            workload.requests().map(|(class, _, share)| (ClassId(class as u16), share)).unzip();
        Mix::drawing(&shares, classes, seed)
    }

    /// The call that the number `u`, uniform on [0, 1), stands for.
    pub(crate) fn at(&self, u: f64) -> CallSpec {
        // The sum may round to just below one; the last request that has a share takes the rest.
        let last = self.cumulative.partition_point(|c| *c < self.cumulative[self.cumulative.len() - 1]);
        let request = self.cumulative.partition_point(|c| *c <= u).min(last);
        CallSpec { class: self.classes[request], request: RequestId(request as u32), session: None }
    }

    fn drawing(shares: &[f64], classes: Vec<ClassId>, seed: u64) -> Result<Mix, MixError> {
        let total: f64 = shares.iter().sum();
        if !(total.is_finite() && total > 0.0 && shares.iter().all(|s| *s >= 0.0)) {
            return Err(MixError::Shares(shares.to_vec()));
        }
        let mut sum = 0.0;
        let cumulative = shares.iter().map(|share| {
            sum += share / total;
            sum
        });
        Ok(Mix { cumulative: cumulative.collect(), classes, rng: rng(seed, 2) })
    }
}

impl Chooser for Mix {
    /// In one step: each call takes one number of the generator, which can leap.
    fn pass(&mut self, n: u64) {
        if self.cumulative.len() > 1 {
            self.rng.advance(u128::from(n));
        }
    }
}

impl Iterator for Mix {
    type Item = CallSpec;

    fn next(&mut self) -> Option<CallSpec> {
        let u = if self.cumulative.len() == 1 { 0.0 } else { self.rng.random() };
        Some(self.at(u))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::workload::{Class, Url};

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
    fn a_request_belongs_to_its_class() {
        let mut workload = Workload::single("GET", "/a");
        let url = |path: &str| Url { path: path.to_owned(), weight: 1.0, bytes: None };
        let mut other = Class { name: "other".to_owned(), path: String::new(), ..workload.classes[0].clone() };
        other.urls = vec![url("/b"), url("/c"), url("/d")];
        workload.classes.push(other);
        let mut counts = [0u32; 4];
        for call in Mix::of(&workload, 5).unwrap().take(60_000) {
            assert_eq!(call.class.0, u16::from(call.request.0 > 0));
            counts[call.request.0 as usize] += 1;
        }
        assert!(counts[0].abs_diff(30_000) < 700 && counts[1..].iter().all(|n| n.abs_diff(10_000) < 500), "{counts:?}");
    }

    #[test]
    fn a_mix_of_nothing_is_refused() {
        for shares in [&[][..], &[0.0, 0.0], &[1.0, -1.0], &[f64::NAN]] {
            assert!(Mix::new(shares, 0).is_err(), "{shares:?}");
        }
    }
}
