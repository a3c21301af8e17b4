//! CPU usage of the server's programs.

use brimful_core::server::{Program, Server};

/// CPU usage of one program of the server during a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramUsage {
    /// Name of the program.
    pub name: String,
    /// Mean number of CPUs that the program keeps busy.
    pub cores: f64,
    /// Number of the program's processes.
    pub processes: u64,
    /// Total number of the program's threads; `None` if the number cannot be read.
    pub threads: Option<u64>,
    /// The program's CPU quota, as a number of CPUs; `None` unless the quota was exhausted most of the time.
    pub quota: Option<f64>,
}

/// Minimum share of a quota's periods in which it is exhausted. Below it, the quota is not the bottleneck.
const EXHAUSTED: f64 = 0.5;

impl ProgramUsage {
    /// The server's programs that the monitor observed; programs with the same name are combined. Their CPU usage is
    /// scaled so that the sum is `busy`, the mean number of busy CPUs in the measurement window.
    pub fn from_server(server: &Server, busy: f64) -> Vec<ProgramUsage> {
        let all: f64 = server.process.iter().map(|program| program.cores).sum();
        let scale = if all > 0.0 { busy / all } else { 1.0 };
        let mut seen: Vec<ProgramUsage> = Vec::new();
        for Program { name, cores, processes, threads, quota, .. } in &server.process {
            let cores = cores * scale;
            let quota = quota.as_ref().filter(|quota| quota.throttled_periods > EXHAUSTED).map(|quota| quota.cpus);
            match seen.iter_mut().find(|program| program.name == *name) {
                Some(program) => {
                    program.cores += cores;
                    program.processes += processes;
                    program.threads = program.threads.zip(*threads).map(|(a, b)| a + b);
                    program.quota = program.quota.or(quota);
                }
                None => {
                    seen.push(ProgramUsage {
                        name: name.clone(),
                        cores,
                        processes: *processes,
                        threads: *threads,
                        quota,
                    });
                }
            }
        }
        seen
    }
}

/// Combines the programs of several measurements: mean CPU usage, and largest number of processes and threads. Each
/// measurement has a duration in seconds; `total_seconds` is the sum of the durations.
pub(super) fn pool<'a>(
    measurements: impl Iterator<Item = (&'a [ProgramUsage], f64)>,
    total_seconds: f64,
) -> Vec<ProgramUsage> {
    let mut programs: Vec<ProgramUsage> = Vec::new();
    for (seen_programs, seconds) in measurements {
        for seen in seen_programs {
            let cores = seen.cores * seconds / total_seconds;
            match programs.iter_mut().find(|program| program.name == seen.name) {
                Some(program) => {
                    program.cores += cores;
                    program.processes = program.processes.max(seen.processes);
                    program.threads = program.threads.max(seen.threads);
                    program.quota = program.quota.or(seen.quota);
                }
                None => programs.push(ProgramUsage { cores, ..seen.clone() }),
            }
        }
    }
    programs
}
