//! The sessions in `examples/*/README.md`, and the files that they write, are what the program does today.
//!
//! In a block of `console`, what follows `$ ` is run in a copy of the example's directory, and what stands below is all that
//! it prints. With `BRIMFUL_BLESS=1` sessions and files are written anew.

use crate::program::share_machine;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Of numbers in files: the last digits differ between mathematical libraries.
const TOLERANCE: f64 = 1e-6;

#[test]
fn the_sessions_are_what_the_program_does() {
    let _machine = share_machine();
    let examples = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"));
    let has_session =
        |path: &&PathBuf| fs::read_to_string(path.join("README.md")).is_ok_and(|text| text.contains("```console"));
    let examples: Vec<&PathBuf> = examples.iter().filter(has_session).collect();
    assert!(!examples.is_empty());
    let blessing = std::env::var_os("BRIMFUL_BLESS").is_some();
    for example in examples {
        let copy = tempfile::tempdir().unwrap();
        for path in entries(example) {
            fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
        let written = fs::read_to_string(example.join("README.md")).unwrap();
        let played = play(&written, copy.path());
        for path in entries(copy.path()) {
            let committed = example.join(path.file_name().unwrap());
            if blessing && path.file_name().unwrap() != "README.md" {
                fs::copy(&path, &committed).unwrap();
            }
            let now = fs::read_to_string(&path).unwrap();
            same_numbers(&now, &fs::read_to_string(&committed).unwrap_or_default(), &committed);
        }
        if blessing {
            fs::write(example.join("README.md"), &played).unwrap();
        } else {
            assert_eq!(played, written, "read the new session, then run the tests once with BRIMFUL_BLESS=1");
        }
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The text with what each command of its sessions prints today.
fn play(text: &str, dir: &Path) -> String {
    let (mut played, mut in_session, mut commands) = (String::new(), false, 0);
    for line in text.lines() {
        let command = line.strip_prefix("$ ").filter(|_| in_session);
        let fence = line.starts_with("```");
        if fence || !in_session || command.is_some() {
            played += line;
            played += "\n";
        }
        if let Some(command) = command {
            played += &output(command, dir);
            commands += 1;
        }
        if fence {
            in_session = line == "```console";
        }
    }
    assert!(commands > 0, "no session: {text}");
    played
}

/// What a shell shows of a command, and how it ends if that is not 0.
fn output(command: &str, dir: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_brimful"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{{ {command}\n}} 2>&1")]).current_dir(dir);
    shell.env("PATH", path).env("COLUMNS", "100").env("NO_COLOR", "1").stdin(Stdio::null());
    let done = shell.output().unwrap();
    let mut shown = String::from_utf8(done.stdout).unwrap();
    if let Some(code @ 1..) = done.status.code() {
        shown += &format!("[exit code {code}]\n");
    }
    shown
}

/// Fails unless two files of comma-separated values say the same, but for rounding; or are equal.
fn same_numbers(now: &str, committed: &str, path: &Path) {
    let hint = "run the tests once with BRIMFUL_BLESS=1, and look at what changed";
    assert_eq!(now.lines().count(), committed.lines().count(), "{}: {hint}", path.display());
    for (now, committed) in now.lines().zip(committed.lines()) {
        let (fields, expected): (Vec<&str>, Vec<&str>) = (now.split(',').collect(), committed.split(',').collect());
        let close = |(a, b): (&&str, &&str)| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => (a - b).abs() <= TOLERANCE * b.abs(),
            _ => a == b,
        };
        let agree = fields.len() == expected.len() && fields.iter().zip(&expected).all(close);
        assert!(agree, "{}: `{now}` instead of `{committed}`: {hint}", path.display());
    }
}
