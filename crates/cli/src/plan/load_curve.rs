//! The metrics that a queueing model predicts as a function of its load, for charts.

use brimful_core::model::{ClassKind, ModelClass};
use brimful_model::{Curve, Method, ModelError, ModelResults, Scenario, curve};

/// Number of points at which a curve is computed.
const POINTS: usize = 60;

/// Arrival rate of the last point, as a fraction of the saturation rate. At saturation, response times are infinite.
const MAX_SHARE: f64 = 0.98;

/// Maximum population of a closed class for which a curve is computed. The computation for larger populations would
/// take too long.
const MAX_CUSTOMERS: u32 = 1000;

/// Computes the predictions of a model as a function of load: for open classes up to saturation, for a single closed
/// class up to twice its population. Returns `None` for several closed classes, because their populations cannot be
/// varied together, and if the computation would take too long.
pub fn load_curve(results: &ModelResults, method: Method) -> Result<Option<Curve>, ModelError> {
    if results.solution.as_ref().is_some_and(|solution| solution.method == Method::Simulation) {
        return Ok(None);
    }
    let classes = &results.model.classes;
    let open: f64 = classes.iter().filter_map(|class| class.rate).sum();
    let all_open = classes.iter().all(|class| class.kind == ClassKind::Open);
    let range = match (results.stations.first(), classes.as_slice()) {
        (Some(limit), _) if all_open && open > 0.0 => {
            let highest = limit.saturation_rate * MAX_SHARE;
            // The curve extends at least to the arrival rate in the model.
            let highest = if results.solution.is_some() { highest.max(open) } else { highest };
            format!("rate={}..{highest}:{POINTS}", highest / POINTS as f64)
        }
        (_, [ModelClass { population: Some(n @ 1..=MAX_CUSTOMERS), .. }]) => {
            format!("population=1..{}:{POINTS}", 2 * n)
        }
        _ => return Ok(None),
    };
    let scenario = Scenario { changes: vec![range.parse()?], ..Scenario::default() };
    curve(&results.model, &scenario, method).map(Some)
}
