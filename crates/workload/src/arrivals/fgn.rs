//! Self-similar arrivals by fractional Gaussian noise: the rate is level within slots of 100 ms and goes from slot to
//! slot as the noise does, with a coefficient of variation of 30 % (the traffic model of Norros 1994).
//!
//! The noise comes from circulant embedding by the Fourier transform (Davies & Harte 1987; the complex form of Dietrich
//! & Newsam 1997, in which real and imaginary part are two independent paths), exact in distribution within a path. A
//! path has 2¹⁶ slots, 109 minutes, and the next is independent of it: self-similarity is claimed up to some ten
//! minutes. That bounds the memory to 1 MiB for the paths, which shards share while they are in the same two, and 1 MiB
//! for the spectrum, which they always share. Two new paths every 218 minutes cost each shard some milliseconds.
//!
//! A rate cannot be below zero: cutting off what lies 3⅓ deviations below the mean raises the mean by 3·10⁻⁵ of it.

use super::pieces::Piece;
use super::self_similar::Hurst;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;
use rustfft::algorithm::Radix4;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection};
use std::sync::Arc;

const SLOT_S: f64 = 0.1;
/// How often the rate changes, per second.
pub(super) const PIECES_PER_S: f64 = 1.0 / SLOT_S;
const VARIATION: f64 = 0.3;
/// Slots of one path.
const PATH: usize = 1 << 16;

/// The rate, slot by slot.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    mean: f64,
    amplitudes: Arc<[f64]>,
    noise: Arc<[f64]>,
    slot: usize,
    rng: Pcg64,
}

impl Curve {
    pub fn new(hurst: Hurst, mean: f64, mut rng: Pcg64) -> Curve {
        let amplitudes = amplitudes(hurst.get());
        let noise = two_paths(&amplitudes, &mut rng);
        Curve { mean, amplitudes, noise, slot: 0, rng }
    }
}

impl Iterator for Curve {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.slot == self.noise.len() {
            self.noise = two_paths(&self.amplitudes, &mut self.rng);
            self.slot = 0;
        }
        let noise = self.noise[self.slot];
        self.slot += 1;
        Some(Piece::level(SLOT_S, self.mean * (1.0 + VARIATION * noise).max(0.0)))
    }
}

/// The discrete Fourier transform in place, of a power of two. A planner would bring the transforms of all other lengths.
fn transform(values: &mut [Complex<f64>]) {
    Radix4::new(values.len(), FftDirection::Forward).process(values);
}

/// Autocovariance of fractional Gaussian noise of variance one, `lag` slots apart.
fn autocovariance(h: f64, lag: usize) -> f64 {
    let k = lag as f64;
    let power = |x: f64| x.abs().powf(2.0 * h);
    (power(k + 1.0) - 2.0 * power(k) + power(k - 1.0)) / 2.0
}

/// Square roots of the eigenvalues of the circulant matrix that holds the covariance matrix of a path, over its order.
fn amplitudes(h: f64) -> Arc<[f64]> {
    let order = 2 * PATH;
    let mut row: Vec<Complex<f64>> = (0..order).map(|i| Complex::from(autocovariance(h, i.min(order - i)))).collect();
    transform(&mut row);
    // None is negative in theory (Dietrich & Newsam 1997); rounding may make one so.
    row.iter().map(|eigenvalue| (eigenvalue.re.max(0.0) / order as f64).sqrt()).collect()
}

fn two_paths(amplitudes: &[f64], rng: &mut Pcg64) -> Arc<[f64]> {
    let mut normal = || -> f64 { StandardNormal.sample(rng) };
    let mut waves: Vec<Complex<f64>> = amplitudes.iter().map(|a| Complex::new(normal(), normal()) * *a).collect();
    transform(&mut waves);
    let path = &waves[..PATH];
    path.iter().map(|z| z.re).chain(path.iter().map(|z| z.im)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noise_has_its_covariance_and_its_paths_are_independent() {
        let h = 0.6;
        let (amplitudes, mut rng) = (amplitudes(h), crate::rng(11, 3));
        let paths: Vec<Arc<[f64]>> = (0..4).map(|_| two_paths(&amplitudes, &mut rng)).collect();
        let paths: Vec<&[f64]> = paths.iter().flat_map(|two| two.chunks(PATH)).collect();
        let covariance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>() / a.len() as f64;
        let mean = |of: &dyn Fn(&[f64]) -> f64| paths.iter().map(|path| of(path)).sum::<f64>() / paths.len() as f64;
        // For H < 0.75 the squared autocovariances have a finite sum, Σγ² < 1.3 at H = 0.6, so that the standard error
        // of an autocovariance of n = 8·2¹⁶ slots is below √(2·1.3·2/n) (Bartlett): five of them are 0.016.
        for lag in [0, 1, 2, 10, 100] {
            let estimate = mean(&|path| covariance(&path[lag..], path));
            assert!((estimate - autocovariance(h, lag)).abs() < 0.016, "lag {lag}: {estimate}");
        }
        for pair in paths.windows(2) {
            // Of one pair: n = 2¹⁶, hence √8 as much.
            assert!(covariance(pair[0], pair[1]).abs() < 0.016 * 8f64.sqrt());
        }
    }

    #[test]
    fn the_end_of_a_path_is_not_the_end() {
        let curve = Curve::new(Hurst::new(0.8).unwrap(), 1.0, crate::rng(1, 3));
        let rates: Vec<f64> = curve.take(2 * PATH + 2).map(|piece| piece.from).collect();
        assert_ne!(rates[0], rates[2 * PATH]);
        assert!(rates.iter().all(|rate| *rate >= 0.0));
    }
}
