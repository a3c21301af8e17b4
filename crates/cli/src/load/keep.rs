//! The file of `--keep`, with the Record of a load so far; and shards that end when the process that started them ends.

use crate::output::RewrittenFile;
use anyhow::Context;
use brimful_core::panics;
use brimful_core::record::Record;
use brimful_run::{RunPlan, record_so_far};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is written.
const EVERY: Duration = Duration::from_secs(1);
/// How long before that the shards are asked for what they have: they give it when they are next awake.
const ASKED_BEFORE: Duration = Duration::from_millis(150);

/// A file that always contains a complete Record, once the first one is written.
#[derive(Debug)]
pub struct KeptFile(RewrittenFile);

impl KeptFile {
    /// Makes sure that it can be written.
    pub fn create(path: &Path) -> anyhow::Result<KeptFile> {
        RewrittenFile::create(path, "--keep").map(KeptFile)
    }

    /// Writes a Record.
    pub fn write(&self, record: &Record) -> anyhow::Result<()> {
        self.0.replace(&brimful_report::json::record(record)?)
    }

    /// Writes what has been seen, once a second, while `body` runs the plan. That it cannot be written, as on a full disk, is
    /// no reason to end the run: the whole Record is still to come.
    pub fn during<T>(&self, plan: &RunPlan, body: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let write_regularly = || {
                let mut due = Instant::now() + EVERY;
                while rest_until(due - ASKED_BEFORE, &done) {
                    if let Some(keeper) = &plan.keeper {
                        // What is wrong with it, the end of the run says.
                        let _ = keeper.collect();
                    }
                    if rest_until(due, &done)
                        && let Some(record) = record_so_far(plan)
                    {
                        let _ = self.write(&record);
                    }
                    due = (due + EVERY).max(Instant::now() + ASKED_BEFORE);
                }
            };
            let keeper = scope.spawn(move || panics::caught(write_regularly));
            let result = body();
            done.store(true, Ordering::Relaxed);
            keeper.thread().unpark();
            result
        })
    }
}

/// Whether that instant came before the end.
fn rest_until(instant: Instant, done: &AtomicBool) -> bool {
    while !done.load(Ordering::Relaxed) {
        let left = instant.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::park_timeout(left);
    }
    false
}

/// Sets the flag when stdin ends: whoever holds its other end is gone, however that came.
pub fn stop_when_stdin_ends(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let stop = Arc::clone(stop);
    let wait = move || {
        // What is written there says nothing.
        let _ = io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink());
        stop.store(true, Ordering::Relaxed);
    };
    thread::Builder::new().name("stdin".to_owned()).spawn(wait).context("cannot start a thread")?;
    Ok(())
}
