//! A model as its load grows, for the charts.

use brimful_core::model::{ClassKind, ModelClass};
use brimful_model::{Curve, Method, ModelError, Outlook, Scenario, curve};

/// Points of a curve.
const POINTS: usize = 60;

/// The last of them, as a share of the saturation rate: beyond it the curve goes up without bound.
const NEARLY_FULL: f64 = 0.98;

/// Customers of a closed class whose curve is quickly had.
const MOST_CUSTOMERS: u32 = 1000;

/// The rate of open classes grows to saturation, the population of a closed one to twice what it is.
/// None of several closed classes, whose populations have no common measure, and none where it would take long.
pub fn load_curve(outlook: &Outlook, method: Method) -> Result<Option<Curve>, ModelError> {
    if outlook.solution.as_ref().is_some_and(|solution| solution.method == Method::Simulation) {
        return Ok(None);
    }
    let classes = &outlook.model.classes;
    let open: f64 = classes.iter().filter_map(|class| class.rate).sum();
    let all_open = classes.iter().all(|class| class.kind == ClassKind::Open);
    let range = match (outlook.stations.first(), classes.as_slice()) {
        (Some(limit), _) if all_open && open > 0.0 => {
            let most = limit.saturation_rate * NEARLY_FULL;
            // Up to where the model is, where that is more.
            let most = if outlook.solution.is_some() { most.max(open) } else { most };
            format!("rate={}..{most}:{POINTS}", most / POINTS as f64)
        }
        (_, [ModelClass { population: Some(n @ 1..=MOST_CUSTOMERS), .. }]) => {
            format!("population=1..{}:{POINTS}", 2 * n)
        }
        _ => return Ok(None),
    };
    let scenario = Scenario { changes: vec![range.parse()?], ..Scenario::default() };
    curve(&outlook.model, &scenario, method).map(Some)
}
