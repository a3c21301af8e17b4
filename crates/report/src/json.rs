//! Formats documents as indented JSON that ends in a newline.

use crate::ReportError;
use brimful_core::record::Record;
use brimful_core::survey::Survey;
use serde::Serialize;

/// A Record as JSON.
///
/// # Errors
/// If the Record does not serialize.
pub fn record(record: &Record) -> Result<String, ReportError> {
    document("Record", record)
}

/// A survey as JSON.
///
/// # Errors
/// If the survey does not serialize.
pub fn survey(survey: &Survey) -> Result<String, ReportError> {
    document("survey", survey)
}

/// Any document as JSON. Error messages call the document `name`.
///
/// # Errors
/// If the document does not serialize.
pub fn document(name: &'static str, document: &impl Serialize) -> Result<String, ReportError> {
    let json = serde_json::to_string_pretty(document);
    json.map(|json| json + "\n").map_err(|source| ReportError::Json { document: name, source })
}
