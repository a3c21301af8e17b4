//! Closed classes: a fixed number of customers, each of which thinks, sends a request and waits for the answer.
//!
//! - [`mva`]: exactly, at single servers and delays.
//! - [`convolution`]: exactly, at stations whose speed depends on the number of customers: several servers, rate
//!   multipliers.
//! - [`approximate`]: Bard & Schweitzer's fixed point and the Linearizer, for any population and any order of service.

pub(crate) mod approximate;
pub(crate) mod convolution;
mod effort;
mod fixed_point;
pub(crate) mod mva;
mod wide;

pub(crate) use effort::effort;

/// Closed classes in product form: queueing centres, and the time elsewhere.
pub(crate) struct Closed {
    /// N by class, at least 1.
    pub(crate) population: Vec<u32>,
    /// Z by class: think time and delay stations.
    pub(crate) delay: Vec<f64>,
    /// The queueing centres.
    pub(crate) centres: Vec<Centre>,
}

/// A queueing centre.
pub(crate) struct Centre {
    /// D by class.
    pub(crate) demands: Vec<f64>,
    /// α for 1, 2, … customers present; the last applies to any more. `[1.0]` is a single server.
    pub(crate) multipliers: Vec<f64>,
}

/// The solution of closed classes.
pub(crate) struct Steady {
    /// X by class.
    pub(crate) throughput: Vec<f64>,
    /// R, centres × classes.
    pub(crate) residence: Vec<Vec<f64>>,
    /// By centre, the probabilities of 0, 1, … customers, as far as the multipliers change.
    pub(crate) probabilities: Vec<Vec<f64>>,
}

impl Closed {
    /// The exact solution, by the cheaper of the two ways.
    pub(crate) fn solve(mut self) -> Steady {
        let scale = self.normalize();
        let plain = self.centres.iter().all(|centre| centre.multipliers.len() == 1);
        let mut steady = if plain { mva::solve(&self) } else { convolution::solve(&self) };
        for (x, scale) in steady.throughput.iter_mut().zip(&scale) {
            *x /= scale;
        }
        for row in &mut steady.residence {
            row.iter_mut().zip(&scale).for_each(|(r, scale)| *r *= scale);
        }
        steady
    }

    /// Divides demands by constant rates, and uses the largest time of each class as its unit. The weights of
    /// populations then remain within the range of `f64`.
    fn normalize(&mut self) -> Vec<f64> {
        for centre in self.centres.iter_mut().filter(|centre| centre.multipliers.len() == 1) {
            centre.demands.iter_mut().for_each(|d| *d /= centre.multipliers[0]);
            centre.multipliers[0] = 1.0;
        }
        let scale = |c: usize| self.centres.iter().map(|k| k.demands[c]).fold(self.delay[c], f64::max);
        let scale: Vec<f64> = (0..self.delay.len()).map(scale).collect();
        for centre in &mut self.centres {
            centre.demands.iter_mut().zip(&scale).for_each(|(d, scale)| *d /= scale);
        }
        self.delay.iter_mut().zip(&scale).for_each(|(d, scale)| *d /= scale);
        scale
    }
}
