//! Finds an installed server. This is the only file that names the implementations of [`Server`], nginx and Apache.

use super::apache::Apache;
use super::args::{ServerKind, ServerLocationArgs};
use super::nginx::Nginx;
use super::server::Server;
use crate::exit::UsageError;
use anyhow::Context;
use std::path::PathBuf;

/// Finds the server of this kind.
///
/// # Errors
/// When the server is not installed, or does not report its version.
pub fn find_server(kind: ServerKind, place: &ServerLocationArgs) -> anyhow::Result<Box<dyn Server>> {
    let absolute =
        |path: &PathBuf| std::path::absolute(path).with_context(|| format!("not a path: {}", path.display()));
    let prefix = place.prefix.as_ref().map(absolute).transpose()?;
    let config = place.config.as_ref().map(absolute).transpose()?;
    if let Some(prefix) = prefix.as_ref().filter(|prefix| !prefix.is_dir()) {
        return Err(UsageError(format!("{}: not a directory; check --prefix", prefix.display())).into());
    }
    let binary = place.binary.as_deref();
    Ok(match kind {
        ServerKind::Nginx => Box::new(Nginx::find(binary, prefix, config)?),
        ServerKind::Apache => Box::new(Apache::find(binary, prefix, config)?),
    })
}
