//! Tests `brimful schema`.

use crate::program::run;
use serde_json::Value;

#[test]
fn each_listed_schema_is_printed_whole() {
    let list = run(&["schema"]).exits(&[0]).stdout;
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"record") && names.contains(&"workload") && names.len() > 20, "{list}");
    for name in ["record", "survey", "workload", "what-if"] {
        assert!(names.contains(&name), "{name}");
        let text = run(&["schema", name]).exits(&[0]).stdout;
        let schema: Value = serde_json::from_str(&text).unwrap();
        assert!(schema["properties"].is_object(), "{name}");
        assert!(!text.contains("common.schema.json"), "{name} refers to another file");
    }
    run(&["schema", "recrod"]).fails(2, "record");
}
