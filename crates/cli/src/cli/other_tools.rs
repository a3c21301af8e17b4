//! Helps users of other load generators. A flag of another tool that has the same meaning is an alias. For other flags,
//! this module adds a tip to the error, because an alias would be a guess.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// Flags of wrk, oha, hey, ab, k6, vegeta, httperf and curl that brimful does not have, and the tip for each.
pub(super) const FLAGS: &[(&[&str], &str)] = &[
    (
        &["-k", "--keepalive", "--keep-alive"],
        "connections are kept alive by default (--new-connection opens one for every call); --insecure accepts any certificate",
    ),
    (&["--http2", "--h2", "--h2c", "-2"], "HTTP/2 is --http 2"),
    (&["--http1.0", "--http1.1", "--http-version"], "the HTTP version is --http 1.0, 1.1 or 2"),
    (
        &["-T", "--content-type"],
        "set a body's type with -H 'Content-Type: application/json', a time limit with --timeout 5s",
    ),
    (
        &["-s", "--script", "-l", "--lua"],
        "scripts are not supported: for varying requests use --requests-file, --urls, --csv or --workload; a time limit is \
         --timeout 5s",
    ),
    (
        &["-L", "-r", "--redirect", "--redirects", "--location"],
        "redirects count as responses (3xx): give the URL that they lead to, or --follow 10",
    ),
    (&["-i", "--head", "-I"], "HEAD requests are -m HEAD"),
    (&["-p", "-D", "--body-file"], "a body from a file is --data @FILE; pipelined calls are --pipeline N"),
    (&["-C", "--cookie"], "send a cookie with -H 'Cookie: NAME=VALUE'; sessions keep cookies with --cookies"),
    (&["-A", "--accept"], "send Accept with -H 'Accept: text/html'; basic authentication is --user NAME:PASSWORD"),
    (&["-x", "--proxy"], "proxies are not supported: load the proxy itself by its own URL"),
    (&["--resolve"], "use another address for a name with --connect-to HOST:PORT:ADDRESS:PORT, as in curl"),
    (&["-4", "-6", "--ipv4", "--ipv6"], "choose the address family with the URL: http://127.0.0.1/ or http://[::1]/"),
    (&["--no-tui", "--no-color", "--disable-color"], "--quiet hides the progress, and NO_COLOR=1 the colours"),
    (&["--latency-correction", "--uncorrected"], "with --rate, response times always count from when a call was due"),
    (&["--burst-delay", "--burst-rate"], "for bursts use --rate 100 --arrivals onoff:5,10% or mmpp:5,10%,2s"),
    (&["--disable-compression", "--compressed"], "compression is requested only with -H 'Accept-Encoding: gzip'"),
    (&["--max-workers", "--workers"], "an open loop opens connections as needed; --max-connections limits them"),
    (
        &["--shards"],
        "--threads N generates the load with N CPUs of this host; `brimful fleet run --shards N` generates it with several \
         processes or hosts",
    ),
    (&["-v", "--verbose"], "--print 3 prints the first three calls: what was sent and received"),
    (&["--threshold", "--thresholds"], "an objective is --slo 'p99<50ms', with exit code 1 if it is missed"),
    (
        &["--server", "--uri", "--num-conns", "--num-conn", "--num-calls", "--hog"],
        "this is a flag of httperf: `brimful httperf …` accepts all of httperf's flags",
    ),
];

/// Adds a tip to an error that users of other tools often cause.
pub fn with_hint(mut error: clap::Error, words: &[OsString], command: &Command) -> clap::Error {
    let words: Vec<String> = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    // Clap suggests to pass an unknown flag as a value, which is never what the user wants here.
    error.remove(ContextKind::Suggested);
    if let Some(tip) = tip(&error, &words, command) {
        for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue] {
            error.remove(kind);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn tip(error: &clap::Error, words: &[String], command: &Command) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let flag = text(ContextKind::InvalidArg);
    let value = text(ContextKind::InvalidValue);
    let kind = error.kind();
    match kind {
        ErrorKind::UnknownArgument | ErrorKind::ValueValidation | ErrorKind::ArgumentConflict => {}
        ErrorKind::InvalidSubcommand => return command_tip(text(ContextKind::InvalidSubcommand)),
        _ => return None,
    }
    if words.first().is_some_and(|word| word.starts_with('-')) && kind == ErrorKind::UnknownArgument {
        return Some(format!("a command comes first: brimful load {}", words.join(" ")));
    }
    if let Some(long) = long_flag_with_one_dash(words, command) {
        return Some(format!("flags longer than one letter have two dashes: -{long}"));
    }
    match kind {
        ErrorKind::UnknownArgument if flag.starts_with('-') => {
            let known = FLAGS.iter().find(|(flags, _)| flags.contains(&flag));
            known.map(|(_, answer)| (*answer).to_owned())
        }
        ErrorKind::UnknownArgument => {
            let quiet = words.iter().any(|word| word == "-q");
            quiet.then(|| "-q is --quiet here and has no value: for calls per second use --rate 100".to_owned())
        }
        ErrorKind::ValueValidation if flag.starts_with("--duration") && value.contains(['{', '@', '=', '[']) => {
            Some("-d is --duration here: for a request's body use --data".to_owned())
        }
        ErrorKind::ValueValidation if flag.starts_with("--threads") => {
            Some("-t is --threads here: the duration is --duration 30s, a call's time limit --timeout 5s".to_owned())
        }
        ErrorKind::ArgumentConflict => {
            let pair = [flag, &conflicting(error)];
            let both = |flag: &str| pair.iter().any(|said| said.contains(flag));
            (both("--rate") && both("--clients")).then(|| {
                "--rate opens connections as it needs them, so their number cannot be set; --clients wait for \
                 responses, so they have no rate"
                    .to_owned()
            })
        }
        _ => None,
    }
}

/// The tip for a word that is not a command.
fn command_tip(word: &str) -> Option<String> {
    let is_url = word.contains("://") || word.contains([':', '/']);
    let makes_load = ["run", "attack", "bench", "benchmark", "test", "get", "start"].contains(&word);
    match (is_url, makes_load) {
        (true, _) => {
            Some(format!("brimful load {word} generates a load, brimful survey {word} finds the server's capacity"))
        }
        (_, true) => {
            Some("brimful load URL generates a load, brimful survey URL finds the server's capacity".to_owned())
        }
        _ => None,
    }
}

/// Finds a long flag with a single dash, like `-rate=500`, which tools written in Go accept.
fn long_flag_with_one_dash<'a>(words: &'a [String], command: &Command) -> Option<&'a str> {
    let command = command.find_subcommand(words.first()?)?;
    let name = |word: &'a String| word.split('=').next().and_then(|name| name.strip_prefix('-'));
    let is_long = |name: &str| {
        let longs = command.get_arguments().filter_map(|arg| arg.get_long_and_visible_aliases()).flatten();
        name.len() > 2 && longs.into_iter().any(|long| long == name)
    };
    words.iter().find(|word| name(word).is_some_and(is_long)).map(String::as_str)
}

/// The flags that the invalid flag conflicts with.
fn conflicting(error: &clap::Error) -> String {
    match error.get(ContextKind::PriorArg) {
        Some(ContextValue::String(flag)) => flag.clone(),
        Some(ContextValue::Strings(flags)) => flags.join(" "),
        _ => String::new(),
    }
}
