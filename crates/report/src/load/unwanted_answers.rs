//! Notes about responses that the user probably does not want to measure: errors and redirects.

use crate::thresholds::{MAX_NAMED, NOTABLE_ERRORS};
use brimful_core::StatusClass;
use brimful_core::counts::Counts;
use brimful_core::quantity::{count, percent, pluralize};
use brimful_core::record::Record;
use brimful_core::text::one_line;

/// The hint to use `https://` if the port speaks TLS.
pub(super) const WANTS_TLS: &str = "The server speaks TLS on this port: write https:// in place of http://";

/// A note about a run in which few or no responses have status 2xx.
pub(super) fn note(record: &Record) -> Option<String> {
    let Counts { completed, status, .. } = record.counts;
    let all = match completed {
        1 => "The one response was".to_owned(),
        n => format!("All {} responses were", count(n)),
    };
    if completed == 0 {
        None
    } else if status.s2xx > 0 {
        mostly_no_pages(record)
    } else if record.wants_tls {
        Some(format!("{all} 4xx. {WANTS_TLS}."))
    } else if let Some(redirects) = &record.redirects {
        let elsewhere = redirects.not_followed.other_server;
        (elsewhere > 0).then(|| {
            format!(
                "{} led to another server, or to this one by another scheme or port, which is not followed. Give the URL that \
                 they lead to.",
                pluralize(elsewhere, "redirect")
            )
        })
    } else if status.s3xx == completed {
        Some(format!("{all} 3xx, and redirects are not followed. Give the URL that they lead to, or --follow 10."))
    } else if status.s3xx > 0 {
        None
    } else if status.s1xx == completed {
        Some(format!(
            "{all} 101: the server switched to another protocol, which is not spoken here, and each \
             of these connections was closed. Leave out the Upgrade header to measure HTTP."
        ))
    } else if status.s4xx == completed {
        Some(format!("{all} {}: {}", class_and_code(record, StatusClass::S4xx), rejected(record)))
    } else if status.s5xx == completed {
        let code = class_and_code(record, StatusClass::S5xx);
        Some(format!(
            "{all} {code}: the server fails at the request, and that is what was measured. \
             Check the server's error log."
        ))
    } else {
        Some(format!(
            "None of the {} responses was 2xx or 3xx: errors are what was measured. Check the path, and the \
             server's error log.",
            count(completed)
        ))
    }
}

/// A note about a run with some 2xx responses, in which most responses are 4xx or redirects.
fn mostly_no_pages(record: &Record) -> Option<String> {
    let Counts { completed, status, .. } = record.counts;
    // A 304 response (not modified) is not a redirect.
    let redirects = status.s3xx - record.status_codes.get("304").copied().unwrap_or(0).min(status.s3xx);
    let most = |n: u64| 2 * n > completed;
    let of_all = |n: u64| format!("{} of {} responses were", count(n), count(completed));
    if most(status.s4xx) {
        let class = class_and_code(record, StatusClass::S4xx);
        Some(format!("{} {class}: {}", of_all(status.s4xx), rejected(record)))
    } else if most(redirects) && record.redirects.is_none() {
        Some(format!("{} 3xx, and redirects are not followed. Give the URLs that they lead to.", of_all(redirects)))
    } else {
        None
    }
}

/// Says that the server rejects most requests (4xx), and what to check.
fn rejected(record: &Record) -> String {
    let advice = match only_code(record, StatusClass::S4xx).map_or("", String::as_str) {
        "404" => "Is the path right?",
        "429" => "It limits the rate of its clients: raise or switch off its limit for this client's address.",
        "401" | "403" => "Give the credentials that it wants, by --user or -H 'Authorization: …'.",
        _ => "Check the path, the headers that the server expects, and whether it wants https://.",
    };
    format!("the server rejects the request, and that is what was measured. {advice}")
}

/// The status code of all responses of a class if it is the same; otherwise `None`. Here, 429 belongs to 4xx.
fn only_code(record: &Record, class: StatusClass) -> Option<&String> {
    let digit = class.name().get(..1)?;
    let mut codes = record.status_codes.keys().filter(|code| code.starts_with(digit));
    codes.next().filter(|_| codes.next().is_none())
}

/// Names a status class; with the status code if it is the same for all its responses: `4xx`, or `4xx (404)`.
fn class_and_code(record: &Record, class: StatusClass) -> String {
    let code = only_code(record, class).map(|code| format!(" ({})", one_line(code)));
    class.name().to_owned() + &code.unwrap_or_default()
}

/// A warning about responses with status 5xx or 429 to calls that do not expect a particular status. The run's times
/// include these calls.
pub(super) fn warning(record: &Record) -> Option<String> {
    let refused = record.verdict.error_answers;
    let share = record.counts.share_of_calls(refused).filter(|share| *share >= NOTABLE_ERRORS)?;
    let code = |code: &str| code.parse().is_ok_and(|code| StatusClass::from_code(code).is_refusal());
    let codes = record.status_codes.iter().filter(|(name, _)| code(name));
    let codes: Vec<String> = codes.take(MAX_NAMED).map(|(code, calls)| format!("{code} {}", count(*calls))).collect();
    Some(format!(
        "WARNING: {} of {} calls were answered 5xx or 429 ({}): {}. The times of all answers include these; --full shows \
         those of each status class.",
        count(refused),
        count(record.counts.scheduled),
        percent(share),
        codes.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fixture::record;
    use brimful_core::counts::StatusCounts;
    use brimful_core::record::{NotFollowed, Redirects};

    #[test]
    fn figures_of_errors_only_are_pointed_out() {
        let answers = |status: StatusCounts| {
            let mut record = record();
            record.counts = Counts { scheduled: 10, completed: 10, status, ..Counts::default() };
            note(&record).unwrap_or_default()
        };
        let none = StatusCounts::default();
        assert!(
            answers(StatusCounts { s4xx: 10, ..none }).starts_with("All 10 responses were 4xx: the server rejects")
        );
        assert!(answers(StatusCounts { s5xx: 10, ..none }).starts_with("All 10 responses were 5xx: the server fails"));
        assert!(answers(StatusCounts { s4xx: 4, s5xx: 6, ..none }).starts_with("None of the 10 responses was 2xx"));
        assert!(answers(StatusCounts { s3xx: 10, ..none }).starts_with("All 10 responses were 3xx, and redirects"));
        let mut record = record();
        record.counts =
            Counts { scheduled: 10, completed: 10, status: StatusCounts { s3xx: 10, ..none }, ..record.counts };
        record.redirects = Some(Redirects::default());
        assert!(!note(&record).unwrap_or_default().contains("3xx"));
        record.redirects = Some(Redirects {
            not_followed: NotFollowed { other_server: 10, ..NotFollowed::default() },
            ..Redirects::default()
        });
        assert!(note(&record).unwrap_or_default().contains("10 redirects led to another server"));
        assert!(answers(StatusCounts { s1xx: 10, ..none }).starts_with("All 10 responses were 101: the server"));
        let most = answers(StatusCounts { s2xx: 1, s4xx: 9, ..none });
        assert!(most.starts_with("9 of 10 responses were 4xx: the server rejects the request"), "{most}");
        assert!(answers(StatusCounts { s2xx: 1, s3xx: 9, ..none }).starts_with("9 of 10 responses were 3xx, and"));
        assert_eq!(answers(StatusCounts { s2xx: 5, s4xx: 5, ..none }), "");
        assert_eq!(answers(StatusCounts { s3xx: 1, s4xx: 9, ..none }), "");
    }

    #[test]
    fn the_one_code_of_all_errors_is_named() {
        let answers = |code: u16, s2xx: u64, s3xx: u64, s4xx: u64| {
            let mut record = record();
            let status = StatusCounts { s2xx, s3xx, s4xx, ..StatusCounts::default() };
            record.counts = Counts { scheduled: 10, completed: 10, status, ..Counts::default() };
            record.status_codes = [(code.to_string(), s3xx + s4xx)].into();
            note(&record).unwrap_or_default()
        };
        let said = answers(404, 0, 0, 10);
        assert!(said.starts_with("All 10 responses were 4xx (404):") && said.contains("Is the path right?"), "{said}");
        assert!(answers(404, 4, 0, 6).starts_with("6 of 10 responses were 4xx (404):"));
        assert!(answers(401, 0, 0, 10).contains("--user"));
        assert_eq!(answers(304, 1, 9, 0), "", "304 responses are pages that have not changed");
    }
}
