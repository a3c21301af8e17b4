//! The method, in the order that keeps it honest: client, calibration, fit, predictions handed over, and only then the
//! levels that were predicted. Each phase is a function in a file of its own. The method asks a [`Bench`] for all that it
//! needs to know, and has no clock of its own.

use crate::SurveyError;
use crate::baseline::{find_client_limit, watch_idle};
use crate::bench::Bench;
use crate::calibration::calibrate;
use crate::connections::choose_connections;
use crate::document::{Findings, document};
use crate::duration::estimated_duration;
use crate::first_look::look_first;
use crate::hold_out::hold_out;
use crate::predictions::{PREDICTING, Predictions};
use crate::runner::{Halt, Runner, Step};
use crate::saturation::{leave_out_saturation, overload, saturate};
use crate::setup::Setup;
use crate::what_if::{measure_change, rehearse_change};
use brimful_core::survey::Survey;

/// Surveys the server on the bench. Once the first level is measured there is always a document: it also says what ended
/// the survey early.
///
/// # Errors
/// [`SurveyError`] if the survey failed before it measured a level.
pub(crate) fn conduct(
    setup: &Setup,
    bench: &mut dyn Bench,
    listener: &mut dyn FnMut(Step),
) -> Result<Survey, SurveyError> {
    let mut runner = Runner::new(setup, bench, listener);
    let mut findings = Findings::default();
    let halt = run_phases(&mut runner, &mut findings).err();
    let log = runner.log;
    match halt {
        Some(Halt::Error(error)) if log.levels.is_empty() => Err(error),
        halt => Ok(document(setup, findings, log, halt.as_ref())),
    }
}

fn run_phases(runner: &mut Runner<'_>, findings: &mut Findings) -> Result<(), Halt> {
    let setup = runner.setup;
    let first = look_first(runner)?;
    findings.connections = choose_connections(runner, &first)?;
    let change = rehearse_change(runner)?;
    let duration = estimated_duration(setup, &findings.connections, first.rate, change);
    runner.announce(Step::EstimatedDuration(duration));
    findings.client = find_client_limit(runner, first.response)?;
    findings.idle = watch_idle(runner)?;
    let client = &findings.client;

    let calibration = calibrate(runner, first.rate, client.limit, &findings.idle, &mut findings.connections)?;
    let calibration = &*findings.calibration.insert(calibration);

    runner.begin("the predictions".to_owned(), PREDICTING);
    let predictions = Predictions::from_fit(&calibration.fit, &setup.workload, setup.level, runner.bench)?;
    let predictions = &*findings.predictions.insert(predictions);
    runner.announce(Step::Predicted(predictions.clone()));

    pub(crate) fn note(&mut self, text: String) {
        (self.news)(Step::Note(text));
    }

    /// One client for a moment: does the server answer as it should, and what does a call roughly cost?
    fn probe(&mut self) -> Result<(f64, Bytes), Halt> {
        self.begin("a first look at the server".to_owned(), PROBE);
        let load = Load::Closed { clients: 1, think: Nanos::ZERO };
        let trial = self.try_once(&with_load(&self.setup.workload, load), PROBE)?;
        if trial.record.wants_tls {
            let what = "the server speaks TLS on this port: write https:// in place of http://";
            return Err(SurveyError::Unfit(what.to_owned()).into());
        }
        self.check_rate_limit(&trial)?;
        self.check_first_answers(&trial)?;
        self.check(&trial)?;
        let counts = &trial.record.counts;
        if !self.setup.is_black_box() && trial.mean_demand()? <= 0.0 {
            let what =
                "the processes named used no CPU while the server answered: name those that serve, with --process";
            return Err(SurveyError::Unfit(what.to_owned()).into());
        }
        let response = Bytes(trial.record.bytes.received / counts.completed);
        self.choose_connections(&trial)?;
        Ok((trial.record.rates.completed, response))
    }

    fn check_client(&mut self, response: Bytes) -> Result<(), Halt> {
        self.begin(
            "what this client can offer before it is the limit itself".to_owned(),
            client_limit::TYPICAL_DURATION,
        );
        let news = &mut *self.news;
        let calibration = self.bench.client_limit(response, &mut |text| news(Step::Note(text)))?;
        self.found.client_max = calibration.max_rate;
        self.found.client_limit = calibration.limit();
        self.note(match calibration.max_rate {
            Some(rate) if calibration.lower_bound => format!(
                "this client can offer {} and more without being the limit; beyond that each level is judged by itself",
                quantity::rate(rate)
            ),
            Some(rate) => format!("this client can offer {} without being the limit", quantity::rate(rate)),
            None if calibration.curve.is_empty() => "each level is judged by itself".to_owned(),
            None => "this client could not be trusted at any rate; each level is judged by itself".to_owned(),
        });
        Ok(())
    }

    /// What the server's CPUs do without load. Returns the busy servers of its own processes.
    fn watch_idle(&mut self) -> Result<f64, Halt> {
        if self.setup.is_black_box() {
            self.note(
                "nothing is seen of the server but its answers: what it costs and what is full is not known".to_owned(),
            );
            return Ok(0.0);
        }
        self.begin("the idle server".to_owned(), IDLE);
        let idle = self.bench.watch_idle(IDLE)?;
        self.found.background = idle.kernel.cpu.map(|cpu| (1.0 - cpu.idle).clamp(0.0, 0.9));
        let busy = idle.process.iter().map(|program| program.cores).sum();
        self.found.idle_programs = ProgramSeen::of(&idle, busy);
        Ok(busy)
    }

    /// Nothing is measured that the client would be the limit of. A client that cannot offer this rate is told what the
    /// whole survey takes, which goes to the saturation.
    pub(crate) fn check_offerable(&self, rate: f64, saturation: f64) -> Result<(), Halt> {
        let Some(max) = self.found.client_limit.filter(|max| rate > *max) else { return Ok(()) };
        // Threads and shards share nothing, so of as many times as many comes about as many times as much.
        let (parts, name, how) = match self.setup.shards {
            Some(shards) => (shards, "shard", "(--shards, each on a CPU of its own)"),
            None => (
                self.setup.client_cpus.len().max(1) as u64,
                "CPU",
                "for the generator (--cpus), or a machine of its own",
            ),
        };
        let needed = (saturation / max * parts as f64).ceil();
        let reason = format!(
            "it needs {}, more than the {} that this client was shown to offer without being the limit on {}; to \
             survey the server to its saturation takes some {needed} {name}s like these {how}",
            quantity::rate(rate),
            quantity::rate(max),
            if parts == 1 { format!("one {name}") } else { format!("{parts} {name}s") },
        );
        return Ok(());
    }
    if !calibration.is_saturated {
        return leave_out_saturation(runner, calibration, client, predictions.saturation);
    }
    findings.saturation = saturate(runner, calibration, client, predictions)?;
    overload(runner, calibration, client)?;
    if let Some(change) = change {
        findings.what_if = Some(measure_change(runner, calibration, change)?);
    }
    Ok(())
}
