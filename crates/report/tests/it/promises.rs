//! Tests that documents remain compatible: while the number in a document's identifier (`brimful.record/1`) does not
//! change, a field keeps its name and type, and a value of an enum keeps its spelling. New fields and values may be
//! added.
//!
//! `tests/data/promised.json` contains the schemas that must remain compatible, without descriptions. The test compares
//! the paths of all fields, such as `counts.completed`, so types may be renamed, shared or divided. A field of a
//! document without a number (lines of logs, and documents that users write) can never change: add a field with a new
//! name instead.
//!
//! `BRIMFUL_BLESS=1 cargo test -p brimful-report` adds new fields to the file, and refuses to change or remove fields.

use brimful_core::{ab, comparison, history, profile, record, survey, sweep, testbed};
use brimful_report::plan::{calibration, forecast, site, solution, what_if};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The identifiers of the documents whose schemas have a version number.
const NUMBERED: [&str; 13] = [
    ab::SCHEMA,
    calibration::SCHEMA,
    comparison::SCHEMA,
    forecast::SCHEMA,
    history::SCHEMA,
    profile::SCHEMA,
    record::SCHEMA,
    site::SCHEMA,
    solution::SCHEMA,
    survey::SCHEMA,
    sweep::SCHEMA,
    testbed::SCHEMA,
    what_if::SCHEMA,
];
/// The JSON types of each field, by the field's path. The type `absent` means that the field may be missing. A value of
/// an enum also has an entry: its path ends in `=` and the value, and its only type is `value`.
type Fields = BTreeMap<String, BTreeSet<String>>;
/// Schemas by file name, and their definitions by reference, such as `record.schema.json#/$defs/Interval`.
type Schemas = BTreeMap<String, Value>;

#[test]
fn fields_keep_their_types_while_the_number_of_their_document_stays() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/promised.json");
    let promised: Schemas = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let current = current();
    let broken = broken(&fields(&promised), &fields(&current));
    assert!(
        broken.is_empty(),
        "Programs that read these documents would break:\n{}\nKeep the old fields and add new ones, or raise the \
         number in the document's SCHEMA and describe the change in CHANGELOG.md.",
        broken.join("\n")
    );
    if std::env::var_os("BRIMFUL_BLESS").is_some() {
        fs::write(&path, text(&current)).unwrap();
    } else {
        assert!(promised == current, "fields were added: run the tests once with BRIMFUL_BLESS=1");
    }
}

#[test]
fn a_change_that_breaks_readers_is_found() {
    let document = |id: &str, properties: Value| {
        let schema = json!({ "id": id, "type": "object", "required": ["list"], "properties": properties });
        fields(&BTreeMap::from([("a.schema.json".to_owned(), schema)]))
    };
    let list =
        json!({ "type": "array", "items": { "type": "object", "properties": { "size": { "type": "integer" } } } });
    let state = json!({ "type": "string", "enum": ["up"] });
    let promised = document("brimful.a/1", json!({ "list": list, "state": state }));
    let broken_by = |id: &str, properties: Value| broken(&promised, &document(id, properties));
    let none: [&str; 0] = [];
    assert_eq!(broken_by("brimful.a/1", json!({ "list": list, "state": state })), none);
    let more = json!({ "list": list, "state": { "type": "string", "enum": ["up", "down"] }, "added": {} });
    assert_eq!(broken_by("brimful.a/1", more), none);
    let nullable = json!({ "list": list, "state": { "type": ["string", "null"], "enum": ["up"] } });
    assert_eq!(broken_by("brimful.a/1", nullable).len(), 1);
    let renamed = json!({ "list": list, "status": state });
    assert_eq!(broken_by("brimful.a/1", renamed.clone()).len(), 2, "the field, and its value");
    assert_eq!(broken_by("brimful.a/2", renamed), none, "a new number permits any change");
    assert_eq!(broken_by("brimful.b/1", json!({})).len(), 1, "the document is gone");
}

/// Returns a message for each promised field that the current documents lack, or have with another type.
fn broken(promised: &BTreeMap<String, Fields>, current: &BTreeMap<String, Fields>) -> Vec<String> {
    let mut broken = Vec::new();
    for (document, fields) in promised {
        let Some(now) = current.get(document) else {
            let (name, number) = document.rsplit_once('/').unwrap_or((document, "0"));
            let later = |other: &String| {
                other
                    .rsplit_once('/')
                    .is_some_and(|(also, next)| also == name && next.parse::<u32>().ok() > number.parse().ok())
            };
            if !current.keys().any(later) {
                broken.push(format!("{document} no longer exists"));
            }
            continue;
        };
        for (path, types) in fields {
            match now.get(path) {
                None => broken.push(format!("{document}: {path} no longer exists")),
                Some(new) if !new.is_subset(types) => {
                    broken.push(format!("{document}: {path} was {types:?} and is {new:?}"));
                }
                Some(_) => {}
            }
        }
    }
    broken
}

/// Returns the schemas in `schema/` without their descriptions, each with the identifier of its document.
fn current() -> Schemas {
    let mut schemas = Schemas::new();
    for entry in fs::read_dir(super::root().join("schema")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(name) = file.strip_suffix(".schema.json") else { continue };
        let mut schema: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let numbered = NUMBERED.iter().find(|id| id.starts_with(&format!("brimful.{name}/")));
        let has_number = schema["properties"].get("schema").is_some();
        assert_eq!(has_number, numbered.is_some(), "{name}: add its SCHEMA to NUMBERED");
        remove_descriptions(&mut schema);
        let definitions = schema.as_object_mut().unwrap().remove("$defs");
        for (definition, part) in definitions.as_ref().and_then(Value::as_object).into_iter().flatten() {
            schemas.insert(format!("{file}#/$defs/{definition}"), part.clone());
        }
        if name != "common" {
            schema["id"] = json!(numbered.map_or(name, |id| id));
            schemas.insert(file, schema);
        }
    }
    schemas
}

fn remove_descriptions(part: &mut Value) {
    match part {
        Value::Object(object) => {
            // Keeps objects, because only a field can be an object. `description` and the like may also be names of
            // fields.
            object.retain(|key, value| {
                value.is_object() || !["$schema", "description", "format", "title"].contains(&&**key)
            });
            object.values_mut().for_each(remove_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_descriptions),
        _ => {}
    }
}

/// The fields of all documents, by the identifier of the document.
fn fields(schemas: &Schemas) -> BTreeMap<String, Fields> {
    let documents = schemas.iter().filter_map(|(file, schema)| Some((file, schema, schema["id"].as_str()?)));
    documents
        .map(|(file, schema, id)| {
            let mut walk = Walk { schemas, fields: Fields::new(), open: Vec::new() };
            walk.visit(schema, file, "");
            (id.to_owned(), walk.fields)
        })
        .collect()
}

/// Collects the fields of a schema and of the definitions that it refers to.
struct Walk<'a> {
    schemas: &'a Schemas,
    fields: Fields,
    /// The definitions that are being visited, so that a recursive definition is visited only once.
    open: Vec<String>,
}

impl Walk<'_> {
    /// Collects the fields of a part of the schema in `file`. The part describes the value at `path`.
    fn visit(&mut self, part: &Value, file: &str, path: &str) {
        if let Some(reference) = part["$ref"].as_str() {
            self.follow(reference, file, path);
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            for alternative in part[key].as_array().into_iter().flatten() {
                self.visit(alternative, file, path);
            }
        }
        let types = part["type"].as_array().cloned().unwrap_or_else(|| vec![part["type"].clone()]);
        for name in types.iter().filter_map(Value::as_str) {
            self.add(path, name);
        }
        let constants = part["enum"].as_array().into_iter().flatten().chain(part.get("const"));
        for constant in constants {
            self.add(
                &format!("{path}={}", constant.as_str().map_or_else(|| constant.to_string(), str::to_owned)),
                "value",
            );
        }
        let required: Vec<&str> = part["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, field) in part["properties"].as_object().into_iter().flatten() {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.visit(field, file, &below);
            if !required.contains(&name.as_str()) {
                self.add(&below, "absent");
            }
        }
        for item in part.get("items").into_iter().chain(part["prefixItems"].as_array().into_iter().flatten()) {
            self.visit(item, file, &format!("{path}[]"));
        }
        // `additionalProperties` is the schema of the values of a map, whose keys are arbitrary.
        if let Some(values) = part.get("additionalProperties").filter(|values| values.is_object()) {
            self.visit(values, file, &format!("{path}{{}}"));
        }
    }

    fn follow(&mut self, reference: &str, file: &str, path: &str) {
        let full = if reference.starts_with('#') { format!("{file}{reference}") } else { reference.to_owned() };
        let target = full.trim_end_matches('#');
        let definition = self.schemas.get(target).unwrap_or_else(|| panic!("{file}: {reference} does not exist"));
        if !self.open.iter().any(|open| open == target) {
            self.open.push(target.to_owned());
            let file = target.split('#').next().unwrap_or(target);
            self.visit(definition, file, path);
            self.open.pop();
        }
    }

    fn add(&mut self, path: &str, name: &str) {
        self.fields.entry(path.to_owned()).or_default().insert(name.to_owned());
    }
}

/// Formats the schemas as JSON, one line for each schema.
fn text(schemas: &Schemas) -> String {
    let lines: Vec<String> = schemas.iter().map(|(name, schema)| format!("{}: {schema}", json!(name))).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}
