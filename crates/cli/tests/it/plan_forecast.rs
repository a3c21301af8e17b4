//! Tests `brimful plan forecast`: dates, configurations, and histories that cannot be used.

use crate::plan::{
    Files, assert_same_keys_as_example, check_golden, embedded_document, json, paper_model, path_argument, plan,
};
use std::fs;

/// The arrival rates of two hundred days from 2026-01-01, which grow by 0.25 % per day and are lower at weekends.
fn history(first_rate: f64) -> String {
    let day = |i: u32| {
        let season = if i % 7 < 5 { 1.1 } else { 0.75 };
        // Small irregular noise. Without noise, the back-test would find no errors, so its tests would be meaningless.
        let noise = f64::from(i * i % 11) / 200.0;
        let count = 86_400.0 * first_rate * 1.0025_f64.powi(i as i32) * season * (1.0 + noise);
        format!("{},{count:.0}\n", 1_767_225_600 + 86_400 * i)
    };
    "time,requests\n".to_owned() + &(0..200).map(day).collect::<String>()
}

#[test]
fn the_date_of_the_limit_and_the_cheapest_configuration() {
    let files = Files::new();
    let series = files.write("days.csv", history(45.0));
    let model = files.write("model.json", paper_model().to_string());
    let configurations = files.write(
        "configurations.csv",
        "name,price,set\nas it is,200,\ntwo more CPUs,340,CPU.servers=4\nfaster CPU,300,CPU.speed=1.2x\n",
    );
    let csv = path_argument(&files.path("cost.csv"));
    let args = ["forecast", &series, "--model", &model, "--slo", "class4:mean<2s"];
    let more = ["--configurations", &configurations, "--csv", &csv];
    let done = plan(&[&args[..], &more].concat()).exits(&[0]);
    check_golden("plan-forecast.txt", &done.stdout);
    let cost = fs::read_to_string(&csv).unwrap();
    assert!(cost.starts_with("name,price_per_month,") && cost.lines().count() == 4, "{cost}");

    let html = path_argument(&files.path("page.html"));
    let found = json(&[&args[..], &["--configurations", &configurations, "--html", &html]].concat());
    assert_eq!(embedded_document("forecast", &html), found);
    assert_same_keys_as_example("forecast.json", &found);
    let likely = found["crossing"]["likely"].as_str().unwrap();
    assert!(done.stdout.contains(&format!("around {}", &likely[..10])), "{likely}");
    // A limit on the rate, and an objective that is met up to the same rate, must give the same result.
    let rate = found["limit"]["rate"].as_f64().unwrap().to_string();
    assert_eq!(json(&["forecast", &series, "--limit", &rate])["crossing"]["likely"], likely);
}

#[test]
fn the_limit_is_the_saturation_or_the_maximum_utilization() {
    let files = Files::new();
    let series = files.write("days.csv", history(45.0));
    let model = files.write("model.json", paper_model().to_string());
    let limit = |more: &[&str]| {
        let found = json(&[&["forecast", &series, "--model", &model], more].concat());
        found["limit"]["rate"].as_f64().unwrap()
    };
    let saturation = limit(&[]);
    assert!((saturation - 123.25).abs() < 0.01, "{saturation}");
    assert!((limit(&["--max-utilization", "70%"]) / saturation - 0.7).abs() < 1e-6);
    assert!(limit(&["--slo", "mean<50ms", "--max-utilization", "0.7"]) <= 0.7 * saturation);
}

#[test]
fn a_limit_that_is_exceeded_already_exits_1() {
    let files = Files::new();
    let series = files.write("days.csv", history(45.0));
    let done = plan(&["forecast", &series, "--limit", "30"]).exits(&[1]);
    assert!(done.stdout.starts_with("Arrivals already reached 30.0 req/s"), "{}", done.stdout);
    let model = files.write("model.json", paper_model().to_string());
    plan(&["forecast", &series, "--model", &model, "--slo", "mean<1ms"]).fails(1, "even without load");
}

#[test]
fn without_a_limit_only_a_forecast_is_printed() {
    let files = Files::new();
    let series = files.write("days.csv", history(45.0));
    let csv = path_argument(&files.path("forecast.csv"));
    let text = plan(&["forecast", &series, "--horizon", "30d", "--csv", &csv]).exits(&[0]).stdout;
    assert!(text.starts_with("Arrivals peak at "), "{text}");
    let rows = fs::read_to_string(&csv).unwrap();
    assert_eq!(rows.lines().count(), 1 + 200 + 30, "{rows}");
    let found = json(&["forecast", &series, "--season", "0", "--method", "line"]);
    assert_eq!(found["seasons"].as_array().unwrap().len(), 0);
    assert_eq!(json(&["forecast", &series, "--season", "7"])["seasons"][0], 7);
}

#[test]
fn unusable_histories_are_refused() {
    let files = Files::new();
    let fails = |text: &str, words: &str| plan(&["forecast", &files.write("bad.csv", text)]).fails(2, words);
    fails("", "0 values are too few");
    fails("time,requests\n2026-01-01,5\n2026-01-02,6\n", "at least 6 more are needed");
    fails("time,requests\n2026-01-01,5\n2026-01-01,6\n", "line 3");
    fails("time,requests\n2026-01-01,5\n2026-01-02,many\n", "line 3");
    fails("when,requests\nsoon,5\nlater,6\n", "line ");
    let series = files.write("days.csv", history(45.0));
    let ask = |more: &[&str], words: &str| plan(&[&["forecast", series.as_str()], more].concat()).fails(2, words);
    ask(&["--limit", "0"], "positive");
    ask(&["--limit", "5", "--model", "x"], "cannot be used with");
    ask(&["--slo", "p95<1s"], "--model");
    ask(&["--max-utilization", "70"], "write it like 70%");
    ask(&["--configurations", "x"], "--model");
    ask(&["--horizon", "soon"], "write it like");
    ask(&["--unit", "requests"], "counts");
    let model = files.write("model.json", paper_model().to_string());
    let configurations = files.write("c.csv", "name,price,set\nfaster,10,CPU.sped=2x\n");
    ask(&["--model", &model, "--configurations", &configurations], "c.csv: `CPU.sped=2x`");
}
