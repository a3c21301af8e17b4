//! The HTML report: the web page built from `web/`, with one JSON document inserted. The page's scripts show the
//! sections that suit the document's schema.
//!
//! The document is in a script element of a type that browsers do not execute. The page shows its strings only as text,
//! never as HTML. Inside a script element, HTML parsers interpret only `</script` and `<!--`, so every `<` in the JSON
//! is escaped.

use crate::ReportError;
use brimful_core::record::Record;
use brimful_core::survey::Survey;
use flate2::read::DeflateDecoder;
use serde::Serialize;
use std::io::Read;

/// The web page without a document, as compressed by `build.rs`.
const PAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/report.html.deflate"));

/// The text in the page that the document replaces. `web/vite.config.ts` checks that it occurs exactly once.
const MARKER: &str = "<!--__BRIMFUL_DOCUMENT__-->";

/// Returns a survey as one self-contained HTML page.
///
/// # Errors
/// [`ReportError`] if the survey cannot be serialized, or if the page in this program is damaged.
pub fn html(survey: &Survey) -> Result<String, ReportError> {
    page("survey", survey)
}

/// Returns the Record (result document) of a run as one self-contained HTML page. Leaves out the histograms and the
/// account of latency (where the time of calls was spent), which the page does not show.
///
/// # Errors
/// [`ReportError`] if the Record cannot be serialized, or if the page in this program is damaged.
pub fn load(record: &Record) -> Result<String, ReportError> {
    page("record", &Record { hdr: Default::default(), account: None, ..record.clone() })
}

/// Returns any document as one self-contained HTML page. Error messages call the document `name`.
///
/// # Errors
/// [`ReportError`] if the document cannot be serialized, or if the page in this program is damaged.
pub fn page(name: &'static str, document: &impl Serialize) -> Result<String, ReportError> {
    let json = serde_json::to_string(document).map_err(|source| ReportError::Json { document: name, source })?;
    let json = json.replace('<', "\\u003c");
    let element = format!(r#"<script type="application/json" id="{name}">{json}</script>"#);
    Ok(empty()?.replacen(MARKER, &element, 1))
}

/// Decompresses the web page, which contains no document yet.
fn empty() -> Result<String, ReportError> {
    let mut page = String::new();
    DeflateDecoder::new(PAGE).read_to_string(&mut page).map_err(ReportError::Page)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"<script type="application/json" id="survey">"#;

    #[test]
    fn the_survey_is_in_the_page_once_and_cannot_leave_its_element() {
        let mut survey: Survey = serde_json::from_str(include_str!("../../../web/example.survey.json")).unwrap();
        survey.headline = format!("</script><script>alert(1)</script><!-- {MARKER}");
        let page = html(&survey).unwrap();
        let (_, rest) = page.split_once(BEFORE).unwrap();
        let (json, rest) = rest.split_once("</script>").unwrap();
        assert_eq!(serde_json::from_str::<Survey>(json).unwrap(), survey);
        assert!(!json.contains('<') && !rest.contains(BEFORE) && !rest.contains("alert(1)"));
    }

    #[test]
    fn the_page_has_one_place_for_it() {
        assert_eq!(empty().unwrap().matches(MARKER).count(), 1);
    }
}
