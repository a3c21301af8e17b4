//! Sets environment variables for the compiler with the facts that `brimful --version --verbose` prints: the commit,
//! the target and the compiler's version.
//!
//! The commit may be older than the checkout: cargo builds the program again only if a source has changed. The
//! environment variable `BRIMFUL_COMMIT` replaces it.

#![allow(clippy::disallowed_macros, reason = "a build script gives cargo its instructions on stdout")]

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The file into which git writes the commit when it makes an archive of the sources (see `.gitattributes`).
const ARCHIVED_COMMIT: &str = "commit.txt";

fn main() {
    println!("cargo::rerun-if-env-changed=BRIMFUL_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ARCHIVED_COMMIT}");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    for crate_dir in fs::read_dir("..").into_iter().flatten().flatten() {
        println!("cargo::rerun-if-changed=../{}/src", crate_dir.file_name().display());
    }
    println!("cargo::rustc-env=BRIMFUL_COMMIT={}", commit());
    println!("cargo::rustc-env=BRIMFUL_TARGET={}", env::var("TARGET").unwrap_or_default());
    let rustc = env::var("RUSTC").unwrap_or_default();
    println!("cargo::rustc-env=BRIMFUL_COMPILER={}", output(&rustc, &["--version"]).unwrap_or_default());
}

fn commit() -> String {
    let given = env::var("BRIMFUL_COMMIT").ok();
    given.or_else(archived_commit).or_else(checked_out_commit).unwrap_or_else(|| "unknown".to_owned())
}

fn archived_commit() -> Option<String> {
    let text = fs::read_to_string(Path::new(ARCHIVED_COMMIT)).ok()?;
    // In a checkout, the file contains only the placeholder (which begins with `$`) for the commit.
    (!text.starts_with('$')).then(|| text.chars().take(12).collect())
}

fn checked_out_commit() -> Option<String> {
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"])?;
    let changes = output("git", &["--no-optional-locks", "status", "--porcelain", "--untracked-files=no", "../.."])?;
    Some(if changes.is_empty() { commit } else { commit + " with changes" })
}

/// Returns the output of a command; `None` if it fails.
fn output(program: &str, args: &[&str]) -> Option<String> {
    let done = Command::new(program).args(args).output().ok().filter(|done| done.status.success())?;
    Some(String::from_utf8(done.stdout).ok()?.trim().to_owned())
}
