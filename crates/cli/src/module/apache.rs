//! Apache 2.4: the server's version and paths according to `apache2 -V`, and the files that its configuration includes.
//!
//! Debian's configuration uses environment variables that a script sets. So for Debian's own installation, the script
//! `apache2ctl` is run instead of the server's program.

mod build;
mod config;

use super::command::{ProgramOutput, QUERY_TIMEOUT, find_in_path, resolve_program, run};
use super::server::{ConfigFile, Installation, Server, Settings, directive, find_config, quoted};
use super::sources::ScratchDirectory;
use crate::exit::UsageError;
use anyhow::Context;
use config::{included_directory, includes, module_config_file};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

const MODULE: &str = "mod_brimful.so";
/// Module directories that distributions use outside the server's own directory.
const MODULES: [&str; 4] =
    ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules", "/usr/local/apache2/modules"];

/// An installed Apache web server.
#[derive(Debug)]
pub struct Apache {
    installation: Installation,
    /// The server's module magic number. The server accepts modules that were built with headers of the same major
    /// number.
    magic: String,
    /// The control script to run instead of the program; `None` if the program itself can be run.
    control: Option<PathBuf>,
    /// `-d` and `-f` with their values, if the user gave them.
    flags: Vec<OsString>,
    root: PathBuf,
    config: PathBuf,
}

impl Apache {
    /// Finds the server, and reads its version and build options.
    ///
    /// # Errors
    /// Returns an error if there is no Apache, or `-V` does not print its version.
    pub fn find(binary: Option<&Path>, prefix: Option<PathBuf>, config: Option<PathBuf>) -> anyhow::Result<Apache> {
        let binary = match binary {
            Some(path) => resolve_program(path)?,
            None => find_in_path(&["apache2", "httpd"])
                .context("no Apache is installed here; name its program with --binary")?,
        };
        let ran = run(&binary, &["-V"], None, QUERY_TIMEOUT)?;
        let said = |start: &str| ran.stdout.lines().find_map(|line| line.trim().strip_prefix(start).map(str::trim));
        let compiled = |name: &str| said(&format!("-D {name}=")).map(|value| PathBuf::from(value.trim_matches('"')));
        let version = said("Server version:").and_then(|version| version.split(' ').next());
        let (Some(version), Some(magic)) = (version, said("Server's Module Magic Number:")) else {
            let words = format!("{}: not Apache, according to its answer to -V; check --binary", binary.display());
            return Err(UsageError(words).into());
        };
        let own = compiled("HTTPD_ROOT").unwrap_or_else(|| "/usr/local/apache2".into());
        let root = prefix.clone().unwrap_or_else(|| own.clone());
        let is_own = prefix.is_none() && config.is_none();
        let config = match (config, &prefix) {
            (Some(config), _) => config,
            (None, Some(prefix)) => find_config(prefix, &["apache2.conf", "httpd.conf", "conf/httpd.conf"])?,
            (None, None) => own.join(compiled("SERVER_CONFIG_FILE").unwrap_or_else(|| "conf/httpd.conf".into())),
        };
        let control = find_in_path(&["apache2ctl"]).filter(|_| is_own && own.join("envvars").is_file());
        let flags = if is_own {
            Vec::new()
        } else {
            vec!["-d".into(), root.clone().into(), "-f".into(), config.clone().into()]
        };
        Ok(Apache {
            installation: Installation {
                version: version.to_owned(),
                binary,
                module: modules_directory(&root, prefix.is_some()).join(MODULE),
            },
            magic: magic.to_owned(),
            control,
            flags,
            root,
            config,
        })
    }

    /// Runs the server, or its control script, with these arguments.
    fn run_server(&self, flags: &[OsString], more: &[&str]) -> anyhow::Result<ProgramOutput> {
        let arguments: Vec<OsString> = flags.iter().cloned().chain(more.iter().map(OsString::from)).collect();
        run(self.control.as_ref().unwrap_or(&self.installation.binary), &arguments, None, QUERY_TIMEOUT)
    }

    fn run_test(&self, flags: &[OsString]) -> anyhow::Result<Result<(), String>> {
        let ran = self.run_server(flags, &["-t"])?;
        Ok(if ran.succeeded { Ok(()) } else { Err(ran.error_text()) })
    }
}

impl Server for Apache {
    fn installation(&self) -> &Installation {
        &self.installation
    }

    fn config(&self) -> &Path {
        &self.config
    }

    fn build(&self, scratch: &ScratchDirectory, source: Option<&Path>) -> anyhow::Result<PathBuf> {
        if source.is_some() {
            return Err(UsageError("--source is for nginx; Apache's modules are built with apxs".to_owned()).into());
        }
        build::build(&self.magic, &self.installation.version, scratch)
    }

    fn check(&self, module: &[u8]) -> anyhow::Result<()> {
        // The string `brimful_module` identifies the module. The server's configuration test compares the magic number
        // in the structure of that name.
        let is_module = module.starts_with(b"\x7fELF") && module.windows(14).any(|window| window == b"brimful_module");
        match is_module {
            true => Ok(()),
            false => Err(UsageError("this is not brimful's module for Apache; check --module".to_owned()).into()),
        }
    }

    fn config_files(&self, settings: &Settings) -> anyhow::Result<Vec<ConfigFile>> {
        let name = self.config.display();
        let text = fs::read(&self.config)
            .with_context(|| format!("cannot read {name}; name the configuration with --config"))?;
        let (root, patterns) = includes(&String::from_utf8_lossy(&text), &self.root);
        let head = "# Written by `brimful module install apache`; `brimful module remove apache` removes it.\n";
        let load = format!("{head}LoadModule brimful_module {}\n", quoted(self.module())?);
        let mut text = format!("{}\nBrimfulCpuOneIn {}\n", directive("Brimful", settings)?, settings.cpu_one_in);
        settings.classes.iter().for_each(|class| text += &format!("BrimfulClass {class}\n"));
        let directory =
            |ending: &str| patterns.iter().find_map(|pattern| included_directory(&root.join(pattern), ending));
        if let (Some(loads), Some(configurations)) = (directory("*.load"), directory("*.conf")) {
            return Ok(vec![
                module_config_file(&loads, "brimful.load", load),
                module_config_file(&configurations, "brimful.conf", format!("{head}{text}")),
            ]);
        }
        let both = load + &text;
        if let Some(directory) = directory("*.conf") {
            return Ok(vec![ConfigFile {
                path: directory.join("brimful.conf"),
                text: both,
                link: None,
                line_to_add: None,
            }]);
        }
        let beside = self.config.with_file_name("brimful.conf");
        let is_included = patterns.iter().any(|pattern| root.join(pattern) == beside);
        let line = format!("at the end of {name}:  Include {}", quoted(&beside)?);
        Ok(vec![ConfigFile { path: beside, text: both, link: None, line_to_add: (!is_included).then_some(line) }])
    }

    fn test(&self) -> anyhow::Result<Result<(), String>> {
        self.run_test(&self.flags)
    }

    fn test_alone(
        &self,
        config_files: &[ConfigFile],
        scratch: &ScratchDirectory,
    ) -> anyhow::Result<Result<(), String>> {
        // The tested text includes the existing configuration, which loads the modules and has the directives that
        // every Apache needs.
        let mut text = format!("Include {}\n", quoted(&self.config)?);
        for file in config_files {
            text += &format!("Include {}\n", quoted(&file.path)?);
        }
        let config = scratch.join("alone.conf");
        fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        self.run_test(&["-d".into(), self.root.clone().into(), "-f".into(), config.into()])
    }

    fn reload(&self) -> anyhow::Result<()> {
        let ran = self.run_server(&self.flags, &["-t", "-D", "DUMP_RUN_CFG"])?;
        let path =
            ran.stdout.lines().find_map(|line| line.strip_prefix("PidFile:")).map(|path| path.trim().trim_matches('"'));
        let path =
            path.with_context(|| format!("{} does not report the path of its pid file", self.installation.version))?;
        let text = fs::read_to_string(path).map_err(|error| {
            anyhow::anyhow!("cannot read {path}: {error}; start Apache, which then loads the module")
        })?;
        let pid =
            text.trim().parse().ok().and_then(Pid::from_raw).with_context(|| format!("{path} contains no pid"))?;
        let program = fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero()));
        let is_apache = program.is_ok_and(|program| program.file_name() == self.installation.binary.file_name());
        anyhow::ensure!(
            is_apache,
            "process {} of {path} is not {}; is Apache running?",
            pid.as_raw_nonzero(),
            self.installation.binary.display()
        );
        // The signal is sent here, because `-k graceful` would also start a server that is not running.
        kill_process(pid, Signal::USR1).with_context(|| format!("cannot signal process {}", pid.as_raw_nonzero()))
    }

    fn reload_command(&self) -> String {
        match &self.control {
            Some(control) => format!("{} graceful", control.display()),
            None => {
                let flags: String = self.flags.iter().map(|flag| format!(" {}", flag.display())).collect();
                format!("{}{flags} -k graceful", self.installation.binary.display())
            }
        }
    }
}

/// The directory with the modules of a server that has this root directory. It is `modules` below the root if that
/// exists, or if the user named the root (`is_named`).
fn modules_directory(root: &Path, is_named: bool) -> PathBuf {
    let own = root.join("modules");
    if is_named || own.is_dir() {
        return own;
    }
    MODULES.iter().map(PathBuf::from).find(|directory| directory.is_dir()).unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_files(directory: &Path, config: &str) -> Vec<ConfigFile> {
        fs::write(directory.join("httpd.conf"), config).unwrap();
        let apache = Apache {
            installation: Installation {
                version: "Apache/2.4.66".to_owned(),
                binary: "/usr/sbin/apache2".into(),
                module: directory.join("modules").join(MODULE),
            },
            magic: "20120211:142".to_owned(),
            control: None,
            flags: Vec::new(),
            root: directory.to_owned(),
            config: directory.join("httpd.conf"),
        };
        let classes = vec!["small=size 0-4999".parse().unwrap()];
        apache.config_files(&Settings { memory: Some("/dev/shm/mine".into()), cpu_one_in: 4, classes }).unwrap()
    }

    #[test]
    fn on_debian_links_enable_the_module() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("mods-available")).unwrap();
        fs::create_dir(at("mods-enabled")).unwrap();
        let found = config_files(
            directory.path(),
            "IncludeOptional mods-enabled/*.load\nIncludeOptional mods-enabled/*.conf\n",
        );
        assert_eq!(found[0].path, at("mods-available/brimful.load"));
        assert_eq!(found[0].link, Some((at("mods-enabled/brimful.load"), "../mods-available/brimful.load".into())));
        assert_eq!(found[1].path, at("mods-available/brimful.conf"));
        let text = &found[1].text;
        assert!(
            text.ends_with("\nBrimful /dev/shm/mine\nBrimfulCpuOneIn 4\nBrimfulClass small size 0-4999\n"),
            "{text}"
        );
    }

    #[test]
    fn other_distributions_get_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("conf.d")).unwrap();
        let config = "<VirtualHost *:80>\n Include sites/*.conf\n</VirtualHost>\n include \"conf.d/*.conf\"\n";
        let found = config_files(directory.path(), config);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, at("conf.d/brimful.conf"));
        assert!(found[0].text.contains("\nLoadModule brimful_module ") && found[0].text.contains("\nBrimful "));
        assert_eq!(found[0].line_to_add, None);
    }

    #[test]
    fn existing_configuration_files_are_not_edited() {
        let directory = tempfile::tempdir().unwrap();
        let found = config_files(directory.path(), "Listen 80\n");
        assert_eq!(found[0].path, directory.path().join("brimful.conf"));
        assert!(found[0].line_to_add.as_deref().unwrap().contains("Include "));
        let found = config_files(directory.path(), "Include brimful.conf\n");
        assert_eq!(found[0].line_to_add, None);
    }
}
