//! A simulation that returns every request instead of statistics.

use super::SimulationOptions;
use super::layout::Layout;
use super::world::{SimulatedRequest, World};
use crate::ModelError;
use brimful_core::model::Model;

/// The results of one of the intervals of equal length into which a simulation is divided.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationInterval {
    /// The requests that were completed in the interval, in the order of completion.
    pub completed: Vec<SimulatedRequest>,
    /// Service that the requests of each class received at each station in the interval: stations × classes, in seconds
    /// of service demand.
    pub work: Vec<Vec<f64>>,
}

/// Simulates an initially empty network in intervals of `interval_s` seconds. At the end of each interval, calls
/// `observe` with its requests. The simulation ends when `observe` returns false. The options `precision`, `events` and
/// `time_s` have no effect. The network may be saturated. Returns the requests that are present at the end.
///
/// # Errors
/// When the model or the options are invalid, or more than a million requests are present.
pub fn simulate_intervals(
    model: &Model,
    options: &SimulationOptions,
    interval_s: f64,
    mut observe: impl FnMut(SimulationInterval) -> bool,
) -> Result<Vec<SimulatedRequest>, ModelError> {
    let layout = Layout::unchecked_stability(model, options)?;
    let mut world = World::new(&layout, options.seed);
    world.passages = Some(Vec::new());
    for interval in 1_u64.. {
        world.run(interval as f64 * interval_s, u64::MAX)?;
        world.integrate();
        let work = world.presence.iter_mut().map(|p| std::mem::take(&mut p.visits).work).collect::<Vec<f64>>();
        let work = work.chunks(layout.classes.len()).map(<[f64]>::to_vec).collect();
        let completed = world.passages.replace(Vec::new()).unwrap_or_default();
        if !observe(SimulationInterval { completed, work }) {
            break;
        }
    }
    Ok(world.unfinished())
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::model::{ClassKind, ModelClass, Scheduling, Station};

    #[test]
    fn every_request_is_seen_once_and_its_work_is_counted() {
        let closed = ModelClass { kind: ClassKind::Closed, population: Some(3), think: 0.1, ..ModelClass::default() };
        let class = |name: &str, class: ModelClass| ModelClass { name: name.to_owned(), ..class };
        let model = Model {
            stations: vec![Station { name: "cpu".into(), scheduling: Scheduling::Fcfs, ..Station::default() }],
            classes: vec![
                class("open", ModelClass { rate: Some(5.0), ..ModelClass::default() }),
                class("closed", closed),
            ],
            demands: vec![vec![0.05, 0.02]],
            ..Model::default()
        };
        let (mut seen, mut work, mut intervals) = ([0_u32; 2], [0.0; 2], 0);
        let present = simulate_intervals(&model, &SimulationOptions::default(), 0.5, |episode| {
            intervals += 1;
            for passage in &episode.completed {
                let ended = passage.ended.unwrap();
                assert!(ended <= 0.5 * f64::from(intervals) && ended > 0.5 * f64::from(intervals - 1) - 1e-9);
                assert!(passage.began <= ended);
                seen[passage.class] += 1;
            }
            work.iter_mut().zip(&episode.work[0]).for_each(|(sum, work)| *sum += work);
            intervals < 2000
        });
        let present = present.unwrap();
        assert!(present.iter().all(|passage| passage.ended.is_none()));
        assert!(present.iter().filter(|passage| passage.class == 1).count() <= 3);
        // By the utilization law, the work of a class at a station equals its demand times its number of completed
        // requests.
        for (class, demand) in [0.05, 0.02].into_iter().enumerate() {
            let expected = demand * f64::from(seen[class]);
            assert!((work[class] / expected - 1.0).abs() < 0.05, "{class}: {work:?} {seen:?}");
        }
        // With the same seed, `simulate` generates the same requests.
        let options = SimulationOptions { precision: None, time_s: Some(1000.0), ..SimulationOptions::default() };
        let figures = super::super::simulate(&model, &options).unwrap();
        for (class, seen) in seen.into_iter().enumerate() {
            assert!((figures.throughput[class].value / (f64::from(seen) / 1000.0) - 1.0).abs() < 0.02, "{class}");
        }
    }

    #[test]
    fn a_network_that_cannot_keep_up_works_all_the_time_and_its_backlog_grows() {
        let model = Model {
            stations: vec![Station { name: "cpu".into(), scheduling: Scheduling::Fcfs, ..Station::default() }],
            classes: vec![ModelClass { name: "open".into(), rate: Some(30.0), ..ModelClass::default() }],
            demands: vec![vec![0.05]],
            ..Model::default()
        };
        let (mut completed, mut work, mut intervals) = (0.0, 0.0, 0);
        let present = simulate_intervals(&model, &SimulationOptions::default(), 1.0, |episode| {
            (completed, work, intervals) =
                (completed + episode.completed.len() as f64, work + episode.work[0][0], intervals + 1);
            intervals < 1000
        });
        let present = present.unwrap().len() as f64;
        assert!(work > 995.0 && (completed / 20_000.0 - 1.0).abs() < 0.03, "{work} {completed}");
        assert!(((completed + present) / 30_000.0 - 1.0).abs() < 0.03, "{completed} {present}");
    }
}
