//! What the server itself measured of its requests during calibration (the Server Module): how classes differ, how
//! variable service is, how many workers there are.

use super::blocks::{Place, Pooled};
use super::{Once, ServerFacts, ServerFit};
use crate::inside::{Inside, NORMAL_95, variability};
use brimful_core::survey::InsideServer;
use std::collections::BTreeMap;

/// A class's CPU time must be known to within this share of it (half of the 95 % interval), or runs of the class by
/// itself say more.
const KNOWN: f64 = 0.1;

/// What was measured of each class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SeenInside {
    pub classes: Vec<Inside>,
    /// Whether its workers are more than the CPUs, so that they take turns there: waits are then of another variability
    /// than service is. So it is taken where it is not known how many there are.
    pub takes_turns: bool,
}

/// How variable service is, as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ServiceSeen {
    /// Squared coefficient of variation of the CPU time of a call of a class.
    pub scv: f64,
    pub standard_error: f64,
    pub takes_turns: bool,
}

impl SeenInside {
    /// Over the places that leave the server least rest, as far as all classes are known well there.
    pub fn of(facts: &ServerFacts, places: &BTreeMap<Place, Pooled>) -> Option<SeenInside> {
        let most = places.keys().rev().find_map(|place| if let Place::Clients(n) = place { Some(*n) } else { None })?;
        let restless = places.iter().filter(
            |(place, _)| matches!(place, Place::Clients(clients) | Place::Alone(_, clients) if *clients == most),
        );
        let restless: Vec<&Pooled> = restless.map(|(_, at)| at).collect();
        let class = |class: usize| {
            let seen =
                restless.iter().filter_map(|at| at.piece.inside.get(class).copied().flatten()).reduce(Inside::pool)?;
            let half_width = NORMAL_95 * (seen.variance / seen.sampled).sqrt();
            Some(seen).filter(|seen| half_width <= KNOWN * seen.within)
        };
        let classes = (0..facts.classes.len()).map(class).collect::<Option<_>>()?;
        let threads = restless.iter().filter_map(|at| at.piece.threads).max();
        Some(SeenInside { classes, takes_turns: threads.is_none_or(|threads| threads > u64::from(facts.servers)) })
    }

    /// Seconds of each class, such that the mean request of the mix needs `mean`: as they differ in their phases, with an
    /// equal share of the rest. Where phases alone took more than that, as classes do that were measured by themselves,
    /// each is scaled.
    pub fn demands(&self, mix: &[f64], mean: f64) -> Vec<f64> {
        let within: f64 = mix.iter().zip(&self.classes).map(|(share, class)| share * class.within).sum();
        let (rest, scale) = if mean > within { (mean - within, 1.0) } else { (0.0, mean / within) };
        self.classes.iter().map(|class| rest + scale * class.within).collect()
    }

    pub fn service(&self, mix: &[f64], demands: &[f64]) -> Option<ServiceSeen> {
        let (scv, standard_error) = variability(&self.classes, demands, mix)?;
        Some(ServiceSeen { scv, standard_error, takes_turns: self.takes_turns })
    }
}

impl Once {
    /// As measured inside the server, where its demands stand on that and calls wait for the CPUs: how long workers or
    /// whatever else is around them are held varies in its own way.
    pub(super) fn service_seen(&self, facts: &ServerFacts, places: &BTreeMap<Place, Pooled>) -> Option<ServiceSeen> {
        let waits_for_cpu = self.network.stations[0].name == self.cpu.0.name;
        let inside = SeenInside::of(facts, places).filter(|_| self.inside && waits_for_cpu)?;
        inside.service(&facts.mix, &self.cpu.1)
    }
}

impl ServerFit {
    /// What was measured inside the server; `None` where the demands of its classes do not stand on that.
    pub fn inside(&self) -> Option<InsideServer> {
        let seen = SeenInside::of(&self.facts, &self.places).filter(|_| self.once.inside)?;
        let service = seen.service(&self.facts.mix, &self.once.cpu.1);
        let most = self.places.iter().rev().find(|(place, _)| matches!(place, Place::Clients(_)));
        let workers = most.and_then(|(_, at)| at.piece.workers);
        Some(InsideServer {
            sampled: seen.classes.iter().map(|class| class.sampled).sum::<f64>() as u64,
            scv: service.map(|service| service.scv),
            scv_ci95_half_width: service.map(|service| NORMAL_95 * service.standard_error),
            takes_turns: seen.takes_turns,
            workers: workers.map(|workers| workers.most.into()),
            workers_busy: workers.map(|workers| workers.busy),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(within: [f64; 2]) -> SeenInside {
        let class = |within: f64| Inside { sampled: 1e4, within, variance: 0.25 * within * within, whole: None };
        SeenInside { classes: within.map(class).to_vec(), takes_turns: false }
    }

    #[test]
    fn classes_differ_as_they_do_inside_and_share_the_rest() {
        // 0.3 ms of each call are outside of its phases.
        let demands = seen([0.001, 0.004]).demands(&[0.75, 0.25], 0.75 * 0.0013 + 0.25 * 0.0043);
        assert!((demands[0] - 0.0013).abs() < 1e-12 && (demands[1] - 0.0043).abs() < 1e-12, "{demands:?}");
        // Phases of classes by themselves took longer than what a request of the mix costs: 2.5 ms against 2 ms.
        let demands = seen([0.001, 0.004]).demands(&[0.5, 0.5], 0.002);
        assert!((demands[0] - 0.0008).abs() < 1e-12 && (demands[1] - 0.0032).abs() < 1e-12, "{demands:?}");
    }

    #[test]
    fn what_is_outside_of_phases_does_not_vary() {
        let service = seen([0.001, 0.001]).service(&[0.5, 0.5], &[0.002, 0.002]).unwrap();
        assert!((service.scv - 0.0625).abs() < 1e-12 && service.standard_error < 0.002, "{service:?}");
    }
}
