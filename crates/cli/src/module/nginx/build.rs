//! nginx's module, compiled against the sources of the very version that is installed, with the arguments that it was
//! configured with. That the two fit, the signature says that nginx compares as well (`NGX_MODULE_SIGNATURE` in its
//! ngx_module.h).

use super::argument;
use crate::exit::UsageError;
use crate::module::command::{BUILD, Ran, find, run};
use crate::module::sources::{Scratch, only};
use anyhow::Context;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Where Debian's package nginx-dev has the sources.
const DEBIAN: &str = "/usr/share/nginx/src";
/// Digits of the shortest signature there has been, after the three sizes.
const DIGITS_LEAST: usize = 30;

/// Compiles it in a scratch directory.
///
/// # Errors
/// When sources, a compiler or libraries are missing.
pub fn build(version: &str, arguments: &[String], scratch: &Scratch, source: Option<&Path>) -> anyhow::Result<PathBuf> {
    let number = version.split('/').nth(1).unwrap_or(version);
    let source = sources(number, source)?;
    for (names, package) in [(&["cc", "gcc", "clang"][..], "gcc libc6-dev"), (&["make"], "make")] {
        find(names)
            .with_context(|| format!("no {} is installed here; run: apt-get install {package}", names.join(" or ")))?;
    }
    let directory = scratch.join("nginx-source");
    link_sources(&source, &directory)?;
    let configure = if source.join("configure").is_file() { "configure" } else { "auto/configure" };
    let arguments = configured(arguments, &scratch.join("nginx"));
    let sh = [vec![configure.to_owned()], arguments].concat();
    let ran = run(Path::new("/bin/sh"), &sh, Some(&directory), BUILD)?;
    succeeded(
        &ran,
        "nginx's sources cannot be configured",
        "a library that it was built with may be missing; Debian has what \
              its nginx needs in libssl-dev, libpcre2-dev and zlib1g-dev",
    )?;
    let make = find(&["make"]).context("make has gone")?;
    let ran = run(&make, &["-f", "objs/Makefile", "modules"], Some(&directory), BUILD)?;
    succeeded(&ran, "the module cannot be compiled", "please report this, with the version of nginx")?;
    only(&directory.join("objs"), "so").context("nginx's build made no module; check its sources")
}

fn succeeded(ran: &Ran, what: &str, hint: &str) -> anyhow::Result<()> {
    // `configure` complains on stdout.
    let said = if ran.stderr.trim().is_empty() {
        ran.complaint()
    } else {
        format!("{}; {}", last(&ran.stdout), ran.complaint())
    };
    if ran.ok { Ok(()) } else { anyhow::bail!("{what}: {said}; {hint}") }
}

fn last(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// The directory of the sources, which are of this version.
fn sources(number: &str, named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let directory = named.unwrap_or(Path::new(DEBIAN));
    let place = directory.display();
    let how = format!(
        "on Debian and with its own nginx, run: apt-get install nginx-dev; otherwise unpack nginx-{number}.tar.gz \
         from nginx.org and name it with --source"
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
            let words = format!("{place} has the sources of nginx {found}, and {number} is installed: {how}");
            Err(if named.is_some() { UsageError(words).into() } else { anyhow::anyhow!(words) })
        }
    }
}

/// `1.22.1` of `#define NGINX_VERSION      "1.22.1"`.
fn version_in(header: &str) -> Option<&str> {
    let line = header.lines().find_map(|line| line.strip_prefix("#define NGINX_VERSION"))?;
    line.trim().strip_prefix('"')?.strip_suffix('"')
}

/// A directory with links to the sources, because building writes beside them.
fn link_sources(source: &Path, directory: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot link {} into {}", source.display(), directory.display());
    fs::create_dir(directory).with_context(cannot)?;
    for entry in fs::read_dir(source).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        // What an earlier build made would be taken for ours.
        if !["objs", "Makefile"].iter().any(|made| entry.file_name() == *made) {
            symlink(entry.path(), directory.join(entry.file_name())).with_context(cannot)?;
        }
    }
    Ok(())
}

/// The arguments that make a module for this nginx: its own, without other modules and what they need.
fn configured(arguments: &[String], module: &Path) -> Vec<String> {
    let is_of_others = |argument: &str| {
        ["--add-module=", "--add-dynamic-module=", "--builddir="].iter().any(|start| argument.starts_with(start))
            || argument.ends_with("=dynamic")
    };
    // Libraries were compiled with it where it was built.
    let is_elsewhere = |argument: &str| {
        ["--with-openssl", "--with-pcre", "--with-zlib", "--with-libatomic"]
            .iter()
            .filter_map(|name| argument.strip_prefix(name)?.strip_prefix('='))
            .any(|path| !Path::new(path).is_dir())
    };
    let kept = arguments.iter().filter(|argument| !is_of_others(argument) && !is_elsewhere(argument)).cloned();
    // nginx lets every warning end a build, and a newer compiler has new ones. The last of these counts.
    let options = argument(arguments, "--with-cc-opt").unwrap_or_default();
    kept.chain([format!("--with-cc-opt={options} -Wno-error"), format!("--add-dynamic-module={}", module.display())])
        .collect()
}

/// The signature in a program or module: `8,4,8,` and a digit for each thing that must be alike.
pub fn signature(bytes: &[u8]) -> Option<&str> {
    let starts = bytes.windows(6).enumerate().filter(|(_, window)| {
        matches!(window, [a, b',', c, b',', d, b','] if [a, c, d].iter().all(|size| size.is_ascii_digit()))
    });
    starts.map(|(at, _)| at).find_map(|at| {
        let rest = bytes.get(at..)?;
        let digits = rest.get(6..)?.iter().take_while(|byte| matches!(byte, b'0' | b'1')).count();
        let ends = rest.get(6 + digits) == Some(&0);
        let begins = at == 0 || bytes.get(at - 1) == Some(&0);
        if digits < DIGITS_LEAST || !ends || !begins {
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
        let of = |text: &str| format!("code\0{text}\0more").into_bytes();
        assert_eq!(signature(&of(SIGNATURE)), Some(SIGNATURE));
        let decoy = format!("8,4,8,01\0 8,4,8,x\0{SIGNATURE}");
        assert_eq!(signature(&of(&decoy)), Some(SIGNATURE));
        for wrong in ["", "8,4,8,", "8,4,8,0000111", "8,4,a,0000111111010111001110101111000110"] {
            assert_eq!(signature(&of(wrong)), None, "{wrong}");
        }
        assert_eq!(signature(SIGNATURE.as_bytes()), None, "it does not end");
        assert_eq!(signature(&of(&format!("1{SIGNATURE}"))), None, "it does not begin");
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
    fn it_is_configured_as_the_server_was() {
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
        assert_eq!(configured(&arguments, Path::new("/tmp/x")), expected);
    }

    #[test]
    fn sources_of_another_version_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let error = sources("1.22.1", Some(directory.path())).unwrap_err();
        assert!(error.is::<UsageError>() && error.to_string().contains("has no sources"), "{error}");
        fs::create_dir_all(directory.path().join("src/core")).unwrap();
        fs::write(directory.path().join("src/core/nginx.h"), "#define NGINX_VERSION \"1.21.0\"\n").unwrap();
        let error = sources("1.22.1", Some(directory.path())).unwrap_err();
        assert!(error.to_string().contains("nginx 1.21.0, and 1.22.1 is installed"), "{error}");
        assert!(sources("1.21.0", Some(directory.path())).is_ok());
    }
}
