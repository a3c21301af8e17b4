//! The flags of `brimful plan`.

use brimful_model::Method;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `brimful plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// What to plan.
    #[command(subcommand)]
    pub command: PlanCommand,
}

/// The steps of planning.
#[derive(Debug, Subcommand)]
pub enum PlanCommand {
    /// Solve a queueing model: throughput, response time, utilization, and where it saturates
    Solve(SolveArgs),
    /// Make a model of what runs at several loads measured
    Calibrate(CalibrateArgs),
}

/// `brimful plan solve`.
#[derive(Debug, Args)]
pub struct SolveArgs {
    /// What to solve and how.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Simulate the model as well, and show the means of both side by side
    #[arg(long)]
    pub simulate: bool,
    /// Seed of the simulation
    #[arg(long, value_name = "N", default_value = "1", requires = "simulate")]
    pub seed: u64,
    /// Where the result goes.
    #[command(flatten)]
    pub result: ResultArgs,
}

/// `brimful plan calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Records of one server, which `brimful load --watch --out` writes: several loads, each class alone, and one of the
    /// server idle
    #[arg(required = true)]
    pub records: Vec<PathBuf>,
    /// CPUs that the server can use at once [default: all that were watched]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub servers: Option<u32>,
    /// Print all that was found as JSON, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Write the model to a file, for `brimful plan solve` and `what-if`
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// A model, and the way to solve it.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// The model in JSON or TOML, or a document that holds one, like a survey's; `-` is stdin
    pub model: PathBuf,
    /// How to solve it: auto, exact, erlang, seidmann, schweitzer or linearizer
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub method: Method,
}

/// Where a result goes.
#[derive(Debug, Args)]
pub struct ResultArgs {
    /// Print the whole document as JSON, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Write the JSON document to a file as well
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
