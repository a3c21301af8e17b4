//! What a server says of its own requests, by the classes of a load: the one reading of the Server Module in a Record.
//!
//! A class of the module is the class of the load that is called the same, and no other: what else a request of the
//! module's may be, nobody here can know. Times are seconds of CPU time.

use brimful_core::quantity::count;
use brimful_core::record::{ClassRecord, Record};
use brimful_core::server::{CpuDemand, Module, ModuleClass};
use brimful_core::workload::Workload;
use std::fmt;

/// The module may have counted this share more or fewer requests of a class than were completed: it does not look at
/// the very instants at which the load begins and ends.
const MISCOUNTED: f64 = 0.25;
/// The same in requests.
const MISCOUNTED_AT_ALL: f64 = 20.0;

/// What requests of one class cost the server's CPUs, as it measured that itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inside {
    /// Requests whose CPU time was measured.
    pub sampled: f64,
    /// CPU time of one in its phases. By this classes differ, whatever the load was that each was measured under.
    pub within: f64,
    /// Variance of what single requests need, in square seconds.
    pub variance: f64,
    /// What one costs in all, where enough requests came to tell.
    pub whole: Option<Whole>,
}

/// What a request costs: the CPU time of its phases, and an equal share of what the workers used outside of all phases,
/// which depends on the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whole {
    /// Its mean.
    pub mean: f64,
    /// Variance of the mean as an estimate, in square seconds.
    pub mean_variance: f64,
}

/// The workers of a server that serves no more requests at a time than it has workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workers {
    /// How many it may have.
    pub most: u32,
    /// How many of them were busy, on average.
    pub busy: f64,
}

/// Why what the module says cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum Unmatched {
    /// It knows no class of this name.
    Name {
        /// The load's class.
        class: String,
        /// The classes that it knows.
        known: Vec<String>,
        /// The rules by which it would know those of the load, as `brimful module install` takes them.
        rules: Vec<String>,
        /// What `brimful module install` calls the server.
        server: &'static str,
    },
    /// Its class of this name has other requests than those of the load.
    Count {
        /// The class.
        class: String,
        /// Requests that it counted.
        counted: f64,
        /// Requests that the load completed.
        completed: f64,
    },
    /// The CPU time of too few requests of this class was measured.
    Unsampled {
        /// The class.
        class: String,
    },
}

impl Inside {
    /// By these classes of the Record; `None` for those that had no requests. The outer `None`: there is no module.
    ///
    /// # Errors
    /// Its classes are not those of the load, or too little was measured of one.
    pub fn of(
        record: &Record,
        classes: &[(&str, Option<&ClassRecord>)],
    ) -> Option<Result<Vec<Option<Inside>>, Unmatched>> {
        let module = record.server.as_ref()?.module.as_ref().filter(|module| !module.classes.is_empty())?;
        let class = |(name, class): &(&str, Option<&ClassRecord>)| {
            let completed = class.map_or(0.0, |class| class.counts.completed as f64);
            if completed > 0.0 { one(record, module, name, completed).map(Some) } else { Ok(None) }
        };
        Some(classes.iter().map(class).collect())
    }

    /// What each class costs more than the cheapest, in seconds.
    pub fn beyond_least(classes: &[Inside]) -> Vec<f64> {
        let least = classes.iter().map(|class| class.within).fold(f64::INFINITY, f64::min);
        classes.iter().map(|class| class.within - least).collect()
    }

    /// Two samples of the same class as one. What differs between their means is the load's doing, not the requests'.
    #[must_use]
    pub fn pool(self, other: Inside) -> Inside {
        let sampled = self.sampled + other.sampled;
        let (a, b) = (self.sampled / sampled, other.sampled / sampled);
        let whole = |(one, two): (Whole, Whole)| Whole {
            mean: a * one.mean + b * two.mean,
            mean_variance: a * a * one.mean_variance + b * b * two.mean_variance,
        };
        Inside {
            sampled,
            within: a * self.within + b * other.within,
            variance: a * self.variance + b * other.variance,
            whole: self.whole.zip(other.whole).map(whole).or(self.whole).or(other.whole),
        }
    }

    /// Standard error of what one costs, or where that is not known, of its phases.
    pub fn standard_error(&self) -> f64 {
        self.whole.map_or(self.variance / self.sampled, |whole| whole.mean_variance).sqrt()
    }
}

/// Half width of a 95 % interval of the mean of many samples, in standard errors.
pub(crate) const NORMAL_95: f64 = 1.96;

impl Workers {
    /// Those of the server that was nearest to its limit; `None` where no server has one, or none says so.
    pub fn of(record: &Record) -> Option<Workers> {
        let servers = &record.server.as_ref()?.module.as_ref()?.servers;
        let limited = servers.iter().filter_map(|server| {
            let most = u32::try_from(server.workers_most?).ok().filter(|most| *most > 0)?;
            Some(Workers { most, busy: server.workers_busy.filter(|busy| busy.is_finite() && *busy >= 0.0)? })
        });
        limited.max_by(|a, b| a.share().total_cmp(&b.share()))
    }

    /// How many of them were busy, from 0 to 1.
    pub fn share(self) -> f64 {
        (self.busy / f64::from(self.most)).min(1.0)
    }
}

/// How many workers of servers with the module there are at most who may want a CPU at the same time; `None` without
/// the module.
pub fn threads(record: &Record) -> Option<u64> {
    let servers = &record.server.as_ref()?.module.as_ref()?.servers;
    servers.iter().map(|server| server.workers).filter(|workers| *workers > 0).max()
}

/// Squared coefficient of variation of the CPU time of requests of a class, over classes that come at these rates, such
/// that the second moment of all requests is right: Σ x·σ² ÷ Σ x·D². With its standard error: samples are independent,
/// and as the kurtosis of their distribution is not known, it is taken to be a normal one's (3), at least.
pub fn variability(inside: &[Inside], demands: &[f64], rates: &[f64]) -> Option<(f64, f64)> {
    let sum = |of: &dyn Fn(&Inside, f64) -> f64| {
        inside.iter().zip(demands).zip(rates).map(|((inside, demand), rate)| rate * of(inside, *demand)).sum::<f64>()
    };
    let squares = sum(&|_, demand| demand * demand);
    let error_of_variance = |inside: &Inside| inside.variance * (2.0 / (inside.sampled - 1.0).max(1.0)).sqrt();
    let errors = inside.iter().zip(rates).map(|(inside, rate)| (rate * error_of_variance(inside)).powi(2));
    let (scv, error) = (sum(&|inside, _| inside.variance) / squares, errors.sum::<f64>().sqrt() / squares);
    (scv.is_finite() && error.is_finite()).then_some((scv, error))
}

fn one(record: &Record, module: &Module, name: &str, completed: f64) -> Result<Inside, Unmatched> {
    let class = || name.to_owned();
    let same: Vec<&ModuleClass> = module.classes.iter().filter(|class| class.name == name).collect();
    if same.is_empty() {
        let mut known: Vec<String> = module.classes.iter().map(|class| class.name.clone()).collect();
        known.sort_unstable();
        known.dedup();
        let is_apache = module.servers.first().is_some_and(|server| server.name.starts_with("Apache"));
        let server = if is_apache { "apache" } else { "nginx" };
        return Err(Unmatched::Name { class: class(), known, rules: rules(record.workload.as_ref()), server });
    }
    let counted: f64 = same.iter().map(|class| class.requests as f64).sum();
    if (counted - completed).abs() > MISCOUNTED_AT_ALL + MISCOUNTED * completed {
        return Err(Unmatched::Count { class: class(), counted, completed });
    }
    let pooled = same.into_iter().filter_map(sampled).reduce(Inside::pool);
    pooled.ok_or_else(|| Unmatched::Unsampled { class: class() })
}

/// What foreign figures say, if they can be true.
fn sampled(class: &ModuleClass) -> Option<Inside> {
    let is_figure = |value: f64| value.is_finite() && value >= 0.0;
    let cpu =
        class.cpu_us.filter(|cpu| cpu.count > 1 && cpu.mean > 0.0 && is_figure(cpu.mean) && is_figure(cpu.stddev))?;
    let whole = |demand: &CpuDemand| demand.mean > 0.0 && is_figure(demand.mean) && is_figure(demand.ci95_half_width);
    Some(Inside {
        sampled: cpu.count as f64,
        within: cpu.mean / 1e6,
        variance: (cpu.stddev / 1e6).powi(2),
        whole: class.demand_us.filter(whole).map(|demand| Whole {
            mean: demand.mean / 1e6,
            mean_variance: (demand.ci95_half_width / 1e6 / NORMAL_95).powi(2),
        }),
    })
}

/// A rule for each class of the load, where each asks for one path.
fn rules(workload: Option<&Workload>) -> Vec<String> {
    let Some(workload) = workload else { return Vec::new() };
    let path = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
    let rule = |class: &brimful_core::workload::RequestClass| {
        (class.urls.is_empty() && class.path.starts_with('/'))
            .then(|| format!("{}=url {}", class.name, path(&class.path)))
    };
    workload.classes.iter().map(rule).collect::<Option<_>>().unwrap_or_default()
}

/// Why, and what to do: a clause without a full stop.
impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmatched::Name { class, known, rules, server } => {
                write!(f, "it knows no class {class}, only {}: ", known.join(", "))?;
                write!(f, "install it again with the classes of the load, `brimful module install {server}")?;
                match rules.is_empty() {
                    true => write!(f, " --class '{class}=url /…'")?,
                    false => rules.iter().try_for_each(|rule| write!(f, " --class '{rule}'"))?,
                }
                f.write_str("`")
            }
            Unmatched::Count { class, counted, completed } => write!(
                f,
                "it counted {} requests of class {class}, and the load completed {}: see that its rules take what the load \
                 asks for, and that nobody else uses the server meanwhile",
                count(*counted as u64),
                count(*completed as u64)
            ),
            Unmatched::Unsampled { class } => write!(
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

    fn inside(sampled: f64, within: f64, stddev: f64) -> Inside {
        let whole = Whole { mean: 1.1 * within, mean_variance: stddev * stddev / sampled };
        Inside { sampled, within, variance: stddev * stddev, whole: Some(whole) }
    }

    #[test]
    fn samples_are_pooled_by_their_number() {
        let pooled = inside(100.0, 0.001, 0.0002).pool(inside(300.0, 0.002, 0.0004));
        assert!((pooled.within - 0.00175).abs() < 1e-12 && pooled.sampled == 400.0);
        let variance = 0.25 * 0.0002_f64.powi(2) + 0.75 * 0.0004_f64.powi(2);
        assert!((pooled.variance - variance).abs() < 1e-15, "the means' distance is no part of it: {pooled:?}");
        let of_mean = 0.0625 * 0.0002_f64.powi(2) / 100.0 + 0.5625 * 0.0004_f64.powi(2) / 300.0;
        let whole = pooled.whole.unwrap();
        assert!((whole.mean_variance - of_mean).abs() < 1e-18 && (whole.mean - 1.1 * 0.00175).abs() < 1e-12);
        let alone = Inside { whole: None, ..inside(100.0, 0.001, 0.0002) };
        assert!((alone.standard_error() - 0.00002).abs() < 1e-12);
    }

    #[test]
    fn the_second_moment_of_all_requests_is_that_of_the_classes() {
        let (classes, demands, rates) =
            ([inside(1e4, 0.001, 0.001), inside(1e4, 0.004, 0.002)], [0.001, 0.004], [300.0, 100.0]);
        let (scv, error) = variability(&classes, &demands, &rates).unwrap();
        let second = 300.0 * 2.0 * 0.001_f64.powi(2) + 100.0 * 1.25 * 0.004_f64.powi(2);
        let of_means = 300.0 * 0.001_f64.powi(2) + 100.0 * 0.004_f64.powi(2);
        assert!(((1.0 + scv) * of_means / second - 1.0).abs() < 1e-12, "{scv}");
        assert!(error > 0.0 && error < 0.02 * scv, "{error}");
        assert_eq!(variability(&classes, &[0.0, 0.0], &rates), None);
    }

    #[test]
    fn what_does_not_match_is_said_with_a_remedy() {
        let rules = vec!["light=url /light".to_owned()];
        let known = vec!["other".to_owned(), "under-5k".to_owned()];
        let said =
            Unmatched::Name { class: "light".to_owned(), known: known.clone(), rules, server: "apache" }.to_string();
        assert!(
            said.contains("only other, under-5k")
                && said.ends_with("`brimful module install apache --class 'light=url /light'`"),
            "{said}"
        );
        let said = Unmatched::Name { class: "light".to_owned(), known, rules: Vec::new(), server: "nginx" }.to_string();
        assert!(said.contains("--class 'light=url /…'"), "{said}");
    }
}
