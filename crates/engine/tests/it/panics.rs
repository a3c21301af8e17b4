//! Tests that a panic in one shard does not lose the measurements of any shard.

use crate::case::{Case, on_each_engine};
use crate::support::{Control, Plan};
use brimful_core::{Event, Observer};
use brimful_testkit::{RawServer, Step, script, with_length};
use std::sync::atomic::{AtomicBool, Ordering};

on_each_engine!(a_panic_in_one_shard_loses_no_call_that_has_ended);

/// An observer that counts the ended calls, and panics after a given number of them, if any.
#[derive(Default)]
struct Fuse {
    panics_after: Option<u64>,
    scheduled: u64,
    ended: u64,
}

impl Observer for Fuse {
    type PerCall = ();

    fn on(&mut self, (): &mut (), event: &Event) {
        match event {
            Event::Scheduled { .. } => self.scheduled += 1,
            Event::Ended(_) => {
                assert!(self.panics_after != Some(self.ended), "fuse blown");
                self.ended += 1;
            }
            _ => {}
        }
    }

    fn merge(&mut self, other: Fuse) {
        self.scheduled += other.scheduled;
        self.ended += other.ended;
    }
}

fn a_panic_in_one_shard_loses_no_call_that_has_ended(case: Case) {
    let server = RawServer::start(script([Step::Request, Step::Send(with_length(b"hello"))]));
    let mut plan = Plan::new(case, server.addr()).calls(40);
    plan.shards = 2;
    let is_first = AtomicBool::new(true);
    let fuse = || Fuse { panics_after: is_first.swap(false, Ordering::Relaxed).then_some(5), ..Fuse::default() };
    let run = plan.drive(|shard| plan.constant(1_000.0, shard), fuse, &Control::default());
    assert_eq!(run.panics, ["fuse blown"]);
    let Fuse { scheduled, ended, .. } = run.observer;
    // The other shard makes all of its 20 calls. In the shard that panics, 5 calls have ended, and at most 15 more are
    // under way.
    assert!((25..=40).contains(&ended), "{ended}");
    assert!(scheduled >= ended && scheduled <= 40, "{scheduled} scheduled, {ended} ended");
}
