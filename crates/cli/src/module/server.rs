//! The interface that `install.rs` and `remove.rs` use for every kind of server. A [`Server`] has the server's program,
//! its directories and the syntax of its configuration. The order of the actions is in `install.rs` and `remove.rs`.

use super::args::ServerLocationArgs;
use super::classes::Class;
use super::sources::ScratchDirectory;
use super::trust;
use crate::exit::UsageError;
use std::path::{Path, PathBuf};

/// The operations on an installed web server, nginx or Apache.
pub trait Server {
    /// Version and paths of the installed server.
    fn installation(&self) -> &Installation;

    /// The server's name and version as the server reports them, like `nginx/1.22.1`.
    fn version(&self) -> &str {
        &self.installation().version
    }

    /// Path of the server's program.
    fn binary(&self) -> &Path {
        &self.installation().binary
    }

    /// Path of the module to install.
    fn module(&self) -> &Path {
        &self.installation().module
    }

    /// Path of the server's main configuration file, such as `nginx.conf`.
    fn config(&self) -> &Path;

    /// Compiles the module in the scratch directory. Returns the path of the compiled module.
    ///
    /// # Errors
    /// Returns an error if a compiler, the server's headers or anything else is missing. The message says how to
    /// install it.
    fn build(&self, scratch: &ScratchDirectory, source: Option<&Path>) -> anyhow::Result<PathBuf>;

    /// Checks that a module was built for this server.
    ///
    /// # Errors
    /// Returns an error if the module was built for another server, or this cannot be determined.
    fn check(&self, module: &[u8]) -> anyhow::Result<()>;

    /// The configuration files that make the server load the module.
    ///
    /// # Errors
    /// Returns an error if the main configuration file cannot be read, or a path cannot be written into it.
    fn config_files(&self, settings: &Settings) -> anyhow::Result<Vec<ConfigFile>>;

    /// Runs the server's own test of its configuration. The inner error is the server's message.
    ///
    /// # Errors
    /// Returns an error if the test cannot be run.
    fn test(&self) -> anyhow::Result<Result<(), String>>;

    /// Runs the server's own test of configuration files that its configuration does not include yet.
    ///
    /// # Errors
    /// Returns an error if the test cannot be run.
    fn test_alone(&self, config_files: &[ConfigFile], scratch: &ScratchDirectory)
    -> anyhow::Result<Result<(), String>>;

    /// Reloads the configuration of the running server without closing connections.
    ///
    /// # Errors
    /// Returns an error if the server is not running, or the caller has no permission to send it a signal.
    fn reload(&self) -> anyhow::Result<()>;

    /// The command that reloads the configuration like [`Server::reload`].
    fn reload_command(&self) -> String;
}

/// Version and paths of an installed server.
#[derive(Debug)]
pub struct Installation {
    /// The server's name and version as the server reports them, like `nginx/1.22.1`.
    pub version: String,
    /// Path of the server's program.
    pub binary: PathBuf,
    /// Path of the module to install.
    pub module: PathBuf,
}

/// The module's settings in the server's configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Path of the shared memory; `None` for the server's default.
    pub memory: Option<PathBuf>,
    /// The reciprocal of the share of requests whose CPU time is measured: 16 means one request in 16.
    pub cpu_one_in: u32,
    /// The rules for request classes, in the order in which they are tried.
    pub classes: Vec<Class>,
}

/// A configuration file that makes the server load the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Content of the file.
    pub text: String,
    /// Path and target of a link to the file, if the server includes the file through a link.
    pub link: Option<(PathBuf, PathBuf)>,
    /// The line that the user must add to the main configuration; `None` if the configuration includes the file.
    pub line_to_add: Option<String>,
}

/// The path of the first of the files `names` that exists in a server's own directory.
///
/// # Errors
/// Returns an error if none of the files exists.
pub fn find_config(prefix: &Path, names: &[&str]) -> anyhow::Result<PathBuf> {
    names.iter().map(|name| prefix.join(name)).find(|path| path.is_file()).ok_or_else(|| {
        let words =
            format!("{} has none of {}; name the main configuration with --config", prefix.display(), names.join(", "));
        UsageError(words).into()
    })
}

/// Rejects a server that might run another user's programs. The files that the server reads when it tests its
/// configuration, and the manifest, must belong to root or the caller.
///
/// # Errors
/// Names the path, its owner, and what to do.
pub fn check_trust(server: &dyn Server, place: &ServerLocationArgs, manifest: &Path) -> anyhow::Result<()> {
    [server.module(), manifest, server.config()].into_iter().chain(place.prefix.as_deref()).try_for_each(trust::check)
}

/// The directive that turns the module on, with its argument, but without a semicolon.
///
/// # Errors
/// Returns an error if the path of the shared-memory file contains characters that a configuration cannot express.
pub fn directive(name: &str, settings: &Settings) -> anyhow::Result<String> {
    Ok(match &settings.memory {
        Some(path) => format!("{name} {}", quoted(path)?),
        None => name.to_owned(),
    })
}

/// A path as one word in the configuration of nginx and Apache, in quotes if needed.
///
/// # Errors
/// Returns an error if the path is not absolute, or contains characters that have a meaning even in quotes.
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
            assert!(quoted(Path::new(path)).is_err(), "{path:?} was accepted");
        }
    }
}
