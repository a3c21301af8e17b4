//! `brimful fleet`: the fleet is part of the Python package, to which everything is passed on.

use crate::exit::Exit;
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MODULE: &str = "brimful.fleet";

/// Becomes it.
pub fn main(words: &[OsString]) -> anyhow::Result<Exit> {
    let mut command = command(words)?;
    Err(command.exec()).with_context(|| format!("cannot run {}", command.get_program().display()))
}

/// What runs it.
pub fn command(words: &[OsString]) -> anyhow::Result<Command> {
    let own = std::env::current_exe().ok();
    let Some(python) = interpreters(own.as_deref()).into_iter().find(|python| has_package(python)) else {
        bail!(
            "`brimful fleet` is part of the Python package, which no python3 here has: `pip install brimful`, and for \
             several machines `pip install 'brimful[fleet]'`"
        );
    };
    let mut command = Command::new(python);
    command.args(["-m", MODULE]).args(words);
    // The same program makes the shards.
    if let Some(own) = own {
        command.env("BRIMFUL_BINARY", own);
    }
    Ok(command)
}

/// That of the environment into which the package put this program, and the one that a shell finds.
fn interpreters(own: Option<&Path>) -> Vec<PathBuf> {
    let beside = own.and_then(Path::parent).map(|bin| bin.join("python3")).filter(|python| python.exists());
    beside.into_iter().chain([PathBuf::from("python3")]).collect()
}

fn has_package(python: &Path) -> bool {
    let mut look = Command::new(python);
    look.args(["-c", &format!("import {MODULE}")]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    look.status().is_ok_and(|status| status.success())
}
