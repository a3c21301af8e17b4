//! Loads and monitors a real server. The load comes from this process, or from several generator processes (shards)
//! that a [`SurveyFleet`] starts.

use crate::SurveyError;
use crate::bench::{Answer, Bench, IdleConnections, Pool};
use crate::first_look;
use crate::server::{Server, fetch_reference_cpu_times, is_alive};
use brimful_core::panics::lock;
use brimful_core::record::{ClientCalibration, Record};
use brimful_core::slo::Measure;
use brimful_core::workload::{Load, Workload};
use brimful_core::{Bytes, End, Nanos, Rate, StopCondition};
use brimful_engine::Address;
use brimful_run::{
    CallHook, Exchange, LoadOptions, MonitorTarget, ResultsSoFar, RunObserver, RunOptions, RunPlan, StopConditions,
    SurveyFleet, client_limit, run,
};
use brimful_stats::LiveProgress;
use brimful_target::ReferenceCpuTimes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Maximum number of bytes of a response that are read to find its header fields.
const HEAD_BYTES: usize = 16 * 1024;
/// Time by which the window of a run of single calls exceeds the timeout of its last call.
const TIMEOUT_MARGIN: Nanos = Nanos::from_millis(100);
/// Length of the intervals of the monitor and of a Record's time series: 1/32 s. A host may stop for some hundredths of
/// a second, and the intervals must show the resulting queue.
const INTERVAL: Nanos = Nanos(31_250_000);
/// An open load ends early if more than this share of its calls fails for [`GIVE_UP_HOLD`], so that a failing server is
/// not overloaded any longer.
const GIVE_UP_ERRORS: f64 = 0.5;
/// An open load ends early if most of its calls fail for this time.
const GIVE_UP_HOLD: Nanos = Nanos::from_secs(1);
/// Time between two checks, during a pause, of whether the user has interrupted the survey.
const INTERRUPT_CHECK: Duration = Duration::from_millis(50);

/// A real server, and the means to load and monitor it.
pub(crate) struct ServerBench<'a> {
    /// The options of all runs, except for workload, window and seed.
    template: RunOptions,
    /// Receives the results of a running measurement, for the display; `None` without a display.
    live: Option<Arc<LiveProgress>>,
    server: Server,
    fleet: Option<SurveyFleet>,
    stop: &'a AtomicBool,
    /// Maximum number of threads of the load generator.
    max_threads: u64,
}

impl<'a> ServerBench<'a> {
    /// Creates the bench. If there is a `fleet`, its generator processes (shards) generate the load; otherwise this
    /// process does.
    pub fn new(
        mut template: RunOptions,
        live: Option<Arc<LiveProgress>>,
        server: Server,
        fleet: Option<SurveyFleet>,
        stop: &'a AtomicBool,
    ) -> ServerBench<'a> {
        // No idle connections may be opened before a load until it is known whether they block other connections.
        template.server.connections.warm_connections = 0;
        template.load.calls = u64::MAX;
        let max_threads = template.generator.threads;
        ServerBench { template, live, server, fleet, stop, max_threads }
    }

    /// The options of a run by one thread of this process, without a monitor.
    fn simple_options(&self, load: Load, calls: u64, window: Nanos) -> RunOptions {
        let mut options = self.template.clone().with_load(load);
        options.load.calls = calls;
        options.load.window = window;
        options.generator.threads = 1;
        options.monitor = None;
        options
    }

    /// Plans a run of this workload.
    fn plan(&self, workload: &Workload, window: Nanos, seed: u64) -> Result<RunPlan, SurveyError> {
        let mut options = self.template.clone();
        options.load = LoadOptions { workload: workload.clone(), window, seed, ..options.load };
        options.monitor = self.watched();
        options.record.interval = INTERVAL;
        Ok(RunPlan::new(options)?)
    }

    /// The processes or the remote monitor to observe during a load. The monitor's thread is pinned to a CPU of the
    /// load generator, so that it does not use the server's CPUs.
    fn watched(&self) -> Option<MonitorTarget> {
        self.server.monitor_target(INTERVAL, self.template.generator.cpus.first().copied())
    }
}

/// The conditions that end an open load early. `None` for closed loads, which do not overload a server, and for loads
/// that last at most [`GIVE_UP_HOLD`].
fn give_up_conditions(workload: &Workload, window: Nanos) -> Result<Option<Arc<StopConditions>>, SurveyError> {
    if window <= GIVE_UP_HOLD || !matches!(workload.load, Some(Load::Open { .. })) {
        return Ok(None);
    }
    let measure = Measure::ErrorShare { class: None };
    let condition = StopCondition { measure, limit: GIVE_UP_ERRORS, hold: GIVE_UP_HOLD };
    let conditions = StopConditions::new(&[condition], workload).map_err(SurveyError::NotSurveyable)?;
    Ok(Some(Arc::new(conditions)))
}

impl Bench for ServerBench<'_> {
    fn client_limit(
        &mut self,
        response: Bytes,
        needed: Option<f64>,
        note: &mut dyn FnMut(String),
    ) -> Result<ClientCalibration, SurveyError> {
        let calibration = match &mut self.fleet {
            Some(fleet) => fleet.client_limit(&self.template, self.stop)?,
            None => {
                let cpus = self.server.local_cpus();
                let found = client_limit::measure(&self.template, response, needed, cpus, self.stop, note)?;
                found.calibration.unwrap_or_default()
            }
        };
        self.template.generator.max_rate = calibration.limit();
        Ok(calibration)
    }

    fn answer(&mut self) -> Result<Option<Answer>, SurveyError> {
        let last_answer: Arc<Mutex<Option<Answer>>> = Arc::default();
        let sink = Arc::clone(&last_answer);
        let url = self.template.server.endpoint.url.clone();
        let call_hook = CallHook::new(HEAD_BYTES, move |exchange: &Exchange| {
            let (End::Completed { status } | End::Unexpected { status }) = exchange.outcome.end else { return };
            let answer = first_look::parse_answer(status, &exchange.response.bytes, &url);
            *lock(&sink) = Some(answer);
        });
        let load = Load::Closed { clients: 1, think: Nanos::ZERO };
        let window = self.template.server.connections.response_timeout + TIMEOUT_MARGIN;
        let plan = RunPlan::new(self.simple_options(load, 1, window))?;
        run(&plan, &RunObserver { call_hook: Some(call_hook), ..RunObserver::default() }, self.stop)?;
        Ok(lock(&last_answer).take())
    }

    fn open_idle_connections(&mut self, hold: &IdleConnections) -> Result<u64, SurveyError> {
        // If all connections should be opened at once, they are opened within a millisecond.
        let seconds = hold.opening_time.as_secs_f64().max(1e-3);
        let rate = Rate(hold.connections as f64 / seconds);
        let load = Load::Open { rate, arrivals: "constant".to_owned() };
        let window = Nanos::from_secs_f64(seconds) + hold.timeout + TIMEOUT_MARGIN;
        let mut options = self.simple_options(load, hold.connections, window);
        let policy = &mut options.server.connections;
        policy.keeps_connections_open = true;
        policy.max_per_shard = None;
        policy.warm_connections = hold.idle;
        policy.response_timeout = hold.timeout.min(policy.response_timeout);
        policy.connect_timeout = Some(hold.timeout);
        let counts = run(&RunPlan::new(options)?, &RunObserver::default(), self.stop)?.record.counts;
        Ok(counts.completed + counts.unexpected)
    }

    fn use_connections(&mut self, pool: Pool) -> Result<(), SurveyError> {
        let shards = self.fleet.as_ref().map_or(1, SurveyFleet::shards);
        if let Some(size) = pool.size.filter(|size| *size < shards) {
            return Err(SurveyError::NotSurveyable(format!(
                "the load has {} at once, and each of {shards} shards needs one: give --shards {size} at most",
                if size == 1 { "one connection".to_owned() } else { format!("{size} connections") },
            )));
        }
        let threads = pool.size.map_or(self.max_threads, |size| self.max_threads.min(size / shards));
        self.template.generator.threads = threads;
        let policy = &mut self.template.server.connections;
        policy.max_per_shard = pool.size.map(|size| size / threads);
        policy.warm_connections = pool.opened_ahead;
        Ok(())
    }

    fn watch_idle(&mut self, duration: Nanos) -> Result<brimful_core::server::Server, SurveyError> {
        let Some(watched) = self.watched() else { return Ok(Default::default()) };
        let monitor = watched.start()?;
        self.rest(duration);
        Ok(monitor.finish(Nanos::ZERO, None))
    }

    fn measure(&mut self, workload: &Workload, window: Nanos, seed: u64) -> Result<Record, SurveyError> {
        let plan = self.plan(workload, window, seed)?;
        Ok(match &mut self.fleet {
            Some(fleet) => fleet.run(&plan, self.stop)?,
            None => {
                let observer = RunObserver {
                    results_so_far: self.live.clone().map_or(ResultsSoFar::Unused, ResultsSoFar::Shown),
                    stop_when: give_up_conditions(workload, window)?,
                    ..RunObserver::default()
                };
                run(&plan, &observer, self.stop)?.record
            }
        })
    }

    fn schedule(&self, workload: &Workload, window: Nanos, seed: u64) -> Result<Vec<(f64, usize)>, SurveyError> {
        let calls = self.plan(workload, window, seed)?.schedule()?;
        Ok(calls.map(|(due, class)| (due.as_secs_f64(), usize::from(class.0))).collect())
    }

    fn set_cpu_quota(&mut self, cpus: Option<f64>) -> Result<(), SurveyError> {
        self.server.set_cpu_quota(cpus)
    }

    fn rest(&mut self, duration: Nanos) {
        let end = Instant::now() + Duration::from(duration);
        while !self.is_interrupted()
            && let Some(remaining) = end.checked_duration_since(Instant::now()).filter(|remaining| !remaining.is_zero())
        {
            std::thread::sleep(remaining.min(INTERRUPT_CHECK));
        }
    }

    fn is_alive(&self) -> bool {
        self.template.server.endpoint.addresses().filter_map(Address::tcp).any(is_alive)
    }

    fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn reference_cpu_times(&self) -> Option<ReferenceCpuTimes> {
        fetch_reference_cpu_times(self.template.server.endpoint.address.tcp()?)
    }
}
