//! The whole loop, in the order that keeps it honest: client, calibration, fit, frozen predictions, and then the levels
//! that were predicted.

use crate::SurveyError;
use crate::level::{About, Measured, measure};
use crate::server::{DemoServer, Server, demo_service, is_alive, truth};
use brimful_core::model::Model;
use brimful_core::quantity;
use brimful_core::record::{Reason, ReasonCode};
use brimful_core::survey::{Level, Role, Stopped, Survey};
use brimful_core::workload::{Load, Workload};
use brimful_core::{Bytes, Nanos, Rate};
use brimful_engine::Progress;
use brimful_estimate::{CalibrationRun, Prediction, ServerFacts, ServerFit};
use brimful_monitor::{Monitor, ProcessSelector};
use brimful_run::{Endpoint, RunPlan, Watched, client_limit};
use brimful_target::Truth;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// Levels the model is fitted to, as fractions of the saturation rate as it is known by then.
const CALIBRATION: [f64; 3] = [0.2, 0.4, 0.6];
/// How often each of them is measured.
const REPLICATIONS: usize = 5;
/// Where each class is calibrated on its own, so that classes can be told apart.
const SINGLE_CLASS: [f64; 2] = [0.4, 0.6];
/// Length and greatest number of the short runs that find the capacity to take the levels from, and when they have.
const PILOT: Nanos = Nanos::from_millis(700);
const PILOTS: usize = 6;
const SETTLED: f64 = 0.06;
/// Levels that are predicted first, and how many times as long as a calibration run each lasts: queues near saturation
/// fluctuate for long, so their means need more calls.
const HELD_OUT: [(f64, f64); 5] = [(0.3, 1.0), (0.5, 1.5), (0.7, 3.0), (0.8, 3.0), (0.9, 3.0)];
/// Open levels past saturation.
const PAST_SATURATION: [f64; 2] = [1.1, 1.3];
/// What an open level past saturation may leave waiting: its length is cut so that the backlog stays below this.
const BACKLOG: f64 = 1000.0;
/// Clients of the closed level that finds the saturation rate: enough to keep every CPU busy all the time.
const SATURATING_CLIENTS: u64 = 32;
/// Connections that keep-alive runs find open, per server CPU: a survey is about a server in operation, not about the
/// storm of attempts with which a high rate would begin.
const WARM_CONNECTIONS: u64 = 32;
/// How long the idle server is watched before any load.
const IDLE: Nanos = Nanos::from_millis(1500);
/// Added to the seed of a level that is measured again, so that it gets another schedule.
const AGAIN: u64 = 1 << 32;
/// The first look at what a call costs.
const PROBE: Nanos = Nanos::from_millis(1000);

/// What a survey is told.
#[derive(Clone, Debug)]
pub struct SurveyPlan {
    /// Which server.
    pub subject: Subject,
    /// The load's shape; its endpoint, load and window are the survey's business.
    pub like: RunPlan,
    /// CPUs to keep the server on; none leaves it where it is.
    pub server_cpus: Option<Vec<usize>>,
    /// Length of a calibration run.
    pub level: Nanos,
    /// For the document.
    pub version: String,
}

/// The server to survey.
#[derive(Clone, Debug)]
pub enum Subject {
    /// One that is running on this host: its processes.
    Running(Vec<ProcessSelector>),
    /// The reference server, started for the survey, with demands that only it knows.
    Demo,
}

/// News of a survey under way.
#[derive(Clone, Debug)]
pub enum Step {
    /// Something began that lasts about this long.
    Begin(String, Nanos),
    /// Something worth knowing.
    Note(String),
    /// A level was measured.
    Level(Box<Level>),
}

/// The classes that `brimful target` serves in a demonstration with this seed, as a workload.
pub fn demo_classes() -> Workload {
    let class = |name: &str, weight: f64| brimful_core::workload::Class {
        name: name.to_owned(),
        weight,
        ..Workload::single("GET", &format!("/{name}")).classes.remove(0)
    };
    Workload { classes: vec![class("light", 0.8), class("heavy", 0.2)], load: None }
}

/// Surveys a server. Once the first level is measured there is always a document: what stopped it early is in it.
///
/// # Errors
/// [`SurveyError`] when the survey cannot begin.
pub fn survey(
    plan: &SurveyPlan,
    stop: &AtomicBool,
    progress: &Progress,
    news: &mut dyn FnMut(Step),
) -> Result<Survey, SurveyError> {
    // Which loads is the survey's business; whatever the workload says, it is another one.
    let mut like = plan.like.clone().with_load(Load::poisson(Rate(1.0)));
    let demo = match &plan.subject {
        Subject::Running(_) => None,
        Subject::Demo => {
            let cpu = plan.server_cpus.as_ref().and_then(|cpus| cpus.first().copied());
            let server = DemoServer::start(&demo_service(like.seed), cpu, like.seed)?;
            like.endpoint = Endpoint::resolve(&server.url, Nanos::from_secs(1))?;
            Some(server)
        }
    };
    let selectors = match (&plan.subject, &demo) {
        (Subject::Running(selectors), _) => selectors.clone(),
        (Subject::Demo, demo) => demo.iter().map(|demo| ProcessSelector::Pid(demo.pid())).collect(),
    };
    like.validate()?;
    let server = Server::find(&like.endpoint, selectors, plan.server_cpus.clone())?;
    let mut surveyor = Surveyor::new(plan, like, server, stop, progress, news);
    let outcome = surveyor.run();
    let survey = surveyor.finish(outcome.as_ref().err())?;
    match outcome {
        Err(Halt::Error(error)) if survey.levels.is_empty() => Err(error),
        _ => Ok(survey),
    }
}

/// Why a survey does not go on.
#[derive(Debug)]
pub(crate) enum Halt {
    Error(SurveyError),
    Stopped(ReasonCode, Stopped),
}

impl<E: Into<SurveyError>> From<E> for Halt {
    fn from(error: E) -> Halt {
        Halt::Error(error.into())
    }
}

pub(crate) struct Surveyor<'a> {
    pub(crate) plan: &'a SurveyPlan,
    pub(crate) like: RunPlan,
    pub(crate) server: Server,
    stop: &'a AtomicBool,
    progress: &'a Progress,
    news: &'a mut dyn FnMut(Step),
    pub(crate) started_at: SystemTime,
    /// Runs so far: gives each a seed of its own.
    runs: u64,
    pub(crate) client_max: Option<f64>,
    pub(crate) background: Option<f64>,
    calibration: Vec<CalibrationRun>,
    pub(crate) fit: Option<ServerFit>,
    pub(crate) frozen: Option<String>,
    /// What the reference server told before and after the closed level.
    pub(crate) truth: Option<(Truth, Truth)>,
    /// What the survey is at.
    pub(crate) step: String,
    pub(crate) levels: Vec<Level>,
    /// Throughput of the closed level, with its interval, if that level can be trusted.
    pub(crate) measured_saturation: Option<(f64, Option<f64>)>,
    pub(crate) reasons: Vec<Reason>,
}

impl<'a> Surveyor<'a> {
    fn new(
        plan: &'a SurveyPlan,
        like: RunPlan,
        server: Server,
        stop: &'a AtomicBool,
        progress: &'a Progress,
        news: &'a mut dyn FnMut(Step),
    ) -> Surveyor<'a> {
        let mut like = like;
        // The monitor keeps off the server's CPUs.
        like.monitor = Some(Watched::Here(server.monitor_config(like.cpus.first().copied())));
        like.connections.warm_connections = WARM_CONNECTIONS * u64::from(server.servers());
        Surveyor {
            plan,
            like,
            server,
            stop,
            progress,
            news,
            started_at: SystemTime::now(),
            runs: 0,
            client_max: None,
            background: None,
            calibration: Vec::new(),
            fit: None,
            frozen: None,
            truth: None,
            step: String::new(),
            levels: Vec::new(),
            measured_saturation: None,
            reasons: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), Halt> {
        let (probe, response) = self.probe()?;
        self.check_client(response)?;
        let idle_busy = self.watch_idle()?;
        self.calibrate(probe, idle_busy)?;
        let predictions = self.freeze()?;
        for (fraction, length, prediction) in predictions {
            self.held_out(fraction, length, &prediction)?;
        }
        self.saturate()
    }

    fn begin(&mut self, what: String, lasts: Nanos) {
        self.step.clone_from(&what);
        (self.news)(Step::Begin(what, lasts));
    }

    /// One client for a moment: does the server answer as it should, and what does a call roughly cost?
    fn probe(&mut self) -> Result<(f64, Bytes), Halt> {
        self.begin("a first look at the server".to_owned(), PROBE);
        let plan = self.run_plan(Load::Closed { clients: 1, think: Nanos::ZERO }, PROBE);
        let measured = self.measure_once(&plan)?;
        self.check(&measured)?;
        let counts = &measured.record.counts;
        if counts.status.s2xx + counts.status.s3xx == 0 {
            let what = format!(
                "the server answered all {} calls with an error status: check the path, or the classes of the workload",
                counts.completed
            );
            return Err(SurveyError::Unfit(what).into());
        }
        let demand = measured.used.cpu.as_secs_f64() / counts.completed as f64;
        if demand <= 0.0 {
            let what =
                "the processes named used no CPU while the server answered: name those that serve, with --process";
            return Err(SurveyError::Unfit(what.to_owned()).into());
        }
        Ok((demand, Bytes(measured.record.bytes.received / counts.completed)))
    }

    fn check_client(&mut self, response: Bytes) -> Result<(), Halt> {
        self.begin("what this client can offer before it is the limit itself".to_owned(), client_limit::LASTS);
        let news = &mut *self.news;
        let mut note = |text| news(Step::Note(text));
        let found = client_limit::find(&self.like, response, Some(&self.server.cpus), self.stop, &mut note)?;
        self.client_max = found.generator.max_rate;
        let at_least = if found.calibration.is_some_and(|found| found.lower_bound) { "at least " } else { "" };
        let found = match self.client_max {
            Some(rate) => format!("this client can offer {at_least}{} without being the limit", quantity::rate(rate)),
            None => "this client could not be trusted at any rate; each level is judged by itself".to_owned(),
        };
        (self.news)(Step::Note(found));
        Ok(())
    }

    /// What the server's CPUs do without load. Returns the busy servers of its own processes.
    fn watch_idle(&mut self) -> Result<f64, Halt> {
        self.begin("the idle server".to_owned(), IDLE);
        let config = self.server.monitor_config(self.like.cpus.first().copied());
        let monitor = Monitor::start(config)?;
        let ((), used) = self.server.watch(|| std::thread::sleep(IDLE.into()));
        let seen = monitor.finish(Nanos::ZERO, None);
        self.background = seen.kernel.cpu.map(|cpu| (1.0 - cpu.idle).clamp(0.0, 0.9));
        Ok(used.busy())
    }

    fn calibrate(&mut self, probe: f64, idle_busy: f64) -> Result<(), Halt> {
        let mut facts = ServerFacts {
            classes: self.like.workload.classes.iter().map(|class| class.name.clone()).collect(),
            mix: self.like.workload.mix(),
            servers: self.server.servers(),
            idle_busy,
            background: self.background.unwrap_or(0.0),
        };
        let mix = self.like.workload.clone();
        let capacity = self.find_capacity(&mix, f64::from(facts.servers) / probe)?;
        let base = self.within_client(capacity);
        for fraction in (0..REPLICATIONS).flat_map(|_| CALIBRATION) {
            self.calibration_run("mix", &mix, fraction * base, capacity)?;
        }
        if mix.classes.len() > 1 {
            for index in 0..mix.classes.len() {
                let mut alone = mix.clone();
                for (other, class) in alone.classes.iter_mut().enumerate() {
                    class.weight = if other == index { 1.0 } else { 0.0 };
                }
                let name = alone.classes[index].name.clone();
                let capacity = self.find_capacity(&alone, capacity)?;
                let base = self.within_client(capacity);
                for fraction in SINGLE_CLASS {
                    self.calibration_run(&name, &alone, fraction * base, capacity)?;
                }
            }
        }
        facts.background = facts.background.min(self.others_under_load());
        self.fit = Some(ServerFit::new(facts, &self.calibration)?);
        Ok(())
    }

    /// Share of the server's CPUs that was busy with something else than the server while calibration ran: the median
    /// of the runs, for what happens to run in one of them is not there all the time.
    fn others_under_load(&self) -> f64 {
        let other = |level: &Level| Some((1.0 - level.cpu?.idle - level.utilization.measured?).max(0.0));
        let mut others: Vec<f64> = self.levels.iter().filter_map(other).collect();
        others.sort_by(f64::total_cmp);
        others.get(others.len() / 2).copied().unwrap_or(0.0)
    }

    /// The rate at which the server would saturate, roughly. A call costs the less the busier the server is, so each
    /// short run at the highest calibration level improves on the one before, until that makes little difference.
    fn find_capacity(&mut self, workload: &Workload, first_guess: f64) -> Result<f64, Halt> {
        let mut capacity = first_guess;
        for _ in 0..PILOTS {
            let rate = Rate(CALIBRATION[CALIBRATION.len() - 1] * self.within_client(capacity));
            self.begin(format!("looking for the levels: {}", quantity::rate(rate.0)), PILOT);
            let mut plan = self.run_plan(Load::poisson(rate), PILOT);
            plan.workload.classes.clone_from(&workload.classes);
            let measured = self.measure_once(&plan)?;
            self.check(&measured)?;
            let observed = measured.observed()?;
            let completed: f64 = observed.throughput.iter().sum();
            let found = f64::from(self.server.servers()) * completed / observed.busy.max(1e-9);
            let settled = (found / capacity - 1.0).abs() < SETTLED;
            capacity = found;
            if settled {
                break;
            }
        }
        Ok(capacity)
    }

    /// What the calibration levels are fractions of: the capacity, or less where the client could not offer the
    /// highest.
    fn within_client(&self, capacity: f64) -> f64 {
        self.client_max.map_or(capacity, |max| capacity.min(max / CALIBRATION[CALIBRATION.len() - 1]))
    }

    /// Nothing is measured that the client would be the limit of.
    fn check_offerable(&self, rate: f64) -> Result<(), Halt> {
        let Some(max) = self.client_max.filter(|max| rate > *max) else { return Ok(()) };
        let reason = format!(
            "it needs {}, more than the {} that this client was shown to offer without being the limit; give the \
             generator more --threads and --cpus, or a machine of its own",
            quantity::rate(rate),
            quantity::rate(max)
        );
        Err(self.halt(ReasonCode::BeyondClientMax, &reason))
    }

    fn calibration_run(
        &mut self,
        name: &str,
        workload: &Workload,
        rate: f64,
        saturation: f64,
    ) -> Result<Measured, Halt> {
        let what = format!("calibration: {name} at {}", quantity::rate(rate));
        self.begin(what, self.plan.level);
        let mut plan = self.run_plan(Load::poisson(Rate(rate)), self.plan.level);
        plan.workload.classes.clone_from(&workload.classes);
        let measured = self.measure(&plan)?;
        let about = About { role: Role::Calibration, workload: name, saturation, predicted: None };
        self.keep(&plan, &measured, &about);
        self.check(&measured)?;
        let response = measured.response().filter(|_| name == "mix");
        let ci = measured.record.response_mean_ci95_us.map(|us| us / 1e6);
        self.calibration
            .push(CalibrationRun { observed: measured.observed()?.clone(), response: response.map(|mean| (mean, ci)) });
        Ok(measured)
    }

    /// Writes every prediction down before any of the levels is measured.
    fn freeze(&mut self) -> Result<Vec<(f64, f64, Prediction)>, Halt> {
        let Some(fit) = &self.fit else { return Ok(Vec::new()) };
        let saturation = fit.saturation();
        let predict = |(fraction, length): &(f64, f64)| Ok((*fraction, *length, fit.predict(fraction * saturation)?));
        let predictions: Vec<_> = HELD_OUT.iter().map(predict).collect::<Result<_, SurveyError>>()?;
        let document = serde_json::to_string(&(self.model(), &predictions)).unwrap_or_default();
        self.frozen = Some(format!("{:016x}", fnv1a(document.as_bytes())));
        (self.news)(Step::Note(format!(
            "predicted to saturate at {}; the model is frozen",
            quantity::rate(saturation)
        )));
        Ok(predictions)
    }

    fn held_out(&mut self, fraction: f64, length: f64, prediction: &Prediction) -> Result<(), Halt> {
        let saturation = self.fit.as_ref().map_or(0.0, ServerFit::saturation);
        let rate = fraction * saturation;
        let lasts = Nanos::from_secs_f64(length * self.plan.level.as_secs_f64());
        let what = format!("held out: {:.0} %, {}", 100.0 * fraction, quantity::rate(rate));
        self.begin(what, lasts);
        self.check_offerable(rate)?;
        let plan = self.run_plan(Load::poisson(Rate(rate)), lasts);
        let measured = self.measure(&plan)?;
        let about = About { role: Role::HeldOut, workload: "mix", saturation, predicted: Some(prediction) };
        self.keep(&plan, &measured, &about);
        self.check(&measured)
    }

    /// Finds what the server really can take: closed, with more clients than it can serve at once, then open beyond.
    fn saturate(&mut self) -> Result<(), Halt> {
        let Some(fit) = self.fit.clone() else { return Ok(()) };
        let saturation = fit.saturation();
        let level = self.plan.level.as_secs_f64();
        let closed =
            Load::Closed { clients: SATURATING_CLIENTS * u64::from(self.server.servers()), think: Nanos::ZERO };
        let mut loads = vec![(closed, 2.0 * level, 1.0, "saturation".to_owned())];
        for fraction in PAST_SATURATION {
            let rate = fraction * saturation;
            let length = (BACKLOG / (rate - saturation)).max(1.0).min(level);
            let what = format!("past saturation: {:.0} %, {}", 100.0 * fraction, quantity::rate(rate));
            loads.push((Load::poisson(Rate(rate)), length, fraction, what));
        }
        for (load, length, fraction, what) in loads {
            let lasts = Nanos::from_secs_f64(length);
            let closed = matches!(load, Load::Closed { .. });
            if closed {
                self.begin(what, lasts);
                self.check_offerable(saturation)?;
            } else if self.check_offerable(fraction * saturation).is_err() {
                // The capacity is known by then, and this would only show what becomes of the server beyond it.
                (self.news)(Step::Note(format!("left out, for this client cannot offer it: {what}")));
                continue;
            } else {
                self.begin(what, lasts);
            }
            let prediction = fit.predict(fraction.max(1.001) * saturation)?;
            let plan = self.run_plan(load, lasts);
            let before = truth(self.like.endpoint.address);
            let measured = self.measure(&plan)?;
            let after = truth(self.like.endpoint.address);
            let about = About { role: Role::PastSaturation, workload: "mix", saturation, predicted: Some(&prediction) };
            self.keep(&plan, &measured, &about);
            self.check(&measured)?;
            let record = &measured.record;
            // The closed level is the longest and keeps the server busy without overrunning it; the open ones show what
            // becomes of it then.
            if record.verdict.valid && closed {
                self.measured_saturation = Some((record.rates.completed, record.reply_rate.ci95_half_width));
                self.truth = before.zip(after);
            }
        }
        Ok(())
    }

    fn run_plan(&mut self, load: Load, window: Nanos) -> RunPlan {
        self.runs += 1;
        let (seed, client_max) = (self.like.seed.wrapping_add(self.runs), self.client_max);
        RunPlan { window, seed, client_max, calls: u64::MAX, ..self.like.clone().with_load(load) }
    }

    /// Measures a level. One that the host disturbed is measured again, once: what decides is the health of the
    /// generator and of the server's CPUs, never what the model said.
    fn measure(&mut self, plan: &RunPlan) -> Result<Measured, Halt> {
        let measured = self.measure_once(plan)?;
        let verdict = measured.verdict(self.server.servers());
        let disturbed = |reason: &&Reason| {
            matches!(reason.code, ReasonCode::GeneratorLate | ReasonCode::GeneratorStalled | ReasonCode::OtherWork)
        };
        let Some(reason) = verdict.reasons.iter().find(disturbed).filter(|_| !measured.record.interrupted) else {
            return Ok(measured);
        };
        let reason = reason.message.split(". ").next().unwrap_or_default();
        (self.news)(Step::Note(format!("once more, for it was disturbed: {reason}")));
        self.measure_once(&RunPlan { seed: plan.seed.wrapping_add(AGAIN), ..plan.clone() })
    }

    fn measure_once(&mut self, plan: &RunPlan) -> Result<Measured, Halt> {
        let measured = measure(plan, &mut self.server, self.stop, self.progress);
        // A server whose processes are gone cannot be watched either; Ctrl-C in a terminal ends them as well.
        measured.map_err(|error| match (self.stop.load(Ordering::Relaxed), self.is_alive()) {
            (true, _) => self.interrupted(),
            (false, true) => Halt::Error(error),
            (false, false) => self.died(),
        })
    }

    fn is_alive(&self) -> bool {
        is_alive(self.like.endpoint.address)
    }

    fn interrupted(&self) -> Halt {
        self.halt(ReasonCode::Interrupted, "it was interrupted")
    }

    fn died(&self) -> Halt {
        self.halt(ReasonCode::ServerDied, "the server no longer accepts connections")
    }

    fn halt(&self, code: ReasonCode, reason: &str) -> Halt {
        Halt::Stopped(code, Stopped { level: self.step.clone(), reason: reason.to_owned() })
    }

    fn keep(&mut self, plan: &RunPlan, measured: &Measured, about: &About<'_>) {
        let level = measured.level(plan, about, self.server.servers());
        (self.news)(Step::Level(Box::new(level.clone())));
        self.levels.push(level);
    }

    /// Goes on only while the server answers and nobody has asked to stop.
    fn check(&self, measured: &Measured) -> Result<(), Halt> {
        if measured.record.interrupted {
            Err(self.interrupted())
        } else if !self.is_alive() {
            Err(self.died())
        } else if measured.record.counts.completed == 0 {
            Err(self.halt(ReasonCode::ServerDied, "the server completed no call"))
        } else {
            Ok(())
        }
    }

    pub(crate) fn model(&self) -> Model {
        self.fit.as_ref().map(ServerFit::model).unwrap_or_default()
    }
}

/// FNV-1a (Fowler, Noll & Vo), 64 bits: a fingerprint, not a signature.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_engine::ConnectionPolicy;
    use brimful_estimate::Observed;
    use brimful_testkit::RawServer;

    /// The fit of a server that needs 100 µs for a call.
    fn a_fit() -> ServerFit {
        let facts = ServerFacts {
            classes: vec!["all".to_owned()],
            mix: vec![1.0],
            servers: 1,
            idle_busy: 0.0,
            background: 0.0,
        };
        let run = |rate: f64| CalibrationRun {
            observed: Observed { seconds: 4.0, throughput: vec![rate], busy: rate * 100e-6 },
            response: Some((150e-6, None)),
        };
        ServerFit::new(facts, &[2000.0, 4000.0, 6000.0].map(run)).unwrap()
    }

    fn run_plan(endpoint: Endpoint) -> RunPlan {
        RunPlan {
            workload: Workload {
                load: Some(Load::Closed { clients: 1, think: Nanos::ZERO }),
                ..Workload::single("GET", &endpoint.path)
            },
            trace: None,
            endpoint,
            window: Nanos::from_millis(10),
            calls: u64::MAX,
            version: brimful_http::Version::Http11,
            headers: Vec::new(),
            secret_headers: Vec::new(),
            connections: ConnectionPolicy { close: brimful_engine::Close::Fin, ..ConnectionPolicy::default() },
            engine: brimful_engine::Engine::Auto,
            threads: 1,
            cpus: Vec::new(),
            shard: None,
            start_at: None,
            live: None,
            seed: 1,
            client_max: None,
            monitor: None,
            command: Vec::new(),
        }
    }

    #[test]
    fn a_survey_stops_at_the_limit_of_its_client() {
        // It would be asked if anything were measured.
        let server = RawServer::never_answers();
        let endpoint = Endpoint::resolve(&server.url(), Nanos::from_secs(60)).unwrap();
        let selectors = vec![ProcessSelector::Pid(std::process::id())];
        let plan = SurveyPlan {
            subject: Subject::Running(selectors.clone()),
            like: run_plan(endpoint.clone()),
            server_cpus: None,
            level: Nanos::from_millis(10),
            version: String::new(),
        };
        let watched = Server::find(&endpoint, selectors, None).unwrap();
        let (stop, progress) = (AtomicBool::new(false), Progress::default());
        let mut news = |_| ();
        let mut surveyor = Surveyor::new(&plan, plan.like.clone(), watched, &stop, &progress, &mut news);
        surveyor.fit = Some(a_fit());
        let saturation = a_fit().saturation();
        surveyor.client_max = Some(0.6 * saturation);
        assert_eq!(surveyor.within_client(saturation), saturation);
        assert!(surveyor.within_client(2.0 * saturation) < 1.01 * saturation);

        let prediction = a_fit().predict(0.7 * saturation).unwrap();
        for outcome in [surveyor.held_out(0.7, 1.0, &prediction), surveyor.saturate()] {
            let Err(Halt::Stopped(code, stopped)) = outcome else { panic!("{outcome:?}") };
            assert!(code == ReasonCode::BeyondClientMax && stopped.reason.contains("--cpus"), "{stopped:?}");
            assert!(!stopped.level.is_empty());
        }
        // One to find out that somebody listens, as soon as the server has come to accept it.
        while server.connections() == 0 {
            std::thread::yield_now();
        }
        assert_eq!((surveyor.runs, server.connections()), (0, 1));
    }
}
