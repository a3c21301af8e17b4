//! `brimful fleet`: the fleet is part of the Python package, to which everything is passed on.

use crate::exit::Exit;
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Python source that runs the package's command line. For `-c` and `-m`, Python looks for modules in the working
/// directory first, which may be anybody's. Its `-P` forbids that, but only from 3.11 on; so this removes the entry,
/// which is empty, before the first import. Entries that the user put in PYTHONPATH are absolute by then, and stay.
const RUN: &str = "import sys; sys.path = [entry for entry in sys.path if entry]; import runpy; \
                   runpy.run_module('brimful.fleet', run_name='__main__', alter_sys=True)";
/// Python source that fails where the package is not installed. It has the same search path.
const LOOK: &str = "import sys; sys.path = [entry for entry in sys.path if entry]; import brimful.fleet";

/// Replaces this process by the package's command line.
pub fn main(words: &[OsString]) -> anyhow::Result<Exit> {
    let mut command = command(words)?;
    Err(command.exec()).with_context(|| format!("cannot run {}", command.get_program().display()))
}

/// The command that runs the package with these arguments.
pub fn command(words: &[OsString]) -> anyhow::Result<Command> {
    let own = std::env::current_exe().ok();
    let Some(python) = interpreters(own.as_deref()).into_iter().find(|python| has_package(python)) else {
        bail!(
            "`brimful fleet` is part of the Python package, which no python3 here has: `pip install brimful`, and for \
             several machines `pip install 'brimful[fleet]'`"
        );
    };
    let mut command = Command::new(python);
    // From Python 3.11 on, the processes that Ray starts leave the working directory out as well.
    command.args(["-c", RUN]).args(words).env("PYTHONSAFEPATH", "1");
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
    look.args(["-c", LOOK]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    look.status().is_ok_and(|status| status.success())
}
