//! The options of httperf 0.9 and their values, as in httperf(1). Times are in seconds.

use super::getopt::{self, OptionSpec, OptionValue};
use std::path::PathBuf;
use std::str::FromStr;

/// All options, in the order of `--help`.
pub const OPTIONS: &[OptionSpec] = &[
    takes_value("add-header"),
    takes_value("burst-length"),
    takes_value("client"),
    flag("close-with-reset"),
    OptionSpec { name: "debug", letter: Some('d'), value: OptionValue::Value },
    takes_value("failure-status"),
    OptionSpec { name: "help", letter: Some('h'), value: OptionValue::NoValue },
    flag("hog"),
    takes_value("http-version"),
    takes_value("max-connections"),
    takes_value("max-piped-calls"),
    takes_value("method"),
    flag("no-host-hdr"),
    takes_value("num-calls"),
    takes_value("num-conns"),
    takes_value("period"),
    takes_value("port"),
    OptionSpec { name: "print-reply", letter: None, value: OptionValue::OptionalValue },
    OptionSpec { name: "print-request", letter: None, value: OptionValue::OptionalValue },
    takes_value("rate"),
    takes_value("recv-buffer"),
    flag("retry-on-failure"),
    takes_value("send-buffer"),
    takes_value("server"),
    takes_value("server-name"),
    flag("session-cookies"),
    flag("ssl"),
    takes_value("ssl-ciphers"),
    flag("ssl-no-reuse"),
    takes_value("think-timeout"),
    takes_value("timeout"),
    takes_value("uri"),
    flag("use-timer-cache"),
    OptionSpec { name: "verbose", letter: Some('v'), value: OptionValue::NoValue },
    OptionSpec { name: "version", letter: Some('V'), value: OptionValue::NoValue },
    takes_value("wlog"),
    takes_value("wsess"),
    takes_value("wsesslog"),
    takes_value("wset"),
];

const fn takes_value(name: &'static str) -> OptionSpec {
    OptionSpec { name, letter: None, value: OptionValue::Value }
}

const fn flag(name: &'static str) -> OptionSpec {
    OptionSpec { name, letter: None, value: OptionValue::NoValue }
}

/// The values of all options of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Header lines to add to every request, with escapes as the user wrote them.
    pub add_header: String,
    /// Number of calls in a burst.
    pub burst_length: u32,
    /// This client's number (from 0), and the number of clients.
    pub client_and_total: (u64, u64),
    /// Whether connections are closed with a TCP reset.
    pub close_with_reset: bool,
    /// Debug level. It has no effect.
    pub debug: u32,
    /// Response status that counts as a failure in sessions.
    pub failure_status: Option<u16>,
    /// Whether to print the help text instead of running a test.
    pub help: bool,
    /// Whether to use as many local ports as necessary. It has no effect.
    pub hog: bool,
    /// HTTP version: `1.0` or `1.1`. Any other value means 1.1.
    pub http_version: String,
    /// Maximum number of connections of a session.
    pub max_connections: Option<u32>,
    /// Maximum number of pipelined calls on a session's connection. Only 1, which turns pipelining off, has an effect.
    pub max_piped_calls: Option<u32>,
    /// HTTP method of all requests.
    pub method: String,
    /// Whether requests have no Host header (`--no-host-hdr`).
    pub no_host_header: bool,
    /// Number of calls on each connection.
    pub num_calls: u64,
    /// Total number of connections.
    pub num_conns: u64,
    /// Time between the starts of connections or sessions, from `--period` or `--rate`.
    pub period: Period,
    /// Port of the server; `None` for the default port of the scheme.
    pub port: Option<u16>,
    /// The parts of each reply (head and body) to print.
    pub print_reply: PrintedParts,
    /// The parts of each request (head and body) to print.
    pub print_request: PrintedParts,
    /// Size of each socket's receive buffer, in bytes (`--recv-buffer`).
    pub receive_buffer: u32,
    /// Whether a session retries calls that got the failure status.
    pub retry_on_failure: bool,
    /// Size of each socket's send buffer, in bytes.
    pub send_buffer: u32,
    /// Name or address of the server.
    pub server: String,
    /// Name in the Host header; `None` for that of `server`.
    pub server_name: Option<String>,
    /// Whether each session keeps its cookies.
    pub session_cookies: bool,
    /// Whether connections use TLS.
    pub ssl: bool,
    /// Cipher suites. They have no effect.
    pub ssl_ciphers: Option<String>,
    /// Whether TLS sessions are not resumed.
    pub ssl_no_reuse: bool,
    /// Time that is added to `timeout` while a call waits for its response, in seconds.
    pub think_timeout: f64,
    /// Time limit of a connection attempt and of a response, in seconds.
    pub timeout: Option<f64>,
    /// Path of the requests.
    pub uri: String,
    /// Whether to read the clock rarely. It has no effect.
    pub use_timer_cache: bool,
    /// Whether the report contains more statistics.
    pub verbose: bool,
    /// Whether to print the version instead of running a test.
    pub version: bool,
    /// Requests for the paths that a file lists.
    pub wlog: Option<Wlog>,
    /// Sessions with equal numbers of calls.
    pub wsess: Option<Wsess>,
    /// Sessions that a file describes.
    pub wsesslog: Option<Wsesslog>,
    /// Requests for a numbered set of files.
    pub wset: Option<Wset>,
    /// Arguments that are not options. They have no effect.
    pub operands: Vec<String>,
}

/// The time between the starts of connections or sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Period {
    /// Each connection or session starts as soon as the previous one has ended.
    #[default]
    OneAfterAnother,
    /// All periods have this length, in seconds.
    Fixed(f64),
    /// Exponentially distributed periods with this mean, in seconds.
    Exponential(f64),
    /// Periods that are uniformly distributed between two bounds, in seconds.
    Uniform(f64, f64),
    /// Constant periods, one after another: the length of each period and the time during which it applies, in seconds.
    Steps(Vec<(f64, f64)>),
}

/// Selects whether the head and the body of each request or reply are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrintedParts {
    /// Whether the head is printed.
    pub head: bool,
    /// Whether the body is printed.
    pub body: bool,
}

/// The value of `--wlog`: a file with the paths to request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wlog {
    /// Whether the list is repeated after its last path.
    pub repeat: bool,
    /// The file with the paths.
    pub file: PathBuf,
}

/// The value of `--wsess`: sessions with equal numbers of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wsess {
    /// Number of sessions.
    pub sessions: u64,
    /// Number of calls in each session.
    pub calls: u64,
    /// Think time between bursts, in seconds.
    pub think_s: f64,
}

/// The value of `--wsesslog`: sessions that a file describes.
#[derive(Clone, Debug, PartialEq)]
pub struct Wsesslog {
    /// Number of sessions.
    pub sessions: u64,
    /// Think time between bursts for which the file has none, in seconds.
    pub think_s: f64,
    /// The file that describes the sessions.
    pub file: PathBuf,
}

/// The value of `--wset`: requests for a numbered set of files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wset {
    /// Number of files.
    pub files: u64,
    /// Share of the calls that move on to the next file.
    pub advance_share: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            add_header: String::new(),
            burst_length: 1,
            client_and_total: (0, 1),
            close_with_reset: false,
            debug: 0,
            failure_status: None,
            help: false,
            hog: false,
            http_version: "1.1".to_owned(),
            max_connections: None,
            max_piped_calls: None,
            method: "GET".to_owned(),
            no_host_header: false,
            num_calls: 1,
            num_conns: 1,
            period: Period::default(),
            port: None,
            print_reply: PrintedParts::default(),
            print_request: PrintedParts::default(),
            receive_buffer: 16 * 1024,
            retry_on_failure: false,
            send_buffer: 4 * 1024,
            server: "localhost".to_owned(),
            server_name: None,
            session_cookies: false,
            ssl: false,
            ssl_ciphers: None,
            ssl_no_reuse: false,
            think_timeout: 0.0,
            timeout: None,
            uri: "/".to_owned(),
            use_timer_cache: false,
            verbose: false,
            version: false,
            wlog: None,
            wsess: None,
            wsesslog: None,
            wset: None,
            operands: Vec::new(),
        }
    }
}

impl Options {
    /// Parses the words after the program's name.
    ///
    /// # Errors
    /// A description of the first invalid option, and the form of its value.
    pub fn parse(words: &[String]) -> Result<Options, String> {
        let (given, operands) = getopt::parse(OPTIONS, words)?;
        let mut options = Options { operands, ..Options::default() };
        for (name, value) in given {
            options.set(name, value.as_deref()).map_err(|form| {
                let value = value.as_deref().unwrap_or_default();
                format!("--{name} has the value `{value}`: write {form}")
            })?;
        }
        Ok(options)
    }

    /// Sets an option to a value.
    ///
    /// # Errors
    /// A description of the form that the value must have.
    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        let text = value.unwrap_or_default();
        match name {
            "add-header" => self.add_header += text,
            "burst-length" => self.burst_length = at_least_one(text)?,
            "client" => self.client_and_total = client(text)?,
            "close-with-reset" => self.close_with_reset = true,
            "debug" => self.debug = number(text)?,
            "failure-status" => self.failure_status = Some(number(text)?),
            "help" => self.help = true,
            "hog" => self.hog = true,
            "http-version" => text.clone_into(&mut self.http_version),
            "max-connections" => self.max_connections = Some(at_least_one(text)?),
            "max-piped-calls" => self.max_piped_calls = Some(at_least_one(text)?),
            "method" => text.clone_into(&mut self.method),
            "no-host-hdr" => self.no_host_header = true,
            "num-calls" => self.num_calls = at_least_one(text)?,
            "num-conns" => self.num_conns = at_least_one(text)?,
            "period" => self.period = text.parse()?,
            "port" => self.port = Some(number(text)?),
            "print-reply" => self.print_reply = parts(value)?,
            "print-request" => self.print_request = parts(value)?,
            "rate" => {
                let rate = seconds(text).map_err(|_| "a number per second, like 100".to_owned())?;
                self.period = if rate == 0.0 { Period::OneAfterAnother } else { Period::Fixed(rate.recip()) };
            }
            "recv-buffer" => self.receive_buffer = at_least_one(text)?,
            "retry-on-failure" => self.retry_on_failure = true,
            "send-buffer" => self.send_buffer = at_least_one(text)?,
            "server" => text.clone_into(&mut self.server),
            "server-name" => self.server_name = Some(text.to_owned()),
            "session-cookies" => self.session_cookies = true,
            "ssl" => self.ssl = true,
            "ssl-ciphers" => self.ssl_ciphers = Some(text.to_owned()),
            "ssl-no-reuse" => self.ssl_no_reuse = true,
            "think-timeout" => self.think_timeout = seconds(text)?,
            "timeout" => self.timeout = Some(seconds(text)?).filter(|timeout| *timeout > 0.0),
            "uri" => text.clone_into(&mut self.uri),
            "use-timer-cache" => self.use_timer_cache = true,
            "verbose" => self.verbose = true,
            "version" => self.version = true,
            "wlog" => self.wlog = Some(wlog(text)?),
            "wsess" => self.wsess = Some(wsess(text)?),
            "wsesslog" => self.wsesslog = Some(wsesslog(text)?),
            _ => self.wset = Some(wset(text)?),
        }
        Ok(())
    }

    /// Whether the test makes and measures sessions instead of connections.
    pub fn has_sessions(&self) -> bool {
        self.wsess.is_some() || self.wsesslog.is_some()
    }

    /// The header lines of `--add-header`.
    pub fn added_lines(&self) -> Vec<String> {
        unescaped(&self.add_header).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// The port of `--port`, or else the default port of the scheme.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(if self.ssl { 443 } else { 80 })
    }
}

impl FromStr for Period {
    type Err = String;

    /// Parses a period in the forms `[d|e]T`, `uT1,T2` and `vT1,D1,T2,D2…`.
    fn from_str(text: &str) -> Result<Period, String> {
        let form = || {
            "a period in seconds: 0.1 or d0.1 (fixed), e0.1 (exponential with this mean), u0.05,0.15 (uniform between two \
             bounds) or v1,2,0.5,4 (periods, each with its duration)"
                .to_owned()
        };
        let (kind, rest) = match text.chars().next() {
            Some(kind @ ('d' | 'e' | 'u' | 'v')) => (kind, &text[1..]),
            _ => ('d', text),
        };
        let numbers: Result<Vec<f64>, String> = rest.split(',').map(seconds).collect();
        let numbers = numbers.map_err(|_| form())?;
        match (kind, &numbers[..]) {
            (_, []) => Err(form()),
            ('d' | 'e', [0.0]) | ('u', [0.0, 0.0]) => Ok(Period::OneAfterAnother),
            ('d', [period]) => Ok(Period::Fixed(*period)),
            ('e', [mean]) => Ok(Period::Exponential(*mean)),
            ('u', [from, to]) if from <= to => Ok(Period::Uniform(*from, *to)),
            ('v', numbers) if numbers.len() % 2 == 0 && numbers.iter().all(|number| *number > 0.0) => {
                Ok(Period::Steps(numbers.chunks_exact(2).map(|step| (step[0], step[1])).collect()))
            }
            _ => Err(form()),
        }
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "a whole number that is not too large".to_owned())
}

fn at_least_one<T: FromStr + From<u8> + PartialOrd>(text: &str) -> Result<T, String> {
    let number: T = number(text)?;
    if number < T::from(1) { Err("a whole number of 1 or more".to_owned()) } else { Ok(number) }
}

fn seconds(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|s| s.is_finite() && *s >= 0.0).ok_or_else(|| "a number of seconds, like 2.5".to_owned())
}

fn client(text: &str) -> Result<(u64, u64), String> {
    let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    numbers
        .filter(|(i, n)| i < n)
        .ok_or_else(|| "this client's number, from 0, and the number of clients, like 0/4".into())
}

fn parts(value: Option<&str>) -> Result<PrintedParts, String> {
    match value {
        None => Ok(PrintedParts { head: true, body: true }),
        Some("header") => Ok(PrintedParts { head: true, body: false }),
        Some("body") => Ok(PrintedParts { head: false, body: true }),
        Some(_) => Err("header or body, or no value for both".to_owned()),
    }
}

fn wlog(text: &str) -> Result<Wlog, String> {
    let form = || "y,FILE to repeat the file's paths, or n,FILE to request them once".to_owned();
    let (repeat, file) = text.split_once(',').ok_or_else(form)?;
    let repeat = match repeat {
        "y" | "Y" => true,
        "n" | "N" => false,
        _ => return Err(form()),
    };
    if file.is_empty() { Err(form()) } else { Ok(Wlog { repeat, file: file.into() }) }
}

fn wsess(text: &str) -> Result<Wsess, String> {
    let form = || "the number of sessions, the calls per session and the think time in seconds, like 10,5,2".to_owned();
    let [sessions, calls, think_s] = three_parts(text).ok_or_else(form)?;
    let wsess =
        || Ok(Wsess { sessions: at_least_one(sessions)?, calls: at_least_one(calls)?, think_s: seconds(think_s)? });
    wsess().map_err(|_: String| form())
}

fn wsesslog(text: &str) -> Result<Wsesslog, String> {
    let form = || "the number of sessions, the think time in seconds and a file, like 10,2,sessions.txt".to_owned();
    let [sessions, think_s, file] = three_parts(text).ok_or_else(form)?;
    let wsesslog = || Ok(Wsesslog { sessions: at_least_one(sessions)?, think_s: seconds(think_s)?, file: file.into() });
    wsesslog().map_err(|_: String| form())
}

fn wset(text: &str) -> Result<Wset, String> {
    let form = || "the number of files and the share of calls that move on to the next file, like 1024,0.25".to_owned();
    let (files, advance_share) = text.split_once(',').ok_or_else(form)?;
    let wset = || Ok(Wset { files: at_least_one(files)?, advance_share: seconds(advance_share)? });
    let wset = wset().map_err(|_: String| form())?;
    if wset.advance_share > 1.0 { Err(form()) } else { Ok(wset) }
}

/// Splits a text at its first two commas.
fn three_parts(text: &str) -> Option<[&str; 3]> {
    let mut parts = text.splitn(3, ',');
    Some([parts.next()?, parts.next()?, parts.next()?])
}

/// Replaces escapes: `\n`, `\r\n` and `\a` end a line, `\\` is a backslash, and `\101` a character by its octal code.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('n' | 'a') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some(digit @ '0'..='7') => {
                let mut code = u32::from(digit) - u32::from('0');
                for _ in 0..2 {
                    let Some(digit) = chars.next_if(|c| ('0'..='7').contains(c)) else { break };
                    code = code * 8 + u32::from(digit) - u32::from('0');
                }
                plain.push(char::from_u32(code).unwrap_or('\u{fffd}'));
            }
            Some(other) => plain.push(other),
            None => plain.push('\\'),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        Options::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_people_write() {
        let options = read("--hog --server www --num-conn 100 --ra 10 --timeout 5").unwrap();
        let expected = Options {
            hog: true,
            server: "www".to_owned(),
            num_conns: 100,
            period: Period::Fixed(0.1),
            timeout: Some(5.0),
            ..Options::default()
        };
        assert_eq!(options, expected);
        let options =
            read("--wsess=10,5,2 --burst-len 5 --client 1/3 --print-reply=header -v --wset 1024,.25").unwrap();
        assert_eq!(options.wsess, Some(Wsess { sessions: 10, calls: 5, think_s: 2.0 }));
        assert_eq!((options.burst_length, options.client_and_total, options.verbose), (5, (1, 3), true));
        assert_eq!(options.print_reply, PrintedParts { head: true, body: false });
        assert_eq!(options.wset, Some(Wset { files: 1024, advance_share: 0.25 }));
        let options = read("--wlog=y,a,b --wsesslog 3,0.5,s,t --session-cookie").unwrap();
        assert_eq!(options.wlog, Some(Wlog { repeat: true, file: "a,b".into() }));
        assert_eq!(options.wsesslog, Some(Wsesslog { sessions: 3, think_s: 0.5, file: "s,t".into() }));
        assert!(options.session_cookies && options.has_sessions());
        assert_eq!((read("--ssl").unwrap().port(), read("--port 8080 --ssl").unwrap().port()), (443, 8080));
    }

    #[test]
    fn every_option_is_known_by_its_value() {
        for option in OPTIONS {
            let value = match option.name {
                "client" => "0/1",
                "wlog" => "n,f",
                "wsess" => "1,1,0",
                "wsesslog" => "1,0,f",
                "wset" => "1,1",
                "print-reply" | "print-request" => "body",
                _ => "1",
            };
            let words = match option.value {
                OptionValue::NoValue => vec![format!("--{}", option.name)],
                _ => vec![format!("--{}={value}", option.name)],
            };
            let read = Options::parse(&words).unwrap();
            let same = matches!(option.name, "num-calls" | "num-conns" | "burst-length" | "client");
            assert_eq!(read == Options::default(), same, "{} changes something", option.name);
        }
    }

    #[test]
    fn periods() {
        for (text, period) in [
            ("0", Period::OneAfterAnother),
            ("0.2", Period::Fixed(0.2)),
            ("d0.2", Period::Fixed(0.2)),
            ("e0.2", Period::Exponential(0.2)),
            ("u1,3", Period::Uniform(1.0, 3.0)),
            ("v1,2,0.5,4", Period::Steps(vec![(1.0, 2.0), (0.5, 4.0)])),
        ] {
            assert_eq!(text.parse(), Ok(period), "{text}");
        }
        for text in ["", "x1", "1,2", "u1", "u3,1", "v1", "v1,2,3", "v0,1", "e", "-1", "dnan", "é"] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }

    #[test]
    fn headers_are_written_with_escapes() {
        assert_eq!(unescaped(r"Referer: foo\nAuth: secret\n"), "Referer: foo\nAuth: secret\n");
        assert_eq!(unescaped(r"A: \101\\\r\n\7"), "A: A\\\r\n\u{7}");
        assert_eq!(unescaped(r"\400\"), "\u{100}\\");
    }

    #[test]
    fn a_wrong_value_is_shown_with_the_right_form() {
        for (line, message) in [
            ("--num-calls 0", "--num-calls has the value `0`: write a whole number of 1 or more"),
            ("--rate x", "--rate has the value `x`: write a number per second"),
            ("--client 3/3", "0/4"),
            ("--wsess 1,2", "10,5,2"),
            ("--wset 5", "1024,0.25"),
            ("--wset 5,2", "1024,0.25"),
            ("--wlog maybe,f", "y,FILE"),
            ("--print-reply=foot", "header or body"),
            ("--port 99999", "not too large"),
            ("--timeout -1", "a number of seconds"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(message), "{line}: {error}");
        }
    }
}
