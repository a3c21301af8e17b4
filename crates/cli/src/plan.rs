//! `brimful plan`: solves, changes and calibrates queueing models, and forecasts arrivals.

pub mod args;
mod calibrate;
mod forecast;
mod load_curve;
mod model;
mod result;
mod site;
mod solve;
mod utilization;
mod what_if;

use crate::exit::Exit;
use args::{PlanArgs, PlanCommand};

/// Runs the subcommand.
pub fn main(args: &PlanArgs) -> anyhow::Result<Exit> {
    match &args.command {
        PlanCommand::Solve(args) => solve::main(args),
        PlanCommand::WhatIf(args) => what_if::main(args),
        PlanCommand::Calibrate(args) => calibrate::main(args),
        PlanCommand::Forecast(args) => forecast::main(args),
    }
}
