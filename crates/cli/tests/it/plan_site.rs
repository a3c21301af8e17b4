//! Tests `brimful plan calibrate --log`: from a generated access log and utilizations, it must recover the demands with
//! which they were generated.

use crate::plan::{Files, plan};
use serde_json::Value;

/// Demands of a request with a response of 500 bytes, and of one with 50,000 bytes, in seconds.
const DEMANDS: [f64; 2] = [0.002, 0.020];
/// Share of a CPU that other programs use.
const BACKGROUND: f64 = 0.05;
const STEPS: u32 = 24;
const STEP_S: u32 = 60;

/// Number of requests of each class in a time step. The numbers of the classes vary independently.
fn requests(step: u32) -> [u32; 2] {
    [600 + 700 * (step % 4), 60 + 240 * (step % 5)]
}

fn busy(step: u32) -> f64 {
    let work: f64 = requests(step).iter().zip(DEMANDS).map(|(n, demand)| f64::from(*n) * demand).sum();
    BACKGROUND + work / f64::from(STEP_S)
}

/// Day and time of day of a second of the log. The log begins at 23:50, so that it contains a midnight. The time zone
/// is one hour ahead of UTC.
fn clock(second: u32) -> (u32, String) {
    let second = 23 * 3600 + 50 * 60 + second;
    (second / 86_400, format!("{:02}:{:02}:{:02}", second / 3600 % 24, second / 60 % 60, second % 60))
}

fn log() -> String {
    let mut log = String::new();
    for step in 0..STEPS {
        for (n, bytes) in requests(step).into_iter().zip([500, 50_000]) {
            for request in 0..n {
                let (day, clock) = clock(step * STEP_S + request * STEP_S / n);
                let line = format!(
                    "10.0.0.1 - - [{}/Nov/2026:{clock} +0100] \"GET /{bytes} HTTP/1.1\" 200 {bytes} \"-\" \"curl/8\"\n",
                    22 + day
                );
                log += &line;
            }
        }
    }
    log
}

/// Output like that of `sar -u 60`.
fn sar() -> String {
    let header = "        CPU     %user     %nice   %system   %iowait    %steal     %idle\n";
    let mut text = format!("Linux 6.1.0 (web1) \t2026-11-22 \t_x86_64_\t(2 CPU)\n\n{}{header}", clock(0).1);
    for step in 0..STEPS {
        let share = 100.0 * busy(step) / 2.0;
        let (_, end) = clock((step + 1) * STEP_S);
        text += &format!("{end}        all {share:9.2}      0.00      0.00      1.00      0.00 {:9.2}\n", 99.0 - share);
    }
    text
}

/// Output like that of `vmstat -t 60`, which has whole percentages.
fn vmstat(zone: &str) -> String {
    let mut text = format!(
        "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----\n r  b   \
         swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st {zone:>19}\n"
    );
    for step in 0..=STEPS {
        let share = if step == 0 { 1.0 } else { (100.0 * busy(step - 1) / 2.0).round() };
        let (day, end) = clock(step * STEP_S);
        text += &format!(
            " 1  0      0 100000  20000 300000    0    0     5    10   50  100 {share} 0 {} 0  0 2026-11-{} {end}\n",
            100.0 - share,
            22 + day
        );
    }
    text
}

fn found(args: &[&str], within: f64) -> Value {
    let done = plan(&[&["calibrate", "--json"], args].concat()).exits(&[0]);
    let site: Value = serde_json::from_str(&done.stdout).unwrap();
    let cpu = &site["resources"][0];
    let demands = cpu["demands"].as_array().unwrap();
    assert_eq!((cpu["name"].as_str(), demands.len()), (Some("cpu"), 2), "{site}");
    for (demand, truth) in demands.iter().zip(DEMANDS) {
        let fitted = demand["regression"].as_f64().unwrap();
        assert!((fitted / truth - 1.0).abs() < within, "{fitted} and {truth}: {site}");
    }
    assert!((cpu["background"].as_f64().unwrap() - BACKGROUND).abs() < 0.03, "{site}");
    assert_eq!(site["model"]["stations"][0]["servers"], 2);
    site
}

#[test]
fn demands_are_fitted_to_a_log_and_the_output_of_monitors() {
    let files = Files::new();
    let log = files.write("access.log", log());
    let (sar, cet, utc) =
        (files.write("sar", sar()), files.write("cet", vmstat("CET")), files.write("utc", vmstat("UTC")));
    // Times without a time zone in the utilizations are in the time zone of the log.
    let site = found(&["--log", &log, "--utilization", &sar], 0.02);
    assert_eq!(site["steps"], STEPS - 2, "the first and the last step may be incomplete in the log");
    assert!(site["notes"].to_string().contains("UTC+01"), "{site}");
    found(&["--log", &log, "--utilization", &sar, "--timezone", "Europe/Berlin"], 0.02);
    // The percentages of two CPUs are whole numbers, which is a coarse measure of the light class's demand. So the
    // tolerance is larger.
    found(&["--log", &log, "--utilization", &cet, "--servers", "2"], 0.2);

    let done = plan(&["calibrate", "--log", &log, "--utilization", &utc]).exits(&[2]);
    assert!(done.stderr.contains("--timezone"), "{}", done.stderr);
    let done = plan(&["calibrate", "--log", &log, "--utilization", &log]).exits(&[2]);
    assert!(done.stderr.contains("`vmstat -t`"), "{}", done.stderr);
}

/// Encodes a record of process accounting (`struct acct_v3`).
fn accounting(name: &str, from_s: u32, elapsed_s: f32, cpu_ticks: u16) -> Vec<u8> {
    let mut record = vec![0; 64];
    record[1] = 3;
    record[24..28].copy_from_slice(&from_s.to_le_bytes());
    record[28..32].copy_from_slice(&(100.0 * elapsed_s).to_le_bytes());
    record[32..34].copy_from_slice(&cpu_ticks.to_le_bytes());
    record[48..48 + name.len()].copy_from_slice(name.as_bytes());
    record
}

#[test]
fn the_servers_are_those_of_the_cpu_in_whichever_column_of_a_csv_it_is() {
    let files = Files::new();
    let log = files.write("access.log", log());
    let start_s: u32 = 1_795_387_800;
    let rows = (0..STEPS).map(|step| format!("{},0.1,{:.4}\n", start_s + step * STEP_S, busy(step) / 2.0));
    let utilization = files.write("disk-first.csv", "time,disk,cpu\n".to_owned() + &rows.collect::<String>());
    let site = found(&["--log", &log, "--utilization", &utilization, "--servers", "2"], 0.02);
    assert_eq!(
        (&site["model"]["stations"][1]["name"], &site["model"]["stations"][1]["servers"]),
        (&"disk".into(), &1.into())
    );
}

#[test]
fn the_program_behind_the_outliers_is_named() {
    let files = Files::new();
    let log = files.write("access.log", log());
    // A job uses 0.4 CPUs in every sixth minute. `start_s` is the start of the first step: 22:50 UTC.
    let job = |step: u32| step % 6 == 3;
    let start_s: u32 = 1_795_387_800;
    let rows = (0..STEPS).map(|step| {
        let share = (busy(step) + if job(step) { 0.4 } else { 0.0 }) / 2.0;
        format!("{},{share:.4}\n", start_s + step * STEP_S)
    });
    let utilization = files.write("cpu.csv", "time,cpu\n".to_owned() + &rows.collect::<String>());
    let runs = (0..STEPS).filter(|step| job(*step));
    let records = runs.flat_map(|step| accounting("webalizer", start_s + step * STEP_S + 5, 50.0, 2400));
    let steady = accounting("httpd", start_s, 1440.0, 8000);
    let pacct = files.write("pacct", records.chain(steady).collect::<Vec<u8>>());
    let args = ["calibrate", "--log", &log, "--utilization", &utilization, "--servers", "2"];
    let text = plan(&args).exits(&[0]).stdout;
    assert!(text.contains("every 360 s") && text.contains("let --programs name it"), "{text}");
    let text = plan(&[&args[..], &["--programs", &pacct]].concat()).exits(&[0]).stdout;
    assert!(
        text.split_whitespace().collect::<Vec<_>>().join(" ").contains("webalizer used 40.0 % of a CPU then"),
        "{text}"
    );
    plan(&[&args[..], &["--programs", &log]].concat()).fails(2, "pacct of process accounting");
}

/// The Record of a run of 20 s at `rate` requests per second. Each request has this CPU time and this response size.
fn alone(rate: f64, cpu_s: f64, bytes: f64) -> String {
    let mut record: Value = serde_json::from_str(include_str!("../data/idle.record.json")).unwrap();
    let completed = (20.0 * rate) as u64;
    record["rates"]["completed"] = rate.into();
    record["counts"]["completed"] = completed.into();
    record["bytes"]["received"] = ((bytes * completed as f64) as u64).into();
    record["server"]["process"][0]["cores"] = (rate * cpu_s).into();
    record["server"]["process"][0]["cpu_s"] = (20.0 * rate * cpu_s).into();
    record.to_string()
}

#[test]
fn runs_of_a_class_alone_are_known_demands() {
    let files = Files::new();
    let log = files.write("access.log", log().replace("200 50000 ", "304 - "));
    let sar = files.write("sar", sar());
    let site = ["calibrate", "--json", "--log", &log, "--utilization", &sar];
    // In this log, the requests with the demand 20 ms have responses without a body.
    let empty = files.write("empty.json", alone(20.0, 0.020, 250.0));
    let found = plan(&[&site[..], &["--alone", &empty, "--attribution", "size"]].concat()).exits(&[0]).stdout;
    let found: Value = serde_json::from_str(&found).unwrap();
    let demands = &found["resources"][0]["demands"];
    assert_eq!(demands[0]["class"], "empty");
    assert!((demands[0]["demand"].as_f64().unwrap() - 0.020).abs() < 1e-9, "{found}");
    assert!(demands[0]["known"].as_str().unwrap().contains("empty.json"), "{found}");
    assert!((demands[1]["demand"].as_f64().unwrap() / DEMANDS[0] - 1.0).abs() < 0.05, "{found}");

    // Three runs with different response sizes. The line through their CPU times has the intercept 20 ms.
    let runs =
        [1e5, 2e5, 4e5].map(|bytes| files.write(&format!("{bytes}.json"), alone(20.0, 0.020 + 1e-8 * bytes, bytes)));
    let line = ["--attribution", "cpu=size", "--alone", &runs[0], "--alone", &runs[1], "--alone", &runs[2]];
    let found: Value = serde_json::from_str(&plan(&[&site[..], &line].concat()).exits(&[0]).stdout).unwrap();
    assert!((found["resources"][0]["intercept"].as_f64().unwrap() - 0.020).abs() < 1e-6, "{found}");

    plan(&[&site[..], &["--alone", &runs[0]]].concat()).fails(2, "not answers without a body");
    plan(&[&site[..], &["--alone", &format!("images={empty}")]].concat()).fails(2, "there is no class `images`");
    plan(&[&site[..], &["--alone", &sar]].concat()).fails(2, "is not a Record");
    let idle = files.write("idle.json", alone(0.0, 0.0, 0.0));
    plan(&[&site[..], &["--alone", &idle]].concat()).fails(2, "no request was completed");
}
