//! `brimful ab`: compares two running servers, or two commands that start servers, until the confidence interval of
//! their difference is narrow enough.

use crate::exit::{self, Exit, UsageError};
use crate::flags::values::parse_time;
use crate::flags::{ReportArgs, RequestArgs};
use crate::load::args::CallArgs;
use crate::output::print_note;
use crate::progress;
use crate::results::ReportFiles;
use crate::run_options::run_options;
use brimful_ab::{AbEvent, AbPlan, DesignChoice, ServerSource, ab, start_servers};
use brimful_core::ab::AbStopReason;
use brimful_core::comparison::LimitOutcome;
use brimful_core::quantity::{percent, signed_percent};
use brimful_core::units::Count;
use brimful_core::workload::Load;
use brimful_core::{Nanos, Rate};
use brimful_run::RunOptions;
use brimful_stats::RegressionLimit;
use clap::{Args, ValueEnum};
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  $ brimful ab http://127.0.0.1:8080/ http://127.0.0.1:8081/ --rate 500
  $ brimful ab --a './old --port {port}' --b './new --port {port}' --path /items --until 0.5% -d 5m
  $ brimful ab --a 'node old.js' --b 'node new.js' --max-regression cpu:3% --markdown > comment.md   # they listen on $PORT";

/// Arguments of `brimful ab`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AbArgs {
    /// The URLs of servers A and B; with --b, only that of A
    #[arg(value_name = "URL", num_args = 0..=2)]
    pub urls: Vec<String>,
    /// Command that starts A; it must listen on the port in {port} or $PORT, and stay in the foreground
    ///
    /// It is started twice: the difference between the two processes shows how much equal servers differ. The commands
    /// run in a shell of their own, and all their processes are ended afterwards.
    #[arg(long, value_name = "COMMAND")]
    pub a: Option<String>,
    /// Command that starts B
    #[arg(long, value_name = "COMMAND")]
    pub b: Option<String>,
    /// Path of the requests to servers that are started by commands
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub path: String,
    /// End when the 95 % interval of the difference is at most ± this
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = parse_percent)]
    pub until: f64,
    /// End after this time in any case
    #[arg(short, long, value_name = "TIME", default_value = "3m", value_parser = parse_time)]
    pub duration: Nanos,
    /// Figure whose uncertainty --until limits, like cpu, throughput or p99
    ///
    /// [default: cpu, the CPU time per request, if the processes of both servers can be seen; else throughput with
    /// --clients and p50 with --rate]
    #[arg(long, value_name = "FIGURE")]
    pub figure: Option<String>,
    /// Length of a slice, one short measurement
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub slice: Nanos,
    /// Load the servers in turn (interleaved) or at the same time on CPUs of their own (duet)
    ///
    /// With auto, a pilot chooses the way in which the ratio varies less. A duet needs 4 CPUs, and commands.
    #[arg(long, value_name = "DESIGN", value_enum, default_value_t, hide_possible_values = true)]
    pub design: Design,
    /// Exit code 1 if a figure of B is worse than this, like p99:5% or cpu:2% (repeatable)
    #[arg(long, value_name = "FIGURE:PERCENT")]
    pub max_regression: Vec<RegressionLimit>,
    /// Open loop: this many calls per second [default: 30 % of the slower server's throughput]
    #[arg(short = 'R', long, value_name = "CALLS/S", help_heading = "Load")]
    pub rate: Option<Rate>,
    /// Closed loop: this many clients, each of which calls again after its response
    #[arg(short, long, value_name = "N", conflicts_with = "rate", help_heading = "Load")]
    pub clients: Option<Count>,
    /// Flags for the method and the content of a call.
    #[command(flatten)]
    pub call: CallArgs,
    /// Flags for requests and connections.
    #[command(flatten)]
    pub request: RequestArgs,
    /// Flags for the output.
    #[command(flatten)]
    pub output: ReportArgs,
    /// Show no progress on stderr
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

/// Whether the two servers are loaded in turn or at the same time. The values of `--design`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Design {
    /// A pilot run tries both designs, and the design in which the ratio of B to A varies less is used.
    #[default]
    Auto,
    /// Load the servers in turn, each for a short slice of time.
    Interleaved,
    /// Load the servers at the same time, each on its own CPUs.
    Duet,
}

/// Compares the servers. Prints the result, and writes the files that the output flags name.
pub fn main(args: &AbArgs) -> anyhow::Result<Exit> {
    let sources = sources(args)?;
    if args.slice < MIN_SLICE {
        let message = format!("--slice {} is too short for a run: give at least {MIN_SLICE}", args.slice);
        return Err(UsageError(message).into());
    }
    let files = ReportFiles::create(&args.output)?;
    let stop = progress::stop_flag()?;
    let servers = start_servers(&sources, &stop)?;
    let options = |url: &str| options(url, args);
    let [a, b] = &servers.urls;
    let mut b = options(b)?;
    let a = options(a)?;
    // The schedule of calls depends on the seed, so both servers get the same schedule.
    b.load.seed = a.load.seed;
    let control = servers.control_url().map(|url| options(&url)).transpose()?;
    let load = match (args.rate, args.clients) {
        (Some(rate), _) => Some(Load::Open { rate, arrivals: "constant".to_owned() }),
        (None, Some(clients)) => Some(Load::Closed { clients: clients.0, think: Nanos::ZERO }),
        (None, None) => a.load.workload.load.clone(),
    };
    let plan = AbPlan {
        names: sources.each_ref().map(|source| source.name().to_owned()),
        run_options: [a, b],
        design: match args.design {
            Design::Auto => DesignChoice::Auto,
            Design::Interleaved => DesignChoice::Interleaved,
            Design::Duet => DesignChoice::Duet,
        },
        load,
        stopping_metric: args.figure.clone(),
        target_half_width: args.until,
        time_limit: args.duration,
        slice_duration: args.slice,
        limits: args.max_regression.clone(),
    };
    let mut display = Display {
        quiet: args.quiet,
        budget: args.duration,
        until: args.until,
        began: Instant::now(),
        bar: None,
        shown: 0,
    };
    let tested = ab(&plan, servers, control, &stop, &mut |event| display.show(&event));
    display.finish();
    let tested = tested?;
    let interrupted = tested.stopping.reason == AbStopReason::Interrupted;
    files.deliver("ab", &tested, brimful_report::ab::text, brimful_report::ab::markdown)?;
    let is_exceeded = tested.limits.iter().any(|limit| limit.outcome == LimitOutcome::Exceeded);
    Ok(match exit::code_for_verdict(&tested.verdict, interrupted) {
        Exit::Ok if is_exceeded => Exit::MissedObjective,
        exit => exit,
    })
}

/// Minimum value of `--slice`, the length of one short measurement.
const MIN_SLICE: Nanos = Nanos::from_millis(100);

fn options(url: &str, args: &AbArgs) -> anyhow::Result<RunOptions> {
    let mut options = run_options(url, &args.request)?;
    if args.request.workload.is_none() {
        args.call.apply(&mut options.load.workload.classes[0]);
    }
    options.load.max_redirects = args.call.follow.map(|count| count.0);
    Ok(options)
}

/// The servers A and B. A server without a command is the next URL on the command line.
fn sources(args: &AbArgs) -> Result<[ServerSource; 2], UsageError> {
    let mut urls = args.urls.iter();
    let mut source = |side: &str, command: &Option<String>| match command {
        Some(command) => Ok(ServerSource::Command { command: command.clone(), path: args.path.clone() }),
        None => urls.next().map(|url| ServerSource::Url(url.clone())).ok_or_else(|| {
            UsageError(format!(
                "{side} is missing: give two URLs, or a command for {side} with --{}",
                side.to_lowercase()
            ))
        }),
    };
    let sources = [source("A", &args.a)?, source("B", &args.b)?];
    match urls.next() {
        Some(extra) => Err(UsageError(format!("`{extra}` is one server too many: A and B are two URLs or commands"))),
        None => Ok(sources),
    }
}

/// Parses a percentage like `1%` or `0.5%`.
fn parse_percent(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is no percentage above 0 %: write one like 1% or 0.5%");
    let number: f64 = text.trim().trim_end_matches('%').trim_end().parse().map_err(|_| wrong())?;
    if number > 0.0 && number <= 100.0 { Ok(number / 100.0) } else { Err(wrong()) }
}

/// Shows the progress: a bar on a terminal, and lines elsewhere.
struct Display {
    quiet: bool,
    budget: Nanos,
    until: f64,
    began: Instant,
    bar: Option<indicatif::ProgressBar>,
    /// Number of completed rounds (one short measurement of each server) when the last line was printed.
    shown: usize,
}

impl Display {
    fn show(&mut self, event: &AbEvent) {
        if self.quiet {
            return;
        }
        match event {
            AbEvent::Note(text) => match &self.bar {
                Some(bar) => bar.println(text),
                None => print_note(text),
            },
            AbEvent::Round { rounds, figure, difference, .. } => {
                let result = difference.map_or(String::new(), |(difference, width)| {
                    format!(
                        ", {figure} {} ± {} (until ± {})",
                        signed_percent(difference),
                        percent(width),
                        percent(self.until)
                    )
                });
                let text = format!("round {rounds}{result}");
                if progress::is_shown(self.budget, self.quiet) {
                    let bar = self.bar.get_or_insert_with(|| progress::new_bar("ab", self.budget));
                    progress::show(bar, self.began, self.budget, &text);
                } else if *rounds >= self.shown * 2 {
                    // A line is printed after 1, 2, 4, 8, … rounds, so the output stays short.
                    self.shown = *rounds;
                    print_note(&text);
                }
            }
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_positive() {
        assert_eq!(parse_percent("1%"), Ok(0.01));
        assert_eq!(parse_percent(" 0.5 %"), Ok(0.005));
        for wrong in ["", "0%", "-1%", "nan%", "x"] {
            assert!(parse_percent(wrong).unwrap_err().contains("write one like 1%"), "{wrong}");
        }
    }
}
