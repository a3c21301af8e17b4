//! A list of hostile servers: they send wrong or incomplete bytes, at unusual times or in pieces, and end connections
//! in different ways.
//!
//! The list is for tests of properties that must be true for every server, such as: every call is counted exactly once.
//! The outcome of a call may depend on timing, but [`HostileBehaviour::call_may_complete`] does not.

use crate::{FullBacklog, RawServer, Step, full_backlog_listener, script, with_length};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// One kind of hostile behaviour.
#[derive(Clone, Debug)]
pub struct HostileBehaviour {
    /// Description of the behaviour, for messages of tests.
    pub name: String,
    /// Whether a call can end with a complete response.
    pub call_may_complete: bool,
    behaviour: Behaviour,
}

#[derive(Clone, Debug)]
enum Behaviour {
    /// The server runs these steps on every connection.
    Script(Vec<Step>),
    /// The server never accepts a connection, and its accept queue is full.
    NeverAccepts,
    /// The port refuses connections.
    Refuses,
}

/// A running hostile server.
pub struct HostileServer {
    addr: SocketAddr,
    _running: Running,
}

enum Running {
    Raw {
        _server: RawServer,
    },
    Full {
        _backlog: FullBacklog,
    },
    /// A bound port without a listener, so that it refuses connections and no other process can bind it.
    Bound {
        _socket: OwnedFd,
    },
}

impl HostileBehaviour {
    /// Starts a server with this behaviour on a free port of 127.0.0.1.
    pub fn start(&self) -> HostileServer {
        let (addr, running) = match &self.behaviour {
            Behaviour::Script(steps) => {
                let server = RawServer::start(script(steps.clone()));
                (server.addr(), Running::Raw { _server: server })
            }
            Behaviour::NeverAccepts => {
                let backlog = full_backlog_listener();
                (backlog.addr(), Running::Full { _backlog: backlog })
            }
            Behaviour::Refuses => {
                let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("open a socket");
                bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("bind a free port of 127.0.0.1");
                let addr = getsockname(&socket).expect("read the address of a bound socket");
                (addr.try_into().expect("an IPv4 address"), Running::Bound { _socket: socket })
            }
        };
        HostileServer { addr, _running: running }
    }
}

impl HostileServer {
    /// The address to which clients connect.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

/// Returns all hostile behaviours, more than a hundred.
pub fn hostile_behaviours() -> Vec<HostileBehaviour> {
    let mut all = answers_and_ends();
    all.extend(before_the_request());
    all.extend(between_answers());
    all.extend(without_end());
    all.extend(in_pieces());
    all.push(HostileBehaviour {
        name: "never accepts".to_owned(),
        call_may_complete: false,
        behaviour: Behaviour::NeverAccepts,
    });
    all.push(HostileBehaviour { name: "refuses".to_owned(), call_may_complete: false, behaviour: Behaviour::Refuses });
    all
}

fn scripted(
    name: impl Into<String>,
    call_may_complete: bool,
    steps: impl IntoIterator<Item = Step>,
) -> HostileBehaviour {
    HostileBehaviour { name: name.into(), call_may_complete, behaviour: Behaviour::Script(steps.into_iter().collect()) }
}

/// The ways in which a server ends a connection. The step `Drain` keeps the connection open and sends nothing more.
fn ends() -> [(&'static str, Step); 3] {
    [("FIN", Step::Finish), ("RST", Step::Reset), ("silence", Step::Drain)]
}

/// The condition under which the bytes that a server sends are a complete response.
#[derive(Clone, Copy, PartialEq)]
enum Complete {
    Never,
    /// The bytes are complete only if FIN follows: the end of the connection is the end of the body.
    ByClose,
    Always,
}

/// Servers that read one request, send some bytes and end the connection. All combinations of bytes and endings are
/// included.
fn answers_and_ends() -> Vec<HostileBehaviour> {
    let mut all = Vec::new();
    for (what, answer, complete) in answers() {
        for (end, step) in ends() {
            let call_may_complete =
                complete == Complete::Always || complete == Complete::ByClose && step == Step::Finish;
            all.push(scripted(
                format!("{what}, then {end}"),
                call_may_complete,
                [Step::Request, Step::Send(answer.clone()), step],
            ));
        }
    }
    all
}

/// The bytes that are sent in response to a request: description, bytes, and whether they are a complete response.
fn answers() -> Vec<(&'static str, Vec<u8>, Complete)> {
    use Complete::{Always, ByClose, Never};
    let text = |text: &str| text.as_bytes().to_vec();
    let chunked = |body: &str| text(&format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"));
    let field = |field: &str| text(&format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n{field}\r\n\r\nhello"));
    let length = |length: &str| text(&format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhello"));
    let status = |line: &str| text(&format!("{line}\r\nContent-Length: 5\r\n\r\nhello"));
    let hello = with_length(b"hello");
    vec![
        ("nothing", vec![], Never),
        ("one byte", text("H"), Never),
        ("half a version", text("HTTP/1"), Never),
        ("half a status line", text("HTTP/1.1 20"), Never),
        ("a status line", text("HTTP/1.1 200 OK\r\n"), Never),
        ("half a field", text("HTTP/1.1 200 OK\r\nContent-Le"), Never),
        ("a head without its end", text("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"), Never),
        ("a head without its body", length("5")[..38].to_vec(), Never),
        ("half a body", hello[..hello.len() - 2].to_vec(), Never),
        ("a whole answer", hello.clone(), Always),
        ("an answer and more", [&hello[..], b" and more"].concat(), Always),
        ("an answer and half another", [&hello[..], &hello[..20]].concat(), Always),
        ("two answers", hello.repeat(2), Always),
        ("five answers", hello.repeat(5), Always),
        ("an announced close", field("Connection: close"), Always),
        ("a body until close", text("HTTP/1.1 200 OK\r\n\r\nhello"), ByClose),
        ("no body until close", text("HTTP/1.1 200 OK\r\n\r\n"), ByClose),
        ("an old body until close", text("HTTP/1.0 200 OK\r\n\r\nhello"), ByClose),
        ("a length too short", length("3"), Always),
        ("a length too long", length("7"), Never),
        ("a length that is a word", length("five"), Never),
        ("a negative length", length("-5"), Never),
        ("a length of 65 bits", length("36893488147419103232"), Never),
        ("the largest length", length("18446744073709551615"), Never),
        ("two lengths", length("5\r\nContent-Length: 6"), Never),
        ("whole chunks", chunked("5\r\nhello\r\n0\r\n\r\n"), Always),
        ("chunks without a last", chunked("5\r\nhello\r\n"), Never),
        ("half a chunk", chunked("5\r\nhel"), Never),
        ("a chunk longer than its size", chunked("3\r\nhello\r\n0\r\n\r\n"), Never),
        ("a chunk size that is a word", chunked("five\r\nhello\r\n0\r\n\r\n"), Never),
        ("a chunk size of 65 bits", chunked("10000000000000000\r\nhello\r\n"), Never),
        ("a negative chunk size", chunked("-5\r\nhello\r\n0\r\n\r\n"), Never),
        ("trailers without an end", chunked("5\r\nhello\r\n0\r\nDigest: x\r\n"), Never),
        ("a 100 alone", text("HTTP/1.1 100 Continue\r\n\r\n"), Never),
        ("three 103s and an answer", [&b"HTTP/1.1 103 Hints\r\n\r\n".repeat(3)[..], &hello].concat(), Always),
        ("a thousand 103s", b"HTTP/1.1 103 Hints\r\n\r\n".repeat(1000), Never),
        ("another protocol", text("HTTP/1.1 101 Switching Protocols\r\n\r\n\0\x01"), Always),
        ("a 204 with a body", text("HTTP/1.1 204 No Content\r\n\r\nhello"), Always),
        ("a 304 with a length", text("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), Always),
        ("a TLS alert", b"\x15\x03\x01\x00\x02\x02\x46".to_vec(), Never),
        ("an SSH banner", text("SSH-2.0-OpenSSH_9.9\r\n"), Never),
        ("HTTP/2 settings", b"\0\0\0\x04\0\0\0\0\0".to_vec(), Never),
        ("a version of 2", status("HTTP/2 200 OK"), Never),
        ("no version", status("200 OK"), Never),
        ("a status of two digits", status("HTTP/1.1 20 OK"), Never),
        ("a status of letters", status("HTTP/1.1 abc OK"), Never),
        ("a status below 100", status("HTTP/1.1 099 OK"), Never),
        ("an empty line first", [b"\r\n", &hello[..]].concat(), Always),
        ("an empty line behind", [&hello[..], b"\r\n"].concat(), Always),
        ("five empty lines first", [&b"\r\n".repeat(5)[..], &hello].concat(), Never),
        ("a bare CR first", [b"\r", &hello[..]].concat(), Never),
        ("bare line feeds", text("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"), Always),
        ("a field without a colon", field("nonsense"), Never),
        ("a zero byte in the head", field("A: \0"), Never),
        ("a folded field", field("A: b\r\n c"), Always),
        ("three hundred fields", field(&["A: b"; 300].join("\r\n")), Never),
        ("a head of 128 KiB", field(&format!("A: {}", "a".repeat(128 << 10))), Never),
    ]
}

/// Servers that send bytes before they have read a request, and possibly before the client has sent it.
fn before_the_request() -> Vec<HostileBehaviour> {
    let hello = with_length(b"hello");
    let early = [
        ("nothing", vec![], false),
        ("half an answer", hello[..20].to_vec(), false),
        ("a whole answer", hello.clone(), true),
        ("two answers", hello.repeat(2), true),
        ("half a body without a length", b"HTTP/1.1 200 OK\r\n\r\nhel".to_vec(), true),
        ("garbage", b"garbage".to_vec(), false),
        ("a 100", b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), false),
    ];
    let mut all = Vec::new();
    for (what, bytes, call_may_complete) in early {
        for (end, step) in ends().into_iter().chain([("an unread close", Step::Close)]) {
            let steps = [Step::Send(bytes.clone()), step];
            all.push(scripted(format!("{what} at accept, then {end}"), call_may_complete, steps));
        }
    }
    for (end, step) in ends() {
        let steps = [Step::Read(10), Step::Send(hello.clone()), step.clone()];
        all.push(scripted(format!("an answer to ten bytes, then {end}"), true, steps));
        all.push(scripted(format!("ten bytes read, then {end}"), false, [Step::Read(10), step]));
    }
    all
}

/// Servers that misbehave on a connection after a complete response.
fn between_answers() -> Vec<HostileBehaviour> {
    let hello = with_length(b"hello");
    let pause = Step::Pause(Duration::from_micros(500));
    let answer = || [Step::Request, Step::Send(with_length(b"hello"))];
    let after_an_answer = |name: &str, then: &[Step]| {
        ends().map(|(end, step)| {
            let steps = answer().into_iter().chain(then.iter().cloned()).chain([step]);
            scripted(format!("an answer, {name}, then {end}"), true, steps)
        })
    };
    let mut all = Vec::new();
    all.extend(after_an_answer("a moment", std::slice::from_ref(&pause)));
    all.extend(after_an_answer("a moment, half another", &[pause.clone(), Step::Send(hello[..20].to_vec())]));
    all.extend(after_an_answer("a moment, garbage", &[pause.clone(), Step::Send(b"garbage".to_vec())]));
    all.extend(after_an_answer("another request", &[Step::Request]));
    all.extend(after_an_answer(
        "two more requests, one answer",
        &[Step::Request, Step::Request, Step::Send(hello.clone())],
    ));
    all.extend(after_an_answer(
        "half a body until close",
        &[Step::Request, Step::Send(b"HTTP/1.1 200 OK\r\n\r\nhel".to_vec())],
    ));
    all.push(scripted("two answers to each request", true, [Step::Request, Step::Send(hello.repeat(2))]));
    all.push(scripted("closes without reading", false, [Step::Close]));
    all.push(scripted("ends its side at once and reads on", false, [Step::HalfClose, Step::Drain]));
    all.push(scripted(
        "ends its side after an answer and reads on",
        true,
        [Step::Request, Step::Send(hello), Step::HalfClose, Step::Drain],
    ));
    all
}

/// Servers whose responses never end.
fn without_end() -> Vec<HostileBehaviour> {
    let text = |text: &str| Step::Send(text.as_bytes().to_vec());
    let repeat = |text: &str| Step::Repeat(text.as_bytes().to_vec());
    let begun = |name: &str, steps: Vec<Step>| scripted(name, false, [Step::Request].into_iter().chain(steps));
    vec![
        begun("fields without end", vec![text("HTTP/1.1 200 OK\r\n"), repeat("A: b\r\n")]),
        begun("one field without end", vec![text("HTTP/1.1 200 OK\r\nA: "), repeat("b")]),
        begun("a body without end", vec![text("HTTP/1.1 200 OK\r\n\r\n"), repeat("x")]),
        begun(
            "chunks without end",
            vec![text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), repeat("5\r\nhello\r\n")],
        ),
        begun("100s without end", vec![repeat("HTTP/1.1 100 Continue\r\n\r\n")]),
        begun("empty lines without end", vec![repeat("\r\n")]),
        begun(
            "a chunk extension without end",
            vec![text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;"), repeat("e")],
        ),
        begun(
            "a chunk size of zeros without end",
            vec![text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), repeat("0")],
        ),
        begun(
            "trailers without end",
            vec![text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"), repeat("A: b\r\n")],
        ),
        begun("garbage without end", vec![repeat("garbage")]),
        begun(
            "a drip without end",
            vec![text("HTTP/1.1 200 OK\r\nA: "), Step::Trickle(vec![b'x'; 12], Duration::from_millis(10)), Step::Drain],
        ),
        scripted("answers without end", true, [Step::Request, Step::Repeat(with_length(b"hello"))]),
        scripted(
            "a whole answer too late",
            true,
            [Step::Request, Step::Pause(Duration::from_millis(60)), Step::Send(with_length(b"hello"))],
        ),
    ]
}

/// Servers that send complete responses in pieces, or with urgent data between the pieces.
fn in_pieces() -> Vec<HostileBehaviour> {
    let hello = with_length(b"hello");
    let first = Step::Send(hello[..20].to_vec());
    let second = Step::Send(hello[20..].to_vec());
    let urgent = || Step::Urgent(b"!".to_vec());
    let answering = |name: &str, steps: Vec<Step>| scripted(name, true, [Step::Request].into_iter().chain(steps));
    let mut all = vec![
        answering("single bytes", vec![Step::Trickle(hello.clone(), Duration::ZERO)]),
        answering("single bytes, slowly", vec![Step::Trickle(hello.clone(), Duration::from_micros(300))]),
        answering("two pieces", vec![first.clone(), second.clone()]),
        answering("urgent data before the answer", vec![urgent(), Step::Send(hello.clone())]),
        answering("urgent data within the answer", vec![first.clone(), urgent(), second.clone()]),
        answering("urgent data twice", vec![urgent(), first.clone(), urgent(), second.clone()]),
        answering("urgent data after the answer", vec![Step::Send(hello.clone()), urgent()]),
        answering(
            "late after urgent data",
            vec![first.clone(), urgent(), Step::Pause(Duration::from_millis(3)), second.clone()],
        ),
    ];
    for (end, step) in ends() {
        all.push(scripted(format!("urgent data alone, then {end}"), false, [Step::Request, urgent(), step]));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_more_than_a_hundred_behaviours_with_distinct_names() {
        let all = hostile_behaviours();
        let names: BTreeSet<&str> = all.iter().map(|hostile| hostile.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.len() > 100, "{}", all.len());
    }

    #[test]
    fn a_server_that_refuses_does_so_for_as_long_as_it_runs() {
        let refuses =
            HostileBehaviour { name: String::new(), call_may_complete: false, behaviour: Behaviour::Refuses }.start();
        let error = std::net::TcpStream::connect(refuses.addr()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    }
}
