//! Splits command lines into words, and runs commands with only the file descriptors stdin, stdout and stderr. Other
//! file descriptors may be open in the test process: it inherits them, for example, from a job server, a lock or a
//! terminal multiplexer.

use std::process::Command;

/// Splits a command line into words like a shell. Only spaces and single quotes are interpreted.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            character => word.push(character),
        }
    }
    words.push(word);
    words
}

/// A line of bash that closes all file descriptors except stdin, stdout and stderr.
pub const CLOSE_INHERITED: &str = r#"for fd in /proc/$$/fd/*; do fd=${fd##*/}; ((fd < 3)) || eval "exec $fd>&-"; done"#;

/// Returns a command that runs `command` under `ulimit -n LIMIT`, with only the file descriptors stdin, stdout and
/// stderr. The program, its arguments and its environment variables are copied from `command`; other settings are not.
pub fn with_descriptor_limit(limit: u64, command: &Command) -> Command {
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &format!("{CLOSE_INHERITED}; ulimit -n {limit}; exec \"$0\" \"$@\"")])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_three_descriptors_whatever_its_parents_had_open() {
        let mut list = Command::new("sh");
        list.args(["-c", "ls /proc/$$/fd; ulimit -n"]);
        let inner = with_descriptor_limit(9, &list);
        let mut outer = Command::new("bash");
        outer.args(["-c", "exec 3</dev/null 11</dev/null 27</dev/null; exec \"$0\" \"$@\""]);
        outer.arg(inner.get_program()).args(inner.get_args());
        let output = String::from_utf8(outer.output().unwrap().stdout).unwrap();
        assert_eq!(output.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "9"]);
    }
}
