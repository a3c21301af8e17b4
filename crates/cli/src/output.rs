//! What is written to the terminal. Names and messages in it may be another user's or another host's choice: everything goes
//! through here, and nothing that a terminal would obey gets through but this program's own colours.

mod file;

pub use file::{OutFile, deliver};

use anyhow::Context;
use brimful_core::text::visible;
use clap::builder::styling::{AnsiColor, Style};
use std::io::{self, ErrorKind, Write};

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

/// Writes results: to stdout, or to stderr if a document was to have stdout for itself. A reader that has gone away, as `| head`
/// does, is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_painted(Painted::default().plain(text))
}

/// The same in colours, where they are wanted.
pub fn print_painted(text: &Painted) -> anyhow::Result<()> {
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
    to_stdout(Painted::default().plain(text))
}

/// Says something on stderr, on a line of its own. If nobody hears it, that is that.
pub fn say(text: &str) {
    let _ = to_stderr(Painted::default().plain(text).plain("\n"));
}

/// Says on stderr why the program fails.
pub fn complain(text: &str) {
    let mut said = Painted::default();
    said.styled(AnsiColor::Red.on_default().bold(), "error:").plain(" ").plain(text).plain("\n");
    let _ = to_stderr(&said);
}

fn to_stdout(text: &Painted) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.0.as_bytes()).and_then(|()| stdout.flush())
}

fn to_stderr(text: &Painted) -> io::Result<()> {
    anstream::stderr().lock().write_all(text.0.as_bytes())
}
