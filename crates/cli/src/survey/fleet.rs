//! Starts the fleet: the processes that together generate a survey's loads (`--shards`). The fleet gets the survey's
//! request flags as the user wrote them.

use super::args::SurveyArgs;
use crate::flags::RequestArgs;
use crate::fleet;
use brimful_run::SurveyFleet;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command};
use std::ffi::OsString;
use std::fmt::Display;
use std::sync::atomic::AtomicBool;

/// Starts the processes that generate the loads, if the user requested several. If `streams` is set, calls share
/// connections, each of which has this many HTTP/2 streams.
pub fn start(args: &SurveyArgs, streams: Option<usize>, stop: &AtomicBool) -> anyhow::Result<Option<SurveyFleet>> {
    let (Some(shards), Some(url)) = (args.shards, &args.url) else { return Ok(None) };
    let flag = |name: &str, value: &dyn Display| OsString::from(format!("--{name}={value}"));
    let mut words = vec![OsString::from("serve-survey"), flag("shards", &shards.0)];
    words.extend(args.address.iter().map(|address| flag("address", address)));
    words.extend(args.shards_per_node.map(|number| flag("shards-per-node", &number.0)));
    words.extend(request_flags(std::env::args_os().skip(1)));
    words.extend(streams.map(|streams| flag("streams", &streams)));
    words.push(url.into());
    Ok(Some(SurveyFleet::start(shards.0, fleet::command(&words)?, stop)?))
}

/// The flags of [`RequestArgs`] on the command line of a survey, except flags that are set for each load. The first of
/// `words` is the name of the command.
fn request_flags(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    const SET_BY_EACH_LOAD: [&str; 3] = ["workload", "mix", "seed"];
    let survey = SurveyArgs::augment_args(Command::new("survey"));
    let Ok(matches) = survey.try_get_matches_from(words) else { return Vec::new() };
    let request_flags = RequestArgs::augment_args(Command::new("request"));
    let given = request_flags.get_arguments().filter(|flag| {
        let id = flag.get_id().as_str();
        !SET_BY_EACH_LOAD.contains(&id) && matches.value_source(id) == Some(ValueSource::CommandLine)
    });
    given.flat_map(|flag| spelled_out(flag, &matches)).collect()
}

/// Writes a flag in its long form, once for each of its values.
fn spelled_out(flag: &Arg, matches: &ArgMatches) -> Vec<OsString> {
    let Some(name) = flag.get_long() else { return Vec::new() };
    if !flag.get_action().takes_values() {
        return vec![format!("--{name}").into()];
    }
    let values = matches.get_raw(flag.get_id().as_str()).into_iter().flatten();
    let spelled_out = values.map(|value| {
        let mut word = OsString::from(format!("--{name}="));
        word.push(value);
        word
    });
    spelled_out.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_request_flags_are_passed_on() {
        let line = ["survey", "-H", "Accept: a b", "-HX-Y: z", "--new-connection", "--workload", "w", "-t", "2"];
        let more = ["--mix", "a=1", "--seed", "5", "--level", "1s", "--server-cpus", "0", "--timeout", "9s", "-q"];
        let ends = ["--retry-closed", "--shards", "2", "http://h/"];
        let words = [&line[..], &more, &ends].concat().into_iter().map(OsString::from);
        let given = request_flags(words);
        let expected = [
            "--header=Accept: a b",
            "--header=X-Y: z",
            "--new-connection",
            "--timeout=9s",
            "--retry-closed",
            "--threads=2",
        ];
        assert_eq!(given, expected.map(OsString::from));
    }
}
