//! Fits two parameters to mean response times: the variability of service times at the CPU, and the delay outside of
//! the stations, such as on the network. The delay becomes a station named `elsewhere`, with one value for each request
//! class.

use super::runs::{Run, Runs};
use crate::EstimateError;
use crate::response::{self, ResponseFit, ResponsePoint, fit_delay, fit_response};
use brimful_core::model::Model;
use brimful_model::{station_demands, wait_with_idle_cost};

/// The fitted variability of service times at the CPU, and the fitted delay outside of the stations.
pub(super) struct DelaysElsewhere {
    /// The fit to the response times of the average request.
    pub response: ResponseFit,
    /// Delay outside of the stations by request class, in seconds.
    pub delays: Vec<f64>,
}

/// Fits the runs with open loads. Returns `None` if there are no such runs. The first station of the model must be the
/// CPU. `service_scv` is the squared coefficient of variation of service times at the CPU and its standard error, if
/// they were measured.
pub(super) fn fit(
    runs: &Runs,
    model: &Model,
    service_scv: Option<(f64, f64)>,
) -> Result<Option<DelaysElsewhere>, EstimateError> {
    let points: Vec<(&Run, ResponsePoint)> =
        runs.used.iter().filter_map(|run| Some((run, point(run, model)?))).collect();
    if points.is_empty() {
        return Ok(None);
    }
    let all: Vec<ResponsePoint> = points.iter().map(|(_, p)| *p).collect();
    let response = match service_scv {
        Some((scv, standard_error)) => fit_delay(&all, scv, standard_error)?,
        None => fit_response(&all)?,
    };
    let delay = |class: usize| {
        let mut weights = 0.0;
        let mut sum = 0.0;
        for (run, point) in &points {
            if let Some(measured) = run.class_response_times[class] {
                let weight = point.weight * run.throughput[class];
                let at_stations = service(model, run, class) + point.exponential_wait * (1.0 + response.scv) / 2.0;
                weights += weight;
                sum += weight * (measured - at_stations);
            }
        }
        if weights > 0.0 { (sum / weights).max(0.0) } else { response.delay }
    };
    Ok(Some(DelaysElsewhere { delays: (0..runs.classes.len()).map(delay).collect(), response }))
}

fn point(run: &Run, model: &Model) -> Option<ResponsePoint> {
    let (response, ci) = run.response?;
    let cpu = &model.stations[0];
    let rate: f64 = run.throughput.iter().sum();
    let exponential_wait = wait_with_idle_cost(cpu, &model.demands[0], &run.throughput);
    let ci = ci.unwrap_or(response).max(response::MIN_HALF_WIDTH * response);
    let demand = run.throughput.iter().enumerate().map(|(class, x)| x / rate * service(model, run, class)).sum();
    (exponential_wait.is_finite() && ci > 0.0).then(|| ResponsePoint {
        exponential_wait,
        demand,
        response,
        weight: ci.powi(-2),
    })
}

/// Sum of a class's service times at all stations, without waiting. Service times are longer if background work also
/// uses the station.
fn service(model: &Model, run: &Run, class: usize) -> f64 {
    let stations = model.stations.iter().enumerate();
    stations.map(|(k, station)| demands_under_load(model, run, k)[class] / (1.0 - station.background)).sum()
}

/// The demand of each class at a station, at the request rates of a run.
fn demands_under_load(model: &Model, run: &Run, station: usize) -> Vec<f64> {
    station_demands(&model.stations[station], &model.demands[station], &run.throughput)
}
