//! Exact mean value analysis (Reiser & Lavenberg, 1980): single servers and delays, any number of classes.
//!
//! An arriving customer finds the mean queues of the network without this customer: R = D·(1 + N(n − 1)), X = n/(Z + Σ
//! R), N = X·R for the population n. The recursion starts with the empty network. No step subtracts, so the recursion
//! is numerically stable. It is valid in product form. Time: Π (N + 1) × centres × classes. Memory: one queue length
//! per centre, for each population of the classes other than the largest class, whose queues are overwritten.

use super::{Closed, Steady};

/// Solves a normalized network of single servers.
pub(crate) fn solve(closed: &Closed) -> Steady {
    let (centres, classes) = (closed.centres.len(), closed.population.len());
    let mut order: Vec<usize> = (0..classes).collect();
    order.sort_by_key(|c| std::cmp::Reverse(closed.population[*c]));
    let most: Vec<u32> = order.iter().map(|c| closed.population[*c]).collect();
    let delays: Vec<f64> = order.iter().map(|c| closed.delay[*c]).collect();
    let demands = order.iter().map(|c| closed.centres.iter().map(|k| k.demands[*c]).collect());
    let demands: Vec<Vec<f64>> = demands.collect();
    // For each class: distance between the index of a population and that of the population with one customer fewer.
    // For the first class it is 0: the queues of a population overwrite the queues with one customer fewer.
    let mut back = vec![0; classes];
    let mut plane = 1;
    for c in 1..classes {
        back[c] = plane;
        plane *= most[c] as usize + 1;
    }
    let mut queues = vec![0.0; plane * centres];
    let (mut throughput, mut residence) = (vec![0.0; classes], vec![vec![0.0; centres]; classes]);
    let (mut present, mut total) = (vec![0; classes], vec![0.0; centres]);
    for first in 0..=most[0] {
        present[0] = first;
        for here in 0..plane {
            total.fill(0.0);
            for c in (0..classes).filter(|c| present[*c] > 0) {
                let found = &queues[(here - back[c]) * centres..][..centres];
                let cycle = delays[c] + arrive(&demands[c], found, &mut residence[c]);
                throughput[c] = f64::from(present[c]) / cycle;
                total.iter_mut().zip(&residence[c]).for_each(|(n, r)| *n += throughput[c] * r);
            }
            queues[here * centres..][..centres].copy_from_slice(&total);
            count(&mut present[1..], &most[1..]);
        }
    }
    // The last throughputs and residence times are the solution, because the loop ends with the whole population. They
    // are put back in the original order, because the loop uses the classes in the order of their populations.
    let position = |c: usize| order.iter().position(|o| *o == c).unwrap_or(c);
    let row = |k: usize| (0..classes).map(|c| residence[position(c)][k]).collect();
    Steady {
        throughput: (0..classes).map(|c| throughput[position(c)]).collect(),
        residence: (0..centres).map(row).collect(),
        probabilities: vec![Vec::new(); centres],
    }
}

/// Writes the residence times of an arriving customer to `residence`, and returns their sum.
fn arrive(demands: &[f64], found: &[f64], residence: &mut [f64]) -> f64 {
    let mut sum = 0.0;
    for ((r, d), n) in residence.iter_mut().zip(demands).zip(found) {
        *r = d * (1.0 + n);
        sum += *r;
    }
    sum
}

/// Changes `present` to the next population. The number of customers of the first class changes fastest. After the last
/// population, it starts again at the empty one.
pub(super) fn count(present: &mut [u32], most: &[u32]) {
    for (n, most) in present.iter_mut().zip(most) {
        if *n < *most {
            *n += 1;
            return;
        }
        *n = 0;
    }
}
