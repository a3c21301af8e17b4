//! Formats documents as indented JSON that ends in a newline.

use crate::ReportError;
use brimful_core::record::Record;
use brimful_core::survey::Survey;
use serde::Serialize;

/// Formats the Record (result document) of a run as JSON.
///
/// # Errors
/// [`ReportError::Json`] if the Record cannot be serialized.
pub fn record(record: &Record) -> Result<String, ReportError> {
    document("Record", record)
}

/// Formats a survey as JSON.
///
/// # Errors
/// [`ReportError::Json`] if the survey cannot be serialized.
pub fn survey(survey: &Survey) -> Result<String, ReportError> {
    document("survey", survey)
}

/// Formats any document as JSON. Error messages call the document `name`.
///
/// # Errors
/// [`ReportError::Json`] if the document cannot be serialized.
pub fn document(name: &'static str, document: &impl Serialize) -> Result<String, ReportError> {
    let json = serde_json::to_string_pretty(document);
    json.map(|json| json + "\n").map_err(|source| ReportError::Json { document: name, source })
}
