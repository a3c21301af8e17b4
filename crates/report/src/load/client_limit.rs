//! The text report of a calibration of the client, which measures the maximum load that it can generate.

use super::layout::labelled;
use crate::format::{figure, table, words, wrap};
use brimful_core::quantity::{number, rate, signed_number};
use brimful_core::record::{ClientCalibration, ClientLevel};

/// Formats the maximum load that the client can generate, and how it was measured, as plain text that ends in a
/// newline.
pub fn client_limit(calibration: &ClientCalibration) -> String {
    let maximum = match calibration.max_rate {
        Some(max) if calibration.lower_bound => {
            format!(
                "at least {}: what answered fell short before the client did, or the search was cut short",
                rate(max)
            )
        }
        Some(max) => format!("{}: the largest load of which two generators bring no more than one", rate(max)),
        None => "none: at every load that was tried the client was the limit itself".to_owned(),
    };
    let mut lines = vec![labelled("Client maximum", &maximum), String::new()];
    let level_row = |level: &ClientLevel| {
        let difference =
            signed_number(level.two_generators - level.one_generator) + &spread(level.difference_ci95_half_width);
        let [one, two] =
            [(level.one_generator, level.one_generator_stddev), (level.two_generators, level.two_generators_stddev)];
        let [one, two] = [one, two].map(|(mean, stddev)| number(mean) + &spread(stddev));
        vec![rate(level.load), one, two, difference, level.limited.clone().unwrap_or_default()]
    };
    let columns = [
        words("Load", 0),
        figure("one generator", 2, None),
        figure("two", 2, None),
        figure("difference (95 %)", 2, None),
        words("", 2),
    ];
    let rows: Vec<_> = calibration.curve.iter().map(level_row).collect();
    lines.push(table(&columns, &rows).trim_end().to_owned());
    if calibration.second_shares_cpus {
        let note = "note: Without free CPUs, the second generator shared those of the first or of the server, so two \
                    may look worse here than from two hosts; the client's own lateness and CPU time decide more.";
        lines.extend([String::new(), wrap(note, 0).trim_end().to_owned()]);
    }
    lines.join("\n") + "\n"
}

fn spread(half_width: Option<f64>) -> String {
    half_width.map_or(String::new(), |half_width| format!(" ± {}", number(half_width)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fixture::record;
    use crate::load::{Detail, text};

    #[test]
    fn what_a_client_can_offer_and_how_that_was_found() {
        let level = |load: f64, one: f64, two: f64, limited: Option<&str>| ClientLevel {
            load,
            pairs: 3,
            one_generator: one,
            one_generator_stddev: Some(12.4),
            two_generators: two,
            two_generators_stddev: Some(7.0),
            difference_ci95_half_width: Some(30.0),
            limited: limited.map(str::to_owned),
        };
        let curve = vec![
            level(2_000.0, 1_999.0, 2_000.0, None),
            level(4_000.0, 3_000.0, 3_950.0, Some("two bring 950/s more")),
        ];
        let mut found = ClientCalibration { max_rate: Some(2_000.0), curve, ..ClientCalibration::default() };
        let expected = "\
Client maximum   2,000/s: the largest load of which two generators bring no more than one

Load     one generator           two  difference (95 %)
2,000/s   1,999 ± 12.4  2,000 ± 7.00       +1.00 ± 30.0
4,000/s   3,000 ± 12.4  3,950 ± 7.00        +950 ± 30.0  two bring 950/s more
";
        assert_eq!(client_limit(&found), expected);
        found.lower_bound = true;
        found.second_shares_cpus = true;
        let shown = client_limit(&found);
        assert!(
            shown.starts_with("Client maximum   at least 2,000/s: ") && shown.contains("\n\nnote: Without free CPUs"),
            "{shown}"
        );
        let mut record = record();
        record.generator.max_rate = found.max_rate;
        assert!(text(&record, Detail::Full).contains("\nClient maximum   2,000/s\n"));
        record.calibration = Some(found);
        assert!(text(&record, Detail::Full).contains("\nClient maximum   at least 2,000/s\n"));
        assert!(client_limit(&ClientCalibration::default()).starts_with("Client maximum   none: "));
    }
}
