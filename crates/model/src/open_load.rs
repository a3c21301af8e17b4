//! Effect of open classes on closed classes at a station whose speed depends on the number of requests present.
//! Stations with several servers are the most common case.
//!
//! With n closed customers at a station whose speed with i requests is α(i), the number k of open requests has the
//! weight C(n + k, k)·ρᵏ/Π α(n+1..n+k). Let E(n) be the sum of these weights. For the closed classes, the station then
//! has the multipliers α(n)·E(n − 1)/E(n). An open request has the residence time D·(n + 1)·E(n + 1)/(α(n + 1)·E(n))
//! (Bruell, Balbo & Afshari, 1984). All terms are positive, so no digits cancel. The formulas are valid for ρ below the
//! last multiplier, which applies to all larger n. Cost: the square of the number of multipliers.

/// The effect of open classes at a station whose speed depends on the number of requests present.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenLoad {
    /// Speed of the station for closed classes while 1, 2, … closed customers are present, relative to a lone request.
    /// The last value applies to any larger number of customers.
    pub(crate) multipliers: Vec<f64>,
    /// Residence time of an open request divided by D·(n + 1), where D is its demand, while n = 0, 1, … closed
    /// customers are present. The last value applies to any larger number of customers.
    open: Vec<f64>,
}

impl OpenLoad {
    /// Computes the effect of open classes with the load ρ = `load` on a station whose speed is α(n) = `rate(n)`. The
    /// speed is constant from n = `levels` on. At most `customers` closed customers are present.
    pub(crate) fn new(rate: impl Fn(usize) -> f64, levels: usize, load: f64, customers: usize) -> Self {
        let wanted = levels.min(customers.saturating_add(1)).max(1);
        let sums = if load > 0.0 { log_sums(&rate, levels, load, wanted) } else { vec![0.0; wanted + 1] };
        Self {
            multipliers: (1..=wanted).map(|n| rate(n) * (sums[n - 1] - sums[n]).exp()).collect(),
            open: (0..wanted).map(|n| (sums[n + 1] - sums[n]).exp() / rate(n + 1)).collect(),
        }
    }

    /// Residence time divided by demand of a closed customer that finds `others` other closed customers on average. The
    /// result is approximate, because it depends only on this mean.
    pub(crate) fn closed_residence(&self, others: f64) -> f64 {
        (1.0 + others) / between(&self.multipliers, others)
    }

    /// Residence time divided by demand of an open request, from the mean number of closed customers. The result is
    /// exact if there are none.
    pub(crate) fn open_residence(&self, closed: f64) -> f64 {
        (1.0 + closed) * between(&self.open, closed)
    }

    /// Residence time divided by demand of an open request. `probabilities` are the probabilities of 0, 1, … closed
    /// customers, and `mean` is the mean number of closed customers.
    pub(crate) fn exact_open_residence(&self, probabilities: &[f64], mean: f64) -> f64 {
        let last = self.open[self.open.len() - 1];
        let few = probabilities.iter().zip(&self.open).enumerate();
        let (few, weight) = few.fold((0.0, 0.0), |(sum, weight), (n, (p, open))| {
            let present = p * (n as f64 + 1.0);
            (sum + present * open, weight + present)
        });
        few + last * (mean + 1.0 - weight).max(0.0)
    }
}

/// Computes ln E(n) for n = 0..=wanted, where E(n) is the sum of the weights of all numbers of open requests beside n
/// closed customers. The infinite sum over the numbers of requests with constant speed is computed first. Then the
/// other terms are added, from the last to the first.
fn log_sums(rate: &impl Fn(usize) -> f64, levels: usize, load: f64, wanted: usize) -> Vec<f64> {
    let x = load / rate(levels);
    // Sum over the numbers of requests with constant speed α: Σ over i of xⁱ·Π (levels + l)/(levels − n + l), with the
    // product over l = 1..=i.
    let mut tail = Scaled { value: 0.0, one: 1.0, log: 0.0 };
    let mut sum = |n: usize| {
        let carried = if n == 0 { 0.0 } else { x * n as f64 / (levels - n + 1) as f64 };
        tail = tail.one_plus(carried).times(1.0 / (1.0 - x));
        let terms = (1..=levels - n).rev().map(|k| (n + k) as f64 / k as f64 * load / rate(n + k));
        let sum = terms.fold(tail, Scaled::one_plus);
        sum.log + sum.value.ln()
    };
    (0..=wanted).map(&mut sum).collect()
}

/// The number value·e^log. Without the logarithm, sums for some hundreds of rate multipliers would exceed the range of
/// `f64`.
#[derive(Clone, Copy)]
struct Scaled {
    value: f64,
    /// e^(−log): the number 1 on the same scale as `value`.
    one: f64,
    log: f64,
}

impl Scaled {
    /// Computes 1 + factor × self.
    fn one_plus(self, factor: f64) -> Self {
        Self { value: self.one + factor * self.value, ..self }.normalized()
    }

    fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, ..self }.normalized()
    }

    fn normalized(self) -> Self {
        if self.value < 1e100 {
            return self;
        }
        Self { value: 1.0, one: self.one / self.value, log: self.log + self.value.ln() }
    }
}

/// Interpolates linearly between the values at the whole numbers next to `n`.
fn between(values: &[f64], n: f64) -> f64 {
    let at = |i: usize| values[i.min(values.len() - 1)];
    let (i, part) = (n.floor() as usize, n - n.floor());
    at(i) + (at(i.saturating_add(1)) - at(i)) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(m: usize, load: f64, customers: usize) -> OpenLoad {
        OpenLoad::new(|n| n.min(m) as f64, m, load, customers)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs()
    }

    #[test]
    fn without_closed_customers_it_is_erlang() {
        for (m, rho) in [(1, 0.3), (2, 0.9), (8, 0.5), (300, 0.97), (5000, 0.999)] {
            let load = rho * m as f64;
            let response = 1.0 + crate::erlang::wait_per_service(m as u32, rho);
            let ours = servers(m, load, 0).open_residence(0.0);
            assert!((ours / response - 1.0).abs() < 1e-10, "m {m}: {ours} {response}");
        }
    }

    #[test]
    fn open_classes_slow_one_server_down_by_their_load() {
        let one = servers(1, 0.6, 50);
        assert_eq!(one.multipliers.len(), 1);
        assert!(close(one.multipliers[0], 0.4) && close(one.open_residence(7.0), 8.0 / 0.4));
        assert!(close(one.exact_open_residence(&[], 7.0), 8.0 / 0.4));
    }

    #[test]
    fn weights_are_those_of_the_definition() {
        let alpha = |n: usize| [1.0, 0.7, 2.5, 2.0][n.min(4) - 1];
        let weight = |n: usize| -> f64 {
            let mut term = 1.0;
            (1..400).fold(1.0, |sum, k| {
                term *= (n + k) as f64 / k as f64 * 1.2 / alpha(n + k);
                sum + term
            })
        };
        let load = OpenLoad::new(alpha, 4, 1.2, 9);
        for n in 1..=4 {
            assert!(close(load.multipliers[n - 1], alpha(n) * weight(n - 1) / weight(n)), "n {n}");
        }
        assert!(close(load.open_residence(2.0), 3.0 * weight(3) / weight(2) / alpha(3)));
        assert!(
            close(load.multipliers[3], alpha(8) * weight(7) / weight(8)),
            "the last multiplier applies to more customers"
        );
    }

    #[test]
    fn hundreds_of_servers_do_not_overflow() {
        // If closed customers occupy all m servers, open requests with an offered load a have ρ = a/m at each server.
        // So E(n)/E(n − 1) approaches 1/(1 − ρ).
        for (m, load) in [(400, 360.0), (5000, 4900.0), (5000, 1.0)] {
            let many = servers(m, load, 2 * m);
            let last = many.multipliers[m - 1];
            assert!(many.multipliers.iter().all(|a| a.is_finite() && *a > 0.0), "{m} {load}");
            assert!((last / (m as f64 - load) - 1.0).abs() < 1e-9, "{m} {load}: {last}");
            assert!(many.open_residence(m as f64 / 2.0).is_finite() && many.open_residence(2.0 * m as f64) > 1.0);
        }
    }

    #[test]
    fn without_open_load_nothing_changes() {
        assert_eq!(servers(4, 0.0, 100).multipliers, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(servers(4, 0.0, 1).multipliers, [1.0, 2.0]);
    }
}
