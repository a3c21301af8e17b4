//! `brimful plan calibrate --log`: fits service demands to access logs and to utilizations over time.

mod data;
mod known;
mod logs;
mod network;
mod programs;
mod rules;

use super::args::CalibrateArgs;
use super::utilization::{TOO_FEW_STEPS, Utilization, parse};
use crate::access_logs::{log_error, read_options};
use crate::documents::{display_name, read_text};
use crate::exit::{Exit, UsageError};
use crate::output::{OutFile, deliver};
use brimful_core::model::Model;
use brimful_core::profile::Profile;
use brimful_core::quantity::rate;
use brimful_estimate::Interval;
use brimful_estimate::demand::joint_demands;
use brimful_estimate::site::{OutlyingStep, SiteDemands, SiteRule};
use brimful_forecast::Timestamp;
use brimful_model::{Estimate, saturation_rate};
use brimful_report::plan::site::{Resource, SCHEMA, Site, SiteCheck, SiteDemand, SiteOutlier, text};
use data::SiteData;
use jiff::tz::{Offset, TimeZone};
use logs::{LogClasses, StepCounts};
use programs::ProgramUse;
use rules::{ResourceRule, describe, rules};

/// Name of the CPU resource.
const CPU: &str = "cpu";
/// Utilization at which a resource counts as saturated.
const SATURATED: f64 = 0.98;

/// Fits the service demands. Prints the model, and writes the files that the flags name.
pub fn main(args: &CalibrateArgs) -> anyhow::Result<Exit> {
    let out = OutFile::create_optional(args.out.as_deref(), "--out")?;
    let Some(file) = &args.utilization else {
        let message = "--log needs --utilization FILE: the utilization of each resource over time, like the output of `sar -u` \
                       or `vmstat -t 60`; --help has more";
        return Err(UsageError(message.to_owned()).into());
    };
    let logs: Vec<String> = args.log.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    if logs.iter().any(|log| log == "-") {
        return Err(UsageError("--log -: logs are read twice, so stdin cannot be one: give a file".to_owned()).into());
    }
    let (zone, origin) = zone(args, &logs);
    let in_file = |message: String| UsageError(format!("{}: {message}", display_name(file)));
    let mut utilization = parse(&read_text(file)?, &zone).map_err(in_file)?;
    if utilization.steps.len() < 2 && args.attribution.is_empty() && !args.site.as_the_paper {
        let message =
            format!("{TOO_FEW_STEPS}; or choose a rule that needs only one step, like --attribution requests");
        return Err(in_file(message).into());
    }
    if utilization.has_local_times {
        let note = format!("times in {} have no zone; they are read in the zone of {origin}", display_name(file));
        utilization.notes.push(note);
    }
    let reading = read_options(&args.format).map_err(log_error)?;
    let profile = logs::profile(&logs, reading.clone())?;
    let classes = LogClasses::new(&args.site, &profile);
    let counted = StepCounts::count(&logs, reading, classes, &utilization)?;
    let programs = programs::read(args.site.programs.as_deref(), file)?;
    let site = site(args, &profile, &utilization, &counted, &programs)?;
    let document = brimful_report::json::document("model", &site.model)?;
    let shown = if args.json { brimful_report::json::document("site", &site)? } else { text(&site) };
    deliver(out, &document, &shown)?;
    Ok(Exit::Ok)
}

fn site(
    args: &CalibrateArgs,
    profile: &Profile,
    utilization: &Utilization,
    counted: &StepCounts,
    programs: &[ProgramUse],
) -> anyhow::Result<Site> {
    let data = SiteData::new(args, utilization, counted)?;
    if data.used_steps.is_empty() {
        return Err(UsageError(no_common_time_message(profile, utilization)).into());
    }
    let mut model = Model { classes: data.model_classes(), ..Model::default() };
    let mut resources = Vec::new();
    let mut half_widths = Vec::new();
    let mut notes = data.notes();
    for (index, rule) in rules(args, &utilization.resources, &counted.classes)?.into_iter().enumerate() {
        let name = &utilization.resources[index];
        let steps = data.steps(index);
        let found = data.demands(index, rule, &steps)?;
        notes.extend(resource_notes(name, &counted.classes, &found, utilization, index, &data.used_steps));
        model.stations.push(data.station(index, &found));
        model.demands.push(found.demands.iter().map(|demand| demand.value).collect());
        model.joint_demands.extend(joint_demands(&model.classes, name, &found.joint));
        let sources = data.known.sources(name, counted.classes.len());
        half_widths.push(half_widths_of(&found, &sources));
        let spans: Vec<(f64, f64)> = steps.iter().map(|step| (step.from_s as f64, step.seconds)).collect();
        // The data about programs contain only CPU time, so programs can explain only the utilization of the CPU.
        let program = programs::outlier_program(&found.outliers, &spans, programs).filter(|_| name == CPU);
        let servers = f64::from(data.servers(index));
        resources.push(Resource { program, ..resource(name, &counted.classes, &found, rule, &sources, servers) });
    }
    notes.extend(rule_note(&resources));
    if args.site.as_the_paper {
        notes.push("the paper solved its model by Seidmann's approximation: plan solve --method seidmann".to_owned());
    }
    // If the half width of one demand's interval is unknown, all half widths are left out. If this demand were treated
    // as exact, the intervals of predictions would be too narrow.
    model.demand_ci95_half_width = half_widths.into_iter().collect::<Option<_>>().unwrap_or_default();
    notes.extend(network::add(&mut model, &args.site, &data.mean_bytes())?);
    check_every_class_visits_a_station(&model)?;
    let (saturation, station) = saturation_rate(&model)?;
    Ok(Site {
        schema: SCHEMA.to_owned(),
        headline: format!("{station} is the bottleneck: it saturates at {} of this mix.", rate(saturation)),
        resources,
        steps: data.used_steps.len() as u64,
        step_s: data.seconds() / data.used_steps.len() as f64,
        requests: data.requests().iter().sum::<f64>() as u64,
        model,
        notes,
    })
}

/// Half widths of the demands' 95 % confidence intervals; `None` if one is unknown. A demand that the user gave without
/// an interval counts as exact, with a half width of 0.
fn half_widths_of(found: &SiteDemands, sources: &[Option<String>]) -> Option<Vec<f64>> {
    let half_width = |(demand, source): (&Estimate, &Option<String>)| {
        demand.ci95_half_width.or_else(|| source.as_ref().map(|_| 0.0))
    };
    found.demands.iter().zip(sources).map(half_width).collect()
}

/// A note that names the resources whose busy time is divided among classes by an assumed rule, which the data do not
/// test; `None` if there are no such resources.
fn rule_note(resources: &[Resource]) -> Option<String> {
    let by_rule = |resource: &&Resource| !matches!(resource.rule.as_str(), "regression" | "line");
    let names: Vec<&str> = resources.iter().filter(by_rule).map(|resource| resource.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the demands at {} are divided by a rule of proportion, which the data do not test; their intervals do not contain \
             the error of the rule",
            names.join(", ")
        )
    })
}

/// Checks that every class has a demand at some station. Otherwise the model cannot be solved.
fn check_every_class_visits_a_station(model: &Model) -> Result<(), UsageError> {
    let is_free = |class: &usize| model.demands.iter().all(|row| row[*class] == 0.0);
    match (0..model.classes.len()).find(is_free) {
        None => Ok(()),
        Some(class) => {
            let name = &model.classes[class].name;
            Err(UsageError(format!(
                "these rules give class `{name}` no time at any resource: measure it alone (--alone {name}=RECORD), give its demand \
                 (--demand RESOURCE.{name}=TIME), or use another rule, like --attribution requests"
            )))
        }
    }
}

/// Notes for the user about the service demands at one resource.
fn resource_notes(
    name: &str,
    classes: &[String],
    found: &SiteDemands,
    utilization: &Utilization,
    index: usize,
    used_steps: &[usize],
) -> Vec<String> {
    let mut notes: Vec<String> =
        found.joint.iter().map(|group| joint_demand_note(name, group, classes, found.rule)).collect();
    let saturated = used_steps.iter().filter(|step| utilization.steps[**step].shares[index] >= SATURATED).count();
    if 2 * saturated > used_steps.len() {
        notes.push(format!(
            "{name} was saturated in {saturated} of {} steps, independent of the requests: use a time with less load, or, if \
             other programs used it, the output of `pidstat` for the server's programs",
            used_steps.len()
        ));
    }
    notes
}

/// A note that only the mean demand of these classes together is known, not the demand of each class.
fn joint_demand_note(resource: &str, group: &[usize], names: &[String], rule: SiteRule) -> String {
    let names: Vec<&str> = group.iter().filter_map(|class| names.get(*class)).map(String::as_str).collect();
    let why = match rule {
        SiteRule::Regression => "came in nearly the same proportion in every step, so only",
        _ => "cannot be separated, so only",
    };
    format!(
        "{resource}: {} {why} their mean demand is known: measure a class alone (--alone), choose a rule (--attribution), or use \
         steps with other proportions",
        names.join(", ")
    )
}

/// The time zone of timestamps that state none, and the source of this zone as text.
fn zone(args: &CalibrateArgs, logs: &[String]) -> (TimeZone, String) {
    if let Some(zone) = &args.timezone {
        return (zone.clone(), "--timezone".to_owned());
    }
    match logs::zone(logs) {
        Some(zone) => {
            let offset = zone.to_offset(jiff::Timestamp::UNIX_EPOCH);
            let shown = if offset == Offset::UTC { "UTC".to_owned() } else { format!("UTC{offset}") };
            (zone, format!("the log, {shown}; --timezone sets another one"))
        }
        None => (TimeZone::UTC, "UTC; --timezone sets another one".to_owned()),
    }
}

/// The error message for logs and utilizations that have no time in common.
fn no_common_time_message(profile: &Profile, utilization: &Utilization) -> String {
    let shown = |at_ms: i64| Timestamp::from_unix(at_ms.div_euclid(1000)).to_string();
    let from = utilization.steps.first().map_or(String::new(), |step| shown(step.start_ms));
    let to = utilization.steps.last().map_or(String::new(), |step| shown(step.end_ms()));
    format!(
        "the logs and the utilizations have no time in common: the utilizations are from {from} to {to}, the logs from {} \
         to {}; use data of the same time, or set the utilizations' time zone with --timezone",
        profile.from, profile.to
    )
}

/// The name of a rule for dividing busy time, as in documents.
fn rule_name(rule: SiteRule) -> &'static str {
    match rule {
        SiteRule::Automatic => "auto",
        SiteRule::Regression => "regression",
        SiteRule::Line => "line",
        SiteRule::Size => "size",
        SiteRule::Bytes => "bytes",
        SiteRule::Requests => "requests",
        SiteRule::Class(_) => "class",
    }
}

fn interval(estimate: &Estimate) -> Option<Interval> {
    let half = estimate.ci95_half_width?;
    Some(Interval { low: (estimate.value - half).max(0.0), high: estimate.value + half })
}

fn resource(
    name: &str,
    classes: &[String],
    found: &SiteDemands,
    rule: ResourceRule,
    known: &[Option<String>],
    servers: f64,
) -> Resource {
    let demand = |(class, name): (usize, &String)| {
        let fitted = found.regression.as_ref().ok().map(|fit| &fit.demands[class]).filter(|_| known[class].is_none());
        SiteDemand {
            class: name.clone(),
            demand: found.demands[class].value,
            demand_ci95: interval(&found.demands[class]),
            known: known[class].clone(),
            regression: fitted.map(|demand| demand.value),
            ci95: fitted.and_then(interval),
            by_bytes: found.by_bytes[class],
            by_requests: found.by_requests[class],
        }
    };
    let check = found.check.filter(|check| check.measured > 0.0).map(|check| SiteCheck {
        steps: check.steps as u64,
        measured: check.measured / servers,
        predicted: check.predicted / servers,
        error: check.predicted / check.measured - 1.0,
        step_error: check.step_error / servers,
    });
    let outlier = |step: &OutlyingStep| SiteOutlier {
        from: Timestamp::from_unix(step.from_s).to_string(),
        beyond: step.unexplained_busy,
    };
    Resource {
        name: name.to_owned(),
        rule: rule_name(found.rule).to_owned(),
        why: describe(found, rule.origin, classes, known),
        intercept: found.intercept.map(|intercept| intercept.value),
        background: found.background,
        check,
        demands: classes.iter().enumerate().map(demand).collect(),
        no_regression: found.regression.as_ref().err().map(ToString::to_string),
        outliers: found.outliers.iter().map(outlier).collect(),
        period_s: found.period_s,
        program: None,
    }
}
