//! Compares least-squares lines and forecasts with reference cases.

use crate::reference::{check_reference_cases, number, numbers, text};
use brimful_forecast::line::ols;
use brimful_forecast::{ForecastMethod, ForecastOptions, Series, Timestamp, forecast};
use serde_json::{Value, json};

#[test]
fn every_reference_case_holds() {
    check_reference_cases("forecast", |case| match text(&case["solver"]) {
        "ols_intercept" => line(&case["inputs"]),
        "forecast" => forecasts(&case["inputs"]),
        solver => panic!("solver `{solver}` is unknown: implement it"),
    });
}

fn line(inputs: &Value) -> Value {
    let line = ols(&numbers(&inputs["x"]), &numbers(&inputs["y"])).unwrap();
    json!({
        "intercept": line.intercept, "slope": line.slope, "r2": line.r2,
        "se_intercept": line.intercept_se, "se_slope": line.slope_se, "resid_sd": line.residual_sd,
    })
}

fn forecasts(inputs: &Value) -> Value {
    let values = numbers(&inputs["series"]);
    let series = Series::new(Timestamp::from_unix(0), 86_400, values.clone()).unwrap();
    let ahead = |method| {
        let horizon_s = number(&inputs["horizon"]) * 86_400.0;
        let options = ForecastOptions { horizon_s, seasons: Some(Vec::new()), method, peak_to_mean: None };
        forecast(&series, &options).unwrap().points.iter().map(|p| p.likely).collect::<Vec<f64>>()
    };
    let positions: Vec<f64> = (1..=values.len()).map(|i| i as f64).collect();
    let line = ols(&positions, &values).unwrap();
    json!({
        "ses_level": ahead(ForecastMethod::Smoothing { alpha: number(&inputs["alpha"]) })[0],
        "ols_slope": line.slope, "ols_intercept": line.intercept, "ols_forecast": ahead(ForecastMethod::Line),
        "moving_average_3": ahead(ForecastMethod::MovingAverage { window: 3 })[0],
    })
}
