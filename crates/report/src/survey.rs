//! The text report of a survey, at most 100 columns wide.
//!
//! A survey measures the server at several loads (levels). The report shows the levels from which the model was
//! calibrated, the held-out levels (which test its predictions), the levels beyond the server's capacity, and the
//! conclusions. Below saturation, throughput equals the offered load, so throughput is shown only for levels where the
//! two differ.

mod answer;
mod conclusion;
mod levels;

use crate::format::{
    Column, error, figure, interval, labels, percent, rate, seconds, table, without_control_characters, words, wrap,
};
use crate::load::Detail;
use answer::answer;
use brimful_core::quantity;
use brimful_core::slo::{Measure, Slo};
use brimful_core::survey::{Demand, ProgramDemand, RateUnderObjective, Survey};
use conclusion::conclusion;
use levels::{calibration, held_out, past_saturation, what_if};

/// Formats the survey as text that ends in a newline. `detail` selects the main results or all results.
pub fn text(survey: &Survey, detail: Detail) -> String {
    let text = match detail {
        Detail::Main => answer(survey),
        Detail::Full => full(survey),
    };
    without_control_characters(&text)
}

fn full(survey: &Survey) -> String {
    let parts = [
        wrap(&survey.headline, 0),
        objectives(&survey.objectives),
        calibration(survey),
        held_out(survey),
        past_saturation(survey),
        what_if(survey),
        if survey.demands.is_empty() { String::new() } else { table(&DEMANDS, &rows(&survey.demands, demand)) },
        programs(&survey.programs),
        conclusion(survey),
        if survey.labels.is_empty() { String::new() } else { wrap(&format!("labels: {}", labels(&survey.labels)), 0) },
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// A table of the highest rate at which each objective is met, predicted and measured.
fn objectives(results: &[RateUnderObjective]) -> String {
    const COLUMNS: [Column<'static>; 7] = [
        words("objective", 0),
        figure("light load", 2, None),
        figure("predicted", 2, None),
        figure("90 % interval", 2, None),
        figure("measured", 2, None),
        figure("90 % interval", 2, None),
        figure("slices", 2, None),
    ];
    let row = |result: &RateUnderObjective| {
        let between = |bounds: Option<[f64; 2]>| bounds.map_or("-".to_owned(), |[low, high]| interval(low, high, rate));
        let is_share = result.objective.parse().is_ok_and(|slo: Slo| matches!(slo.measure, Measure::ErrorShare { .. }));
        vec![
            result.objective.replacen('<', " < ", 1),
            if is_share { percent(result.light_load) } else { seconds(result.light_load) },
            rate(result.rate.predicted),
            between(result.rate.interval90),
            rate(result.rate.measured),
            between(result.measured_interval90),
            quantity::count(result.slices.len() as u64),
        ]
    };
    if results.is_empty() { String::new() } else { table(&COLUMNS, &rows(results, row)) }
}

const DEMANDS: [Column<'static>; 6] = [
    words("station", 0),
    words("class", 2),
    figure("demand", 2, None),
    figure("±", 2, None),
    figure("truth", 2, None),
    figure("error", 2, None),
];

fn demand(demand: &Demand) -> Vec<String> {
    let off = demand.true_seconds.filter(|truth| *truth != 0.0).map(|truth| demand.seconds / truth - 1.0);
    vec![
        demand.station.clone(),
        demand.class.clone(),
        seconds(Some(demand.seconds)),
        seconds(demand.ci95_half_width),
        seconds(demand.true_seconds),
        error(off),
    ]
}

/// Describes the CPU time per call of each of the server's programs; empty if there is only one.
fn programs(programs: &[ProgramDemand]) -> String {
    const COLUMNS: [Column<'static>; 5] = [
        words("program", 0),
        figure("CPU time", 2, None),
        figure("±", 2, None),
        figure("share", 2, None),
        figure("processes", 2, None),
    ];
    let row = |program: &ProgramDemand| {
        vec![
            program.name.clone(),
            seconds(Some(program.demand_s)),
            seconds(program.ci95_half_width),
            percent(Some(program.share)),
            quantity::count(program.processes),
        ]
    };
    if programs.len() < 2 { String::new() } else { table(&COLUMNS, &rows(programs, row)) }
}

fn clients(number: u64) -> String {
    if number == 1 { "1 client".to_owned() } else { format!("{} clients", quantity::count(number)) }
}

fn rows<T>(items: &[T], row: fn(&T) -> Vec<String>) -> Vec<Vec<String>> {
    items.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::DEFAULT_WIDTH;
    use crate::json;
    use brimful_core::model::Model;
    use brimful_core::record::{Reason, ReasonCode, Verdict};
    use brimful_core::survey::{
        CalibrationImpact, Comparison, Connections, CostFormula, Level, LevelPurpose, ObjectiveOutcome, ObjectiveSlice,
        Overload, ResponsePercentiles, ServerPauses, Stopped, ThroughputByClients, WhatIf,
    };

    fn a_level(role: LevelPurpose, workload: &str, offered: f64, measured: f64) -> Level {
        let response = Comparison { measured_ci95_half_width: Some(measured / 50.0), ..Comparison::measured(measured) };
        Level {
            fraction: offered / 500.0,
            offered,
            role,
            workload: workload.to_owned(),
            clients: None,
            window_s: 10.0,
            throughput: Comparison::measured(offered.min(490.0)),
            response_time_s: response,
            steady_response_s: None,
            host_speed: None,
            host_speed_change: None,
            response_percentiles_s: ResponsePercentiles::default(),
            utilization: Comparison::measured(offered.min(490.0) / 490.0),
            cpu: None,
            error_share: 0.0,
            lateness_p50_s: None,
            lateness_p99_s: None,
            verdict: Verdict::from_reasons(Vec::new()),
            classes: Vec::new(),
        }
    }

    fn full_text(survey: &Survey) -> String {
        text(survey, Detail::Full)
    }

    /// Changes a level of the survey to a closed load with this number of clients.
    fn closed(level: Level, clients: u64) -> Level {
        Level { clients: Some(clients), ..level }
    }

    /// Adds predictions to a level of the survey. The predicted mean response time is `response`, and the other
    /// predictions are close to the measured values.
    fn predicted(level: Level, response: f64) -> Level {
        let mean = level.response_time_s;
        let around = |of: f64| Some([0.9 * of, 1.1 * of]);
        let ratio = level.utilization.measured;
        Level {
            response_time_s: Comparison {
                interval90: around(response),
                error_drift: Some(-0.011),
                measured_ci95_half_width: mean.measured_ci95_half_width,
                ..Comparison::new(Some(response), mean.measured)
            },
            response_percentiles_s: ResponsePercentiles {
                p95: Comparison {
                    interval90: around(3.0 * response),
                    ..Comparison::new(Some(3.0 * response), mean.measured.map(|measured| 3.2 * measured))
                },
                ..level.response_percentiles_s
            },
            utilization: Comparison { interval90: ratio.and_then(around), ..Comparison::new(ratio, ratio) },
            ..level
        }
    }

    fn saturated(level: Level) -> Level {
        let throughput = Comparison::new(Some(500.0), level.throughput.measured);
        Level {
            throughput: Comparison { error_drift: Some(0.008), measured_ci95_half_width: Some(4.5), ..throughput },
            utilization: Comparison::new(Some(1.0), level.utilization.measured),
            ..level
        }
    }

    fn a_survey() -> Survey {
        Survey {
            schema: brimful_core::survey::SCHEMA.to_owned(),
            started_at: "2026-01-14T09:30:00Z".to_owned(),
            brimful_version: "0.1.0".to_owned(),
            command: vec!["brimful".to_owned(), "survey".to_owned()],
            labels: Default::default(),
            machine: None,
            seed: 7,
            url: "http://server.example/".to_owned(),
            headline: "The server takes 490 requests per second.".to_owned(),
            saturation_rate: Comparison {
                interval90: Some([485.0, 515.0]),
                error_drift: Some(0.008),
                measured_ci95_half_width: Some(4.5),
                ..Comparison::new(Some(500.0), Some(490.0))
            },
            objectives: vec![RateUnderObjective {
                objective: "p99<50ms".to_owned(),
                limit: Some(0.05),
                light_load: Some(0.005),
                rate: Comparison { interval90: Some([420.0, 450.0]), ..Comparison::new(Some(436.0), Some(441.0)) },
                measured_interval90: Some([432.0, 449.0]),
                outcome: ObjectiveOutcome::MetUpToRate,
                slices: vec![ObjectiveSlice { rate: 436.0, calls: 523, violations: 4, figure: Some(0.047) }],
                ..RateUnderObjective::default()
            }],
            levels: vec![
                a_level(LevelPurpose::Calibration, "mix", 50.0, 0.00222),
                closed(a_level(LevelPurpose::Calibration, "search", 150.0, 0.0533), 8),
                closed(a_level(LevelPurpose::Calibration, "1 at once", 445.0, 0.002_25), 1),
                closed(a_level(LevelPurpose::Calibration, "8 at once", 490.0, 0.0163), 8),
                predicted(a_level(LevelPurpose::HeldOut, "unseen mix", 222.0, 0.00245), 0.0025),
                predicted(a_level(LevelPurpose::HeldOut, "mix", 375.0, 0.0095), 0.008),
                closed(saturated(a_level(LevelPurpose::PastSaturation, "mix", 490.0, 0.0163)), 8),
                saturated(a_level(LevelPurpose::PastSaturation, "mix", 600.0, 1.5)),
            ],
            demands: vec![
                Demand {
                    station: "server cpu".to_owned(),
                    class: "page".to_owned(),
                    seconds: 0.002,
                    ci95_half_width: Some(3.2e-5),
                    true_seconds: Some(0.00196),
                },
                Demand {
                    station: "network".to_owned(),
                    class: "page".to_owned(),
                    seconds: 0.00018,
                    ci95_half_width: None,
                    true_seconds: None,
                },
            ],
            client_max_rate: Some(48_000.0),
            verdict: Verdict::from_reasons(Vec::new()),
            model: Model::default(),
            stopped: None,
            server_cpus: vec![0],
            client_cpus: vec![1],
            background: None,
            wakeup_s: None,
            cost_formulas: vec![
                CostFormula { name: "idle^1".to_owned(), left_out_error: 0.018 },
                CostFormula { name: "idle^2".to_owned(), left_out_error: 0.13 },
            ],
            throughput_by_clients: vec![ThroughputByClients {
                clients: 8,
                throughput: 490.0,
                utilization: Some(0.991),
                ..ThroughputByClients::default()
            }],
            bottleneck: Some("cpu".to_owned()),
            bottleneck_evidence: Some("99.1 % busy with 8 clients at once".to_owned()),
            programs: Vec::new(),
            module_measurements: None,
            speed_by_block: vec![1.01, 0.93, 1.06],
            connections: Connections { max_connections: Some(32), ..Connections::default() },
            calibration_impact: Some(CalibrationImpact {
                mean_load: 0.22,
                max_load: Some(0.3),
                max_clients: 8,
                longest_wait_s: 0.0163,
                max_delay_s: Some(0.2),
            }),
            pauses: None,
            overload: Some(Overload {
                offered: 585.0,
                pooled: 447.0,
                pooled_difference: 6.0,
                unlimited: 451.0,
                connections: 1_340,
            }),
            what_if: None,
            elapsed_s: Some(252.0),
            report: Some("brimful-survey.html".to_owned()),
        }
    }

    #[test]
    fn a_survey_reads_like_this() {
        assert_eq!(full_text(&a_survey()), WHOLE);
    }

    #[test]
    fn the_answer_takes_ten_lines() {
        assert_eq!(text(&a_survey(), Detail::Main), ANSWER);
        let mut survey = a_survey();
        survey.objectives[0].rate.measured = None;
        let text = text(&survey, Detail::Main);
        assert!(text.contains("432/s … 449/s"), "a rate that is not known precisely is an interval: {text}");
    }

    #[test]
    fn pauses_have_a_rate_and_a_length() {
        let pauses = ServerPauses { per_second: 1.2, per_call: 0.001, mean_s: 0.03, longest_s: 0.05, observed: 20 };
        let survey = Survey { pauses: Some(pauses), ..a_survey() };
        let line =
            "pauses      1.20 a second and one in 1,000 calls, 30.0 ms on average, up to 50.0 ms (20 seen between";
        assert!(full_text(&survey).contains(line), "{}", full_text(&survey));
    }

    #[test]
    fn the_answer_says_how_much_an_overloaded_server_loses_without_a_connection_pool() {
        let mut survey = a_survey();
        let measured = |pooled_difference| Overload { unlimited: 290.0, pooled_difference, ..survey.overload.unwrap() };
        let steady = Survey { overload: Some(measured(6.0)), ..survey.clone() };
        let answer = text(&steady, Detail::Main);
        let line = "overload    447/s through a pool; 290/s (−35.1 %) if each waiting call opens a connection\n";
        assert!(answer.contains(line), "{answer}");
        // The two runs with the pool now differ by 120/s, nearly as much as runs with and without it. So the loss may
        // be noise, and the report must not mention it.
        survey.overload = Some(measured(120.0));
        assert!(!text(&survey, Detail::Main).contains("overload"));
    }

    #[test]
    fn a_survey_that_stopped_says_why_and_what_to_do() {
        let late = Reason {
            code: ReasonCode::GeneratorLate,
            message:
                "1.2 % of the calls began more than 1 ms late: give the generator a CPU of its own with --cpus, or \
                      ask for less with --max-rate"
                    .to_owned(),
        };
        let mut survey = a_survey();
        survey.headline = "Nothing is known yet.".to_owned();
        survey.saturation_rate = Comparison::default();
        survey.levels.truncate(1);
        survey.levels[0].verdict = Verdict::from_reasons(vec![late.clone()]);
        survey.verdict = Verdict::from_reasons(vec![late]);
        survey.demands.clear();
        survey.objectives.clear();
        survey.cost_formulas.clear();
        survey.speed_by_block.clear();
        (survey.client_max_rate, survey.bottleneck, survey.calibration_impact) = (None, None, None);
        (survey.overload, survey.report) = (None, None);
        survey.stopped = Some(Stopped { level: "mix at 20 %".to_owned(), reason: "Ctrl-C was pressed.".to_owned() });
        assert_eq!(full_text(&survey), STOPPED);
        // Expects that the reason of the stop is not repeated if a reason of the verdict contains it.
        let message = "The survey stopped at the level «mix at 20 %»: Ctrl-C was pressed.".to_owned();
        survey.verdict = Verdict::from_reasons(vec![Reason { code: ReasonCode::Incomplete, message }]);
        assert_eq!(full_text(&survey).matches("Ctrl-C").count(), 1, "{}", full_text(&survey));
    }

    #[test]
    fn what_is_not_known_of_the_client_by_tls_is_said() {
        let survey = Survey { url: "https://127.0.0.1/".to_owned(), client_max_rate: None, ..a_survey() };
        let said = full_text(&survey).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("client its maximum by TLS is not known: each level was judged by"), "{said}");
    }

    #[test]
    fn a_refuted_model_is_apart_from_measurements_that_hold() {
        let why = Reason { code: ReasonCode::ModelRefuted, message: "It predicted too little.".to_owned() };
        let text = full_text(&Survey { verdict: Verdict::from_reasons(vec![why]), ..a_survey() });
        assert!(text.contains("saturation  predicted 500/s (485 … 515), measured 490/s"), "{text}");
        assert!(text.contains("NOT VALID: the measurements hold, and the model does not\n"), "{text}");
    }

    #[test]
    fn a_survey_of_an_earlier_version_is_read_and_shown() {
        let mut old = serde_json::to_value(a_survey()).unwrap();
        let new = [
            "objectives",
            "laws",
            "throughput_by_clients",
            "bottleneck",
            "speed_by_block",
            "inflicted",
            "elapsed_s",
            "connections",
            "overload",
        ];
        let all = old.as_object_mut().unwrap();
        all.retain(|name, _| !new.contains(&name.as_str()));
        without(&mut old, &["interval90", "error_drift", "steady_response_s", "host_speed"]);
        let text = full_text(&serde_json::from_value(old).unwrap());
        assert!(text.contains("mix         75 %    375/s    8.00 ms              -   9.50 ms   190 µs"), "{text}");
        assert!(text.contains("saturation  predicted 500/s, measured 490/s ± 4.50/s, error +2.0 %\nclient "), "{text}");
    }

    /// Removes the fields with these names from a JSON value, at any depth.
    fn without(value: &mut serde_json::Value, names: &[&str]) {
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            fields.values_mut().for_each(|value| without(value, names));
        } else if let Some(items) = value.as_array_mut() {
            items.iter_mut().for_each(|value| without(value, names));
        }
    }

    #[test]
    fn levels_in_doubt_say_nothing_about_intervals() {
        let mut survey = a_survey();
        assert!(full_text(&survey).contains("intervals   6 of 8 hold"), "{}", full_text(&survey));
        let late = Reason { code: ReasonCode::GeneratorLate, message: "Late.".to_owned() };
        survey.levels[5].verdict = Verdict::from_reasons(vec![late]);
        let text = full_text(&survey);
        assert!(text.contains("intervals   5 of 5 hold"), "{text}");
        assert!(text.contains("\nmix *  ") && text.contains("; levels in doubt are not counted\n"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_a_hundred_columns() {
        let mut survey = a_survey();
        survey.headline = "wide ".repeat(60);
        survey.demands[0].station = "a station with a name that goes on and on and on".to_owned();
        survey.demands[0].class = survey.demands[0].station.clone();
        let wide = |predicted, measured| Comparison {
            interval90: Some([measured, predicted]),
            error_drift: Some(-0.123),
            measured_ci95_half_width: Some(0.000_123_4),
            ..Comparison::new(Some(predicted), Some(measured))
        };
        survey.saturation_rate = wide(999_999.0, 888_888.0);
        for level in &mut survey.levels {
            level.workload = "a-class-with-a-long-name".to_owned();
            level.offered = 999_999.0;
            level.throughput = wide(999_999.0, 888_888.0);
            level.response_time_s = wide(0.012_34, 0.000_123_4);
            level.response_percentiles_s.p95 = wide(0.012_34, 0.000_123_4);
            level.utilization = wide(0.999, 0.998);
        }
        let text = full_text(&survey);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(DEFAULT_WIDTH), "{widest:?} columns:\n{text}");
    }

    #[test]
    fn the_example_is_shown_whole() {
        let survey: Survey = serde_json::from_str(include_str!("../../../web/example.survey.json")).unwrap();
        let text = full_text(&survey);
        assert!(text.lines().all(|line| line.chars().count() <= DEFAULT_WIDTH), "{text}");
        // The HTML page must contain the same text; `web/test` checks this.
        assert!(text.contains("\nintervals   38 of 42 hold"), "{text}");
        assert!(text.contains("9.20 ms  8.58 … 9.89 ms   8.92 ms ✓"), "{text}");
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let mut survey = a_survey();
        survey.levels[0].workload = "\u{1b}[2Jx".to_owned();
        survey.report = Some("a\u{9b}b".to_owned());
        assert!(!full_text(&survey).contains(|c: char| c.is_control() && c != '\n'));
    }

    #[test]
    fn json_is_indented_ends_in_a_newline_and_reads_back() {
        let survey = a_survey();
        let json = json::survey(&survey).unwrap();
        assert!(json.starts_with("{\n  \"schema\": \"brimful.survey/1\",\n") && json.ends_with("\n}\n"));
        assert_eq!(serde_json::from_str::<Survey>(&json).unwrap(), survey);
    }

    const ANSWER: &str = "\
The server takes 490 requests per second.

            predicted  90 % interval  measured   error
p99 < 50ms      436/s  420/s … 450/s     441/s  −1.1 %
capacity        500/s  485/s … 515/s     490/s  +2.0 %

limit       CPU, 99.1 % busy
predictions 6 of 8 within their 90 % interval
verdict     valid
report      brimful-survey.html
next        brimful load http://server.example/ --rate 397 -d 60s --slo 'p99<50ms' # try it
";

    const WHOLE: &str = "\
The server takes 490 requests per second.

objective   light load  predicted  90 % interval  measured  90 % interval  slices
p99 < 50ms     5.00 ms      436/s  420/s … 450/s     441/s  432/s … 449/s       1

calibration       load  throughput ±  mean response time       ±  utilization
mix             50.0/s      50.0/s -             2.22 ms 44.4 µs       10.2 %
mix           1 client       445/s -             2.25 ms 45.0 µs       90.8 %
mix          8 clients       490/s -             16.3 ms  326 µs        100 %
search       8 clients       150/s -             53.3 ms 1.07 ms       30.6 %

                           mean response time
held out    load  offered  predicted   90 % interval  measured         ±    error  host share
unseen mix  44 %    222/s    2.50 ms  2.25 … 2.75 ms   2.45 ms ✓ 49.0 µs   +2.0 %      −1.1 %
mix         75 %    375/s    8.00 ms  7.20 … 8.80 ms   9.50 ms ✗  190 µs  −15.8 %      −1.1 %

                  utilization                           95th percentile of response times
held out    load  predicted  90 % interval  measured    predicted   90 % interval  measured
unseen mix  44 %     45.3 %  40.8 … 49.8 %    45.3 % ✓    7.50 ms  6.75 … 8.25 ms   7.84 ms ✓
mix         75 %     76.5 %  68.9 … 84.2 %    76.5 % ✓    24.0 ms  21.6 … 26.4 ms   30.4 ms ✗

                            throughput                                   response  utilization
past saturation       load  predicted measured      ±  error host share     mean   pred. meas.
mix              8 clients      500/s    490/s 4.50/s +2.0 %     +0.8 %  16.3 ms   100 % 100 %
mix                  600/s      500/s    490/s 4.50/s +2.0 %     +0.8 %   1.50 s   100 % 100 %

station     class   demand        ±    truth   error
server cpu  page   2.00 ms  32.0 µs  1.96 ms  +2.0 %
network     page    180 µs        -        -       -

saturation  predicted 500/s (485 … 515), measured 490/s ± 4.50/s, error +2.0 %, host share +0.8 %
intervals   6 of 8 hold, and 90 % should: capacity 1 of 1, objectives 1 of 1, mean response 1 of 2,
            percentiles 1 of 2, utilization 2 of 2
law         idle^1, with an error of 1.8 % for loads left out of the fit; next idle^2, 13.0 %
full        cpu: 99.1 % busy with 8 clients at once
calibration mean load 22 % (30 % allowed), up to 8 clients, waits of up to 16.3 ms (200 ms allowed)
host        speed between blocks 0.93 … 1.06 of its mean
connections The survey uses a pool of at most 32 connections, for which calls wait.
overload    447/s through a pool; 451/s (+0.9 %) if each waiting call opens a connection
client      can offer 48,000/s
elapsed     252 s
verdict     valid
report      brimful-survey.html
";

    const STOPPED: &str = "\
Nothing is known yet.

calibration    load  throughput ±  mean response time       ±  utilization
mix *        50.0/s      50.0/s -             2.22 ms 44.4 µs       10.2 %

saturation  not determined; predicted -, measured -, error -
connections The survey uses a pool of at most 32 connections, for which calls wait.
elapsed     252 s
stopped     at mix at 20 %: Ctrl-C was pressed.
verdict     NOT VALID: do not trust these numbers
hint:       1.2 % of the calls began more than 1 ms late: give the generator a CPU of its own with
            --cpus, or ask for less with --max-rate
            * a level in doubt; the report and the JSON document say why of each
";

    #[test]
    fn a_change_is_shown_beside_what_it_did() {
        let capacity = Comparison { interval90: Some([240.0, 260.0]), ..Comparison::new(Some(250.0), Some(245.0)) };
        let what_if = WhatIf {
            change: "quota=50%".to_owned(),
            cpus: 0.5,
            period_s: 0.01,
            saturation_rate: capacity,
            utilization: Comparison::new(Some(0.5), Some(0.49)),
            offered: 125.0,
            response_time_s: Comparison::new(Some(0.0031), Some(0.0025)),
            host_speed: None,
            verdict: Verdict::from_reasons(Vec::new()),
        };
        let text = full_text(&Survey { what_if: Some(what_if), ..a_survey() });
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("quota=50% capacity 250/s 240/s … 260/s 245/s ✓ +2.0 %"), "{text}");
        assert!(words.contains("quota=50% mean response time at 125/s 3.10 ms - 2.50 ms +24.0 %"), "{text}");
    }
}
