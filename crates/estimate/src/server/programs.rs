//! The server's programs, and in which of them a call spends its CPU time. Programs that share CPUs are one queueing
//! station: two on the same CPUs would promise capacity that is not there.

use super::ServerFit;
use super::blocks::{Piece, Place, Replayed};
use crate::least_squares::t95;
use brimful_core::server::{Program, Server};
use brimful_core::survey::ProgramDemand;

/// One program while load was offered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramSeen {
    /// Its name.
    pub name: String,
    /// Busy CPUs.
    pub cores: f64,
    /// How many processes it has.
    pub processes: u64,
    /// How many threads these have together; `None` where that cannot be seen.
    pub threads: Option<u64>,
    /// How many CPUs a quota leaves it, where that was used up most of the time.
    pub quota: Option<f64>,
}

/// In more of its periods than this a quota is used up that is what is full.
const USED_UP: f64 = 0.5;

impl ProgramSeen {
    /// The programs that a monitor saw, while all of them together kept so many CPUs busy in the time that counts.
    pub fn of(server: &Server, busy: f64) -> Vec<ProgramSeen> {
        let all: f64 = server.process.iter().map(|program| program.cores).sum();
        let scale = if all > 0.0 { busy / all } else { 1.0 };
        let mut seen: Vec<ProgramSeen> = Vec::new();
        for Program { name, cores, processes, threads, quota, .. } in &server.process {
            let cores = cores * scale;
            let quota = quota.as_ref().filter(|quota| quota.throttled_periods > USED_UP).map(|quota| quota.cpus);
            match seen.iter_mut().find(|program| program.name == *name) {
                Some(program) => {
                    program.cores += cores;
                    program.processes += processes;
                    program.threads = program.threads.zip(*threads).map(|(a, b)| a + b);
                    program.quota = program.quota.or(quota);
                }
                None => {
                    let (processes, threads) = (*processes, *threads);
                    seen.push(ProgramSeen { name: name.clone(), cores, processes, threads, quota });
                }
            }
        }
        seen
    }
}

/// The programs of pieces that were observed for so many seconds together, each with the most processes that it had.
pub(super) fn pooled(pieces: &[&Piece], seconds: f64) -> Vec<ProgramSeen> {
    let mut programs: Vec<ProgramSeen> = Vec::new();
    for piece in pieces {
        for seen in &piece.programs {
            let cores = seen.cores * piece.seconds / seconds;
            match programs.iter_mut().find(|program| program.name == seen.name) {
                Some(program) => {
                    program.cores += cores;
                    program.processes = program.processes.max(seen.processes);
                    program.threads = program.threads.max(seen.threads);
                    program.quota = program.quota.or(seen.quota);
                }
                None => programs.push(ProgramSeen { cores, ..seen.clone() }),
            }
        }
    }
    programs
}

impl ServerFit {
    /// What a call of the mix costs in each program while clients leave the server no rest, the costliest first. `idle`
    /// has the busy CPUs of each program without calls. Nothing where programs cannot be seen.
    pub fn programs(&self, idle: &[ProgramSeen]) -> Vec<ProgramDemand> {
        let most = self.places.iter().rev().find(|(place, _)| matches!(place, Place::Clients(_)));
        let Some((place, most)) = most else { return Vec::new() };
        let in_blocks = |name: &str| -> Vec<f64> {
            self.blocks.iter().filter_map(|block| cost_in(block, *place, name, idle)).collect()
        };
        let all: f64 = most.piece.programs.iter().filter_map(|program| mean(&in_blocks(&program.name))).sum();
        let demand = |program: &ProgramSeen| {
            let costs = in_blocks(&program.name);
            let demand_s = mean(&costs)?;
            Some(ProgramDemand {
                name: program.name.clone(),
                demand_s,
                ci95_half_width: half_width(&costs, demand_s),
                share: demand_s / all,
                processes: program.processes,
            })
        };
        let mut demands: Vec<ProgramDemand> = most.piece.programs.iter().filter_map(demand).collect();
        if all <= 0.0 {
            demands.clear();
        }
        demands.sort_by(|a, b| b.demand_s.total_cmp(&a.demand_s));
        demands
    }
}

/// CPU seconds of a call in the program of that name at a place of a block.
fn cost_in(block: &[Replayed], place: Place, name: &str, idle: &[ProgramSeen]) -> Option<f64> {
    let piece =
        block.iter().map(|replayed| &replayed.piece).find(|piece| piece.place == place && piece.rate() > 0.0)?;
    let without_calls = idle.iter().find(|program| program.name == name).map_or(0.0, |program| program.cores);
    let beyond = |program: &ProgramSeen| (program.cores - without_calls).max(0.0);
    piece.programs.iter().find(|program| program.name == name).map(|program| beyond(program) / piece.rate())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Of the 95 % interval of a mean.
fn half_width(values: &[f64], mean: f64) -> Option<f64> {
    let n = values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| t95(values.len() - 1) * (squares / (n - 1.0) / n).sqrt())
}
