//! Checks the reference cases (`tests/data/cases.json`). Every field that a case expects is compared with the case's
//! own tolerance. Each crate checks the cases of its own solvers.

use serde_json::{Map, Value};

/// For each crate, the solvers whose cases it checks. The crate for access logs checks `log_characterization`.
const SOLVERS: [(&str, &[&str]); 4] = [
    (
        "model",
        &[
            "open_seidmann",
            "closed_seidmann_mva",
            "open_mmm_erlangc",
            "open_product_form",
            "closed_exact_mva",
            "closed_exact_ms",
            "mixed_exact",
            "closed_schweitzer",
            "closed_linearizer",
            "bounds",
            "mmm",
            "mg1",
            "mmmk",
            "mmpp2_m1",
        ],
    ),
    ("estimate", &["demand_regression", "demand_proportional", "burst_factor", "mst_cluster_1d", "usl_fit"]),
    ("forecast", &["ols_intercept", "forecast"]),
    ("none", &["log_characterization"]),
];

/// Compares the results of `answer` with the expected results of all reference cases of the crate `crate_name`.
pub fn check_reference_cases(crate_name: &str, answer: impl Fn(&Value) -> Value) {
    let cases = cases();
    assert!(cases.len() >= 53, "only {} cases", cases.len());
    let ours: Vec<&Value> = cases.iter().filter(|case| crate_of(text(&case["solver"])) == crate_name).collect();
    assert!(!ours.is_empty(), "no case is for the crate {crate_name}");
    for case in ours {
        let tolerance = number(&case["tolerance"]["relative"]);
        compare(&answer(case), &case["expected"], tolerance, text(&case["name"]));
    }
}

fn crate_of(solver: &str) -> &'static str {
    let found = SOLVERS.iter().find(|(_, solvers)| solvers.contains(&solver));
    found.unwrap_or_else(|| panic!("solver `{solver}` is unknown: implement it")).0
}

/// All reference cases.
pub fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../data/cases.json")).unwrap()
}

/// Checks that every expected field exists and agrees within the tolerance. Other fields of the answer are ignored.
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

/// A JSON value as a number.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// A JSON value as a list of numbers.
pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// A JSON value as text.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
