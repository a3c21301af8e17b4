//! Tests the manual in `docs/` and the book that is built from it: the table of contents, the links, the commands in
//! code blocks, and the numbers that the manual repeats from results of benchmarks.
//!
//! Other tests run the commands of single pages and compare their output: `examples`, `first_commands`, `other_tools`,
//! `papers` and `plan_docs`. Here, the command lines of all other pages are parsed, but not run.

use crate::program::{Running, brimful, lock_machine_shared};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The chapters that `scripts/book` generates.
const GENERATED: [&str; 2] = ["docs/flags.md", "docs/documents.md"];
/// Directories that contain no pages of the manual.
const SKIPPED: [&str; 5] = ["target", "node_modules", ".git", "dist", "__pycache__"];

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

#[test]
fn the_summary_lists_every_page_once() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut listed = BTreeSet::new();
    for link in links(&summary) {
        let page = normalized(&Path::new("docs").join(&link));
        assert!(listed.insert(page.clone()), "docs/SUMMARY.md lists {page} twice");
        let exists = root().join(&page).is_file();
        assert!(exists != GENERATED.contains(&page.as_str()), "docs/SUMMARY.md lists {page}");
    }
    for page in fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = format!("docs/{}", page.file_name().unwrap().to_str().unwrap());
        let is_page = name.ends_with(".md") && name != "docs/SUMMARY.md";
        assert!(!is_page || listed.contains(&name), "docs/SUMMARY.md does not list {name}");
    }
}

#[test]
fn all_links_resolve() {
    let mut anchors: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    let mut pages = Vec::new();
    collect(&root(), "md", &mut pages);
    assert!(pages.len() > 50, "{pages:#?}");
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let generated = GENERATED.iter().any(|name| target.ends_with(Path::new(name).file_name().unwrap()));
            assert!(target.exists() || generated, "{}: {link} does not exist", page.display());
            if !anchor.is_empty() {
                let target = fs::canonicalize(target).unwrap();
                let known = anchors.entry(target.clone()).or_insert_with(|| anchors_of(&target));
                assert!(known.contains(anchor), "{}: {link}: no such section: {known:?}", page.display());
            }
        }
    }
}

#[test]
fn the_book_is_built_with_all_flags_and_fields() {
    let out = tempfile::tempdir().unwrap();
    let _machine = lock_machine_shared();
    let mut build = Command::new("python3");
    build.arg(root().join("scripts/book")).args(["--brimful", env!("CARGO_BIN_EXE_brimful"), "--out"]);
    build.arg(out.path().join("book"));
    let done = Running::start(build).finish();
    if Command::new("mdbook").arg("--version").output().is_err() {
        assert!(done.exits(&[3]).stderr.contains("cargo install --locked mdbook"));
        return;
    }
    done.exits(&[0]);
    let read = |name: &str| fs::read_to_string(out.path().join("book").join(name)).unwrap();
    assert!(read("flag-survey.html").contains("--max-delay") && read("flag-plan-what-if.md").contains("### `--set"));
    assert!(read("document-record.html").contains("response_time_us"));
    assert!(read("llms.txt").contains("\n- [Make a load](load.md): `brimful load` makes one load"));
    let index = fs::read_dir(out.path().join("book")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(index.into_iter().any(|name| name.to_string_lossy().starts_with("searchindex")), "the book has no search");
}

#[test]
fn without_mdbook_the_command_that_installs_it_is_shown() {
    let bin = tempfile::tempdir().unwrap();
    let python = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    symlink(String::from_utf8(python.stdout).unwrap().trim(), bin.path().join("python3")).unwrap();
    let mut build = Command::new("python3");
    build.arg(root().join("scripts/book")).env("PATH", bin.path());
    assert!(Running::start(build).finish().exits(&[3]).stderr.contains("cargo install --locked mdbook"));
}

#[test]
fn the_commands_of_the_manual_have_valid_flags() {
    let mut checked = 0;
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        for command in commands_in_code(&fs::read_to_string(&path).unwrap()) {
            // `--help` makes the program check the words before it without running the command. Words after `--` are
            // another program's command.
            let at = command.iter().position(|word| word == "--").unwrap_or(command.len());
            let words: Vec<&str> = command[..at].iter().map(String::as_str).chain(["--help"]).collect();
            let _machine = lock_machine_shared();
            let done = Running::start(brimful(&words)).finish();
            assert!(done.code == 0, "{}: {command:?}: {}", path.display(), done.stderr);
            checked += 1;
        }
    }
    assert!(checked > 90, "{checked}");
    let rejects = |words: &[&str]| brimful(words).output().unwrap().status.code() == Some(2);
    assert!(rejects(&["load", "http://127.0.0.1/", "--rat", "3", "--help"]), "unknown flags are found");
    assert!(rejects(&["load", "http://127.0.0.1/", "--rate", "fast", "--help"]), "invalid values are found");
}

#[test]
fn the_figures_of_how_we_know_are_those_of_their_sources() {
    let page = fs::read_to_string(root().join("docs/how-we-know.md")).unwrap();
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| figure |"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() >= 30, "{rows:#?}");
    for row in rows {
        let [figure, value, command, source] = row[..] else { panic!("four cells: {row:?}") };
        let [link] = &links(source)[..] else { panic!("{figure}: no source") };
        let source = fs::read_to_string(root().join("docs").join(link)).unwrap();
        let known = numbers(&source);
        // The first cell of a row may contain values of other tools, in parentheses.
        let others =
            figure.rsplit_once('(').filter(|(_, others)| others.contains(": ")).map_or("", |(_, others)| others);
        for number in numbers(&format!("{value} {others}")) {
            assert!(known.contains(&number), "{figure}: {number} is not in {link}");
        }
        let command = command.trim_matches('`');
        match command.split_whitespace().collect::<Vec<_>>()[..] {
            ["make", target, ..] => assert!(makefile.contains(&format!("\n{target}: ")), "{command}"),
            ["cargo", "test", name] => {
                let mut sources = Vec::new();
                collect(&root().join("crates"), "rs", &mut sources);
                let is_test = |path: &PathBuf| fs::read_to_string(path).unwrap().contains(&format!("fn {name}()"));
                assert!(sources.iter().any(is_test), "{command}");
            }
            _ => panic!("unknown kind of command: {command}"),
        }
    }
}

#[test]
fn all_reasons_of_a_verdict_are_explained() {
    let page = fs::read_to_string(root().join("docs/why-a-verdict.md")).unwrap();
    let schema = fs::read_to_string(root().join("schema/common.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let codes = schema["$defs"]["ReasonCode"]["oneOf"].as_array().unwrap();
    assert!(codes.len() > 15, "{codes:#?}");
    for code in codes.iter().map(|code| code["const"].as_str().unwrap()) {
        assert!(page.contains(&format!("`{code}`")), "docs/why-a-verdict.md does not explain {code}");
    }
}

/// The targets of a page's links and pictures. Links in code and links to other sites are left out.
fn links(page: &str) -> Vec<String> {
    let mut in_code = false;
    let mut prose = String::new();
    for line in page.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if !in_code {
            prose += line;
            prose += " ";
        }
    }
    let targets = prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()));
    targets.filter(|target| !target.contains("://") && !target.contains(' ')).collect()
}

/// The anchors of a page's titles. Sites that host the repository and mdBook generate the same ones.
fn anchors_of(page: &Path) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut in_code = false;
    for line in fs::read_to_string(page).unwrap().lines() {
        in_code ^= line.trim_start().starts_with("```");
        if let Some(title) = line.strip_prefix('#').filter(|_| !in_code) {
            let title = title.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
            anchors.insert(kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect());
        }
    }
    anchors
}

/// The command lines of `brimful` in a page's code blocks, as words without `brimful`. Words after a pipe or the like,
/// and commands that other tests check, are left out.
fn commands_in_code(page: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        // `first_commands` already compares a block with an error word for word.
        let shows_errors = block.contains("[exit code 2]");
        for line in block.replace("\\\n", " ").lines() {
            let Some(line) = line.trim().trim_start_matches("$ ").strip_prefix("brimful ") else { continue };
            let is_command = !line.starts_with("fleet") && !line.contains('◀');
            if is_command && !shows_errors {
                commands.push(words_until_shell(line));
            }
        }
    }
    commands
}

/// Splits a command line into words, and removes quotation marks. Ends at an operator of the shell or a comment.
fn words_until_shell(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for letter in line.chars().chain([' ']) {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, ' ') if ["|", "&&", "||", "&", ">", "#", "→"].contains(&word.as_str()) => break,
            (None, ' ') => words.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The numbers in a text, such as `5.1`, `1,089` or `5.3e-12`.
fn numbers(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || ".,-".contains(letter);
    let words = text.split(|letter| !is_part(letter)).map(|word| word.trim_matches(|end| ".,-".contains(end)));
    words.filter(|word| word.starts_with(|first: char| first.is_ascii_digit())).map(str::to_owned).collect()
}

fn normalized(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.to_str().unwrap().split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Adds all files with this extension in a directory and its subdirectories.
fn collect(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name();
        if entry.file_type().unwrap().is_dir() {
            if !SKIPPED.iter().any(|skipped| name == *skipped) {
                collect(&path, extension, found);
            }
        } else if path.extension().is_some_and(|other| other == extension) {
            found.push(path);
        }
    }
}
