//! `brimful plan calibrate --log`: fits service demands to access logs and to utilizations over time.

mod logs;

use super::args::{AttributionRule, CalibrateArgs};
use super::utilization::{Utilization, parse};
use crate::access_logs::{log_error, read_options};
use crate::documents::{display_name, read_text};
use crate::exit::{Exit, UsageError};
use crate::output::{OutFile, deliver};
use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_core::profile::Profile;
use brimful_core::quantity::rate;
use brimful_estimate::Interval;
use brimful_estimate::site::{SiteDemands, SiteStep, site_demands};
use brimful_forecast::Timestamp;
use brimful_model::saturation_rate;
use brimful_report::plan::site::{Resource, SCHEMA, Site, SiteDemand, SiteOutlier, text};
use jiff::tz::{Offset, TimeZone};
use logs::StepCounts;

/// Utilization at which a resource counts as saturated.
const SATURATED: f64 = 0.98;

/// Fits the demands and delivers the model.
pub fn main(args: &CalibrateArgs) -> anyhow::Result<Exit> {
    let out = OutFile::create_optional(args.out.as_deref(), "--out")?;
    let Some(file) = &args.utilization else {
        let message = "--log needs --utilization FILE: the utilization of each resource over time, like the output of `sar -u` \
                       or `vmstat -t 60`; --help has more";
        return Err(UsageError(message.to_owned()).into());
    };
    let logs: Vec<String> = args.log.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let (zone, origin) = zone(args, &logs);
    let mut utilization =
        parse(&read_text(file)?, &zone).map_err(|message| UsageError(format!("{}: {message}", display_name(file))))?;
    if utilization.is_local {
        let note = format!("times in {} have no zone; they are read in the zone of {origin}", display_name(file));
        utilization.notes.push(note);
    }
    let reading = read_options(&args.format).map_err(log_error)?;
    let profile = logs::profile(&logs, reading.clone())?;
    let counted = StepCounts::count(&logs, reading, &profile, &utilization)?;
    let site = site(args, &profile, &utilization, &counted)?;
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
) -> anyhow::Result<Site> {
    let reached = counted.steps();
    if reached.is_empty() {
        return Err(UsageError(no_common_time_message(profile, utilization)).into());
    }
    let names: Vec<String> = profile.classes.iter().map(|class| class.name.clone()).collect();
    let seconds: f64 = reached.iter().map(|step| utilization.steps[*step].seconds).sum();
    let rate_of = |class: usize| reached.iter().map(|step| counted.requests[*step][class]).sum::<f64>() / seconds;
    let class = |(index, name): (usize, &String)| ModelClass {
        name: name.clone(),
        kind: ClassKind::Open,
        rate: Some(rate_of(index)),
        ..ModelClass::default()
    };
    let mut model = Model { classes: names.iter().enumerate().map(class).collect(), ..Model::default() };
    let mut resources = Vec::new();
    let mut half_widths = Vec::new();
    let mut notes = vec![counted.lines.clone()];
    notes.extend(utilization.notes.iter().cloned());
    let cpus = args.servers.or(utilization.cpus);
    if cpus.is_none() && utilization.resources.first().is_some_and(|name| name == "cpu") {
        notes.push("cpu is assumed to be one CPU; set the number with --servers".to_owned());
    }
    for (index, name) in utilization.resources.iter().enumerate() {
        let servers = if index == 0 { cpus.unwrap_or(1) } else { 1 };
        // The shares may be relative to more CPUs than the server can use.
        let shared_by = if index == 0 { utilization.cpus.unwrap_or(servers) } else { 1 };
        let steps = site_steps(utilization, counted, &reached, index, f64::from(shared_by));
        let found = site_demands(names.len(), &steps)?;
        notes.extend(resource_notes(name, &names, &found, utilization, index, &reached));
        model.stations.push(Station {
            name: name.clone(),
            kind: StationKind::Queue,
            servers,
            scheduling: Scheduling::Ps,
            background: (found.background / f64::from(servers)).clamp(0.0, 0.99),
            ..Station::default()
        });
        model.demands.push(demands(&found, args.attribution));
        half_widths.push(half_widths_of(&found));
        resources.push(resource(name, &names, &found));
    }
    if resources.iter().any(|resource| resource.no_regression.is_some()) {
        notes.push(
            "without a regression, demands are divided by a rule of proportion, which the data do not test".to_owned(),
        );
    }
    // If any half width is unknown, none is used. Otherwise the intervals of predictions would be too narrow.
    model.demand_ci95_half_width = half_widths.into_iter().collect::<Option<_>>().unwrap_or_default();
    let (saturation, station) = saturation_rate(&model)?;
    Ok(Site {
        schema: SCHEMA.to_owned(),
        headline: format!("{station} is the bottleneck: it saturates at {} of this mix.", rate(saturation)),
        resources,
        steps: reached.len() as u64,
        step_s: seconds / reached.len() as f64,
        requests: reached.iter().flat_map(|step| &counted.requests[*step]).sum::<f64>() as u64,
        model,
        notes,
    })
}

/// The steps of one resource. `servers` is the number of servers that the shares are relative to.
fn site_steps(
    utilization: &Utilization,
    counted: &StepCounts,
    reached: &[usize],
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
    reached.iter().map(step).collect()
}

/// Notes about the demands at one resource.
fn resource_notes(
    name: &str,
    classes: &[String],
    found: &SiteDemands,
    utilization: &Utilization,
    index: usize,
    reached: &[usize],
) -> Vec<String> {
    let merged = found.regression.iter().flat_map(|fit| &fit.indistinguishable_classes);
    let mut notes: Vec<String> = merged.map(|group| joint_demand_note(name, group, classes)).collect();
    let saturated = reached.iter().filter(|step| utilization.steps[**step].shares[index] >= SATURATED).count();
    if 2 * saturated > reached.len() {
        notes.push(format!(
            "{name} was saturated in {saturated} of {} steps, independent of the requests: use a time with less load, or, if \
             other programs used it, the output of `pidstat` for the server's programs",
            reached.len()
        ));
    }
    notes
}

/// The note that these classes have a joint demand.
fn joint_demand_note(resource: &str, group: &[usize], names: &[String]) -> String {
    let names: Vec<&str> = group.iter().filter_map(|class| names.get(*class)).map(String::as_str).collect();
    format!(
        "{}: {} came in nearly the same proportion in every step, so only their mean demand is known; steps with other \
         proportions would separate them",
        resource,
        names.join(", ")
    )
}

/// The zone of times without a zone, and the origin of that zone.
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

/// The message of the error that no step contains a request.
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

/// The demands that the regression found, or else the demands by the rule of `--attribution`.
fn demands(found: &SiteDemands, rule: AttributionRule) -> Vec<f64> {
    match (&found.regression, rule) {
        (Ok(fit), _) => fit.demands.iter().map(|demand| demand.value).collect(),
        (Err(_), AttributionRule::Bytes) => found.by_bytes.clone(),
        (Err(_), AttributionRule::Requests) => found.by_requests.clone(),
    }
}

/// Half widths of the 95 % confidence intervals of the regression's demands; `None` if any demand lacks one.
fn half_widths_of(found: &SiteDemands) -> Option<Vec<f64>> {
    let fit = found.regression.as_ref().ok()?;
    fit.demands.iter().map(|demand| demand.ci95_half_width).collect()
}

fn resource(name: &str, classes: &[String], found: &SiteDemands) -> Resource {
    let regression = |class: usize| found.regression.as_ref().ok().map(|fit| &fit.demands[class]);
    let demand = |(class, name): (usize, &String)| {
        let fitted = regression(class);
        let ci95 = fitted.and_then(|demand| {
            let half = demand.ci95_half_width?;
            Some(Interval { low: (demand.value - half).max(0.0), high: demand.value + half })
        });
        SiteDemand {
            class: name.clone(),
            regression: fitted.map(|demand| demand.value),
            ci95,
            by_bytes: found.by_bytes[class],
            by_requests: found.by_requests[class],
        }
    };
    Resource {
        name: name.to_owned(),
        background: found.background,
        demands: classes.iter().enumerate().map(demand).collect(),
        no_regression: found.regression.as_ref().err().map(ToString::to_string),
        outliers: found
            .outliers
            .iter()
            .map(|step| SiteOutlier {
                from: Timestamp::from_unix(step.from_s).to_string(),
                beyond: step.unexplained_busy,
            })
            .collect(),
        period_s: found.period_s,
    }
}
