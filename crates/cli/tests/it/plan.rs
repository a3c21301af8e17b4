//! Helpers for the tests of `brimful plan`: the reference cases, and files for documents.

use crate::program::{Done, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The reference cases: models with known solutions. The tests of `brimful-model` use the same cases.
pub fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../model/tests/data/cases.json")).unwrap()
}

/// The reference case with this name.
pub fn case(name: &str) -> Value {
    cases().into_iter().find(|case| case["name"] == name).unwrap()
}

/// The model of a reference case. Rate multipliers of stations, which some cases contain, are added to it.
pub fn model(case: &Value) -> Value {
    let parts = ["stations", "classes", "demands"].map(|key| (key.to_owned(), case[key].clone()));
    let mut model = Value::Object(parts.into_iter().collect());
    for (k, multipliers) in case["ld_rate_multipliers"].as_array().into_iter().flatten().enumerate() {
        if multipliers.is_array() {
            model["stations"][k]["rate_multipliers"] = multipliers.clone();
        }
    }
    model
}

/// A temporary directory for the files of a test.
pub struct Files(TempDir);

impl Files {
    /// Creates the temporary directory.
    pub fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    /// Path of a file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file in the directory. Returns its path.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path_argument(&path)
    }
}

/// A path as a command-line argument.
pub fn path_argument(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Runs `brimful plan` with these arguments.
pub fn plan(args: &[&str]) -> Done {
    run(&[&["plan"], args].concat())
}

/// Runs `brimful plan` with these arguments and `--json`. Returns the document that it prints.
pub fn json(args: &[&str]) -> Value {
    let done = plan(&[args, &["--json"]].concat()).exits(&[0]);
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error} in {done:#?}"))
}

/// Asserts that every command that reads models accepts this document. Returns the solution of its model.
pub fn assert_plans_read(files: &Files, document: &str) -> Value {
    // The arrival rate in this history is so low that every server has enough capacity.
    let history =
        "time,requests\n".to_owned() + &(1..=60).map(|day| format!("{},1\n", 86_400 * day)).collect::<String>();
    let series = files.write("history.csv", history);
    let out = path_argument(&files.path("solution.json"));
    let solved = json(&["solve", document, "--out", &out]);
    let changed = json(&["what-if", document, "--set", "rate=0.5x"]);
    assert_eq!(changed["before"]["solution"]["throughput"], solved["throughput"], "{document}");
    let forecast = json(&["forecast", &series, "--model", document]);
    assert!(forecast["limit"]["rate"].as_f64().is_some_and(|rate| rate > 0.0), "{document}: {forecast:#}");
    // The documents that these commands write contain models too, so the commands must also accept them.
    assert_eq!(json(&["solve", &out])["throughput"], solved["throughput"]);
    let next = json(&["solve", &files.write("changed.json", changed.to_string())]);
    assert_eq!(next["throughput"], changed["after"]["solution"]["throughput"]);
    solved
}

/// The model of the server in Menascé et al. (CMG 1999) at 120 requests per second. Each demand has a confidence
/// interval with a half-width of 1 % of the demand.
pub fn paper_model() -> Value {
    let mut model = model(&case("paper_open_120tps"));
    let half = |row: &Value| Value::from(numbers(row).iter().map(|d| d * 0.01).collect::<Vec<_>>());
    model["demand_ci95_half_width"] = model["demands"].as_array().unwrap().iter().map(half).collect();
    model
}

/// Asserts that a text is equal to its golden file, and that its lines are at most 100 columns wide.
pub fn check_golden(name: &str, text: &str) {
    check_golden_file(name, text);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

/// Asserts that a text is equal to its golden file.
pub fn check_golden_file(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BRIMFUL_BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{name}: read the new text, then run the tests once with BRIMFUL_BLESS=1");
}

/// Asserts that the example document of the HTML page's tests has the same keys as this document. The values are not
/// compared: their last digits may differ.
pub fn assert_same_keys_as_example(name: &str, document: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/test/examples").join(name);
    if std::env::var_os("BRIMFUL_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, document.to_string() + "\n").unwrap();
    }
    let example: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
    assert_eq!(keys(document), keys(&example), "{name}: run the tests once with BRIMFUL_BLESS=1");
}

/// The paths of all keys in a document, independently of the lengths of its lists.
fn keys(document: &Value) -> BTreeSet<String> {
    let below = |key: &str, value: &Value| -> Vec<String> {
        keys(value).into_iter().map(|rest| format!("{key}.{rest}")).chain([key.to_owned()]).collect()
    };
    match document {
        Value::Object(fields) => fields.iter().flat_map(|(key, value)| below(key, value)).collect(),
        Value::Array(items) => items.iter().flat_map(|item| below("[]", item)).collect(),
        _ => BTreeSet::new(),
    }
}

/// The document inside an HTML page.
pub fn embedded_document(kind: &str, path: &str) -> Value {
    let page = fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once(&format!(r#"<script type="application/json" id="{kind}">"#)).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// Converts a JSON list to numbers.
pub fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}
