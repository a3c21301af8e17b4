//! `brimful fleet`: passes its arguments to the Python package, which runs one load from many machines.

use crate::exit::Exit;
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Python source that runs the package's command line. With `-c` and `-m`, Python searches modules first in the working
/// directory, where another user may have put files. The flag `-P` prevents that, but only from Python 3.11 on. So this
/// source removes the working directory's entry, an empty string, before the first import. Entries from PYTHONPATH are
/// absolute by then, and are kept.
const RUN_SOURCE: &str = "import sys; sys.path = [entry for entry in sys.path if entry]; import runpy; \
                   runpy.run_module('brimful.fleet', run_name='__main__', alter_sys=True)";
/// Python source that fails if the package is not installed. It has the same search path as [`RUN_SOURCE`].
const PROBE_SOURCE: &str = "import sys; sys.path = [entry for entry in sys.path if entry]; import brimful.fleet";

/// Replaces this process with the Python process that runs the package's command line (exec).
pub fn main(words: &[OsString]) -> anyhow::Result<Exit> {
    let mut command = command(words)?;
    Err(command.exec()).with_context(|| format!("cannot run {}", command.get_program().display()))
}

/// The command that runs the package with these arguments.
pub fn command(words: &[OsString]) -> anyhow::Result<Command> {
    let own = std::env::current_exe().ok();
    let Some(python) = interpreters(own.as_deref()).into_iter().find(|python| has_package(python)) else {
        bail!(
            "`brimful fleet` needs the Python package, which is not installed for any python3 here: `pip install brimful`, \
             and for several machines `pip install 'brimful[fleet]'`"
        );
    };
    let mut command = Command::new(python);
    // From Python 3.11 on, PYTHONSAFEPATH also removes the working directory from the module search path of the
    // processes that Ray starts.
    command.args(["-c", RUN_SOURCE]).args(words).env("PYTHONSAFEPATH", "1");
    // The package starts this same executable for each shard of the load.
    if let Some(own) = own {
        command.env("BRIMFUL_BINARY", own);
    }
    Ok(command)
}

/// The Python interpreters to try. The first is in the virtual environment in which the package installed this program,
/// the second is in PATH.
fn interpreters(own: Option<&Path>) -> Vec<PathBuf> {
    let beside = own.and_then(Path::parent).map(|bin| bin.join("python3")).filter(|python| python.exists());
    beside.into_iter().chain([PathBuf::from("python3")]).collect()
}

fn has_package(python: &Path) -> bool {
    let mut probe = Command::new(python);
    probe.args(["-c", PROBE_SOURCE]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}
