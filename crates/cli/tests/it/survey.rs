//! Tests `brimful survey` of real servers. The levels are much too short for reliable results, so only properties are
//! asserted that do not depend on how busy the machine is. `brimful-survey` tests the accuracy of predictions with
//! simulated servers.

use crate::documents;
use crate::plan::{Files, assert_plans_read, numbers, plan};
use crate::program::{Done, Running, brimful, lock_machine_exclusively, lock_machine_shared, start_target};
use crate::remote::serve;
use brimful_core::record::ReasonCode;
use brimful_core::survey::{Comparison, Level, LevelPurpose, Survey};
use brimful_testkit::{Nginx, NginxOptions};
use std::fs;

/// Maximum number of tries of a survey that other programs can disturb.
const TRIES: usize = 3;

/// Parses the survey of a program that has ended. Asserts that the exit code and the first sentence match the verdict,
/// and that an incomplete survey says that it is incomplete.
fn ended(done: &Done, document: &str) -> Survey {
    use ReasonCode::{
        Incomplete, Interrupted, ModelRefuted, OtherWork, RateLimited, ServerChanged, ServerDied, ServerErrors,
        Throttled,
    };
    let survey = documents::survey(document);
    let reasons = &survey.verdict.reasons;
    let of_environment =
        |code| matches!(code, OtherWork | Incomplete | ServerChanged | ServerDied | RateLimited | Throttled);
    let of_server = |code| matches!(code, ServerErrors | ModelRefuted);
    let expected = if reasons.iter().any(|reason| reason.code == Interrupted) {
        130
    } else if reasons.iter().any(|reason| of_environment(reason.code)) {
        3
    } else if survey.verdict.valid {
        0
    } else if reasons.iter().all(|reason| of_server(reason.code)) {
        1
    } else {
        4
    };
    assert_eq!(done.code, expected, "{reasons:#?}");
    assert_eq!(survey.headline.starts_with("Not determined"), !survey.has_valid_measurements(), "{}", survey.headline);
    if let Some(stopped) = &survey.stopped {
        assert!(reasons.iter().any(|reason| reason.message.contains(&stopped.level)), "{stopped:?}: {reasons:#?}");
    }
    survey
}

/// Asserts that the commands of `brimful plan` accept this survey as a model, at 70 % of the predicted saturation rate.
fn is_planned_with(survey: &Survey, document: &str) {
    let files = Files::new();
    let path = files.write("survey.json", document);
    let Some(predicted) = survey.saturation_rate.predicted else {
        return plan(&["solve", &path]).fails(2, "survey the server again");
    };
    let solved = assert_plans_read(&files, &path);
    let close = |value: f64, expected: f64| (value / expected - 1.0).abs() < 1e-6;
    assert!(close(solved["saturation_rate"].as_f64().unwrap(), predicted), "{predicted}: {solved:#}");
    assert!(close(numbers(&solved["throughput"]).iter().sum(), 0.7 * predicted), "{predicted}: {solved:#}");
    // The solution of the model at its own rates must equal the survey's prediction. The model also contains the pauses
    // of the server, if the survey has observed any.
    let there = |level: &&&Level| (level.fraction - 0.7).abs() < 1e-9 && level.workload == "mix";
    if let Some(level) = of_role(survey, LevelPurpose::HeldOut).iter().find(there) {
        let [response, solved] = [level.steady_response_s.unwrap(), solved["mean_response_time"].as_f64().unwrap()];
        assert!(close(solved, response), "{solved}: {level:?}");
    }
    let said = plan(&["solve", &path]).exits(&[0]).stderr;
    assert_eq!(said.contains("NOT VALID"), !survey.verdict.valid, "{said}");
}

fn of_role(survey: &Survey, role: LevelPurpose) -> Vec<&Level> {
    survey.levels.iter().filter(|level| level.role == role).collect()
}

/// On every machine, at least one survey in three completes all its levels. The accuracy of predictions is tested in
/// `brimful-survey`, with simulated servers.
#[test]
fn the_demonstration_predicts_before_it_measures() {
    let whole = (0..TRIES).map(|_| demonstration()).find(|survey| survey.stopped.is_none());
    predicts_and_measures(&whole.expect("none of three demonstrations completed all its levels"));
}

/// Runs a demonstration survey. Asserts the properties that are true even if it does not complete all its levels.
fn demonstration() -> Survey {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report.html");
    let secret = "Authorization: Bearer hunter2";
    let args = [
        "survey",
        "--demo",
        "-H",
        secret,
        "--level",
        "300ms",
        "--max-load",
        "100%",
        "--seed",
        "7",
        "--json",
        "--report",
        report.to_str().unwrap(),
    ];
    let machine = lock_machine_exclusively();
    let done = Running::start(brimful(&args)).finish();
    drop(machine);
    let survey = ended(&done, &done.stdout);
    // The predictions must be printed before the held-out levels are measured.
    let said = |what: &str| done.stderr.find(what);
    assert!(
        said("held out: ")
            .is_none_or(|held_out| said("predicted, with 90 % intervals").is_some_and(|at| at < held_out))
    );
    is_planned_with(&survey, &done.stdout);
    assert_eq!(survey.seed, 7);
    let command = args.map(|word| if word == secret { "Authorization: •••" } else { word });
    assert_eq!(survey.command[1..], command);
    assert_eq!(survey.report.as_deref(), report.to_str());

    // The HTML report must contain the same document as stdout.
    let page = fs::read_to_string(&report).unwrap();
    assert!(!page.contains("hunter2") && !done.stdout.contains("hunter2"), "the page or stdout contains a secret");
    let (_, rest) = page.split_once(r#"<script type="application/json" id="survey">"#).unwrap();
    let reported = documents::survey(rest.split_once("</script>").unwrap().0);
    assert_eq!(reported, survey);
    survey
}

/// Asserts that a demonstration survey with all its levels has predictions and measurements.
fn predicts_and_measures(survey: &Survey) {
    for workload in ["mix", "light", "heavy"] {
        let calibrated = |level: &&Level| level.workload == workload;
        assert!(of_role(survey, LevelPurpose::Calibration).iter().any(calibrated), "{workload} was not calibrated");
    }
    assert!(!of_role(survey, LevelPurpose::HeldOut).is_empty());
    for level in of_role(survey, LevelPurpose::HeldOut) {
        // On a busy host, all responses may arrive after the window. Then the throughput is zero, and there is no error
        // of prediction.
        let answered = level.throughput.measured != Some(0.0);
        let Comparison { predicted, error, .. } = level.throughput;
        assert_eq!((predicted.is_some(), error.is_some()), (true, answered), "{level:#?}");
    }
    assert_eq!(survey.model.stations.len(), survey.model.demands.len());
    let classes: Vec<&str> = survey.demands.iter().map(|demand| demand.class.as_str()).collect();
    assert_eq!(classes[..2], ["light", "heavy"]);
    assert!(survey.demands.iter().all(|demand| demand.seconds > 0.0), "{:?}", survey.demands);
    assert!(survey.saturation_rate.predicted.is_some_and(|rate| rate > 0.0), "{:?}", survey.saturation_rate);
}

/// The CPUs on which each of these processes may run.
fn affinity(pids: &[u32]) -> Vec<String> {
    let allowed = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.unwrap().trim().to_owned()
    };
    pids.iter().map(allowed).collect()
}

/// An nginx that compresses its page for each call. So the server is the limit, even if the load generator was built
/// without optimization.
fn compressing_nginx() -> Nginx {
    let words: String = (0..4_000_u64).map(|i| format!("{:x} ", i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40)).collect();
    Nginx::start(NginxOptions {
        files: vec![("index.html".to_owned(), words.into_bytes())],
        extra: "gzip on; gzip_comp_level 9;".to_owned(),
        ..Default::default()
    })
}

#[test]
fn nginx_is_found_by_its_port_and_its_cpus_are_restored() {
    let machine = lock_machine_shared();
    let nginx = compressing_nginx();
    let pids = [vec![nginx.pid()], nginx.workers()].concat();
    let before = affinity(&pids);
    let dir = tempfile::tempdir().unwrap();
    let (report, out) = (dir.path().join("report.html"), dir.path().join("survey.json"));
    let files = ["--report", report.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let on = ["survey", &nginx.url(), "-H", "Accept-Encoding: gzip", "--server-cpus", "0", "--cpus", "1"];
    let mut running = Running::start(brimful(&[&on[..], &["--level", "300ms", "--max-load", "100%"], &files].concat()));
    running.stderr_line("a short load to try");
    assert_eq!(affinity(&pids), ["0", "0"]);
    // The survey is interrupted at this line. Then the CPUs of the server must be restored.
    running.stderr_line("calibration, block 2");
    running.ctrl_c();
    let done = running.finish();
    assert_eq!(affinity(&pids), before);

    drop(machine);
    let document = fs::read_to_string(&out).unwrap();
    let survey = ended(&done, &document);
    assert_eq!(done.code, 130);
    is_planned_with(&survey, &document);
    assert_eq!((&survey.server_cpus[..], &survey.client_cpus[..]), (&[0][..], &[1][..]));
    assert!(!survey.levels.is_empty() && survey.connections.served_at_once.is_none(), "{:?}", survey.connections);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&done.stdout).starts_with(&words(&survey.headline)), "{}", done.stdout);
    assert!(fs::read_to_string(&report).unwrap().contains(&survey.url));
}

#[test]
fn a_server_that_dies_ends_the_survey_and_keeps_its_levels() {
    let _machine = lock_machine_shared();
    let (target, url) = start_target(&["--service", "a=200us"]);
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report.html");
    let pid = target.pid().to_string();
    let args = [
        "survey",
        &url,
        "--process",
        &pid,
        "--level",
        "300ms",
        "--timeout",
        "1s",
        "--json",
        "--report",
        report.to_str().unwrap(),
    ];
    let mut running = Running::start(brimful(&args));
    running.stderr_line("calibration, block 1");
    running.stderr_line("calibration, block 2");
    target.kill();
    let done = running.finish().exits(&[3]);
    let survey = documents::survey(&done.stdout);
    assert!(!survey.levels.is_empty());
    let stopped = survey.stopped.expect("the survey says where it stopped");
    assert!(stopped.level.contains("calibration") && !stopped.reason.is_empty(), "{stopped:?}");
    assert_eq!(survey.verdict.reasons[0].code, ReasonCode::ServerDied);
    assert!(fs::read_to_string(&report).unwrap().contains(&stopped.level));
}

/// Starts the reference server. Returns the program and its address.
fn target() -> (Running, String) {
    start_target(&["--service", "a=300us"])
}

#[test]
fn a_report_that_cannot_be_written_loses_no_document() {
    let _machine = lock_machine_shared();
    let (target, url) = target();
    let args = [
        "survey",
        &url,
        "--black-box",
        "--level",
        "300ms",
        "--max-load",
        "100%",
        "--timeout",
        "1s",
        "--report",
        "/dev/full",
    ];
    let mut running = Running::start(brimful(&args));
    running.stderr_line("calibration, block 2");
    target.kill();
    let done = running.finish().exits(&[3]);
    assert!(done.stderr.contains("the document is on stdout instead: cannot write /dev/full"), "{}", done.stderr);
    let survey = documents::survey(&done.stdout[done.stdout.find("\n{").expect("the document is on stdout")..]);
    assert!(!survey.levels.is_empty() && survey.report.is_none());
}

/// Runs a survey of this server until the third block of the calibration, and then interrupts it.
fn interrupted(url: &str, more: &[&str], token: &str) -> (Done, Survey) {
    let short = ["--level", "300ms", "--max-load", "100%", "--json", "--report", "/dev/null"];
    let mut survey = brimful(&[&["survey", url], more, &short].concat());
    survey.env("BRIMFUL_TOKEN", token);
    let mut running = Running::start(survey);
    running.stderr_line("calibration, block 3");
    running.ctrl_c();
    let done = running.finish().exits(&[130]);
    let survey = ended(&done, &done.stdout);
    assert!(!survey.levels.is_empty());
    (done, survey)
}

/// A black-box survey observes only responses, so its levels have no utilization. The predictions are tested in
/// `brimful-survey`, with simulated servers.
#[test]
fn a_black_box_is_surveyed_by_its_responses_alone() {
    let _machine = lock_machine_shared();
    let (_target, url) = target();
    let (done, survey) = interrupted(&url, &["--black-box"], "");
    assert!(done.stderr.contains("nothing is seen of the server but its answers"), "{}", done.stderr);
    assert!(survey.levels.iter().all(|level| level.utilization.measured.is_none() && level.cpu.is_none()));
    assert!(survey.server_cpus.is_empty() && survey.background.is_none());
}

#[test]
fn a_server_is_surveyed_through_a_remote_monitor() {
    let _machine = lock_machine_shared();
    let (target, url) = target();
    let pid = target.pid().to_string();
    let (_serving, address, token) = serve(&["--process", &pid]);
    let (done, survey) = interrupted(&url, &["--watch-from", &address], &token);
    assert!(!survey.server_cpus.is_empty() && !done.stdout.contains(&token), "{:?}", survey.server_cpus);
    let seen = |level: &Level| level.utilization.measured.is_some_and(|used| used > 0.0);
    assert!(survey.levels.iter().any(seen), "{:#?}", survey.levels);
}
