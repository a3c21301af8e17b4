//! Tests that results are not lost when a disk is full, a limit is reached or the program is killed. Also tests that
//! other users of the machine cannot interfere, by files, locks or names that they have created before. `make
//! test-safety` runs only these tests.

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

/// ID of a user who does not run the tests.
const NOBODY: u32 = 65_534;

/// Whether this process can act as other users. If it cannot, prints that the test is skipped.
#[allow(clippy::disallowed_macros, reason = "a test that is left out says so")]
fn is_root() -> bool {
    let root = geteuid().is_root();
    if !root {
        eprintln!("LEFT OUT: only root can make another user's files");
    }
    root
}

/// Runs `brimful` until it ends. Its temporary files are in this directory.
fn run_in(temporary: &Path, args: &[&str]) -> Done {
    let _machine = lock_machine_shared();
    let mut command = brimful(args);
    command.env("TMPDIR", temporary);
    Running::start(command).finish()
}
