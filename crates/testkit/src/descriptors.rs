//! Processes that have no descriptor but the standard three, however many the test's own process inherited: from a job
//! server, a lock or a terminal multiplexer.

use std::process::Command;

/// A line of bash that closes what the shell inherited beyond stdin, stdout and stderr.
pub const CLOSE_INHERITED: &str = r#"for fd in /proc/$$/fd/*; do fd=${fd##*/}; ((fd < 3)) || eval "exec $fd>&-"; done"#;

/// The same command under `ulimit -n LIMIT`, with the standard three descriptors and no others. Only program, arguments
/// and environment are taken over.
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
        let said = String::from_utf8(outer.output().unwrap().stdout).unwrap();
        assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "9"]);
    }
}
