//! Nothing that was measured is lost, and nobody else on the machine is let in: full disks, limits, killed processes, and
//! other users who plant files, hold locks and squat on names. `make test-safety` runs these alone.

mod limits;
mod module_install;
mod module_memory;
mod module_remove;
mod names;
mod planted_python;
mod side_outputs;
mod test_bed;

use crate::program::{Done, Running, brimful, share_machine};
use rustix::process::geteuid;
use std::path::Path;

/// Another user than the one that runs the tests.
const NOBODY: u32 = 65_534;

/// Whether this process can act as several users; says so where it cannot.
#[allow(clippy::disallowed_macros, reason = "a test that is left out says so")]
fn is_root() -> bool {
    let root = geteuid().is_root();
    if !root {
        eprintln!("LEFT OUT: only root can make another user's files");
    }
    root
}

/// Runs `brimful` to its end, with this directory for its temporary files.
fn run_in(temporary: &Path, args: &[&str]) -> Done {
    let _machine = share_machine();
    let mut command = brimful(args);
    command.env("TMPDIR", temporary);
    Running::start(command).finish()
}
