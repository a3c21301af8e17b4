//! Measures real servers: each slice is a separate run of the load generator.

use crate::AbError;
use crate::bench::{Arm, Bench, Slice, main_problem};
use crate::process::ServerProcess;
use brimful_core::Nanos;
use brimful_core::record::Record;
use brimful_core::workload::Load;
use brimful_monitor::{PinGuard, ProcessSelector, ProcessTree, online_cpus, pin_tree};
use brimful_run::{Guardian, RunObserver, RunOptions, RunPlan, ServerChange, run};
use brimful_stats::SliceMetrics;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Minimum number of CPUs to measure two servers at the same time: one for each server, and one for the load generator
/// of each.
const DUET_CPUS: usize = 4;

/// A server, and the options of its runs.
#[derive(Debug)]
pub(crate) struct LoadedServer {
    /// Name of the server in error messages: `A`, `B` or `A's second process`.
    pub side: &'static str,
    /// The server's URL or command.
    pub name: String,
    /// Options of a run against this server.
    pub options: RunOptions,
    /// The server's process, if brimful started it.
    pub process: Option<ServerProcess>,
    /// All processes of the server, to measure its CPU time; `None` if they cannot be found.
    tree: Option<ProcessTree>,
}

impl LoadedServer {
    /// Finds the processes of the server, so that its CPU time can be measured.
    pub fn new(side: &'static str, name: String, options: RunOptions, process: Option<ServerProcess>) -> LoadedServer {
        let selector = match (&process, options.server.endpoint.address.tcp()) {
            (Some(process), _) => Some(ProcessSelector::Pid(process.pid())),
            // Binding succeeds only for an address of this host, so the server runs here and its processes can be
            // found.
            (None, Some(address)) if UdpSocket::bind((address.ip(), 0)).is_ok() => {
                Some(ProcessSelector::Port(address.port()))
            }
            _ => None,
        };
        // Ignore errors: if the processes are not found, CPU time is not measured, but other metrics are.
        let tree = selector.and_then(|selector| ProcessTree::open(&[selector], &[]).ok());
        LoadedServer { side, name, options, process, tree }
    }

    /// Runs the load generator for one slice. If `cpus` is empty, the load generator uses the CPUs of the run's
    /// options.
    fn measure(&mut self, load: &Load, cpus: &[usize], seed: u64, stop: &AtomicBool) -> Result<Slice, AbError> {
        let mut options = self.options.clone().with_load(load.clone());
        options.load.seed = seed;
        if !cpus.is_empty() {
            options.generator.cpus = cpus.to_vec();
        }
        let plan = RunPlan::new(options)?;
        let before = self.tree.as_mut().map(ProcessTree::cpu_ns);
        let record = run(&plan, &RunObserver::default(), stop)?.record;
        let after = self.tree.as_mut().map(ProcessTree::cpu_ns);
        let cpu_s = before.zip(after).map(|(before, after)| after.saturating_sub(before) as f64 / 1e9);
        if record.counts.completed == 0 && !stop.load(Ordering::Relaxed) {
            return Err(self.no_answer_error(&record));
        }
        Ok(slice(&record, cpu_s))
    }

    /// The error for a slice without completed calls.
    fn no_answer_error(&mut self, record: &Record) -> AbError {
        let started = self.process.as_mut().and_then(|process| process.error_if_ended("during the measurement"));
        let counts = &record.counts;
        started.unwrap_or_else(|| AbError::NoAnswer {
            side: self.side,
            name: self.name.clone(),
            when: String::new(),
            why: format!(
                "of {} calls, {} were refused, {} reset and {} timed out; check that the server runs, and raise --slice if \
                 its answers take longer than that",
                counts.scheduled, counts.refused, counts.reset, counts.timed_out
            ),
        })
    }
}

fn slice(record: &Record, cpu_s: Option<f64>) -> Slice {
    let problem = main_problem(record.verdict.reasons.iter()).cloned().filter(|_| !record.verdict.valid);
    Slice {
        metrics: SliceMetrics::from_record(record, cpu_s),
        problem,
        statuses: record.status_codes.clone(),
        bytes_per_call: record.bytes.received as f64 / record.counts.completed.max(1) as f64,
        server_software: record.server_software.clone(),
    }
}

/// The servers of a comparison, and the load that they receive.
pub(crate) struct ServerBench<'a> {
    a: LoadedServer,
    b: LoadedServer,
    /// The second process of A's command; `None` if the control is A itself.
    control: Option<LoadedServer>,
    load: Load,
    began: Instant,
    stop: &'a AtomicBool,
}

impl<'a> ServerBench<'a> {
    /// Starts the clock of a comparison of running servers.
    pub fn new(
        a: LoadedServer,
        b: LoadedServer,
        control: Option<LoadedServer>,
        stop: &'a AtomicBool,
    ) -> ServerBench<'a> {
        let load = Load::Closed { clients: 1, think: Nanos::ZERO };
        ServerBench { a, b, control, load, began: Instant::now(), stop }
    }

    fn server(&mut self, arm: Arm) -> &mut LoadedServer {
        match (arm, &mut self.control) {
            (Arm::B, _) => &mut self.b,
            (Arm::Control, Some(control)) => control,
            (Arm::A | Arm::Control, _) => &mut self.a,
        }
    }
}

impl Bench for ServerBench<'_> {
    fn set_load(&mut self, load: Load) {
        self.load = load;
    }

    fn measure(&mut self, arm: Arm, seed: u64) -> Result<Slice, AbError> {
        let (load, stop) = (self.load.clone(), self.stop);
        self.server(arm).measure(&load, &[], seed, stop)
    }

    fn measure_duet(&mut self, arms: [Arm; 2], is_swapped: bool, seed: u64) -> Result<[Slice; 2], AbError> {
        let (load, stop) = (self.load.clone(), self.stop);
        let other = match arms[1] {
            Arm::Control => self.control.as_mut(),
            _ => Some(&mut self.b),
        };
        let Some(other) = other else { return Err(AbError::NoDuet("A has no second process".to_owned())) };
        let [mut first, mut second] = duet_cpus(&online_cpus());
        if is_swapped {
            std::mem::swap(&mut first, &mut second);
        }
        let a = &mut self.a;
        let _pins = [pin(a, &first.server)?, pin(other, &second.server)?];
        thread::scope(|scope| {
            let beside = scope.spawn(|| other.measure(&load, &second.generator, seed, stop));
            let of_a = a.measure(&load, &first.generator, seed, stop);
            let of_other = beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok([of_a?, of_other?])
        })
    }

    fn duet_obstacle(&self) -> Option<String> {
        let cpus = online_cpus().len();
        let can_move = |server: &LoadedServer| server.tree.is_some() && server.process.is_some();
        if !(can_move(&self.a) && can_move(&self.b) && self.control.as_ref().is_some_and(can_move)) {
            Some("both servers must be started by commands (--a, --b)".to_owned())
        } else if cpus < DUET_CPUS {
            Some(format!("it needs {DUET_CPUS} CPUs, and this host has {cpus}"))
        } else {
            None
        }
    }

    fn elapsed(&self) -> Nanos {
        Nanos::from_secs_f64(self.began.elapsed().as_secs_f64())
    }

    fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// In a duet (two servers measured at the same time): the CPUs of one server, and the CPUs of its load generator.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DuetCpus {
    server: Vec<usize>,
    generator: Vec<usize>,
}

/// Divides the CPUs between two servers that are measured at the same time. Each server and each load generator gets a
/// quarter.
fn duet_cpus(cpus: &[usize]) -> [DuetCpus; 2] {
    let size = (cpus.len() / DUET_CPUS).max(1);
    let quarter = |index: usize| cpus.iter().copied().skip(index * size).take(size).collect::<Vec<_>>();
    [DuetCpus { server: quarter(0), generator: quarter(2) }, DuetCpus { server: quarter(1), generator: quarter(3) }]
}

fn pin(server: &LoadedServer, cpus: &[usize]) -> Result<Option<(PinGuard, Guardian)>, AbError> {
    let Some(tree) = &server.tree else { return Ok(None) };
    let mut guardian = Guardian::start().map_err(AbError::Guardian)?;
    let pin = pin_tree(tree, cpus, |former| guardian.set_undo(&ServerChange::Cpus(former.clone())))?;
    Ok(Some((pin, guardian)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_a_duet_do_not_overlap() {
        let [one, other] = duet_cpus(&[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((one.server, one.generator), (vec![0, 1], vec![4, 5]));
        assert_eq!((other.server, other.generator), (vec![2, 3], vec![6, 7]));
    }
}
