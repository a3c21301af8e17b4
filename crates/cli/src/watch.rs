//! `brimful watch`: samples a server until it is stopped, then prints a summary.
//!
//! One loop takes samples when they are due and passes each sample to the display, the logs, Prometheus and the
//! summary. None of these can delay the loop, and its memory does not grow with time.

pub mod args;
mod display;
mod events;
#[cfg(test)]
mod fixture;
mod lines;
mod log;
mod options;
mod program_states;
mod prometheus;
mod screen;
mod session;

use crate::exit::Exit;
use crate::output::{OutFile, columns, deliver, print_note};
use crate::remote::find_token;
use anyhow::Context;
use args::WatchArgs;
use brimful_core::Nanos;
use brimful_core::quantity::small_percent;
use brimful_core::server::Server;
use brimful_core::text::{escape_controls, one_line, wrap};
use brimful_monitor::{Finding, Identity, MonitorConfig, MonitorServer, ServeConfig, Token};
use brimful_report::DEFAULT_WIDTH;
use display::Display;
use events::{Event, Events, Flow};
use log::Logs;
use options::{StopReason, WatchOptions};
use program_states::ProgramStates;
use prometheus::Exporter;
use session::Session;

/// Watches the server until the user or a limit ends the watch, and prints the results.
pub fn main(args: &WatchArgs) -> anyhow::Result<Exit> {
    let options = WatchOptions::new(args)?;
    let out = OutFile::create_optional(args.out.as_deref(), "--out")?;
    let mut logs = args.log.as_deref().map(Logs::open).transpose()?;
    let exporter = args.remote.prometheus.map(|address| Exporter::start(address, &args.remote.prometheus_host));
    let exporter = exporter.transpose()?;
    let mut events = Events::from_signals()?;
    let serving = serve(args, &options.config, &events)?;
    let mut session = Session::open(&options)?;
    let mut display = Display::open(&options, &mut events)?;
    if let (Some(serving), Display::Screen(screen)) = (&serving, &mut display) {
        // The screen hides stderr, so the message is repeated on the screen.
        screen.show_status(serving.message.clone());
    }
    if let Some(exporter) = exporter.as_ref().filter(|_| !args.quiet && !args.json && !args.paper_tables) {
        display.show_status(format!("metrics are at http://{}/metrics", exporter.address));
    }
    let ended = run(&options, &mut session, &events, &mut display, logs.as_mut(), exporter.as_ref());
    let notices = display.close();
    let ended = ended?;
    let missing = logs.map_or(0, Logs::close);
    let (server, findings) = session.finish();
    let json = serde_json::to_string_pretty(&server).context("cannot write what was seen as JSON")? + "\n";
    let shown = match options {
        WatchOptions { json: true, .. } => json.clone(),
        WatchOptions { paper_tables: true, .. } => {
            escape_controls(&brimful_report::server::paper_tables(&server)).into_owned()
        }
        WatchOptions { once: true, .. } => {
            wrapped(&sentences(&findings)) + "\n" + &brimful_report::server::text(&server)
        }
        _ => summary(&options, &server, &findings),
    };
    deliver(out, &json, &shown)?;
    for notice in notices {
        print_note(&notice);
    }
    match missing {
        0 => Ok(options.exit_code(ended)),
        n => {
            anyhow::bail!("{n} lines are missing in the logs: free disk space, or choose another directory with --log")
        }
    }
}

/// A running service that sends samples to other hosts until it is dropped.
struct RemoteService {
    _serving: MonitorServer,
    /// A message with the service's address, and with its token if the token is new.
    message: String,
}

/// Starts to serve if `--serve` is given, and prints the service's address on stderr.
fn serve(args: &WatchArgs, watch: &MonitorConfig, events: &Events) -> anyhow::Result<Option<RemoteService>> {
    let Some(address) = args.remote.serve else { return Ok(None) };
    let (token, new_token) = match find_token(args.remote.token_file.as_deref())? {
        Some(token) => (token, String::new()),
        None => {
            let token = Token::generate()?;
            let new_token = format!(", token {}", token.reveal());
            (token, new_token)
        }
    };
    let identity = args.remote.tls_cert.clone().zip(args.remote.tls_key.clone());
    let identity = identity.map(|(certificate, key)| Identity { certificate, key });
    let config = ServeConfig { address, token, identity, watch: watch.clone() };
    let serving = MonitorServer::start(config, events.client_sender())?;
    let message = format!("samples are served at {}{new_token}", serving.address());
    print_note(&message);
    Ok(Some(RemoteService { _serving: serving, message }))
}

fn run(
    options: &WatchOptions,
    session: &mut Session,
    events: &Events,
    display: &mut Display,
    mut logs: Option<&mut Logs>,
    exporter: Option<&Exporter>,
) -> anyhow::Result<StopReason> {
    let mut intervals = 0;
    let mut program_states = ProgramStates::new(&options.config.processes);
    loop {
        if let Some(tick) = session.tick() {
            program_states.status_messages(&tick.sample).into_iter().for_each(|news| display.show_status(news));
            let suspended = tick.rates.suspended();
            if suspended > Nanos::ZERO {
                display.show_status(format!("the machine was suspended for {}", suspended.to_rounded_string()));
            }
            if let Some(logs) = &mut logs {
                logs.write(&tick, &mut |notice| display.show_notice(notice));
            }
            if let Some(exporter) = exporter {
                exporter.publish(&tick.sample);
            }
            if !tick.rates.is_empty() {
                intervals += 1;
                if display.show(session)? == Flow::Quit {
                    return Ok(StopReason::Stopped);
                }
            }
        }
        let ends_in = options.duration.map_or(Nanos::MAX, |duration| duration - session.elapsed());
        if ends_in == Nanos::ZERO || intervals >= options.count {
            return Ok(StopReason::Planned);
        }
        match events.next(ends_in.min(session.time_until_due())) {
            Some(Event::Stop) => return Ok(StopReason::Stopped),
            Some(Event::Client(news)) => display.show_status(news),
            Some(Event::Terminal(event)) if display.handle(&event)? == Flow::Quit => return Ok(StopReason::Stopped),
            _ => {}
        }
    }
}

/// A summary of the whole watch, in a few lines.
fn summary(options: &WatchOptions, server: &Server, findings: &[Finding]) -> String {
    let seconds = Nanos::from_secs_f64(server.intervals.iter().map(|interval| interval.length_s).sum());
    let mut text =
        wrapped(&format!("{} for {}: {}", options.targets, seconds.to_rounded_string(), sentences(findings)));
    for (what, figures) in brimful_report::server::summary_lines(server) {
        text += &format!("{what:<10}{figures}\n");
    }
    if let Some(classes) = server.module.as_ref().and_then(brimful_report::server::module_table) {
        text += &classes;
    }
    if let Some(sizes) = server.requests.as_ref().and_then(brimful_report::server::requests_table) {
        text += &sizes;
    }
    let cost = server.overhead.monitor_cpu_s / seconds.as_secs_f64().max(f64::MIN_POSITIVE);
    let sample = brimful_core::quantity::seconds(server.overhead.per_sample_us / 1e6);
    text + &format!("{:<10}{} of one CPU, {sample} per sample\n", "monitor", small_percent(cost))
}

/// Wraps the text to the terminal's width, if there is a terminal.
fn wrapped(text: &str) -> String {
    columns().map_or(format!("{text}\n"), |columns| wrap(text, 0, columns.min(DEFAULT_WIDTH)))
}

/// The texts of the findings, in one line.
fn sentences(findings: &[Finding]) -> String {
    let sentences: Vec<_> = findings.iter().map(|finding| one_line(&finding.sentence)).collect();
    if sentences.is_empty() { "the time was too short for figures".to_owned() } else { sentences.join("; ") }
}
