//! Closed classes: a fixed number of customers, each of which thinks, sends a request and waits for the response.
//!
//! - [`mva`]: exact solution at single servers and delays.
//! - [`convolution`]: exact solution at stations whose speed depends on the number of customers present. Such stations
//!   have several servers or rate multipliers.
//! - [`approximate`]: the fixed point of Bard & Schweitzer, and the Linearizer, for any population and order of
//!   service.

pub(crate) mod approximate;
pub(crate) mod convolution;
mod effort;
mod fixed_point;
pub(crate) mod mva;
mod wide;

pub(crate) use effort::effort;

/// A network of closed classes in product form: its queueing centres, and the time that customers spend outside them.
pub(crate) struct Closed {
    /// N: number of customers of each class, at least 1.
    pub(crate) population: Vec<u32>,
    /// Z: think time plus time at delay stations, for each class, in seconds.
    pub(crate) delay: Vec<f64>,
    /// The stations at which customers may wait.
    pub(crate) centres: Vec<Centre>,
}

/// A queueing centre: a station at which customers may wait.
pub(crate) struct Centre {
    /// D: demand of each class, in seconds.
    pub(crate) demands: Vec<f64>,
    /// α: the centre's speed while 1, 2, … customers are present. The last value applies to larger numbers. `[1.0]` is
    /// a single server.
    pub(crate) multipliers: Vec<f64>,
}

/// The steady state of a network of closed classes.
pub(crate) struct Steady {
    /// X: throughput of each class, in requests per second.
    pub(crate) throughput: Vec<f64>,
    /// R: residence times in seconds, centres × classes.
    pub(crate) residence: Vec<Vec<f64>>,
    /// For each centre, the probabilities that 0, 1, … customers are present. There is one probability fewer than the
    /// centre has multipliers.
    pub(crate) probabilities: Vec<Vec<f64>>,
}

impl Closed {
    /// Computes the exact solution by the cheaper of two algorithms: mean value analysis or convolution.
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

    /// Scales the times, so that the weights of populations remain within the range of `f64`. Demands at centres of
    /// constant speed are divided by that speed. Then all times of a class are divided by the longest of them. Returns
    /// this longest time of each class, in seconds.
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
