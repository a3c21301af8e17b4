//! One load level: what the fit and the comparison need of its Record.

use crate::SurveyError;
use brimful_core::Nanos;
use brimful_core::moments::Moments;
use brimful_core::quantity;
use brimful_core::record::{ClassRecord, Reason, ReasonCode, Record, Verdict};
use brimful_core::server::{CpuShares, OTHER_WORK};
use brimful_core::survey::{Comparison, Level, LevelClass, ResponsePercentiles, Role};
use brimful_core::workload::{Load, RequestClass, Workload};
use brimful_estimate::inside::threads;
use brimful_estimate::{
    Answered, Expected, Inside, Observed, Piece, Place, Prediction, ProgramSeen, Spread, Unmatched, Workers, stretches,
};
use std::collections::BTreeMap;

/// Two samples of a throughput make an interval that says nothing.
const MIN_SAMPLES: u64 = 3;

/// From this share of failed calls on, the times and the CPU of the others are those of another load.
const FAILED: f64 = 0.01;

/// From this share of time on that a quota stopped the server, it was another server.
const THROTTLED: f64 = 0.01;

/// A load that was tried.
#[derive(Debug)]
pub(crate) struct Trial {
    pub record: Record,
    /// Names of the workload's classes.
    classes: Vec<String>,
    /// What the server's processes did while load was offered, by class in the order of the workload.
    observed: Option<Observed>,
    /// For how long it answered, and completed calls per second by class, where nothing else is seen of it.
    answers: Option<(f64, Vec<f64>)>,
}

impl Trial {
    /// By its Record, of a workload of these classes.
    pub fn new(record: Record, classes: &[RequestClass]) -> Trial {
        Trial::warmed_up(record, classes, Nanos::ZERO)
    }

    /// The same, of a load that found the server idle and of which the first moment is not to count.
    pub fn warmed_up(record: Record, classes: &[RequestClass], warm_up: Nanos) -> Trial {
        let names = classes.iter().map(|class| class.name.clone()).collect();
        let classes: Vec<Option<&ClassRecord>> = classes.iter().map(|class| record.classes.get(&class.name)).collect();
        let warm_up = warm_up.as_secs_f64();
        let observed = Observed::after(warm_up, &record, &classes, true);
        Trial { observed, answers: Observed::answers(warm_up, &record, &classes), classes: names, record }
    }

    /// What the server itself measured of each class; `None` where it has no Server Module.
    pub fn inside(&self) -> Option<Result<Vec<Option<Inside>>, Unmatched>> {
        let class = |name: &String| self.record.classes.get(name);
        let named: Vec<(&str, Option<&ClassRecord>)> =
            self.classes.iter().map(|name| (name.as_str(), class(name))).collect();
        Inside::of(&self.record, &named)
    }

    /// Mean response time, in seconds.
    pub fn response(&self) -> Option<f64> {
        self.record.response_time_us.map(|summary| summary.mean / 1e6)
    }

    /// Squared coefficient of variation of the response times of a class, weighted by calls.
    fn response_scv(&self) -> Option<f64> {
        let of = |class: &ClassRecord| {
            let times = class.response_time_us?;
            Some((times.count as f64, times.mean, times.stddev))
        };
        let classes: Vec<(f64, f64, f64)> = self.record.classes.values().filter_map(of).collect();
        let sum = |of: &dyn Fn(f64, f64) -> f64| classes.iter().map(|(n, mean, dev)| n * of(*mean, *dev)).sum::<f64>();
        let scv = sum(&|_, dev| dev * dev) / sum(&|mean, _| mean * mean);
        scv.is_finite().then_some(scv)
    }

    /// What the server did while load was offered.
    pub fn observed(&self) -> Result<&Observed, SurveyError> {
        self.observed.as_ref().ok_or_else(|| {
            SurveyError::Unfit(
                "the monitor could not tell the CPU time of the server's processes: `brimful doctor` says what it may read"
                    .to_owned(),
            )
        })
    }

    /// CPU time of the server's processes for a call, in seconds.
    pub fn mean_demand(&self) -> Result<f64, SurveyError> {
        let observed = self.observed()?;
        let completed: f64 = observed.throughput.iter().sum();
        // Of calls so long that none ended in time, all count.
        let all = || self.record.counts.completed as f64 / observed.seconds;
        Ok(observed.busy / if completed > 0.0 { completed } else { all() })
    }

    /// As a piece of calibration.
    pub fn piece(&self, place: Place, servers: u32, warm_up: Nanos) -> Option<Piece> {
        let busy = self.busy_in_window();
        let server = self.record.server.as_ref();
        let (seconds, throughput) = match &self.observed {
            Some(observed) => (observed.seconds, observed.throughput.clone()),
            None => self.answers.clone()?,
        };
        Some(Piece {
            place,
            seconds,
            throughput,
            busy,
            idle: self.cpu().map(|cpu| cpu.idle * f64::from(servers)),
            disks: server.map_or(BTreeMap::new(), |server| {
                server.kernel.disks.iter().map(|(name, disk)| (name.clone(), disk.utilization)).collect()
            }),
            programs: server.zip(busy).map_or(Vec::new(), |(server, busy)| ProgramSeen::of(server, busy)),
            inside: self.inside().and_then(Result::ok).unwrap_or_default(),
            workers: Workers::of(&self.record),
            threads: threads(&self.record),
            response: self.response(),
            percentiles: self.record.response_time_us.map(|us| [us.p50, us.p95, us.p99].map(|us| us / 1e6)),
            response_scv: self.response_scv(),
            warm_up: warm_up.as_secs_f64(),
            rest: 0.0,
            course: stretches(&self.record, 0.0).unwrap_or_default(),
            arrivals: Vec::new(),
        })
    }

    /// Whether the server made these figures, and not a generator that was short of something.
    pub fn is_the_servers(&self) -> bool {
        let short = |reason: &Reason| {
            matches!(
                reason.code,
                ReasonCode::GeneratorCpu
                    | ReasonCode::GeneratorStalled
                    | ReasonCode::GeneratorPanicked
                    | ReasonCode::Descriptors
                    | ReasonCode::Ports
                    | ReasonCode::Memory
                    | ReasonCode::BodyFile
                    | ReasonCode::Unbalanced
            )
        };
        !self.record.verdict.reasons.iter().any(short)
    }

    /// Share of the calls that failed, or were answered with an error of the server.
    pub fn failed_share(&self) -> f64 {
        self.share_of_calls(self.failed() - self.record.counts.client_limited)
    }

    /// Busy servers meanwhile.
    fn busy_in_window(&self) -> Option<f64> {
        self.observed.as_ref().map(|observed| observed.busy)
    }

    /// Where the time of the server's CPUs went.
    fn cpu(&self) -> Option<CpuShares> {
        self.record.server.as_ref()?.kernel.cpu
    }

    /// Whether the level can be trusted: by the generator's own health, and by what else the server's CPUs had to do.
    pub fn verdict(&self, servers: u32) -> Verdict {
        let mut reasons = self.record.verdict.reasons.clone();
        let other = self.cpu().zip(self.busy_in_window()).map(|(cpu, busy)| 1.0 - cpu.idle - busy / f64::from(servers));
        if let Some(other) = other.filter(|other| *other > OTHER_WORK) {
            let message = format!(
                "Something other than the server used {} of the server's CPUs. Stop it, or keep it elsewhere; `top` \
                 shows what it is.",
                quantity::whole_percent(other)
            );
            reasons.push(Reason { code: ReasonCode::OtherWork, message });
        }
        reasons.extend(self.throttled().map(|throttled| throttled.reason));
        Verdict { valid: reasons.is_empty(), reasons, ..self.record.verdict }
    }

    /// Whether a CPU quota stopped the server's processes, the one that did so for longest.
    pub fn throttled(&self) -> Option<Throttled> {
        let server = self.record.server.as_ref()?;
        let quotas = server.process.iter().filter_map(|program| program.quota.as_ref());
        let quota = quotas.max_by(|a, b| a.throttled_s.total_cmp(&b.throttled_s))?;
        let share = (quota.throttled_s / self.record.window_s).min(1.0);
        let message = format!(
            "The CPU quota of {} CPUs of {} stopped the server's processes for {} of the time: what was measured is the \
             quota's stop and go, which no model of the server knows of. Raise the quota, or survey the server without it \
             and plan with the model how much it needs.",
            quantity::number(quota.cpus),
            quota.group,
            quantity::percent(share)
        );
        (share >= THROTTLED).then_some(Throttled { share, reason: Reason { code: ReasonCode::Throttled, message } })
    }

    /// Whether the server limits the rate of its clients, and calls came faster: what it lets pass then.
    pub fn rate_limited(&self) -> Option<String> {
        let (counts, rates) = (&self.record.counts, &self.record.rates);
        let limited = counts.status.s429;
        let passed = rates.completed * (1.0 - limited as f64 / (counts.completed as f64).max(1.0));
        let message = format!(
            "{} of the calls were answered 429: the server limits the rate of its clients, here at about {}. Raise or \
             switch off its limit for this client's address.",
            quantity::percent(self.share_of_calls(limited)),
            quantity::rate(passed)
        );
        (self.share_of_calls(limited) >= FAILED).then_some(message)
    }

    /// What the server failed to do, if that is so much that the rest says little about it.
    fn failures(&self) -> Option<Reason> {
        if let Some(message) = self.rate_limited() {
            return Some(Reason { code: ReasonCode::RateLimited, message });
        }
        let share = self.failed_share();
        let message = format!(
            "{} of the calls failed or were answered with an error of the server (5xx), so this is not what it can do \
             while it works. Its own log says why.",
            quantity::percent(share)
        );
        (share >= FAILED).then_some(Reason { code: ReasonCode::ServerErrors, message })
    }

    fn failed(&self) -> u64 {
        self.record.counts.errors() + self.record.counts.status.s5xx
    }

    fn share_of_calls(&self, calls: u64) -> f64 {
        calls as f64 / (self.record.counts.scheduled as f64).max(1.0)
    }

    /// The level as the survey shows it, beside what was predicted of it.
    pub fn level(&self, workload: &Workload, about: &About<'_>, servers: u32) -> Level {
        let record = &self.record;
        let planned = match workload.load {
            Some(Load::Open { rate, .. }) => rate.0,
            _ => record.rates.offered,
        };
        let predicted = about.predicted;
        let expected = about.expected;
        let response = record.response_time_us;
        let compare = |predicted: Option<f64>, measured, ci| Comparison {
            measured_ci95_half_width: ci,
            ..Comparison::new(predicted, measured)
        };
        let ci = record.response_mean_ci95_us.map(|us| us / 1e6);
        let clients = match workload.load {
            Some(Load::Closed { clients, .. }) => Some(clients),
            _ => None,
        };
        let mut reasons = self.verdict(servers).reasons;
        // Open levels past saturation are there to show what fails then.
        reasons.extend(self.failures().filter(|_| about.role != Role::PastSaturation || clients.is_some()));
        let classes = workload.classes.iter().enumerate().filter_map(|(index, class)| {
            let measured = record.classes.get(&class.name)?;
            let predicted = predicted.and_then(|p| p.class_response.as_ref()).and_then(|r| r.get(index).copied());
            let mean = measured.response_time_us.map(|summary| summary.mean / 1e6);
            (measured.counts.scheduled > 0).then(|| LevelClass {
                name: class.name.clone(),
                throughput: measured.counts.completed as f64 / record.duration_s.max(1e-9),
                response_time_s: Comparison::new(predicted.filter(|_| mean.is_some()), mean),
            })
        });
        Level {
            fraction: planned / about.saturation.max(1e-9),
            offered: record.rates.offered,
            role: about.role,
            workload: about.workload.to_owned(),
            clients,
            window_s: record.window_s,
            throughput: compare(
                predicted.map(|p| p.throughput),
                Some(record.rates.completed),
                record.reply_rate.ci95_half_width.filter(|_| record.reply_rate.samples >= MIN_SAMPLES),
            ),
            response_time_s: Comparison {
                measured_ci95_half_width: ci,
                ..spread(expected.map(|e| e.response), predicted.and_then(|p| p.response), self.response())
                    .given_host(about.given.answered.map(|given| given.mean))
            },
            steady_response_s: predicted.and_then(|p| p.response),
            host_speed: about.given.speed,
            response_percentiles_s: {
                let of = |index: usize, measured: Option<f64>| {
                    spread(expected.map(|e| e.percentiles[index]), None, measured.map(|us| us / 1e6))
                        .given_host(about.given.answered.map(|given| given.percentiles[index]))
                };
                ResponsePercentiles {
                    p50: of(0, response.map(|r| r.p50)),
                    p95: of(1, response.map(|r| r.p95)),
                    p99: of(2, response.map(|r| r.p99)),
                }
            },
            utilization: {
                let measured = self.busy_in_window().map(|busy| busy / f64::from(servers));
                let predicted = predicted.map(|p| p.utilization);
                let comparison = spread(expected.map(|e| e.utilization), predicted, measured);
                let given = comparison.predicted.zip(about.given.speed).map(|(u, speed)| (u / speed).min(1.0));
                comparison.given_host(given)
            },
            cpu: self.cpu(),
            error_share: self.share_of_calls(self.failed()),
            lateness_p50_s: record.lateness_us.map(|l| l.p50 / 1e6),
            lateness_p99_s: record.lateness_us.map(|l| l.p99 / 1e6),
            verdict: Verdict { valid: reasons.is_empty(), reasons, ..record.verdict },
            classes: classes.collect(),
        }
    }
}

/// A server that was stopped by a quota.
#[derive(Clone, Debug)]
pub(crate) struct Throttled {
    /// Share of the time.
    pub share: f64,
    pub reason: Reason,
}

/// What a level is, besides what was measured of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub role: Role,
    pub workload: &'a str,
    /// The rate that counts as 1.
    pub saturation: f64,
    /// On a host that keeps its speed.
    pub predicted: Option<&'a Prediction>,
    /// On a host as variable as calibration saw it.
    pub expected: Option<&'a Expected>,
    pub given: Given,
}

impl<'a> About<'a> {
    /// Nothing was predicted.
    pub fn calibration(workload: &'a str, saturation: f64) -> About<'a> {
        let role = Role::Calibration;
        About { role, workload, saturation, predicted: None, expected: None, given: Given::default() }
    }
}

/// The host during a level, and what the model says given that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    /// Its speed over that during calibration, by the anchors.
    pub speed: Option<f64>,
    /// Response times of the level's arrivals on a host of the course that it had.
    pub answered: Option<Answered>,
}

/// The median of what is to be expected, or else what is predicted of a steady host, beside what was measured.
fn spread(expected: Option<Spread>, predicted: Option<f64>, measured: Option<f64>) -> Comparison {
    Comparison {
        interval90: expected.map(|spread| spread.interval90),
        ..Comparison::new(expected.map(|spread| spread.median).or(predicted), measured)
    }
}

/// Levels of one load as one: figures are weighted by time, those of calls by calls.
pub(crate) fn pooled(levels: &[&Level]) -> Level {
    let by = |weight: &dyn Fn(&Level) -> f64, of: &dyn Fn(&Level) -> Option<f64>| {
        let all = levels.iter().filter_map(|level| Some((of(level)?, weight(level))));
        let (sum, weights) = all.fold((0.0, 0.0), |(sum, weights), (value, w)| (sum + value * w, weights + w));
        (weights > 0.0).then(|| sum / weights)
    };
    let time = |level: &Level| level.window_s;
    let calls = |level: &Level| level.throughput.measured.unwrap_or(0.0) * level.window_s;
    let measured = |value: Option<f64>| Comparison { measured: value, ..Comparison::default() };
    let mut whole = levels[0].clone();
    whole.window_s = levels.iter().map(|level| level.window_s).sum();
    whole.offered = by(&time, &|level| Some(level.offered)).unwrap_or(0.0);
    whole.fraction = by(&time, &|level| Some(level.fraction)).unwrap_or(0.0);
    whole.throughput = measured(by(&time, &|level| level.throughput.measured));
    whole.utilization = measured(by(&time, &|level| level.utilization.measured));
    whole.response_time_s = measured(by(&calls, &|level| level.response_time_s.measured));
    // Of percentiles of several runs there is no exact mean; theirs by calls is close where they are alike.
    whole.response_percentiles_s = ResponsePercentiles {
        p50: measured(by(&calls, &|level| level.response_percentiles_s.p50.measured)),
        p95: measured(by(&calls, &|level| level.response_percentiles_s.p95.measured)),
        p99: measured(by(&calls, &|level| level.response_percentiles_s.p99.measured)),
    };
    whole.error_share = by(&calls, &|level| Some(level.error_share)).unwrap_or(0.0);
    let spread: Vec<f64> = levels.iter().filter_map(|level| level.response_time_s.measured).collect();
    whole.response_time_s.measured_ci95_half_width = half_width(&spread);
    let spread: Vec<f64> = levels.iter().filter_map(|level| level.throughput.measured).collect();
    whole.throughput.measured_ci95_half_width = half_width(&spread);
    let share = |of: &dyn Fn(&CpuShares) -> Option<f64>| by(&time, &|level| level.cpu.as_ref().and_then(of));
    let whole_share = |of: &dyn Fn(&CpuShares) -> f64| share(&|cpu| Some(of(cpu))).unwrap_or(0.0);
    whole.cpu = whole.cpu.map(|_| CpuShares {
        user: whole_share(&|cpu| cpu.user),
        system: whole_share(&|cpu| cpu.system),
        idle: whole_share(&|cpu| cpu.idle),
        steal: whole_share(&|cpu| cpu.steal),
        interrupt: share(&|cpu| cpu.interrupt),
        io_wait: share(&|cpu| cpu.io_wait),
    });
    for class in &mut whole.classes {
        let own = |level: &Level| level.classes.iter().find(|other| other.name == class.name).cloned();
        class.response_time_s = measured(by(&calls, &|level| own(level)?.response_time_s.measured));
        class.throughput = by(&time, &|level| Some(own(level)?.throughput)).unwrap_or(0.0);
    }
    let doubtful = levels.iter().filter(|level| !level.verdict.valid).count();
    if let Some(level) = levels.iter().find(|level| !level.verdict.valid).filter(|_| 2 * doubtful > levels.len()) {
        whole.verdict = level.verdict.clone();
    } else {
        whole.verdict = Verdict { valid: true, reasons: Vec::new(), ..whole.verdict };
    }
    whole
}

/// Of the 95 % interval of a mean, by how the values differ (as of normally distributed ones).
fn half_width(values: &[f64]) -> Option<f64> {
    let moments = Moments::from_values(values).filter(|_| values.len() > 2)?;
    moments.standard_error().map(|error| 2.0 * error)
}
