//! What people who know another tool type, and what that is here. What means the same is taken (an alias of the flag);
//! the rest is answered here, for it would be a guess.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// Flags of wrk, oha, hey, ab, k6, vegeta, httperf and curl that are none here.
const FLAGS: &[(&[&str], &str)] = &[
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
pub fn answered(mut error: clap::Error, words: &[OsString], command: &Command) -> clap::Error {
    let words: Vec<String> = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    // That a flag could be meant as a value is never so here.
    error.remove(ContextKind::Suggested);
    if let Some(answer) = answer(&error, &words, command) {
        for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue] {
            error.remove(kind);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![answer.into()]));
    }
    error
}

fn answer(error: &clap::Error, words: &[String], command: &Command) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::super::help::{Flags, command, parse};
    use super::*;

    fn said(line: &str) -> String {
        let words: Vec<OsString> = std::iter::once("brimful").chain(line.split(' ')).map(OsString::from).collect();
        parse(&words).unwrap_err().to_string()
    }

    #[test]
    fn what_is_answered_is_no_flag_of_load() {
        let all = command(Flags::All);
        let load = all.find_subcommand("load").unwrap();
        for (flags, _) in FLAGS {
            for flag in *flags {
                let taken = load.get_arguments().any(|arg| {
                    let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
                    let shorts = arg.get_short_and_visible_aliases().unwrap_or_default();
                    longs.iter().any(|long| format!("--{long}") == **flag)
                        || shorts.iter().any(|short| format!("-{short}") == **flag)
                });
                assert!(!taken, "{flag}");
                let text = said(&format!("load http://h/ {flag}"));
                assert!(text.contains("tip: ") && !text.contains("use '--"), "{text}");
            }
        }
    }

    #[test]
    fn habits_are_answered() {
        for (line, answer) in [
            ("load -k -c 10 http://h/", "kept alive anyway"),
            ("load --http2 http://h/", "--http 2"),
            ("load -s post.lua http://h/", "--requests-file"),
            ("load -L http://h/", "--follow 10"),
            ("load -q 100 -c 10 http://h/", "--rate 100"),
            ("load -d {\"a\":1} http://h/", "--data"),
            ("load -t 30s http://h/", "--duration 30s"),
            ("load -t2 -c64 -d30s -R2000 http://h/", "opens connections as it needs them"),
            ("load -rate=500 -duration=30s http://h/", "two dashes: --rate=500"),
            ("load -duration=30s http://h/", "two dashes: --duration=30s"),
            ("-n 200 -c 50 http://h/", "brimful load -n 200 -c 50 http://h/"),
            ("http://h/", "brimful load http://h/"),
            ("run script.js", "brimful load URL"),
            ("attack", "brimful survey URL"),
            ("load --num-conns 100 http://h/", "brimful httperf"),
            // What clap knows better.
            ("load --rat 100 http://h/", "--rate"),
            ("lode", "load"),
        ] {
            let said = said(line);
            assert!(said.contains("tip: ") && said.contains(answer), "{line}: {said}");
        }
    }

    #[test]
    fn what_means_the_same_is_taken() {
        use crate::args::{Command, LoadArgs};
        let load = |line: &str| -> Box<LoadArgs> {
            let words = ["brimful", "load", "http://h/"].into_iter().chain(line.split(' ')).map(OsString::from);
            let Command::Load(args) = parse(&words.collect::<Vec<_>>()).unwrap().command else { panic!("{line}") };
            args
        };
        for line in ["-c 64", "-c64", "--connections 64", "--vus 64", "--clients 64"] {
            assert_eq!(load(line).clients.unwrap().0, 64, "{line}");
        }
        for line in ["-d 10", "-z 10s", "--duration 10000ms", "-d10s"] {
            assert_eq!(load(line).duration, Some(brimful_core::Nanos::from_secs(10)), "{line}");
        }
        for line in ["--rps 5", "--qps 5", "-R5", "--rate=5"] {
            assert_eq!(load(line).rate, Some(brimful_core::Rate(5.0)), "{line}");
        }
        for line in ["-X put", "-m PUT", "--method put"] {
            assert_eq!(load(line).call.method.as_deref(), Some("PUT"), "{line}");
        }
        for line in ["-b x=1", "--body x=1", "--data x=1"] {
            assert_eq!(load(line).call.data.as_deref(), Some("x=1"), "{line}");
        }
        for line in ["-u me:secret", "-a me:secret", "--user me:secret"] {
            let field = ("Authorization".to_owned(), "Basic bWU6c2VjcmV0".to_owned());
            assert_eq!(load(line).request.headers().unwrap(), [field], "{line}");
        }
        assert!(load("-u a:b -H Authorization:x").request.headers().is_err());
        for line in ["--new-connection", "--disable-keepalive", "-H Connection:close", "-H connection:Close"] {
            assert_eq!(load(line).request.calls_per_connection().unwrap(), Some(1), "{line}");
        }
        assert_eq!(load("-H Connection:keep-alive").request.calls_per_connection().unwrap(), None);
        assert!(load("-H Connection:close --calls-per-connection 5").request.calls_per_connection().is_err());
        assert!(load("--latency").latency && load("--iterations 9").requests.is_some());
    }
}
