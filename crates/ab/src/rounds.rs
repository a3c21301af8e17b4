//! The measured rounds of a comparison. A round consists of slices: short runs against A, B and the control.

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

    /// The metrics of A and of B in each round.
    pub fn b_paired_rounds(&self) -> Vec<PairedRound> {
        self.0.iter().map(|round| round.b_pairing.paired_round()).collect()
    }

    /// The metrics of A and of the control in each round.
    pub fn control_paired_rounds(&self) -> Vec<PairedRound> {
        self.0.iter().map(|round| round.control_pairing.paired_round()).collect()
    }

    /// The slices of A and B in each round.
    pub fn pairings(&self) -> impl Iterator<Item = &Pairing> {
        self.0.iter().map(|round| &round.b_pairing)
    }

    /// The reasons why slices of A and B are not valid for this metric.
    pub fn problems(&self, figure: &str) -> impl Iterator<Item = &Reason> {
        self.slices().filter_map(move |slice| slice.problem_with(figure))
    }

    /// Number of slices in which this metric is valid, and others are not, because the load generator was late.
    pub fn late_slices(&self, figure: &str) -> usize {
        self.slices().filter(|slice| slice.problem.is_some() && slice.problem_with(figure).is_none()).count()
    }

    /// All slices of A and B, without those of the control.
    pub fn slices(&self) -> impl Iterator<Item = &Slice> {
        self.pairings().flat_map(|pairing| pairing.a.iter().chain(&pairing.other))
    }
}

/// The slices (short runs) of a round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    /// Slices of A and B, for the comparison of B with A.
    pub b_pairing: Pairing,
    /// Slices of A and the control, for the comparison of the control with A.
    pub control_pairing: Pairing,
}

/// Slices of A, and the slices of another server that are compared with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairing {
    /// Slices of A.
    pub a: Vec<Slice>,
    /// Slices of B or of the control.
    pub other: Vec<Slice>,
}

impl Pairing {
    /// The valid metrics of both servers, for a comparison.
    pub fn paired_round(&self) -> PairedRound {
        let valid = |slices: &[Slice]| slices.iter().map(Slice::valid_metrics).collect();
        PairedRound { a: valid(&self.a), b: valid(&self.other) }
    }
}
