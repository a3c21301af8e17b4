//! Documents as JSON for people and scripts: indented, ending in a newline.

use crate::ReportError;
use brimful_core::record::Record;
use brimful_core::survey::Survey;

/// A Record.
///
/// # Errors
/// When it does not serialize.
pub fn record(record: &Record) -> Result<String, ReportError> {
    with_newline("Record", serde_json::to_string_pretty(record))
}

/// A survey.
///
/// # Errors
/// When it does not serialize.
pub fn survey(survey: &Survey) -> Result<String, ReportError> {
    with_newline("survey", serde_json::to_string_pretty(survey))
}

fn with_newline(document: &'static str, json: serde_json::Result<String>) -> Result<String, ReportError> {
    json.map(|json| json + "\n").map_err(|source| ReportError::Json { document, source })
}
