//! The command line: arguments become a typed configuration, one call is made, and its result an exit code.
//!
//! stdout carries results, stderr everything else. Exit codes: 0 ok, 1 an objective was missed (of `load`: that more
//! calls are completed than fail), 2 usage or bad input, 3 environment, 4 the generator was the limit, 130 interrupted.
#![forbid(unsafe_code)]

mod access_logs;
mod characterize;
mod cli;
mod command_line;
mod doctor;
mod documents;
mod exit;
mod fileset;
mod flags;
mod fleet;
mod httperf;
mod load;
mod manual;
mod merge;
mod module;
mod output;
mod plan;
mod progress;
mod remote;
mod replay;
mod results;
mod run_plan;
mod survey;
mod target;
mod testbed;
mod watch;

use brimful_core::text::one_line;
use cli::Command;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    brimful_report::at_width(output::columns().unwrap_or(brimful_report::WIDTH), run)
}

fn run() -> ExitCode {
    survive_file_size_limit();
    // Its options are its own, and no others'.
    if let Some(words) = httperf::words(std::env::args_os()) {
        // It knows one status for whatever keeps it from a test.
        return match httperf::main(&words) {
            Ok(exit) => exit.into(),
            Err(error) => {
                output::complain(&message(&error));
                ExitCode::FAILURE
            }
        };
    }
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match cli::parse(&words) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let result = match cli.command {
        Command::Survey(args) => survey::main(&args),
        Command::Load(args) => load::main(&args),
        Command::Httperf => Ok(exit::Exit::Usage),
        Command::Merge(args) => merge::main(&args),
        Command::Replay(args) => replay::main(&args),
        Command::Watch(args) => watch::main(&args),
        Command::Module(args) => module::main(&args),
        Command::Characterize(args) => characterize::main(&args),
        Command::Fileset(args) => fileset::main(&args),
        Command::Fleet { words } => fleet::main(&words),
        Command::Plan(args) => plan::main(&args),
        Command::Target(args) => target::main(&args),
        Command::Doctor(args) => doctor::main(&args),
        Command::Completions(args) => manual::completions(&args, &cli::program()),
        Command::Man(args) => manual::man(&args, cli::program()),
        Command::PutBack => survey::put_back(),
        // Their exit codes are those of a command.
        Command::Testbed(args) => return ended(testbed::main(&args)),
        Command::Inside(args) => return ended(testbed::inside(&args)),
    };
    ended(result)
}

/// Makes a write beyond `ulimit -f` fail like any other write. Otherwise its signal (SIGXFSZ) would end the process,
/// and what was measured would be lost.
fn survive_file_size_limit() {
    // This fails only if no descriptor is left, which is reported where the next one is opened.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// The exit code; an error is told.
fn ended(result: anyhow::Result<impl Into<ExitCode>>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::complain(&message(&error));
            exit::of(&error).into()
        }
    }
}

/// Shows help, or what is wrong with the arguments. They may be names of files, which a shell has put there.
fn refuse(error: &clap::Error) -> ExitCode {
    if std::env::args_os().map(|word| word.to_string_lossy().into_owned()).all(|word| one_line(&word) == word) {
        error.exit();
    }
    output::say(error.render().to_string().trim_end());
    exit::Exit::Usage.into()
}

/// The error and its causes, without those that the sentence before already quotes.
fn message(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .reduce(|said, cause| match said.contains(&cause) {
            true => said,
            false => format!("{said}: {cause}"),
        })
        .unwrap_or_default()
}
