//! `brimful plan calibrate --log`: demands from access logs and a table of how busy what was when.

use super::args::{CalibrateArgs, SharedBy};
use super::model;
use super::utilization::{Utilization, parse};
use crate::characterize::failed;
use crate::exit::{Exit, UsageError};
use crate::output::{OutFile, deliver};
use crate::replay::lines;
use brimful_accesslog::profile::{Options, Profiler};
use brimful_accesslog::read::{Kept, ReadOptions, read};
use brimful_accesslog::{Entry, classes};
use brimful_core::model::{Class, ClassKind, Model, Scheduling, Station, StationKind};
use brimful_core::profile::Profile;
use brimful_core::quantity::rate;
use brimful_estimate::Interval;
use brimful_estimate::site::{SiteDemands, SiteStep, site_demands};
use brimful_forecast::Timestamp;
use brimful_model::saturation_rate;
use brimful_report::plan::site::{Resource, SCHEMA, Site, SiteDemand, SiteOutlier, text};

/// Runs it.
pub fn main(args: &CalibrateArgs) -> anyhow::Result<Exit> {
    let out = OutFile::optional(args.out.as_deref(), "--out")?;
    let Some(file) = &args.utilization else {
        let message = "--log needs --utilization FILE: times, and how busy each resource was, as CSV or by `sadf -d`";
        return Err(UsageError(message.to_owned()).into());
    };
    let utilization =
        parse(&model::text(file)?).map_err(|message| UsageError(format!("{}: {message}", model::name(file))))?;
    let logs: Vec<String> = args.log.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let profile = profile(&logs)?;
    let counted = Counted::of(&logs, &profile, &utilization)?;
    let site = site(args, &profile, &utilization, &counted)?;
    let document = brimful_report::json::document("model", &site.model)?;
    let shown = if args.json { brimful_report::json::document("site", &site)? } else { text(&site) };
    deliver(out, &document, &shown)?;
    Ok(Exit::Ok)
}

/// Which classes of size there are.
fn profile(logs: &[String]) -> anyhow::Result<Profile> {
    let mut profiler = Profiler::new(Options { sessions: false, ..Options::default() });
    let read = read(logs, ReadOptions::default(), &mut |entry| profiler.add(entry), &mut |_| {}).map_err(failed)?;
    profiler.finish(&read).map_err(failed)
}

/// Requests and bytes by class in each step of the utilizations.
struct Counted {
    requests: Vec<Vec<f64>>,
    bytes: Vec<Vec<f64>>,
    lines: String,
}

impl Counted {
    fn of(logs: &[String], profile: &Profile, utilization: &Utilization) -> anyhow::Result<Counted> {
        let (n, steps) = (profile.classes.len(), &utilization.steps);
        let empty = profile.classes.iter().position(|class| class.name == classes::EMPTY);
        let from: Vec<(u64, usize)> = profile
            .classes
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != empty)
            .map(|(index, class)| (class.bytes_range[0], index))
            .collect();
        let class_of = |bytes: u64| {
            let after = from.partition_point(|(least, _)| *least <= bytes);
            let sized = from.get(after.saturating_sub(1)).map_or(0, |(_, class)| *class);
            if bytes == 0 { empty.unwrap_or(sized) } else { sized }
        };
        let mut counted = Counted {
            requests: vec![vec![0.0; n]; steps.len()],
            bytes: vec![vec![0.0; n]; steps.len()],
            lines: String::new(),
        };
        let mut sink = |entry: &Entry<'_>| {
            let at_s = entry.time_ns.div_euclid(1_000_000_000);
            let after = steps.partition_point(|step| step.from_s <= at_s);
            let Some(step) =
                after.checked_sub(1).filter(|step| (at_s - steps[*step].from_s) as f64 <= steps[*step].seconds)
            else {
                return Kept::No;
            };
            let bytes = entry.bytes.unwrap_or(0);
            let class = class_of(bytes);
            counted.requests[step][class] += 1.0;
            counted.bytes[step][class] += bytes as f64;
            Kept::Yes
        };
        let read = read(logs, ReadOptions::default(), &mut sink, &mut |_| {}).map_err(failed)?;
        counted.lines = lines(&read.lines);
        Ok(counted)
    }
}

fn site(args: &CalibrateArgs, profile: &Profile, utilization: &Utilization, counted: &Counted) -> anyhow::Result<Site> {
    // Steps that the log does not reach say nothing.
    let reached: Vec<usize> =
        (0..utilization.steps.len()).filter(|step| counted.requests[*step].iter().sum::<f64>() > 0.0).collect();
    if reached.is_empty() {
        let message = "the logs have no request at any time that the utilizations are of: check their time zones";
        return Err(UsageError(message.to_owned()).into());
    }
    let names: Vec<String> = profile.classes.iter().map(|class| class.name.clone()).collect();
    let seconds: f64 = reached.iter().map(|step| utilization.steps[*step].seconds).sum();
    let rate_of = |class: usize| reached.iter().map(|step| counted.requests[*step][class]).sum::<f64>() / seconds;
    let class = |(index, name): (usize, &String)| Class {
        name: name.clone(),
        kind: ClassKind::Open,
        rate: Some(rate_of(index)),
        ..Class::default()
    };
    let mut model = Model { classes: names.iter().enumerate().map(class).collect(), ..Model::default() };
    let (mut resources, mut notes) = (Vec::new(), vec![counted.lines.clone()]);
    for (index, name) in utilization.resources.iter().enumerate() {
        let servers = if index == 0 { args.servers.unwrap_or(1) } else { 1 };
        let step = |step: &usize| {
            let at = &utilization.steps[*step];
            SiteStep {
                from_s: at.from_s,
                seconds: at.seconds,
                requests: counted.requests[*step].clone(),
                bytes: counted.bytes[*step].clone(),
                busy: at.shares[index] * f64::from(servers),
            }
        };
        let found = site_demands(names.len(), &reached.iter().map(step).collect::<Vec<_>>())?;
        model.stations.push(Station {
            name: name.clone(),
            kind: StationKind::Queue,
            servers,
            scheduling: Scheduling::Ps,
            background: (found.background / f64::from(servers)).clamp(0.0, 0.99),
            ..Station::default()
        });
        model.demands.push(demands(&found, args.attribution));
        resources.push(resource(name, &names, &found));
    }
    if resources.iter().any(|resource| resource.no_regression.is_some()) {
        notes.push(
            "where there is no regression the model has a rule of proportion's demands, which no step tests".to_owned(),
        );
    }
    let (saturation, station) = saturation_rate(&model)?;
    Ok(Site {
        schema: SCHEMA.to_owned(),
        headline: format!("{station} is the bottleneck: it saturates at {} of this mix.", rate(saturation)),
        resources,
        steps: reached.len() as u64,
        step_s: seconds / reached.len() as f64,
        requests: counted.requests.iter().flatten().sum::<f64>() as u64,
        model,
        notes,
    })
}

/// Those of the regression, or of the rule that was asked for.
fn demands(found: &SiteDemands, rule: SharedBy) -> Vec<f64> {
    match (&found.regression, rule) {
        (Ok(fit), _) => fit.demands.iter().map(|demand| demand.value).collect(),
        (Err(_), SharedBy::Bytes) => found.by_bytes.clone(),
        (Err(_), SharedBy::Requests) => found.by_requests.clone(),
    }
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
            .map(|step| SiteOutlier { from: Timestamp::from_unix(step.from_s).to_string(), beyond: step.beyond })
            .collect(),
        period_s: found.period_s,
    }
}
