//! The measured slices of all rounds.

use crate::bench::Slice;
use brimful_core::record::Reason;
use brimful_stats::PairedRound;

/// All rounds that were measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds(Vec<Round>);

impl Rounds {
    /// Adds a round.
    pub fn push(&mut self, round: Round) {
        self.0.push(round);
    }

    /// The comparison of B with A in each round.
    pub fn b_contrasts(&self) -> Vec<PairedRound> {
        self.0.iter().map(|round| round.b_pairing.contrast()).collect()
    }

    /// The comparison of the control with A in each round.
    pub fn control_contrasts(&self) -> Vec<PairedRound> {
        self.0.iter().map(|round| round.control_pairing.contrast()).collect()
    }

    /// The pairings of B with A.
    pub fn pairings(&self) -> impl Iterator<Item = &Pairing> {
        self.0.iter().map(|round| &round.b_pairing)
    }

    /// The reasons why slices are not valid for this metric.
    pub fn problems(&self, figure: &str) -> impl Iterator<Item = &Reason> {
        self.slices().filter_map(move |slice| slice.problem_with(figure))
    }

    /// Number of slices with a late load generator in which this metric is valid and the other metrics are not.
    pub fn late_slices(&self, figure: &str) -> usize {
        self.slices().filter(|slice| slice.problem.is_some() && slice.problem_with(figure).is_none()).count()
    }

    pub fn slices(&self) -> impl Iterator<Item = &Slice> {
        self.pairings().flat_map(|pairing| pairing.a.iter().chain(&pairing.other))
    }
}

/// The slices of a round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    /// Slices of A and B, for the comparison of B with A.
    pub b_pairing: Pairing,
    /// Slices of A and the control, for the comparison of the control with A.
    pub control_pairing: Pairing,
}

/// Slices of A, and the slices that are compared with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairing {
    /// Slices of A.
    pub a: Vec<Slice>,
    /// Slices of B or of the control.
    pub other: Vec<Slice>,
}

impl Pairing {
    /// The valid metrics of both servers.
    pub fn contrast(&self) -> PairedRound {
        let valid = |slices: &[Slice]| slices.iter().map(Slice::valid_figures).collect();
        PairedRound { a: valid(&self.a), b: valid(&self.other) }
    }
}
