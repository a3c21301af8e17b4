//! From calibration runs to a model, and from the model to predictions. Times are seconds, rates per second.
//!
//! One queueing station stands for the server's CPUs and one delay station for all else. The utilization law with the
//! idle server's own use as its intercept, busy = b₀ + Σ X_r·(D_r + W·I²), gives the classes' demands D and the cost of
//! waking up W: a call that finds the servers idle, with probability I, pays for waking them, and the answer for waking
//! whoever waits for it, who is idle about as often. The square is empirical: on nginx and on the reference server it
//! foretells the cost of a call at saturation from levels up to 60 %, where an intercept alone or I do not. Mean
//! response times at the calibration levels then give the delay and the variability of service.

use crate::SurveyError;
use brimful_core::model::{Class, ClassKind, Model, Scheduling, Station, StationKind};
use brimful_estimate::{Background, Observation, ResponsePoint, fit_demands, fit_response};
use brimful_model::{Estimate, Method, ModelError, exponential_wait, solve_open};
use serde::Serialize;

/// Where the survey's model stands, as a share of the saturation rate: the load a server can be run at with room for
/// peaks. At saturation itself an open network has no solution.
pub const OPERATING: f64 = 0.7;
/// No confidence interval of a mean response time is believed to be narrower than this share of it.
const RESPONSE_FLOOR: f64 = 0.01;

/// One calibration run.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Completed calls per second, by class.
    pub throughput: Vec<f64>,
    /// Busy servers, by the server's processes.
    pub busy: f64,
    /// Length, in seconds.
    pub seconds: f64,
    /// Mean response time and half width of its 95 % interval; only of runs of the mix.
    pub response: Option<(f64, Option<f64>)>,
}

/// What is known of the server besides the runs.
#[derive(Clone, Debug)]
pub struct Facts {
    pub classes: Vec<String>,
    /// Shares of the classes in the mix, summing to one.
    pub mix: Vec<f64>,
    pub servers: u32,
    /// Busy servers without load, by the server's processes.
    pub idle_busy: f64,
    /// Share of the servers' capacity that was busy without load, whoever used it.
    pub background: f64,
}

impl Facts {
    /// Share of the servers' time in which nobody uses them.
    fn idle_at(&self, utilization: f64) -> f64 {
        (1.0 - utilization - self.background).max(0.0)
    }
}

/// A fitted server.
#[derive(Clone, Debug)]
pub struct Fit {
    facts: Facts,
    /// Seconds per call, by class.
    pub demands: Vec<Estimate>,
    /// W: what a call costs more on an idle server, in seconds.
    pub wakeup: Estimate,
    /// Seconds that every call spends elsewhere.
    delay: f64,
    scv: f64,
}

/// What the model says of one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    pub throughput: f64,
    /// Mean; none where the queue would grow without end.
    pub response: Option<f64>,
    pub class_response: Option<Vec<f64>>,
    /// Of the servers, by the server's processes.
    pub utilization: f64,
}

impl Fit {
    /// Fits a model to the runs.
    pub fn new(facts: Facts, runs: &[Calibration]) -> Result<Fit, SurveyError> {
        let (demands, wakeup) = demands(&facts, runs)?;
        let mut fit = Fit { facts, demands, wakeup, delay: 0.0, scv: 1.0 };
        let points: Vec<ResponsePoint> = runs.iter().filter_map(|run| fit.response_point(run)).collect();
        let response = fit_response(&points)?;
        (fit.delay, fit.scv) = (response.delay, response.scv);
        Ok(fit)
    }

    /// Calls per second of the mix at which the CPUs are busy all the time.
    pub fn saturation(&self) -> f64 {
        let capacity = f64::from(self.facts.servers) * (1.0 - self.facts.background);
        capacity / self.mean_demand(&self.facts.mix)
    }

    /// What the model says when calls of the mix come at `rate`.
    pub fn predict(&self, rate: f64) -> Result<Prediction, SurveyError> {
        match solve_open(&self.model_at(rate), Method::Erlang) {
            Ok(solution) => Ok(Prediction {
                throughput: rate,
                response: Some(solution.mean_response_time),
                class_response: Some(solution.response_time),
                utilization: self.utilization(rate, &self.facts.mix),
            }),
            Err(ModelError::Unstable { .. }) => Ok(Prediction {
                throughput: self.saturation(),
                response: None,
                class_response: None,
                utilization: 1.0 - self.facts.background,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// The model to plan with: the demands of a server that never sleeps, so that it saturates at [`Self::saturation`],
    /// under [`OPERATING`] of that load.
    pub fn model(&self) -> Model {
        self.network(OPERATING * self.saturation(), 0.0)
    }

    /// The network at an aggregate rate, with the demands as they are at that rate.
    fn model_at(&self, rate: f64) -> Model {
        self.network(rate, self.wakeup_at(self.utilization(rate, &self.facts.mix)))
    }

    /// The network at an aggregate rate, each call paying `wakeup` seconds beyond its demand.
    fn network(&self, rate: f64, wakeup: f64) -> Model {
        let cpu = self.demands.iter().map(|demand| demand.value + wakeup).collect();
        let station = |name: &str, kind| Station {
            name: name.to_owned(),
            kind,
            scheduling: Scheduling::Fcfs,
            ..Station::default()
        };
        let class = |(name, share): (&String, &f64)| Class {
            name: name.clone(),
            kind: ClassKind::Open,
            rate: Some(rate * share),
            ..Class::default()
        };
        let (servers, scv, background) = (self.facts.servers, self.scv, self.facts.background);
        Model {
            stations: vec![
                Station { servers, scv, background, ..station("cpu", StationKind::Queue) },
                station("elsewhere", StationKind::Delay),
            ],
            classes: self.facts.classes.iter().zip(&self.facts.mix).map(class).collect(),
            demands: vec![cpu, vec![self.delay; self.demands.len()]],
            demand_ci95_half_width: vec![
                self.demands.iter().map(|d| d.ci95_half_width.unwrap_or(0.0)).collect(),
                vec![0.0; self.demands.len()],
            ],
            ..Model::default()
        }
    }

    fn mean_demand(&self, shares: &[f64]) -> f64 {
        let total: f64 = shares.iter().sum();
        shares.iter().zip(&self.demands).map(|(share, demand)| share * demand.value).sum::<f64>() / total
    }

    /// What waking up adds to a call at utilization U.
    fn wakeup_at(&self, utilization: f64) -> f64 {
        self.wakeup.value * self.facts.idle_at(utilization).powi(2)
    }

    /// Solves U·m = b₀ + λ·(D + W·(1 − U)²) for U by bisection: the left side grows with U and the right side does not.
    fn utilization(&self, rate: f64, shares: &[f64]) -> f64 {
        let demand = self.mean_demand(shares);
        let excess =
            |u: f64| u * f64::from(self.facts.servers) - self.facts.idle_busy - rate * (demand + self.wakeup_at(u));
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if excess(middle) < 0.0 { low = middle } else { high = middle }
        }
        high
    }

    fn response_point(&self, run: &Calibration) -> Option<ResponsePoint> {
        let (response, ci) = run.response?;
        let rate: f64 = run.throughput.iter().sum();
        let utilization = self.utilization(rate, &run.throughput);
        let wakeup = self.wakeup_at(utilization);
        let demand = self.mean_demand(&run.throughput) + wakeup;
        let demands: Vec<f64> = self.demands.iter().map(|demand| demand.value + wakeup).collect();
        let wait_unit = exponential_wait(&run.throughput, &demands, self.facts.servers, self.facts.background);
        // As the solver sees it: other work slows the service down.
        let service = demand / (1.0 - self.facts.background);
        let ci = ci.unwrap_or(response).max(RESPONSE_FLOOR * response);
        wait_unit.is_finite().then(|| ResponsePoint { wait_unit, demand: service, response, weight: ci.powi(-2) })
    }
}

/// The classes' demands and the cost of waking up, which is left out where the runs cannot tell it from the demands.
fn demands(facts: &Facts, runs: &[Calibration]) -> Result<(Vec<Estimate>, Estimate), SurveyError> {
    let classes = facts.classes.len();
    let background = Background::Known(facts.idle_busy);
    let observe = |run: &Calibration, columns: usize| {
        let utilization = (run.busy / f64::from(facts.servers)).min(1.0);
        let mut throughput = run.throughput.clone();
        throughput.push(run.throughput.iter().sum::<f64>() * facts.idle_at(utilization).powi(2));
        throughput.truncate(columns);
        // The variance of a mean of random service grows with the load and falls with the time.
        Observation { throughput, busy: run.busy, weight: run.seconds / run.busy.max(1e-3) }
    };
    let fit = |columns| {
        let observations: Vec<Observation> = runs.iter().map(|run| observe(run, columns)).collect();
        fit_demands(columns, &observations, background)
    };
    if let Ok(fit) = fit(classes + 1)
        && !fit.merged.iter().any(|group| group.contains(&classes))
    {
        return Ok((fit.demands[..classes].to_vec(), fit.demands[classes]));
    }
    Ok((fit(classes)?.demands, Estimate { value: 0.0, ci95_half_width: None }))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use brimful_model::mmm_wait;

    /// The fit of a server that follows the model.
    pub(crate) fn a_fit() -> Fit {
        Fit::new(facts(), &runs(0.0, 50e-6, 1.0)).unwrap()
    }

    const DEMANDS: [f64; 2] = [100e-6, 400e-6];

    fn facts() -> Facts {
        Facts {
            classes: vec!["light".to_owned(), "heavy".to_owned()],
            mix: vec![0.8, 0.2],
            servers: 1,
            idle_busy: 0.001,
            background: 0.01,
        }
    }

    /// Runs of a server that follows the model exactly, at 20, 40 and 60 % and with each class alone.
    fn runs(wakeup: f64, delay: f64, factor: f64) -> Vec<Calibration> {
        let mut runs = Vec::new();
        for (fraction, shares) in
            [(0.2, [0.8, 0.2]), (0.4, [0.8, 0.2]), (0.6, [0.8, 0.2]), (0.4, [1.0, 0.0]), (0.4, [0.0, 1.0])]
        {
            let demand: f64 = shares.iter().zip(DEMANDS).map(|(s, d)| s * d).sum();
            // The load that makes the server this busy.
            let effective = demand + wakeup * (0.99 - fraction) * (0.99 - fraction);
            let rate = (fraction - 0.001) / effective;
            let response = delay + effective / 0.99 + mmm_wait(rate, effective, 1, 0.01) * factor;
            runs.push(Calibration {
                throughput: shares.map(|share| share * rate).to_vec(),
                busy: fraction,
                seconds: 4.0,
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
        let fit = Fit::new(facts(), &runs(0.0, 50e-6, 1.3)).unwrap();
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
        let fit = Fit::new(facts(), &runs(40e-6, 50e-6, 1.0)).unwrap();
        assert!(close(fit.wakeup.value, 40e-6), "{fit:?}");
        assert!(close(fit.saturation(), 0.99 / 160e-6));
        let half = fit.predict(0.499 / (160e-6 + 40e-6 * 0.49 * 0.49)).unwrap();
        assert!(close(half.utilization, 0.5), "{half:?}");
        let near = fit.predict(0.999 * fit.saturation()).unwrap();
        assert!(near.response.is_some(), "a server that never sleeps pays nothing for it: {near:?}");
    }

    #[test]
    fn beyond_saturation_throughput_is_capped_and_no_response_time_is_promised() {
        let fit = Fit::new(facts(), &runs(0.0, 50e-6, 1.0)).unwrap();
        let predicted = fit.predict(2.0 * fit.saturation()).unwrap();
        assert!(close(predicted.throughput, fit.saturation()));
        assert_eq!(predicted.response, None);
        assert!(predicted.utilization > 0.98);
    }

    #[test]
    fn the_model_to_plan_with_says_the_same_as_the_fit_and_can_be_solved() {
        let fit = Fit::new(facts(), &runs(40e-6, 50e-6, 1.3)).unwrap();
        let model = fit.model();
        let (saturation, bottleneck) = brimful_model::saturation_rate(&model).unwrap();
        assert!(close(saturation, fit.saturation()));
        assert_eq!(bottleneck, "cpu");
        assert!(model.demands[0].iter().zip(&fit.demands).all(|(demand, fitted)| close(*demand, fitted.value)));
        let solution = solve_open(&model, Method::Erlang).unwrap();
        assert!(close(solution.throughput.iter().sum(), OPERATING * saturation), "{solution:?}");
    }
}
