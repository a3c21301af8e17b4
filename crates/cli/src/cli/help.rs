//! The layout of `--help`: one line for each flag, grouped by headings. `-h` shows the flags that most people need,
//! `--help` shows all flags, and `brimful help COMMAND` and the man pages explain each flag at length. All these texts
//! are made from one definition of the flags. `brimful --help` also groups the commands by headings, which clap cannot
//! do.

use crate::output;
use brimful_core::text::wrap;
use clap::builder::Styles;
use clap::{Arg, ArgAction, Command};

/// Maximum width of help, in columns.
pub const MAX_WIDTH: usize = 120;
/// Width of the help text in columns, if the terminal's width is not known. clap has the same default.
const DEFAULT_WIDTH: usize = 100;

/// The headings in the list of commands, each with its commands. A command without a heading is listed last, under a
/// heading of its own.
pub(super) const HEADINGS: [(&str, &[&str]); 6] = [
    ("Commands", &["load", "survey", "compare", "ab", "history", "watch", "plan"]),
    ("Access logs", &["characterize", "replay", "fileset"]),
    ("Several load generators", &["fleet", "merge"]),
    ("The server and its host", &["module", "doctor"]),
    ("Test environments", &["target", "testbed"]),
    ("Other", &["httperf", "schema", "completions", "man"]),
];

/// The flags that the help shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownFlags {
    /// The flags that most people need: all flags that are not marked with `hide_short_help`.
    Usual,
    /// All flags of the command.
    All,
}

/// Adds the help texts of this module to all commands of the program.
pub fn with_help(program: Command, shown: ShownFlags) -> Command {
    let program = with_help_flag(program, shown);
    let commands = commands_by_heading(&program, output::columns().unwrap_or(DEFAULT_WIDTH).min(MAX_WIDTH));
    let options = heading("Options");
    program.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}{options}\n{{options}}{{after-help}}"
    ))
}

/// The list of commands with their descriptions, in lines of at most `width` columns.
fn commands_by_heading(program: &Command, width: usize) -> String {
    let visible: Vec<&Command> = program.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let name_width = visible.iter().map(|command| command.get_name().len()).max().unwrap_or(0);
    let entry = |command: &Command| {
        let name = command.get_name();
        let indent = name_width + 4;
        let about = wrap(&command.get_about().map(ToString::to_string).unwrap_or_default(), indent, width);
        let style = Styles::default();
        let literal = style.get_literal();
        format!("  {literal}{name}{literal:#}{:1$}{about}", "", name_width - name.len() + 2, about = about.trim_start())
    };
    let is_listed = |command: &&&Command| HEADINGS.iter().any(|(_, names)| names.contains(&command.get_name()));
    let mut list = String::new();
    for (title, names) in HEADINGS {
        let named = names.iter().filter_map(|name| visible.iter().find(|command| command.get_name() == *name));
        list += &section(title, &named.map(|command| entry(command)).collect::<String>());
    }
    let unlisted = visible.iter().filter(|command| !is_listed(command));
    list + &section("More commands", &unlisted.map(|command| entry(command)).collect::<String>())
}

/// A heading with its entries; an empty text if there are no entries.
fn section(title: &str, entries: &str) -> String {
    if entries.is_empty() { String::new() } else { format!("{}\n{entries}\n", heading(title)) }
}

/// A heading in clap's own style.
fn heading(title: &str) -> String {
    let styles = Styles::default();
    let style = styles.get_header();
    format!("{style}{title}:{style:#}")
}

/// Replaces clap's `--help` with one that shows one line for each flag.
fn with_help_flag(command: Command, shown: ShownFlags) -> Command {
    const OUTPUT: &str = "Output";
    let command = command.mut_subcommands(|command| with_help_flag(command, shown));
    let has_output = command.get_arguments().any(|arg| arg.get_help_heading() == Some(OUTPUT));
    let hides_some = command.get_arguments().any(Arg::is_hide_short_help_set);
    let description = match shown {
        ShownFlags::Usual if hides_some => {
            "Print the usual flags; --help prints all, `brimful help` and the man page explain them"
        }
        _ => "Print help; `brimful help` and the man page explain more",
    };
    // `HelpShort` makes clap print one line for each flag; `HelpLong` would print several.
    let help = Arg::new("help").short('h').long("help").help(description).action(ArgAction::HelpShort);
    let help = if has_output { help.help_heading(OUTPUT) } else { help };
    let command = match shown {
        ShownFlags::Usual => command,
        ShownFlags::All => command.mut_args(|arg| arg.hide_short_help(false)),
    };
    match command.is_disable_help_flag_set() {
        true => command,
        false => command.disable_help_flag(true).arg(help),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(name: &'static str) -> Command {
        Command::new(name).about(format!("Do what {name} does"))
    }

    #[test]
    fn each_heading_has_its_commands_and_the_rest_has_its_own() {
        let program = Command::new("x").subcommands([
            command("plan"),
            command("new"),
            command("load"),
            command("secret").hide(true),
        ]);
        let list = anstream::adapter::strip_str(&commands_by_heading(&program, 80)).to_string();
        assert!(
            list.starts_with("Commands:\n  load  Do what load does\n  plan  Do what plan does\n\nMore commands:\n"),
            "{list}"
        );
        assert!(list.ends_with("More commands:\n  new   Do what new does\n\n"), "{list}");
        let narrow = anstream::adapter::strip_str(&commands_by_heading(&program, 20)).to_string();
        assert!(narrow.contains("  load  Do what load\n        does\n"), "{narrow}");
    }
}
