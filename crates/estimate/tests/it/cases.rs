//! Compares estimated demands with the results in reference cases.

use crate::reference::{check_reference_cases, number, numbers, text};
use brimful_estimate::{
    Background, LoadPoint, Observation, attribute_by_share, attribute_equally, burst_factors, cluster_sizes,
    fit_demands, fit_usl,
};
use serde_json::{Value, json};

#[test]
fn every_reference_case_holds() {
    check_reference_cases("estimate", |case| {
        let inputs = &case["inputs"];
        match text(&case["solver"]) {
            "demand_regression" => regression(case),
            "demand_proportional" => proportional(inputs),
            "burst_factor" => bursts(inputs),
            "mst_cluster_1d" => clusters(inputs),
            "usl_fit" => usl(inputs),
            solver => panic!("solver `{solver}` is unknown: implement it"),
        }
    });
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
    assert!(fit.indistinguishable_classes.is_empty(), "{fit:?}");
    let demands: Vec<f64> = fit.demands.iter().map(|d| d.value).collect();
    json!({ "background_utilization": fit.background.value / servers, "demands": demands })
}

/// Divides busy time among classes (Menascé et al., CMG 1999): by Eq. 3 at resources whose use depends on the bytes
/// sent, and by Eq. 4 at other resources.
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
