//! `brimful put-back`, which a survey starts for itself: outlives it whatever ends it, and puts its server back.

use crate::exit::Exit;
use anyhow::Context;
use brimful_survey::run_guardian;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs it.
pub fn main() -> anyhow::Result<Exit> {
    // What ends the survey, a terminal or a job control, must not end this as well.
    let heard = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        flag::register(signal, heard.clone()).context("cannot ignore signals")?;
    }
    rustix::process::setsid().context("a survey starts this; there is nothing to put back otherwise")?;
    run_guardian(std::io::stdin().lock(), std::io::stdout().lock()).context("cannot read what to put back")?;
    Ok(Exit::Ok)
}
