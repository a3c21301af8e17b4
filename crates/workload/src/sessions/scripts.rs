//! Scripted sessions in a compact form that all shards share: an array of calls (16 bytes each), an array of bursts (24
//! bytes each) and an array of sessions.

use brimful_core::workload::{ScriptedRequest, Workload};
use brimful_core::{CallSpec, ClassId};

/// The scripted sessions of a workload file.
#[derive(Clone, Debug, PartialEq)]
pub struct Scripts {
    calls: Vec<CallSpec>,
    bursts: Vec<Burst>,
    /// For each session, the index of its first burst in `bursts`; the last entry is the end of the last session.
    sessions: Vec<u32>,
}

/// One burst of a scripted session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Burst {
    /// Index in `calls` of the burst's first call. Its calls are contiguous.
    first: u32,
    end: u32,
    think_s: Option<f64>,
}

impl Burst {
    /// Number of the burst's calls.
    pub(super) fn calls(&self) -> u32 {
        self.end.saturating_sub(self.first)
    }

    /// Think time after the burst, in seconds; `None` if the script does not specify a think time.
    pub(super) fn think_s(&self) -> Option<f64> {
        self.think_s
    }
}

impl Scripts {
    /// The scripts of a valid workload; `None` if the workload has no scripts.
    pub fn from_workload(workload: &Workload) -> Option<Scripts> {
        let scripts = &workload.sessions()?.scripts;
        let to_call = |(nth, request): (u32, ScriptedRequest<'_>)| CallSpec {
            class: ClassId(request.class as u16),
            request: ScriptedRequest::request_id(nth),
            session: None,
        };
        let calls: Vec<CallSpec> = (0..).zip(workload.scripted_requests()).map(to_call).collect();
        let mut bursts = Vec::new();
        let mut sessions = vec![0];
        let mut end = 0;
        for script in scripts {
            for burst in &script.bursts {
                let first = end;
                end += burst.calls.len() as u32;
                bursts.push(Burst { first, end, think_s: burst.think_s });
            }
            sessions.push(bursts.len() as u32);
        }
        (!calls.is_empty()).then_some(Scripts { calls, bursts, sessions })
    }

    /// Number of bursts in the script of the `nth` session of the schedule.
    pub(super) fn bursts(&self, nth: u64) -> u32 {
        let (first, end) = self.session(nth);
        end.saturating_sub(first)
    }

    /// The burst with the index `burst` in the `nth` session. It is empty if the session has fewer bursts.
    pub(super) fn burst(&self, nth: u64, burst: u32) -> Burst {
        let (first, end) = self.session(nth);
        let found = (first.saturating_add(burst) < end).then(|| self.bursts.get((first + burst) as usize));
        found.flatten().copied().unwrap_or(Burst { first: 0, end: 0, think_s: None })
    }

    /// The next call of a burst. `left` is the number of calls of the burst that have not been made, including the next
    /// call.
    pub(super) fn call(&self, nth: u64, burst: u32, left: u32) -> CallSpec {
        let place = self.burst(nth, burst).end.saturating_sub(left.max(1));
        self.calls.get(place as usize).copied().unwrap_or(CallSpec::for_class(ClassId(0)))
    }

    /// The range of indices in `bursts` that belongs to the `nth` session. Sessions use the scripts in turn.
    fn session(&self, nth: u64) -> (u32, u32) {
        let scripts = self.sessions.len().saturating_sub(1).max(1) as u64;
        let place = (nth % scripts) as usize;
        match (self.sessions.get(place), self.sessions.get(place + 1)) {
            (Some(first), Some(end)) => (*first, *end),
            _ => (0, 0),
        }
    }
}
