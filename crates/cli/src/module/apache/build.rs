//! Compiles Apache's module with the headers that apxs, Apache's tool for building modules, reports. The module magic
//! number (ap_mmn.h) determines which servers load the module.

use super::MODULE;
use crate::module::command::{BUILD_TIMEOUT, QUERY_TIMEOUT, find_in_path, run};
use crate::module::sources::ScratchDirectory;
use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};

const PACKAGE: &str = "run: apt-get install apache2-dev (elsewhere the package is httpd-devel)";

/// Compiles the module in a scratch directory, for a server with this module magic number.
///
/// # Errors
/// Returns an error if apxs, a compiler or headers are missing, or the headers belong to another server.
pub fn build(magic: &str, version: &str, scratch: &ScratchDirectory) -> anyhow::Result<PathBuf> {
    let apxs = find_in_path(&["apxs2", "apxs"]).with_context(|| format!("no apxs is installed here: {PACKAGE}"))?;
    let headers = query(&apxs, "INCLUDEDIR")?;
    check_headers(Path::new(&headers), magic, version)?;
    // The variable `CC` may contain flags after the compiler's name, as in `gcc -m64`.
    let compiler = query(&apxs, "CC")?;
    let mut words = compiler.split_whitespace();
    let name = words.next().unwrap_or("cc");
    let compiler = find_in_path(&[name, "cc", "gcc", "clang"])
        .with_context(|| format!("no C compiler ({name}) is installed here; run: apt-get install gcc libc6-dev"))?;
    let flags = query(&apxs, "EXTRA_CPPFLAGS")?;
    let mut arguments: Vec<String> = words.chain(flags.split_whitespace()).map(str::to_owned).collect();
    arguments.extend(
        ["-shared", "-fPIC", "-std=gnu11", "-O2", "-o", MODULE, "mod_brimful.c", "-lpthread"].map(str::to_owned),
    );
    for directory in [headers, query(&apxs, "APR_INCLUDEDIR")?, query(&apxs, "APU_INCLUDEDIR")?] {
        arguments.extend(["-isystem".to_owned(), directory]);
    }
    let directory = scratch.join("apache");
    let ran = run(&compiler, &arguments, Some(&directory), BUILD_TIMEOUT)?;
    anyhow::ensure!(
        ran.succeeded,
        "the module cannot be compiled: {}; if a header is missing, {PACKAGE}",
        ran.error_text()
    );
    Ok(directory.join(MODULE))
}

/// The value of a variable that apxs reports.
fn query(apxs: &Path, variable: &str) -> anyhow::Result<String> {
    let ran = run(apxs, &["-q", variable], None, QUERY_TIMEOUT)?;
    anyhow::ensure!(ran.succeeded, "{} does not report {variable}: {}; {PACKAGE}", apxs.display(), ran.error_text());
    Ok(ran.stdout.trim().to_owned())
}

/// Checks that the server loads modules that were compiled with these headers.
fn check_headers(directory: &Path, magic: &str, version: &str) -> anyhow::Result<()> {
    let header = directory.join("ap_mmn.h");
    let name = header.display();
    let text = fs::read_to_string(&header).with_context(|| format!("cannot read {name}: {PACKAGE}"))?;
    let found = major_magic_in(&text).unwrap_or("unknown");
    let wanted = major(magic);
    anyhow::ensure!(
        found == wanted,
        "{name} has module magic number {found}, the server {wanted}, so the server would not load the module; install the \
         headers of {version}"
    );
    Ok(())
}

/// The major part of a magic number: `20120211` in `20120211:142`.
fn major(magic: &str) -> &str {
    magic.split(':').next().unwrap_or(magic)
}

/// The number in `#define MODULE_MAGIC_NUMBER_MAJOR 20120211`.
fn major_magic_in(header: &str) -> Option<&str> {
    header.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("#define MODULE_MAGIC_NUMBER_MAJOR")?;
        rest.starts_with(char::is_whitespace).then(|| rest.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_another_apache_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("ap_mmn.h"), "#define MODULE_MAGIC_NUMBER_MAJOR 20120211\n").unwrap();
        assert!(check_headers(directory.path(), "20120211:142", "Apache/2.4.66").is_ok());
        let error = check_headers(directory.path(), "20150222:1", "Apache/2.5.0").unwrap_err().to_string();
        assert!(error.contains("20120211, the server 20150222") && error.ends_with("Apache/2.5.0"), "{error}");
    }

    #[test]
    fn magic_numbers_are_read() {
        let header = "#ifndef X\n#define MODULE_MAGIC_COOKIE 0x1\n#define MODULE_MAGIC_NUMBER_MAJOR 20120211\n#endif\n\
                      #define MODULE_MAGIC_NUMBER_MAJOR_OTHER 2\n";
        assert_eq!(major_magic_in(header), Some("20120211"));
        assert_eq!(major_magic_in(""), None);
        assert_eq!(major("20120211:142"), "20120211");
    }
}
