//! The token of a stream of samples. It is no argument, because arguments are for all users of a host to see and stand in
//! the Record.

use crate::exit::UsageError;
use brimful_monitor::{MonitorError, Token};
use std::env::{self, VarError};
use std::path::Path;

/// The environment variable that may hold it.
pub const VARIABLE: &str = "BRIMFUL_TOKEN";

/// From this file, or else from the environment; `None` if it is in neither.
pub fn find(file: Option<&Path>) -> anyhow::Result<Option<Token>> {
    if let Some(file) = file {
        return Ok(Some(Token::read(file)?));
    }
    let named = |why: &dyn std::fmt::Display| UsageError(format!("{VARIABLE}: {why}"));
    match env::var(VARIABLE) {
        Ok(text) => Ok(Some(text.parse().map_err(|error: MonitorError| named(&error))?)),
        Err(VarError::NotPresent) => Ok(None),
        Err(error) => Err(named(&error).into()),
    }
}
