//! Shows requests and responses as they were sent and received, for debugging a workload. `--print N` prints the first
//! calls and the first failure of each kind to stderr. `--trace FILE` writes all calls to a file, one line of JSON per
//! call, in the order in which the calls ended.
//!
//! Only the beginning of each request and response is kept. Secret values of header fields are replaced by `•••`, as in
//! every document. Only the calls to print stay in memory. Each shard writes its own calls to the trace, so a slow disk
//! delays the load. The Record reports the delay.

use super::args::TracingArgs;
use crate::output::{StreamFile, print_note};
use brimful_core::panics::lock;
use brimful_core::quantity::bytes;
use brimful_core::secret::{self, CREDENTIAL_MASK};
use brimful_core::{End, Nanos};
use brimful_run::{CallHook, Exchange, MessagePrefix, RunObserver, RunOptions};
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Maximum number of bytes of each request and response that are traced.
const TRACED_BYTES: usize = 64 * 1024;
/// Maximum number of bytes of each head and body that are printed.
const PRINTED_BYTES: usize = 4 * 1024;
/// Maximum number of kinds of failures that are printed.
const MAX_FAILURE_KINDS: usize = 32;

/// The calls of all shards to print and to trace; `None` if neither `--print` nor `--trace` is given.
pub struct CallTrace(Option<Arc<Mutex<TracedCalls>>>);

struct TracedCalls {
    names: Names,
    /// Number of calls to print.
    max_printed: usize,
    /// The calls to print: those with the earliest due times, in order of due time.
    first: Vec<Exchange>,
    /// The first failed call of each kind of failure, with the name of this kind.
    failures: Vec<(String, Exchange)>,
    file: Option<TraceFile>,
    calls: u64,
}

/// Names of request classes, and names of header fields whose values are secret.
struct Names {
    classes: Vec<String>,
    secret_headers: Vec<String>,
}

/// The file of `--trace`, and the first error that occurred while it was written.
struct TraceFile {
    file: BufWriter<StreamFile>,
    failed: Option<io::Error>,
}

impl CallTrace {
    /// The trace that the flags request, for a run with these options.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn new(args: &TracingArgs, options: &RunOptions) -> anyhow::Result<CallTrace> {
        if args.print.is_none() && args.trace.is_none() {
            return Ok(CallTrace(None));
        }
        let names = Names {
            classes: options.load.workload.classes.iter().map(|class| class.name.clone()).collect(),
            secret_headers: options.record.secret_headers.clone(),
        };
        let file = args.trace.as_deref().map(TraceFile::create).transpose()?;
        let max_printed = args.print.unwrap_or(0) as usize;
        let calls = TracedCalls { names, max_printed, first: Vec::new(), failures: Vec::new(), file, calls: 0 };
        Ok(CallTrace(Some(Arc::new(Mutex::new(calls)))))
    }

    /// An observer of the run, which collects the calls. If no flag is given, it observes nothing.
    pub fn observer(&self) -> RunObserver {
        let Some(calls) = self.0.clone() else { return RunObserver::default() };
        let has_file = lock(&calls).file.is_some();
        let add = move |exchange: &Exchange| lock(&calls).add(exchange);
        RunObserver {
            call_hook: Some(CallHook::new(if has_file { TRACED_BYTES } else { PRINTED_BYTES }, add)),
            ..RunObserver::default()
        }
    }

    /// Prints the calls of `--print`, and closes the file of `--trace`.
    ///
    /// # Errors
    /// Returns an error if the file could not be written.
    pub fn finish(self) -> anyhow::Result<()> {
        let Some(calls) = self.0 else { return Ok(()) };
        let mut calls = lock(&calls);
        if calls.max_printed > 0 {
            print_note(&calls.text());
        }
        calls.file.take().map_or(Ok(()), TraceFile::finish)
    }
}

impl TracedCalls {
    fn add(&mut self, exchange: &Exchange) {
        self.calls += 1;
        if let Some(file) = &mut self.file {
            file.add(&TraceLine::new(self.calls, exchange, &self.names));
        }
        if self.max_printed == 0 {
            return;
        }
        let place = self.first.partition_point(|earlier| earlier.due <= exchange.due);
        if place < self.max_printed {
            self.first.truncate(self.max_printed - 1);
            self.first.insert(place, exchange.clone());
        }
        if let Some(kind) = failure_kind(exchange)
            && self.failures.len() < MAX_FAILURE_KINDS
            && self.failures.iter().all(|(known, _)| *known != kind)
        {
            self.failures.push((kind, exchange.clone()));
        }
    }

    fn text(&self) -> String {
        let calls = self.first.iter().map(|exchange| printed("Call", exchange, &self.names));
        let is_printed_above = |exchange: &Exchange| {
            self.first.iter().any(|shown| shown.due == exchange.due && shown.outcome == exchange.outcome)
        };
        let failures = self.failures.iter().filter(|(_, exchange)| !is_printed_above(exchange));
        let failures = failures.map(|(kind, exchange)| printed(&format!("First {kind}"), exchange, &self.names));
        calls.chain(failures).collect::<Vec<_>>().join("\n")
    }
}

/// The kind of a failed call: the response's status if it is an error, or else how the call ended. `None` if the call
/// did not fail.
fn failure_kind(exchange: &Exchange) -> Option<String> {
    match exchange.outcome.end {
        End::Completed { status } if status >= 400 => Some(status.to_string()),
        End::Completed { .. } | End::Unfinished { .. } => None,
        end => Some(end_name(end).replace('_', " ")),
    }
}

/// How a call ended, in snake case, like `timed_out`.
fn end_name(end: End) -> String {
    let written = format!("{end:?}");
    let variant = written.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let mut name = String::new();
    for c in variant.chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(c.to_lowercase());
    }
    name
}

/// The text of one printed call.
fn printed(what: &str, exchange: &Exchange, names: &Names) -> String {
    let outcome = &exchange.outcome;
    let end = match outcome.end {
        End::Completed { status } => format!("answered {status}"),
        end => end_name(end).replace('_', " "),
    };
    let since = |at: Nanos| (at - exchange.due).to_rounded_string();
    let mut text = format!("{what} due at {} ({})", exchange.due.to_exact_string(), names.class(exchange));
    let times = [
        ("connection begun", exchange.connect_started),
        ("established", exchange.established),
        ("secured", exchange.secured),
        ("sent", exchange.sent),
        ("first byte", exchange.first_byte),
        (end.as_str(), Some(outcome.at)),
    ];
    for (what, at) in times.into_iter().filter_map(|(what, at)| Some((what, at?))) {
        text += &format!(", {what} +{}", since(at));
    }
    text += "\n";
    print_bytes(&mut text, "> ", &exchange.request, names);
    print_bytes(&mut text, "< ", &exchange.response, names);
    text
}

fn print_bytes(text: &mut String, mark: &str, kept: &MessagePrefix, names: &Names) {
    let (head, body) = split_head(&kept.bytes);
    let head = &head[..head.len().min(PRINTED_BYTES)];
    let body = &body[..body.len().min(PRINTED_BYTES)];
    let more = kept.total_bytes.saturating_sub((head.len() + body.len()) as u64);
    let head = names.without_secrets(head);
    let body = String::from_utf8_lossy(body);
    for line in head.lines().chain(body.lines()) {
        text.push_str(mark);
        text.push_str(line.trim_end_matches('\r'));
        text.push('\n');
    }
    if more > 0 {
        text.push_str(&format!("{mark}… {} more\n", bytes(more as f64)));
    }
}

impl Names {
    fn class(&self, exchange: &Exchange) -> &str {
        // Calls that follow redirects have no class.
        self.classes.get(usize::from(exchange.call().class.0)).map_or("redirect", String::as_str)
    }

    /// The text of a head, with secret values masked.
    fn without_secrets(&self, head: &[u8]) -> String {
        let line = |line: &str| {
            let secret = |name: &str| {
                secret::is_secret_header(name, &self.secret_headers) || name.trim().eq_ignore_ascii_case("set-cookie")
            };
            match line.split_once(':') {
                Some((name, _)) if secret(name) => format!("{name}: {CREDENTIAL_MASK}\r\n"),
                _ => line.to_owned(),
            }
        };
        // Continued lines are unfolded first, because a secret value may continue on the next line.
        let text = String::from_utf8_lossy(head).replace("\r\n ", " ").replace("\r\n\t", " ");
        text.split_inclusive('\n').map(line).collect()
    }
}

/// Splits a message into its head and its body. Informational responses before the head count as part of the head.
fn split_head(message: &[u8]) -> (&[u8], &[u8]) {
    let mut end = 0;
    loop {
        let rest = message.get(end..).unwrap_or_default();
        let Some(length) = head_length(rest) else { return (message, &[]) };
        let code = rest.iter().position(|byte| *byte == b' ').and_then(|space| rest.get(space + 1));
        let informational = rest.starts_with(b"HTTP/") && code == Some(&b'1');
        end += length;
        if !informational || end >= message.len() {
            return message.split_at(end);
        }
    }
}

/// Length of a head, up to and including the first empty line.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let mut line_is_empty = false;
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' if line_is_empty => return Some(index + 1),
            b'\n' => line_is_empty = true,
            b'\r' => {}
            _ => line_is_empty = false,
        }
    }
    None
}

/// A line of the trace, which describes one call. Times are in seconds from the start of the run. If an event did not
/// happen, its time is absent.
#[derive(Serialize)]
struct TraceLine<'a> {
    /// Number of the call, from 1, in the order in which calls ended.
    call: u64,
    class: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<u32>,
    due_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    begun_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connect_started_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    established_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secured_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_byte_s: Option<f64>,
    ended_s: f64,
    end: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    bytes_sent: u64,
    bytes_received: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Message>,
}

/// A request or a response, as text.
#[derive(Serialize)]
struct Message {
    head: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    body: String,
    /// Number of bytes at the end of the message that are left out.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: u64,
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl<'a> TraceLine<'a> {
    fn new(call: u64, exchange: &Exchange, names: &'a Names) -> TraceLine<'a> {
        let seconds = |at: Option<Nanos>| at.map(Nanos::as_secs_f64);
        let outcome = &exchange.outcome;
        let status = match outcome.end {
            End::Completed { status } | End::Unexpected { status } => Some(status),
            _ => None,
        };
        TraceLine {
            call,
            class: names.class(exchange),
            session: exchange.call().session.map(|session| session.0),
            due_s: exchange.due.as_secs_f64(),
            begun_s: seconds(exchange.begun),
            connect_started_s: seconds(exchange.connect_started),
            established_s: seconds(exchange.established),
            secured_s: seconds(exchange.secured),
            sent_s: seconds(exchange.sent),
            first_byte_s: seconds(exchange.first_byte),
            ended_s: outcome.at.as_secs_f64(),
            end: end_name(outcome.end),
            status,
            bytes_sent: outcome.bytes_sent,
            bytes_received: outcome.bytes_received,
            request: Message::new(&exchange.request, names),
            response: Message::new(&exchange.response, names),
        }
    }
}

impl Message {
    fn new(kept: &MessagePrefix, names: &Names) -> Option<Message> {
        let (head, body) = split_head(&kept.bytes);
        (kept.total_bytes > 0).then(|| Message {
            head: names.without_secrets(head),
            body: String::from_utf8_lossy(body).into_owned(),
            left_out: kept.total_bytes - kept.bytes.len() as u64,
        })
    }
}

impl TraceFile {
    fn create(path: &Path) -> anyhow::Result<TraceFile> {
        Ok(TraceFile { file: BufWriter::new(StreamFile::create(path, "--trace")?), failed: None })
    }

    fn add(&mut self, line: &TraceLine<'_>) {
        if self.failed.is_none() {
            let written = serde_json::to_writer(&mut self.file, line).map_err(io::Error::from);
            self.failed = written.and_then(|()| self.file.write_all(b"\n")).err();
        }
    }

    fn finish(mut self) -> anyhow::Result<()> {
        let written = self.failed.take().map_or_else(|| self.file.flush(), Err);
        let (file, _) = self.file.into_parts();
        file.finish(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::{CallSpec, ClassId, ExhaustedResource, Outcome};

    fn names() -> Names {
        Names { classes: vec!["all".to_owned()], secret_headers: vec!["X-Mine".to_owned()] }
    }

    fn exchange(due_ms: u64, end: End, response: &[u8]) -> Exchange {
        let call = CallSpec::for_class(ClassId(0));
        let due = Nanos::from_millis(due_ms);
        let kept = |bytes: &[u8]| MessagePrefix { bytes: bytes.to_vec(), total_bytes: bytes.len() as u64 };
        let at = due + Nanos::from_millis(3);
        Exchange {
            due,
            begun: Some(due),
            connect_started: None,
            established: None,
            secured: None,
            sent: Some(due + Nanos::from_millis(1)),
            first_byte: None,
            request: kept(b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic hunter2\r\nx-mine:hunter2\r\n\r\n"),
            response: kept(response),
            size: None,
            outcome: Outcome { call, due, at, end, bytes_sent: 9, bytes_received: 7 },
        }
    }

    const ANSWER: &[u8] = b"HTTP/1.1 103 Hints\r\nSet-Cookie: a=hunter2\r\n\r\nHTTP/1.1 200 OK\r\n\
                            Set-Cookie: id=hunter2;\r\n path=hunter2\r\n\r\nhello\nCookie: of the body";

    #[test]
    fn no_secret_is_shown_and_bodies_are() {
        let exchange = exchange(5, End::Completed { status: 200 }, ANSWER);
        let text = printed("Call", &exchange, &names());
        let json = serde_json::to_string(&TraceLine::new(1, &exchange, &names())).unwrap();
        for shown in [&text, &json] {
            assert!(!shown.contains("hunter2") && shown.contains("of the body"), "{shown}");
            assert_eq!(shown.matches(CREDENTIAL_MASK).count(), 4, "{shown}");
        }
        assert!(
            text.starts_with("Call due at 5ms (all), sent +1 ms, answered 200 +3 ms\n> GET / HTTP/1.1\n"),
            "{text}"
        );
        assert!(text.ends_with("< \n< hello\n< Cookie: of the body\n"), "{text}");
        let line: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&line["end"], &line["status"], &line["due_s"]), (&"completed".into(), &200.into(), &0.005.into()));
        assert_eq!(line["response"]["body"], "hello\nCookie: of the body");
        assert!(line.get("first_byte_s").is_none());
    }

    #[test]
    fn heads_of_http2_end_where_their_content_begins() {
        let answer = String::from_utf8_lossy(ANSWER).replace("HTTP/1.1", "HTTP/2");
        let (head, body) = split_head(answer.as_bytes());
        assert!(head.ends_with(b"path=hunter2\r\n\r\n") && body == b"hello\nCookie: of the body");
        assert!(!names().without_secrets(head).contains("hunter2"));
    }

    #[test]
    fn the_first_calls_by_their_due_times_and_one_failure_of_each_kind() {
        let mut calls = TracedCalls {
            names: names(),
            max_printed: 2,
            first: Vec::new(),
            failures: Vec::new(),
            file: None,
            calls: 0,
        };
        let ok = End::Completed { status: 200 };
        for (due, end) in [
            (9, ok),
            (4, ok),
            (7, End::TimedOut),
            (2, ok),
            (8, End::TimedOut),
            (11, End::Completed { status: 404 }),
            (12, End::ClientLimited(ExhaustedResource::Ports)),
            (13, End::Unfinished { sent: true }),
        ] {
            calls.add(&exchange(due, end, b""));
        }
        let text = calls.text();
        let heads: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once(" (all)")?.0)).collect();
        assert_eq!(
            heads,
            [
                "Call due at 2ms",
                "Call due at 4ms",
                "First timed out due at 7ms",
                "First 404 due at 11ms",
                "First client limited due at 12ms"
            ]
        );
    }

    #[test]
    fn long_messages_are_cut_and_foreign_bytes_do_no_harm() {
        let mut exchange = exchange(0, End::Malformed, &[b'x'; PRINTED_BYTES]);
        exchange.response.total_bytes = 1 << 20;
        let text = printed("Call", &exchange, &names());
        assert!(text.trim_end().ends_with("more"), "{text}");
        for bytes in
            [&b""[..], b"\n", b"\r\n\r\n", b"HTTP/1.1 1", b"HTTP/1.1 100\n\n", b"\xff\xfe\n\n\x00", b"HTTP/1.1"]
        {
            let (head, body) = split_head(bytes);
            assert_eq!([head, body].concat(), bytes);
        }
    }
}
