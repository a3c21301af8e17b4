//! `brimful completions` and `brimful man`. Both generate their output from the same definitions of flags as `--help`.

use crate::exit::Exit;
use crate::output::{OutFile, print};
use anyhow::Context;
use clap::builder::{Resettable, Str};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use std::path::PathBuf;

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  $ brimful completions bash > /usr/share/bash-completion/completions/brimful
  $ brimful completions zsh > /usr/local/share/zsh/site-functions/_brimful";

const MAN_EXAMPLES: &str = "\
Examples:
  $ brimful man /usr/local/share/man/man1";

/// Arguments of `brimful completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell to complete commands in
    pub shell: Shell,
}

/// Arguments of `brimful man`.
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// Directory to write the pages to: brimful.1, brimful-load.1, …
    pub dir: PathBuf,
}

/// Prints the completion script of a shell.
pub fn completions(args: &CompletionsArgs, program: &Command) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut without_hidden(program), "brimful", &mut script);
    print(&String::from_utf8(script).context("the script is not valid UTF-8")?)?;
    Ok(Exit::Ok)
}

/// Removes the hidden subcommands of a command, which the generators of some shells would include.
fn without_hidden(command: &Command) -> Command {
    let shown = command.get_subcommands().filter(|below| !below.is_hide_set()).map(without_hidden);
    Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .visible_aliases(command.get_visible_aliases().map(str::to_owned))
        .version(Resettable::from(command.get_version().map(|version| Str::from(version.to_owned()))))
        .disable_help_flag(command.is_disable_help_flag_set())
        .disable_version_flag(command.is_disable_version_flag_set())
        .args(command.get_arguments().cloned())
        .subcommands(shown)
}

/// Writes one page for each command.
pub fn man(args: &ManArgs, mut program: Command) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(&args.dir).with_context(|| format!("cannot make {}", args.dir.display()))?;
    program.build();
    let mut pages = Vec::new();
    render(&program, &mut pages)?;
    for (name, page) in pages {
        OutFile::create(&args.dir.join(format!("{name}.1")), "the man page")?.commit(&page)?;
    }
    Ok(Exit::Ok)
}

/// Adds the pages of a command and of its subcommands, with their names.
fn render(command: &Command, pages: &mut Vec<(String, String)>) -> anyhow::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        render(below, pages)?;
    }
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page).context("cannot write a man page")?;
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    pages.push((name.to_owned(), String::from_utf8(page).context("the man page is not valid UTF-8")?));
    Ok(())
}
