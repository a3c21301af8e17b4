//! What calibration measured: blocks, each of which visits the same places in an order of its own, so that the drift of
//! a host falls on all of them alike.

use super::programs::{self, ProgramSeen};
use crate::inside::{Inside, Workers};
use crate::window::Stretch;
use std::collections::BTreeMap;

/// What is offered to the server in a piece of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Calls of the mix that come at random, at so many hundredths of what the server can take.
    Level(u32),
    /// The mix, by so many clients of whom each calls again as soon as it is answered.
    Clients(u64),
    /// The same of one class by itself.
    Alone(usize, u64),
}

/// One stretch of load.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// What was offered.
    pub place: Place,
    /// How long the server was observed, in seconds.
    pub seconds: f64,
    /// Calls completed per second, by class.
    pub throughput: Vec<f64>,
    /// Busy CPUs, by the server's processes; `None` where they cannot be seen.
    pub busy: Option<f64>,
    /// CPUs that nobody used; `None` where that cannot be seen.
    pub idle: Option<f64>,
    /// Share of the time in which each of the host's disks was busy.
    pub disks: BTreeMap<String, f64>,
    /// The server's programs.
    pub programs: Vec<ProgramSeen>,
    /// What the server itself measured of each class; empty where it did not.
    pub inside: Vec<Option<Inside>>,
    /// How many of its workers were busy, where it says so and serves no more calls at a time than it has workers.
    pub workers: Option<Workers>,
    /// Its workers that may want a CPU at the same time, where it says so.
    pub threads: Option<u64>,
    /// Mean response time in seconds.
    pub response: Option<f64>,
    /// Percentiles of the response time in seconds: 50, 95, 99.
    pub percentiles: Option<[f64; 3]>,
    /// Squared coefficient of variation of the response times of a class.
    pub response_scv: Option<f64>,
    /// What of its beginning the figures above leave out, in seconds.
    pub warm_up: f64,
    /// How long the server rested after it, in seconds.
    pub rest: f64,
    /// Its course from the start.
    pub course: Vec<Stretch>,
    /// When the calls came, in seconds after the start, and of which class they were, where they came at random.
    pub arrivals: Vec<(f64, usize)>,
}

/// The pieces of one block, in the order in which they were measured.
pub type Block = Vec<Piece>;

impl Piece {
    /// Calls completed per second.
    pub fn rate(&self) -> f64 {
        self.throughput.iter().sum()
    }

    /// CPU seconds per call, beyond what the server uses without calls.
    pub(super) fn cost(&self, idle_busy: f64) -> Option<f64> {
        let cost = (self.busy? - idle_busy) / self.rate();
        (cost.is_finite() && cost > 0.0).then_some(cost)
    }
}

/// A piece, and what the model makes of its calls.
#[derive(Clone, Debug)]
pub(super) struct Replayed {
    pub piece: Piece,
    pub modelled: Option<Modelled>,
    /// Percentiles over what the fitted model says of these calls.
    pub shape: Option<[f64; 3]>,
}

/// Mean response time of a piece's calls in the model, on a host of the course that it had, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Modelled {
    /// Where all calls of a class need as much.
    pub constant: f64,
    /// What is added for each unit of the squared coefficient of variation of what they need.
    pub per_scv: f64,
}

/// The pieces of all blocks at one place, as one.
#[derive(Clone, Debug)]
pub(super) struct Pooled {
    pub piece: Piece,
    pub modelled: Option<Modelled>,
    pub shape: Option<[f64; 3]>,
    /// Variance of the mean of what responses are beyond [`Modelled::constant`], by how it differs between blocks.
    pub beyond_variance: Option<f64>,
    /// Variance of the mean response time, by how it differs between blocks.
    pub response_variance: Option<f64>,
    /// The same of the throughput.
    pub rate_variance: Option<f64>,
    pub blocks: usize,
}

/// By place. Of what every block says there, counts are added up; response times are weighted by calls.
pub(super) fn pool<'a>(blocks: impl IntoIterator<Item = &'a Vec<Replayed>>) -> BTreeMap<Place, Pooled> {
    let mut places: BTreeMap<Place, Vec<&Replayed>> = BTreeMap::new();
    for replayed in blocks.into_iter().flatten().filter(|replayed| replayed.piece.seconds > 0.0) {
        places.entry(replayed.piece.place).or_default().push(replayed);
    }
    places.into_iter().map(|(place, pieces)| (place, pooled(&pieces))).collect()
}

fn pooled(replayed: &[&Replayed]) -> Pooled {
    let pieces: Vec<&Piece> = replayed.iter().map(|replayed| &replayed.piece).collect();
    let seconds: f64 = pieces.iter().map(|piece| piece.seconds).sum();
    let mean = |of: &dyn Fn(&Piece) -> Option<f64>| {
        pieces.iter().map(|piece| Some(of(piece)? * piece.seconds)).sum::<Option<f64>>().map(|sum| sum / seconds)
    };
    let class = |index| mean(&|piece: &Piece| piece.throughput.get(index).copied()).unwrap_or(0.0);
    let throughput: Vec<f64> = (0..pieces[0].throughput.len()).map(class).collect();
    let answered: Vec<(f64, f64)> =
        pieces.iter().filter_map(|piece| Some((piece.response?, piece.rate() * piece.seconds))).collect();
    let calls: f64 = answered.iter().map(|(_, calls)| calls).sum();
    let response = answered.iter().map(|(response, calls)| response * calls).sum::<f64>() / calls;
    let responses: Vec<f64> = answered.iter().map(|(response, _)| *response).collect();
    let rates: Vec<f64> = pieces.iter().map(|piece| piece.rate()).collect();
    // A disk that came or went meanwhile is none that all calls need.
    let disk = |name: &String| Some((name.clone(), mean(&|piece: &Piece| piece.disks.get(name).copied())?));
    let modelled: Vec<(Modelled, f64, f64)> = replayed
        .iter()
        .filter_map(|r| Some((r.modelled?, r.piece.response?, r.piece.rate() * r.piece.seconds)))
        .collect();
    let of_modelled = |of: &dyn Fn(&Modelled) -> f64| {
        let all: f64 = modelled.iter().map(|(.., calls)| calls).sum();
        modelled.iter().map(|(m, _, calls)| of(m) * calls).sum::<f64>() / all
    };
    let beyond: Vec<f64> = modelled.iter().map(|(m, response, _)| response - m.constant).collect();
    Pooled {
        piece: Piece {
            place: pieces[0].place,
            seconds,
            throughput,
            busy: mean(&|piece: &Piece| piece.busy),
            idle: mean(&|piece: &Piece| piece.idle),
            disks: pieces[0].disks.keys().filter_map(disk).collect(),
            programs: programs::pooled(&pieces, seconds),
            inside: inside_of(&pieces),
            workers: workers_of(&pieces),
            threads: pieces.iter().filter_map(|piece| piece.threads).max(),
            response: (calls > 0.0).then_some(response),
            percentiles: None,
            response_scv: median(pieces.iter().filter_map(|piece| piece.response_scv).collect()),
            warm_up: 0.0,
            rest: 0.0,
            course: Vec::new(),
            arrivals: Vec::new(),
        },
        modelled: (modelled.len() == pieces.len())
            .then(|| Modelled { constant: of_modelled(&|m| m.constant), per_scv: of_modelled(&|m| m.per_scv) }),
        shape: mean_shape(replayed.iter().filter_map(|replayed| replayed.shape)),
        beyond_variance: variance_of_mean(&beyond),
        response_variance: variance_of_mean(&responses),
        rate_variance: variance_of_mean(&rates),
        blocks: pieces.len(),
    }
}

/// What the server measured of each class in all pieces that have it.
fn inside_of(pieces: &[&Piece]) -> Vec<Option<Inside>> {
    let classes = pieces.iter().map(|piece| piece.inside.len()).max().unwrap_or(0);
    let class =
        |class| pieces.iter().filter_map(|piece| piece.inside.get(class).copied().flatten()).reduce(Inside::pool);
    (0..classes).map(class).collect()
}

/// The most workers that there were, and how many of them were busy, by time.
fn workers_of(pieces: &[&Piece]) -> Option<Workers> {
    let seen: Vec<(Workers, f64)> = pieces.iter().filter_map(|piece| Some((piece.workers?, piece.seconds))).collect();
    let seconds: f64 = seen.iter().map(|(_, seconds)| seconds).sum();
    let busy = seen.iter().map(|(workers, of)| workers.busy * of / seconds).sum();
    seen.iter().map(|(workers, _)| workers.most).max().map(|most| Workers { most, busy })
}

/// Of ratios: geometric.
pub(super) fn mean_shape(shapes: impl Iterator<Item = [f64; 3]>) -> Option<[f64; 3]> {
    let add = |(n, sums): (f64, [f64; 3]), shape: [f64; 3]| {
        (n + 1.0, std::array::from_fn(|index| sums[index] + shape[index].ln()))
    };
    let (n, sums) = shapes.fold((0.0, [0.0; 3]), add);
    (n > 0.0).then(|| sums.map(|sum: f64| (sum / n).exp()))
}

/// A piece in which something else stopped the server for a moment is no measure of the others.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    values.get(middle).map(|upper| if even { f64::midpoint(values[middle - 1], *upper) } else { *upper })
}

fn variance_of_mean(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| squares / (n - 1.0) / n)
}
