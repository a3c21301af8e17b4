//! Tests `brimful history` on Records with known metrics, and `--record-to` with real loads.

use crate::compare::record;
use crate::documents;
use crate::examples::shell;
use crate::plan::{Files, check_golden, check_golden_file};
use crate::program::{Done, Running, brimful, lock_machine_shared, run, start_target, words};
use brimful_core::history::{Direction, History, MetricChange, MetricHistory};
use brimful_core::record::Record;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

/// Start of the first run, in seconds since 1970: 2026-08-21.
const FIRST_START_S: u64 = 1_787_274_000;
const DAY_S: u64 = 86_400;

/// A number between −0.5 and 0.5 that depends on the seed in a random-looking way (SplitMix64).
fn scatter(seed: u64) -> f64 {
    let mut bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9_u64), (27, 0x94d0_49bb_1331_11eb)] {
        bits = (bits ^ (bits >> shift)).wrapping_mul(factor);
    }
    (bits ^ (bits >> 31)) as f64 / u64::MAX as f64 - 0.5
}

/// The Record of a nightly run. Its response times are the usual ones times `time`, with random differences of ±1 %.
fn nightly(number: u64, time: f64) -> Value {
    let throughput = 200.0 * (1.0 + 0.01 * scatter(number));
    let mut record = record(0, throughput, time * (1.0 + 0.02 * scatter(1_000 + number)));
    let started = UNIX_EPOCH + Duration::from_secs(FIRST_START_S + DAY_S * number);
    record["started_at"] = json!(humantime::format_rfc3339_seconds(started).to_string());
    record["started_monotonic_ns"] = json!(number);
    record["labels"] = json!({"commit": format!("{:07x}", 0x00ab_c000 + number), "branch": "main"});
    record
}

/// Records of forty nights. In the last ten, response times are the usual ones times `time`.
fn forty_nights(time: f64) -> Vec<Value> {
    (0..40).map(|number| nightly(number, if number < 30 { 1.0 } else { time })).collect()
}

/// The content of a file of JSON lines with these Records.
fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// Runs `history` in the directory of these files. Lines have 80 columns.
fn history_in(files: &Files, args: &[&str]) -> Done {
    let mut command = brimful(&[&["history"], args].concat());
    command.current_dir(files.path("")).env("COLUMNS", "80").env("NO_COLOR", "1");
    only_own_repository(&mut command, files);
    Running::start(command).finish()
}

/// Lets git find only a repository in the directory of these files, not one around it, or one that a git hook has set.
fn only_own_repository(command: &mut Command, files: &Files) {
    command.env("GIT_CEILING_DIRECTORIES", files.path("").parent().unwrap());
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
}

fn document_in(files: &Files, args: &[&str]) -> History {
    documents::document(&history_in(files, &[args, &["--json"]].concat()).exits(&[0, 1]).stdout)
}

/// The history of these Records.
fn history_of(records: &[Value]) -> History {
    let files = Files::new();
    files.write("history.jsonl", lines(records));
    document_in(&files, &["history.jsonl"])
}

fn changes<'a>(history: &'a History, figure: &str) -> Vec<&'a MetricChange> {
    history.changes.iter().filter(|change| change.figure == figure).collect()
}

fn figure<'a>(history: &'a History, name: &str) -> &'a MetricHistory {
    history.figures.iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("{name}: {history:#?}"))
}

#[test]
fn a_change_for_the_worse_is_found_with_its_run_its_size_and_its_interval() {
    let files = Files::new();
    files.write("history.jsonl", lines(&forty_nights(1.1)));
    let text = history_in(&files, &["history.jsonl"]).exits(&[1]).stdout;
    check_golden("history.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 80) && !text.contains('\x1b'), "{text}");
    check_golden_file("history.md", &history_in(&files, &["history.jsonl", "--markdown"]).exits(&[1]).stdout);
    let history = document_in(&files, &["history.jsonl"]);
    let [p99] = changes(&history, "p99")[..] else { panic!("{:#?}", history.changes) };
    let [low, high] = p99.interval95.unwrap();
    assert!(low < 0.1 && 0.1 < high && high - low < 0.02, "{p99:?}");
    assert_eq!((p99.index, p99.direction, p99.is_new), (30, Direction::Worse, true));
    assert_eq!((&*p99.before.labels["commit"], &*p99.after.labels["commit"]), ("0abc01d", "0abc01e"));
    assert!(p99.after.started_at.starts_with("2026-09-20") && p99.before.file == "history.jsonl:30", "{p99:?}");
    let noise = figure(&history, "p99").noise.unwrap();
    assert!(noise > 0.003 && noise < 0.009, "{noise}");
    assert!(changes(&history, "throughput").is_empty() && changes(&history, "errors").is_empty());
}

#[test]
fn the_records_in_git_notes_are_a_history_with_the_commits_as_labels() {
    let files = Files::new();
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
        only_own_repository(&mut command, &files);
        let output = command.args(identity).args(args).current_dir(files.path("")).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let outside = history_in(&files, &["--git-notes", "brimful"]).exits(&[2]).stderr;
    assert!(
        outside.contains("`git notes` failed in the current directory: ") && outside.contains("not a git"),
        "{outside}"
    );
    git(&["init", "--quiet", "."]);
    git(&["commit", "--quiet", "--allow-empty", "--message", "first"]);
    let none = history_in(&files, &["--git-notes", "brimful"]).exits(&[2]).stderr;
    assert!(none.contains("no Record or survey in the git notes of `brimful`"), "{none}");
    let mut commits = Vec::new();
    for (night, mut record) in forty_nights(1.1).into_iter().enumerate() {
        git(&["commit", "--quiet", "--allow-empty", "--message", &format!("night {night}")]);
        record["labels"] = if night == 30 { json!({}) } else { json!({"commit": format!("night-{night}")}) };
        files.write("record.json", serde_json::to_string_pretty(&record).unwrap());
        git(&["notes", "--ref=brimful", "add", "--file=record.json"]);
        commits.push(git(&["rev-parse", "HEAD"]));
    }
    let history = document_in(&files, &["--git-notes", "brimful"]);
    let [p99] = changes(&history, "p99")[..] else { panic!("{:#?}", history.changes) };
    assert_eq!((p99.index, p99.direction, p99.is_new), (30, Direction::Worse, true));
    assert_eq!((&*p99.before.labels["commit"], &*p99.after.labels["commit"]), ("night-29", &commits[30][..10]));
    assert_eq!(p99.after.file, format!("note of {}", &commits[30][..10]));
}

#[test]
fn without_git_notes_cannot_be_read_and_the_error_says_so() {
    let files = Files::new();
    let mut command = brimful(&["history", "--git-notes", "brimful"]);
    command.current_dir(files.path("")).env("PATH", files.path(""));
    let error = Running::start(command).finish().exits(&[2]).stderr;
    assert!(error.contains("cannot run git") && error.contains("install git"), "{error}");
}

#[test]
fn only_a_new_change_for_the_worse_has_exit_code_1() {
    let files = Files::new();
    files.write("worse.jsonl", lines(&forty_nights(1.1)));
    files.write("better.jsonl", lines(&forty_nights(0.9)));
    files.write("same.jsonl", lines(&forty_nights(1.0)));
    history_in(&files, &["worse.jsonl", "--new", "10"]).exits(&[1]);
    let old = history_in(&files, &["worse.jsonl", "--new", "9"]).exits(&[0]).stdout;
    assert!(words(&old).starts_with("No change was found in the newest 9 of 40 runs; the last change was"), "{old}");
    let better = history_in(&files, &["better.jsonl"]).exits(&[0]).stdout;
    assert!(
        words(&better).starts_with("Nothing became worse in the newest 10 of 40 runs. Since 2026-09-20"),
        "{better}"
    );
    let same = history_in(&files, &["same.jsonl"]).exits(&[0]).stdout;
    assert!(same.starts_with("No change was found in the newest 10 of 40 runs.\n"), "{same}");
}

#[test]
fn a_log_of_a_watch_in_the_directory_of_a_history_is_left_out() {
    let files = Files::new();
    fs::create_dir(files.path("nights")).unwrap();
    files.write("nights/history.jsonl", lines(&forty_nights(1.1)));
    files.write(
        "nights/kernel.jsonl",
        r#"{"at":"2026-11-28T13:20:00.438Z","t_s":68017.96,"cpu":{}}"#.to_owned() + "\n{}\n",
    );
    let done = history_in(&files, &["nights"]).exits(&[1]);
    assert!(
        words(&done.stdout).contains("nights/kernel.jsonl is left out: its lines are not Records"),
        "{}",
        done.stdout
    );
}

#[test]
fn a_directory_is_as_good_as_a_file_of_lines_in_any_order() {
    let files = Files::new();
    let mut records = forty_nights(1.1);
    files.write("history.jsonl", lines(&records));
    fs::create_dir(files.path("nights")).unwrap();
    files.write("nights/old.jsonl", lines(&records.split_off(20)));
    records.iter().enumerate().for_each(|(number, record)| {
        files.write(&format!("nights/{number}.json"), serde_json::to_string_pretty(record).unwrap());
    });
    files.write("nights/profile.json", json!({"schema": "brimful.profile/1"}).to_string());
    let done = history_in(&files, &["nights", "--json"]).exits(&[1]);
    assert!(done.stderr.contains("profile.json is left out: it is a `brimful.profile/1`"), "{}", done.stderr);
    let history: History = documents::document(&done.stdout);
    assert_eq!(history.figures, document_in(&files, &["history.jsonl"]).figures);
}

#[test]
fn runs_that_do_not_belong_to_the_series_are_left_out_with_a_note() {
    let mut records = forty_nights(1.1);
    records.push(records[3].clone());
    records[5]["verdict"] =
        json!({"valid": false, "reasons": [{"code": "generator_late", "message": "It was late. Stop."}]});
    records[6]["workload"]["load"]["clients"] = json!(9);
    records[7]["machine"]["host"] = json!("other");
    records[8]["machine"]["kernel"] = json!("6.12.0");
    let history = history_of(&records);
    assert_eq!(history.runs.len(), 37);
    let notes = history.notes.join("\n");
    for note in [
        "1 run left out, found twice: history.jsonl:41",
        "1 run left out, not valid: history.jsonl:6 (It was late)",
        "1 run left out, of another load than most: history.jsonl:7 (their loads differ: ",
        "1 run left out, with a load from another machine than most: history.jsonl:8 (other, Xeon)",
    ] {
        assert!(notes.contains(note), "{note}: {notes}");
    }
    assert_eq!(history.notes.len(), 4, "{notes}");
    let files = Files::new();
    let invalid: Vec<Value> = forty_nights(1.0)
        .into_iter()
        .map(|mut record| {
            record["verdict"] = records[5]["verdict"].clone();
            record
        })
        .collect();
    files.write("invalid.jsonl", lines(&invalid));
    history_in(&files, &["invalid.jsonl"]).fails(2, "no run is valid: invalid.jsonl:1, for example (It was late)");
}

#[test]
fn what_else_changed_with_a_figure_is_named() {
    let mut records = forty_nights(1.1);
    for record in &mut records[30..] {
        record["server_software"] = json!("nginx/1.26.0");
        record["machine"]["kernel"] = json!("6.12.0");
    }
    let history = history_of(&records);
    let expected = [
        "software of the server: nginx/1.22.1, then nginx/1.26.0",
        "kernels of the load generator: 6.1.0, then 6.12.0",
    ];
    assert_eq!(changes(&history, "p99")[0].other_changes, expected);
}

#[test]
fn machines_that_differ_in_every_run_are_no_reason_to_leave_runs_out() {
    let mut records = forty_nights(1.0);
    for (number, record) in records.iter_mut().enumerate() {
        record["machine"]["host"] = json!(format!("runner-{number}"));
    }
    let history = history_of(&records);
    assert_eq!(history.runs.len(), 40);
    assert!(history.notes[0].contains("the load came from 40 machines"), "{:?}", history.notes);
}

#[test]
fn a_short_series_and_gaps_say_how_many_runs_are_needed() {
    let files = Files::new();
    files.write("two.jsonl", lines(&forty_nights(1.0)[..2]));
    let text = history_in(&files, &["two.jsonl"]).exits(&[0]).stdout;
    assert!(text.starts_with("In 2 runs no change can be found yet: that takes 4 more runs.\n"), "{text}");
    assert!(text.contains("needs 4 more runs"), "{text}");
    // Only five of the runs have CPU times, because the others were not watched.
    let mut records = forty_nights(1.1);
    records[5..].iter_mut().for_each(|record| record["server"] = Value::Null);
    let history = history_of(&records);
    let cpu = figure(&history, "cpu");
    assert_eq!((cpu.runs_needed, cpu.noise, cpu.values[4].is_some(), cpu.values[5]), (Some(1), None, true, None));
    assert_eq!(changes(&history, "p99").len(), 1);
    // If some runs in the middle of a series lack a metric, its change must still be found.
    let mut records = forty_nights(1.1);
    records[20..29].iter_mut().for_each(|record| record["server"] = Value::Null);
    let history = history_of(&records);
    let cpu = figure(&history, "cpu");
    assert_eq!(changes(&history, "cpu")[0].index, 30);
    assert_eq!(
        cpu.segments.iter().map(|segment| (segment.first, segment.last, segment.runs)).collect::<Vec<_>>(),
        [(0, 29, 21), (30, 39, 10)]
    );
}

#[test]
fn a_truncated_last_line_is_a_note_and_another_broken_line_an_error() {
    let files = Files::new();
    let text = lines(&forty_nights(1.0));
    files.write("cut.jsonl", &text[..text.len() - 100]);
    let history = document_in(&files, &["cut.jsonl"]);
    assert_eq!(history.runs.len(), 39);
    assert!(history.notes[0].starts_with("cut.jsonl:40 is left out: the line is cut short"), "{:?}", history.notes);
    // The last line need not end in a newline.
    files.write("whole.jsonl", text.trim_end());
    assert_eq!(document_in(&files, &["whole.jsonl"]).runs.len(), 40);
    for broken in ["{\"schema\":\n", "[]\n", "{\"schema\":\"brimful.sweep/1\"}\n", "\u{1b}[2J\n"] {
        files.write("broken.jsonl", text.replacen('\n', &format!("\n\n{broken}"), 2));
        history_in(&files, &["broken.jsonl"]).fails(2, "broken.jsonl:3 is not a Record or survey");
    }
    files.write("bytes.jsonl", [text.as_bytes(), b"\xff\n"].concat());
    history_in(&files, &["bytes.jsonl"]).fails(2, "bytes.jsonl:41: invalid utf-8");
    let mut timeless = nightly(0, 1.0);
    timeless["started_at"] = json!("yesterday");
    files.write("timeless.jsonl", lines(&[timeless]));
    history_in(&files, &["timeless.jsonl"]).fails(2, "timeless.jsonl:1 has no start time");
    files.write("empty.jsonl", "");
    history_in(&files, &["empty.jsonl"]).fails(2, "no Record or survey in empty.jsonl");
    history_in(&files, &["missing.jsonl"]).fails(2, "cannot read missing.jsonl");
}

#[test]
fn hostile_names_cannot_control_any_output() {
    let files = Files::new();
    let hostile = "\u{1b}[2J</script><img src=x>|`@all\u{202e}";
    let mut records = forty_nights(1.1);
    for record in &mut records {
        record["labels"] = json!({"commit": hostile, hostile: "1"});
        record["server_software"] = json!(format!("{hostile}{}", record["started_monotonic_ns"]));
    }
    records[7]["machine"]["host"] = json!(hostile);
    let name = "a\u{1b}[31m<b>|.jsonl";
    files.write(name, lines(&records));
    for flags in [&[][..], &["--markdown"], &["--json"]] {
        let done = history_in(&files, &[&[name], flags].concat()).exits(&[1]);
        assert!(!done.stdout.contains(['\x1b', '\u{202e}']) && !done.stderr.contains('\x1b'), "{}", done.stdout);
    }
    let markdown = history_in(&files, &[name, "--markdown"]).stdout;
    for markup in ["<b>", "<img", "@all", "`"] {
        assert!(!markdown.contains(markup), "{markup}: {markdown}");
    }
    history_in(&files, &[name, "--html", "page.html"]).exits(&[1]);
    let page = fs::read_to_string(files.path("page.html")).unwrap();
    assert!(page.contains("brimful.history/1") && !page.contains("<img src=x>"));
}

#[test]
fn each_load_appends_its_run_after_it_was_delivered() {
    let (_target, url) = start_target(&[]);
    let files = Files::new();
    let file = files.path("history.jsonl");
    let path = file.to_str().unwrap();
    let load =
        |flags: &[&str]| run(&[&["load", &url, "-n", "20", "-c", "2", "-q", "--record-to", path], flags].concat());
    for commit in ["commit=a", "commit=b"] {
        // On a busy machine, the load generator may be late (exit code 4).
        load(&["--label", commit]).exits(&[0, 4]);
    }
    let text = fs::read_to_string(&file).unwrap();
    let records: Vec<_> = text.lines().map(documents::document::<Record>).collect();
    assert_eq!(records.iter().map(|record| &*record.labels["commit"]).collect::<Vec<_>>(), ["a", "b"]);
    assert!(records.iter().all(|record| record.account.is_none() && record.counts.completed == 20));
    assert!(text.lines().all(|line| line.len() < 20_000), "{}", text.len());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o133, 0);
    run(&["load", &url, "--record-to", "/no/such/place.jsonl"]).fails(3, "cannot append to /no/such/place.jsonl");
    run(&["load", &url, "--calibrate", "--record-to", path]).fails(2, "define a load");
}

/// Runs the commands of the first block in docs/history.md with a real server. A script replaces `git`.
#[test]
fn the_recipe_of_the_manual_works() {
    let _machine = lock_machine_shared();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/history.md");
    let page = fs::read_to_string(page).unwrap();
    let recipe = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(recipe.contains("--record-to") && recipe.contains("git rev-parse --short HEAD"), "{recipe}");
    let (_target, url) = start_target(&[]);
    let files = Files::new();
    let git = files.write("git", "#!/bin/sh\necho abc1234\n");
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let recipe =
        recipe.replace("http://127.0.0.1:8080/", &url).replace("-d 60s", "-d 1s").replace("git rev", "./git rev");
    for _ in 0..2 {
        // On a busy machine, the load generator may be late. Then the history contains no valid run.
        let done = shell(&recipe, &files.path("")).output().unwrap();
        assert!([0, 2].contains(&done.status.code().unwrap()), "{done:?}");
    }
    let text = fs::read_to_string(files.path("history.jsonl")).unwrap();
    assert_eq!(text.matches("abc1234").count(), 4, "a label and a command line for each of two runs: {text}");
}
