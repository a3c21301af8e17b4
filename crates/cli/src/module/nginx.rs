//! nginx: the server's version and build arguments according to `nginx -V`, and the files that its configuration
//! includes.

mod build;
mod config;

use super::command::{QUERY_TIMEOUT, find_in_path, resolve_program, run};
use super::server::{ConfigFile, Installation, Server, Settings, directive, find_config, quoted};
use super::sources::ScratchDirectory;
use crate::exit::UsageError;
use anyhow::Context;
use config::{Include, includes, words};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

const MODULE: &str = "ngx_http_brimful_module.so";

/// An installed nginx web server.
#[derive(Debug)]
pub struct Nginx {
    installation: Installation,
    /// The arguments with which nginx's `configure` was called.
    arguments: Vec<String>,
    /// `-p` and `-c` with their values, if the user gave them.
    flags: Vec<OsString>,
    config: PathBuf,
}

impl Nginx {
    /// Finds the server, and reads its version and build arguments.
    ///
    /// # Errors
    /// Returns an error if there is no nginx, or `-V` does not print its version.
    pub fn find(binary: Option<&Path>, prefix: Option<PathBuf>, config: Option<PathBuf>) -> anyhow::Result<Nginx> {
        let binary = match binary {
            Some(path) => resolve_program(path)?,
            None => find_in_path(&["nginx"]).context("no nginx is installed here; name its program with --binary")?,
        };
        let ran = run(&binary, &["-V"], None, QUERY_TIMEOUT)?;
        let said = |start: &str| ran.stderr.lines().find_map(|line| line.strip_prefix(start).map(str::trim));
        let version = said("nginx version:").map(|version| version.split(' ').next().unwrap_or_default().to_owned());
        let Some(version) = version else {
            let words = format!("{}: not nginx, according to its answer to -V; check --binary", binary.display());
            return Err(UsageError(words).into());
        };
        let arguments = words(said("configure arguments:").unwrap_or_default());
        let own = argument(&arguments, "--prefix").unwrap_or("/usr/local/nginx");
        let own = prefix.clone().unwrap_or_else(|| PathBuf::from(own));
        let modules = argument(&arguments, "--modules-path").filter(|_| prefix.is_none()).unwrap_or("modules");
        let config = match (config, &prefix) {
            (Some(config), _) => Some(config),
            (None, Some(prefix)) => Some(find_config(prefix, &["nginx.conf", "conf/nginx.conf"])?),
            (None, None) => None,
        };
        let flag = |flag: &str, path: &PathBuf| [OsString::from(flag), path.clone().into_os_string()];
        let flags =
            prefix.iter().flat_map(|path| flag("-p", path)).chain(config.iter().flat_map(|path| flag("-c", path)));
        Ok(Nginx {
            flags: flags.collect(),
            config: config
                .unwrap_or_else(|| own.join(argument(&arguments, "--conf-path").unwrap_or("conf/nginx.conf"))),
            installation: Installation { version, binary, module: own.join(modules).join(MODULE) },
            arguments,
        })
    }

    fn run_test(&self, flags: &[OsString]) -> anyhow::Result<Result<(), String>> {
        let arguments: Vec<OsString> = [OsString::from("-t")].into_iter().chain(flags.iter().cloned()).collect();
        let ran = run(&self.installation.binary, &arguments, None, QUERY_TIMEOUT)?;
        Ok(if ran.succeeded { Ok(()) } else { Err(ran.error_text()) })
    }

    /// The configuration file of the module for a block such as `http`. It is in a directory that the configuration
    /// includes in that block, or beside the main configuration file.
    fn config_file(
        &self,
        included: &[Include],
        block: &str,
        name: &str,
        where_to: &str,
        text: String,
    ) -> anyhow::Result<ConfigFile> {
        let base = self.config.parent().unwrap_or(Path::new("/"));
        let of_block: Vec<&Include> = included.iter().filter(|include| include.block == block).collect();
        if let Some(directory) = of_block.iter().find_map(|include| include.directory(base)) {
            return Ok(ConfigFile { path: directory.join(name), text, link: None, line_to_add: None });
        }
        let beside = base.join(format!("brimful-{}.conf", if block.is_empty() { "load" } else { block }));
        let is_included = of_block.iter().any(|include| base.join(&include.pattern) == beside);
        let line = format!("{where_to} {}:  include {};", self.config.display(), quoted(&beside)?);
        Ok(ConfigFile { path: beside, text, link: None, line_to_add: (!is_included).then_some(line) })
    }
}

impl Server for Nginx {
    fn installation(&self) -> &Installation {
        &self.installation
    }

    fn config(&self) -> &Path {
        &self.config
    }

    fn build(&self, scratch: &ScratchDirectory, source: Option<&Path>) -> anyhow::Result<PathBuf> {
        build::build(&self.installation.version, &self.arguments, scratch, source)
    }

    fn check(&self, module: &[u8]) -> anyhow::Result<()> {
        let name = self.installation.binary.display();
        let server = fs::read(&self.installation.binary).with_context(|| format!("cannot read {name}"))?;
        let Some(wanted) = build::signature(&server) else {
            anyhow::bail!("{name} has no module signature, so it cannot load modules: nginx 1.9.11 or newer is needed");
        };
        match build::signature(module) {
            Some(found) if found == wanted => Ok(()),
            Some(found) => Err(UsageError(format!(
                "the module was built for another nginx: its signature is {found}, that of {name} is {wanted}; build \
                 it here, without --module"
            ))
            .into()),
            None => {
                Err(UsageError("this is not a module of nginx: it has no signature; check --module".to_owned()).into())
            }
        }
    }

    fn config_files(&self, settings: &Settings) -> anyhow::Result<Vec<ConfigFile>> {
        let name = self.config.display();
        let text = fs::read(&self.config)
            .with_context(|| format!("cannot read {name}; name the configuration with --config"))?;
        let included = includes(&String::from_utf8_lossy(&text));
        let head = "# Written by `brimful module install nginx`; `brimful module remove nginx` removes it.\n";
        let load = format!("{head}load_module {};\n", quoted(self.module())?);
        let mut http =
            format!("{head}{};\nbrimful_cpu_one_in {};\n", directive("brimful", settings)?, settings.cpu_one_in);
        settings.classes.iter().for_each(|class| http += &format!("brimful_class {class};\n"));
        Ok(vec![
            self.config_file(&included, "", "50-brimful.conf", "at the top of", load)?,
            self.config_file(&included, "http", "brimful.conf", "within `http { … }` of", http)?,
        ])
    }

    fn test(&self) -> anyhow::Result<Result<(), String>> {
        self.run_test(&self.flags)
    }

    fn test_alone(
        &self,
        config_files: &[ConfigFile],
        scratch: &ScratchDirectory,
    ) -> anyhow::Result<Result<(), String>> {
        let mut text = String::new();
        let mut http = String::new();
        for file in config_files {
            let line = format!("include {};\n", quoted(&file.path)?);
            *(if file.text.contains("load_module") { &mut text } else { &mut http }) += &line;
        }
        let config = scratch.join("alone.conf");
        let pid = quoted(&scratch.join("alone.pid"))?;
        fs::write(&config, format!("{text}pid {pid};\nevents {{}}\nhttp {{\naccess_log off;\n{http}}}\n"))
            .with_context(|| format!("cannot write {}", config.display()))?;
        let flags = ["-p".into(), scratch.path().into(), "-c".into(), config.into()];
        self.run_test(&flags)
    }

    fn reload(&self) -> anyhow::Result<()> {
        let arguments: Vec<OsString> =
            ["-s", "reload"].map(OsString::from).into_iter().chain(self.flags.clone()).collect();
        let ran = run(&self.installation.binary, &arguments, None, QUERY_TIMEOUT)?;
        match ran.succeeded {
            true => Ok(()),
            false => anyhow::bail!("nginx was not reloaded: {}; is it running?", ran.error_text()),
        }
    }

    fn reload_command(&self) -> String {
        let flags: String = self.flags.iter().map(|flag| format!(" {}", flag.display())).collect();
        format!("{}{flags} -s reload", self.installation.binary.display())
    }
}

/// The value of an argument like `--prefix=/usr`. If it occurs several times, the last one applies.
fn argument<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    arguments.iter().rev().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nginx(directory: &Path, config: &str) -> Nginx {
        fs::write(directory.join("nginx.conf"), config).unwrap();
        Nginx {
            installation: Installation {
                version: "nginx/1.22.1".to_owned(),
                binary: "/usr/sbin/nginx".into(),
                module: directory.join("modules").join(MODULE),
            },
            arguments: Vec::new(),
            flags: vec!["-p".into(), directory.into()],
            config: directory.join("nginx.conf"),
        }
    }

    fn settings() -> Settings {
        let classes = vec!["small=size 0-4999".parse().unwrap(), "images=url /images/*".parse().unwrap()];
        Settings { memory: Some("/dev/shm/mine".into()), cpu_one_in: 8, classes }
    }

    #[test]
    fn pieces_are_in_directories_that_the_configuration_includes() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("conf.d")).unwrap();
        fs::create_dir(at("modules-enabled")).unwrap();
        let nginx = nginx(
            directory.path(),
            "include modules-enabled/*.conf;\nhttp { include absent/*.conf; include conf.d/*.conf; }",
        );
        let config_files = nginx.config_files(&settings()).unwrap();
        let paths: Vec<&Path> = config_files.iter().map(|file| file.path.as_path()).collect();
        assert_eq!(paths, [at("modules-enabled/50-brimful.conf"), at("conf.d/brimful.conf")]);
        assert!(config_files.iter().all(|file| file.line_to_add.is_none()));
        let load = format!("\nload_module {};\n", at("modules/ngx_http_brimful_module.so").display());
        assert!(config_files[0].text.ends_with(&load), "{}", config_files[0].text);
        let expected = "\nbrimful /dev/shm/mine;\nbrimful_cpu_one_in 8;\nbrimful_class small size 0-4999;\n\
                        brimful_class images url /images/*;\n";
        assert!(config_files[1].text.ends_with(expected), "{}", config_files[1].text);
        let by_default = nginx.config_files(&Settings { memory: None, ..settings() }).unwrap();
        assert!(by_default[1].text.contains("\nbrimful;\n"), "{}", by_default[1].text);
    }

    #[test]
    fn existing_configuration_files_are_not_edited() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        // In this test, the first `include` is in a block that must not contain the module's file.
        let nginx =
            nginx(directory.path(), "events {}\nhttp { server { include *.conf; } include brimful-http.conf; }");
        let config_files = nginx.config_files(&settings()).unwrap();
        assert_eq!(config_files[0].path, at("brimful-load.conf"));
        let line = config_files[0].line_to_add.as_deref().unwrap();
        assert!(line.starts_with("at the top of ") && line.ends_with("brimful-load.conf;"), "{line}");
        assert_eq!(
            (config_files[1].path.clone(), config_files[1].line_to_add.clone()),
            (at("brimful-http.conf"), None)
        );
    }
}
