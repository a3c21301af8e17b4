//! A trial: a load that was offered to the server, its Record, the metrics that the fit needs, and the reasons to
//! distrust them.

use crate::SurveyError;
use brimful_core::Nanos;
use brimful_core::quantity;
use brimful_core::record::{ClassRecord, Reason, ReasonCode, Record, Verdict};
use brimful_core::server::{CpuShares, MAX_OTHER_WORK};
use brimful_core::workload::RequestClass;
use brimful_estimate::server_module::competing_workers;
use brimful_estimate::{
    CompletedCalls, KernelMetrics, Measurement, ModuleDemand, ModuleMetrics, ModuleMismatch, OfferedLoad, ProgramUsage,
    ResponseMetrics, Timeline, WindowMeasurement, Workers, stretches,
};
use std::collections::BTreeMap;

/// If at least this share of the calls fails, response times and CPU time do not describe the offered load, so the
/// measurement cannot be used.
pub(crate) const FAILED_SHARE: f64 = 0.01;
/// If a CPU quota stops the server for at least this share of the time, it affects the measurements.
const THROTTLED_SHARE: f64 = 0.01;

/// A load that was offered to the server, and its Record.
#[derive(Debug)]
pub(crate) struct Trial {
    /// The Record of the load.
    pub record: Record,
    /// Names of the workload's classes.
    class_names: Vec<String>,
    /// Throughput of each class, and the server's CPU usage; `None` if the server's processes cannot be observed.
    observed: Option<WindowMeasurement>,
    /// Duration in seconds, and completed calls per second of each class, from the responses alone. They are used if
    /// the server's processes cannot be observed.
    answers: Option<(f64, Vec<f64>)>,
}

/// The effect of a CPU quota that stopped the server's processes for a part of a run.
#[derive(Clone, Debug)]
pub(crate) struct Throttled {
    /// Share of the time for which the quota stopped the server.
    pub share: f64,
    /// The reason why the run's verdict is not valid.
    pub reason: Reason,
}

impl Trial {
    /// Evaluates the Record of a workload with these classes.
    pub fn new(record: Record, classes: &[RequestClass]) -> Trial {
        Trial::with_warm_up(record, classes, Nanos::ZERO)
    }

    /// Evaluates a Record without the warm-up at its start.
    pub fn with_warm_up(record: Record, classes: &[RequestClass], warm_up: Nanos) -> Trial {
        let class_names = classes.iter().map(|class| class.name.clone()).collect();
        let classes: Vec<Option<&ClassRecord>> = classes.iter().map(|class| record.classes.get(&class.name)).collect();
        let warm_up_s = warm_up.as_secs_f64();
        let observed = WindowMeasurement::after_warm_up(warm_up_s, &record, &classes, true);
        let answers = WindowMeasurement::throughput_from_responses(warm_up_s, &record, &classes);
        Trial { observed, answers, class_names, record }
    }

    /// The Server Module's measurements of each class; `None` without the module.
    pub fn module_demands(&self) -> Option<Result<Vec<Option<ModuleDemand>>, ModuleMismatch>> {
        let classes: Vec<(&str, Option<&ClassRecord>)> =
            self.class_names.iter().map(|name| (name.as_str(), self.record.classes.get(name))).collect();
        ModuleDemand::from_record(&self.record, &classes)
    }

    /// Mean response time, in seconds.
    pub fn mean_response_time(&self) -> Option<f64> {
        self.record.response_time_us.map(|summary| summary.mean / 1e6)
    }

    /// Throughput and CPU usage of the server, or an error if its processes could not be observed.
    pub fn window_measurement(&self) -> Result<&WindowMeasurement, SurveyError> {
        self.observed.as_ref().ok_or_else(|| {
            SurveyError::NotSurveyable(
                "the monitor could not read the CPU time of the server's processes: `brimful doctor` says what it may read"
                    .to_owned(),
            )
        })
    }

    /// CPU time of the server's processes per call, in seconds.
    pub fn mean_demand(&self) -> Result<f64, SurveyError> {
        let observed = self.window_measurement()?;
        let completed: f64 = observed.throughput.iter().sum();
        // If calls take longer than the observed time, no call is completed within it. Then count all completed calls.
        let rate = if completed > 0.0 { completed } else { self.record.counts.completed as f64 / observed.seconds };
        Ok(observed.busy / rate)
    }

    /// Converts the trial to a measurement for the fit. `servers` is the number of the server's CPUs. `None` if the
    /// throughput is unknown.
    pub fn measurement(&self, load: OfferedLoad, servers: u32, warm_up: Nanos) -> Option<Measurement> {
        let busy = self.busy_cpus();
        let server = self.record.server.as_ref();
        let (seconds, throughput) = match &self.observed {
            Some(observed) => (observed.seconds, observed.throughput.clone()),
            None => self.answers.clone()?,
        };
        Some(Measurement {
            load,
            seconds,
            throughput,
            kernel: KernelMetrics {
                busy,
                idle: self.cpu_shares().map(|cpu| cpu.idle * f64::from(servers)),
                disks: server.map_or(BTreeMap::new(), |server| {
                    server.kernel.disks.iter().map(|(name, disk)| (name.clone(), disk.utilization)).collect()
                }),
                programs: server.zip(busy).map_or(Vec::new(), |(server, busy)| ProgramUsage::from_server(server, busy)),
            },
            module: ModuleMetrics {
                demands: self.module_demands().and_then(Result::ok).unwrap_or_default(),
                workers: Workers::from_record(&self.record),
                threads: competing_workers(&self.record),
            },
            responses: ResponseMetrics {
                mean: self.mean_response_time(),
                percentiles: self.record.response_time_us.map(|us| [us.p50, us.p95, us.p99].map(|us| us / 1e6)),
                scv: self.response_scv(),
            },
            timeline: Timeline {
                warm_up: warm_up.as_secs_f64(),
                stretches: stretches(&self.record, 0.0).unwrap_or_default(),
                completed: CompletedCalls::from_record(&self.record),
                ..Timeline::default()
            },
        })
    }

    /// Whether the load generator had all the resources that it needed.
    pub fn not_client_limited(&self) -> bool {
        let is_generator_fault = |reason: &Reason| {
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
        !self.record.verdict.reasons.iter().any(is_generator_fault)
    }

    /// Share of the calls that failed or had a server error (5xx), without failures that the load generator caused.
    pub fn failed_share(&self) -> f64 {
        self.share_of_calls(self.failed_calls() - self.record.counts.client_limited)
    }

    /// Share of the calls that failed for any reason or had a server error (5xx).
    pub fn error_share(&self) -> f64 {
        self.share_of_calls(self.failed_calls())
    }

    /// Mean number of CPUs that the server's processes kept busy.
    pub fn busy_cpus(&self) -> Option<f64> {
        self.observed.as_ref().map(|observed| observed.busy)
    }

    /// Shares of time that the server's CPUs spent in user mode, in system mode, idle, and so on.
    pub fn cpu_shares(&self) -> Option<CpuShares> {
        self.record.server.as_ref()?.kernel.cpu
    }

    /// The verdict on the measurement: whether the load generator kept up, and whether other work or a quota withheld
    /// CPU time from the server. `servers` is the number of the server's CPUs.
    pub fn verdict(&self, servers: u32) -> Verdict {
        let mut reasons = self.record.verdict.reasons.clone();
        let other_work =
            self.cpu_shares().zip(self.busy_cpus()).map(|(cpu, busy)| 1.0 - cpu.idle - busy / f64::from(servers));
        if let Some(other_work) = other_work.filter(|share| *share > MAX_OTHER_WORK) {
            let message = format!(
                "Something other than the server used {} of the server's CPUs. Stop it, or keep it on other CPUs; `top` \
                 shows what it is.",
                quantity::whole_percent(other_work)
            );
            reasons.push(Reason { code: ReasonCode::OtherWork, message });
        }
        reasons.extend(self.throttled().map(|throttled| throttled.reason));
        Verdict { valid: reasons.is_empty(), reasons, ..self.record.verdict }
    }

    /// The CPU quota that stopped the server's processes for the longest time; `None` if that time is negligible.
    pub fn throttled(&self) -> Option<Throttled> {
        let server = self.record.server.as_ref()?;
        let quotas = server.process.iter().filter_map(|program| program.quota.as_ref());
        let quota = quotas.max_by(|a, b| a.throttled_s.total_cmp(&b.throttled_s))?;
        let share = (quota.throttled_s / self.record.window_s).min(1.0);
        if share < THROTTLED_SHARE {
            return None;
        }
        let message = format!(
            "The CPU quota of {} CPUs of {} stopped the server's processes for {} of the time. The measurements show the \
             quota's stop and go, which the model does not describe. Raise the quota, or survey the server without it and \
             ask the model how large a quota the server needs.",
            quantity::number(quota.cpus),
            quota.group,
            quantity::percent(share)
        );
        Some(Throttled { share, reason: Reason { code: ReasonCode::Throttled, message } })
    }

    /// A message if the server limits the rate of its clients (status 429). It states the accepted rate.
    pub fn rate_limit(&self) -> Option<String> {
        let counts = &self.record.counts;
        let refused = counts.status.s429;
        if self.share_of_calls(refused) < FAILED_SHARE {
            return None;
        }
        let accepted = self.record.rates.completed * (1.0 - refused as f64 / (counts.completed as f64).max(1.0));
        Some(format!(
            "{} of the calls were answered 429: the server limits the rate of its clients, here at about {}. Raise or \
             switch off its limit for this client's address.",
            quantity::percent(self.share_of_calls(refused)),
            quantity::rate(accepted)
        ))
    }

    /// A reason to distrust the measurement if too many calls failed. Then the other metrics have no meaning.
    pub fn failures(&self) -> Option<Reason> {
        if let Some(message) = self.rate_limit() {
            return Some(Reason { code: ReasonCode::RateLimited, message });
        }
        let share = self.failed_share();
        if share < FAILED_SHARE {
            return None;
        }
        let message = format!(
            "{} of the calls failed or were answered with a server error (5xx), so the figures do not show what the \
             server can do while it works. Its own log says why.",
            quantity::percent(share)
        );
        Some(Reason { code: ReasonCode::ServerErrors, message })
    }

    /// Squared coefficient of variation of response times within a class, averaged over the classes and weighted by
    /// calls.
    fn response_scv(&self) -> Option<f64> {
        let summaries = self.record.classes.values().filter_map(|class| class.response_time_us);
        let mut variances = 0.0;
        let mut squared_means = 0.0;
        for times in summaries {
            variances += times.count as f64 * (times.stddev * times.stddev);
            squared_means += times.count as f64 * (times.mean * times.mean);
        }
        let scv = variances / squared_means;
        scv.is_finite().then_some(scv)
    }

    fn failed_calls(&self) -> u64 {
        self.record.counts.errors() + self.record.counts.status.s5xx
    }

    fn share_of_calls(&self, calls: u64) -> f64 {
        calls as f64 / (self.record.counts.scheduled as f64).max(1.0)
    }
}
