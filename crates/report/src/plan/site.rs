//! The result of `brimful plan calibrate --log`: service demands estimated from access logs and measured utilizations.

use crate::format::{fact, figure, percent, seconds, shorten, table, without_control_characters, words};
use brimful_core::JsonSchema;
use brimful_core::model::Model;
use brimful_core::quantity::{count, number, signed_percent};
use brimful_estimate::Interval;
use serde::Serialize;

/// Identifier of the document's schema, and the value of [`Site::schema`].
pub const SCHEMA: &str = "brimful.site/1";

/// Demands estimated from access logs and utilizations.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Site {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// A sentence that names the bottleneck and the rate at which it saturates.
    pub headline: String,
    /// Estimated demands at each resource, such as a CPU or a disk.
    pub resources: Vec<Resource>,
    /// Number of time steps that both the logs and the utilizations cover.
    pub steps: u64,
    /// Mean length of a step, in seconds.
    pub step_s: f64,
    /// Number of requests in the steps that both the logs and the utilizations cover.
    pub requests: u64,
    /// The queueing model. Its demands at each resource are those that the resource's `rule` computes.
    pub model: Model,
    /// Caveats about the estimates.
    pub notes: Vec<String>,
}

/// Estimated demands at one resource, such as a CPU or a disk.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Resource {
    /// Name of the resource in the utilization file.
    pub name: String,
    /// The rule that divides the resource's busy time among the classes: `regression`, `line`, `size`, `bytes`,
    /// `requests` or `class`.
    pub rule: String,
    /// The rule and the reason why it was chosen, as a text for people.
    pub why: String,
    /// Busy time that the rule attributes to a response without a body, in seconds; absent if the rule does not use it.
    pub intercept: Option<f64>,
    /// Mean number of the resource's servers (such as CPUs) that are busy even without requests.
    pub background: f64,
    /// Comparison of the utilization in the second half of the steps with the prediction from the first half. Absent if
    /// there are too few steps.
    pub check: Option<SiteCheck>,
    /// Demands of each class, in seconds, estimated by several methods.
    pub demands: Vec<SiteDemand>,
    /// The reason why there is no estimate by regression; absent if there is one.
    pub no_regression: Option<String>,
    /// Time steps in which the resource was much busier than the requests in the logs explain.
    pub outliers: Vec<SiteOutlier>,
    /// Time between the steps in `outliers`, in seconds, if they recur periodically.
    pub period_s: Option<i64>,
    /// The program that probably caused most of `outliers`, if the programs that ran are known.
    pub program: Option<SiteProgram>,
}

/// A program that ran in the steps whose busy time the requests do not explain.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SiteProgram {
    /// Name of the program.
    pub name: String,
    /// Mean number of CPUs that the program used in the steps of `outliers`.
    pub cores: f64,
    /// Mean number of CPUs that the program used in all other steps.
    pub usual_cores: f64,
}

/// A comparison of the measured utilization in the second half of the steps with the prediction from the demands in the
/// first half.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SiteCheck {
    /// Number of steps in the second half.
    pub steps: u64,
    /// Measured utilization, 0 to 1.
    pub measured: f64,
    /// Predicted utilization, 0 to 1.
    pub predicted: f64,
    /// Relative error of the prediction: predicted utilization divided by the measured one, minus 1.
    pub error: f64,
    /// Root mean square error of the predicted utilization of single steps.
    pub step_error: f64,
}

/// The demand of one class at a resource, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SiteDemand {
    /// Name of the class.
    pub class: String,
    /// The demand that the model uses; it is computed by the `rule` of the resource.
    pub demand: f64,
    /// 95 % confidence interval of `demand`. It covers the variation between steps, but not an error of the rule
    /// itself. Absent if it is unknown.
    pub demand_ci95: Option<Interval>,
    /// Source of the demand, if it was given instead of estimated.
    pub known: Option<String>,
    /// Estimate by least squares over the steps.
    pub regression: Option<f64>,
    /// 95 % confidence interval of the least-squares estimate.
    pub ci95: Option<Interval>,
    /// Estimate that attributes busy time in proportion to the bytes sent, after known demands are subtracted (Menascé
    /// et al. 1999, Eq. 2 and 3).
    pub by_bytes: f64,
    /// Estimate that attributes the same busy time to every request (Menascé et al. 1999, Eq. 4).
    pub by_requests: f64,
}

/// A step in which the resource was much busier than the requests in the logs explain.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SiteOutlier {
    /// Start of the step (RFC 3339).
    pub from: String,
    /// Mean number of servers (of this resource) that were busy in addition to those that the requests explain.
    pub beyond: f64,
}

/// Formats the document as text that ends in a newline.
pub fn text(site: &Site) -> String {
    let mut text = crate::format::wrap(&site.headline, 0) + "\n" + &demands(site) + "\n";
    for resource in &site.resources {
        text += &fact(&shorten(&resource.name, 11), &resource.why);
        text += &fact("", &about(resource));
    }
    let steps = format!(
        "{} of {} on average, {} requests",
        count(site.steps),
        seconds(Some(site.step_s)),
        count(site.requests)
    );
    text += &fact("steps", &steps);
    for note in &site.notes {
        text += &fact("note", note);
    }
    without_control_characters(&text)
}

fn demands(site: &Site) -> String {
    let columns = [
        words("resource", 0),
        words("class", 2),
        figure("demand", 2, None),
        figure("95 % interval", 2, None),
        figure("regression", 2, None),
        figure("by bytes", 2, None),
        figure("by requests", 2, None),
    ];
    let row = |resource: &Resource, demand: &SiteDemand| {
        let between = demand.demand_ci95.map(|ci| crate::format::interval(ci.low, ci.high, seconds));
        vec![
            resource.name.clone(),
            demand.class.clone(),
            seconds(Some(demand.demand)),
            between.unwrap_or_else(|| if demand.known.is_some() { "given" } else { "not known" }.to_owned()),
            seconds(demand.regression),
            seconds(Some(demand.by_bytes)),
            seconds(Some(demand.by_requests)),
        ]
    };
    let rows: Vec<Vec<String>> = site
        .resources
        .iter()
        .flat_map(|resource| resource.demands.iter().map(move |demand| row(resource, demand)))
        .collect();
    table(&columns, &rows)
}

fn about(resource: &Resource) -> String {
    let mut said = format!("{} busy servers without requests", number(resource.background));
    if let Some(why) = resource.no_regression.as_ref().filter(|why| !resource.why.contains(why.as_str())) {
        said += &format!("; no regression: {why}");
    }
    if let Some(check) = &resource.check {
        said += &format!(
            "; the first half of the steps predicts the utilization in the second half, {}, as {} ({})",
            percent(Some(check.measured)),
            percent(Some(check.predicted)),
            signed_percent(check.error)
        );
    }
    let (Some(first), Some(most)) =
        (resource.outliers.first(), resource.outliers.iter().map(|step| step.beyond).reduce(f64::max))
    else {
        return said;
    };
    let often = match resource.period_s {
        Some(period) => format!("every {}", seconds(Some(period as f64))),
        None => format!("{} times", count(resource.outliers.len() as u64)),
    };
    said += &format!(
        "; {often}, first at {}, something else used up to {} of a server, which no request explains: ",
        first.from,
        percent(Some(most))
    );
    said + &match &resource.program {
        Some(program) => format!(
            "{} used {} of a CPU then, and {} otherwise",
            brimful_core::text::one_line(&program.name),
            percent(Some(program.cores)),
            percent(Some(program.usual_cores))
        ),
        None => "look for a job that runs then, or let --programs name it".to_owned(),
    }
}
