//! Compares the exact solvers with the definition of the solution: a sum over all states of a network (Baskett, Chandy,
//! Muntz & Palacios, 1975).
//!
//! The weight of each state is computed as a logarithm. The tests share no code with the crate.

use crate::closed::{closed_class, delay, queue};
use brimful_core::model::{ClassKind, Model, ModelClass, Station, StationKind};
use brimful_model::{Method, solve};

#[test]
fn several_servers_match_where_naive_mean_value_analysis_fails() {
    for servers in [2, 8, 16] {
        for population in [1, 7, 30, 45, 60, 90] {
            for demands in [
                [1.0, 0.1, 3.0],
                [8.0, 1.0, 0.0],
                [1.0, 1e-3, 1e3],
                [1e3, 1.0, 1.0],
                [8.0, 0.999, 5.0],
                [1e-6, 1.0, 1e-9],
            ] {
                let model = Model {
                    stations: vec![queue("cpu", servers), queue("disk", 1), delay("net")],
                    classes: vec![closed_class("c", population, 0.0)],
                    demands: demands.map(|d| vec![d]).to_vec(),
                    ..Model::default()
                };
                agrees(&model, 1e-11);
            }
        }
    }
}

#[test]
fn several_stations_of_several_servers_match_the_sum() {
    for (population, think) in [(30, 0.0), (60, 100.0)] {
        let model = Model {
            stations: vec![queue("a", 8), queue("b", 3), queue("c", 20)],
            classes: vec![closed_class("c", population, think)],
            demands: vec![vec![4.0], vec![1.4], vec![11.0]],
            ..Model::default()
        };
        agrees(&model, 1e-11);
    }
}

#[test]
fn classes_share_several_servers() {
    for servers in [[1, 1, 1], [2, 1, 3], [8, 2, 4]] {
        let [a, b, c] = servers;
        let model = Model {
            stations: vec![queue("a", a), queue("b", b), delay("z"), queue("c", c)],
            classes: vec![closed_class("x", 4, 0.3), closed_class("y", 3, 0.0), closed_class("z", 2, 5.0)],
            demands: vec![vec![1.0, 0.2, 3.0], vec![0.5, 0.0, 0.1], vec![0.1, 0.0, 2.0], vec![0.7, 2.0, 4.0]],
            ..Model::default()
        };
        agrees(&model, 1e-11);
    }
}

#[test]
fn stations_that_slow_down_or_speed_up_match_the_sum() {
    for multipliers in [vec![1.0, 0.6, 0.5, 0.3], vec![0.5, 1.0, 4.0], vec![2.0], vec![1.0, 0.1, 7.0, 7.5, 2.0]] {
        let model = Model {
            stations: vec![Station { rate_multipliers: multipliers, ..queue("a", 1) }, queue("b", 2), queue("c", 1)],
            classes: vec![closed_class("x", 5, 1.0), closed_class("y", 2, 0.0)],
            demands: vec![vec![1.0, 0.2], vec![0.5, 0.9], vec![0.3, 0.6]],
            ..Model::default()
        };
        agrees(&model, 1e-11);
    }
}

#[test]
fn open_classes_meet_closed_ones_at_stations_of_any_speed() {
    let open = |rate| ModelClass { name: "o".into(), rate: Some(rate), ..ModelClass::default() };
    let other = |rate| ModelClass { name: "p".into(), ..open(rate) };
    for servers in [1, 2, 5] {
        for rate in [0.0, 0.1, 0.5, 0.9] {
            let changing = Station { rate_multipliers: vec![1.0, 1.5, 1.2], ..queue("b", 1) };
            let model = Model {
                stations: vec![queue("a", servers), changing, delay("z"), Station { background: 0.5, ..queue("c", 1) }],
                classes: vec![open(rate), closed_class("x", 4, 0.3), other(0.3 * rate), closed_class("y", 3, 0.0)],
                demands: vec![
                    vec![0.7, 1.0, 0.5, 0.2],
                    vec![0.9, 0.5, 0.1, 1.0],
                    vec![0.1, 0.0, 2.0, 0.3],
                    vec![0.3, 0.4, 0.1, 0.1],
                ],
                ..Model::default()
            };
            agrees(&model, 1e-9);
        }
    }
}

#[test]
fn hundreds_of_servers_shared_with_open_classes_do_not_overflow() {
    // With 200 servers, the weights of the open classes' states exceed the range of `f64`.
    let open = ModelClass { name: "o".into(), rate: Some(1.0), ..ModelClass::default() };
    let model = Model {
        stations: vec![queue("threads", 200), queue("disk", 1)],
        classes: vec![open, closed_class("x", 200, 0.0)],
        demands: vec![vec![196.0, 2.0], vec![0.05, 0.3]],
        ..Model::default()
    };
    agrees(&model, 1e-9);
}

fn agrees(model: &Model, tolerance: f64) {
    let solved = solve(model, Method::Exact).unwrap();
    let truth = Truth::new(model);
    let close = |a: f64, b: f64| (a - b).abs() <= tolerance * b.abs() + f64::MIN_POSITIVE;
    for c in 0..model.classes.len() {
        assert!(close(solved.throughput[c], truth.throughput[c]), "X of {c}: {solved:?} {truth:?} {model:?}");
        for k in 0..model.stations.len() {
            let (ours, theirs) = (solved.queue_length[k][c], truth.queue_length[k][c]);
            assert!(close(ours, theirs), "N of {c} at {k}: {ours} {theirs} {model:?}");
        }
    }
}

#[derive(Debug)]
struct Truth {
    throughput: Vec<f64>,
    queue_length: Vec<Vec<f64>>,
}

impl Truth {
    fn new(model: &Model) -> Self {
        let population: Vec<u32> = model.classes.iter().map(|c| c.population.unwrap_or(0)).collect();
        let whole = Sum::over(model, &population);
        let throughput = |(c, class): (usize, &ModelClass)| match class.kind {
            ClassKind::Open => class.rate.unwrap(),
            ClassKind::Closed => {
                let mut less = population.clone();
                less[c] -= 1;
                let less = Sum::over(model, &less);
                (less.top - whole.top).exp() * less.weight / whole.weight
            }
        };
        Self {
            throughput: model.classes.iter().enumerate().map(throughput).collect(),
            queue_length: whole.present.iter().map(|row| row.iter().map(|n| n / whole.weight).collect()).collect(),
        }
    }
}

/// Sums over all states: of their weights, divided by e^top, and of the numbers of requests present times these
/// weights.
struct Sum {
    top: f64,
    weight: f64,
    present: Vec<Vec<f64>>,
}

impl Sum {
    fn over(model: &Model, population: &[u32]) -> Self {
        let mut states = Vec::new();
        let think = model.classes.iter().any(|class| class.think > 0.0);
        spread(model.stations.len() + usize::from(think), population, &mut Vec::new(), &mut states);
        let centres: Vec<Vec<Centre>> = states.iter().map(|state| centres(model, state)).collect();
        let weights: Vec<f64> = centres.iter().map(|p| p.iter().map(|centre| centre.log).sum()).collect();
        let top = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = Sum { top, weight: 0.0, present: vec![vec![0.0; population.len()]; model.stations.len()] };
        for (centres, log) in centres.iter().zip(&weights) {
            let weight = (log - top).exp();
            sum.weight += weight;
            for (row, centre) in sum.present.iter_mut().zip(centres) {
                row.iter_mut().zip(&centre.present).for_each(|(sum, n)| *sum += weight * n);
            }
        }
        sum
    }
}

/// All distributions of a population over `centres` service centres. A centre is a queue, a delay or, as the last
/// centre, the think time.
fn spread(centres: usize, population: &[u32], state: &mut Vec<Vec<u32>>, states: &mut Vec<Vec<Vec<u32>>>) {
    if centres == 1 {
        state.push(population.to_vec());
        states.push(state.clone());
        state.pop();
        return;
    }
    let mut here = vec![0; population.len()];
    loop {
        state.push(here.clone());
        let rest: Vec<u32> = population.iter().zip(&here).map(|(n, h)| n - h).collect();
        spread(centres - 1, &rest, state, states);
        state.pop();
        let Some(c) = (0..here.len()).find(|c| here[*c] < population[*c]) else { return };
        here[c] += 1;
        here[..c].fill(0);
    }
}

/// One service centre in one state: the logarithm of its weight, summed over all numbers of open requests, and the
/// numbers of requests present.
struct Centre {
    log: f64,
    present: Vec<f64>,
}

fn centres(model: &Model, state: &[Vec<u32>]) -> Vec<Centre> {
    let stations = (0..model.stations.len()).map(|k| {
        let station = &model.stations[k];
        let demands: Vec<f64> = model.demands[k].iter().map(|d| d / (1.0 - station.background)).collect();
        centre(Some(station), &demands, model, &state[k])
    });
    let think: Vec<f64> = model.classes.iter().map(|c| c.think).collect();
    let thinking = state.get(model.stations.len()).map(|here| centre(None, &think, model, here));
    stations.chain(thinking).collect()
}

fn centre(station: Option<&Station>, demands: &[f64], model: &Model, here: &[u32]) -> Centre {
    let queue = station.filter(|s| s.kind == StationKind::Queue);
    let n: u32 = here.iter().sum();
    let mut log = ln_factorial(n);
    for (count, demand) in here.iter().zip(demands) {
        log -= ln_factorial(*count);
        if *count > 0 {
            log += f64::from(*count) * demand.ln();
        }
    }
    log -= (1..=n).map(|j| speed(queue, j).ln()).sum::<f64>();
    let mut present: Vec<f64> = here.iter().map(|n| f64::from(*n)).collect();
    let Some(station) = station else { return Centre { log, present } };
    let loads: Vec<f64> = model.classes.iter().zip(demands).map(|(c, d)| c.rate.unwrap_or(0.0) * d).collect();
    if station.kind == StationKind::Delay {
        present.iter_mut().zip(loads).for_each(|(n, load)| *n += load);
        return Centre { log, present };
    }
    let load: f64 = loads.iter().sum();
    let (mut term, mut sum, mut open) = (1.0, 1.0, 0.0);
    for k in 1..if load > 0.0 { 30_000 } else { 1 } {
        term *= load * f64::from(n + k) / f64::from(k) / speed(queue, n + k);
        sum += term;
        open += term * f64::from(k);
        if sum > 1e100 {
            log += sum.ln();
            (term, open, sum) = (term / sum, open / sum, 1.0);
        }
        if k > n && term < 1e-20 * sum {
            break;
        }
    }
    if load > 0.0 {
        present.iter_mut().zip(loads).for_each(|(n, part)| *n += open / sum * part / load);
    }
    Centre { log: log + sum.ln(), present }
}

/// α(n), the speed of a queue with n requests present. For a delay it is n.
fn speed(queue: Option<&Station>, n: u32) -> f64 {
    match queue {
        None => f64::from(n),
        Some(s) if s.rate_multipliers.is_empty() => f64::from(n.min(s.servers)),
        Some(s) => s.rate_multipliers[(n as usize).min(s.rate_multipliers.len()) - 1],
    }
}

fn ln_factorial(n: u32) -> f64 {
    (1..=n).map(|i| f64::from(i).ln()).sum()
}
