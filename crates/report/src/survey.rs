//! The survey on the terminal: plain text, at most 100 columns wide.

use crate::format::{
    Column, NAMES, error, fact, figure, harmless, number, percent, rate, seconds, shorten, table, words, wrap,
};
use brimful_core::survey::{Demand, Level, Role, Survey};

/// What was found, level by level and in sum; ends in a newline.
pub fn text(survey: &Survey) -> String {
    let parts = [
        wrap(&survey.headline, 0),
        if survey.levels.is_empty() { String::new() } else { table(&LEVELS, &rows(&survey.levels, level)) },
        if survey.demands.is_empty() { String::new() } else { table(&DEMANDS, &rows(&survey.demands, demand)) },
        conclusion(survey),
    ];
    let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    harmless(&text)
}

const LEVELS: [Column<'static>; 12] = [
    words("role", 0),
    words("workload", 1),
    figure("offered", 2, None),
    figure("pred.", 2, Some("throughput (/s)")),
    figure("meas.", 1, None),
    figure("error", 1, None),
    figure("pred.", 2, Some("mean response time")),
    figure("meas.", 1, None),
    figure("±", 1, None),
    figure("error", 1, None),
    figure("pred.", 2, Some("utilization")),
    figure("meas.", 1, None),
];

fn level(level: &Level) -> Vec<String> {
    let (throughput, response, utilization) = (level.throughput, level.response_time_s, level.utilization);
    vec![
        format!("{}{}", role(level.role), if level.verdict.valid { "" } else { DOUBT }),
        shorten(&level.workload, 8),
        number(Some(level.offered)),
        number(throughput.predicted),
        number(throughput.measured),
        error(throughput.error),
        seconds(response.predicted),
        seconds(response.measured),
        seconds(response.measured_ci95_half_width),
        error(response.error),
        percent(utilization.predicted),
        percent(utilization.measured),
    ]
}

/// Marks a level that cannot be trusted.
const DOUBT: &str = " *";

fn role(role: Role) -> &'static str {
    match role {
        Role::Calibration => "calibration",
        Role::HeldOut => "held out",
        Role::PastSaturation => "past sat.",
    }
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
    let off = demand.truth.filter(|truth| *truth != 0.0).map(|truth| demand.seconds / truth - 1.0);
    vec![
        shorten(&demand.station, 30),
        shorten(&demand.class, 30),
        seconds(Some(demand.seconds)),
        seconds(demand.ci95_half_width),
        seconds(demand.truth),
        error(off),
    ]
}

fn conclusion(survey: &Survey) -> String {
    let saturation = survey.saturation_rate;
    let interval = saturation.measured_ci95_half_width.map_or(String::new(), |half| format!(" ± {}", rate(Some(half))));
    let saturation = format!(
        "predicted {}, measured {}{interval}, error {}",
        rate(saturation.predicted),
        rate(saturation.measured),
        error(saturation.error)
    );
    let saturation = if survey.is_measured_well() { saturation } else { format!("not determined; {saturation}") };
    let mut text = fact("saturation", &saturation);
    if survey.client_max_rate.is_some() {
        text += &fact("client", &format!("can offer {}", rate(survey.client_max_rate)));
    }
    if let Some(stopped) = &survey.stopped {
        text += &fact("stopped", &format!("at {}: {}", stopped.level, stopped.reason));
    }
    let verdict = match (survey.verdict.valid, survey.is_measured_well()) {
        (true, _) => "valid",
        (false, true) => "NOT VALID: the measurements hold, and the model does not",
        (false, false) => "NOT VALID: do not trust these numbers",
    };
    text += &fact("verdict", verdict);
    for reason in &survey.verdict.reasons {
        text += &fact("hint:", &reason.message);
    }
    if survey.levels.iter().any(|level| !level.verdict.valid) {
        text += &fact("", "* a level in doubt; the report and the JSON document say why of each");
    }
    if let Some(report) = &survey.report {
        // A path is there to be copied, so it is never broken.
        text += &format!("{:<NAMES$}{report}\n", "report");
    }
    text
}

fn rows<T>(items: &[T], row: fn(&T) -> Vec<String>) -> Vec<Vec<String>> {
    items.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::WIDTH;
    use crate::json;
    use brimful_core::model::Model;
    use brimful_core::record::{Reason, ReasonCode, Verdict};
    use brimful_core::survey::{Comparison, Percentiles, Stopped};

    fn a_level(role: Role, workload: &str, offered: f64, predicted: Option<f64>, measured: f64) -> Level {
        let response = Comparison::of(predicted, Some(measured));
        Level {
            fraction: offered / 500.0,
            offered,
            role,
            workload: workload.to_owned(),
            clients: None,
            window_s: 10.0,
            throughput: Comparison::of(Some(offered.min(500.0)), Some(offered.min(490.0))),
            response_time_s: Comparison { measured_ci95_half_width: Some(measured / 50.0), ..response },
            response_percentiles_s: Percentiles::default(),
            utilization: Comparison::of(Some(offered.min(500.0) / 500.0), Some(offered.min(490.0) / 490.0)),
            cpu: None,
            error_share: 0.0,
            lateness_p50_s: None,
            lateness_p99_s: None,
            verdict: Verdict::from_reasons(Vec::new()),
            classes: Vec::new(),
        }
    }

    fn a_survey() -> Survey {
        Survey {
            schema: brimful_core::survey::SCHEMA.to_owned(),
            started_at: "2026-01-14T09:30:00Z".to_owned(),
            brimful_version: "0.1.0".to_owned(),
            command: vec!["brimful".to_owned(), "survey".to_owned()],
            seed: 7,
            url: "http://server.example/".to_owned(),
            headline: "The server takes 490 requests per second.".to_owned(),
            saturation_rate: Comparison {
                measured_ci95_half_width: Some(4.5),
                ..Comparison::of(Some(500.0), Some(490.0))
            },
            levels: vec![
                a_level(Role::Calibration, "page", 50.0, None, 0.00222),
                a_level(Role::Calibration, "mix", 100.0, Some(0.0025), 0.00245),
                a_level(Role::HeldOut, "mix", 375.0, Some(0.008), 0.0085),
                a_level(Role::PastSaturation, "mix", 600.0, None, 1.5),
            ],
            demands: vec![
                Demand {
                    station: "server cpu".to_owned(),
                    class: "page".to_owned(),
                    seconds: 0.002,
                    ci95_half_width: Some(3.2e-5),
                    truth: Some(0.00196),
                },
                Demand {
                    station: "network".to_owned(),
                    class: "page".to_owned(),
                    seconds: 0.00018,
                    ci95_half_width: None,
                    truth: None,
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
            report: Some("brimful-survey.html".to_owned()),
        }
    }

    #[test]
    fn a_survey_reads_like_this() {
        assert_eq!(text(&a_survey()), WHOLE);
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
        survey.client_max_rate = None;
        survey.report = None;
        survey.stopped = Some(Stopped { level: "mix at 20 %".to_owned(), reason: "Ctrl-C was pressed.".to_owned() });
        assert_eq!(text(&survey), STOPPED);
    }

    #[test]
    fn a_refuted_model_is_apart_from_measurements_that_hold() {
        let why = Reason { code: ReasonCode::ModelRefuted, message: "It predicted too little.".to_owned() };
        let text = text(&Survey { verdict: Verdict::from_reasons(vec![why]), ..a_survey() });
        assert!(text.contains("saturation  predicted 500/s, measured 490/s"), "{text}");
        assert!(text.contains("NOT VALID: the measurements hold, and the model does not\n"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_a_hundred_columns() {
        let mut survey = a_survey();
        survey.headline = "wide ".repeat(60);
        survey.demands[0].station = "a station with a name that goes on and on and on".to_owned();
        survey.demands[0].class = survey.demands[0].station.clone();
        let wide = |predicted, measured| Comparison {
            measured_ci95_half_width: Some(0.000_123_4),
            ..Comparison::of(Some(predicted), Some(measured))
        };
        for level in &mut survey.levels {
            level.workload = "a-class-with-a-long-name".to_owned();
            level.offered = 999_999.0;
            level.throughput = wide(999_999.0, 888_888.0);
            level.response_time_s = wide(0.012_34, 0.000_123_4);
            level.utilization = wide(0.999, 0.998);
        }
        let text = text(&survey);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(WIDTH), "{widest:?} columns:\n{text}");
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let mut survey = a_survey();
        survey.levels[0].workload = "\u{1b}[2Jx".to_owned();
        survey.report = Some("a\u{9b}b".to_owned());
        assert!(!text(&survey).contains(|c: char| c.is_control() && c != '\n'));
    }

    #[test]
    fn json_is_indented_ends_in_a_newline_and_reads_back() {
        let survey = a_survey();
        let json = json::survey(&survey).unwrap();
        assert!(json.starts_with("{\n  \"schema\": \"brimful.survey/1\",\n") && json.ends_with("\n}\n"));
        assert_eq!(serde_json::from_str::<Survey>(&json).unwrap(), survey);
    }

    const WHOLE: &str = "\
The server takes 490 requests per second.

                               throughput (/s)     mean response time              utilization
role        workload  offered  pred. meas.  error    pred.   meas.       ±  error   pred.  meas.
calibration page         50.0   50.0  50.0 +0.0 %        - 2.22 ms 44.4 µs      -  10.0 % 10.2 %
calibration mix           100    100   100 +0.0 %  2.50 ms 2.45 ms 49.0 µs +2.0 %  20.0 % 20.4 %
held out    mix           375    375   375 +0.0 %  8.00 ms 8.50 ms  170 µs −5.9 %  75.0 % 76.5 %
past sat.   mix           600    500   490 +2.0 %        -  1.50 s 30.0 ms      -   100 %  100 %

station     class   demand        ±    truth   error
server cpu  page   2.00 ms  32.0 µs  1.96 ms  +2.0 %
network     page    180 µs        -        -       -

saturation  predicted 500/s, measured 490/s ± 4.50/s, error +2.0 %
client      can offer 48,000/s
verdict     valid
report      brimful-survey.html
";

    const STOPPED: &str = "\
Nothing is known yet.

                                 throughput (/s)     mean response time           utilization
role          workload  offered  pred. meas.  error  pred.   meas.       ± error   pred.  meas.
calibration * page         50.0   50.0  50.0 +0.0 %      - 2.22 ms 44.4 µs     -  10.0 % 10.2 %

saturation  not determined; predicted -, measured -, error -
stopped     at mix at 20 %: Ctrl-C was pressed.
verdict     NOT VALID: do not trust these numbers
hint:       1.2 % of the calls began more than 1 ms late: give the generator a CPU of its own with
            --cpus, or ask for less with --max-rate
            * a level in doubt; the report and the JSON document say why of each
";
}
