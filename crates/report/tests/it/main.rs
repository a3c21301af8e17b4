//! Tests that the JSON Schemas in `schema/` match the Rust types of the documents, and that the example survey is
//! unchanged after it was read and written again. `web/test` checks that the example matches its schema.
//!
//! `BRIMFUL_BLESS=1 cargo test -p brimful-report` rewrites the schemas. The module `promises` tests that changes only
//! add fields and values.
#![allow(clippy::unwrap_used)]

mod promises;

use brimful_core::server::{Connections, Kernel, LogLine, Module, Network, Programs, Server, SocketRequests};
use brimful_core::{
    ab::AbTest, comparison::ServerComparison, history::History, model::Model, profile::Profile, record::Record,
    survey::Survey,
};
use brimful_core::{sweep::Sweep, testbed::Testbed, workload::Workload};
use brimful_report::plan::{
    calibration::Calibration, forecast::Forecasted, site::Site, solution::Solved, what_if::Changed,
};
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{Schema, json_schema, schema_for};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_schemas_are_those_of_the_types() -> Result<(), Box<dyn Error>> {
    let mut schemas = vec![
        ("record", schema_for!(Record)),
        ("survey", schema_for!(Survey)),
        ("server", schema_for!(Server)),
        ("log-kernel", schema_for!(LogLine<Kernel>)),
        ("log-process", schema_for!(LogLine<Programs>)),
        ("log-network", schema_for!(LogLine<Network>)),
        ("log-connections", schema_for!(LogLine<Connections>)),
        ("log-module", schema_for!(LogLine<Module>)),
        ("log-requests", schema_for!(LogLine<SocketRequests>)),
        ("workload", schema_for!(Workload)),
        ("profile", schema_for!(Profile)),
        ("model", schema_for!(Model)),
        ("comparison", schema_for!(ServerComparison)),
        ("ab", schema_for!(AbTest)),
        ("history", schema_for!(History)),
        ("solution", schema_for!(Solved)),
        ("calibration", schema_for!(Calibration)),
        ("what-if", schema_for!(Changed)),
        ("forecast", schema_for!(Forecasted)),
        ("sweep", schema_for!(Sweep)),
        ("testbed", schema_for!(Testbed)),
        ("site", schema_for!(Site)),
    ];
    let common = move_shared_definitions(&mut schemas);
    schemas.push(("common", common));
    schemas.iter().try_for_each(|(name, schema)| assert_committed(name, schema))
}

#[test]
fn the_example_survey_keeps_every_field() {
    let text = fs::read_to_string(root().join("web/example.survey.json")).unwrap();
    let example: Value = serde_json::from_str(&text).unwrap();
    let survey: Survey = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_value(survey).unwrap(), example);
}

/// Moves the definitions that several schemas share to one common schema, and updates the references to them.
fn move_shared_definitions(schemas: &mut [(&str, Schema)]) -> Schema {
    let mut by_name: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (name, definition) in schemas.iter().filter_map(|(_, schema)| schema.get("$defs")?.as_object()).flatten() {
        by_name.entry(name.clone()).or_default().push(definition.clone());
    }
    by_name.retain(|_, definitions| definitions.len() > 1 && definitions.iter().all(|other| *other == definitions[0]));
    let mut shared: Map<String, Value> =
        by_name.into_iter().map(|(name, mut definitions)| (name, definitions.remove(0))).collect();
    loop {
        // A definition is not moved if it refers to one that is not shared.
        let kept = shared.clone();
        shared.retain(|_, definition| references(definition).iter().all(|name| kept.contains_key(name)));
        if shared.len() == kept.len() {
            break;
        }
    }
    for (_, schema) in schemas {
        if let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
            definitions.retain(|name, _| !shared.contains_key(name));
        }
        if schema.get("$defs").is_some_and(|definitions| *definitions == json!({})) {
            schema.remove("$defs");
        }
        let mut point_to_common = RecursiveTransform(|part: &mut Schema| {
            if let Some(Value::String(reference)) = part.get_mut("$ref")
                && shared.contains_key(reference.trim_start_matches("#/$defs/"))
            {
                reference.insert_str(0, "common.schema.json");
            }
        });
        point_to_common.transform(schema);
    }
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "description": "Definitions that several documents share.",
        "$defs": shared,
    })
}

/// The names of the definitions that a schema refers to, at any depth.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(object) => object
            .iter()
            .flat_map(|(key, value)| match value {
                Value::String(reference) if key == "$ref" => vec![reference.replace("#/$defs/", "")],
                _ => references(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

fn assert_committed(name: &str, schema: &Schema) -> Result<(), Box<dyn Error>> {
    let path = root().join(format!("schema/{name}.schema.json"));
    let schema = serde_json::to_string_pretty(schema)? + "\n";
    let mut committed = fs::read_to_string(&path).unwrap_or_default();
    if std::env::var_os("BRIMFUL_BLESS").is_some() && committed != schema {
        fs::create_dir_all(root().join("schema"))?;
        fs::write(&path, &schema)?;
        committed.clone_from(&schema);
    }
    assert!(committed == schema, "{} is out of date: run the tests once with BRIMFUL_BLESS=1", path.display());
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
