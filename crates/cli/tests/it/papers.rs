//! Tests that `docs/papers.md` is true: every command that begins with `brimful` runs, and every test, benchmark and
//! make target in the other rows exists. The tests themselves are run by `make test`; benchmarks need an idle machine.

use crate::program::{Running, brimful, lock_machine_shared, run};
use brimful_testkit::{Nginx, NginxOptions, words};
use std::fs;
use std::path::{Path, PathBuf};

/// Accepted exit codes of the commands: success (0), a feature that this host lacks (3), or a load generator that was
/// late (4).
const RAN: [i32; 3] = [0, 3, 4];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commands of all tables: the code in the last cell of each row.
fn commands() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/papers.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| item |"));
    rows.map(|row| {
        let cell = row.trim_end_matches('|').trim_end().rsplit(" | ").next().unwrap();
        let code = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
        code.unwrap_or_else(|| panic!("no command in: {row}")).to_owned()
    })
    .collect()
}

/// Copies a directory with all its files and subdirectories.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn every_command_of_brimful_in_the_tables_runs() {
    let nginx = Nginx::start(NginxOptions::default());
    let directory = tempfile::tempdir().unwrap();
    copy(&root().join("examples"), directory.path());
    for workload in ["webstone-a.toml", "webstone-b.toml"] {
        let workload = directory.path().join(workload);
        let pages = nginx.directory().join("www");
        run(&["fileset", workload.to_str().unwrap(), pages.to_str().unwrap()]).exits(&[0]);
    }
    let port = nginx.addr().port();
    let commands: Vec<String> = commands().into_iter().filter(|command| command.starts_with("brimful ")).collect();
    assert!(commands.len() >= 15, "{commands:#?}");
    for command in commands {
        let _machine = lock_machine_shared();
        let here = command
            .replace("127.0.0.1:8080", &nginx.addr().to_string())
            .replace("--port 8080", &format!("--port {port}"));
        let mut program = brimful(&words(&here)[1..]);
        program.current_dir(directory.path());
        let done = Running::start(program).finish();
        assert!(!done.stdout.is_empty(), "{command}: {done:#?}");
        done.exits(&RAN);
    }
}

#[test]
fn every_test_and_benchmark_in_the_tables_exists() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let figures = fs::read_to_string(root().join("bench/figures/__main__.py")).unwrap();
    for command in commands() {
        let words: Vec<&str> = command.split_ascii_whitespace().collect();
        match words[..] {
            ["brimful", ..] => {}
            ["make", target] => assert!(makefile.contains(&format!("\n{target}: ")), "{command}"),
            ["python3", "-m", "bench.figures", ref names @ ..] => {
                assert!(names.iter().all(|name| figures.contains(&format!("\"{name}\":"))), "{command}");
            }
            ["cargo", "run", "-p", krate, "--example", name] => {
                let directory = krate.trim_start_matches("brimful-");
                assert!(root().join(format!("crates/{directory}/examples/{name}.rs")).is_file(), "{command}");
            }
            ["cargo", "test", filter] => assert!(has_test(filter), "{command}: no such test"),
            _ => panic!("unknown kind of command: {command}"),
        }
    }
}

/// Whether some crate has the module of this test filter and, if the filter names a test, this test.
fn has_test(filter: &str) -> bool {
    let (modules, test) = filter.rsplit_once("::").unwrap();
    let modules = modules.trim_end_matches("::tests").trim_end_matches("tests");
    let path = modules.replace("::", "/");
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    crates.into_iter().flat_map(|krate| ["src", "tests/it"].map(|room| krate.join(room))).any(|room| {
        let text = fs::read_to_string(room.join(format!("{path}.rs"))).unwrap_or_default();
        let named = if test.is_empty() { "#[test]".to_owned() } else { format!("fn {test}()") };
        text.contains(&named)
    })
}
