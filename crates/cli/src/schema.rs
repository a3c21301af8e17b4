//! `brimful schema`: prints the JSON Schemas of the documents, as in the directory `schema/`.

use crate::exit::Exit;
use crate::output::{columns, print, print_document};
use anyhow::Context;
use brimful_core::text::wrap;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Map, Value};

const EXAMPLES: &str = "\
Examples:
  $ brimful schema
  $ brimful schema record > record.schema.json";

/// Arguments of `brimful schema`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SchemaArgs {
    /// The document, like record or survey [default: list the documents]
    #[arg(hide_possible_values = true, value_parser = PossibleValuesParser::new(SCHEMAS.map(|(name, _)| name)))]
    pub name: Option<String>,
}

/// Expands to an array with the name and the text of each schema. The texts are embedded in this program.
macro_rules! schemas {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../schema/", $name, ".schema.json")))),*]
    };
}

/// The schema of each document.
const SCHEMAS: [(&str, &str); 22] = schemas![
    "ab" "calibration" "comparison" "forecast" "history" "log-connections" "log-kernel" "log-module" "log-network"
    "log-process" "log-requests" "model" "profile" "record" "server" "site" "solution" "survey" "sweep" "testbed"
    "what-if" "workload"
];
/// The name of the file with the definitions that several schemas share.
const COMMON: &str = "common.schema.json";
const COMMON_TEXT: &str = include_str!("../../../schema/common.schema.json");

/// Prints the schema of a document, or the list of documents.
pub fn main(args: &SchemaArgs) -> anyhow::Result<Exit> {
    match args.name.as_deref().and_then(|name| SCHEMAS.iter().find(|(known, _)| *known == name)) {
        Some((_, text)) => print_document(&(serde_json::to_string_pretty(&self_contained(text)?)? + "\n"))?,
        None => print(&list()?)?,
    }
    Ok(Exit::Ok)
}

/// The documents, each with its description.
fn list() -> anyhow::Result<String> {
    let indent = SCHEMAS.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    let mut list = String::new();
    for (name, text) in SCHEMAS {
        let schema = parse(text)?;
        let description = schema["description"].as_str().unwrap_or_default();
        let description = wrap(description, indent, columns().unwrap_or(usize::MAX));
        list += &format!("{name:indent$}{}\n", description.trim());
    }
    Ok(list)
}

/// The schema in `text` with the definitions of `common.schema.json` that it refers to. Without them, a validator would
/// need that file as well.
fn self_contained(text: &str) -> anyhow::Result<Value> {
    let mut schema = parse(text)?;
    let common = parse(COMMON_TEXT)?;
    let mut missing = Vec::new();
    take_references(&mut schema, &mut missing);
    let mut definitions = schema["$defs"].as_object().cloned().unwrap_or_default();
    while let Some(name) = missing.pop() {
        if !definitions.contains_key(&name) {
            let mut definition = common["$defs"][&name].clone();
            take_references(&mut definition, &mut missing);
            definitions.insert(name, definition);
        }
    }
    if let Some(fields) = schema.as_object_mut().filter(|_| !definitions.is_empty()) {
        fields.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Ok(schema)
}

/// Adds the names of the definitions to which `part` refers, at any depth, to `names`. Changes references to
/// `common.schema.json` into references to the schema itself.
fn take_references(part: &mut Value, names: &mut Vec<String>) {
    match part {
        Value::Object(fields) => take_references_of_fields(fields, names),
        Value::Array(items) => items.iter_mut().for_each(|item| take_references(item, names)),
        _ => {}
    }
}

fn take_references_of_fields(fields: &mut Map<String, Value>, names: &mut Vec<String>) {
    for (key, value) in fields {
        match value {
            Value::String(reference) if key == "$ref" => {
                *reference = reference.trim_start_matches(COMMON).to_owned();
                names.push(reference.trim_start_matches("#/$defs/").to_owned());
            }
            _ => take_references(value, names),
        }
    }
}

fn parse(text: &str) -> anyhow::Result<Value> {
    serde_json::from_str(text).context("a schema of this program is not valid JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_schema_of_the_repository_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = files.map(|file| file.replace(".schema.json", "")).collect();
        names.retain(|name| name != "common");
        names.sort();
        assert_eq!(names, SCHEMAS.map(|(name, _)| name));
    }

    #[test]
    fn every_reference_is_to_a_definition_of_the_same_schema() {
        for (name, text) in SCHEMAS {
            let mut schema = self_contained(text).unwrap();
            let mut references = Vec::new();
            take_references(&mut schema, &mut references);
            for reference in references {
                assert!(schema["$defs"][&reference].is_object(), "{name}: {reference}");
            }
            assert!(!schema.to_string().contains(COMMON), "{name}");
        }
    }
}
