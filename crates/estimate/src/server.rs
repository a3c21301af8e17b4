//! From the calibration runs of a survey to a model, and from the model to predictions. Times are seconds, rates per
//! second.
//!
//! One queueing station stands for the server's CPUs and one delay station for all else. The utilization law with the
//! idle server's own use as its intercept gives the demands of the classes and what an idle server pays for waking up
//! ([`crate::demand::Shape::Idle`]). Mean response times at the calibration levels then give the delay and the
//! variability of service. Predictions are solutions of the model, so whoever solves it gets the same.

use crate::EstimateError;
use crate::correlation::of_covariance;
use crate::demand::law::Law;
use crate::demand::load::with_term;
use crate::demand::term::{Servers, Term};
use crate::demand::{Background, Observation, Shape, check, counted, joint_demands};
use crate::response::{self, ResponsePoint, fit_response};
use crate::window::Observed;
use brimful_core::model::{Class, ClassKind, Model, Scheduling, Station, StationKind};
use brimful_model::correlation::identity;
use brimful_model::{Estimate, Method, ModelError, exponential_wait, solve_open, station_demands};

/// Where the model stands, as a share of the saturation rate: the load a server can be run at with room for peaks. At
/// saturation itself an open network has no solution.
pub const OPERATING: f64 = 0.7;

/// One calibration run.
#[derive(Clone, Debug)]
pub struct CalibrationRun {
    /// What the server's processes did in it.
    pub observed: Observed,
    /// Mean response time and half width of its 95 % interval; only of runs of the mix.
    pub response: Option<(f64, Option<f64>)>,
}

/// What is known of the server besides the runs.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Shares of the classes in the mix, summing to one.
    pub mix: Vec<f64>,
    /// CPUs that the server can use at once.
    pub servers: u32,
    /// Busy servers without load, by the server's processes.
    pub idle_busy: f64,
    /// Share of the servers' capacity that requests cannot have.
    pub background: f64,
}

/// A fitted server.
#[derive(Clone, Debug)]
pub struct ServerFit {
    facts: ServerFacts,
    /// Seconds per request, by class.
    pub demands: Vec<Estimate>,
    /// What a request costs more on an idle server, in seconds.
    pub wakeup: Estimate,
    /// Without rates.
    network: Model,
}

/// What the model says of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Requests completed per second.
    pub throughput: f64,
    /// Mean response time; none where the queue would grow without end.
    pub response: Option<f64>,
    /// The same by class.
    pub class_response: Option<Vec<f64>>,
    /// Of the servers, by the server's processes.
    pub utilization: f64,
}

impl ServerFit {
    /// Fits a model to the runs.
    pub fn new(facts: ServerFacts, runs: &[CalibrationRun]) -> Result<Self, EstimateError> {
        let classes = facts.classes.len();
        let observations: Vec<Observation> = runs.iter().map(|run| run.observed.observation()).collect();
        check(classes, &observations, Background::Known(facts.idle_busy))?;
        let counted = counted(&observations);
        let law = Law::distinct(classes, &counted, Background::Known(facts.idle_busy))?;
        // The share that requests cannot have is idle as far as what the server does without load is counted in `busy`.
        let others = facts.background - facts.idle_busy / f64::from(facts.servers);
        let term = Term { shape: Shape::Idle, servers: Servers::new(facts.servers, others) };
        let (fit, wakeup) = match with_term(&law, term, &counted) {
            Some(waking) => waking,
            None => (law.fit(&counted)?, Estimate { value: 0.0, ci95_half_width: None }),
        };
        let mut network = network(&facts, &fit.demands);
        network.stations[0].idle_cost = term.shape.idle_cost(wakeup.value).filter(|cost| cost.seconds > 0.0);
        network.demand_correlation =
            vec![fit.covariance(0.0).map_or_else(|| identity(classes), |c| of_covariance(&c)), identity(classes)];
        network.joint_demands = joint_demands(&network.classes, "cpu", &fit.merged);
        let points: Vec<ResponsePoint> =
            runs.iter().filter_map(|run| response_point(&network.stations[0], &network.demands[0], run)).collect();
        let response = fit_response(&points)?;
        network.stations[0].scv = response.scv;
        network.demands[1] = vec![response.delay; classes];
        Ok(Self { facts, demands: fit.demands, wakeup, network })
    }

    /// Requests per second of the mix at which the CPUs are busy all the time.
    pub fn saturation(&self) -> f64 {
        let capacity = f64::from(self.facts.servers) * (1.0 - self.facts.background);
        capacity / self.facts.mix.iter().zip(&self.demands).map(|(share, demand)| share * demand.value).sum::<f64>()
    }

    /// What the model says when requests of the mix come at `rate`.
    pub fn predict(&self, rate: f64) -> Result<Prediction, EstimateError> {
        let own = self.facts.idle_busy / f64::from(self.facts.servers);
        match solve_open(&self.model_at(rate), Method::Erlang) {
            Ok(solution) => Ok(Prediction {
                throughput: rate,
                response: Some(solution.mean_response_time),
                class_response: Some(solution.response_time),
                utilization: (own + solution.utilization[0].iter().sum::<f64>()).min(1.0),
            }),
            Err(ModelError::Unstable { .. }) => Ok(Prediction {
                throughput: self.saturation(),
                response: None,
                class_response: None,
                utilization: (own + 1.0 - self.facts.background).min(1.0),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// The model to plan with, under [`OPERATING`] of the load at which it saturates.
    pub fn model(&self) -> Model {
        self.model_at(OPERATING * self.saturation())
    }

    /// The model when requests of the mix come at `rate`.
    fn model_at(&self, rate: f64) -> Model {
        let mut model = self.network.clone();
        model.classes.iter_mut().zip(&self.facts.mix).for_each(|(class, share)| class.rate = Some(rate * share));
        model
    }
}

/// The server with these demands and nothing else known of it, under one request per second of the mix.
fn network(facts: &ServerFacts, demands: &[Estimate]) -> Model {
    let station =
        |name: &str, kind| Station { name: name.to_owned(), kind, scheduling: Scheduling::Fcfs, ..Station::default() };
    let class = |(name, share): (&String, &f64)| Class {
        name: name.clone(),
        kind: ClassKind::Open,
        rate: Some(*share),
        ..Class::default()
    };
    let (servers, background) = (facts.servers, facts.background);
    Model {
        stations: vec![
            Station { servers, background, ..station("cpu", StationKind::Queue) },
            station("elsewhere", StationKind::Delay),
        ],
        classes: facts.classes.iter().zip(&facts.mix).map(class).collect(),
        demands: vec![demands.iter().map(|d| d.value).collect(), vec![0.0; demands.len()]],
        demand_ci95_half_width: vec![
            demands.iter().map(|d| d.ci95_half_width.unwrap_or(0.0)).collect(),
            vec![0.0; demands.len()],
        ],
        ..Model::default()
    }
}

/// What a run says of response times; none of one past saturation.
fn response_point(cpu: &Station, demands: &[f64], run: &CalibrationRun) -> Option<ResponsePoint> {
    let (response, ci) = run.response?;
    let rates = &run.observed.throughput;
    let demands = station_demands(cpu, demands, rates);
    let wait_unit = exponential_wait(rates, &demands, cpu.servers, cpu.background);
    let work: f64 = rates.iter().zip(&demands).map(|(rate, demand)| rate * demand).sum();
    // As the solver sees it: other work slows the service down.
    let demand = work / rates.iter().sum::<f64>() / (1.0 - cpu.background);
    let ci = ci.unwrap_or(response).max(response::FLOOR * response);
    (wait_unit.is_finite() && demand.is_finite()).then(|| ResponsePoint {
        wait_unit,
        demand,
        response,
        weight: ci.powi(-2),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_model::{Solution, mmm_wait, saturation_rate, solve};

    const DEMANDS: [f64; 2] = [100e-6, 400e-6];

    fn facts() -> ServerFacts {
        ServerFacts {
            classes: vec!["light".to_owned(), "heavy".to_owned()],
            mix: vec![0.8, 0.2],
            servers: 1,
            idle_busy: 0.001,
            background: 0.01,
        }
    }

    /// Runs of a server that follows the model exactly, at 20, 40 and 60 % and with each class alone.
    fn runs(wakeup: f64, delay: f64, factor: f64) -> Vec<CalibrationRun> {
        let mut runs = Vec::new();
        for (fraction, shares) in
            [(0.2, [0.8, 0.2]), (0.4, [0.8, 0.2]), (0.6, [0.8, 0.2]), (0.4, [1.0, 0.0]), (0.4, [0.0, 1.0])]
        {
            let demand: f64 = shares.iter().zip(DEMANDS).map(|(s, d)| s * d).sum();
            // The load that makes the server this busy.
            let effective = demand + wakeup * (0.991 - fraction) * (0.991 - fraction);
            let rate = (fraction - 0.001) / effective;
            let response = delay + effective / 0.99 + mmm_wait(rate, effective, 1, 0.01) * factor;
            let throughput = shares.map(|share| share * rate).to_vec();
            runs.push(CalibrationRun {
                observed: Observed { seconds: 4.0, throughput, busy: fraction },
                response: (shares[0] == 0.8).then_some((response, Some(0.02 * response))),
            });
        }
        runs
    }

    fn close(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-6
    }

    #[test]
    fn a_server_that_follows_the_model_is_recovered() {
        let fit = ServerFit::new(facts(), &runs(0.0, 50e-6, 1.3)).unwrap();
        assert!(close(fit.demands[0].value, DEMANDS[0]) && close(fit.demands[1].value, DEMANDS[1]), "{fit:?}");
        assert!(close(fit.saturation(), 0.99 / 160e-6));
        let rate = 0.7 / 160e-6;
        let predicted = fit.predict(rate).unwrap();
        let expected = 50e-6 + 160e-6 / 0.99 + mmm_wait(rate, 160e-6, 1, 0.01) * 1.3;
        assert!(close(predicted.response.unwrap(), expected), "{predicted:?}");
        assert!(close(predicted.utilization, 0.701), "{predicted:?}");
    }

    #[test]
    fn waking_up_is_not_taken_for_demand() {
        let fit = ServerFit::new(facts(), &runs(40e-6, 50e-6, 1.0)).unwrap();
        assert!(close(fit.wakeup.value, 40e-6), "{fit:?}");
        assert!(close(fit.saturation(), 0.99 / 160e-6));
        let half = fit.predict(0.499 / (160e-6 + 40e-6 * 0.491 * 0.491)).unwrap();
        assert!(close(half.utilization, 0.5), "{half:?}");
        let near = fit.predict(0.999 * fit.saturation()).unwrap();
        assert!(near.response.is_some(), "a server that never sleeps pays nothing for it: {near:?}");
    }

    #[test]
    fn beyond_saturation_throughput_is_capped_and_no_response_time_is_promised() {
        let fit = ServerFit::new(facts(), &runs(0.0, 50e-6, 1.0)).unwrap();
        let predicted = fit.predict(2.0 * fit.saturation()).unwrap();
        assert!(close(predicted.throughput, fit.saturation()));
        assert_eq!(predicted.response, None);
        assert!(predicted.utilization > 0.98);
    }

    #[test]
    fn whoever_solves_the_model_gets_what_was_predicted() {
        let fit = ServerFit::new(facts(), &runs(40e-6, 50e-6, 1.3)).unwrap();
        let model = fit.model();
        let (saturation, bottleneck) = saturation_rate(&model).unwrap();
        assert!((saturation / fit.saturation() - 1.0).abs() < 1e-9);
        assert_eq!(bottleneck, "cpu");
        let same = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        for fraction in [0.2, 0.3, 0.5, OPERATING, 0.9] {
            let mut model: Model = serde_json::from_value(serde_json::to_value(&model).unwrap()).unwrap();
            model.classes.iter_mut().for_each(|class| class.rate = class.rate.map(|rate| rate / OPERATING * fraction));
            let solution: Solution = solve(&model, Method::Auto).unwrap();
            let predicted = fit.predict(fraction * saturation).unwrap();
            same(solution.mean_response_time, predicted.response.unwrap());
            same(solution.utilization[0].iter().sum::<f64>() + 0.001, predicted.utilization);
            // By the law itself: W·I² beside the demand, which is what the server was made by.
            let idle = 0.99 - solution.utilization[0].iter().sum::<f64>();
            let effective = 160e-6 + 40e-6 * idle * idle;
            let rate = fraction * saturation;
            assert!(close(rate * effective, 0.99 - idle), "{fraction}");
            let expected = 50e-6 + effective / 0.99 + mmm_wait(rate, effective, 1, 0.01) * 1.3;
            assert!((solution.mean_response_time / expected - 1.0).abs() < 0.02, "{fraction}: {solution:?} {expected}");
        }
    }

    #[test]
    fn classes_that_always_came_together_are_known_together() {
        let together: Vec<CalibrationRun> = runs(0.0, 50e-6, 1.0).into_iter().take(3).collect();
        let model = ServerFit::new(facts(), &together).unwrap().model();
        let [joint] = model.joint_demands.as_slice() else { panic!("{model:?}") };
        assert_eq!(
            (joint.station.as_str(), joint.classes.as_slice()),
            ("cpu", &["light".to_owned(), "heavy".into()][..])
        );
        assert!(close(joint.shares[0], 0.8) && close(model.demands[0][0], 160e-6), "{model:?}");
        assert!(solve(&model, Method::Auto).is_ok());
    }
}
