//! Tests that the help texts match their golden files.

use crate::program::{Running, brimful, lock_machine_shared, run};
use std::fs;
use std::path::Path;

/// Maximum number of lines of the short help, so that it fits on one screen.
const SCREEN: usize = 50;

#[test]
fn help_matches_its_golden_file() {
    for (name, args) in [
        ("help-brimful.txt", &["--help"][..]),
        ("help-survey.txt", &["survey", "--help"]),
        ("help-load.txt", &["load", "--help"]),
        ("help-load-usual.txt", &["load", "-h"]),
        ("help-load-long.txt", &["help", "load"]),
        ("help-ab.txt", &["ab", "--help"]),
        ("help-compare.txt", &["compare", "--help"]),
        ("help-history.txt", &["history", "--help"]),
        ("help-merge.txt", &["merge", "--help"]),
        ("help-watch.txt", &["watch", "--help"]),
        ("help-characterize.txt", &["characterize", "--help"]),
        ("help-fileset.txt", &["fileset", "--help"]),
        ("help-replay.txt", &["replay", "--help"]),
        ("help-module.txt", &["module", "--help"]),
        ("help-module-install.txt", &["module", "install", "--help"]),
        ("help-plan.txt", &["plan", "--help"]),
        ("help-plan-calibrate.txt", &["plan", "calibrate", "--help"]),
        ("help-plan-forecast.txt", &["plan", "forecast", "--help"]),
        ("help-plan-what-if.txt", &["plan", "what-if", "--help"]),
        ("help-plan-solve.txt", &["plan", "solve", "--help"]),
        ("help-target.txt", &["target", "--help"]),
        ("help-testbed.txt", &["testbed", "--help"]),
        ("help-doctor.txt", &["doctor", "--help"]),
        ("help-schema.txt", &["schema", "--help"]),
        ("help-completions.txt", &["completions", "--help"]),
        ("help-man.txt", &["man", "--help"]),
    ] {
        let help = help(args);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
        if std::env::var_os("BRIMFUL_BLESS").is_some() {
            fs::write(&path, &help).unwrap();
        }
        let reviewed = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(help, reviewed, "{name}: read the new text, then run the tests once with BRIMFUL_BLESS=1");
        check_readable(&help);
    }
}

#[test]
fn the_usual_flags_fit_one_screen_and_all_flags_two_and_a_half() {
    for command in ["load", "survey", "replay", "watch", "characterize", "target", "testbed"] {
        let [usual, all] = ["-h", "--help"].map(|flag| help(&[command, flag]).lines().count());
        assert!(usual <= SCREEN && 2 * all <= 5 * SCREEN, "{command}: {usual} and {all} lines");
    }
    // Flags that `-h` leaves out must be in `--help` and in `help load`.
    let [usual, all, long] = [&["load", "-h"][..], &["load", "--help"], &["help", "load"]].map(help);
    assert!(!usual.contains("--clock-ahead") && all.contains("--clock-ahead") && long.contains("-15us/300us"));
}

/// The help text of a command, formatted for a terminal with 120 columns.
fn help(args: &[&str]) -> String {
    let _machine = lock_machine_shared();
    let mut command = brimful(args);
    command.env("COLUMNS", "120");
    Running::start(command).finish().exits(&[0]).stdout
}

/// Asserts that lines have at most 120 columns, that every flag has a description, and that hidden flags and commands
/// are not shown.
fn check_readable(help: &str) {
    let lines: Vec<&str> = help.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        assert!(line.chars().count() <= 120, "the line is too long: {line}");
        let is_flag = line.trim_start().starts_with('-') && !line.trim_start().starts_with("- ");
        if is_flag {
            // The description of a flag is on the same line, after two spaces, or begins on the next line.
            let beside = line.trim_start().contains("  ");
            let below = lines.get(i + 1).is_some_and(|next| {
                let next = next.trim_start();
                next.starts_with(char::is_uppercase) && !next.starts_with("[default")
            });
            assert!(beside || below, "not documented: {line}");
        }
    }
    assert!(!help.contains("with-parent") && !help.contains("testbed-inside"), "hidden flags and commands stay hidden");
}

#[test]
fn the_version_is_that_of_the_package() {
    let version = format!("brimful {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["--version", "-V"] {
        assert_eq!(run(&[flag]).exits(&[0]).stdout, version);
    }
    let verbose = run(&["--version", "--verbose"]).exits(&[0]).stdout;
    assert!(verbose.starts_with(&version), "{verbose}");
    // Skip lines that begin with a space: they continue the previous fact.
    let facts = verbose.lines().skip(1).filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = facts.map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["commit", "target", "compiler", "kernel", "io_uring", "ebpf"], "{verbose}");
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    assert!(verbose.contains(&target) && verbose.contains("rustc 1."), "{verbose}");
}

#[test]
fn without_a_command_the_commands_are_shown() {
    run::<&str>(&[]).fails(2, "survey");
    run(&["lode"]).fails(2, "load");
}
