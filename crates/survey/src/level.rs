//! One load level: what the fit and the comparison need of its Record.

use crate::SurveyError;
use brimful_core::quantity;
use brimful_core::record::{ClassRecord, Reason, ReasonCode, Record, Verdict};
use brimful_core::server::{CpuShares, OTHER_WORK};
use brimful_core::survey::{Comparison, Level, LevelClass, Percentiles, Role};
use brimful_core::workload::{Class, Load, Workload};
use brimful_estimate::{Observed, Prediction};

/// Two samples of a throughput make an interval that says nothing.
const MIN_SAMPLES: u64 = 3;

/// From this share of failed calls on, the times and the CPU of the others are those of another load.
const FAILED: f64 = 0.01;

/// A load that was tried.
#[derive(Debug)]
pub(crate) struct Trial {
    pub record: Record,
    /// What the server's processes did while load was offered, by class in the order of the workload.
    observed: Option<Observed>,
}

impl Trial {
    /// By its Record, of a workload of these classes.
    pub fn new(record: Record, classes: &[Class]) -> Trial {
        let classes: Vec<Option<&ClassRecord>> = classes.iter().map(|class| record.classes.get(&class.name)).collect();
        let observed = Observed::of(&record, &classes, true);
        Trial { record, observed }
    }

    /// Mean response time, in seconds.
    pub fn response(&self) -> Option<f64> {
        self.record.response_time_us.map(|summary| summary.mean / 1e6)
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
                "Something other than the server used {:.0} % of the server's CPUs. Stop it, or keep it elsewhere; `top` \
                 shows what it is.",
                100.0 * other
            );
            reasons.push(Reason { code: ReasonCode::OtherWork, message });
        }
        Verdict { valid: reasons.is_empty(), reasons, ..self.record.verdict }
    }

    /// What the server failed to do, if that is so much that the rest says little about it.
    fn failures(&self) -> Option<Reason> {
        let share = self.share_of_calls(self.failed() - self.record.counts.client_limited);
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
        let response = record.response_time_us;
        let compare = |predicted: Option<f64>, measured, ci| Comparison {
            measured_ci95_half_width: ci,
            ..Comparison::of(predicted, measured)
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
                response_time_s: Comparison::of(predicted.filter(|_| mean.is_some()), mean),
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
            response_time_s: compare(predicted.and_then(|p| p.response), self.response(), ci),
            response_percentiles_s: Percentiles {
                p50: response.map(|r| r.p50 / 1e6),
                p95: response.map(|r| r.p95 / 1e6),
                p99: response.map(|r| r.p99 / 1e6),
            },
            utilization: compare(
                predicted.map(|p| p.utilization),
                self.busy_in_window().map(|busy| busy / f64::from(servers)),
                None,
            ),
            cpu: self.cpu(),
            error_share: self.share_of_calls(self.failed()),
            lateness_p50_s: record.lateness_us.map(|l| l.p50 / 1e6),
            lateness_p99_s: record.lateness_us.map(|l| l.p99 / 1e6),
            verdict: Verdict { valid: reasons.is_empty(), reasons, ..record.verdict },
            classes: classes.collect(),
        }
    }
}

/// What a level is, besides what was measured of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub role: Role,
    pub workload: &'a str,
    /// The rate that counts as 1.
    pub saturation: f64,
    pub predicted: Option<&'a Prediction>,
}
