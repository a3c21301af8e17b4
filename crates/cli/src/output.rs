//! What is written to the terminal. Names and messages in it may be another user's or another host's choice: everything goes
//! through here, and nothing that a terminal would obey gets through but this program's own colours, nor anything but ASCII in a
//! locale that has no more. Documents are the same everywhere.

mod file;

pub use file::{OutFile, RewrittenFile, StreamFile, deliver, page, text_or_document};

use anyhow::Context;
use brimful_core::text::{ascii, visible, wrap};
use clap::builder::styling::{AnsiColor, Style};
use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};
use std::sync::LazyLock;

/// Text whose colours are this program's own.
#[derive(Default)]
pub struct Painted(String);

impl Painted {
    /// Adds text as it is, but for what a terminal would obey.
    pub fn plain(&mut self, text: &str) -> &mut Painted {
        self.0 += &visible(text);
        self
    }

    /// Adds text in a style.
    pub fn styled(&mut self, style: Style, text: &str) -> &mut Painted {
        self.0 += &format!("{style}{}{style:#}", visible(text));
        self
    }
}

/// How wide lines may be: as COLUMNS says, or else the terminal that shows the results; not known of files and pipes.
pub fn columns() -> Option<usize> {
    let of_terminal = || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    told.or_else(of_terminal).filter(|columns| *columns > 0)
}

/// Text as this locale can show it.
pub fn shown(text: &str) -> Cow<'_, str> {
    static IS_UNICODE: LazyLock<bool> = LazyLock::new(|| is_unicode(|name| std::env::var(name).ok()));
    if *IS_UNICODE { Cow::Borrowed(text) } else { ascii(text) }
}

/// Whether the first of the variables that decides it (locale(7)) names UTF-8. Where nothing is set, as in many
/// containers, terminals show it all the same.
fn is_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Writes results: to stdout, or to stderr if a document was to have stdout for itself. A reader that has gone away, as `| head`
/// does, is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_painted(Painted::default().plain(text))
}

/// The same in colours, where they are wanted.
pub fn print_painted(text: &Painted) -> anyhow::Result<()> {
    put(&shown(&text.0))
}

/// Writes a document, which is the same in every locale, to where results go.
pub fn print_document(text: &str) -> anyhow::Result<()> {
    put(&visible(text))
}

fn put(text: &str) -> anyhow::Result<()> {
    let written = if file::stdout_is_taken() { to_stderr(text) } else { to_stdout(text) };
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to stdout; redirect it to a place with room")
        }
        _ => Ok(()),
    }
}

/// Writes to stdout, and says if that fails.
pub fn write(text: &str) -> io::Result<()> {
    to_stdout(&shown(&visible(text)))
}

/// Says something on stderr, on a line of its own. If nobody hears it, that is that.
pub fn say(text: &str) {
    let _ = to_stderr(&shown(&fitted(&visible(text))));
}

/// Merges the results of the main output and of the others, all of which have been tried. Returns the first error and
/// prints the other ones.
pub fn first_failure<T>(
    main: anyhow::Result<T>,
    others: impl IntoIterator<Item = anyhow::Result<()>>,
) -> anyhow::Result<T> {
    others.into_iter().fold(main, |result, other| match (result, other) {
        (Ok(_), Err(error)) => Err(error),
        (Err(first), Err(error)) => {
            complain(&format!("{error:#}"));
            Err(first)
        }
        (result, Ok(())) => result,
    })
}

/// Says on stderr why the program fails.
pub fn complain(text: &str) {
    let mut said = Painted::default();
    said.styled(AnsiColor::Red.on_default().bold(), "error:").plain(" ").plain(text);
    let _ = to_stderr(&shown(&fitted(&said.0)));
}

/// Whole lines, broken at spaces where a terminal would break them anywhere; elsewhere each stays one line.
fn fitted(text: &str) -> String {
    let width = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    text.lines().map(|line| fitted_line(line, if width > 0 { width } else { usize::MAX })).collect()
}

fn fitted_line(line: &str, width: usize) -> String {
    let indent = line.chars().take_while(|c| *c == ' ').count();
    if line.chars().count() <= width { line.to_owned() + "\n" } else { wrap(line, indent, width) }
}

fn to_stdout(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
}

fn to_stderr(text: &str) -> io::Result<()> {
    anstream::stderr().lock().write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides_what_can_be_shown() {
        let of = |set: &[(&str, &str)]| {
            is_unicode(|name| set.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(of(&[]) && of(&[("LANG", "de_DE.UTF-8")]) && of(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(of(&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")]));
        assert!(!of(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(!of(&[("LANG", "POSIX")]) && !of(&[("LANG", "de_DE.ISO-8859-1")]) && !of(&[("LANG", "de_DE")]));
    }

    #[test]
    fn a_line_that_does_not_fit_is_broken_at_spaces_and_stays_indented() {
        assert_eq!(fitted_line("  some words that do not fit", 16), "  some words\n  that do not\n  fit\n");
        assert_eq!(fitted_line("  they  fit", 16), "  they  fit\n");
    }
}
