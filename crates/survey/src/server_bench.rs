//! The bench that is real: a server on this host, kept on its CPUs, loaded by this process or a crew and watched by its
//! monitor.

use crate::SurveyError;
use crate::bench::{Answer, Bench, Hold};
use crate::connections::Pool;
use crate::first_look;
use crate::server::{Server, is_alive, truth};
use brimful_core::record::{ClientCalibration, Record};
use brimful_core::workload::{Load, Workload};
use brimful_core::{Bytes, End, Nanos, Rate};
use brimful_engine::Address;
use brimful_run::{Crew, Exchange, Looks, RunPlan, Tap, Watched, client_limit, run, run_beheld};
use brimful_target::Truth;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Of an answer so much is read to see where it leads.
const HEAD: usize = 16 * 1024;
/// How long one call, or a run that holds connections, lasts beyond the answers.
const SPARE: Nanos = Nanos::from_millis(100);

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
    /// Threads that the load may have.
    threads: u64,
}

impl<'a> ServerBench<'a> {
    /// Loads are made as `like` says, but for the workload, the window and the seed; by the crew if there is one.
    pub fn new(like: RunPlan, server: Server, crew: Option<Crew>, stop: &'a AtomicBool) -> ServerBench<'a> {
        let threads = like.threads;
        let mut bench = ServerBench { like, server, crew, stop, threads };
        // More is not known to be harmless until the survey has found out.
        bench.like.connections.warm_connections = 0;
        bench.like.calls = u64::MAX;
        bench
    }

    /// A run by this process and one thread of it, unwatched.
    fn plain(&self, load: Load, calls: u64, window: Nanos) -> RunPlan {
        let plan = self.like.clone().with_load(load);
        RunPlan { calls, window, threads: 1, monitor: None, live: None, ..plan }
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

    fn answer(&mut self) -> Result<Option<Answer>, SurveyError> {
        let seen: Arc<Mutex<Option<Answer>>> = Arc::default();
        let (into, url) = (Arc::clone(&seen), self.like.endpoint.url.clone());
        let tap = Tap::new(HEAD, move |exchange: &Exchange| {
            let (End::Completed { status } | End::Unexpected { status }) = exchange.outcome.end else { return };
            let answer = first_look::read(status, &exchange.response.bytes, &url);
            *into.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        });
        let load = Load::Closed { clients: 1, think: Nanos::ZERO };
        let window = self.like.connections.response_timeout + SPARE;
        run_beheld(&self.plain(load, 1, window), &Looks { detail: false, tap: Some(tap) }, self.stop)?;
        Ok(seen.lock().unwrap_or_else(PoisonError::into_inner).take())
    }

    fn hold(&mut self, hold: &Hold) -> Result<u64, SurveyError> {
        // All at once is within a millisecond.
        let seconds = hold.lasts.as_secs_f64().max(1e-3);
        let rate = Rate(hold.connections as f64 / seconds);
        let load = Load::Open { rate, arrivals: "constant".to_owned() };
        let window = Nanos::from_secs_f64(seconds) + hold.patience + SPARE;
        let mut plan = self.plain(load, hold.connections, window);
        let policy = &mut plan.connections;
        (policy.holds, policy.max_per_shard, policy.warm_connections) = (true, None, hold.idle);
        policy.response_timeout = hold.patience.min(policy.response_timeout);
        policy.connect_timeout = Some(hold.patience);
        let counts = run(&plan, self.stop)?.counts;
        Ok(counts.completed + counts.unexpected)
    }

    fn use_connections(&mut self, pool: Pool) -> Result<(), SurveyError> {
        let shards = self.crew.as_ref().map_or(1, Crew::shards);
        if let Some(most) = pool.most.filter(|most| *most < shards) {
            return Err(SurveyError::Unfit(format!(
                "the load has {} at once, and each of {shards} shards needs one: give --shards {most} at most",
                if most == 1 { "one connection".to_owned() } else { format!("{most} connections") },
            )));
        }
        let like = &mut self.like;
        like.threads = pool.most.map_or(self.threads, |most| self.threads.min(most / shards));
        like.connections.max_per_shard = pool.most.map(|most| most / like.threads);
        like.connections.warm_connections = pool.warm;
        Ok(())
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
