//! Workers by occupancy: whether as many calls are in the server, when it takes no more, as one of its programs has
//! processes or threads.

use crate::server::programs::ProgramSeen;
use std::fmt;

/// The throughput of as many workers as there are must be this close to what was measured.
const CLOSE: f64 = 0.1;
/// More processes than this are not one worker for each call.
const MOST_WORKERS: u32 = 4096;

/// The workers of a program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Crew {
    pub program: String,
    pub size: u32,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Processes,
    /// One more process is there, which starts the others.
    ProcessesBesideMaster,
    Threads,
    /// One more thread is there.
    ThreadsBesideMain,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Processes => "processes",
            Kind::ProcessesBesideMaster => "processes beside one that would be their master",
            Kind::Threads => "threads",
            Kind::ThreadsBesideMain => "threads beside one that would be its main",
        })
    }
}

/// The program whose workers, each busy with one call at a time, would come closest to this throughput: `alone` is how
/// long a call takes while nobody waits, `on_cpu` how long of that it is on a CPU, of which there are `cpus`.
pub(super) fn crew(programs: &[ProgramSeen], rate: f64, alone: f64, on_cpu: f64, cpus: u32) -> Option<Crew> {
    let off = |size: u32| (throughput(size, alone, on_cpu, cpus) / rate).ln().abs();
    let of_program = |program: &ProgramSeen| {
        let beside = |count: u64| count.saturating_sub(1);
        let (processes, threads) = (program.processes, program.threads.unwrap_or(0));
        // Where both may be, the others have a master: most servers of many processes do.
        let kinds = [
            (beside(processes), Kind::ProcessesBesideMaster),
            (processes, Kind::Processes),
            (beside(threads), Kind::ThreadsBesideMain),
            (threads, Kind::Threads),
        ];
        let crew = |(size, kind)| {
            let size = u32::try_from(size).ok().filter(|size| (1..=MOST_WORKERS).contains(size))?;
            (off(size) <= CLOSE).then(|| Crew { program: program.name.clone(), size, kind })
        };
        kinds.into_iter().find_map(crew)
    };
    let crews = programs.iter().filter_map(of_program);
    crews.min_by(|a, b| off(a.size).total_cmp(&off(b.size)))
}

/// Whether it has no more than one thread to serve with, but for a master.
pub(super) fn has_one_worker(program: &ProgramSeen) -> bool {
    program.threads.is_some_and(|threads| threads == program.processes && threads <= 2)
}

/// Of so many workers who wait for nothing but the CPUs (mean value analysis: Reiser & Lavenberg 1980; several CPUs as
/// by Seidmann, Schweitzer & Shalev-Oren 1987).
fn throughput(workers: u32, alone: f64, on_cpu: f64, cpus: u32) -> f64 {
    let queued = on_cpu / f64::from(cpus);
    let delay = (alone - queued).max(0.0);
    let (mut rate, mut queue) = (0.0, 0.0);
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

    fn program(processes: u64, threads: u64) -> ProgramSeen {
        ProgramSeen { name: "php-fpm8.2".to_owned(), processes, threads: Some(threads), ..ProgramSeen::default() }
    }

    #[test]
    fn workers_are_told_by_their_number() {
        // Eight workers, each 20 ms with a call of which 1 ms is on the one CPU.
        let rate = 0.98 * throughput(8, 0.02, 0.001, 1);
        let found = |program: ProgramSeen| crew(&[program], rate, 0.02, 0.001, 1).map(|crew| (crew.size, crew.kind));
        assert_eq!(found(program(8, 8)), Some((8, Kind::Processes)));
        assert_eq!(found(program(9, 9)), Some((8, Kind::ProcessesBesideMaster)));
        assert_eq!(found(program(1, 8)), Some((8, Kind::Threads)));
        assert_eq!(found(program(1, 9)), Some((8, Kind::ThreadsBesideMain)));
        assert_eq!(found(program(1, 12)), None);
        assert_eq!(found(program(5, 5)), None);
    }

    #[test]
    fn workers_wait_for_the_cpus() {
        // Ten of them, half of their time on one CPU, fill it; on two they do not quite.
        assert!((throughput(10, 0.002, 0.001, 1) - 1000.0).abs() < 1.0);
        let two = throughput(10, 0.002, 0.001, 2);
        assert!((1900.0..2000.0).contains(&two), "{two}");
        assert!((throughput(4, 0.02, 0.0, 1) - 200.0).abs() < 1e-9);
    }
}
