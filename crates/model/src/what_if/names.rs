//! Looks up the names of a change in a model.

use super::change::{Change, Property};
use super::edit::ParameterLocation;
use super::suggestions::listed;
use crate::ModelError;
use brimful_core::model::{ClassKind, Model, StationKind};

/// The parameters of a model to which a change applies, and whether the change applies to their sum.
pub(super) fn resolve(change: &Change, model: &Model) -> Result<(Vec<ParameterLocation>, bool), ModelError> {
    let error = |problem: String| ModelError::WhatIf { text: change.to_string(), problem };
    let set = change.amount().is_some_and(|amount| !amount.is_factor());
    let all = change.target.is_empty();
    let locations = match change.property {
        Property::Demand => demands(&change.target, set, model).map_err(error)?,
        Property::Rate | Property::Population | Property::Think | Property::Priority => {
            classes(change.property, &change.target, model).map_err(error)?
        }
        _ => stations(change.property, &change.target, model).map_err(error)?,
    };
    if locations.is_empty() {
        return Err(error("changes nothing: the model has nothing of the kind".into()));
    }
    if all && set && locations.len() > 1 && change.property == Property::Population {
        return Err(error("may mean each class or all together: name one, or give a factor like 2x".into()));
    }
    Ok((locations, all && set && change.property == Property::Rate))
}

fn stations(property: Property, target: &str, model: &Model) -> Result<Vec<ParameterLocation>, String> {
    let queues = |k: &usize| model.stations[*k].kind == StationKind::Queue;
    if target.is_empty() {
        return Ok((0..model.stations.len()).filter(queues).map(ParameterLocation::Station).collect());
    }
    let k = station_named(target, model)?;
    let any_kind = matches!(property, Property::Speed | Property::Scv);
    if any_kind || queues(&k) {
        return Ok(vec![ParameterLocation::Station(k)]);
    }
    Err(format!("is about a delay, where no one queues: it has no {}, but speed, demand and scv", property.name()))
}

fn classes(property: Property, target: &str, model: &Model) -> Result<Vec<ParameterLocation>, String> {
    let kind = match property {
        Property::Rate => Some(ClassKind::Open),
        Property::Population | Property::Think => Some(ClassKind::Closed),
        _ => None,
    };
    let fits = |c: &usize| kind.is_none_or(|kind| model.classes[*c].kind == kind);
    if target.is_empty() {
        return Ok((0..model.classes.len()).filter(fits).map(ParameterLocation::ModelClass).collect());
    }
    let c = class_named(target, model)?;
    match model.classes[c].kind {
        _ if fits(&c) => Ok(vec![ParameterLocation::ModelClass(c)]),
        ClassKind::Open => Err(format!("is about an open class, which has a rate and no {}", property.name())),
        ClassKind::Closed => Err("is about a closed class, which has a population and a think time and no rate".into()),
    }
}

/// The demands of a station, of a class, or of `STATION.CLASS`. A demand of 0 is included only for `STATION.CLASS`.
fn demands(target: &str, set: bool, model: &Model) -> Result<Vec<ParameterLocation>, String> {
    let visited = |k: usize, c: usize| (model.demands[k][c] > 0.0).then_some(ParameterLocation::Demand(k, c));
    let (stations, classes) = (0..model.stations.len(), 0..model.classes.len());
    let of_all = "is about several stations: name one (STATION.CLASS.demand), or give a factor like 0.5x";
    if target.is_empty() {
        let all = stations.flat_map(|k| classes.clone().filter_map(move |c| visited(k, c)));
        return if set { Err(of_all.into()) } else { Ok(all.collect()) };
    }
    let pair = |(at, _): (usize, &str)| {
        let station = position(&target[..at], model.stations.iter().map(|s| &s.name));
        station.zip(position(&target[at + 1..], model.classes.iter().map(|c| &c.name)))
    };
    let pairs: Vec<(usize, usize)> = target.match_indices('.').filter_map(pair).collect();
    let station = position(target, model.stations.iter().map(|s| &s.name));
    let class = position(target, model.classes.iter().map(|c| &c.name));
    match (station, class, pairs.as_slice()) {
        (Some(k), None, []) => Ok(classes.filter_map(|c| visited(k, c)).collect()),
        (None, Some(_), []) if set => Err(of_all.into()),
        (None, Some(c), []) => Ok(stations.filter_map(|k| visited(k, c)).collect()),
        (None, None, [(k, c)]) => Ok(vec![ParameterLocation::Demand(*k, *c)]),
        (None, None, []) => Err(format!(
            "has no station, class or STATION.CLASS `{target}`: there are the stations {} and the classes {}",
            listed(target, model.stations.iter().map(|s| s.name.as_str())),
            listed(target, model.classes.iter().map(|c| c.name.as_str()))
        )),
        _ => Err(format!("may mean more than one thing by `{target}`: give stations and classes different names")),
    }
}

pub(super) fn station_named(name: &str, model: &Model) -> Result<usize, String> {
    let names = || model.stations.iter().map(|station| &station.name);
    position(name, names()).ok_or_else(|| unknown("station", name, names()))
}

pub(super) fn class_named(name: &str, model: &Model) -> Result<usize, String> {
    let names = || model.classes.iter().map(|class| &class.name);
    position(name, names()).ok_or_else(|| unknown("class", name, names()))
}

fn position<'a>(name: &str, mut names: impl Iterator<Item = &'a String>) -> Option<usize> {
    names.position(|other| other.trim() == name)
}

fn unknown<'a>(what: &str, name: &str, names: impl Iterator<Item = &'a String>) -> String {
    format!("has no {what} `{name}`: there is {}", listed(name, names.map(String::as_str)))
}
