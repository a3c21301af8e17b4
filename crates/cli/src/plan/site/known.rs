//! Service demands that are known independently of the logs: from Records of runs of one class alone, and from flags.

use super::CPU;
use crate::documents::{display_name, read_record};
use crate::exit::UsageError;
use crate::plan::args::site::SiteArgs;
use brimful_core::quantity::{bytes, seconds};
use brimful_estimate::site::{SingleClassDemands, measure_alone};
use brimful_estimate::{SizePoint, fit_size};
use brimful_model::Estimate;
use std::collections::BTreeMap;

/// Minimum number of runs with different response sizes for fitting a line.
const MIN_POINTS: usize = 3;
/// Maximum mean response size, in bytes, at which responses may have no body. A response head is smaller than this.
const MAX_HEAD_BYTES: f64 = 4096.0;

/// Known service demands at all resources.
#[derive(Debug, Default)]
pub(super) struct KnownDemands {
    /// Each demand with a text that names its source, by resource and class.
    demands: BTreeMap<(String, usize), (Estimate, String)>,
    /// Demand of a response without a body, by resource: the intercept of the line fitted to demand by response size.
    intercepts: BTreeMap<String, Estimate>,
    /// Notes for the user about the Records of `--alone`.
    pub notes: Vec<String>,
}

impl KnownDemands {
    /// Reads `--alone` and `--demand`. `empty` is the index of the class of responses without a body.
    pub fn read(
        args: &SiteArgs,
        resources: &[String],
        classes: &[String],
        empty: Option<usize>,
    ) -> anyhow::Result<KnownDemands> {
        let mut known = KnownDemands::default();
        let mut unnamed = Vec::new();
        for alone in &args.alone {
            let name = display_name(&alone.path);
            let record = read_record(&alone.path)?;
            let run = measure_alone(&record)
                .map_err(|why| UsageError(format!("--alone {name}: this Record is no help: {why}")))?;
            match &alone.class {
                Some(class) => known.add_run(&run, class_index(class, classes, "--alone")?, &name, resources)?,
                None => unnamed.push((name, run)),
            }
        }
        known.add_unnamed(unnamed, empty, resources)?;
        for demand in &args.demand {
            check_resource(&demand.resource, resources)?;
            let class = class_index(&demand.class, classes, "--demand")?;
            let estimate = Estimate { value: demand.time.as_secs_f64(), ci95_half_width: None };
            known.add(&demand.resource, class, estimate, "from --demand".to_owned())?;
        }
        Ok(known)
    }

    /// The known demands at a resource, by class.
    pub fn demands_at(&self, resource: &str, classes: usize) -> Vec<Option<Estimate>> {
        let known = |class| self.demands.get(&(resource.to_owned(), class)).map(|(estimate, _)| *estimate);
        (0..classes).map(known).collect()
    }

    /// The sources of the known demands at a resource, by class.
    pub fn sources(&self, resource: &str, classes: usize) -> Vec<Option<String>> {
        let source = |class| self.demands.get(&(resource.to_owned(), class)).map(|(_, source)| source.clone());
        (0..classes).map(source).collect()
    }

    /// The demand of a response without a body at a resource: the intercept of the line fitted to demand by response
    /// size.
    pub fn intercept(&self, resource: &str) -> Option<Estimate> {
        self.intercepts.get(resource).copied()
    }

    /// Adds the service demands that a run of one class alone measured at the CPU and at the disks.
    fn add_run(
        &mut self,
        run: &SingleClassDemands,
        class: usize,
        name: &str,
        resources: &[String],
    ) -> anyhow::Result<()> {
        for (resource, estimate) in measured(run, resources) {
            self.add(&resource, class, estimate, format!("from {name}"))?;
        }
        Ok(())
    }

    /// Adds runs for which `--alone` names no class: runs of responses without a body, or runs of several response
    /// sizes.
    fn add_unnamed(
        &mut self,
        runs: Vec<(String, SingleClassDemands)>,
        empty: Option<usize>,
        resources: &[String],
    ) -> anyhow::Result<()> {
        let without_body = |run: &SingleClassDemands| run.mean_bytes.is_none_or(|bytes| bytes <= MAX_HEAD_BYTES);
        if runs.len() >= MIN_POINTS && runs.iter().any(|(_, run)| !without_body(run)) {
            return self.add_line(&runs, resources);
        }
        for (name, run) in &runs {
            if !without_body(run) {
                let size = bytes(run.mean_bytes.unwrap_or(0.0));
                return Err(UsageError(format!(
                    "--alone {name}: its answers have {size} on average, so they are not answers without a body: name the \
                     class, like --alone CLASS={name}, or give Records of at least {MIN_POINTS} sizes"
                ))
                .into());
            }
            let Some(class) = empty else {
                return Err(UsageError(format!(
                    "--alone {name}: the log has no answers without a body: name the class, like --alone CLASS={name}"
                ))
                .into());
            };
            self.add_run(run, class, name, resources)?;
        }
        Ok(())
    }

    /// Fits a line to the demands of the runs by response size, as in Fig. 5 of Menascé et al. (CMG 1999).
    fn add_line(&mut self, runs: &[(String, SingleClassDemands)], resources: &[String]) -> anyhow::Result<()> {
        for resource in resources {
            let point = |(_, run): &(String, SingleClassDemands)| {
                let (_, estimate) = measured(run, resources).into_iter().find(|(name, _)| name == resource)?;
                Some(SizePoint { bytes: run.mean_bytes?, cpu_s: estimate.value })
            };
            let points: Vec<SizePoint> = runs.iter().filter_map(point).collect();
            if points.len() < MIN_POINTS {
                continue;
            }
            let fit = fit_size(&points).map_err(|error| {
                UsageError(format!("--alone: no line over sizes can be fitted for {resource}: {error}"))
            })?;
            if fit.per_request_s.value <= 0.0 {
                let note = format!(
                    "{resource}: the line through the runs of --alone has no positive cost without a body; use runs of smaller \
                     answers"
                );
                self.notes.push(note);
                continue;
            }
            let half = fit.per_request_s.ci95_half_width.map_or(String::new(), |half| format!(" ± {}", seconds(half)));
            self.notes.push(format!(
                "{resource}: the line through {} runs of --alone gives {}{half} for an answer without a body, and {} for each kB",
                points.len(),
                seconds(fit.per_request_s.value),
                seconds(1e3 * fit.per_byte_s.value)
            ));
            self.intercepts.insert(resource.clone(), fit.per_request_s);
        }
        Ok(())
    }

    fn add(&mut self, resource: &str, class: usize, estimate: Estimate, source: String) -> Result<(), UsageError> {
        match self.demands.insert((resource.to_owned(), class), (estimate, source.clone())) {
            None => Ok(()),
            Some((_, first)) => {
                Err(UsageError(format!("the demand of one class at {resource} is given twice: {first}, and {source}")))
            }
        }
    }
}

/// The demands that a run measured, by resource. Resources that the Record does not contain are left out.
fn measured(run: &SingleClassDemands, resources: &[String]) -> Vec<(String, Estimate)> {
    let of_resource = |resource: &String| {
        let estimate = if resource == CPU { Some(run.cpu) } else { run.disks.get(resource).copied() };
        Some((resource.clone(), estimate?))
    };
    resources.iter().filter_map(of_resource).collect()
}

fn class_index(name: &str, classes: &[String], flag: &str) -> Result<usize, UsageError> {
    classes.iter().position(|class| class == name).ok_or_else(|| {
        UsageError(format!("{flag}: there is no class `{name}` in the log; it has {}", classes.join(", ")))
    })
}

fn check_resource(name: &str, resources: &[String]) -> Result<(), UsageError> {
    match resources.iter().any(|resource| resource == name) {
        true => Ok(()),
        false => Err(UsageError(format!(
            "--demand: there is no resource `{name}` in --utilization; it has {}",
            resources.join(", ")
        ))),
    }
}
