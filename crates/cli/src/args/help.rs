//! How help looks: one line for each flag, by headings. `-h` shows the flags that most people need, `--help` all of them,
//! `brimful help COMMAND` and the man pages explain each at length. One definition of the flags is behind all of them.

use super::{Cli, habits};
use clap::{Arg, ArgAction, Command, CommandFactory, FromArgMatches};
use std::ffi::OsString;

/// What `-h` does not say is marked by `hide_short_help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    /// Those that most people need.
    Usual,
    /// All.
    All,
}

/// Reads a command line.
///
/// # Errors
/// What is wrong with it, and what to write instead where that is known; or the help that was asked for.
pub fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let flags = if words.iter().any(|word| word == "-h") { Flags::Usual } else { Flags::All };
    let command = command(flags);
    let read = command.clone().try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches));
    read.map_err(|error| habits::answered(error, words, &command))
}

/// All commands, with one form of help.
pub fn command(flags: Flags) -> Command {
    with_help(Cli::command(), flags)
}

fn with_help(command: Command, flags: Flags) -> Command {
    const OUTPUT: &str = "Output";
    let command = command.mut_subcommands(|command| with_help(command, flags));
    let has_output = command.get_arguments().any(|arg| arg.get_help_heading() == Some(OUTPUT));
    let hides_some = command.get_arguments().any(Arg::is_hide_short_help_set);
    let what = match flags {
        Flags::Usual if hides_some => "Print these flags; --help has all, `brimful help` and the man page explain them",
        _ => "Print help; `brimful help` and the man page explain more",
    };
    // The form for `-h` has one line for each flag, and the other one has several.
    let help = Arg::new("help").short('h').long("help").help(what).action(ArgAction::HelpShort);
    let help = if has_output { help.help_heading(OUTPUT) } else { help };
    let command = match flags {
        Flags::Usual => command,
        Flags::All => command.mut_args(|arg| arg.hide_short_help(false)),
    };
    match command.is_disable_help_flag_set() {
        true => command,
        false => command.disable_help_flag(true).arg(help),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_testkit::words;
    use std::path::Path;

    /// The examples in the help of a command and of those below it.
    fn examples(command: &Command) -> Vec<String> {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = text.lines().filter_map(|line| line.trim().strip_prefix("$ ").map(str::to_owned));
        own.chain(command.get_subcommands().flat_map(examples)).collect()
    }

    #[test]
    fn the_flags_are_consistent() {
        [Flags::Usual, Flags::All].into_iter().for_each(|flags| command(flags).debug_assert());
    }

    /// What is wrong with a line, as a shell would hand it over; one of another program's is none of our concern.
    fn wrong_in(example: &str) -> Option<String> {
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
        let all = command(Flags::All);
        let examples = examples(&all);
        assert!(examples.len() >= 20, "{examples:#?}");
        let wrong: Vec<String> = examples.iter().filter_map(|example| wrong_in(example)).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// But for `first-commands.md`, which shows what is refused, too.
    #[test]
    fn every_command_in_the_documents_is_a_command_line() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let (mut commands, mut wrong) = (0, Vec::new());
        for page in std::fs::read_dir(docs).unwrap().map(|entry| entry.unwrap().path()) {
            if page.extension().is_none_or(|extension| extension != "md") || page.ends_with("first-commands.md") {
                continue;
            }
            let page = std::fs::read_to_string(page).unwrap();
            for block in page.split("\n```").skip(1).step_by(2) {
                let lines = block.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line));
                let is_command = |line: &&str| line.trim_start_matches("sudo ").starts_with("brimful ");
                // Drawings name commands, too, and nginx has a directive of the name.
                for line in lines.filter(is_command).filter(|line| !line.contains(['─', ';'])) {
                    commands += 1;
                    wrong.extend(wrong_in(line));
                }
            }
        }
        assert!(commands >= 50, "{commands}");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_command_has_examples() {
        for command in command(Flags::All).get_subcommands().filter(|command| !command.is_hide_set()) {
            let passed_on = ["httperf", "fleet"].contains(&command.get_name());
            assert!(passed_on || !examples(command).is_empty(), "{}", command.get_name());
        }
    }
}
