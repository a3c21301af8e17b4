//! Tests that results survive full disks, limits and kills, and that other users of the machine cannot interfere by
//! files, locks or names that they create first. `make test-safety` runs only these tests.

mod limits;
mod module_install;
mod module_memory;
mod module_remove;
mod names;
mod planted_python;
mod side_outputs;
mod strings;
mod test_bed;

use crate::program::{Done, Running, brimful, lock_machine_shared};
use rustix::process::geteuid;
use std::path::Path;

/// User ID of a user other than the one that runs the tests.
const NOBODY: u32 = 65_534;

/// Whether this process can act as other users. If not, prints that the test is skipped.
#[allow(clippy::disallowed_macros, reason = "a test that is left out says so")]
fn is_root() -> bool {
    let root = geteuid().is_root();
    if !root {
        eprintln!("LEFT OUT: only root can make another user's files");
    }
    root
}

/// Runs `brimful` until it ends, with this directory for temporary files.
fn run_in(temporary: &Path, args: &[&str]) -> Done {
    let _machine = lock_machine_shared();
    let mut command = brimful(args);
    command.env("TMPDIR", temporary);
    Running::start(command).finish()
}
