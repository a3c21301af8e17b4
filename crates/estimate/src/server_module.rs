//! Reads the Server Module's measurements from a Record, the document of a run. The Server Module is a plug-in of the
//! web server that measures requests.
//!
//! A request class of the module and a request class of the load are the same if their names are equal. Times are
//! seconds of CPU time.

use brimful_core::quantity::count;
use brimful_core::record::{ClassRecord, Record};
use brimful_core::server::{CpuDemand, Module, ModuleClass};
use brimful_core::workload::Workload;
use std::fmt;

/// Maximum difference between the number of requests that the module counted and the number that the load completed, as
/// a share of the latter number. The numbers differ because the module does not begin and end counting at the same time
/// as the load.
const MAX_MISCOUNT: f64 = 0.25;
/// Number of requests by which the module's count may differ in addition to `MAX_MISCOUNT`. It matters for short runs.
const ALLOWED_MISCOUNT: f64 = 20.0;

/// CPU time of the requests of one class, as the Server Module measured it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModuleDemand {
    /// Number of requests whose CPU time was measured.
    pub sampled: f64,
    /// Mean CPU time of a request in the server's processing phases, in seconds. It does not depend on the load, so
    /// classes that were measured under different loads can be compared.
    pub cpu_in_phases_s: f64,
    /// Variance of the CPU time in processing phases between requests, in seconds squared.
    pub variance: f64,
    /// CPU time of a request including work outside of the processing phases. `None` if there were too few requests.
    pub total: Option<TotalDemand>,
}

/// Total CPU time of a request: the CPU time in its processing phases, and an equal share of the CPU time that the
/// server's workers spend outside of these phases. This share depends on the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TotalDemand {
    /// Mean total CPU time of a request, in seconds.
    pub mean: f64,
    /// Squared standard error of `mean`, in seconds squared.
    pub mean_variance: f64,
}

/// The workers of a web server in which each worker serves at most one request at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workers {
    /// Maximum number of workers.
    pub max_workers: u32,
    /// Mean number of workers that are serving a request.
    pub busy: f64,
}

/// The reason why the Server Module's measurements cannot be used for the request classes of the load.
#[derive(Clone, Debug, PartialEq)]
pub enum ModuleMismatch {
    /// The module has no class with the name of a class of the load.
    Name {
        /// Name of the request class of the load.
        class: String,
        /// Names of the request classes that the module measured.
        known: Vec<String>,
        /// For each class of the load, a rule that recognizes its requests, in the form that `brimful module install`
        /// accepts.
        rules: Vec<String>,
        /// The name of the server software in `brimful module install`: `nginx` or `apache`.
        server: &'static str,
    },
    /// The module counted a different number of requests of a class than the load completed.
    Count {
        /// Name of the request class.
        class: String,
        /// Number of requests that the module counted.
        counted: f64,
        /// Number of requests that the load completed.
        completed: f64,
    },
    /// The module measured the CPU time of too few requests of this class.
    Unsampled {
        /// Name of the request class.
        class: String,
    },
}

impl ModuleDemand {
    /// The module's measurements of the requests of these classes in the Record. An entry is `None` if its class
    /// completed no requests. The result is `None` if the Record has no measurements of the module.
    ///
    /// # Errors
    /// If the module's classes do not match the classes of the load, or if the module measured too few requests of a
    /// class.
    pub fn from_record(
        record: &Record,
        classes: &[(&str, Option<&ClassRecord>)],
    ) -> Option<Result<Vec<Option<ModuleDemand>>, ModuleMismatch>> {
        let module = record.server.as_ref()?.module.as_ref().filter(|module| !module.classes.is_empty())?;
        let class = |(name, class): &(&str, Option<&ClassRecord>)| {
            let completed = class.map_or(0.0, |class| class.counts.completed as f64);
            if completed > 0.0 { class_demand(record, module, name, completed).map(Some) } else { Ok(None) }
        };
        Some(classes.iter().map(class).collect())
    }

    /// The difference between the CPU time of each class and the CPU time of the cheapest class, in seconds per
    /// request.
    pub fn excess_over_cheapest(classes: &[ModuleDemand]) -> Vec<f64> {
        let cheapest = classes.iter().map(|class| class.cpu_in_phases_s).fold(f64::INFINITY, f64::min);
        classes.iter().map(|class| class.cpu_in_phases_s - cheapest).collect()
    }

    /// Combines two samples of the same class. The difference between their means is not added to the variance, because
    /// it is caused by different loads.
    #[must_use]
    pub fn pool(self, other: ModuleDemand) -> ModuleDemand {
        let sampled = self.sampled + other.sampled;
        let own_share = self.sampled / sampled;
        let other_share = other.sampled / sampled;
        let combine = |(own, other): (TotalDemand, TotalDemand)| TotalDemand {
            mean: own_share * own.mean + other_share * other.mean,
            mean_variance: own_share * own_share * own.mean_variance + other_share * other_share * other.mean_variance,
        };
        ModuleDemand {
            sampled,
            cpu_in_phases_s: own_share * self.cpu_in_phases_s + other_share * other.cpu_in_phases_s,
            variance: own_share * self.variance + other_share * other.variance,
            total: self.total.zip(other.total).map(combine).or(self.total).or(other.total),
        }
    }

    /// Standard error of the mean of `total`, in seconds. If `total` is unknown, the standard error of
    /// `cpu_in_phases_s`.
    pub fn standard_error(&self) -> f64 {
        self.total.map_or(self.variance / self.sampled, |total| total.mean_variance).sqrt()
    }
}

/// Ratio of the half width of a 95 % confidence interval to the standard error, for a mean of many samples.
pub(crate) const NORMAL_95: f64 = 1.96;

impl Workers {
    /// Reads the number of workers and of busy workers from a Record. If it has several web servers, uses the one with
    /// the largest share of busy workers. `None` if no server reports both numbers.
    pub fn from_record(record: &Record) -> Option<Workers> {
        let servers = &record.server.as_ref()?.module.as_ref()?.servers;
        let limited = servers.iter().filter_map(|server| {
            let max_workers = u32::try_from(server.max_workers?).ok().filter(|max_workers| *max_workers > 0)?;
            Some(Workers { max_workers, busy: server.workers_busy.filter(|busy| busy.is_finite() && *busy >= 0.0)? })
        });
        limited.max_by(|a, b| a.busy_share().total_cmp(&b.busy_share()))
    }

    /// Share of the workers that are busy, from 0 to 1.
    pub fn busy_share(self) -> f64 {
        (self.busy / f64::from(self.max_workers)).min(1.0)
    }
}

/// Number of workers that can compete for the CPUs, as the Server Module reports it. If several servers have the
/// module, the largest of their numbers. `None` without the module.
pub fn competing_workers(record: &Record) -> Option<u64> {
    let servers = &record.server.as_ref()?.module.as_ref()?.servers;
    servers.iter().map(|server| server.workers).filter(|workers| *workers > 0).max()
}

/// Squared coefficient of variation (scv) of the CPU time of requests within a class, and the standard error of the
/// scv.
///
/// It is one value for all classes: Σ x·σ² ÷ Σ x·D², where each class has the request rate x, the variance σ² and the
/// demand D. With this value, the second moment of the CPU time of all requests is correct. The standard error assumes
/// independent samples and a kurtosis of 3, as for the normal distribution.
pub fn scv_within_classes(classes: &[ModuleDemand], demands: &[f64], rates: &[f64]) -> Option<(f64, f64)> {
    let squares: f64 = demands.iter().zip(rates).map(|(demand, rate)| rate * (demand * demand)).sum();
    let variances: f64 = classes.iter().zip(rates).map(|(class, rate)| rate * class.variance).sum();
    let error_of_variance = |class: &ModuleDemand| class.variance * (2.0 / (class.sampled - 1.0).max(1.0)).sqrt();
    let errors = classes.iter().zip(rates).map(|(class, rate)| (rate * error_of_variance(class)).powi(2));
    let scv = variances / squares;
    let standard_error = errors.sum::<f64>().sqrt() / squares;
    (scv.is_finite() && standard_error.is_finite()).then_some((scv, standard_error))
}

fn class_demand(record: &Record, module: &Module, name: &str, completed: f64) -> Result<ModuleDemand, ModuleMismatch> {
    let same_name: Vec<&ModuleClass> = module.classes.iter().filter(|class| class.name == name).collect();
    if same_name.is_empty() {
        let mut known: Vec<String> = module.classes.iter().map(|class| class.name.clone()).collect();
        known.sort_unstable();
        known.dedup();
        let is_apache = module.servers.first().is_some_and(|server| server.name.starts_with("Apache"));
        let server = if is_apache { "apache" } else { "nginx" };
        return Err(ModuleMismatch::Name {
            class: name.to_owned(),
            known,
            rules: rules(record.workload.as_ref()),
            server,
        });
    }
    let counted: f64 = same_name.iter().map(|class| class.requests as f64).sum();
    if (counted - completed).abs() > ALLOWED_MISCOUNT + MAX_MISCOUNT * completed {
        return Err(ModuleMismatch::Count { class: name.to_owned(), counted, completed });
    }
    let pooled = same_name.into_iter().filter_map(parse_class).reduce(ModuleDemand::pool);
    pooled.ok_or_else(|| ModuleMismatch::Unsampled { class: name.to_owned() })
}

/// Converts the module's measurements of a class, which are untrusted input. `None` if a value is impossible, or if the
/// CPU time of fewer than two requests was measured.
fn parse_class(class: &ModuleClass) -> Option<ModuleDemand> {
    let is_figure = |value: f64| value.is_finite() && value >= 0.0;
    let cpu =
        class.cpu_us.filter(|cpu| cpu.count > 1 && cpu.mean > 0.0 && is_figure(cpu.mean) && is_figure(cpu.stddev))?;
    let is_valid =
        |demand: &CpuDemand| demand.mean > 0.0 && is_figure(demand.mean) && is_figure(demand.ci95_half_width);
    Some(ModuleDemand {
        sampled: cpu.count as f64,
        cpu_in_phases_s: cpu.mean / 1e6,
        variance: (cpu.stddev / 1e6).powi(2),
        total: class.demand_us.filter(is_valid).map(|demand| TotalDemand {
            mean: demand.mean / 1e6,
            mean_variance: (demand.ci95_half_width / 1e6 / NORMAL_95).powi(2),
        }),
    })
}

/// For each class of the load, a rule by which the Server Module can recognize its requests. Empty unless each class
/// requests a single path.
fn rules(workload: Option<&Workload>) -> Vec<String> {
    let Some(workload) = workload else { return Vec::new() };
    let path = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
    let rule = |class: &brimful_core::workload::RequestClass| {
        (class.urls.is_empty() && class.path.starts_with('/'))
            .then(|| format!("{}=url {}", class.name, path(&class.path)))
    };
    workload.classes.iter().map(rule).collect::<Option<_>>().unwrap_or_default()
}

/// Writes the reason and the advice as a clause without a full stop.
impl fmt::Display for ModuleMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModuleMismatch::Name { class, known, rules, server } => {
                write!(f, "it knows no class {class}, only {}: ", known.join(", "))?;
                write!(f, "install it again with the classes of the load, `brimful module install {server}")?;
                match rules.is_empty() {
                    true => write!(f, " --class '{class}=url /…'")?,
                    false => rules.iter().try_for_each(|rule| write!(f, " --class '{rule}'"))?,
                }
                f.write_str("`")
            }
            ModuleMismatch::Count { class, counted, completed } => write!(
                f,
                "it counted {} requests of class {class}, and the load completed {}: check that its rules match what the load \
                 requests, and that nothing else uses the server meanwhile",
                count(*counted as u64),
                count(*completed as u64)
            ),
            ModuleMismatch::Unsampled { class } => write!(
                f,
                "it measured the CPU time of too few requests of class {class}: measure longer, or install it with a smaller \
                 --cpu-one-in"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(sampled: f64, cpu_in_phases_s: f64, stddev: f64) -> ModuleDemand {
        let total = TotalDemand { mean: 1.1 * cpu_in_phases_s, mean_variance: stddev * stddev / sampled };
        ModuleDemand { sampled, cpu_in_phases_s, variance: stddev * stddev, total: Some(total) }
    }

    #[test]
    fn samples_are_pooled_by_their_number() {
        let pooled = inside(100.0, 0.001, 0.0002).pool(inside(300.0, 0.002, 0.0004));
        assert!((pooled.cpu_in_phases_s - 0.00175).abs() < 1e-12 && pooled.sampled == 400.0);
        let variance = 0.25 * 0.0002_f64.powi(2) + 0.75 * 0.0004_f64.powi(2);
        assert!(
            (pooled.variance - variance).abs() < 1e-15,
            "the difference of the means must not count as variance: {pooled:?}"
        );
        let variance_of_mean = 0.0625 * 0.0002_f64.powi(2) / 100.0 + 0.5625 * 0.0004_f64.powi(2) / 300.0;
        let total = pooled.total.unwrap();
        assert!((total.mean_variance - variance_of_mean).abs() < 1e-18 && (total.mean - 1.1 * 0.00175).abs() < 1e-12);
        let alone = ModuleDemand { total: None, ..inside(100.0, 0.001, 0.0002) };
        assert!((alone.standard_error() - 0.00002).abs() < 1e-12);
    }

    #[test]
    fn the_second_moment_of_all_requests_is_that_of_the_classes() {
        let (classes, demands, rates) =
            ([inside(1e4, 0.001, 0.001), inside(1e4, 0.004, 0.002)], [0.001, 0.004], [300.0, 100.0]);
        let (scv, error) = scv_within_classes(&classes, &demands, &rates).unwrap();
        let second = 300.0 * 2.0 * 0.001_f64.powi(2) + 100.0 * 1.25 * 0.004_f64.powi(2);
        let of_means = 300.0 * 0.001_f64.powi(2) + 100.0 * 0.004_f64.powi(2);
        assert!(((1.0 + scv) * of_means / second - 1.0).abs() < 1e-12, "{scv}");
        assert!(error > 0.0 && error < 0.02 * scv, "{error}");
        assert_eq!(scv_within_classes(&classes, &[0.0, 0.0], &rates), None);
    }

    #[test]
    fn a_mismatch_names_its_remedy() {
        let rules = vec!["light=url /light".to_owned()];
        let known = vec!["other".to_owned(), "under-5k".to_owned()];
        let said = ModuleMismatch::Name { class: "light".to_owned(), known: known.clone(), rules, server: "apache" }
            .to_string();
        assert!(
            said.contains("only other, under-5k")
                && said.ends_with("`brimful module install apache --class 'light=url /light'`"),
            "{said}"
        );
        let said =
            ModuleMismatch::Name { class: "light".to_owned(), known, rules: Vec::new(), server: "nginx" }.to_string();
        assert!(said.contains("--class 'light=url /…'"), "{said}");
    }
}
