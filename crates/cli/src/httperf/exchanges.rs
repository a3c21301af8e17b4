//! `--print-request` and `--print-reply`: print every line that is sent and received, with the number of its call, as
//! soon as the call has ended (httperf(1)).

use super::options::{Options, PrintedParts};
use crate::output;
use brimful_run::{CallHook, Exchange, MessagePrefix};
use std::fmt::Write;

/// Maximum number of bytes of each request and reply that are printed.
const MAX_PRINTED_BYTES: usize = 1 << 20;

/// The hook that prints the calls; `None` if no option requests it.
pub fn call_hook(options: &Options) -> Option<CallHook> {
    let request = options.print_request;
    let reply = options.print_reply;
    if request == PrintedParts::default() && reply == PrintedParts::default() {
        return None;
    }
    let mut number = 0_u64;
    Some(CallHook::new(MAX_PRINTED_BYTES, move |exchange| {
        // If stdout cannot be written, the test continues.
        let _ = output::print(&text(number, exchange, request, reply));
        number += 1;
    }))
}

fn text(number: u64, exchange: &Exchange, request: PrintedParts, reply: PrintedParts) -> String {
    let mut text = String::new();
    add(&mut text, 'S', number, &exchange.request, request);
    if exchange.response.total_bytes > 0 {
        add(&mut text, 'R', number, &exchange.response, reply);
        let sizes = exchange.size.filter(|_| reply != PrintedParts::default());
        if let Some(size) = sizes {
            let _ = writeln!(text, "RS{number}: header {} content {} footer 0", size.head, size.body);
        }
    }
    text
}

/// Adds the lines of one message. Each line begins with `S` for sent or `R` for received, `H` for head or `B` for body,
/// and the number of the call.
fn add(text: &mut String, direction: char, number: u64, kept: &MessagePrefix, parts: PrintedParts) {
    let end = kept.bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(kept.bytes.len(), |at| at + 4);
    let (head, body) = kept.bytes.split_at(end);
    for (letter, bytes, wanted) in [('H', head, parts.head), ('B', body, parts.body)] {
        for line in String::from_utf8_lossy(bytes).lines().filter(|_| wanted) {
            let _ = writeln!(text, "{direction}{letter}{number}:{line}");
        }
    }
    if direction == 'S' && parts != PrintedParts::default() {
        let _ = writeln!(text, "SS{number}: header {} content {}", head.len(), body.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::{CallSpec, ClassId, End, Nanos, Outcome, ResponseSize};

    #[test]
    fn lines_have_their_kind_and_their_calls_number() {
        let kept = |bytes: &[u8]| MessagePrefix { bytes: bytes.to_vec(), total_bytes: bytes.len() as u64 };
        let call = CallSpec::for_class(ClassId(0));
        let end = End::Completed { status: 200 };
        let exchange = Exchange {
            due: Nanos::ZERO,
            begun: None,
            connect_started: None,
            established: None,
            secured: None,
            sent: None,
            first_byte: None,
            request: kept(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
            response: kept(b"HTTP/1.1 200 OK\r\n\r\nhello\nthere"),
            size: Some(ResponseSize { head: 19, body: 11 }),
            outcome: Outcome { call, due: Nanos::ZERO, at: Nanos::ZERO, end, bytes_sent: 1, bytes_received: 1 },
        };
        let all = PrintedParts { head: true, body: true };
        let head = PrintedParts { head: true, body: false };
        let shown = text(7, &exchange, head, all);
        let expected = "SH7:GET / HTTP/1.1\nSH7:Host: a\nSH7:\nSS7: header 27 content 0\nRH7:HTTP/1.1 200 OK\nRH7:\n\
                        RB7:hello\nRB7:there\nRS7: header 19 content 11 footer 0\n";
        assert_eq!(shown, expected);
        assert_eq!(text(0, &exchange, PrintedParts::default(), PrintedParts::default()), "");
    }
}
