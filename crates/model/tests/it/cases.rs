//! Checks the reference cases of networks and single queues.

use crate::reference::{check_reference_cases, number, numbers, text};
use brimful_core::model::{ClassKind, Model};
use brimful_model::{
    Bounds, Method, Mmpp2, ModelError, Solution, asymptotic_bounds, balanced_job_bounds, erlang_c, mg1, mmm_wait, mmmk,
    mmpp_m1, saturation_rate, solve,
};
use serde_json::{Value, json};

#[test]
fn every_reference_case_holds() {
    check_reference_cases("model", |case| {
        let inputs = &case["inputs"];
        match text(&case["solver"]) {
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
            solver => panic!("solver `{solver}` is unknown: implement it"),
        }
    });
}

/// Builds the model of a reference case (`tests/data/cases.json`).
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

/// Solves the model of a reference case. The returned object has every metric that a case may expect.
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
    // By the utilization law, the capacity of each station is X/U.
    let capacity = |u: &Vec<f64>| rate / u.iter().sum::<f64>();
    // The paper (Menascé et al., CMG 1999) excludes the Internet from a client's response time, but not the link and
    // the server.
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
