//! The Server Module's measurements of requests during calibration: the CPU time of each class, the variability of
//! service times, and the number of workers. The Server Module is a plug-in of the web server.

use super::blocks::{OfferedLoad, PooledLoads, PooledMeasurement, ServerFacts, most_clients};
use super::model_fit::ModelFit;
use crate::server_module::{ModuleDemand, NORMAL_95, scv_within_classes};
use brimful_core::survey::ModuleMeasurements;

/// Maximum half width of the 95 % confidence interval of a class's mean CPU time, relative to this time. With wider
/// intervals, measurements of loads of the class alone are more precise.
const MAX_HALF_WIDTH: f64 = 0.1;

/// The Server Module's measurements of all request classes, and whether workers share the CPUs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ModuleDemands {
    /// The measurement of each request class.
    pub classes: Vec<ModuleDemand>,
    /// Whether workers share the CPUs in time slices, so that waiting times do not show the variability of service
    /// times. True if there are more workers than CPUs, or if the number of workers is unknown.
    pub takes_turns: bool,
}

/// The variability of service times that the Server Module measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MeasuredService {
    /// Squared coefficient of variation of the CPU time of calls within a class.
    pub scv: f64,
    /// Standard error of `scv`.
    pub standard_error: f64,
    /// Whether there are more workers than CPUs, so that workers share the CPUs in time slices.
    pub takes_turns: bool,
}

impl ModuleDemands {
    /// Combines the measurements with the largest number of clients: of the mix, and of each class alone. Returns `None`
    /// if they do not determine the CPU time of every request class precisely.
    pub fn new(facts: &ServerFacts, loads: &PooledLoads) -> Option<ModuleDemands> {
        let (most, _) = most_clients(loads)?;
        let has_most = |load: &OfferedLoad| matches!(load, OfferedLoad::Clients(clients) | OfferedLoad::SingleClass(_, clients) if *clients == most);
        let saturated: Vec<&PooledMeasurement> =
            loads.iter().filter(|(load, _)| has_most(load)).map(|(_, pooled)| pooled).collect();
        let class = |class: usize| {
            let demands = saturated.iter().filter_map(|p| p.measurement.module.demands.get(class).copied().flatten());
            let demand = demands.reduce(ModuleDemand::pool)?;
            let half_width = NORMAL_95 * (demand.variance / demand.sampled).sqrt();
            Some(demand).filter(|demand| half_width <= MAX_HALF_WIDTH * demand.cpu_in_phases_s)
        };
        let classes = (0..facts.classes.len()).map(class).collect::<Option<_>>()?;
        let threads = saturated.iter().filter_map(|pooled| pooled.measurement.module.threads).max();
        Some(ModuleDemands { classes, takes_turns: threads.is_none_or(|threads| threads > u64::from(facts.servers)) })
    }

    /// The demand of each class in seconds, so that the mean demand of the mix is `mean`.
    ///
    /// The demand of a class is the CPU time in the processing phases of a request, which differs between classes, plus
    /// the CPU time outside of phases, which is the same for all classes. If the mean CPU time in phases exceeds
    /// `mean`, all demands are reduced in proportion. This is possible if each class was measured alone.
    pub fn demands(&self, mix: &[f64], mean: f64) -> Vec<f64> {
        let cpu_in_phases_s: f64 =
            mix.iter().zip(&self.classes).map(|(share, class)| share * class.cpu_in_phases_s).sum();
        let (outside, scale) =
            if mean > cpu_in_phases_s { (mean - cpu_in_phases_s, 1.0) } else { (0.0, mean / cpu_in_phases_s) };
        self.classes.iter().map(|class| outside + scale * class.cpu_in_phases_s).collect()
    }

    /// The variability of service times within request classes; `None` if it cannot be computed.
    pub fn service(&self, mix: &[f64], demands: &[f64]) -> Option<MeasuredService> {
        let (scv, standard_error) = scv_within_classes(&self.classes, demands, mix)?;
        Some(MeasuredService { scv, standard_error, takes_turns: self.takes_turns })
    }
}

/// The measured variability of service times. `None` if the demands do not come from the module. Also `None` if calls
/// hold workers or another resource while they use the CPUs, because holding times have another variability.
pub(super) fn measured_service(fit: &ModelFit, facts: &ServerFacts, loads: &PooledLoads) -> Option<MeasuredService> {
    let measured = ModuleDemands::new(facts, loads).filter(|_| fit.cpu.is_from_module && fit.waits_for_cpu())?;
    measured.service(&facts.mix, &fit.cpu.demands)
}

/// The Server Module's measurements, for the JSON document of the survey. `None` if the demands do not come from the
/// module.
pub(super) fn document(fit: &ModelFit, facts: &ServerFacts, loads: &PooledLoads) -> Option<ModuleMeasurements> {
    let measured = ModuleDemands::new(facts, loads).filter(|_| fit.cpu.is_from_module)?;
    let service = measured.service(&facts.mix, &fit.cpu.demands);
    let workers = most_clients(loads).and_then(|(_, pooled)| pooled.measurement.module.workers);
    Some(ModuleMeasurements {
        sampled: measured.classes.iter().map(|class| class.sampled).sum::<f64>() as u64,
        scv: service.map(|service| service.scv),
        scv_ci95_half_width: service.map(|service| NORMAL_95 * service.standard_error),
        takes_turns: measured.takes_turns,
        workers: workers.map(|workers| workers.max_workers.into()),
        workers_busy: workers.map(|workers| workers.busy),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(cpu_in_phases_s: [f64; 2]) -> ModuleDemands {
        let class = |cpu_in_phases_s: f64| {
            let variance = 0.25 * cpu_in_phases_s * cpu_in_phases_s;
            ModuleDemand { sampled: 1e4, cpu_in_phases_s, variance, total: None }
        };
        ModuleDemands { classes: cpu_in_phases_s.map(class).to_vec(), takes_turns: false }
    }

    #[test]
    fn classes_differ_by_their_phases_and_share_the_rest() {
        // Each request takes 0.3 ms of CPU time outside of its processing phases.
        let demands = seen([0.001, 0.004]).demands(&[0.75, 0.25], 0.75 * 0.0013 + 0.25 * 0.0043);
        assert!((demands[0] - 0.0013).abs() < 1e-12 && (demands[1] - 0.0043).abs() < 1e-12, "{demands:?}");
        // The mean CPU time in processing phases is 2.5 ms, measured with each class alone. It exceeds the mean demand
        // of the mix, 2 ms.
        let demands = seen([0.001, 0.004]).demands(&[0.5, 0.5], 0.002);
        assert!((demands[0] - 0.0008).abs() < 1e-12 && (demands[1] - 0.0032).abs() < 1e-12, "{demands:?}");
    }

    #[test]
    fn cpu_time_outside_of_phases_does_not_vary() {
        let service = seen([0.001, 0.001]).service(&[0.5, 0.5], &[0.002, 0.002]).unwrap();
        assert!((service.scv - 0.0625).abs() < 1e-12 && service.standard_error < 0.002, "{service:?}");
    }
}
