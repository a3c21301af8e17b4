//! What calibration measured: blocks, each of which visits the same places in an order of its own, so that the drift of
//! a host falls on all of them alike.

use super::programs::{self, ProgramSeen};
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
    /// Mean response time in seconds.
    pub response: Option<f64>,
    /// Its course.
    pub course: Vec<Stretch>,
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

/// The pieces of all blocks at one place, as one.
#[derive(Clone, Debug)]
pub(super) struct Pooled {
    pub piece: Piece,
    /// Variance of the mean response time, by how it differs between blocks.
    pub response_variance: Option<f64>,
    /// The same of the throughput.
    pub rate_variance: Option<f64>,
    pub blocks: usize,
}

/// By place. Of what every block says there, counts are added up; response times are weighted by calls.
pub(super) fn pool<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> BTreeMap<Place, Pooled> {
    let mut places: BTreeMap<Place, Vec<&Piece>> = BTreeMap::new();
    for piece in blocks.into_iter().flatten().filter(|piece| piece.seconds > 0.0) {
        places.entry(piece.place).or_default().push(piece);
    }
    places.into_iter().map(|(place, pieces)| (place, pooled(&pieces))).collect()
}

fn pooled(pieces: &[&Piece]) -> Pooled {
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
    Pooled {
        piece: Piece {
            place: pieces[0].place,
            seconds,
            throughput,
            busy: mean(&|piece: &Piece| piece.busy),
            idle: mean(&|piece: &Piece| piece.idle),
            disks: pieces[0].disks.keys().filter_map(disk).collect(),
            programs: programs::pooled(pieces, seconds),
            response: (calls > 0.0).then_some(response),
            course: Vec::new(),
        },
        response_variance: variance_of_mean(&responses),
        rate_variance: variance_of_mean(&rates),
        blocks: pieces.len(),
    }
}

fn variance_of_mean(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| squares / (n - 1.0) / n)
}
