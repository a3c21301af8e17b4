//! What installing asks of a server, whichever it is. [`Server`] knows the program, its directories and its words; the
//! order of the steps is in `install.rs` and `remove.rs`.

use super::args::PlaceArgs;
use super::classes::Class;
use super::sources::Scratch;
use super::trust;
use crate::exit::UsageError;
use std::path::{Path, PathBuf};

/// One installation of a server.
pub trait Server {
    /// What is known of any.
    fn found(&self) -> &Found;

    /// Its name and version as it says it, like `nginx/1.22.1`.
    fn version(&self) -> &str {
        &self.found().version
    }

    /// Its program.
    fn binary(&self) -> &Path {
        &self.found().binary
    }

    /// Where the module belongs.
    fn module(&self) -> &Path {
        &self.found().module
    }

    /// Its main configuration file.
    fn config(&self) -> &Path;

    /// Compiles the module; where it is, in the scratch directory.
    ///
    /// # Errors
    /// When a compiler, the server's headers or anything else is missing: the message says how to get it.
    fn build(&self, scratch: &Scratch, source: Option<&Path>) -> anyhow::Result<PathBuf>;

    /// Whether a module was built for this very server.
    ///
    /// # Errors
    /// When it was not, or that cannot be found out.
    fn check(&self, module: &[u8]) -> anyhow::Result<()>;

    /// The pieces of configuration that load the module.
    ///
    /// # Errors
    /// When the main configuration file cannot be read, or a path cannot be written into it.
    fn pieces(&self, settings: &Settings) -> anyhow::Result<Vec<Piece>>;

    /// The server's own test of its configuration; the inner error is what it complains of.
    ///
    /// # Errors
    /// When it cannot be run.
    fn test(&self) -> anyhow::Result<Result<(), String>>;

    /// The same of pieces that the configuration does not include yet.
    ///
    /// # Errors
    /// When it cannot be run.
    fn test_alone(&self, pieces: &[Piece], scratch: &Scratch) -> anyhow::Result<Result<(), String>>;

    /// Tells the running server to read its configuration again, without ending a connection.
    ///
    /// # Errors
    /// When it does not run, or may not be told.
    fn reload(&self) -> anyhow::Result<()>;

    /// The command that does the same.
    fn reload_command(&self) -> String;
}

/// What is known of any installation.
#[derive(Debug)]
pub struct Found {
    /// Its name and version as it says it, like `nginx/1.22.1`.
    pub version: String,
    /// Its program.
    pub binary: PathBuf,
    /// Where the module belongs.
    pub module: PathBuf,
}

/// What the configuration says of the module.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The shared memory; without it the server chooses.
    pub memory: Option<PathBuf>,
    /// CPU time is measured of one request in so many.
    pub cpu_one_in: u32,
    /// The rules, in this order.
    pub classes: Vec<Class>,
}

/// A file of configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
    /// A link to it, by which the server finds it, and where it leads.
    pub link: Option<(PathBuf, PathBuf)>,
    /// What somebody has to write into the main configuration, if that does not include it.
    pub by_hand: Option<String>,
}

/// The main configuration file that there is in a server's own directory.
///
/// # Errors
/// When there is none.
pub fn config_in(prefix: &Path, names: &[&str]) -> anyhow::Result<PathBuf> {
    names.iter().map(|name| prefix.join(name)).find(|path| path.is_file()).ok_or_else(|| {
        let words =
            format!("{} has none of {}; name the main configuration with --config", prefix.display(), names.join(", "));
        UsageError(words).into()
    })
}

/// Refuses a server if another user could make it run a program of that user's choice. What it reads when it tests its
/// configuration, and the manifest `noted`, must belong to root or the caller.
///
/// # Errors
/// Names the path, its owner, and what to do.
pub fn check_trust(server: &dyn Server, place: &PlaceArgs, noted: &Path) -> anyhow::Result<()> {
    [server.module(), noted, server.config()].into_iter().chain(place.prefix.as_deref()).try_for_each(trust::check)
}

/// The directive that turns recording on, without the sign at its end.
///
/// # Errors
/// When the path of the memory cannot stand in a configuration.
pub fn directive(name: &str, settings: &Settings) -> anyhow::Result<String> {
    Ok(match &settings.memory {
        Some(path) => format!("{name} {}", quoted(path)?),
        None => name.to_owned(),
    })
}

/// A path as one word of the configuration of both servers.
///
/// # Errors
/// When no quotes make it one.
pub fn quoted(path: &Path) -> anyhow::Result<String> {
    let plain =
        |text: &&str| text.starts_with('/') && text.chars().all(|c| !c.is_control() && !"\"'\\$;{}<>".contains(c));
    match path.to_str().filter(plain) {
        Some(text) if text.contains([' ', '#']) => Ok(format!("\"{text}\"")),
        Some(text) => Ok(text.to_owned()),
        None => {
            let words =
                "it cannot stand in a server's configuration; choose a whole path without quotes, $, ; and brackets";
            Err(UsageError(format!("{}: {words}", path.display())).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_or_refused() {
        for (path, word) in [("/dev/shm/x", Some("/dev/shm/x")), ("/a b", Some("\"/a b\"")), ("/a#b", Some("\"/a#b\""))]
        {
            assert_eq!(quoted(Path::new(path)).ok().as_deref(), word);
        }
        for path in ["", "relative", "/a\"b", "/a;b", "/$uri", "/a\nb", "/a{", "/a\\"] {
            assert!(quoted(Path::new(path)).is_err(), "{path:?} was taken");
        }
    }
}
