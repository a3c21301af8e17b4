//! The data of a web site: requests and utilizations in each time step, and the service demands that are known in
//! advance.

use super::CPU;
use super::known::KnownDemands;
use super::logs::StepCounts;
use super::rules::{ResourceRule, explain_error};
use crate::plan::args::CalibrateArgs;
use crate::plan::utilization::Utilization;
use brimful_core::model::{ClassKind, ModelClass, Scheduling, Station, StationKind};
use brimful_estimate::site::{SiteDemands, SiteOptions, SiteStep, site_demands};

/// The measured data of a web site, and the service demands that are known in advance.
pub(super) struct SiteData<'a> {
    args: &'a CalibrateArgs,
    utilization: &'a Utilization,
    counted: &'a StepCounts,
    /// Service demands that are known from Records of one class alone, or from flags.
    pub known: KnownDemands,
    /// Indices of the time steps that are used, from [`StepCounts::steps`].
    pub used_steps: Vec<usize>,
    /// Number of CPUs; `None` if it is not known.
    cpus: Option<u32>,
}

impl<'a> SiteData<'a> {
    /// Reads the known service demands, and chooses the time steps to use.
    pub fn new(
        args: &'a CalibrateArgs,
        utilization: &'a Utilization,
        counted: &'a StepCounts,
    ) -> anyhow::Result<SiteData<'a>> {
        let known = KnownDemands::read(&args.site, &utilization.resources, &counted.classes, counted.empty_class)?;
        let cpus = args.servers.or(utilization.cpus);
        Ok(SiteData { args, utilization, counted, known, used_steps: counted.steps(), cpus })
    }

    /// Total length of the time steps that are used, in seconds.
    pub fn seconds(&self) -> f64 {
        self.used_steps.iter().map(|step| self.utilization.steps[*step].seconds).sum()
    }

    /// Number of requests of each class in the time steps that are used.
    pub fn requests(&self) -> Vec<f64> {
        self.sums(&self.counted.requests)
    }

    /// Mean size of the responses of each class in the time steps that are used, in bytes.
    pub fn mean_bytes(&self) -> Vec<f64> {
        let bytes = self.sums(&self.counted.bytes);
        bytes.iter().zip(self.requests()).map(|(bytes, requests)| bytes / requests.max(1.0)).collect()
    }

    fn sums(&self, table: &[Vec<f64>]) -> Vec<f64> {
        let sum = |class: usize| self.used_steps.iter().map(|step| table[*step][class]).sum();
        (0..self.counted.classes.len()).map(sum).collect()
    }

    /// The request classes of the model, with their mean arrival rates.
    pub fn model_classes(&self) -> Vec<ModelClass> {
        let seconds = self.seconds();
        let class = |(name, requests): (&String, f64)| ModelClass {
            name: name.clone(),
            kind: ClassKind::Open,
            rate: Some(requests / seconds),
            ..ModelClass::default()
        };
        self.counted.classes.iter().zip(self.requests()).map(class).collect()
    }

    /// Number of servers of a resource: the number of CPUs for resource 0, and 1 for all others.
    pub fn servers(&self, resource: usize) -> u32 {
        if resource == 0 { self.cpus.unwrap_or(1) } else { 1 }
    }

    /// The time steps that are used, with the requests and the busy time of one resource.
    pub fn steps(&self, resource: usize) -> Vec<SiteStep> {
        // The utilization may be a fraction of all CPUs of the host, some of which the server cannot use.
        let shared_by = if resource == 0 { self.utilization.cpus.unwrap_or(self.servers(resource)) } else { 1 };
        site_steps(self.utilization, self.counted, &self.used_steps, resource, f64::from(shared_by))
    }

    /// Divides the busy time of a resource among the classes, according to a rule.
    pub fn demands(&self, resource: usize, rule: ResourceRule, steps: &[SiteStep]) -> anyhow::Result<SiteDemands> {
        let name = &self.utilization.resources[resource];
        let classes = &self.counted.classes;
        let options = SiteOptions {
            rule: rule.rule,
            known: self.known.demands_at(name, classes.len()),
            empty_class: self.counted.empty_class,
            intercept: self.known.intercept(name),
            without_background: self.args.site.as_the_paper,
        };
        let empty = self.counted.empty_class.map(|class| classes[class].as_str());
        site_demands(classes.len(), steps, &options).map_err(|error| explain_error(error, name, empty))
    }

    /// The station of the model that represents a resource.
    pub fn station(&self, resource: usize, found: &SiteDemands) -> Station {
        let servers = self.servers(resource);
        Station {
            name: self.utilization.resources[resource].clone(),
            kind: StationKind::Queue,
            servers,
            scheduling: Scheduling::Ps,
            background: (found.background / f64::from(servers)).clamp(0.0, 0.99),
            ..Station::default()
        }
    }

    /// Notes for the user about the logs, the utilizations and the known demands.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![self.counted.lines_summary.clone()];
        notes.extend(self.counted.notes.iter().chain(&self.utilization.notes).chain(&self.known.notes).cloned());
        if self.cpus.is_none() && self.utilization.resources.first().is_some_and(|name| name == CPU) {
            notes.push("cpu is assumed to be one CPU; set the number with --servers".to_owned());
        }
        notes
    }
}

/// The time steps with the busy time of one resource. `servers` is the number of CPUs or disks that are busy at a
/// utilization of 1.
fn site_steps(
    utilization: &Utilization,
    counted: &StepCounts,
    used_steps: &[usize],
    index: usize,
    servers: f64,
) -> Vec<SiteStep> {
    let step = |step: &usize| {
        let at = &utilization.steps[*step];
        SiteStep {
            from_s: at.start_ms.div_euclid(1000),
            seconds: at.seconds,
            requests: counted.requests[*step].clone(),
            bytes: counted.bytes[*step].clone(),
            busy: at.shares[index] * servers,
        }
    };
    used_steps.iter().map(step).collect()
}
