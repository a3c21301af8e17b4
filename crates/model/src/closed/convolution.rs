//! Exact solution by convolution of normalizing constants, for centres of any speed (Buzen 1973; several classes,
//! Reiser & Kobayashi 1975).
//!
//! G(n) is the sum of the weights of all distributions of the population n over the centres, and X = G(N − 1)/G(N). The
//! alternative, load-dependent mean value analysis, computes the probability of an empty centre by subtraction and
//! loses all digits for some tens of customers. Here every term is positive and of unlimited range (`wide.rs`). So the
//! relative error of each result is at most about (customers + centres) × the rounding error of one operation.
//!
//! A centre is added to G level by level: level j is the set of states with j customers at the centre. Let h(j) be the
//! weights of level j as a function of the population, with h(0) = G. Let `T[h](n)` be Σ D·h(n − 1) over the classes,
//! where n − 1 has one customer fewer of the class. Then h(j) = `T[h(j − 1)]`/α(j). Where α is constant, the sum H of a
//! level's weights h and those of all further levels satisfies H = h + `T[H]`/α. This costs min(m, N) passes over the
//! populations; convolution term by term would cost the square of the number of populations. The mean queue length at a
//! centre whose speed changes requires the constants G of the network without this centre. Halving the set of K centres
//! recursively computes all of them in K·log K convolutions.
//!
//! The method is valid in product form. Cost: Π (N + 1) × classes × Σ min(m, N); memory: a few arrays of Π (N + 1).

use super::mva::count;
use super::wide::Wide;
use super::{Centre, Closed, Steady};

/// Solves a normalized network.
pub(crate) fn solve(closed: &Closed) -> Steady {
    let lattice = Lattice::new(&closed.population);
    let (changing, plain): (Vec<_>, Vec<_>) =
        (0..closed.centres.len()).partition(|k| closed.centres[*k].multipliers.len() > 1);
    let mut base = lattice.delays(&closed.delay);
    for k in &plain {
        lattice.sum_levels(&mut base, &closed.centres[*k].demands, 1.0);
    }
    let whole = changing.iter().fold(base.clone(), |g, k| lattice.add(g, &closed.centres[*k]));
    let all = lattice.last();
    let throughput: Vec<f64> = lattice.back.iter().map(|back| whole[all - back].over(whole[all])).collect();
    let mut solver = Solver { lattice, closed, whole, throughput, steady: Steady::empty(closed) };
    for k in plain {
        solver.plain(k);
    }
    if !changing.is_empty() {
        solver.changing(base, &changing);
    }
    solver.steady.throughput = solver.throughput;
    solver.steady
}

struct Solver<'a> {
    lattice: Lattice,
    closed: &'a Closed,
    /// The normalizing constants G of the network with all centres, one for each population.
    whole: Vec<Wide>,
    throughput: Vec<f64>,
    steady: Steady,
}

impl Solver<'_> {
    /// Computes the mean queue length of each class at the single server `k`: N = D·G₂(N − 1)/G(N). G are the
    /// normalizing constants of the network, and G₂ those of the network with a second copy of this server.
    fn plain(&mut self, k: usize) {
        let centre = &self.closed.centres[k];
        let mut twice = self.whole.clone();
        self.lattice.sum_levels(&mut twice, &centre.demands, 1.0);
        let mut found = vec![0.0; centre.demands.len()];
        self.find(&twice, 1.0, &mut found);
        self.steady.residence[k] = self.residence(k, &found);
    }

    /// Computes the mean queue lengths at `centres`, whose speed depends on the number of customers. `others` are the
    /// normalizing constants of the network without these centres.
    fn changing(&mut self, others: Vec<Wide>, centres: &[usize]) {
        if let [k] = centres {
            return self.one_changing(others, *k);
        }
        let (left, right) = centres.split_at(centres.len() / 2);
        for (mine, other) in [(left, right), (right, left)] {
            let others = other.iter().fold(others.clone(), |g, k| self.lattice.add(g, &self.closed.centres[*k]));
            self.changing(others, mine);
        }
    }

    /// Computes the mean queue length of each class at centre `k`: N = D·Σ j·h(j − 1)(N − 1)/(α(j)·G(N)), summed over
    /// j. Here h(j) are the weights of the states with j customers at the centre. From the last j with an α of its own,
    /// J, the sum has a closed form: Σ (J + i)·Tⁱ = (J − 1)/(1 − T) + 1/(1 − T)².
    fn one_changing(&mut self, others: Vec<Wide>, k: usize) {
        let Centre { demands, multipliers } = &self.closed.centres[k];
        let (levels, last) = (multipliers.len(), multipliers[multipliers.len() - 1]);
        let (mut h, mut found) = (others, vec![0.0; demands.len()]);
        let all = self.lattice.last();
        for (j, alpha) in (1..levels).zip(multipliers) {
            self.steady.probabilities[k].push(h[all].over(self.whole[all]));
            self.find(&h, j as f64 / alpha, &mut found);
            self.lattice.next_level(&mut h, demands, *alpha);
        }
        self.lattice.sum_levels(&mut h, demands, last);
        self.find(&h, (levels - 1) as f64 / last, &mut found);
        self.lattice.sum_levels(&mut h, demands, last);
        self.find(&h, 1.0 / last, &mut found);
        self.steady.residence[k] = self.residence(k, &found);
    }

    /// Adds weight × h(N − 1)/G(N) to `found`, for each class. `h` has a weight for each population. N − 1 is the
    /// population with one customer fewer of the class, and G are the normalizing constants of the network.
    fn find(&self, h: &[Wide], weight: f64, found: &mut [f64]) {
        let all = self.lattice.last();
        for (found, back) in found.iter_mut().zip(&self.lattice.back) {
            *found += weight * h[all - back].over(self.whole[all]);
        }
    }

    /// Computes the residence time R = N/X of each class at centre `k`, where N = D × found.
    fn residence(&self, k: usize, found: &[f64]) -> Vec<f64> {
        let demands = self.closed.centres[k].demands.iter();
        demands.zip(found).zip(&self.throughput).map(|((d, found), x)| d * (found / x)).collect()
    }
}

/// All populations, ordered so that a population comes after all populations with one customer fewer.
struct Lattice {
    most: Vec<u32>,
    /// For each class: distance between the index of a population and the index of the population with one customer
    /// fewer.
    back: Vec<usize>,
    populations: usize,
}

impl Lattice {
    fn new(most: &[u32]) -> Self {
        let mut populations = 1;
        let mut back = Vec::new();
        for n in most {
            back.push(populations);
            populations *= *n as usize + 1;
        }
        Self { most: most.to_vec(), back, populations }
    }

    /// Index of the population with all customers.
    fn last(&self) -> usize {
        self.populations - 1
    }

    /// Computes the weights if all customers are at the delays: Π Zⁿ/n! for each population.
    fn delays(&self, delays: &[f64]) -> Vec<Wide> {
        let mut g = vec![Wide::ONE; self.populations];
        let mut present = vec![0; self.most.len()];
        for here in 1..self.populations {
            count(&mut present, &self.most);
            if let Some(c) = present.iter().position(|n| *n > 0) {
                g[here] = g[here - self.back[c]].times(delays[c] / f64::from(present[c]));
            }
        }
        g
    }

    /// Adds a centre to a network. `g` are the normalizing constants without this centre. Returns the constants with
    /// it.
    fn add(&self, g: Vec<Wide>, centre: &Centre) -> Vec<Wide> {
        let Centre { demands, multipliers } = centre;
        let mut sum = vec![Wide::ZERO; g.len()];
        let mut h = g;
        let add = |sum: &mut [Wide], h: &[Wide]| sum.iter_mut().zip(h).for_each(|(sum, h)| *sum = sum.plus(*h));
        for alpha in &multipliers[..multipliers.len() - 1] {
            add(&mut sum, &h);
            self.next_level(&mut h, demands, *alpha);
        }
        self.sum_levels(&mut h, demands, multipliers[multipliers.len() - 1]);
        add(&mut sum, &h);
        sum
    }

    /// Replaces `h`, a weight for each population, by `T[h]`/α, where `T[h](n)` = Σ D·h(n − 1) over the classes. The
    /// loop proceeds from the last population down, so it reads the old values of h.
    fn next_level(&self, h: &mut [Wide], demands: &[f64], alpha: f64) {
        let factors: Vec<f64> = demands.iter().map(|d| d / alpha).collect();
        let mut present = self.most.clone();
        for here in (0..self.populations).rev() {
            h[here] = self.below(h, here, &present, &factors, Wide::ZERO);
            count_down(&mut present, &self.most);
        }
    }

    /// Replaces `h`, a weight for each population, by h + `T[h]`/α + `T²[h]`/α² + …, where `T[h](n)` = Σ D·h(n − 1)
    /// over the classes. The loop proceeds from the first population up, so it reads values that are already complete.
    fn sum_levels(&self, h: &mut [Wide], demands: &[f64], alpha: f64) {
        let factors: Vec<f64> = demands.iter().map(|d| d / alpha).collect();
        let mut present = vec![0; self.most.len()];
        for here in 0..self.populations {
            h[here] = self.below(h, here, &present, &factors, h[here]);
            count(&mut present, &self.most);
        }
    }

    /// Returns start + Σ factor × h over the classes, where h is read at the population with one customer of the class
    /// fewer than `present`.
    #[inline]
    fn below(&self, h: &[Wide], here: usize, present: &[u32], factors: &[f64], start: Wide) -> Wide {
        let classes = present.iter().zip(factors).zip(&self.back);
        classes.filter(|((n, _), _)| **n > 0).fold(start, |sum, ((_, f), back)| sum.add_scaled(h[here - back], *f))
    }
}

/// Changes `present` to the previous population. The population before the empty one is the largest one.
fn count_down(present: &mut [u32], most: &[u32]) {
    for (n, most) in present.iter_mut().zip(most) {
        if *n > 0 {
            *n -= 1;
            return;
        }
        *n = *most;
    }
}

impl Steady {
    fn empty(closed: &Closed) -> Self {
        let (centres, classes) = (closed.centres.len(), closed.population.len());
        Self {
            throughput: vec![0.0; classes],
            residence: vec![vec![0.0; classes]; centres],
            probabilities: vec![Vec::new(); centres],
        }
    }
}
