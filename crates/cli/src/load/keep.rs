//! `--keep`, the file to which the Record of the load so far is written once a second, and `--until-stdin-ends`, which
//! ends a shard together with the process that started it.

use crate::output::RewrittenFile;
use anyhow::Context;
use brimful_core::panics;
use brimful_core::record::Record;
use brimful_run::{ResultsSoFar, RunObserver, RunPlan, partial_record};
use brimful_stats::ResultBackup;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two writes of the file of `--keep`.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time from the request for the shards' results to the write of the file. Each shard replies when it next wakes up,
/// usually within this time.
const COLLECTION_TIME: Duration = Duration::from_millis(150);

/// The file of `--keep`. It contains a complete Record at all times after the first write.
#[derive(Debug)]
pub struct PartialRecordFile(RewrittenFile);

impl PartialRecordFile {
    /// Prepares the file of `--keep`, and checks that it can be written.
    pub fn create(path: &Path) -> anyhow::Result<PartialRecordFile> {
        RewrittenFile::create(path, "--keep").map(PartialRecordFile)
    }

    /// Replaces the content of the file by a Record.
    pub fn write(&self, record: &Record) -> anyhow::Result<()> {
        self.0.replace(&brimful_report::json::record(record)?)
    }

    /// Runs the plan with `run`, and writes the Record so far once a second. Errors, such as a full disk, do not end
    /// the run, because the complete Record is delivered at its end.
    pub fn write_during_run<T>(&self, plan: &RunPlan, observer: RunObserver, run: impl FnOnce(&RunObserver) -> T) -> T {
        let backup: Arc<ResultBackup> = Arc::default();
        let observer = RunObserver { results_so_far: ResultsSoFar::Kept(Arc::clone(&backup)), ..observer };
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let write_regularly = || {
                let mut due = Instant::now() + INTERVAL;
                while sleep_until(due - COLLECTION_TIME, &done) {
                    // An error of a shard is ignored here, because it is reported at the end of the run.
                    let _ = backup.collect();
                    if sleep_until(due, &done)
                        && let Some(record) = partial_record(plan, &backup)
                    {
                        let _ = self.write(&record);
                    }
                    due = (due + INTERVAL).max(Instant::now() + COLLECTION_TIME);
                }
            };
            let writer = scope.spawn(move || panics::catch_panic(write_regularly));
            let result = run(&observer);
            done.store(true, Ordering::Relaxed);
            writer.thread().unpark();
            result
        })
    }
}

/// Sleeps until this time. Returns false if the run ended earlier.
fn sleep_until(instant: Instant, done: &AtomicBool) -> bool {
    while !done.load(Ordering::Relaxed) {
        let left = instant.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::park_timeout(left);
    }
    false
}

/// Sets the flag when stdin ends, which means that the process that writes to it has ended.
pub fn stop_when_stdin_ends(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let stop = Arc::clone(stop);
    let wait = move || {
        // The data itself is ignored.
        let _ = io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink());
        stop.store(true, Ordering::Relaxed);
    };
    thread::Builder::new().name("stdin".to_owned()).spawn(wait).context("cannot start a thread")?;
    Ok(())
}
