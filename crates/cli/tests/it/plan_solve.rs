//! Tests `brimful plan solve`: the reference networks, the text, and errors.

use crate::plan::{
    Files, assert_same_keys_as_example, case, cases, check_golden, embedded_document, json, model, numbers,
    paper_model, path_argument, plan,
};
use crate::program::{brimful, lock_machine_shared};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::Stdio;

/// The value of `--method` for the solver of a reference case; `auto` if there is no such value.
fn method(case: &Value) -> &'static str {
    match case["solver"].as_str().unwrap() {
        "open_seidmann" | "closed_seidmann_mva" => "seidmann",
        "open_mmm_erlangc" | "open_product_form" => "erlang",
        "closed_exact_mva" | "closed_exact_ms" | "mixed_exact" => "exact",
        "closed_schweitzer" => "schweitzer",
        "closed_linearizer" => "linearizer",
        _ => "auto",
    }
}

#[test]
fn every_reference_network_is_solved() {
    let files = Files::new();
    let mut networks = 0;
    for case in cases() {
        let (method, name) = (method(&case), case["name"].as_str().unwrap());
        if !case["demands"].is_array() || case["classes"].as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        networks += 1;
        let path = files.write(&format!("{name}.json"), model(&case).to_string());
        if case["expected"]["error"] == "saturated" {
            plan(&["solve", &path, "--method", method]).fails(2, case["expected"]["bottleneck"].as_str().unwrap());
            continue;
        }
        let solved = json(&["solve", &path, "--method", method]);
        if method == "auto" {
            continue;
        }
        assert_eq!(solved["method"], method, "{name}");
        for key in ["throughput", "response_time"] {
            let tolerance = case["tolerance"]["relative"].as_f64().unwrap();
            let Some(expected) = case["expected"].get(key) else { continue };
            for (found, expected) in numbers(&solved[key]).into_iter().zip(numbers(expected)) {
                assert!(
                    (found - expected).abs() <= tolerance * expected.abs(),
                    "{name}: {key} {found}, not {expected}"
                );
            }
        }
        // Without `--method`, brimful chooses the method and says why.
        let chosen = json(&["solve", &path]);
        assert!(chosen["why"].as_str().is_some_and(|why| why.len() > 10), "{name}: {chosen}");
    }
    assert!(networks >= 43, "{networks}");
}

/// A model of a CPU with interruptions, some of which come with requests.
const INTERRUPTED: &str = r#"
demands = [[0.001]]
stations = [{ name = "cpu", type = "queue", scheduling = "fcfs", interruptions = { per_second = 5.0, per_call = 0.002, mean_length = 0.02 } }]
classes = [{ name = "page", type = "open", rate = 400.0 }]
"#;

#[test]
fn interruptions_are_shown_and_waited_for() {
    let files = Files::new();
    let path = files.write("interrupted.toml", INTERRUPTED);
    let solved = json(&["solve", &path]);
    // ν = 5.8 interruptions per second take σ = 0.116 of the time: R = S/(1 − σ) + (λ·S²/(1 − σ) + ν·L²·(1 − σ)/2)/(1 −
    // σ − ρ).
    let running = 0.884;
    let wait = (400.0 * 1e-6 / running + 5.8 * 4e-4 * running / 2.0) / (running - 0.4);
    let response = solved["response_time"][0].as_f64().unwrap();
    assert!((response / (0.001 / running + wait) - 1.0).abs() < 1e-9, "{solved}");
    assert!((solved["saturation_rate"].as_f64().unwrap() / (0.9 / 0.00104) - 1.0).abs() < 1e-9, "{solved}");
    assert!((solved["limits"][0]["utilization"].as_f64().unwrap() - 0.4 / running).abs() < 1e-9, "{solved}");

    let line = "cpu: 5.00 per second and 0.002 per request, of 20.0 ms on average, 11.6 % of the time";
    let text = plan(&["solve", &path]).exits(&[0]).stdout;
    assert!(text.contains(&format!("interrupted {line}")) && text.contains("FCFS, interrupted"), "{text}");
    let set = ["what-if", &path, "--set", "rate=2x", "--set", "cpu.interruption_length=10ms"];
    let text = plan(&set).exits(&[0]).stdout;
    let line = "cpu: 5.00 per second and 0.002 per request, of 10.0 ms on average, 6.6 % of the time";
    assert!(text.contains(&format!("interrupted {line}")), "{text}");
    let endless = INTERRUPTED.replace("per_second = 5.0", "per_second = 50.0");
    plan(&["solve", &files.write("endless.toml", endless)]).fails(2, "below 1: give fewer or shorter interruptions");
}

#[test]
fn the_text_is_a_sentence_and_tables() {
    let files = Files::new();
    let paper = files.write("paper.json", paper_model().to_string());
    let text = plan(&["solve", &paper]).exits(&[0]).stdout;
    assert!(
        text.starts_with("CPU is the bottleneck: 123 req/s (123–124); after it, Disk3 at 235 req/s.\n\n"),
        "{text}"
    );
    check_golden("plan-solve.txt", &text);
    let closed = files.write("closed.json", model(&case("jain_ex34_2_N20")).to_string());
    check_golden("plan-solve-closed.txt", &plan(&["solve", &closed]).exits(&[0]).stdout);
}

#[test]
fn approximate_methods_say_so() {
    let files = Files::new();
    let mut model = model(&case("paper_open_120tps"));
    let says = |model: &Value, method: &str, words: &str| {
        let path = files.write("model.json", model.to_string());
        let caveats = json(&["solve", &path, "--method", method])["caveats"].to_string();
        assert!(caveats.contains(words), "{caveats}");
    };
    says(&model, "erlang", "an error of 1 %");
    says(&model, "seidmann", "slower than they are");
    model["stations"][3]["scheduling"] = json!("fcfs");
    let path = files.write("model.json", model.to_string());
    let why = json(&["solve", &path])["why"].to_string();
    assert!(why.contains("approximately, as station `Disk3`"), "{why}");
}

#[test]
fn the_solution_has_a_curve_over_the_load() {
    let files = Files::new();
    let open = files.write("open.json", paper_model().to_string());
    let points = json(&["solve", &open])["curve"]["points"].as_array().unwrap().clone();
    assert_eq!(points.len(), 60);
    let means: Vec<f64> = points.iter().map(|p| p["steady"]["mean_response_time"].as_f64().unwrap()).collect();
    assert!(means.is_sorted() && means[59] > 10.0 * means[0], "{means:?}");
    let closed = files.write("closed.json", model(&case("jain_ex34_2_N20")).to_string());
    let solved = json(&["solve", &closed]);
    assert_eq!(solved["curve"]["points"].as_array().unwrap().len(), 40);
    let most = solved["bounds"][0]["bounds"]["throughput"]["upper"].as_f64().unwrap();
    assert!(most >= solved["throughput"][0].as_f64().unwrap(), "{solved}");
}

#[test]
fn long_names_are_cut_and_control_characters_escaped() {
    let files = Files::new();
    let mut model = paper_model();
    for list in ["stations", "classes"] {
        for part in model[list].as_array_mut().unwrap() {
            let name = format!("\u{1b}[2Ja name that goes on and on and on: {}", part["name"].as_str().unwrap());
            part["name"] = json!(name);
        }
    }
    model["classes"][3] = json!({ "name": "closed", "type": "closed", "population": 123, "think": 1234.5 });
    model["classes"][2]["rate"] = json!(1.0);
    let path = files.write("model.json", model.to_string());
    for args in [&["solve", &path, "--simulate"][..], &["what-if", &path, "--set", "speed=2x", "--slo", "p95<1s"]] {
        let text = plan(args).exits(&[0, 1]).stdout;
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn a_simulation_agrees_with_the_formula_and_is_reproducible() {
    let files = Files::new();
    let path = files.write("closed.json", model(&case("chandy_neuse_82_linearizer")).to_string());
    let simulated = |seed: &str| json(&["solve", &path, "--simulate", "--seed", seed]);
    let solved = simulated("7");
    assert_eq!(solved["simulation"]["run"]["seed"], 7);
    for class in 0..2 {
        let mean = &solved["simulation"]["response_time"][class]["mean"];
        let (value, half) = (mean["value"].as_f64().unwrap(), mean["ci95_half_width"].as_f64().unwrap());
        let formula = solved["response_time"][class].as_f64().unwrap();
        assert!((value - formula).abs() < 3.0 * half, "{value} ± {half}, {formula}");
    }
    assert_eq!(simulated("7"), solved);
    assert_ne!(simulated("8")["simulation"]["throughput"], solved["simulation"]["throughput"]);
    let text = plan(&["solve", &path, "--simulate"]).exits(&[0]).stdout;
    assert!(text.contains("simulated") && text.contains("\nsimulation "), "{text}");
    plan(&["solve", &path, "--seed", "7"]).fails(2, "--simulate");
}

#[test]
fn a_model_is_read_from_any_document_that_contains_it() {
    let files = Files::new();
    let bare = model(&case("qsp_p113_open"));
    let path = files.write("model.json", bare.to_string());
    let expected = json(&["solve", &path]);
    let survey = files.write("survey.json", json!({ "schema": "brimful.survey/1", "model": bare }).to_string());
    assert_eq!(json(&["solve", &survey]), expected);
    let solved = files.write("solved.json", expected.to_string());
    assert_eq!(json(&["solve", &solved]), expected, "a solution contains its model");

    let _machine = lock_machine_shared();
    let mut stdin = brimful(&["plan", "solve", "-", "--json"]);
    let mut child = stdin.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bare.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), expected);
}

#[test]
fn a_model_is_read_from_toml() {
    let files = Files::new();
    let path = files.write(
        "model.toml",
        "demands = [[0.01, 0.05]]\nstations = [{ name = \"cpu\", type = \"queue\", servers = 2 }]\n\n[[classes]]\nname = \"page\"\n\
         type = \"open\"\nrate = 50\n\n[[classes]]\nname = \"search\"\ntype = \"open\"\nrate = 10.0\n",
    );
    let solved = json(&["solve", &path]);
    assert!((solved["saturation_rate"].as_f64().unwrap() - 120.0).abs() < 1e-9, "{solved}");
}

#[test]
fn bad_models_say_what_to_do() {
    let files = Files::new();
    let good = model(&case("qsp_p138_open_2class"));
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut model = good.clone();
        edit(&mut model);
        files.write("bad.json", model.to_string())
    };
    let fails = |path: &str, words: &str| plan(&["solve", path]).fails(2, words);
    fails(&path_argument(&files.path("nowhere.json")), "check its name");
    fails(&path_argument(&files.path("")), "cannot read");
    fails(&files.write("binary", [0xff, 0xfe, 0x00]), "not a text file");
    fails(&files.write("open.json", "{ \"stations\": [\n"), "line 2");
    fails(&files.write("record.json", "{ \"schema\": \"brimful.record/1\" }"), "plan calibrate");
    fails(&with(&|m| m["demands"][0][0] = json!(-1.0)), "must be finite and not negative");
    fails(&with(&|m| m["demands"][0][0] = json!("much")), "invalid type");
    fails(&with(&|m| m["stations"][0]["sheduling"] = json!("fcfs")), "unknown field `sheduling`");
    fails(&with(&|m| m["classes"][0]["rate"] = json!(1e9)), "cannot keep up");
    fails(&with(&|m| m["classes"][0]["rate"] = Value::Null), "needs a rate");
    fails(&with(&|m| m["demands"] = json!([[1.0]])), "rows of demands");
    let closed = with(&|m| m["classes"][0] = json!({ "name": "c", "type": "closed", "population": 0 }));
    fails(&closed, "at least 1");
    let path = with(&|_| ());
    plan(&["solve", &path, "--method", "mva"]).fails(2, "`linearizer`");
    plan(&["solve"]).fails(2, "<MODEL>");
    plan(&[]).fails(2, "solve");
}

#[test]
fn unknown_parts_of_a_model_are_named_and_ignored() {
    let files = Files::new();
    let path = files.write("case.json", case("qsp_p113_open").to_string());
    let done = plan(&["solve", &path]).exits(&[0]);
    assert!(done.stderr.contains("`expected` is not a part of a model"), "{}", done.stderr);
}

#[test]
fn the_page_contains_the_document() {
    let files = Files::new();
    let path = files.write("paper.json", paper_model().to_string());
    let html = path_argument(&files.path("page.html"));
    let solved = json(&["solve", &path, "--html", &html]);
    assert_eq!(embedded_document("solution", &html), solved);
    assert_same_keys_as_example("solution.json", &solved);
    plan(&["solve", &path, "--html", &path_argument(&files.path(""))]).fails(3, "choose another place with --html");
    let full = plan(&["solve", &path, "--html", "/dev/full"]).exits(&[3]);
    assert!(full.stderr.contains("No space left") && full.stdout.contains("bottleneck"), "{full:#?}");
}

#[test]
fn results_are_written_to_the_given_files() {
    let files = Files::new();
    let path = files.write("model.json", model(&case("qsp_p113_open")).to_string());
    let out = path_argument(&files.path("solved.json"));
    let done = plan(&["solve", &path, "--out", &out]).exits(&[0]);
    assert!(done.stdout.contains("bottleneck") && done.stderr.is_empty(), "{done:#?}");
    let written: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(written, json(&["solve", &path]));
    plan(&["solve", &path, "--out", &path_argument(&files.path(""))]).fails(3, "choose another place with --out");
    let full = plan(&["solve", &path, "--out", "/dev/full"]).exits(&[3]);
    assert!(full.stderr.contains("No space left") && full.stdout.contains("\"throughput\""), "{full:#?}");
}
