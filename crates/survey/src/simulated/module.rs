//! Simulates the Server Module, which measures requests inside of a server.

use brimful_core::model::{Model, ModelClass};
use brimful_core::server::{Module, ModuleClass, ModuleServer, Sampled};

/// A Server Module of a simulated server, which measures the CPU time of one request in 16.
#[derive(Clone, Copy)]
pub(super) struct SimulatedModule {
    /// CPU time of each request that the Server Module does not measure, in seconds.
    pub outside_s: f64,
    /// Index of the station that represents the workers; `None` for the first station.
    pub workers: Option<usize>,
}

impl SimulatedModule {
    /// The Server Module's measurements of these calls (arrival times, and classes). `work` is the busy time of each
    /// station in seconds, and `seconds` the duration of the load.
    pub fn measurements(self, server: &Model, calls: &[(f64, usize)], work: &[f64], seconds: f64) -> Module {
        let cpu = &server.stations[0];
        let class = |(index, class): (usize, &ModelClass)| {
            let requests = calls.iter().filter(|(_, class)| *class == index).count() as u64;
            let demand = server.demands[0][index];
            let cpu_us = Sampled {
                count: requests / 16,
                mean: (demand - self.outside_s) * 1e6,
                stddev: demand * cpu.scv.sqrt() * 1e6,
            };
            ModuleClass { name: class.name.clone(), requests, cpu_us: Some(cpu_us), ..ModuleClass::default() }
        };
        let limited = self.workers.map(|station| (server.stations[station].servers, work[station] / seconds));
        Module {
            servers: vec![ModuleServer {
                workers: limited.map_or(cpu.servers, |(most, _)| most).into(),
                max_workers: limited.map(|(most, _)| most.into()),
                workers_busy: limited.map(|(_, busy)| busy),
                ..ModuleServer::default()
            }],
            classes: server.classes.iter().enumerate().map(class).collect(),
        }
    }
}
