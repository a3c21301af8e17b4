//! Compiles nginx's module against the sources of the installed version, with the arguments of nginx's own `configure`.
//! nginx loads a module only if its signature is the same as nginx's (`NGX_MODULE_SIGNATURE` in ngx_module.h).

use super::argument;
use crate::exit::UsageError;
use crate::module::command::{BUILD_TIMEOUT, ProgramOutput, find_in_path, run};
use crate::module::sources::{ScratchDirectory, find_only_file};
use anyhow::Context;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Directory with the sources that Debian's package nginx-dev installs.
const DEBIAN_SOURCES: &str = "/usr/share/nginx/src";
/// Minimum number of digits in nginx's signature after the first three numbers, with which a signature is distinguished
/// from other text. No version of nginx has fewer.
const MIN_DIGITS: usize = 30;

/// Compiles the module in a scratch directory.
///
/// # Errors
/// Returns an error if sources, a compiler or libraries are missing.
pub fn build(
    version: &str,
    arguments: &[String],
    scratch: &ScratchDirectory,
    source: Option<&Path>,
) -> anyhow::Result<PathBuf> {
    let number = version.split('/').nth(1).unwrap_or(version);
    let source = sources(number, source)?;
    for (names, package) in [(&["cc", "gcc", "clang"][..], "gcc libc6-dev"), (&["make"], "make")] {
        find_in_path(names)
            .with_context(|| format!("no {} is installed here; run: apt-get install {package}", names.join(" or ")))?;
    }
    let directory = scratch.join("nginx-source");
    link_sources(&source, &directory)?;
    let configure = if source.join("configure").is_file() { "configure" } else { "auto/configure" };
    let arguments = configure_arguments(arguments, &scratch.join("nginx"));
    let sh = [vec![configure.to_owned()], arguments].concat();
    let ran = run(Path::new("/bin/sh"), &sh, Some(&directory), BUILD_TIMEOUT)?;
    check_success(
        &ran,
        "nginx's sources cannot be configured",
        "a library that nginx was built with may be missing; on Debian install \
              libssl-dev, libpcre2-dev and zlib1g-dev",
    )?;
    let make = find_in_path(&["make"]).context("make was removed meanwhile")?;
    let ran = run(&make, &["-f", "objs/Makefile", "modules"], Some(&directory), BUILD_TIMEOUT)?;
    check_success(&ran, "the module cannot be compiled", "please report this, with the version of nginx")?;
    find_only_file(&directory.join("objs"), "so").context("the build of nginx made no module; check the sources")
}

fn check_success(ran: &ProgramOutput, what: &str, hint: &str) -> anyhow::Result<()> {
    // `configure` prints errors to stdout, so stdout is shown if stderr is empty.
    let said = if ran.stderr.trim().is_empty() {
        ran.error_text()
    } else {
        format!("{}; {}", last(&ran.stdout), ran.error_text())
    };
    if ran.succeeded { Ok(()) } else { anyhow::bail!("{what}: {said}; {hint}") }
}

fn last(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// The directory of nginx's sources. An error if they are of another version.
fn sources(number: &str, named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let directory = named.unwrap_or(Path::new(DEBIAN_SOURCES));
    let place = directory.display();
    let how = format!(
        "for Debian's own nginx run: apt-get install nginx-dev; otherwise unpack nginx-{number}.tar.gz \
         from nginx.org and name the directory with --source"
    );
    let directory = std::path::absolute(directory).with_context(|| format!("no path: {place}"))?;
    let Ok(header) = fs::read_to_string(directory.join("src/core/nginx.h")) else {
        let words = format!("{place} has no sources of nginx: {how}");
        return Err(if named.is_some() { UsageError(words).into() } else { anyhow::anyhow!(words) });
    };
    match version_in(&header) {
        Some(found) if found == number => Ok(directory),
        found => {
            let found = found.unwrap_or("an unknown version");
            let words = format!("{place} has the sources of nginx {found}, but {number} is installed: {how}");
            Err(if named.is_some() { UsageError(words).into() } else { anyhow::anyhow!(words) })
        }
    }
}

/// The version in `#define NGINX_VERSION      "1.22.1"`.
fn version_in(header: &str) -> Option<&str> {
    let line = header.lines().find_map(|line| line.strip_prefix("#define NGINX_VERSION"))?;
    line.trim().strip_prefix('"')?.strip_suffix('"')
}

/// Makes a directory with links to the sources. A build writes files into its directory, so the original stays
/// unchanged.
fn link_sources(source: &Path, directory: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot link {} into {}", source.display(), directory.display());
    fs::create_dir(directory).with_context(cannot)?;
    for entry in fs::read_dir(source).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        // The output of an earlier build of nginx is skipped.
        if !["objs", "Makefile"].iter().any(|made| entry.file_name() == *made) {
            symlink(entry.path(), directory.join(entry.file_name())).with_context(cannot)?;
        }
    }
    Ok(())
}

/// The arguments of `configure` that build this module for this nginx: nginx's own arguments, without its other
/// modules.
fn configure_arguments(arguments: &[String], module: &Path) -> Vec<String> {
    let is_of_others = |argument: &str| {
        ["--add-module=", "--add-dynamic-module=", "--builddir="].iter().any(|start| argument.starts_with(start))
            || argument.ends_with("=dynamic")
    };
    // The sources of some libraries exist only on the machine on which nginx was built. Arguments that name them are
    // left out.
    let is_elsewhere = |argument: &str| {
        ["--with-openssl", "--with-pcre", "--with-zlib", "--with-libatomic"]
            .iter()
            .filter_map(|name| argument.strip_prefix(name)?.strip_prefix('='))
            .any(|path| !Path::new(path).is_dir())
    };
    let kept = arguments.iter().filter(|argument| !is_of_others(argument) && !is_elsewhere(argument)).cloned();
    // nginx is built with -Werror, and newer compilers have more warnings, so -Wno-error is added to --with-cc-opt.
    // Only the last --with-cc-opt has an effect.
    let options = argument(arguments, "--with-cc-opt").unwrap_or_default();
    kept.chain([format!("--with-cc-opt={options} -Wno-error"), format!("--add-dynamic-module={}", module.display())])
        .collect()
}

/// The signature in a program or module: `8,4,8,` followed by one digit for each build option. A module must have the
/// same signature as the program.
pub fn signature(bytes: &[u8]) -> Option<&str> {
    let starts = bytes.windows(6).enumerate().filter(|(_, window)| {
        matches!(window, [a, b',', c, b',', d, b','] if [a, c, d].iter().all(|size| size.is_ascii_digit()))
    });
    starts.map(|(at, _)| at).find_map(|at| {
        let rest = bytes.get(at..)?;
        let digits = rest.get(6..)?.iter().take_while(|byte| matches!(byte, b'0' | b'1')).count();
        let ends = rest.get(6 + digits) == Some(&0);
        let begins = at == 0 || bytes.get(at - 1) == Some(&0);
        if digits < MIN_DIGITS || !ends || !begins {
            return None;
        }
        std::str::from_utf8(rest.get(..6 + digits)?).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: &str = "8,4,8,0000111111010111001110101111000110";

    #[test]
    fn the_signature_is_found() {
        let program = |text: &str| format!("code\0{text}\0more").into_bytes();
        assert_eq!(signature(&program(SIGNATURE)), Some(SIGNATURE));
        let decoy = format!("8,4,8,01\0 8,4,8,x\0{SIGNATURE}");
        assert_eq!(signature(&program(&decoy)), Some(SIGNATURE));
        for wrong in ["", "8,4,8,", "8,4,8,0000111", "8,4,a,0000111111010111001110101111000110"] {
            assert_eq!(signature(&program(wrong)), None, "{wrong}");
        }
        assert_eq!(signature(SIGNATURE.as_bytes()), None, "a signature must end with a zero byte");
        assert_eq!(signature(&program(&format!("1{SIGNATURE}"))), None, "a signature must follow a zero byte");
    }

    #[test]
    fn versions_of_sources_are_read() {
        assert_eq!(
            version_in("/* */\n#define nginx_version      1022001\n#define NGINX_VERSION      \"1.22.1\"\n"),
            Some("1.22.1")
        );
        assert_eq!(version_in("#define NGINX_VERSION 1.22.1"), None);
        assert_eq!(version_in(""), None);
    }

    #[test]
    fn the_module_is_configured_like_the_server() {
        let arguments = [
            "--prefix=/usr/share/nginx",
            "--with-cc-opt=-g -O2",
            "--with-compat",
            "--add-dynamic-module=/build/other",
            "--add-module=/build/lua",
            "--with-http_xslt_module=dynamic",
            "--with-openssl=/nonexistent/openssl",
            "--with-pcre",
            "--with-zlib=/",
        ];
        let arguments = arguments.map(str::to_owned);
        let expected = [
            "--prefix=/usr/share/nginx",
            "--with-cc-opt=-g -O2",
            "--with-compat",
            "--with-pcre",
            "--with-zlib=/",
            "--with-cc-opt=-g -O2 -Wno-error",
            "--add-dynamic-module=/tmp/x",
        ];
        assert_eq!(configure_arguments(&arguments, Path::new("/tmp/x")), expected);
    }

    #[test]
    fn sources_of_another_version_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let error = sources("1.22.1", Some(directory.path())).unwrap_err();
        assert!(error.is::<UsageError>() && error.to_string().contains("has no sources"), "{error}");
        fs::create_dir_all(directory.path().join("src/core")).unwrap();
        fs::write(directory.path().join("src/core/nginx.h"), "#define NGINX_VERSION \"1.21.0\"\n").unwrap();
        let error = sources("1.22.1", Some(directory.path())).unwrap_err();
        assert!(error.to_string().contains("nginx 1.21.0, but 1.22.1 is installed"), "{error}");
        assert!(sources("1.21.0", Some(directory.path())).is_ok());
    }
}
