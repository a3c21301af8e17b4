//! Reading Records.

use crate::exit::UsageError;
use crate::plan::model::{from_json, name, text};
use brimful_core::record::{Record, SCHEMA};
use serde::Deserialize;
use std::path::Path;

/// What every document of ours begins with.
#[derive(Deserialize)]
struct Document {
    schema: String,
}

/// The Record in the file, or on stdin if it is called `-`.
pub fn read(path: &Path) -> anyhow::Result<Record> {
    let text = text(path)?;
    let wrong = |why: String| {
        let name = name(path);
        UsageError(format!("{name} is not a Record ({why}): write Records with `brimful load … --out FILE`"))
    };
    match from_json::<Document>(&text) {
        Ok(Document { schema }) if schema != SCHEMA => {
            Err(wrong(format!("it is a `{schema}`, and a Record is a `{SCHEMA}`")).into())
        }
        _ => Ok(parse(&text).map_err(wrong)?),
    }
}

/// The Record in a text; what is wrong is said by line and column. Programs write Records and thousands may be read, so
/// this is done without [`from_json`], which says by which keys one gets there.
pub fn parse(text: &str) -> Result<Record, String> {
    serde_json::from_slice(text.as_bytes()).map_err(|error| error.to_string())
}
