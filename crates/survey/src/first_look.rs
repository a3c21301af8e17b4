//! The first measurement of the server: a short load by one client. It shows whether the server responds as expected,
//! and how long a call takes. Redirects and error pages end the survey, because it would not measure the pages that the
//! user wants to know about.

use crate::SurveyError;
use crate::bench::Answer;
use crate::runner::{Halt, Runner};
use crate::setup::closed;
use crate::trial::Trial;
use brimful_core::counts::{Counts, StatusCounts};
use brimful_core::quantity::count;
use brimful_core::workload::RequestClass;
use brimful_core::{Bytes, Nanos};

/// Duration of the first measurement of the server.
pub(crate) const INITIAL_DURATION: Nanos = Nanos::from_millis(1000);

/// The results of the first measurement of the server, with a single client.
#[derive(Debug)]
pub(crate) struct InitialMeasurement {
    /// Calls completed per second.
    pub rate: f64,
    /// Mean size of a response, in bytes.
    pub response: Bytes,
    /// Numbers of calls by outcome.
    pub counts: Counts,
}

impl InitialMeasurement {
    /// Duration of a call without queueing, in seconds.
    pub fn call_duration_s(&self) -> f64 {
        1.0 / self.rate.max(1e-9)
    }
}

/// Offers the load of one client for a short time. Ends the survey if the responses are errors, redirects or
/// unexpected.
pub(crate) fn measure_initially(runner: &mut Runner<'_>) -> Result<InitialMeasurement, Halt> {
    runner.begin("a short load to try the server".to_owned(), INITIAL_DURATION);
    let trial = runner.measure(&runner.setup.workload_with(closed(1)), INITIAL_DURATION)?;
    if trial.record.wants_tls {
        let message = "the server speaks TLS on this port: write https:// in place of http://";
        return Err(SurveyError::NotSurveyable(message.to_owned()).into());
    }
    runner.check_rate_limit(&trial)?;
    check_first_answers(runner, &trial)?;
    runner.check(&trial)?;
    if !runner.setup.is_black_box() && trial.mean_demand()? <= 0.0 {
        let message =
            "the processes named used no CPU while the server answered: name those that serve, with --process";
        return Err(SurveyError::NotSurveyable(message.to_owned()).into());
    }
    let counts = trial.record.counts;
    let response = Bytes(trial.record.bytes.received / counts.completed);
    Ok(InitialMeasurement { rate: trial.record.rates.completed, response, counts })
}

/// Ends the survey if no response is successful (2xx) or expected by the workload.
fn check_first_answers(runner: &mut Runner<'_>, first: &Trial) -> Result<(), Halt> {
    let counts = &first.record.counts;
    let status = counts.status;
    let answers = counts.completed + counts.unexpected;
    if answers == 0 || first.record.interrupted {
        return Ok(());
    }
    let setup = runner.setup;
    let expects_status = |class: &RequestClass| class.expect.as_ref().is_some_and(|expect| expect.status.is_some());
    let has_pages = status.s1xx + status.s2xx > 0;
    if counts.completed > 0 && (has_pages || setup.workload.classes.iter().all(expects_status)) {
        return Ok(());
    }
    let answer = runner.bench.answer()?;
    if counts.completed == 0 {
        let reason = match answer {
            Some(answer) if !has_pages => complaint(status, Some(&answer), &setup.header.url),
            _ => "check `expect`".to_owned(),
        };
        let answers = count(answers);
        return Err(SurveyError::NotSurveyable(format!(
            "none of the first {answers} answers is what the workload expects: {reason}"
        ))
        .into());
    }
    let is_unchanged = answer.as_ref().is_some_and(|answer| answer.status == 304);
    if is_unchanged && status.s4xx + status.s5xx == 0 {
        runner.note("every answer is 304 (Not Modified), as asked by a header field of the request".to_owned());
        return Ok(());
    }
    Err(SurveyError::NotSurveyable(complaint(status, answer.as_ref(), &setup.header.url)).into())
}

/// Parses the first bytes of a response from the server at this URL.
pub(crate) fn parse_answer(status: u16, bytes: &[u8], url: &str) -> Answer {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]);
    let field = |wanted: &str| {
        head.lines().skip(1).find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
        })
    };
    let location = field("location").filter(|location| !location.is_empty());
    Answer {
        status,
        location: location.map(|location| absolute_url(&location, url)),
        sets_cookie: field("set-cookie").is_some(),
    }
}

/// Resolves a URL reference relative to the page at `url` (RFC 3986 §5.2), but keeps the segments `.` and `..`.
fn absolute_url(reference: &str, url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return reference.to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let has_scheme = reference.split_once("://").is_some_and(|(before, _)| {
        !before.is_empty() && before.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    if has_scheme {
        return reference.to_owned();
    }
    if reference.starts_with("//") {
        return format!("{scheme}:{reference}");
    }
    let path = rest[authority.len()..].split(['?', '#']).next().unwrap_or_default();
    let path = if path.is_empty() { "/" } else { path };
    match reference.as_bytes().first() {
        Some(b'/') => format!("{scheme}://{authority}{reference}"),
        Some(b'?' | b'#') => format!("{scheme}://{authority}{path}{reference}"),
        _ => {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            format!("{scheme}://{authority}{directory}/{reference}")
        }
    }
}

/// The error message for a server whose responses should not be surveyed: the reason, and what to do. `answer` is one
/// of the responses, if there is one.
fn complaint(status: StatusCounts, answer: Option<&Answer>, url: &str) -> String {
    let all = status.s3xx + status.s4xx + status.s5xx;
    let kinds = [("3xx", status.s3xx), ("4xx", status.s4xx), ("5xx", status.s5xx)];
    let mut present = kinds.into_iter().filter(|(_, calls)| *calls > 0);
    let (Some((kind, _)), None) = (present.next(), present.next()) else {
        let counted: Vec<String> = kinds.iter().map(|(kind, calls)| format!("{kind} {}", count(*calls))).collect();
        return format!(
            "none of the first {} calls was answered with 2xx ({}): check the path, or the classes of the workload",
            count(all),
            counted.join(", ")
        );
    };
    let Some(answer) = answer.filter(|answer| kind.starts_with(char::from(b'0' + (answer.status / 100) as u8))) else {
        return format!("every answer is {kind}: check the path, or the classes of the workload");
    };
    let code = answer.status;
    match (&answer.location, code) {
        (Some(location), 300..=399) => {
            format!("every answer is {code} to {location}: {}", redirect_advice(location, answer, url))
        }
        (None, 300..=399) => format!("every answer is {code} without a location: check the path"),
        (_, 401) => {
            "every answer is 401: the server needs credentials; give --user NAME:PASSWORD or -H 'Authorization: …'"
                .to_owned()
        }
        (_, 403) => "every answer is 403: the server forbids it; give the credentials or the cookie that it needs \
                     (--user, -H 'Cookie: …'), or check its rules for this client's address"
            .to_owned(),
        (_, 404 | 410) => format!("every answer is {code}: there is no such page; check the path"),
        (_, 405) => {
            "every answer is 405: the page is not for this method; name another in a workload (--workload FILE)"
                .to_owned()
        }
        (_, 421) => "every answer is 421: this server does not serve that host name; check the URL, or -H 'Host: NAME'"
            .to_owned(),
        (_, 400..=499) => {
            format!("every answer is {code}, an error of the request: check the path, and the header fields (-H)")
        }
        _ => format!("every answer is {code}, an error of the server: its own log says why"),
    }
}

/// The advice for a redirect to `location`.
fn redirect_advice(location: &str, answer: &Answer, url: &str) -> String {
    let without_slash = |url: &str| url.split('#').next().unwrap_or(url).trim_end_matches('/').to_owned();
    if without_slash(location) != without_slash(url) {
        return format!(
            "survey that URL (`expect = {{ status = {} }}` in a workload surveys the redirect itself)",
            answer.status
        );
    }
    let cookie = if answer.sets_cookie { " that it sets" } else { "" };
    format!("it leads to itself, so send the cookie{cookie} or the header fields that it needs (-H 'Cookie: …')")
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://shop.example:8080/a/b?c=d";

    fn redirect(location: &str) -> Answer {
        parse_answer(
            302,
            format!("HTTP/1.1 302 Found\r\nServer: x\r\nlocation:  {location}\r\n\r\nLocation: no").as_bytes(),
            URL,
        )
    }

    #[test]
    fn a_location_is_resolved_against_the_url() {
        for (location, means) in [
            ("https://shop.example/", "https://shop.example/"),
            ("//www.example/x", "http://www.example/x"),
            ("/login?next=http://shop.example/", "http://shop.example:8080/login?next=http://shop.example/"),
            ("e", "http://shop.example:8080/a/e"),
            ("?page=2", "http://shop.example:8080/a/b?page=2"),
        ] {
            assert_eq!(redirect(location).location.as_deref(), Some(means), "{location}");
        }
        let bare = parse_answer(301, b"HTTP/1.1 301 Moved\r\nLocation: /x", "http://h");
        assert_eq!(bare.location.as_deref(), Some("http://h/x"));
        assert_eq!(redirect("").location, None);
    }

    #[test]
    fn first_answers_that_are_not_pages_say_what_to_do() {
        let said = |status: StatusCounts, answer: &Answer| complaint(status, Some(answer), URL);
        let all_3xx = StatusCounts { s3xx: 9, ..StatusCounts::default() };
        let elsewhere = said(all_3xx, &redirect("https://shop.example/"));
        assert!(elsewhere.starts_with("every answer is 302 to https://shop.example/: survey that URL"), "{elsewhere}");
        let itself = said(all_3xx, &Answer { sets_cookie: true, ..redirect(URL) });
        assert!(itself.contains("it leads to itself, so send the cookie that it sets"), "{itself}");
        let all_4xx = StatusCounts { s4xx: 9, ..StatusCounts::default() };
        let of_code = |status| said(all_4xx, &Answer { status, location: None, sets_cookie: false });
        for (code, what) in [(401, "--user"), (403, "forbids"), (404, "no such page"), (405, "method"), (400, "-H")] {
            assert!(of_code(code).contains(what), "{}", of_code(code));
        }
        let all_5xx = StatusCounts { s5xx: 9, ..StatusCounts::default() };
        let failed = said(all_5xx, &Answer { status: 503, location: None, sets_cookie: false });
        assert!(failed.starts_with("every answer is 503"), "{failed}");
        let several = complaint(StatusCounts { s3xx: 3, s4xx: 2, ..StatusCounts::default() }, None, URL);
        assert!(
            several.starts_with("none of the first 5 calls was answered with 2xx (3xx 3, 4xx 2, 5xx 0)"),
            "{several}"
        );
    }
}
