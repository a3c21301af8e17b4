//! Apache's module, compiled with the headers that apxs names. Which servers load it, the module magic number says
//! (ap_mmn.h).

use super::MODULE;
use crate::module::command::{BUILD, QUESTION, find, run};
use crate::module::sources::Scratch;
use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};

const PACKAGE: &str = "run: apt-get install apache2-dev (elsewhere the package is httpd-devel)";

/// Compiles it in a scratch directory, for the server with this module magic number.
///
/// # Errors
/// When apxs, a compiler or headers are missing, or the headers are of another server.
pub fn build(magic: &str, version: &str, scratch: &Scratch) -> anyhow::Result<PathBuf> {
    let apxs = find(&["apxs2", "apxs"]).with_context(|| format!("no apxs is installed here: {PACKAGE}"))?;
    let headers = told(&apxs, "INCLUDEDIR")?;
    check_headers(Path::new(&headers), magic, version)?;
    // A compiler may be told with flags of its own, like `gcc -m64`.
    let compiler = told(&apxs, "CC")?;
    let mut words = compiler.split_whitespace();
    let name = words.next().unwrap_or("cc");
    let compiler = find(&[name, "cc", "gcc", "clang"])
        .with_context(|| format!("no C compiler ({name}) is installed here; run: apt-get install gcc libc6-dev"))?;
    let flags = told(&apxs, "EXTRA_CPPFLAGS")?;
    let mut arguments: Vec<String> = words.chain(flags.split_whitespace()).map(str::to_owned).collect();
    arguments.extend(
        ["-shared", "-fPIC", "-std=gnu11", "-O2", "-o", MODULE, "mod_brimful.c", "-lpthread"].map(str::to_owned),
    );
    for directory in [headers, told(&apxs, "APR_INCLUDEDIR")?, told(&apxs, "APU_INCLUDEDIR")?] {
        arguments.extend(["-isystem".to_owned(), directory]);
    }
    let directory = scratch.join("apache");
    let ran = run(&compiler, &arguments, Some(&directory), BUILD)?;
    anyhow::ensure!(ran.ok, "the module cannot be compiled: {}; if a header is missing, {PACKAGE}", ran.complaint());
    Ok(directory.join(MODULE))
}

/// What apxs says of the server it belongs to.
fn told(apxs: &Path, what: &str) -> anyhow::Result<String> {
    let ran = run(apxs, &["-q", what], None, QUESTION)?;
    anyhow::ensure!(ran.ok, "{} does not say what {what} is: {}; {PACKAGE}", apxs.display(), ran.complaint());
    Ok(ran.stdout.trim().to_owned())
}

/// Whether modules compiled with these headers are such as the server loads.
fn check_headers(directory: &Path, magic: &str, version: &str) -> anyhow::Result<()> {
    let header = directory.join("ap_mmn.h");
    let name = header.display();
    let text = fs::read_to_string(&header).with_context(|| format!("cannot read {name}: {PACKAGE}"))?;
    let (found, wanted) = (magic_in(&text).unwrap_or("unknown"), first(magic));
    let why = "and modules of other numbers are not loaded; install the headers of";
    anyhow::ensure!(found == wanted, "{name} has module magic number {found}, the server {wanted}, {why} {version}");
    Ok(())
}

/// The first of the two numbers of `20120211:142`.
fn first(magic: &str) -> &str {
    magic.split(':').next().unwrap_or(magic)
}

/// The number of `#define MODULE_MAGIC_NUMBER_MAJOR 20120211`.
fn magic_in(header: &str) -> Option<&str> {
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
        assert_eq!(magic_in(header), Some("20120211"));
        assert_eq!(magic_in(""), None);
        assert_eq!(first("20120211:142"), "20120211");
    }
}
