//! Tests that the terminal sessions in `examples/*/README.md`, and the files that they write, match the output of the
//! program.
//!
//! In a `console` block, the command after `$ ` is run in a copy of the example's directory, and must print exactly the
//! lines below it. With `BRIMFUL_BLESS=1`, the sessions and files are rewritten.
//!
//! The commands of `README.md`, `docs/first-answer.md` and `docs/tutorial.md` measure, so their numbers always differ.
//! They are run in order, and must print lines that begin like those on the page. Surveys are only started; the lines
//! on the page are compared with an example survey. A comparison of two servers is run with a shorter duration.

use crate::documents;
use crate::program::{Running, lock_machine_exclusively, lock_machine_shared, wait_until};
use brimful_report::load::Detail;
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Relative tolerance of numbers in files. Their last digits differ between mathematical libraries.
const TOLERANCE: f64 = 1e-6;

#[test]
fn the_commands_of_readme_and_tutorial_work() {
    let _machine = lock_machine_exclusively();
    let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    for page in ["README.md", "docs/first-answer.md", "docs/tutorial.md"] {
        let dir = tempfile::tempdir().unwrap();
        symlink(root.join("examples"), dir.path().join("examples")).unwrap();
        let mut servers = Vec::new();
        for (command, shown) in commands(&fs::read_to_string(root.join(page)).unwrap()) {
            // Use an address that no other process uses: the port on the page may be in use on 127.0.0.1.
            let here = own_address();
            // Leave out the choice of CPUs: the host may have only one.
            let run = command.replace("127.0.0.1", &here.to_string()).replace(" --cpus 0", "").replace(" --cpus 1", "");
            let run = run.replace("make ", &format!("make --dry-run --directory {} ", root.display()));
            if let Some(server) = run.strip_suffix('&') {
                let child = shell(&format!("exec {server}"), dir.path()).stdout(Stdio::null()).spawn().unwrap();
                servers.push(Server(child));
                wait_until(|| TcpStream::connect((here, port(server))).is_ok());
                continue;
            }
            let what = format!("{page}: {run}");
            if command.starts_with("brimful survey") {
                begins(&run, dir.path());
                // The objective of the example survey differs from that on the page.
                assert_has_lines(&shown.replace("p99 < 2ms", "p99 < 150ms"), &an_example(), &what);
                continue;
            }
            let short = run.replace("--until 5%", "--rate 50 --slice 100ms --duration 5s");
            let done = shell(&short, dir.path()).output().unwrap();
            // On a busy host, the load generator may be late (4), and an objective may be missed (1).
            let codes: &[i32] = match command.split(' ').nth(1) {
                Some("load") if command.contains("--slo") => &[0, 1, 4],
                Some("load" | "ab") => &[0, 4],
                _ => &[0],
            };
            assert!(codes.contains(&done.status.code().unwrap()), "{what}: {done:?}");
            assert_has_lines(&shown, &String::from_utf8(done.stdout).unwrap(), &what);
        }
    }
}

/// The port in a command line that starts a server.
fn port(command: &str) -> u16 {
    let (_, rest) = command.split_once("--listen ").unwrap();
    let (_, port) = rest.split(' ').next().unwrap().rsplit_once(':').unwrap();
    port.parse().unwrap()
}

/// Asserts that a survey with this command line starts. A whole survey would take minutes, and its results depend on
/// the machine.
fn begins(command: &str, dir: &Path) {
    let mut survey = Running::start(shell(&format!("exec {command}"), dir));
    survey.stderr_line("a short load to try");
    survey.ctrl_c();
    survey.finish();
}

/// The text report of an example survey.
fn an_example() -> String {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/example.survey.json");
    brimful_report::survey::text(&documents::survey(&fs::read_to_string(document).unwrap()), Detail::Main)
}

#[test]
fn readme_is_one_screen() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    assert!(readme.lines().count() <= 60, "{} lines", readme.lines().count());
    let widest = readme.lines().max_by_key(|line| line.chars().count()).unwrap();
    assert!(widest.chars().count() <= 120, "{widest}");
}

/// The commands in `console` blocks, each with the expected lines below it.
pub fn commands(page: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut in_session = false;
    for line in page.lines() {
        match line.strip_prefix("$ ").filter(|_| in_session) {
            Some(command) => found.push((command.to_owned(), String::new())),
            None if line.starts_with("```") => in_session = line == "```console",
            None if in_session => found.last_mut().expect("a command precedes the output").1 += &format!("{line}\n"),
            None => (),
        }
    }
    assert!(!found.is_empty(), "no session: {page}");
    found
}

/// Asserts that the printed lines begin with the same names as the lines on the page, in the same order. A name ends
/// before two spaces; the `*` that marks disturbed levels is not a part of it. Sentences are ignored.
pub fn assert_has_lines(shown: &str, printed: &str, what: &str) {
    let names = |text: &str| -> Vec<String> {
        let named = text.lines().filter_map(|line| line.split_once("  "));
        let names = named.map(|(name, _)| name.trim_end_matches(" *").to_owned());
        names.filter(|name| !name.is_empty()).collect()
    };
    let printed_names = names(printed);
    let mut rest = printed_names.iter();
    for name in names(shown) {
        assert!(rest.any(|other| *other == name), "{what}: no line `{name}` where it is shown:\n{printed}");
    }
}

/// An address in 127.0.0.0/8 that no other process uses: it is derived from the process ID.
fn own_address() -> Ipv4Addr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 64 + high % 64, middle, low.max(1))
}

/// A program in the background. Dropping this value kills it.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_sessions_of_examples_match_the_program() {
    let _machine = lock_machine_shared();
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

/// Runs the commands in the terminal sessions of a text. Returns the text with the actual output of each command.
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

/// A shell command. The name `brimful` in it is the program under test.
pub fn shell(command: &str, dir: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_brimful"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(dir);
    shell.env("PATH", path).env("COLUMNS", "100").env("NO_COLOR", "1").stdin(Stdio::null());
    shell
}

/// The output of a shell command, followed by its exit code unless that is 0.
fn output(command: &str, dir: &Path) -> String {
    let done = shell(&format!("{{ {command}\n}} 2>&1"), dir).output().unwrap();
    let mut shown = String::from_utf8(done.stdout).unwrap();
    if let Some(code @ 1..) = done.status.code() {
        shown += &format!("[exit code {code}]\n");
    }
    shown
}

/// Asserts that two files are equal. CSV files may differ in numbers by the tolerance.
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
