//! Confidence intervals of results, from the intervals of the demands.
//!
//! The intervals are computed by the Monte Carlo method. The demands at a station are drawn from a joint normal
//! distribution with their means, half widths and correlations ([`Model::demand_correlation`]). If a drawn demand is
//! negative, its absolute value is used. The interval of a result extends from its 5 % quantile to its 95 % quantile
//! over all draws. Results before and after a change use the same draws (common random numbers), so their ratio is more
//! precise than either result. If a draw saturates a station, the response times of that draw are infinite.

use super::WhatIfOptions;
use super::headroom::{LoadLimit, Objective, quick};
use super::scenario::{Scenario, Variants};
use crate::ModelError;
use crate::correlation::{draw, factor, identity};
use crate::network::Network;
use crate::solution::Method;
use crate::solve::{is_simulated, solve};
use brimful_core::JsonSchema;
use brimful_core::model::Model;
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use serde::Serialize;

/// Half width of the 95 % interval of a normal distribution, in standard deviations.
const Z95: f64 = 1.959_963_984_540_054;

/// Relative tolerance of the search for the headroom, which is repeated for each random draw of the demands.
const PRECISION: f64 = 1e-4;

/// A 90 % confidence interval: it extends from the 5 % quantile to the 95 % quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Interval90 {
    /// The lower end; `None` if it is unbounded.
    pub lower: Option<f64>,
    /// The upper end; `None` if it is unbounded.
    pub upper: Option<f64>,
}

/// The 90 % intervals of a model's results.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Intervals {
    /// Number of random draws of the demands.
    pub draws: usize,
    /// Share of the random draws in which a station could not keep up.
    pub unstable_share: f64,
    /// Interval of the rate of all classes together at which the first station saturates, in requests per second.
    pub saturation_rate: Interval90,
    /// Interval of the mean response time R of each class, in seconds.
    pub response_time: Vec<Interval90>,
    /// Interval of the greatest load at which each objective is met.
    pub headroom: Vec<Interval90>,
}

/// The effect of a change: for each result, the interval of the ratio of its value after the change to that before.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Effect {
    /// Ratio of the saturation rate after the change to that before the change.
    pub saturation_rate: Interval90,
    /// Ratio of the response time R after the change to that before the change, for each class that existed before. A
    /// draw in which a station is saturated both before and after the change is excluded.
    pub response_time: Vec<Interval90>,
}

/// Confidence intervals before and after a change, and of the ratio of the two.
pub(super) struct Compared {
    pub(super) before: Intervals,
    pub(super) after: Intervals,
    pub(super) effect: Effect,
}

/// The intervals of a model's results. `None` if the demands have no intervals, or no draws were requested.
pub(super) fn intervals(model: &Model, options: &WhatIfOptions) -> Result<Option<Intervals>, ModelError> {
    let found = sample(model, options, &|drawn: &Model| Ok([DrawResult::new(drawn, options)?]))?;
    Ok(found.map(|found| Intervals::new(found.iter().map(|[one]| one))))
}

/// The intervals of the results before and after a scenario without ranges.
pub(super) fn compare(
    model: &Model,
    scenario: &Scenario,
    options: &WhatIfOptions,
) -> Result<Option<Compared>, ModelError> {
    let both = |drawn: &Model| {
        let after = Variants::new(scenario, drawn)?.model(&[])?;
        Ok([DrawResult::new(drawn, options)?, DrawResult::new(&after, options)?])
    };
    let found = sample(model, options, &both)?;
    Ok(found.map(|found| Compared {
        before: Intervals::new(found.iter().map(|[before, _]| before)),
        after: Intervals::new(found.iter().map(|[_, after]| after)),
        effect: Effect::new(&found),
    }))
}

/// Evaluates `result` for random draws of the model's demands. Returns `None` if no draws were requested, the demands
/// are exact, or each draw would need a simulation.
fn sample<T>(
    model: &Model,
    options: &WhatIfOptions,
    result: &dyn Fn(&Model) -> Result<T, ModelError>,
) -> Result<Option<Vec<T>>, ModelError> {
    let known = model.demand_ci95_half_width.iter().flatten().all(|half| *half == 0.0);
    // Hundreds of simulations would take too long, and random errors of each simulation would widen the intervals.
    if known || options.draws == 0 || is_simulated(&Network::unchecked_stability(model)?, options.method) {
        return Ok(None);
    }
    Network::unchecked_stability(model)?;
    let factors: Vec<Vec<Vec<f64>>> = match model.demand_correlation.is_empty() {
        true => vec![identity(model.classes.len()); model.stations.len()],
        false => model.demand_correlation.iter().filter_map(|matrix| factor(matrix)).collect(),
    };
    let mut rng = Pcg64Mcg::seed_from_u64(options.seed);
    let draws = (0..options.draws).map(|_| result(&drawn(model, &factors, &mut rng)));
    draws.collect::<Result<_, _>>().map(Some)
}

/// Draws the model's demands at random according to their intervals. `factors` has the Cholesky factor of each
/// station's correlation matrix, from [`factor`].
fn drawn(model: &Model, factors: &[Vec<Vec<f64>>], rng: &mut impl Rng) -> Model {
    let mut drawn = model.clone();
    for ((demands, half_widths), factor) in drawn.demands.iter_mut().zip(&model.demand_ci95_half_width).zip(factors) {
        if half_widths.iter().all(|half| *half == 0.0) {
            continue;
        }
        let deviations = draw(factor, rng);
        for ((demand, half), deviation) in demands.iter_mut().zip(half_widths).zip(deviations) {
            *demand = (*demand + half / Z95 * deviation).abs();
        }
    }
    drawn
}

/// The results of the model for one random draw of its demands.
struct DrawResult {
    saturation_rate: f64,
    /// Mean response time R of each class in seconds; infinite if a station is saturated.
    response_time: Vec<f64>,
    headroom: Vec<f64>,
}

impl DrawResult {
    fn new(model: &Model, options: &WhatIfOptions) -> Result<DrawResult, ModelError> {
        let method = quick(model, options.method)?;
        let (saturation_rate, response_time) = solved(model, method)?;
        let until = |slo| {
            let until = Objective::new(slo, model)?.until(model, method, PRECISION)?;
            Ok(match until {
                LoadLimit::Never => 0.0,
                LoadLimit::Rate(load) | LoadLimit::Population(load) => load,
                LoadLimit::Always => f64::INFINITY,
            })
        };
        Ok(DrawResult {
            saturation_rate,
            response_time,
            headroom: options.slos.iter().map(until).collect::<Result<_, ModelError>>()?,
        })
    }

    fn keeps_up(&self) -> bool {
        self.response_time.iter().all(|r| r.is_finite())
    }
}

fn solved(model: &Model, method: Method) -> Result<(f64, Vec<f64>), ModelError> {
    match solve(model, method) {
        Ok(solution) => Ok((solution.saturation_rate, solution.response_time)),
        Err(ModelError::Unstable { saturation_rate, .. }) => {
            Ok((saturation_rate, vec![f64::INFINITY; Network::unchecked_stability(model)?.rates.len()]))
        }
        Err(error) => Err(error),
    }
}

impl Intervals {
    fn new<'a>(found: impl Iterator<Item = &'a DrawResult> + Clone) -> Intervals {
        let draws = found.clone().count();
        let interval = |value: &dyn Fn(&DrawResult) -> f64| Interval90::new(found.clone().map(value).collect());
        let (classes, objectives) =
            found.clone().next().map_or((0, 0), |first| (first.response_time.len(), first.headroom.len()));
        Intervals {
            draws,
            unstable_share: found.clone().filter(|f| !f.keeps_up()).count() as f64 / draws.max(1) as f64,
            saturation_rate: interval(&|f| f.saturation_rate),
            response_time: (0..classes).map(|c| interval(&|f| f.response_time[c])).collect(),
            headroom: (0..objectives).map(|i| interval(&|f| f.headroom[i])).collect(),
        }
    }
}

impl Effect {
    fn new(found: &[[DrawResult; 2]]) -> Effect {
        let ratio = |figure: &dyn Fn(&DrawResult) -> f64| {
            let ratios =
                found.iter().map(|[before, after]| figure(after) / figure(before)).filter(|ratio| !ratio.is_nan());
            Interval90::new(ratios.collect())
        };
        let classes = found.first().map_or(0, |[before, _]| before.response_time.len());
        Effect {
            saturation_rate: ratio(&|f| f.saturation_rate),
            response_time: (0..classes).map(|c| ratio(&|f| f.response_time[c])).collect(),
        }
    }
}

impl Interval90 {
    fn new(mut values: Vec<f64>) -> Interval90 {
        values.sort_by(f64::total_cmp);
        let last = values.len().saturating_sub(1);
        let at = |part: f64| values.get((last as f64 * part).round() as usize).copied().filter(|v| v.is_finite());
        Interval90 { lower: at(0.05), upper: at(0.95) }
    }
}
