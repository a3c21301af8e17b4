//! What people who know another tool type, and what that is here. What means the same is taken (an alias of the flag);
//! the rest is answered here, for it would be a guess.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// Flags of wrk, oha, hey, ab, k6, vegeta, httperf and curl that are none here.
pub(super) const FLAGS: &[(&[&str], &str)] = &[
    (
        &["-k", "--keepalive", "--keep-alive"],
        "connections are kept alive anyway (--new-connection opens one for every call); to take any certificate: --insecure",
    ),
    (&["--http2", "--h2", "--h2c", "-2"], "HTTP/2 is --http 2"),
    (&["--http1.0", "--http1.1", "--http-version"], "the HTTP version is --http 1.0, 1.1 or 2"),
    (&["-T", "--content-type"], "a body's type is -H 'Content-Type: application/json', a time limit is --timeout 5s"),
    (
        &["-s", "--script", "-l", "--lua"],
        "no scripts are run: requests that differ come from --requests-file, --urls, --csv or a --workload; a time limit is \
         --timeout 5s",
    ),
    (
        &["-L", "-r", "--redirect", "--redirects", "--location"],
        "redirects are counted as answers (3xx): give the URL that they lead to, or --follow 10",
    ),
    (&["-i", "--head", "-I"], "requests without content are -m HEAD"),
    (
        &["-p", "-D", "--body-file"],
        "a body from a file is --data @FILE; several calls at once on a connection are --pipeline N",
    ),
    (&["-C", "--cookie"], "a cookie is -H 'Cookie: NAME=VALUE'; sessions keep theirs with --cookies"),
    (&["-A", "--accept"], "what is accepted is -H 'Accept: text/html'; basic authentication is --user NAME:PASSWORD"),
    (&["-x", "--proxy"], "there are no proxies in between: load the proxy itself by its own URL"),
    (&["--resolve"], "another address for a name is --connect-to HOST:PORT:ADDRESS:PORT, as curl has it"),
    (&["-4", "-6", "--ipv4", "--ipv6"], "which address is taken, the URL can say: http://127.0.0.1/ or http://[::1]/"),
    (&["--no-tui", "--no-color", "--disable-color"], "--quiet shows no progress, and NO_COLOR=1 no colours"),
    (&["--latency-correction", "--uncorrected"], "with --rate, response times always count from when a call was due"),
    (&["--burst-delay", "--burst-rate"], "bursts are --rate 100 --arrivals onoff:5,10% or mmpp:5,10%,2s"),
    (
        &["--disable-compression", "--compressed"],
        "nothing is asked for compressed, but with -H 'Accept-Encoding: gzip'",
    ),
    (&["--max-workers", "--workers"], "an open loop opens connections as it needs them, --max-connections at most"),
    (
        &["--shards"],
        "--threads N is one load from N CPUs of this host: they share nothing but the process's limit of descriptors; one \
         from processes or hosts is `brimful fleet run --shards N`",
    ),
    (&["-v", "--verbose"], "--print 3 shows the first three calls, what was sent and what came back"),
    (&["--threshold", "--thresholds"], "an objective is --slo 'p99<50ms', exit code 1 where it is missed"),
    (
        &["--server", "--uri", "--num-conns", "--num-conn", "--num-calls", "--hog"],
        "that is one of httperf's, which `brimful httperf …` takes, all of them",
    ),
];

/// The error, with what to write instead where that is known.
pub fn with_tip(mut error: clap::Error, words: &[OsString], command: &Command) -> clap::Error {
    let words: Vec<String> = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    // That a flag could be meant as a value is never so here.
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
    let (flag, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let kind = error.kind();
    match kind {
        ErrorKind::UnknownArgument | ErrorKind::ValueValidation | ErrorKind::ArgumentConflict => {}
        ErrorKind::InvalidSubcommand => return no_command(text(ContextKind::InvalidSubcommand)),
        _ => return None,
    }
    if words.first().is_some_and(|word| word.starts_with('-')) && kind == ErrorKind::UnknownArgument {
        return Some(format!("a command comes first: brimful load {}", words.join(" ")));
    }
    if let Some(long) = one_dash(words, command) {
        return Some(format!("flags of more than a letter have two dashes: -{long}"));
    }
    match kind {
        ErrorKind::UnknownArgument if flag.starts_with('-') => {
            let known = FLAGS.iter().find(|(flags, _)| flags.contains(&flag));
            known.map(|(_, answer)| (*answer).to_owned())
        }
        ErrorKind::UnknownArgument => {
            let quiet = words.iter().any(|word| word == "-q");
            quiet.then(|| "-q is --quiet here, and takes no value: calls per second are --rate 100".to_owned())
        }
        ErrorKind::ValueValidation if flag.starts_with("--duration") && value.contains(['{', '@', '=', '[']) => {
            Some("-d is --duration here: a request's body is --data".to_owned())
        }
        ErrorKind::ValueValidation if flag.starts_with("--threads") => {
            Some("-t is --threads here: how long is --duration 30s, a call's time limit --timeout 5s".to_owned())
        }
        ErrorKind::ArgumentConflict => {
            let pair = [flag, &conflicting(error)];
            let both = |flag: &str| pair.iter().any(|said| said.contains(flag));
            (both("--rate") && both("--clients")).then(|| {
                "--rate opens connections as it needs them, so there is no number of them to give; --clients wait for \
                 their answers, and have no rate"
                    .to_owned()
            })
        }
        _ => None,
    }
}

/// Instead of one of the commands.
fn no_command(word: &str) -> Option<String> {
    let is_url = word.contains("://") || word.contains([':', '/']);
    let makes_load = ["run", "attack", "bench", "benchmark", "test", "get", "start"].contains(&word);
    match (is_url, makes_load) {
        (true, _) => {
            Some(format!("brimful load {word} makes a load, brimful survey {word} finds what the server can take"))
        }
        (_, true) => {
            Some("brimful load URL makes a load, brimful survey URL finds what the server can take".to_owned())
        }
        _ => None,
    }
}

/// `-rate=500`, as Go's tools have it: the flag with what follows it.
fn one_dash<'a>(words: &'a [String], command: &Command) -> Option<&'a str> {
    let command = command.find_subcommand(words.first()?)?;
    let name = |word: &'a String| word.split('=').next().and_then(|name| name.strip_prefix('-'));
    let is_long = |name: &str| {
        let longs = command.get_arguments().filter_map(|arg| arg.get_long_and_visible_aliases()).flatten();
        name.len() > 2 && longs.into_iter().any(|long| long == name)
    };
    words.iter().find(|word| name(word).is_some_and(is_long)).map(String::as_str)
}

fn conflicting(error: &clap::Error) -> String {
    match error.get(ContextKind::PriorArg) {
        Some(ContextValue::String(flag)) => flag.clone(),
        Some(ContextValue::Strings(flags)) => flags.join(" "),
        _ => String::new(),
    }
}
