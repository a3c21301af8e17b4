//! Tests servers with limits: a limit on the request rate of a client, and a CPU quota.

use crate::documents;
use crate::program::{Running, brimful, lock_machine_shared, run, start_target};
use brimful_core::record::ReasonCode;
use std::fs;
use std::path::{Path, PathBuf};

/// Starts the reference server. Returns the program and its address.
fn target(more: &[&str]) -> (Running, String) {
    start_target(&[&["--service", "a=300us"], more].concat())
}

#[test]
fn a_survey_names_a_limit_on_the_rate_of_its_client() {
    let (_target, url) = target(&["--rate-limit", "100"]);
    let args = ["survey", &url, "--level", "300ms", "--timeout", "1s", "--json", "--report", "/dev/null"];
    let done = run(&args).exits(&[3]);
    let survey = documents::survey(&done.stdout);
    let [reason] = survey.verdict.reasons.as_slice() else { panic!("{:#?}", survey.verdict) };
    assert_eq!(reason.code, ReasonCode::RateLimited);
    assert!(reason.message.contains("answered 429") && reason.message.contains("Raise or switch off"), "{reason:?}");
    let record = documents::record(&run(&["load", &url, "--clients", "1", "--requests", "500", "--json"]).stdout);
    let status = record.counts.status;
    assert!(status.s429 > 0 && status.s429 == status.s4xx, "{status:?}");
    let refused = run(&["target", "--listen", "127.0.0.1:0", "--rate-limit", "0"]);
    refused.fails(2, "a rate limit of no requests a second");
}

/// A control group with a quota of 2 % of a CPU. A server would get more than this even on a busy host, so the quota
/// has an effect. Dropping this value removes the group.
struct Group(PathBuf);

impl Group {
    /// Creates the control group for the test with this name. `None` if this process may not create control groups.
    fn make(test: &str) -> Option<Group> {
        let name = format!("brimful-test-{test}-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/cpu").join(&name);
        let group = if v1.parent()?.is_dir() { v1 } else { Path::new("/sys/fs/cgroup").join(&name) };
        fs::create_dir(&group).ok()?;
        let group = Group(group);
        let files = if group.0.join("cpu.max").exists() {
            vec![("cpu.max", "2000 100000")]
        } else {
            vec![("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "2000")]
        };
        files.iter().all(|(file, text)| fs::write(group.0.join(file), text).is_ok()).then_some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Removing fails if the group was not created completely.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
#[allow(clippy::disallowed_macros, reason = "a test that is left out says so")]
fn a_quota_that_throttles_the_server_is_in_the_record_and_named_by_a_survey() {
    let Some(group) = Group::make("quota") else {
        eprintln!("LEFT OUT: no control group with a quota can be made here");
        return;
    };
    let machine = lock_machine_shared();
    let (target, url) = target(&[]);
    let pid = target.pid().to_string();
    fs::write(group.0.join("cgroup.procs"), &pid).unwrap();
    let load = ["load", &url, "--clients", "4", "--duration", "1s", "--process", &pid, "--json"];
    let record = documents::record(&Running::start(brimful(&load)).finish().stdout);
    let server = record.server.unwrap();
    let quota = server.process[0].quota.clone().expect("the quota is seen");
    assert_eq!((quota.cpus, Path::new(&quota.group)), (0.02, &*group.0));
    assert!(quota.throttled_s > 0.1 && quota.throttled_periods > 0.1, "{quota:?}");

    let survey = ["survey", &url, "--process", &pid, "--level", "300ms", "--max-load", "100%", "--timeout", "1s"];
    let done = Running::start(brimful(&[&survey[..], &["--json", "--report", "/dev/null"]].concat())).finish();
    let survey = documents::survey(&done.exits(&[3]).stdout);
    let throttled = survey.verdict.reasons.iter().find(|reason| reason.code == ReasonCode::Throttled);
    let message = &throttled.unwrap_or_else(|| panic!("{:#?}", survey.verdict)).message;
    assert!(message.contains("The CPU quota of 0.02") && message.contains("Raise the quota"), "{message}");
    target.kill();
    drop(machine);
}

#[test]
fn the_effect_of_a_quota_is_predicted_measured_and_undone() {
    let may = Group::make("what-if").is_some();
    let machine = lock_machine_shared();
    let (target, url) = target(&[]);
    let pid = target.pid().to_string();
    let cgroup = || fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let before = cgroup();
    let survey = ["survey", &url, "--process", &pid, "--what-if", "quota=50%", "--level", "300ms", "--timeout", "1s"];
    let survey = [&survey[..], &["--json", "--report", "/dev/null"]].concat();
    let surveyed = || {
        let done = Running::start(brimful(&survey)).finish();
        assert_eq!(cgroup(), before);
        done
    };
    if may {
        // On a busy machine, a survey may end before it changes the quota, so it is tried up to three times. The
        // accuracy of predictions is tested elsewhere, with simulated servers.
        let what_if = (0..3).find_map(|_| documents::survey(&surveyed().stdout).what_if);
        let what_if = what_if.expect("the change was made in one of three surveys");
        assert_eq!((&*what_if.change, what_if.saturation_rate.predicted > Some(0.0)), ("quota=50%", true));
        assert!(what_if.saturation_rate.measured > Some(0.0), "{what_if:?}");
    } else {
        surveyed().fails(3, "cannot give the server a CPU quota");
    }
    let gentle = Running::start(brimful(&[&survey[..], &["--max-load", "20%"]].concat())).finish();
    gentle.fails(2, "leave out --max-load and --max-delay");
    drop(machine);
}
