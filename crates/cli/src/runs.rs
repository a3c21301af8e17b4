//! Reads Records and surveys, the documents that `compare` and `history` accept.

use crate::documents::{from_json, parse_record, schema};
use crate::exit::UsageError;
use crate::output::print_note;
use brimful_core::{record, survey};
use brimful_stats::Run;
use std::fs;
use std::path::{Path, PathBuf};

/// The files in a directory whose names have one of these extensions, sorted by name.
pub fn files_in(directory: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, UsageError> {
    let unreadable = |error: std::io::Error| UsageError(format!("cannot read {}: {error}", directory.display()));
    let entries = fs::read_dir(directory).map_err(unreadable)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(unreadable)?;
    let has_extension = |path: &Path| {
        path.extension().is_some_and(|extension| extensions.iter().any(|expected| extension == *expected))
    };
    paths.retain(|path| has_extension(path) && path.is_file());
    paths.sort();
    Ok(paths)
}

/// Returns true if a file in a directory is a Record or a survey. If it is neither, prints a note that the file is left
/// out.
pub fn is_run(path: &Path, text: &str) -> bool {
    let schema = schema(text);
    let is_run = schema.is_empty() || is_run_schema(&schema);
    if !is_run {
        print_note(&format!("{} is left out: it is a `{schema}`", path.display()));
    }
    is_run
}

/// Whether the `schema` of a document is that of a Record or a survey, of any version.
pub fn is_run_schema(schema: &str) -> bool {
    schema.starts_with("brimful.record/") || schema.starts_with("brimful.survey/")
}

/// Parses a Record or a survey. Error messages call the document `name`.
pub fn parse_run(name: &str, text: &str) -> Result<Run, UsageError> {
    // Histories have thousands of Records. To save time, the schema is read only if a document cannot be parsed as a
    // Record.
    let parsed = match parse_record(text) {
        Ok(record) if record.schema == record::SCHEMA => Ok(Run::Record(Box::new(record))),
        other => match (schema(text).as_str(), other) {
            (survey::SCHEMA, _) => from_json(text).map(|survey| Run::Survey(Box::new(survey))),
            (record::SCHEMA | "", Err(why)) => Err(why),
            (schema, _) => Err(format!("it is a `{schema}`")),
        },
    };
    parsed.map_err(|why| {
        UsageError(format!(
            "{name} is not a Record or survey that this version reads ({why}): write it again with --out"
        ))
    })
}
