//! The names by which a process can be selected: the kernel's name, the name of its executable, the first word of its
//! title (its command line, which a program can change), and the name of the script that it runs.

use std::cell::OnceCell;
use std::fs;
use std::path::Path;

/// Maximum length of the name that the kernel keeps of a process, in bytes (`TASK_COMM_LEN` is 16, with a zero byte).
const COMM_BYTES: usize = 15;
/// Names of programs that run scripts, without version. Their option `-e` is followed by program text, not by a file.
const INTERPRETERS: [&[u8]; 11] =
    [b"python", b"pypy", b"perl", b"ruby", b"node", b"nodejs", b"deno", b"bun", b"php", b"lua", b"java"];
/// Names of shells. Their option `-e` means to exit at the first error.
const SHELLS: [&[u8]; 3] = [b"sh", b"bash", b"dash"];
/// Number of first arguments among which the script is looked for, because only options of the interpreter precede it.
const MAX_SCRIPT_POSITION: usize = 8;

/// The names of one process. All names except the kernel's are read when they are first needed.
pub(super) struct ProcessNames<'p> {
    proc: &'p Path,
    pid: u32,
    comm: &'p [u8],
    others: OnceCell<Vec<Vec<u8>>>,
}

impl ProcessNames<'_> {
    /// Creates the names of a process. `comm` is the name that the kernel keeps.
    pub fn new<'p>(proc: &'p Path, pid: u32, comm: &'p [u8]) -> ProcessNames<'p> {
        ProcessNames { proc, pid, comm, others: OnceCell::new() }
    }

    /// Whether the process has this name.
    pub fn contains(&self, name: &str) -> bool {
        is_whole(self.comm, name.as_bytes()) || self.others().iter().any(|other| other == name.as_bytes())
    }

    fn others(&self) -> &[Vec<u8>] {
        self.others.get_or_init(|| other_names(self.proc, self.pid, self.comm))
    }
}

/// Whether `comm` is exactly this name, and not the beginning of a longer name that the kernel has cut off.
fn is_whole(comm: &[u8], name: &[u8]) -> bool {
    name.len() <= COMM_BYTES && comm == name
}

/// Whether `comm` is this name, or its beginning if the kernel has cut it off.
fn is_cut_to(comm: &[u8], name: &[u8]) -> bool {
    !comm.is_empty() && comm == &name[..name.len().min(COMM_BYTES)]
}

/// The names of a process, except the name that the kernel keeps (`comm`).
fn other_names(proc: &Path, pid: u32, comm: &[u8]) -> Vec<Vec<u8>> {
    let executable = executable_name(proc, pid);
    let command_line = fs::read(proc.join(format!("{pid}/cmdline"))).unwrap_or_default();
    let script = script(&command_line, comm, &executable).map(<[u8]>::to_vec);
    [Some(title(&command_line)), script, Some(executable)].into_iter().flatten().collect()
}

/// The first word of a process's title, without directories: `php-fpm` for `php-fpm: master process (/etc/...)`, `puma`
/// for `puma 6.4 (tcp://...)`. For a process that sets no title, this is the name under which it was started.
fn title(command_line: &[u8]) -> Vec<u8> {
    file_name(command_line.split(|byte| b"\0: ".contains(byte)).next().unwrap_or_default()).to_vec()
}

/// The file name of the script that an interpreter runs: `app.py` for `python3 -u /srv/app.py --port 80`. A process
/// counts as an interpreter if its executable is a known interpreter, or if the kernel named the process after the
/// script, as it does for scripts that begin with `#!`.
fn script<'c>(command_line: &'c [u8], comm: &[u8], executable: &[u8]) -> Option<&'c [u8]> {
    let program = without_version(executable);
    let is_shell = SHELLS.contains(&program);
    let mut arguments = command_line.split(|byte| *byte == 0).skip(1).take(MAX_SCRIPT_POSITION);
    let argument = arguments.find(|argument| !argument.starts_with(b"-") || is_code(argument, is_shell))?;
    let name = file_name(argument);
    let is_script = !argument.starts_with(b"-") && !name.is_empty();
    let is_interpreter = is_shell || INTERPRETERS.contains(&program);
    (is_script && (is_interpreter || is_cut_to(comm, name))).then_some(name)
}

/// Whether this option is followed by program text, rather than by a file.
fn is_code(option: &[u8], is_shell: bool) -> bool {
    option == b"-c" || (option == b"-e" && !is_shell)
}

/// A program's name without its version: `python` for `python3.11`.
fn without_version(executable: &[u8]) -> &[u8] {
    let version = |byte: &u8| byte.is_ascii_digit() || b".-".contains(byte);
    let length = executable.iter().rposition(|byte| !version(byte)).map_or(0, |last| last + 1);
    executable.get(..length).unwrap_or_default()
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// The file name of a process's executable, even if the file has been replaced since.
fn executable_name(proc: &Path, pid: u32) -> Vec<u8> {
    let path = fs::read_link(proc.join(format!("{pid}/exe"))).unwrap_or_default();
    let file = path.file_name().unwrap_or_default().as_encoded_bytes();
    file.strip_suffix(b" (deleted)").unwrap_or(file).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_an_interpreter_is_found_among_its_arguments() {
        for (line, comm, executable, expected) in [
            (
                "python3\0/opt/verylongscriptname-app\0x",
                "verylongscriptn",
                "python3.11",
                Some("verylongscriptname-app"),
            ),
            ("python3\0-u\0app.py\0--port=1", "python3", "python3.11", Some("app.py")),
            ("/opt/own\0/opt/verylongscriptname-app", "verylongscriptn", "own", Some("verylongscriptname-app")),
            ("/opt/own\0/opt/verylongscriptname-app", "own", "own", None),
            ("vim\0nginx", "vim", "vim.basic", None),
            ("sh\0-c\0nginx", "sh", "dash", None),
            ("sh\0-e\0/opt/run", "sh", "dash", Some("run")),
            ("perl\0-e\0print", "perl", "perl", None),
            ("perl\0-w\0-T\0s.pl", "s.pl", "perl", Some("s.pl")),
            ("php8.2\0index.php", "php8.2", "php8.2", Some("index.php")),
            ("python3", "python3", "python3.11", None),
            ("", "", "", None),
        ] {
            let found = script(line.as_bytes(), comm.as_bytes(), executable.as_bytes());
            assert_eq!(found.map(String::from_utf8_lossy).as_deref(), expected, "{line:?}");
        }
    }
}
