//! Output to the terminal. It may contain names and messages that another user or host chose, so all output passes
//! through this module. Control characters are escaped, except in the escape codes of this program's own colours. In a
//! locale without UTF-8, text is reduced to ASCII. Documents are the same in every locale.

mod append;
mod file;

pub use append::LinesFile;
pub use file::{OutFile, RewrittenFile, StreamFile, deliver, page, text_or_document};

use anyhow::Context;
use brimful_core::text::{escape_controls, to_ascii, wrap};
use clap::builder::styling::{AnsiColor, Style};
use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};
use std::sync::LazyLock;

/// Text that contains no control characters except the escape codes of this program's colours.
#[derive(Default)]
pub struct StyledText(String);

impl StyledText {
    /// Adds text without colour. Control characters are escaped.
    pub fn plain(&mut self, text: &str) -> &mut StyledText {
        self.0 += &escape_controls(text);
        self
    }

    /// Adds text in a style (colour or bold). Control characters are escaped.
    pub fn styled(&mut self, style: Style, text: &str) -> &mut StyledText {
        self.0 += &format!("{style}{}{style:#}", escape_controls(text));
        self
    }
}

/// Width of lines: the value of `COLUMNS`, or else the width of the terminal on stdout. `None` for files and pipes.
pub fn columns() -> Option<usize> {
    let of_terminal = || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    let from_environment = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    from_environment.or_else(of_terminal).filter(|columns| *columns > 0)
}

/// Replaces the characters that this locale does not have.
pub fn to_locale_charset(text: &str) -> Cow<'_, str> {
    static IS_UNICODE: LazyLock<bool> = LazyLock::new(|| is_unicode(|name| std::env::var(name).ok()));
    if *IS_UNICODE { Cow::Borrowed(text) } else { to_ascii(text) }
}

/// Whether the locale uses UTF-8, according to the first of locale(7)'s variables that is set. If none is set, as in
/// many containers, the result is true, because most terminals show UTF-8.
fn is_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Writes results to stdout, or to stderr if stdout is reserved for a document. If the reader has closed the pipe, as
/// `| head` does, that is not an error.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_styled(StyledText::default().plain(text))
}

/// Writes results with colours, if the terminal supports them.
pub fn print_styled(text: &StyledText) -> anyhow::Result<()> {
    put(&to_locale_charset(&text.0))
}

/// Writes a document to stdout, or to stderr if stdout is reserved for another document. Documents are the same in
/// every locale.
pub fn print_document(text: &str) -> anyhow::Result<()> {
    put(&escape_controls(text))
}

fn put(text: &str) -> anyhow::Result<()> {
    let written = if file::stdout_is_reserved() { to_stderr(text) } else { to_stdout(text) };
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to stdout; redirect it to a disk with free space")
        }
        _ => Ok(()),
    }
}

/// Writes to stdout, even if stdout is reserved for a document.
pub fn write(text: &str) -> io::Result<()> {
    to_stdout(&to_locale_charset(&escape_controls(text)))
}

/// Writes a line to stderr. Errors are ignored.
pub fn print_note(text: &str) {
    let _ = to_stderr(&to_locale_charset(&wrapped(&escape_controls(text))));
}

/// Merges the results of several outputs. Returns the first error, and prints the others.
pub fn first_failure<T>(
    main: anyhow::Result<T>,
    others: impl IntoIterator<Item = anyhow::Result<()>>,
) -> anyhow::Result<T> {
    others.into_iter().fold(main, |result, other| match (result, other) {
        (Ok(_), Err(error)) => Err(error),
        (Err(first), Err(error)) => {
            print_error(&format!("{error:#}"));
            Err(first)
        }
        (result, Ok(())) => result,
    })
}

/// Writes an error to stderr. Errors of this write are ignored.
pub fn print_error(text: &str) {
    let mut said = StyledText::default();
    said.styled(AnsiColor::Red.on_default().bold(), "error:").plain(" ").plain(text);
    let _ = to_stderr(&to_locale_charset(&wrapped(&said.0)));
}

/// Breaks a text into lines that fit the terminal on stderr. Without a terminal, the text is unchanged.
fn wrapped(text: &str) -> String {
    let width = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    text.lines().map(|line| wrapped_line(line, if width > 0 { width } else { usize::MAX })).collect()
}

fn wrapped_line(line: &str, width: usize) -> String {
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
    fn the_first_locale_variable_that_is_set_decides() {
        let is_unicode_with = |set: &[(&str, &str)]| {
            is_unicode(|name| set.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(
            is_unicode_with(&[])
                && is_unicode_with(&[("LANG", "de_DE.UTF-8")])
                && is_unicode_with(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")])
        );
        assert!(is_unicode_with(&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")]));
        assert!(!is_unicode_with(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(
            !is_unicode_with(&[("LANG", "POSIX")])
                && !is_unicode_with(&[("LANG", "de_DE.ISO-8859-1")])
                && !is_unicode_with(&[("LANG", "de_DE")])
        );
    }

    #[test]
    fn a_line_that_does_not_fit_is_broken_at_spaces_and_stays_indented() {
        assert_eq!(wrapped_line("  some words that do not fit", 16), "  some words\n  that do not\n  fit\n");
        assert_eq!(wrapped_line("  they  fit", 16), "  they  fit\n");
    }
}
