//! Turns httperf's options into a Workload and the plan of a run.

use super::options::{Options, Period, Wset};
use crate::exit::UsageError;
use anyhow::Context;
use brimful_core::tls::Tls;
use brimful_core::workload::{
    BetweenBursts, Expect, FileSet, Load, Order, SessionArrivals, Sessions, Spread, Workload,
};
use brimful_core::{Nanos, Rate};
use brimful_engine::{Close, ConnectionPolicy, Engine, Security, SecurityOptions};
use brimful_http::Version;
use brimful_run::{
    Endpoint, FleetOptions, GeneratorOptions, LoadOptions, RecordOptions, RunError, RunOptions, RunPlan, ServerOptions,
    TlsOptions,
};
use brimful_workload::{ArrivalProcess, Steps, read_session_log};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The User-Agent header of httperf.
const USER_AGENT: &str = "httperf/0.9.0";

/// Time limit of a connection attempt before a test. If the server has several addresses, such an attempt checks each
/// address.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(3);

/// Warnings about options without effect, each with the reason.
pub fn warnings(options: &Options) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |condition: bool, text: &str| {
        if condition {
            warnings.push(text.to_owned());
        }
    };
    warn(
        options.use_timer_cache,
        "--use-timer-cache has no effect: the clock is always read only once per system call",
    );
    warn(options.debug > 0, "--debug has no effect: --print-request and --print-reply show what is sent and received");
    warn(!matches!(&*options.http_version, "1.0" | "1.1"), "--http-version must be 1.0 or 1.1: using 1.1");
    warn(
        options.ssl_ciphers.is_some(),
        "--ssl-ciphers has no effect: the server chooses from the suites of TLS 1.3, and of TLS 1.2 with ECDHE",
    );
    warn(
        options.retry_on_failure && !(options.has_sessions() && options.failure_status.is_some()),
        "--retry-on-failure has an effect only for sessions (--wsess, --wsesslog) with a --failure-status",
    );
    warn(
        !options.has_sessions() && options.max_connections.is_some(),
        "--max-connections has an effect only for sessions (--wsess, --wsesslog): other tests open --num-conns connections",
    );
    warn(
        !options.has_sessions() && options.failure_status.is_some(),
        "--failure-status has an effect only for sessions (--wsess, --wsesslog)",
    );
    warn(
        !options.operands.is_empty(),
        &format!("arguments that are not options have no effect: {}", options.operands.join(" ")),
    );
    warnings
}

/// The plan of the test that these options describe.
///
/// # Errors
/// Returns an error if the server's name cannot be resolved, a file cannot be read, or the options contradict one
/// another.
pub fn plan(options: &Options) -> anyhow::Result<RunPlan> {
    if options.session_cookies && !options.has_sessions() {
        return Err(
            UsageError("--session-cookies is for sessions: define them with --wsess or --wsesslog".into()).into()
        );
    }
    let endpoint = endpoint(options)?;
    let mut workload = workload(options)?;
    workload.tls = tls(options);
    let calls = workload.list_call_limit().unwrap_or(u64::MAX);
    let options = RunOptions {
        server: ServerOptions {
            version: if options.http_version == "1.0" { Version::Http10 } else { Version::Http11 },
            headers: headers(options)?,
            tls: workload.tls.as_ref().map(|tls| tls_options(&endpoint, tls)).transpose()?,
            endpoint,
            connections: connections(options),
        },
        load: LoadOptions {
            workload,
            trace: None,
            window: Nanos::MAX,
            calls,
            // The seed of random numbers depends only on the client's number, so the same client repeats the same test.
            seed: options.client_and_total.0 + 1,
            tick: None,
            // In httperf, a refused connection counts towards --num-conns, and the next connection starts without a
            // delay.
            back_off: false,
            max_redirects: None,
        },
        generator: GeneratorOptions { engine: Engine::Auto, threads: 1, cpus: Vec::new(), max_rate: None },
        fleet: FleetOptions::default(),
        monitor: None,
        record: RecordOptions {
            command: vec![super::echo::command_line(options)],
            labels: BTreeMap::new(),
            interval: Nanos::from_secs(1),
            secret_headers: Vec::new(),
        },
    };
    Ok(RunPlan::new(options)?)
}

/// The endpoint of the server. If the server has a single address, no connection is tried before the test, because the
/// test itself measures refused connections.
fn endpoint(options: &Options) -> anyhow::Result<Endpoint> {
    let server = options.server.as_str();
    let port = options.port();
    let endpoint = Endpoint::for_server(server, port, CONNECT_TIMEOUT)
        .with_context(|| format!("cannot resolve the server {server}: check --server and the name service"))?;
    let host = if server.contains(':') { format!("[{server}]") } else { server.to_owned() };
    // httperf's Host header has no port.
    let authority = options.server_name.clone().unwrap_or_else(|| host.clone());
    let is_secure = options.ssl;
    let path = options.uri.clone();
    let scheme = if is_secure { "https" } else { "http" };
    let url = match path.starts_with('/') {
        true => format!("{scheme}://{host}:{port}{path}"),
        // --uri may be a whole URL, which is then sent in the request line, as to a proxy. This URL here only names the
        // server.
        false => format!("{scheme}://{host}:{port}/"),
    };
    Ok(Endpoint { url, authority, path, is_secure, ..endpoint })
}

/// The TLS settings of `--ssl`. httperf accepts any certificate, and resumes TLS sessions by default.
fn tls(options: &Options) -> Option<Tls> {
    options.ssl.then(|| Tls { insecure: true, resume: !options.ssl_no_reuse, ..Tls::default() })
}

fn tls_options(endpoint: &Endpoint, tls: &Tls) -> anyhow::Result<TlsOptions> {
    let security = Security::new(&SecurityOptions {
        name: endpoint.host().to_owned(),
        insecure: tls.insecure,
        min_version: tls.minimum,
        resume: tls.resume,
        ..SecurityOptions::default()
    });
    Ok(TlsOptions { security: Arc::new(security.map_err(RunError::from)?), negotiated: None })
}

/// The header fields of every request, as httperf sends them. An empty value removes a field that `brimful load` sends
/// by default.
fn headers(options: &Options) -> anyhow::Result<Vec<(String, String)>> {
    let mut headers = vec![("User-Agent", USER_AGENT), ("Accept", ""), ("Content-Length", "")];
    if options.http_version != "1.0" || options.has_sessions() {
        headers.push(("Connection", ""));
    }
    if options.no_host_header {
        headers.push(("Host", ""));
    }
    let mut headers: Vec<_> = headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for line in options.added_lines() {
        let (name, value) = line.split_once(':').ok_or_else(|| {
            UsageError(format!("--add-header has the line `{line}`: write 'Name: value\\n', each line with its \\n"))
        })?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(headers)
}

fn connections(options: &Options) -> ConnectionPolicy {
    let timeout = options.timeout.map(Nanos::from_secs_f64);
    ConnectionPolicy {
        close: if options.close_with_reset { Close::Rst } else { Close::Fin },
        // In a test without sessions, the calls that remain when the server closes their connection are dropped: no
        // other connection is opened for them.
        connections_per_session: (!options.has_sessions()).then_some(1),
        connect_timeout: timeout,
        response_timeout: timeout.map_or(Nanos::MAX, |timeout| timeout + Nanos::from_secs_f64(options.think_timeout)),
        send_buffer: Some(options.send_buffer),
        receive_buffer: Some(options.receive_buffer),
        ..ConnectionPolicy::default()
    }
}

fn workload(options: &Options) -> anyhow::Result<Workload> {
    let mut workload = Workload::single_class(&options.method, &options.uri);
    let class = &mut workload.classes[0];
    if let Some(Wset { files, advance_share }) = options.wset {
        let files = u32::try_from(files).unwrap_or(u32::MAX);
        let (first, stride) = options.client_and_total;
        let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
        class.file_set = Some(FileSet {
            ratio: Some(advance_share),
            first: number(first),
            stride: number(stride),
            ..FileSet::new(files)
        });
    }
    if let Some(wlog) = &options.wlog {
        class.path.clear();
        class.urls_file = Some(wlog.file.display().to_string());
        class.order = if wlog.repeat { Order::Listed } else { Order::Once };
    }
    if let Some(failure) = options.failure_status.filter(|_| options.has_sessions()) {
        class.expect = Some(every_status_except(failure)?);
    }
    workload.load = Some(Load::Sessions(sessions(options)?));
    workload.read_files(|file| std::fs::read(file)).map_err(|error| UsageError(error.to_string()))?;
    workload.validate().map_err(|error| UsageError(error.to_string()))?;
    Ok(workload)
}

/// The expectation that a response has any status except `failure`.
fn every_status_except(failure: u16) -> anyhow::Result<Expect> {
    if !(100..600).contains(&failure) {
        return Err(
            UsageError(format!("--failure-status {failure} is out of range: write a status from 100 to 599")).into()
        );
    }
    let digit = failure / 100;
    let classes = (1..=5).filter(|other| *other != digit).map(|other| format!("{other}xx"));
    let codes = (100 * digit..100 * digit + 100).filter(|code| *code != failure).map(|code| code.to_string());
    let written = classes.chain(codes).collect::<Vec<_>>().join(",");
    Ok(Expect { status: Some(written.parse().map_err(UsageError)?), ..Expect::default() })
}

/// The sessions of the test. A connection of a test without sessions becomes a session with one connection.
fn sessions(options: &Options) -> anyhow::Result<Sessions> {
    let mut sessions = Sessions::with_arrivals(arrivals(&options.period)?);
    let constant = |number: u64| Spread::Constant(number as f64);
    sessions.calls_per_burst = constant(u64::from(options.burst_length));
    sessions.cookies = options.session_cookies;
    sessions.retry = options.retry_on_failure && options.has_sessions();
    sessions.between_bursts = BetweenBursts::Keep;
    if let Some(wsesslog) = &options.wsesslog {
        let named = |error: &dyn std::fmt::Display| UsageError(format!("{}: {error}", wsesslog.file.display()));
        let bytes = std::fs::read(&wsesslog.file).map_err(|error| named(&error))?;
        sessions.scripts =
            read_session_log(brimful_core::text::strip_bom_bytes(&bytes)).map_err(|error| named(&error))?;
        sessions.max_sessions = Some(wsesslog.sessions);
        sessions.think_s = Spread::Constant(wsesslog.think_s);
        use_browser_connections(&mut sessions, options);
    } else if let Some(wsess) = options.wsess {
        sessions.max_sessions = Some(wsess.sessions);
        sessions.calls_per_session = Some(constant(wsess.calls));
        sessions.think_s = Spread::Constant(wsess.think_s);
        use_browser_connections(&mut sessions, options);
    } else {
        sessions.max_sessions = Some(options.num_conns);
        sessions.calls_per_session = Some(constant(options.num_calls));
        sessions.connections = 1;
        sessions.pipelined = options.burst_length > 1;
    }
    Ok(sessions)
}

/// Sends bursts as httperf does: pipelined on one connection while the server keeps it open, and otherwise on several
/// connections.
fn use_browser_connections(sessions: &mut Sessions, options: &Options) {
    sessions.connections = options.max_connections.unwrap_or(4);
    sessions.pipelined = options.max_piped_calls != Some(1);
}

/// The times at which connections or sessions start.
fn arrivals(period: &Period) -> anyhow::Result<SessionArrivals> {
    let open =
        |rate: f64, process: ArrivalProcess| SessionArrivals::Open { rate: Rate(rate), arrivals: process.to_string() };
    Ok(match period {
        Period::OneAfterAnother => SessionArrivals::Closed { users: 1, rest_s: Spread::Constant(0.0) },
        Period::Fixed(period) => open(period.recip(), ArrivalProcess::Constant),
        Period::Exponential(mean) => open(mean.recip(), ArrivalProcess::Poisson),
        Period::Uniform(from, to) => {
            open(f64::midpoint(*from, *to).recip(), ArrivalProcess::Uniform((to - from) / (to + from)))
        }
        Period::Steps(given) => {
            let steps: Vec<_> =
                given.iter().map(|(period, kept)| (period.recip(), Nanos::from_secs_f64(*kept))).collect();
            let (length, begun) = given.iter().fold((0.0, 0.0), |(s, n), (period, kept)| (s + kept, n + kept / period));
            let steps = Steps::new(&steps).map_err(|error| UsageError(format!("--period: {error}")))?;
            open(begun / length, ArrivalProcess::Steps(steps))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        Options::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap()
    }

    fn sessions_of(line: &str) -> Sessions {
        sessions(&options(line)).unwrap()
    }

    #[test]
    fn connections_are_sessions_with_one() {
        let sessions = sessions_of("--num-conns 100 --num-calls 7 --rate 50");
        let arrivals = "constant".to_owned();
        assert_eq!(sessions.session_arrivals, SessionArrivals::Open { rate: Rate(50.0), arrivals });
        assert_eq!((sessions.max_sessions, sessions.mean_calls(), sessions.connections), (Some(100), 7.0, 1));
        assert!(!sessions.pipelined);
        let sessions = sessions_of("--num-calls 6 --burst-length 3");
        assert_eq!(sessions.session_arrivals, SessionArrivals::Closed { users: 1, rest_s: Spread::Constant(0.0) });
        assert!(sessions.pipelined);
    }

    #[test]
    fn sessions_are_sessions() {
        let sessions = sessions_of("--wsess=10,5,2 --burst-length 2 --max-connections 3 --rate 1 --session-cookies");
        assert_eq!((sessions.max_sessions, sessions.mean_calls(), sessions.connections), (Some(10), 5.0, 3));
        assert_eq!(sessions.think_s, Spread::Constant(2.0));
        assert!(sessions.pipelined && sessions.cookies);
    }

    #[test]
    fn periods_are_arrival_processes() {
        let process = |period: &str| match arrivals(&period.parse().unwrap()).unwrap() {
            SessionArrivals::Open { rate, arrivals } => (rate.0, arrivals),
            SessionArrivals::Closed { .. } => panic!("{period} has a rate"),
        };
        assert_eq!(process("d0.02"), (50.0, "constant".to_owned()));
        assert_eq!(process("e0.5"), (2.0, "poisson".to_owned()));
        assert_eq!(process("u1,3"), (0.5, "uniform:0.5".to_owned()));
        assert_eq!(process("v1,2,0.5,4"), (10.0 / 6.0, "steps:1@2s,2@4s".to_owned()));
    }

    #[test]
    fn heads_have_what_was_asked_for_and_no_more() {
        let options = options(r"--no-host-hdr --add-header Referer:a\nX-B:c:d\n");
        let headers = headers(&options).unwrap();
        let all: Vec<_> = headers.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        assert_eq!(
            all,
            ["User-Agent:httperf/0.9.0", "Accept:", "Content-Length:", "Connection:", "Host:", "Referer:a", "X-B:c:d"]
        );
    }

    #[test]
    fn one_status_is_a_failure_and_all_others_are_not() {
        let expect = every_status_except(504).unwrap();
        assert!([100, 200, 404, 500, 503, 505, 599].iter().all(|status| expect.accepts(*status, 0)));
        assert!(!expect.accepts(504, 0));
        assert!(every_status_except(99).is_err() && every_status_except(600).is_err());
    }

    #[test]
    fn a_test_without_a_limit_of_time_waits_for_ever() {
        let policy = connections(&options("--num-conns 1"));
        assert_eq!((policy.connect_timeout, policy.response_timeout), (None, Nanos::MAX));
        let policy = connections(&options("--timeout 2 --think-timeout 3"));
        assert_eq!((policy.connect_timeout, policy.response_timeout), (Some(Nanos::from_secs(2)), Nanos::from_secs(5)));
    }

    #[test]
    fn tls_is_as_httperf_has_it() {
        assert_eq!(tls(&options("--num-conns 1")), None);
        let plan = plan(&options("--ssl --server 127.0.0.1 --server-name www.example.org --ssl-no-reuse")).unwrap();
        let RunOptions { server, load, .. } = plan.options();
        assert_eq!(server.endpoint.url, "https://127.0.0.1:443/");
        assert_eq!(load.workload.tls, Some(Tls { insecure: true, ..Tls::default() }));
        assert!(server.tls.is_some() && server.endpoint.is_secure);
        assert!(tls(&options("--ssl")).is_some_and(|tls| tls.resume));
    }

    #[test]
    fn what_has_no_effect_is_said() {
        let warnings = warnings(&options("--use-timer-cache --debug 1 --failure-status 500 --http-version 2 extra"));
        assert_eq!(warnings.len(), 5, "{warnings:#?}");
        assert!(super::warnings(&options("--hog --num-conns 5")).is_empty());
    }
}
