//! Flags as they were given, to be passed on to another process.

use super::RequestArgs;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};
use std::ffi::OsString;

/// Those of [`RequestArgs`] on the command line of a command, but for what each load says anew.
pub fn of_requests(words: &[OsString]) -> Vec<OsString> {
    const OF_A_LOAD: [&str; 3] = ["workload", "mix", "seed"];
    let Ok(matches) = super::command(super::Flags::All).try_get_matches_from(words) else { return Vec::new() };
    let Some((_, matches)) = matches.subcommand() else { return Vec::new() };
    let flags = RequestArgs::augment_args(Command::new("flags"));
    let ids = flags.get_arguments().map(|arg| (arg.get_id().as_str(), arg.get_long(), arg.get_action().takes_values()));
    ids.filter(|(id, ..)| !OF_A_LOAD.contains(id) && is_given(matches, id))
        .filter_map(|(id, long, has_value)| Some(spelled(matches, id, long?, has_value)))
        .flatten()
        .collect()
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// A flag, once for each of its values.
fn spelled(matches: &ArgMatches, id: &str, long: &str, has_value: bool) -> Vec<OsString> {
    if !has_value {
        return vec![format!("--{long}").into()];
    }
    let values = matches.get_raw(id).into_iter().flatten();
    let spelled = values.map(|value| {
        let mut word = OsString::from(format!("--{long}="));
        word.push(value);
        word
    });
    spelled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_requested_and_how_is_passed_on_and_nothing_else() {
        let line =
            ["brimful", "survey", "-H", "Accept: a b", "-HX-Y: z", "--new-connection", "--workload", "w", "-t", "2"];
        let more = ["--mix", "a=1", "--seed", "5", "--level", "1s", "--server-cpus", "0", "--timeout", "9s", "-q"];
        let ends = ["--retry-closed", "--shards", "2", "http://h/"];
        let words: Vec<OsString> = [&line[..], &more, &ends].concat().into_iter().map(OsString::from).collect();
        let given = of_requests(&words);
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
