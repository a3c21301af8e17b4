//! A monitor on another host: `brimful watch --serve` on that host, and its token.
//!
//! The token is not a command-line argument: all users of a host can see the arguments of processes, and the Record
//! contains them.

use crate::exit::UsageError;
use brimful_monitor::{MonitorConfig, MonitorError, RemoteConfig, Token};
use std::env::{self, VarError};
use std::path::{Path, PathBuf};

/// The environment variable that may contain the token.
const TOKEN_VARIABLE: &str = "BRIMFUL_TOKEN";

/// The address of a monitor on another host, with its token and the certificates to trust.
pub fn remote_config(
    address: &str,
    token_file: Option<&Path>,
    authority: Option<PathBuf>,
) -> anyhow::Result<RemoteConfig> {
    let token = find_token(token_file)?.ok_or_else(|| {
        UsageError(format!(
            "the token of `brimful watch --serve` is missing: give it in the environment as {}, or by --token-file",
            TOKEN_VARIABLE
        ))
    })?;
    let intervals = MonitorConfig::default().intervals;
    Ok(RemoteConfig { address: address.to_owned(), token, authority, intervals })
}

/// Reads the token from this file, or else from the environment. Returns `None` if there is no token.
pub fn find_token(file: Option<&Path>) -> anyhow::Result<Option<Token>> {
    if let Some(file) = file {
        return Ok(Some(Token::read(file)?));
    }
    let named = |why: &dyn std::fmt::Display| UsageError(format!("{TOKEN_VARIABLE}: {why}"));
    match env::var(TOKEN_VARIABLE) {
        Ok(text) => Ok(Some(text.parse().map_err(|error: MonitorError| named(&error))?)),
        Err(VarError::NotPresent) => Ok(None),
        Err(error) => Err(named(&error).into()),
    }
}
