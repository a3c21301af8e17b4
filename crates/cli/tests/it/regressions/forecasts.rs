//! Tests forecasts from unusual histories: with an outlier, with days without requests, and without any change.

use crate::plan::{Files, json};
use serde_json::Value;

/// A history of 140 days, from a Thursday on, with this rate of requests on each day.
fn history(requests: impl Fn(usize) -> f64) -> String {
    let line = |i: usize| format!("{},{:.0}\n", 1_767_225_600 + 86_400 * i, 86_400.0 * requests(i));
    "time,requests\n".to_owned() + &(0..140).map(line).collect::<String>()
}

/// The rate of a growing site on day `i`. It is lower at weekends, and has a little irregular noise.
fn site(i: usize) -> f64 {
    let noise = (i as f64 * 0.618_033_988_75).fract() - 0.5;
    1000.0 * (1.0 + i as f64 / 1000.0) * [1.0, 1.1, 0.7, 0.6, 1.0, 1.05, 1.1][i % 7] * (1.0 + 0.05 * noise)
}

fn forecast(requests: impl Fn(usize) -> f64) -> Value {
    let files = Files::new();
    json(&["forecast", &files.write("days.csv", history(requests)), "--limit", "1M"])
}

fn figures(forecast: &Value, figure: &str) -> Vec<f64> {
    forecast["points"].as_array().unwrap().iter().map(|point| point[figure].as_f64().unwrap()).collect()
}

fn peak(forecast: &Value) -> f64 {
    figures(forecast, "likely").into_iter().fold(0.0, f64::max)
}

#[test]
fn one_spike_in_140_days_does_not_raise_the_forecast_peak() {
    let expected = peak(&forecast(site));
    for (day, factor) in [(75, 20.0), (137, 20.0), (0, 50.0), (75, 10.0), (80, 0.0)] {
        let found = peak(&forecast(|i| site(i) * if i == day { factor } else { 1.0 }));
        assert!((found / expected - 1.0).abs() < 0.02, "{factor} times on day {day}: {found} in place of {expected}");
    }
}

#[test]
fn days_that_are_always_closed_are_forecast_as_closed() {
    let found = forecast(|i| if i % 7 == 3 { 0.0 } else { site(i) });
    for (h, likely) in figures(&found, "likely").into_iter().enumerate() {
        assert_eq!(likely == 0.0, (140 + h) % 7 == 3, "{h}: {likely}");
    }
    assert!(figures(&found, "upper95").iter().skip(4).step_by(7).all(|upper| *upper > 0.0));
    let notes = found["notes"].to_string();
    assert!(notes.contains("Nothing arrives at 1 of the 7 steps"), "{notes}");
}

#[test]
fn a_constant_history_is_fitted_exactly() {
    for rate in [0.1, 777.7] {
        let found = forecast(|_| rate);
        assert_eq!((&found["backtest"]["coverage80"], &found["backtest"]["coverage95"]), (&1.0.into(), &1.0.into()));
    }
}
