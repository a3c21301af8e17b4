//! Sessions that are written out, as a workload walks through them: all calls, bursts and sessions in one row each, 16
//! bytes for a call and 24 for a burst, shared by all shards.

use brimful_core::workload::{ScriptedRequest, Workload};
use brimful_core::{CallSpec, ClassId};

/// The sessions of a Workload document that are written out.
#[derive(Clone, Debug, PartialEq)]
pub struct Scripts {
    calls: Vec<CallSpec>,
    bursts: Vec<Burst>,
    /// Where in `bursts` each session begins, and where the last one ends.
    sessions: Vec<u32>,
}

/// One burst of one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Burst {
    /// Where in `calls` it begins and ends.
    first: u32,
    end: u32,
    think_s: Option<f64>,
}

impl Burst {
    /// How many calls it has.
    pub(super) fn calls(&self) -> u32 {
        self.end.saturating_sub(self.first)
    }

    /// Seconds to think after it, where it says so itself.
    pub(super) fn think_s(&self) -> Option<f64> {
        self.think_s
    }
}

impl Scripts {
    /// Those of a valid workload; `None` where it has none.
    pub fn from_workload(workload: &Workload) -> Option<Scripts> {
        let written = &workload.sessions()?.scripts;
        let call = |(nth, request): (u32, ScriptedRequest<'_>)| CallSpec {
            class: ClassId(request.class as u16),
            request: ScriptedRequest::id(nth),
            session: None,
        };
        let calls: Vec<CallSpec> = (0..).zip(workload.scripted_requests()).map(call).collect();
        let (mut bursts, mut sessions, mut end) = (Vec::new(), vec![0], 0);
        for script in written {
            for burst in &script.bursts {
                let first = end;
                end += burst.calls.len() as u32;
                bursts.push(Burst { first, end, think_s: burst.think_s });
            }
            sessions.push(bursts.len() as u32);
        }
        (!calls.is_empty()).then_some(Scripts { calls, bursts, sessions })
    }

    /// How many bursts the session has that is the `nth` of the schedule.
    pub(super) fn bursts(&self, nth: u64) -> u32 {
        let (first, end) = self.session(nth);
        end.saturating_sub(first)
    }

    /// Its burst of this number; empty beyond its last.
    pub(super) fn burst(&self, nth: u64, burst: u32) -> Burst {
        let (first, end) = self.session(nth);
        let place = (first.saturating_add(burst) < end).then(|| self.bursts.get((first + burst) as usize));
        place.flatten().copied().unwrap_or(Burst { first: 0, end: 0, think_s: None })
    }

    /// The call of that burst after which so many, itself among them, are still to be made.
    pub(super) fn call(&self, nth: u64, burst: u32, left: u32) -> CallSpec {
        let place = self.burst(nth, burst).end.saturating_sub(left.max(1));
        self.calls.get(place as usize).copied().unwrap_or(CallSpec::of_class(ClassId(0)))
    }

    /// Where the bursts of the session begin and end: it is one of those written out, in turn.
    fn session(&self, nth: u64) -> (u32, u32) {
        let written = self.sessions.len().saturating_sub(1).max(1) as u64;
        let place = (nth % written) as usize;
        match (self.sessions.get(place), self.sessions.get(place + 1)) {
            (Some(first), Some(end)) => (*first, *end),
            _ => (0, 0),
        }
    }
}
