//! The operations that an installation needs of any server. [`Server`] knows the program, its directories and the syntax of
//! its configuration; the order of the steps is in `install.rs` and `remove.rs`.

use super::args::PlaceArgs;
use super::classes::Class;
use super::sources::Scratch;
use super::trust;
use crate::exit::UsageError;
use std::path::{Path, PathBuf};

/// One installation of a server.
pub trait Server {
    /// The version and paths.
    fn installation(&self) -> &Installation;

    /// Its name and version as it reports them, like `nginx/1.22.1`.
    fn version(&self) -> &str {
        &self.installation().version
    }

    /// Path of its program.
    fn binary(&self) -> &Path {
        &self.installation().binary
    }

    /// Path of the module to install.
    fn module(&self) -> &Path {
        &self.installation().module
    }

    /// Path of its main configuration file.
    fn config(&self) -> &Path;

    /// Compiles the module in the scratch directory. Returns its path.
    ///
    /// # Errors
    /// When a compiler, the server's headers or anything else is missing. The message says how to install it.
    fn build(&self, scratch: &Scratch, source: Option<&Path>) -> anyhow::Result<PathBuf>;

    /// Checks that a module was built for this server.
    ///
    /// # Errors
    /// When it was built for another server, or that cannot be determined.
    fn check(&self, module: &[u8]) -> anyhow::Result<()>;

    /// The pieces of configuration that load the module.
    ///
    /// # Errors
    /// When the main configuration file cannot be read, or a path cannot be written into it.
    fn pieces(&self, settings: &Settings) -> anyhow::Result<Vec<Piece>>;

    /// Runs the server's own test of its configuration. The inner error is the server's message.
    ///
    /// # Errors
    /// When it cannot be run.
    fn test(&self) -> anyhow::Result<Result<(), String>>;

    /// Runs the same test with pieces that the configuration does not include yet.
    ///
    /// # Errors
    /// When it cannot be run.
    fn test_alone(&self, pieces: &[Piece], scratch: &Scratch) -> anyhow::Result<Result<(), String>>;

    /// Reloads the configuration of the running server without closing connections.
    ///
    /// # Errors
    /// When it is not running, or the caller may not signal it.
    fn reload(&self) -> anyhow::Result<()>;

    /// The command that does the same.
    fn reload_command(&self) -> String;
}

/// Version and paths of an installation.
#[derive(Debug)]
pub struct Installation {
    /// The server's name and version as it reports them, like `nginx/1.22.1`.
    pub version: String,
    /// Path of its program.
    pub binary: PathBuf,
    /// Path of the module to install.
    pub module: PathBuf,
}

/// The module's settings in the configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Path of the shared memory; `None` for the server's default.
    pub memory: Option<PathBuf>,
    /// CPU time is measured for one request in this many.
    pub cpu_one_in: u32,
    /// The rules, in the order in which they are tried.
    pub classes: Vec<Class>,
}

/// A configuration file of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its path.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
    /// The path and target of a link to it through which the server includes it.
    pub link: Option<(PathBuf, PathBuf)>,
    /// The line that the user must add to the main configuration, if that does not include the file.
    pub by_hand: Option<String>,
}

/// The first of these configuration files that exists in a server's own directory.
///
/// # Errors
/// When none exists.
pub fn config_in(prefix: &Path, names: &[&str]) -> anyhow::Result<PathBuf> {
    names.iter().map(|name| prefix.join(name)).find(|path| path.is_file()).ok_or_else(|| {
        let words =
            format!("{} has none of {}; name the main configuration with --config", prefix.display(), names.join(", "));
        UsageError(words).into()
    })
}

/// Refuses a server if another user could make it run a program of that user's choice. The files that it reads when it tests
/// its configuration, and the manifest, must belong to root or the caller.
///
/// # Errors
/// Names the path, its owner, and what to do.
pub fn check_trust(server: &dyn Server, place: &PlaceArgs, manifest: &Path) -> anyhow::Result<()> {
    [server.module(), manifest, server.config()].into_iter().chain(place.prefix.as_deref()).try_for_each(trust::check)
}

/// The directive that turns recording on, without a semicolon.
///
/// # Errors
/// When the path of the memory cannot be written in a configuration.
pub fn directive(name: &str, settings: &Settings) -> anyhow::Result<String> {
    Ok(match &settings.memory {
        Some(path) => format!("{name} {}", quoted(path)?),
        None => name.to_owned(),
    })
}

/// A path as one word in the configuration of both servers, in quotes if needed.
///
/// # Errors
/// When it is not absolute, or contains characters that have a meaning even in quotes.
pub fn quoted(path: &Path) -> anyhow::Result<String> {
    let plain =
        |text: &&str| text.starts_with('/') && text.chars().all(|c| !c.is_control() && !"\"'\\$;{}<>".contains(c));
    match path.to_str().filter(plain) {
        Some(text) if text.contains([' ', '#']) => Ok(format!("\"{text}\"")),
        Some(text) => Ok(text.to_owned()),
        None => {
            let words =
                "not usable in a server's configuration; choose an absolute path without quotes, $, ; and brackets";
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
