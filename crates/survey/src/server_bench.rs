//! The bench that is real: a server on this host, kept on its CPUs, loaded by this process or a crew and watched by its
//! monitor.

use crate::SurveyError;
use crate::bench::Bench;
use crate::server::{Server, is_alive, truth};
use brimful_core::record::{ClientCalibration, Record};
use brimful_core::workload::Workload;
use brimful_core::{Bytes, Nanos};
use brimful_engine::Address;
use brimful_run::{Crew, RunPlan, Watched, client_limit, run};
use brimful_target::Truth;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Connections that keep-alive runs find open, per server CPU: a survey is about a server in operation, not about the
/// storm of attempts with which a high rate would begin.
const WARM_CONNECTIONS: u64 = 32;

/// How often the server is looked at in a run, and how fine the course of a Record is: a host may stop for some hundredths
/// of a second, and the queue that this leaves takes longer to go.
const INTERVAL: Nanos = Nanos(31_250_000);
/// A rest is looked up from so often, to see whether the survey is to end.
const LOOK: Duration = Duration::from_millis(50);

/// A running server, and how it is loaded.
pub(crate) struct ServerBench<'a> {
    like: RunPlan,
    server: Server,
    crew: Option<Crew>,
    stop: &'a AtomicBool,
}

impl<'a> ServerBench<'a> {
    /// Loads are made as `like` says, but for the workload, the window and the seed; by the crew if there is one.
    pub fn new(like: RunPlan, server: Server, crew: Option<Crew>, stop: &'a AtomicBool) -> ServerBench<'a> {
        let mut bench = ServerBench { like, server, crew, stop };
        let warm = WARM_CONNECTIONS * bench.server.cpus.len().max(1) as u64;
        bench.like.connections.warm_connections = warm;
        if bench.like.tls.is_some() {
            // A handshake costs a server as much as many calls. If each call that finds all connections taken brought one,
            // a server that is late for a moment would get no further, and what is measured were handshakes.
            bench.like.connections.most_per_shard = Some(warm.div_ceil(bench.like.threads));
        }
        bench.like.calls = u64::MAX;
        bench
    }

    /// The monitor keeps off the server's CPUs.
    fn watched(&self, interval: Nanos) -> Option<Watched> {
        self.server.watched(interval, self.like.cpus.first().copied())
    }
}

impl Bench for ServerBench<'_> {
    fn client_limit(
        &mut self,
        response: Bytes,
        note: &mut dyn FnMut(String),
    ) -> Result<ClientCalibration, SurveyError> {
        let calibration = match &mut self.crew {
            Some(crew) => crew.client_limit(&self.like, self.stop)?,
            None => {
                let found = client_limit::find(&self.like, response, self.server.cpus_here(), self.stop, note)?;
                found.calibration.unwrap_or_default()
            }
        };
        self.like.client_max = calibration.limit();
        Ok(calibration)
    }

    fn watch_idle(&mut self, lasts: Nanos) -> Result<brimful_core::server::Server, SurveyError> {
        let Some(watched) = self.watched(INTERVAL) else { return Ok(Default::default()) };
        let monitor = watched.start()?;
        self.rest(lasts);
        Ok(monitor.finish(Nanos::ZERO, None))
    }

    fn measure(&mut self, workload: &Workload, window: Nanos, seed: u64) -> Result<Record, SurveyError> {
        let monitor = self.watched(INTERVAL);
        let plan =
            RunPlan { workload: workload.clone(), window, seed, interval: INTERVAL, monitor, ..self.like.clone() };
        Ok(match &mut self.crew {
            Some(crew) => crew.run(&plan, self.stop)?,
            None => run(&plan, self.stop)?,
        })
    }

    fn schedule(&self, workload: &Workload, window: Nanos, seed: u64) -> Result<Vec<(f64, usize)>, SurveyError> {
        let plan = RunPlan { workload: workload.clone(), window, seed, ..self.like.clone() };
        let calls = plan.schedule().map_err(SurveyError::from)?;
        Ok(calls.map(|(due, class)| (due.as_secs_f64(), usize::from(class.0))).collect())
    }

    fn limit(&mut self, cpus: Option<f64>) -> Result<(), SurveyError> {
        self.server.limit(cpus)
    }

    fn rest(&mut self, lasts: Nanos) {
        let until = Instant::now() + Duration::from(lasts);
        while !self.is_interrupted()
            && let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
        {
            std::thread::sleep(left.min(LOOK));
        }
    }

    fn is_alive(&self) -> bool {
        self.like.endpoint.addresses().filter_map(Address::tcp).any(is_alive)
    }

    fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn truth(&self) -> Option<Truth> {
        truth(self.like.endpoint.address.tcp()?)
    }
}
