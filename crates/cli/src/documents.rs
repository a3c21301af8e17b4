//! Reads JSON documents (such as Records), Workloads and plain text from files and stdin.

use crate::exit::UsageError;
use brimful_core::record::{self, Record};
use brimful_core::text::strip_bom;
use brimful_core::workload::{Workload, WorkloadError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::Read;
use std::path::Path;

/// The field that shows the kind of a JSON document.
#[derive(Deserialize)]
struct Document {
    schema: String,
}

/// Reads a whole text file, or stdin if the path is `-`.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ()),
        false => std::fs::read(path).map(|read| bytes = read),
    };
    let name = display_name(path);
    read.map_err(|error| UsageError(format!("cannot read {name}: {error}; check its name and permissions")))?;
    let text = std::str::from_utf8(&bytes);
    let text = text.map_err(|error| UsageError(format!("{name}: {error}: it is not a text file")))?;
    Ok(strip_bom(text).to_owned())
}

/// The name of a file in messages: its path, or `stdin` for `-`.
pub fn display_name(path: &Path) -> String {
    if path.as_os_str() == "-" { "stdin".to_owned() } else { path.display().to_string() }
}

/// Parses a JSON document. An error states the path of keys to the invalid value.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text)).map_err(|error| error.to_string())
}

/// The value of `schema` in a JSON document, like `brimful.record/1`; empty if the document has no such field.
pub fn schema(text: &str) -> String {
    from_json::<Document>(text).map_or(String::new(), |document| document.schema)
}

/// Reads the Record in a file, or on stdin if the path is `-`.
pub fn read_record(path: &Path) -> anyhow::Result<Record> {
    let text = read_text(path)?;
    let not_a_record = |why: String| {
        let name = display_name(path);
        UsageError(format!("{name} is not a Record ({why}): write Records with `brimful load … --out FILE`"))
    };
    match from_json::<Document>(&text) {
        Ok(Document { schema }) if schema != record::SCHEMA => {
            Err(not_a_record(format!("it is a `{schema}`, and a Record is a `{}`", record::SCHEMA)).into())
        }
        _ => Ok(parse_record(&text).map_err(not_a_record)?),
    }
}

/// Parses a Record. It is faster than [`from_json`], because thousands of Records may be read. But an error states only
/// line and column, not the path of keys.
pub fn parse_record(text: &str) -> Result<Record, String> {
    serde_json::from_slice(text.as_bytes()).map_err(|error| error.to_string())
}

/// Parses a Workload in TOML, and reads the files that its classes name.
pub fn parse_workload(text: &str) -> Result<Workload, String> {
    let mut workload: Workload = toml::from_str(strip_bom(text)).map_err(|error| error.to_string())?;
    load_files(&mut workload).map_err(|error| error.to_string())?;
    Ok(workload)
}

/// Validates a workload, and reads the files that its classes name.
pub fn load_files(workload: &mut Workload) -> Result<(), WorkloadError> {
    workload.validate()?;
    workload.read_files(|name: &str| std::fs::read(name))
}
