//! The command line as a whole: all commands, their headings in `brimful --help`, and the parser.
//!
//! The flags of a command are in the command's own module; flags that several commands share are in `flags`.

mod help;
mod other_tools;

use crate::ab::AbArgs;
use crate::characterize::args::CharacterizeArgs;
use crate::compare::CompareArgs;
use crate::doctor::DoctorArgs;
use crate::fileset::FilesetArgs;
use crate::history::HistoryArgs;
use crate::load::args::LoadArgs;
use crate::manual::{CompletionsArgs, ManArgs};
use crate::merge::MergeArgs;
use crate::module::args::ModuleArgs;
use crate::plan::args::PlanArgs;
use crate::replay::args::ReplayArgs;
use crate::schema::SchemaArgs;
use crate::survey::args::SurveyArgs;
use crate::target::TargetArgs;
use crate::testbed::args::{TestbedArgs, TestbedInitArgs};
use crate::version;
use crate::watch::args::WatchArgs;
use brimful_run::GUARDIAN_COMMAND;
use brimful_testbed::INIT_COMMAND;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use help::ShownFlags;
use std::ffi::OsString;

const EXAMPLES: &str = "\
Examples:
  $ brimful survey --demo
  $ brimful load http://127.0.0.1:8080/ --rate 1000
  $ brimful watch nginx

`brimful COMMAND -h` shows the usual flags of a command, --help shows all, and `brimful help COMMAND` explains each.";

/// Measures how much traffic a web server can take and where its time goes, and predicts what it will need next.
#[derive(Debug, Parser)]
#[command(name = "brimful", version, disable_version_flag = true, max_term_width = help::MAX_WIDTH, after_help = EXAMPLES)]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
    /// Print the version; with --verbose, also the commit, the target and what this kernel permits
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: (),
}

/// The commands, in the order of their headings in [`help::HEADINGS`].
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Generate one load and report how the server responded
    Load(Box<LoadArgs>),
    /// Find out how much load a server can take: calibrate, predict, measure, report
    Survey(Box<SurveyArgs>),
    /// Compare two servers or versions by their Records or surveys: each difference with its interval
    Compare(CompareArgs),
    /// Compare two running servers, or two commands that start them, in short slices until the difference is known
    Ab(Box<AbArgs>),
    /// Find the runs from which a server's figures changed, in the Records or surveys of many runs
    History(HistoryArgs),
    /// Watch a server: its processes, its port, the network and the machine
    Watch(Box<WatchArgs>),
    /// Plan with a queueing model: solve it, change it, calibrate it, forecast
    Plan(Box<PlanArgs>),
    /// Describe the traffic in access logs, and write a Workload that is like it
    Characterize(Box<CharacterizeArgs>),
    /// Send the requests of access logs again, spaced as they were logged
    Replay(Box<ReplayArgs>),
    /// Create the files that the requests of a Workload ask for
    Fileset(FilesetArgs),
    /// Generate one load from many machines or processes: see `brimful fleet --help` (needs the Python package)
    #[command(disable_help_flag = true)]
    Fleet {
        /// Arguments of the Python package's command line
        #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Merge the Records of a load's shards into the Record of the whole load
    Merge(Box<MergeArgs>),
    /// Have nginx or Apache record where a request's time goes inside the server
    Module(ModuleArgs),
    /// Show which limits of this host would disturb a measurement, and the commands that lift them
    Doctor(DoctorArgs),
    /// Run the reference server, whose service demands are known
    Target(Box<TargetArgs>),
    /// Run a command on emulated hosts, a server and clients, with delay, loss and rate limits between them
    Testbed(Box<TestbedArgs>),
    /// Run a test with httperf's own options and report: see `brimful httperf --help`
    Httperf,
    /// Print the JSON Schema of a document, or list the documents
    Schema(SchemaArgs),
    /// Print a script that completes commands and flags in a shell
    Completions(CompletionsArgs),
    /// Write the man pages of all commands
    Man(ManArgs),
    /// Undo a survey's change of the server's CPUs or quota when stdin ends; stdin describes the former state
    #[command(name = GUARDIAN_COMMAND, hide = true)]
    RestoreServer,
    /// Run as the first process inside a test bed, and start the user's command
    #[command(name = INIT_COMMAND, hide = true)]
    TestbedInit(TestbedInitArgs),
}

/// Parses a command line.
///
/// # Errors
/// The requested help or version, or the error in the command line. For flags of other tools, the error has a tip that
/// names the flag to use instead.
pub fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let shown = if words.iter().any(|word| word == "-h") { ShownFlags::Usual } else { ShownFlags::All };
    let mut program = help::with_help(Cli::command(), shown);
    if ["--version", "--verbose"].iter().all(|flag| words.iter().any(|word| word == flag)) {
        program = program.version(version::verbose());
    }
    let parsed = program.clone().try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|error| other_tools::with_hint(error, words, &program))
}

/// The definition of all commands with all their flags, for completions and man pages.
pub fn program() -> clap::Command {
    help::with_help(Cli::command(), ShownFlags::All)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_testkit::words;
    use std::path::Path;

    #[test]
    fn every_command_has_one_heading_and_every_heading_has_commands() {
        let program = program();
        let visible = program.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
        let listed = help::HEADINGS.iter().flat_map(|(_, names)| names.iter().copied());
        assert_eq!(listed.collect::<Vec<_>>(), visible.collect::<Vec<_>>());
    }

    /// The examples in the help of a command and of its subcommands.
    fn examples(command: &clap::Command) -> Vec<String> {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = text.lines().filter_map(|line| line.trim().strip_prefix("$ ").map(str::to_owned));
        own.chain(command.get_subcommands().flat_map(examples)).collect()
    }

    #[test]
    fn the_flags_are_consistent() {
        for shown in [ShownFlags::Usual, ShownFlags::All] {
            help::with_help(Cli::command(), shown).debug_assert();
        }
    }

    /// Parses an example command as a shell would pass it, and returns its error. `None` if the command is valid, or is
    /// that of another program.
    fn error_in(example: &str) -> Option<String> {
        let line = example.trim_start_matches("sudo ").trim_end_matches(" &").split(" | ").next().unwrap();
        let line = line.split(" > ").next().unwrap().split("  #").next().unwrap().split(" || ").next().unwrap();
        let line = line.trim_end().strip_prefix("brimful ")?;
        let words =
            std::iter::once("brimful".to_owned()).chain(words(line).into_iter().filter(|word| !word.is_empty()));
        let words: Vec<OsString> = words.map(OsString::from).collect();
        let error = if words[1] == "httperf" { None } else { parse(&words).err() };
        error.map(|error| format!("{example}: {error}"))
    }

    #[test]
    fn every_example_is_a_command_line() {
        let examples = examples(&program());
        assert!(examples.len() >= 20, "{examples:#?}");
        let wrong: Vec<String> = examples.iter().filter_map(|example| error_in(example)).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// `from-other-tools.md` is exempt, because it also shows command lines that are rejected.
    #[test]
    fn every_command_in_the_documents_is_a_command_line() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut commands = 0;
        let mut wrong = Vec::new();
        for page in std::fs::read_dir(docs).unwrap().map(|entry| entry.unwrap().path()) {
            if page.extension().is_none_or(|extension| extension != "md") || page.ends_with("from-other-tools.md") {
                continue;
            }
            let page = std::fs::read_to_string(page).unwrap();
            for block in page.split("\n```").skip(1).step_by(2) {
                let lines = block.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line));
                let is_command = |line: &&str| line.trim_start_matches("sudo ").starts_with("brimful ");
                // Skips diagrams, which contain `brimful` too, and nginx's directives that begin with the same word.
                for line in lines.filter(is_command).filter(|line| !line.contains(['─', ';'])) {
                    commands += 1;
                    wrong.extend(error_in(line));
                }
            }
        }
        assert!(commands >= 50, "{commands}");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_command_has_examples() {
        for command in program().get_subcommands().filter(|command| !command.is_hide_set()) {
            let passed_on = ["httperf", "fleet"].contains(&command.get_name());
            assert!(passed_on || !examples(command).is_empty(), "{}", command.get_name());
        }
    }

    fn error_text(line: &str) -> String {
        let words: Vec<OsString> = std::iter::once("brimful").chain(line.split(' ')).map(OsString::from).collect();
        parse(&words).unwrap_err().to_string()
    }

    #[test]
    fn flags_with_a_tip_are_not_flags_of_load() {
        let program = program();
        let load = program.find_subcommand("load").unwrap();
        for (flags, _) in other_tools::FLAGS {
            for flag in *flags {
                let is_flag = load.get_arguments().any(|arg| {
                    let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
                    let shorts = arg.get_short_and_visible_aliases().unwrap_or_default();
                    longs.iter().any(|long| format!("--{long}") == **flag)
                        || shorts.iter().any(|short| format!("-{short}") == **flag)
                });
                assert!(!is_flag, "{flag}");
                let text = error_text(&format!("load http://h/ {flag}"));
                assert!(text.contains("tip: ") && !text.contains("use '--"), "{text}");
            }
        }
    }

    #[test]
    fn habits_get_a_tip() {
        for (line, answer) in [
            ("load -k -c 10 http://h/", "kept alive by default"),
            ("load --http2 http://h/", "--http 2"),
            ("load -s post.lua http://h/", "--requests-file"),
            ("load -L http://h/", "--follow 10"),
            ("load -q 100 -c 10 http://h/", "--rate 100"),
            ("load -d {\"a\":1} http://h/", "--data"),
            ("load -t 30s http://h/", "--duration 30s"),
            ("load -t2 -c64 -d30s -R2000 http://h/", "opens connections as it needs them"),
            ("load -rate=500 -duration=30s http://h/", "two dashes: --rate=500"),
            ("load -duration=30s http://h/", "two dashes: --duration=30s"),
            ("-n 200 -c 50 http://h/", "brimful load -n 200 -c 50 http://h/"),
            ("http://h/", "brimful load http://h/"),
            ("run script.js", "brimful load URL"),
            ("attack", "brimful survey URL"),
            ("load --num-conns 100 http://h/", "brimful httperf"),
            // For the remaining command lines, the expected tip is clap's own suggestion.
            ("load --rat 100 http://h/", "--rate"),
            ("lode", "load"),
        ] {
            let text = error_text(line);
            assert!(text.contains("tip: ") && text.contains(answer), "{line}: {text}");
        }
    }

    #[test]
    fn flags_of_other_tools_with_the_same_meaning_are_aliases() {
        let load = |line: &str| -> Box<LoadArgs> {
            let words = ["brimful", "load", "http://h/"].into_iter().chain(line.split(' ')).map(OsString::from);
            let Command::Load(args) = parse(&words.collect::<Vec<_>>()).unwrap().command else { panic!("{line}") };
            args
        };
        for line in ["-c 64", "-c64", "--connections 64", "--vus 64", "--clients 64"] {
            assert_eq!(load(line).clients.unwrap().0, 64, "{line}");
        }
        for line in ["-d 10", "-z 10s", "--duration 10000ms", "-d10s"] {
            assert_eq!(load(line).duration, Some(brimful_core::Nanos::from_secs(10)), "{line}");
        }
        for line in ["--rps 5", "--qps 5", "-R5", "--rate=5"] {
            assert_eq!(load(line).rate, Some(brimful_core::Rate(5.0)), "{line}");
        }
        for line in ["-X put", "-m PUT", "--method put"] {
            assert_eq!(load(line).call.method.as_deref(), Some("PUT"), "{line}");
        }
        for line in ["-b x=1", "--body x=1", "--data x=1"] {
            assert_eq!(load(line).call.data.as_deref(), Some("x=1"), "{line}");
        }
        for line in ["-u me:secret", "-a me:secret", "--user me:secret"] {
            let field = ("Authorization".to_owned(), "Basic bWU6c2VjcmV0".to_owned());
            assert_eq!(load(line).request.headers().unwrap(), [field], "{line}");
        }
        assert!(load("-u a:b -H Authorization:x").request.headers().is_err());
        for line in ["--new-connection", "--disable-keepalive", "-H Connection:close", "-H connection:Close"] {
            assert_eq!(load(line).request.calls_per_connection().unwrap(), Some(1), "{line}");
        }
        assert_eq!(load("-H Connection:keep-alive").request.calls_per_connection().unwrap(), None);
        assert!(load("-H Connection:close --calls-per-connection 5").request.calls_per_connection().is_err());
        assert!(load("--latency").latency && load("--iterations 9").requests.is_some());
    }
}
