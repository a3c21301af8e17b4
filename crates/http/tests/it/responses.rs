//! Tests that the result of parsing a response does not depend on how the bytes are split, equals the response that was
//! generated, and agrees with the reference implementation.

use crate::reference::{self, Reading};
use brimful_http::{FeedResult, MAX_EMPTY_LINES, ParseError, ParseStep, Response, ResponseParser};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// A response as bytes, and the expected result of parsing these bytes.
#[derive(Clone, Debug)]
struct Sample {
    bytes: Vec<u8>,
    head_request: bool,
    expected: Response,
    empty_lines: u32,
    until_close: bool,
}

#[derive(Clone, Debug)]
enum Body {
    None { status: u16, head_request: bool },
    Length { body: Vec<u8>, twice: bool },
    Chunked { chunks: Vec<(Vec<u8>, &'static str)>, trailers: Vec<String>, coding: &'static str, length_too: bool },
    UntilClose { body: Vec<u8>, coding: Option<&'static str> },
}

fn body() -> impl Strategy<Value = Body> {
    let content = || vec(any::<u8>(), 0..300);
    let extension = prop::sample::select(vec!["", ";a", "; a=b", ";a=\"b;c\"", " ", "\t;x"]);
    prop_oneof![
        prop::sample::select(vec![204, 304]).prop_map(|status| Body::None { status, head_request: false }),
        (200u16..600).prop_map(|status| Body::None { status, head_request: true }),
        (content(), any::<bool>()).prop_map(|(body, twice)| Body::Length { body, twice }),
        (
            vec((vec(any::<u8>(), 1..60), extension), 0..5),
            vec(field(), 0..3),
            prop::sample::select(vec!["chunked", "Chunked", "gzip, chunked", "gzip ,,CHUNKED"]),
            any::<bool>(),
        )
            .prop_map(|(chunks, trailers, coding, length_too)| Body::Chunked {
                chunks,
                trailers,
                coding,
                length_too
            }),
        (content(), prop::sample::select(vec![None, Some("gzip"), Some("chunked, gzip"), Some("identity")]))
            .prop_map(|(body, coding)| Body::UntilClose { body, coding }),
    ]
}

/// Generates a header field that does not affect framing.
fn field() -> impl Strategy<Value = String> {
    prop_oneof![4 => "X-[A-Za-z]{1,8}: ?[ -~]{0,30}", 1 => "X-Folded: a\r\n [a-z]{1,9}"]
}

fn sample() -> impl Strategy<Value = Sample> {
    let connection =
        prop::sample::select(vec!["", "close", "keep-alive", "Keep-Alive, x", "x ,CLOSE", "keep-alive,close"]);
    let informational =
        vec(prop::sample::select(vec!["100 Continue\r\n", "102 \r\n", "103 Early Hints\r\nLink: </a>\r\n"]), 0..3);
    (
        (body(), 0..=MAX_EMPTY_LINES),
        200u16..600,
        0u8..2,
        connection,
        informational,
        vec(field(), 0..6),
        prop::sample::select(vec!["\r\n", "\n"]),
    )
        .prop_map(|((body, empty_lines), status, minor, connection, informational, fields, newline)| {
            let sample = build(&body, status, minor, connection, &informational, &fields, newline);
            let before = newline.repeat(empty_lines as usize).into_bytes();
            Sample { bytes: [before, sample.bytes].concat(), empty_lines, ..sample }
        })
}

/// Renders a response, and determines the expected result from its parts.
fn build(
    body: &Body,
    any_status: u16,
    minor: u8,
    connection: &str,
    before: &[&str],
    fields: &[String],
    newline: &str,
) -> Sample {
    let any_status = if matches!(any_status, 204 | 304) { 200 } else { any_status };
    let status = if let Body::None { status, .. } = body { *status } else { any_status };
    let mut head: String = before.iter().map(|one| format!("HTTP/1.1 {one}\r\n")).collect();
    head += &format!("HTTP/1.{minor} {status} Any Reason\r\n");
    for field in fields {
        head += &format!("{field}\r\n");
    }
    if !connection.is_empty() {
        head += &format!("cOnnection: {connection}\r\n");
    }

    let (mut content, mut body_bytes, mut head_request, mut until_close, mut coded) =
        (Vec::new(), 0, false, false, false);
    match body {
        Body::None { head_request: head_method, .. } => {
            head_request = *head_method;
            head += "Content-Length: 12345\r\n";
        }
        Body::Length { body, twice } => {
            for _ in 0..=u8::from(*twice) {
                head += &format!("content-length: {}\r\n", body.len());
            }
            body_bytes = body.len();
            content.extend_from_slice(body);
        }
        Body::Chunked { chunks, trailers, coding, length_too } => {
            coded = true;
            head += &format!("Transfer-Encoding: {coding}\r\n");
            if *length_too {
                head += "Content-Length: 3\r\n";
            }
            for (data, extension) in chunks {
                content.extend_from_slice(format!("{:x}{extension}\r\n", data.len()).as_bytes());
                content.extend_from_slice(data);
                content.extend_from_slice(b"\r\n");
                body_bytes += data.len();
            }
            content.extend_from_slice(b"0\r\n");
            for trailer in trailers {
                content.extend_from_slice(format!("{trailer}\r\n").as_bytes());
            }
            content.extend_from_slice(b"\r\n");
        }
        Body::UntilClose { body, coding } => {
            until_close = true;
            if let Some(coding) = coding {
                head += &format!("Transfer-Encoding: {coding}\r\nContent-Length: 1\r\n");
            }
            body_bytes = body.len();
            content.extend_from_slice(body);
        }
    }
    head += "\r\n";
    let head = head.replace("\r\n", newline);

    let says = |option: &str| connection.to_ascii_lowercase().split(',').any(|one| one.trim() == option);
    let keep_alive = !until_close && !says("close") && (minor == 1 || (says("keep-alive") && !coded));
    let expected = Response { status, keep_alive, head_bytes: head.len() as u64, body_bytes: body_bytes as u64 };
    Sample { bytes: [head.into_bytes(), content].concat(), head_request, expected, empty_lines: 0, until_close }
}

/// Feeds pieces as a connection would, each byte once. Then closes the connection if the response is still incomplete.
/// Returns the result, the number of bytes consumed and the number of empty lines skipped.
fn feed<'a>(head_request: bool, pieces: impl Iterator<Item = &'a [u8]>) -> Outcome {
    let mut parser = ResponseParser::new();
    parser.start(head_request);
    let mut total = 0;
    for piece in pieces {
        match parser.feed(piece) {
            Err(error) => return (Err(error), total, 0),
            Ok(FeedResult { consumed, step: ParseStep::Complete(response) }) => {
                return (Ok(response), total + consumed, parser.empty_lines());
            }
            Ok(FeedResult { consumed, step: ParseStep::NeedMore }) => {
                assert_eq!(consumed, piece.len(), "all bytes are consumed until the response is complete");
                total += consumed;
            }
        }
    }
    (parser.finish(), total, parser.empty_lines())
}

type Outcome = (Result<Response, ParseError>, usize, u32);

/// Splits `bytes` at these offsets.
fn pieces<'a>(bytes: &'a [u8], cuts: &[Index]) -> impl Iterator<Item = &'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    cuts.push(bytes.len());
    cuts.into_iter().scan(0, move |from, to| Some(&bytes[std::mem::replace(from, to)..to]))
}

/// Checks that parsing `bytes` whole, in pieces and byte by byte has the same result, and that this result agrees with
/// the reference. The number of bytes consumed is compared only for a complete response, because it is undefined after
/// an error.
fn outcome_of_any_cut(head_request: bool, bytes: &[u8], cuts: &[Index]) -> Result<Outcome, TestCaseError> {
    let whole = feed(head_request, std::iter::once(bytes));
    for cut in [feed(head_request, pieces(bytes, cuts)), feed(head_request, bytes.chunks(1))] {
        prop_assert_eq!(cut.0, whole.0);
        prop_assert!(whole.0.is_err() || cut == whole, "{:?} in pieces, {:?} whole", cut, whole);
    }
    let read = match whole {
        (Ok(response), consumed, empty_lines) => Reading::Complete(response, consumed, empty_lines),
        (Err(ParseError::Truncated { .. }), ..) => Reading::Truncated,
        (Err(_), ..) => Reading::Malformed,
    };
    prop_assert_eq!(read, reference::read(bytes, head_request), "{:?}", String::from_utf8_lossy(bytes));
    Ok(whole)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn responses_are_read_as_made_under_any_cut(sample in sample(), surplus in vec(any::<u8>(), 0..50), cuts in vec(any::<Index>(), 0..8)) {
        let mut bytes = sample.bytes.clone();
        if !sample.until_close {
            bytes.extend_from_slice(&surplus);
        }
        let outcome = outcome_of_any_cut(sample.head_request, &bytes, &cuts)?;
        prop_assert_eq!(outcome, (Ok(sample.expected), sample.bytes.len(), sample.empty_lines));
    }

    #[test]
    fn responses_cut_short_are_truncated(sample in sample(), at: Index) {
        prop_assume!(!sample.until_close);
        let received = at.index(sample.bytes.len());
        let (response, ..) = outcome_of_any_cut(sample.head_request, &sample.bytes[..received], &[])?;
        let before = sample.bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let received = received.saturating_sub(before);
        prop_assert_eq!(response, Err(ParseError::Truncated { received: received as u64 }));
    }

    #[test]
    fn mutated_responses_have_one_outcome(
        sample in sample(),
        edits in vec((any::<Index>(), prop_oneof![any::<u8>(), prop::sample::select(b"\r\n :,;0fF".to_vec())], 0u8..3), 1..6),
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let mut bytes = sample.bytes;
        for (at, byte, edit) in edits {
            let at = at.index(bytes.len());
            match edit {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ if bytes.len() > 1 => { bytes.remove(at); }
                _ => {}
            }
        }
        let _ = outcome_of_any_cut(sample.head_request, &bytes, &cuts)?;
    }

    #[test]
    fn noise_has_one_outcome(noise in vec(any::<u8>(), 0..200), after_head: bool, head_request: bool, cuts in vec(any::<Index>(), 0..8)) {
        let head: &[u8] = if after_head { b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" } else { b"" };
        let _ = outcome_of_any_cut(head_request, &[head, &noise].concat(), &cuts)?;
    }
}
