//! The program: parses the command line, runs one command, and turns its result into an exit code.
//!
//! Results go to stdout, everything else to stderr. Exit codes: 0 ok, 1 an objective was missed (every `load` has the
//! objective that more calls are completed than fail), 2 usage or bad input, 3 environment, 4 the load generator was the
//! limit, 130 interrupted.
#![forbid(unsafe_code)]

mod ab;
mod access_logs;
mod characterize;
mod cli;
mod command_line;
mod compare;
mod doctor;
mod documents;
mod exit;
mod fileset;
mod flags;
mod fleet;
mod history;
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
mod run_options;
mod runs;
mod schema;
mod survey;
mod target;
mod testbed;
mod version;
mod watch;

use brimful_core::text::one_line;
use cli::Command;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    brimful_report::with_width(output::columns().unwrap_or(brimful_report::DEFAULT_WIDTH), run)
}

fn run() -> ExitCode {
    survive_file_size_limit();
    // httperf's options are parsed by their own rules, not by clap.
    if let Some(words) = httperf::arguments(std::env::args_os()) {
        // Like httperf, this command exits with 1 after any error.
        return match httperf::main(&words) {
            Ok(exit) => exit.into(),
            Err(error) => {
                output::print_error(&message(&error));
                ExitCode::FAILURE
            }
        };
    }
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match cli::parse(&words) {
        Ok(cli) => cli,
        Err(error) => return print_usage_error(&error),
    };
    let result = match cli.command {
        Command::Survey(args) => survey::main(&args),
        Command::Load(args) => load::main(&args),
        Command::Httperf => Ok(exit::Exit::UsageError),
        Command::Compare(args) => compare::main(&args),
        Command::Ab(args) => ab::main(&args),
        Command::History(args) => history::main(&args),
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
        Command::Schema(args) => schema::main(&args),
        Command::Completions(args) => manual::completions(&args, &cli::program()),
        Command::Man(args) => manual::man(&args, cli::program()),
        Command::RestoreServer => survey::restore_former_state(),
        // `testbed` exits with the exit code of the command that it runs.
        Command::Testbed(args) => return exit_code(testbed::main(&args)),
        Command::TestbedInit(args) => return exit_code(testbed::run_init(&args)),
    };
    exit_code(result)
}

/// Makes a write beyond `ulimit -f` fail like any other write. Without this, the signal SIGXFSZ would end the process,
/// and the measurements would be lost.
fn survive_file_size_limit() {
    // This fails only if no descriptor is left. The next attempt to open a file reports that.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Converts a result into its exit code. Prints the error, if the result is one.
fn exit_code(result: anyhow::Result<impl Into<ExitCode>>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::print_error(&message(&error));
            exit::code_for_error(&error).into()
        }
    }
}

/// Prints help, or the error in the arguments. Control characters in arguments are escaped, because a shell may have
/// expanded the names of other users' files.
fn print_usage_error(error: &clap::Error) -> ExitCode {
    if std::env::args_os().map(|word| word.to_string_lossy().into_owned()).all(|word| one_line(&word) == word) {
        error.exit();
    }
    output::print_note(error.render().to_string().trim_end());
    exit::Exit::UsageError.into()
}

/// The error and its causes, except causes that the preceding text already contains.
fn message(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .reduce(|text, cause| match text.contains(&cause) {
            true => text,
            false => format!("{text}: {cause}"),
        })
        .unwrap_or_default()
}
