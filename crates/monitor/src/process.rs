//! Process group: the server's programs. `tree.rs` finds their processes, `program.rs` derives the metrics.

use crate::MonitorError;
use crate::group::{Group, PeriodMetrics, WatchContext};
use crate::program::{self, Membership, ProgramSample};
use crate::tree::ProcessTree;
use brimful_core::Nanos;
use brimful_core::server::{CpuQuota, Program, Programs, Server, ServerInterval};
use std::collections::BTreeMap;

/// The group of metrics `process`, which are about the server's programs.
pub enum ProcessGroup {}

impl Group for ProcessGroup {
    type Watch = ProcessTree;
    /// One sample for each program, in the order of the selectors.
    type Sample = Vec<ProgramSample>;
    /// The metrics of each program, except programs whose processes are hidden or belong to another program
    /// ([`Membership`]).
    type Metrics = Programs;

    fn open(site: &mut WatchContext<'_>) -> Result<Option<ProcessTree>, MonitorError> {
        if site.processes.is_empty() {
            site.mark_absent("process", "no process was named");
            return Ok(None);
        }
        ProcessTree::watch(site.root, site.processes, site.ports, site.netns, site.ebpf).map(Some)
    }

    fn read(watch: &mut ProcessTree, _: &mut Vec<u8>) -> Vec<ProgramSample> {
        watch.read()
    }

    fn sources(watch: &ProcessTree, sources: &mut BTreeMap<String, String>) {
        watch.sources(sources);
    }

    fn since(earlier: &Vec<ProgramSample>, later: &Vec<ProgramSample>, over: Nanos) -> Programs {
        ProcessGroup::over(&[earlier, later], over)
    }

    fn over(samples: &[&Vec<ProgramSample>], over: Nanos) -> Programs {
        let (first, last) = (samples[0], samples[samples.len() - 1]);
        let figures = |index: usize, later: &ProgramSample| {
            let mean = program::means(samples.iter().filter_map(|sample| sample.get(index)));
            Some(Program { mean, ..later.since(first.get(index)?, over) })
        };
        let own = last.iter().enumerate().filter(|(_, later)| later.membership == Membership::Own);
        Programs { process: own.filter_map(|(index, later)| figures(index, later)).collect() }
    }

    fn put(period: PeriodMetrics<Programs>, _: &[&Vec<ProgramSample>], length: Nanos, server: &mut Server) {
        let seen = period.length().as_secs_f64();
        let factor = if seen > 0.0 { length.as_secs_f64() / seen } else { 1.0 };
        server.process = period.metrics.process.into_iter().map(|process| scaled(process, factor)).collect();
    }

    fn put_interval(period: &PeriodMetrics<Programs>, _: &Vec<ProgramSample>, interval: &mut ServerInterval) {
        let (programs, seconds) = (&period.metrics.process, period.length().as_secs_f64());
        if programs.is_empty() || seconds <= 0.0 {
            return;
        }
        let per_s = |figure: fn(&Program) -> Option<f64>| -> Option<f64> {
            programs.iter().map(figure).sum::<Option<f64>>().map(|total| total / seconds)
        };
        interval.process_cores = per_s(|program| Some(program.cpu_s));
        interval.process_cores_user = per_s(|program| Some(program.cpu_s_user));
        interval.run_queue_wait = per_s(|program| program.run_queue_wait_s);
    }
}

fn scaled(process: Program, factor: f64) -> Program {
    let count = |n: u64| (n as f64 * factor).round() as u64;
    Program {
        cpu_s: process.cpu_s * factor,
        cpu_s_user: process.cpu_s_user * factor,
        cpu_s_system: process.cpu_s_system * factor,
        run_queue_wait_s: process.run_queue_wait_s.map(|wait| wait * factor),
        major_faults: process.major_faults.map(count),
        context_switches: process.context_switches.map(count),
        quota: process.quota.map(|quota| CpuQuota { throttled_s: quota.throttled_s * factor, ..quota }),
        ..process
    }
}
