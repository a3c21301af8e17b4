//! Recognizes saturated workers by their number: at the highest load, the server serves as many calls at once as one of
//! its programs has processes or threads.

use crate::server::programs::ProgramUsage;
use std::fmt;

/// Maximum difference between the predicted and the measured throughput of workers: the absolute value of the natural
/// logarithm of their ratio.
const MAX_DISTANCE: f64 = 0.1;
/// Maximum number of processes or threads of a program that may be workers. A program with more is assumed not to serve
/// one call per thread.
const MAX_WORKERS: u32 = 4096;

/// The processes or threads of a program that each serve one call at a time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WorkerGroup {
    /// Name of the program.
    pub program: String,
    /// Number of workers.
    pub size: u32,
    /// Whether the workers are processes or threads, and which of them do not serve calls.
    pub kind: WorkerKind,
}

/// Which processes or threads of a program count as workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerKind {
    Processes,
    /// All processes except one, the master process that starts the others.
    ProcessesBesideMaster,
    Threads,
    /// All threads except the main thread.
    ThreadsBesideMain,
}

impl fmt::Display for WorkerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WorkerKind::Processes => "processes",
            WorkerKind::ProcessesBesideMaster => "processes beside one that would be their master",
            WorkerKind::Threads => "threads",
            WorkerKind::ThreadsBesideMain => "threads beside one that would be its main",
        })
    }
}

/// The processes or threads whose predicted throughput as workers is closest to the measured `rate`. `None` if no
/// predicted throughput is close. `alone` is the duration of a call that does not wait, in seconds. `on_cpu` is the CPU
/// time in this duration, and `cpus` the number of CPUs.
pub(super) fn find_workers(
    programs: &[ProgramUsage],
    rate: f64,
    alone: f64,
    on_cpu: f64,
    cpus: u32,
) -> Option<WorkerGroup> {
    let distance = |size: u32| (throughput(size, alone, on_cpu, cpus) / rate).ln().abs();
    let workers_of = |program: &ProgramUsage| {
        let processes = program.processes;
        let threads = program.threads.unwrap_or(0);
        // The first kind that matches is used. A master process with workers comes first, because most servers with
        // many processes have one.
        let kinds = [
            (processes.saturating_sub(1), WorkerKind::ProcessesBesideMaster),
            (processes, WorkerKind::Processes),
            (threads.saturating_sub(1), WorkerKind::ThreadsBesideMain),
            (threads, WorkerKind::Threads),
        ];
        kinds.into_iter().find_map(|(size, kind)| {
            let size = u32::try_from(size).ok().filter(|size| (1..=MAX_WORKERS).contains(size))?;
            (distance(size) <= MAX_DISTANCE).then(|| WorkerGroup { program: program.name.clone(), size, kind })
        })
    };
    let groups = programs.iter().filter_map(workers_of);
    groups.min_by(|a, b| distance(a.size).total_cmp(&distance(b.size)))
}

/// Whether the program has a single thread that serves calls, in addition to at most one master process.
pub(super) fn has_one_worker(program: &ProgramUsage) -> bool {
    program.threads.is_some_and(|threads| threads == program.processes && threads <= 2)
}

/// Throughput in calls per second of workers that wait only for the CPUs (mean value analysis: Reiser & Lavenberg 1980;
/// several CPUs as in Seidmann, Schweitzer & Shalev-Oren 1987). The arguments are those of [`find_workers`].
pub(super) fn throughput(workers: u32, alone: f64, on_cpu: f64, cpus: u32) -> f64 {
    let queued = on_cpu / f64::from(cpus);
    let delay = (alone - queued).max(0.0);
    let mut rate = 0.0;
    let mut queue = 0.0;
    for n in 1..=workers {
        let residence = queued * (1.0 + queue);
        rate = f64::from(n) / (delay + residence);
        queue = rate * residence;
    }
    rate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(processes: u64, threads: u64) -> ProgramUsage {
        ProgramUsage { name: "php-fpm8.2".to_owned(), processes, threads: Some(threads), ..ProgramUsage::default() }
    }

    #[test]
    fn workers_are_recognized_by_their_number() {
        // Eight workers share one CPU. A call occupies a worker for 20 ms, of which 1 ms is CPU time.
        let rate = 0.98 * throughput(8, 0.02, 0.001, 1);
        let found = |program: ProgramUsage| {
            find_workers(&[program], rate, 0.02, 0.001, 1).map(|workers| (workers.size, workers.kind))
        };
        assert_eq!(found(program(8, 8)), Some((8, WorkerKind::Processes)));
        assert_eq!(found(program(9, 9)), Some((8, WorkerKind::ProcessesBesideMaster)));
        assert_eq!(found(program(1, 8)), Some((8, WorkerKind::Threads)));
        assert_eq!(found(program(1, 9)), Some((8, WorkerKind::ThreadsBesideMain)));
        assert_eq!(found(program(1, 12)), None);
        assert_eq!(found(program(5, 5)), None);
    }

    #[test]
    fn workers_wait_for_the_cpus() {
        // Each of ten workers needs a CPU for half of its time. Together they saturate one CPU, but not quite two.
        assert!((throughput(10, 0.002, 0.001, 1) - 1000.0).abs() < 1.0);
        let two = throughput(10, 0.002, 0.001, 2);
        assert!((1900.0..2000.0).contains(&two), "{two}");
        assert!((throughput(4, 0.02, 0.0, 1) - 200.0).abs() < 1e-9);
    }
}
