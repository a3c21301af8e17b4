//! The results of a model for each number of the ranges of a scenario.

use super::amount::{Operation, Unit};
use super::scenario::{AxisPoints, Scenario, Variants};
use crate::ModelError;
use crate::interruptions::available_share;
use crate::network::{Network, mix};
use crate::solution::{Method, Solution};
use crate::solve::solve;
use crate::station::max_speed;
use brimful_core::JsonSchema;
use brimful_core::csv;
use brimful_core::model::{Model, StationKind};
use serde::Serialize;

/// The results of a model for each number of one range, or for each pair of numbers of two ranges.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Curve {
    /// The ranges of the scenario, one per axis.
    pub axes: Vec<Axis>,
    /// Names of the classes. Lists by class in the points have the same order.
    pub classes: Vec<String>,
    /// Names of the stations. Lists by station in the points have the same order.
    pub stations: Vec<String>,
    /// The points of the curve. With two ranges, the number of the second range changes fastest.
    pub points: Vec<CurvePoint>,
}

/// One axis of a curve: a parameter that varies over a range.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Axis {
    /// The parameter that differs from point to point, such as `cpu.speed`.
    pub subject: String,
    /// Unit of the parameter: `x` (a factor), `%` (a relative change), `1/s`, `s`, `bit/s`, `B`, or empty.
    pub unit: String,
}

/// The results for one number of each range.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CurvePoint {
    /// The number of each range at this point.
    pub x: Vec<f64>,
    /// The steady state at this point; `None` if there is no solution.
    pub steady: Option<Steady>,
    /// The reason why there is no solution: a station cannot keep up, or a solver failed.
    pub unsolved: Option<String>,
    /// For each station: utilization of the capacity that background work and interruptions leave; 1 or more if the
    /// station cannot keep up. For a delay, it is the number of requests present. If there is no solution, closed
    /// classes are not included.
    pub utilization: Vec<f64>,
    /// The rate of all classes together, at their mix at this point, at which the first station saturates, in requests
    /// per second.
    #[schemars(with = "Option<f64>")]
    pub saturation_rate: f64,
    /// The station that saturates first as the load grows; empty if no station ever saturates.
    pub bottleneck: String,
}

/// The throughputs and response times of a network in its steady state.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Steady {
    /// X: throughput of each class, in requests per second.
    pub throughput: Vec<f64>,
    /// R: response time of each class, in seconds.
    pub response_time: Vec<f64>,
    /// Mean response time R over all requests, in seconds.
    pub mean_response_time: f64,
}

/// Solves a model for each number of the scenario's ranges, or once if there are no ranges. A point has no steady state
/// if the network is saturated or cannot be solved there.
///
/// # Errors
/// When the model or the scenario is invalid at a point.
pub fn curve(model: &Model, scenario: &Scenario, method: Method) -> Result<Curve, ModelError> {
    along(&Variants::new(scenario, model)?, method)
}

impl Curve {
    /// Formats the curve as CSV with one point per line. A missing value is an empty field.
    pub fn to_csv(&self) -> String {
        let columns =
            |what: &str, names: &[String]| names.iter().map(|name| format!("{what} {name}")).collect::<Vec<_>>();
        let axes = self.axes.iter().map(|axis| match axis.unit.as_str() {
            "" => axis.subject.clone(),
            unit => format!("{} ({unit})", axis.subject),
        });
        let common = ["saturation_rate", "bottleneck", "unsolved", "mean_response_time"].map(str::to_owned);
        let by_name = [
            columns("throughput", &self.classes),
            columns("response_time", &self.classes),
            columns("utilization", &self.stations),
        ];
        let header: Vec<String> = axes.chain(common).chain(by_name.concat()).collect();
        let lines = self.points.iter().map(|point| self.line(point));
        std::iter::once(header).chain(lines).map(|fields| csv::format_row(fields.iter().map(String::as_str))).collect()
    }

    fn line(&self, point: &CurvePoint) -> Vec<String> {
        let number = |x: f64| if x.is_finite() { x.to_string() } else { String::new() };
        let steady = |figures: fn(&Steady) -> &[f64]| {
            let found = point.steady.as_ref().map(|steady| figures(steady).iter().map(|x| number(*x)).collect());
            found.unwrap_or_else(|| vec![String::new(); self.classes.len()])
        };
        let mut fields: Vec<String> = point.x.iter().map(|x| number(*x)).collect();
        fields.extend([number(point.saturation_rate), point.bottleneck.clone()]);
        fields.push(point.unsolved.clone().unwrap_or_default());
        fields.push(point.steady.as_ref().map_or(String::new(), |steady| number(steady.mean_response_time)));
        fields.extend(steady(|s| &s.throughput));
        fields.extend(steady(|s| &s.response_time));
        fields.extend(point.utilization.iter().map(|x| number(*x)));
        fields.resize(point.x.len() + 4 + 2 * self.classes.len() + self.stations.len(), String::new());
        fields
    }
}

/// Solves the model of each point of the ranges.
pub(super) fn along(variants: &Variants, method: Method) -> Result<Curve, ModelError> {
    let mut model = variants.base().clone();
    let point = |x: Vec<f64>| {
        variants.model_into(&mut model, &x)?;
        point(&model, x, method)
    };
    let points = variants.grid().into_iter().map(point).collect::<Result<_, _>>()?;
    Ok(Curve {
        axes: variants.axes.iter().map(Axis::new).collect(),
        classes: variants.base().classes.iter().map(|class| class.name.clone()).collect(),
        stations: variants.base().stations.iter().map(|station| station.name.clone()).collect(),
        points,
    })
}

fn point(model: &Model, x: Vec<f64>, method: Method) -> Result<CurvePoint, ModelError> {
    match solve(model, method) {
        Ok(solution) => Ok(solved(model, x, solution)),
        Err(error @ (ModelError::Unstable { .. } | ModelError::TooLarge { .. } | ModelError::NotConverged { .. })) => {
            unsolved(model, x, error.to_string())
        }
        Err(error) => Err(error),
    }
}

fn solved(model: &Model, x: Vec<f64>, solution: Solution) -> CurvePoint {
    let used = solution.utilization.iter().zip(model.stations.iter().zip(&model.demands));
    let used = used.map(|(row, (station, demands))| match station.kind {
        StationKind::Delay => row.iter().sum(),
        StationKind::Queue => {
            let capacity = max_speed(station) * available_share(station, demands, &solution.throughput);
            row.iter().sum::<f64>() * f64::from(station.servers) / capacity
        }
    });
    CurvePoint {
        x,
        unsolved: None,
        utilization: used.collect(),
        saturation_rate: solution.saturation_rate,
        bottleneck: solution.bottleneck,
        steady: Some(Steady {
            throughput: solution.throughput,
            response_time: solution.response_time,
            mean_response_time: solution.mean_response_time,
        }),
    }
}

fn unsolved(model: &Model, x: Vec<f64>, why: String) -> Result<CurvePoint, ModelError> {
    let network = Network::unchecked_stability(model)?;
    let used = model.stations.iter().enumerate().map(|(k, station)| match station.kind {
        StationKind::Delay => network.open_load(k),
        StationKind::Queue => network.open_load(k) / max_speed(station),
    });
    let (saturation_rate, bottleneck) = network.capacity(&mix(&network.rates));
    Ok(CurvePoint {
        x,
        steady: None,
        unsolved: Some(why),
        utilization: used.collect(),
        saturation_rate,
        bottleneck: network.name(bottleneck),
    })
}

impl Axis {
    fn new(axis: &AxisPoints) -> Axis {
        let unit = match (axis.amount.operation, axis.amount.unit) {
            (Operation::Times, _) => "x",
            (Operation::Percent, _) => "%",
            (_, Unit::Rate) => "1/s",
            (_, Unit::Time) => "s",
            (_, Unit::BitRate) => "bit/s",
            (_, Unit::Size) => "B",
            (_, Unit::Count | Unit::Number | Unit::Share | Unit::Factor) => "",
        };
        Axis { subject: axis.subject.clone(), unit: unit.into() }
    }
}
