//! Every reference case of a solver that exists, each with its own tolerance, and every field it expects.

use brimful_core::model::{ClassKind, Model};
use brimful_model::{
    Background, Bounds, ForecastMethod, ForecastOptions, LoadPoint, Method, Mmpp2, ModelError, Observation, Series,
    Solution, Timestamp, asymptotic_bounds, attribute_by_share, attribute_equally, balanced_job_bounds, burst_factors,
    cluster_sizes, erlang_c, fit_demands, fit_usl, forecast, mg1, mmm_wait, mmmk, mmpp_m1, ols, saturation_rate, solve,
};
use serde_json::{Map, Value, json};

/// Not queueing: these belong to the access-log crate.
const ELSEWHERE: [&str; 1] = ["log_characterization"];

/// What the crate answers to a case; nothing if its solver is unknown here.
fn answer(case: &Value) -> Option<Value> {
    let inputs = &case["inputs"];
    Some(match text(&case["solver"]) {
        "open_seidmann" | "closed_seidmann_mva" => network(case, Method::Seidmann),
        "open_mmm_erlangc" | "open_product_form" => network(case, Method::Erlang),
        "closed_exact_mva" | "closed_exact_ms" | "mixed_exact" => network(case, Method::Exact),
        "closed_schweitzer" => network(case, Method::Schweitzer),
        "closed_linearizer" => network(case, Method::Linearizer),
        "bounds" => bounds(case),
        "mmm" => mmm(inputs),
        "mg1" => mg1_queue(inputs),
        "mmmk" => mmmk_queue(inputs),
        "mmpp2_m1" => mmpp2(inputs),
        "ols_intercept" => line(inputs),
        "demand_regression" => regression(case),
        "demand_proportional" => proportional(inputs),
        "burst_factor" => bursts(inputs),
        "mst_cluster_1d" => clusters(inputs),
        "usl_fit" => usl(inputs),
        "forecast" => forecasts(inputs),
        _ => return None,
    })
}

#[test]
fn every_case_of_a_known_solver_holds() {
    let cases = cases();
    assert!(cases.len() >= 53, "only {} cases", cases.len());
    for case in cases {
        let (solver, name) = (text(&case["solver"]), text(&case["name"]));
        match answer(&case) {
            Some(answer) => compare(&answer, &case["expected"], number(&case["tolerance"]["relative"]), name),
            None => assert!(ELSEWHERE.contains(&solver), "solver `{solver}` is unknown: implement it"),
        }
    }
}

pub fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../data/cases.json")).unwrap()
}

/// The network of a case.
pub fn model(case: &Value) -> Model {
    let keys = ["stations", "classes", "demands"].map(|key| (key.to_string(), case[key].clone()));
    let mut model: Model = serde_json::from_value(Value::Object(keys.into_iter().collect())).unwrap();
    if let Some(multipliers) = case["ld_rate_multipliers"].as_array() {
        for (station, multipliers) in model.stations.iter_mut().zip(multipliers) {
            station.rate_multipliers = multipliers.as_array().map(|_| numbers(multipliers)).unwrap_or_default();
        }
    }
    model
}

/// All that a case may expect of a network.
fn network(case: &Value, method: Method) -> Value {
    let model = model(case);
    match solve(&model, method) {
        Ok(solution) => {
            assert_eq!(solution.method, method);
            if model.classes.iter().all(|class| class.kind == ClassKind::Open) {
                assert_eq!(saturation_rate(&model).unwrap(), (solution.saturation_rate, solution.bottleneck.clone()));
            }
            network_answer(&model, &solution)
        }
        Err(ModelError::Unstable { station, utilization, .. }) => {
            let field = format!("{}_utilization", station.to_lowercase());
            let mut answer = json!({ "error": "saturated", "bottleneck": station });
            answer[field] = json!(utilization);
            answer
        }
        Err(other) => panic!("{}: {other}", case["name"]),
    }
}

fn network_answer(model: &Model, solution: &Solution) -> Value {
    let mut answer = serde_json::to_value(solution).unwrap();
    let rate: f64 = solution.throughput.iter().sum();
    answer["aggregate_rate"] = json!(rate);
    answer["saturation_tps"] = json!(solution.saturation_rate);
    // By the utilization law each station's capacity is X/U.
    let capacity = |u: &Vec<f64>| rate / u.iter().sum::<f64>();
    // What a client of the paper's mixed model sees: its own link and the server, not the way between.
    let stays = |name: &str| model.stations.iter().position(|s| s.name == name).map(|k| &solution.residence[k]);
    if let (Some(client), Some(internet)) = (model.classes.iter().position(|c| c.name == "client"), stays("internet")) {
        answer["client_response_server_plus_link"] = json!(solution.response_time[client] - internet[client]);
    }
    answer["station_capacity_tps"] = solution.utilization.iter().map(capacity).collect();
    answer
}

fn mmm(inputs: &Value) -> Value {
    let (rate, service) = (number(&inputs["lam"]), number(&inputs["S"]));
    let servers = number(&inputs["m"]) as u32;
    let wait = mmm_wait(rate, service, servers, 0.0);
    queue(rate, service, servers, wait, Some(erlang_c(servers, rate * service)))
}

fn mg1_queue(inputs: &Value) -> Value {
    let (rate, service) = (number(&inputs["lam"]), number(&inputs["S"]));
    let solved = mg1(rate, service, number(&inputs["cv2"])).unwrap();
    queue(rate, service, 1, solved.wait, None)
}

fn mmmk_queue(inputs: &Value) -> Value {
    let whole = |key: &str| number(&inputs[key]) as u32;
    let solved = mmmk(number(&inputs["lam"]), 1.0 / number(&inputs["mu"]), whole("m"), whole("K")).unwrap();
    json!({
        "p0": solved.empty, "pK": solved.blocking, "X": solved.throughput, "L": solved.number,
        "R": solved.response_time, "U": solved.utilization, "Wq": solved.wait,
    })
}

fn mmpp2(inputs: &Value) -> Value {
    let of = |a: &str, b: &str| [number(&inputs[a]), number(&inputs[b])];
    let arrivals = Mmpp2 { rates: of("lambda1", "lambda2"), leave: of("rate_1_to_2", "rate_2_to_1") };
    let service = 1.0 / number(&inputs["mu"]);
    let (solved, poisson) = (mmpp_m1(&arrivals, service).unwrap(), mg1(arrivals.mean_rate(), service, 1.0).unwrap());
    json!({
        "mean_rate": arrivals.mean_rate(), "utilization": solved.utilization,
        "idc_infinity": arrivals.index_of_dispersion_limit(),
        "idc_at_1s": arrivals.index_of_dispersion(1.0), "idc_at_10s": arrivals.index_of_dispersion(10.0),
        "mean_number_in_system": solved.number, "mean_response_time": solved.response_time,
        "poisson_mm1_response": poisson.response_time,
    })
}

fn bounds(case: &Value) -> Value {
    let model = model(case);
    let (asymptotic, exact) = (asymptotic_bounds(&model).unwrap(), solve(&model, Method::Exact).unwrap());
    let answer = |bounds: &Bounds| {
        let (x, r) = (bounds.throughput, bounds.response_time);
        json!({ "X_lo": x.lower, "X_hi": x.upper, "R_lo": r.lower, "R_hi": r.upper })
    };
    let mut aba = answer(&asymptotic[0].bounds);
    aba["Nstar"] = json!(asymptotic[0].saturation_population);
    let balanced = answer(&balanced_job_bounds(&model).unwrap());
    json!({ "aba": aba, "balanced_job_bounds": balanced, "exact_X": exact.throughput[0] })
}

fn queue(rate: f64, service: f64, servers: u32, wait: f64, c: Option<f64>) -> Value {
    let response = wait + service;
    let u = rate * service / f64::from(servers);
    json!({ "U": u, "C": c, "Wq": wait, "Lq": rate * wait, "R": response, "L": rate * response })
}

fn line(inputs: &Value) -> Value {
    let line = ols(&numbers(&inputs["x"]), &numbers(&inputs["y"])).unwrap();
    json!({
        "intercept": line.intercept, "slope": line.slope, "r2": line.r2,
        "se_intercept": line.intercept_se, "se_slope": line.slope_se, "resid_sd": line.residual_sd,
    })
}

fn regression(case: &Value) -> Value {
    let inputs = &case["inputs"];
    let servers = number(&case["stations"][0]["servers"]);
    let rows = inputs["throughput"].as_array().unwrap().iter().map(numbers);
    let busy = numbers(&inputs["utilization"]).into_iter().map(|u| u * servers);
    let observations: Vec<Observation> =
        rows.zip(busy).map(|(throughput, busy)| Observation { throughput, busy, weight: 1.0 }).collect();
    let fitted = inputs["intercept"].as_bool().unwrap();
    let background = if fitted { Background::Fitted } else { Background::Known(0.0) };
    let fit = fit_demands(observations[0].throughput.len(), &observations, background).unwrap();
    assert!(fit.merged.is_empty(), "{fit:?}");
    let demands: Vec<f64> = fit.demands.iter().map(|d| d.value).collect();
    json!({ "background_utilization": fit.background.value / servers, "demands": demands })
}

/// The paper's Eq. 3 for what depends on the bytes, Eq. 4 for what does not.
fn proportional(inputs: &Value) -> Value {
    let (completions, shares) = (numbers(&inputs["completions"]), numbers(&inputs["bytes_share"]));
    let seconds = |utilization: &str, servers: f64| number(&inputs[utilization]) * servers * number(&inputs["T"]);
    let by_bytes = |busy_s: f64, first: &str| {
        let mut known = vec![None; completions.len()];
        known[0] = Some(number(&inputs[first]));
        attribute_by_share(busy_s, &completions, &shares, &known).unwrap()
    };
    json!({
        "cpu": by_bytes(seconds("cpu_utilization_avg", number(&inputs["n_cpu"])), "cpu_class1_demand"),
        "disk1": attribute_equally(seconds("disk1_utilization", 1.0), &completions).unwrap(),
        "disk3": by_bytes(seconds("disk3_utilization", 1.0), "disk3_class1_demand"),
    })
}

fn bursts(inputs: &Value) -> Value {
    let counts: Vec<u64> = numbers(&inputs["counts"]).iter().map(|c| *c as u64).collect();
    let factors = burst_factors(&counts, number(&inputs["epoch_s"])).unwrap();
    json!({
        "lambda_mean": factors.rate, "lambda_plus": factors.rate_above, "epochs": factors.epochs, "a": factors.a,
        "b": factors.b, "idc": factors.dispersion, "peak_to_mean": factors.peak_to_mean,
    })
}

fn clusters(inputs: &Value) -> Value {
    let clusters = cluster_sizes(&numbers(&inputs["sizes"]), number(&inputs["k"]) as usize).unwrap();
    let rows: Vec<Value> = clusters.iter().map(|c| json!([c.min, c.max, c.count, c.sum])).collect();
    json!({ "clusters_min_max_count_bytes": rows })
}

fn usl(inputs: &Value) -> Value {
    let points = numbers(&inputs["load"]).into_iter().zip(numbers(&inputs["throughput"]));
    let points: Vec<LoadPoint> = points.map(|(load, throughput)| LoadPoint { load, throughput }).collect();
    let fit = fit_usl(&points).unwrap();
    let peak = fit.peak.unwrap();
    json!({
        "alpha": fit.alpha.value, "beta": fit.beta.value, "gamma": fit.gamma.value,
        "peak_load": peak.load.value, "peak_throughput": peak.throughput.value,
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

/// Every expected field is there and agrees; the answer may say more.
fn compare(answer: &Value, expected: &Value, tolerance: f64, at: &str) {
    match expected {
        Value::Object(fields) => {
            let none = Map::new();
            let answers = answer.as_object().unwrap_or(&none);
            for (key, value) in fields {
                let at = format!("{at}.{key}");
                compare(answers.get(key).unwrap_or_else(|| panic!("{at} is not answered")), value, tolerance, &at);
            }
        }
        Value::Array(items) => {
            let answers = answer.as_array().unwrap_or_else(|| panic!("{at}: {answer} is no list"));
            assert_eq!(answers.len(), items.len(), "{at}");
            for (i, (a, e)) in answers.iter().zip(items).enumerate() {
                compare(a, e, tolerance, &format!("{at}[{i}]"));
            }
        }
        Value::Number(_) => {
            let (a, e) = (number(answer), number(expected));
            assert!((a - e).abs() <= tolerance * e.abs(), "{at}: {a}, expected {e} within {tolerance}");
        }
        other => assert_eq!(answer, other, "{at}"),
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
