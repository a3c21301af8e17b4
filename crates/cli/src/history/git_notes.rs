//! Reads the documents that `git notes` attached to commits, by running git in the current directory.

use crate::exit::UsageError;
use brimful_core::text::one_line;
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};
use std::thread;

/// Number of hexadecimal digits to which the hash of a commit is shortened. Git shows at least 7.
const SHORT_COMMIT: usize = 10;

/// A git note that is attached to a commit.
#[derive(Debug, PartialEq)]
pub struct Note {
    /// Shortened hash of the commit to which the note belongs.
    pub commit: String,
    /// Content of the note: one document, or one per line.
    pub content: Vec<u8>,
}

/// Reads all notes of a ref, such as `brimful` for refs/notes/brimful.
pub fn read(reference: &str) -> Result<Vec<Note>, UsageError> {
    let list = git(&["notes", &format!("--ref={reference}"), "list"], "")?;
    let list = String::from_utf8_lossy(&list);
    let pairs: Vec<(&str, &str)> = list.lines().filter_map(|line| line.split_once(' ')).collect();
    let objects: String = pairs.iter().map(|(note, _)| format!("{note}\n")).collect();
    let contents = git(&["cat-file", "--batch"], &objects)?;
    let contents = split_batch(&contents)
        .filter(|contents| contents.len() == pairs.len())
        .ok_or_else(|| UsageError(format!("git could not read all notes of `{reference}`; try: git fsck")))?;
    let short = |commit: &str| commit.chars().take(SHORT_COMMIT).collect();
    Ok(pairs
        .iter()
        .zip(contents)
        .map(|((_, commit), content)| Note { commit: short(commit), content: content.to_vec() })
        .collect())
}

/// Runs git with this text as its input, and returns its output.
fn git(args: &[&str], input: &str) -> Result<Vec<u8>, UsageError> {
    let failed = |error: std::io::Error| {
        let hint =
            if error.kind() == ErrorKind::NotFound { "; install git, or name files of Records instead" } else { "" };
        UsageError(format!("cannot run git: {error}{hint}"))
    };
    let mut command = Command::new("git");
    command.args(args).env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        // Git writes output before it has read all of its input, so the input is written on another thread. A write
        // error is ignored: if git ends early, its exit status reports that.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        child.wait_with_output()
    })
    .map_err(failed)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let command = args.first().copied().unwrap_or_default();
    Err(UsageError(format!("`git {command}` failed in the current directory: {}", one_line(message.trim()))))
}

/// The contents of the objects in the output of `git cat-file --batch`: for each a line with hash, type and size in
/// bytes, then the content and a newline. `None` if an object is missing, or the output has another form.
fn split_batch(mut output: &[u8]) -> Option<Vec<&[u8]>> {
    let mut contents = Vec::new();
    while !output.is_empty() {
        let end = output.iter().position(|&byte| byte == b'\n')?;
        let size: usize = std::str::from_utf8(&output[..end]).ok()?.split(' ').nth(2)?.parse().ok()?;
        let (content, rest) = output.get(end + 1..)?.split_at_checked(size)?;
        contents.push(content);
        output = rest.strip_prefix(b"\n")?;
    }
    Some(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objects_of_a_batch_have_the_size_that_their_line_says() {
        let output = b"0a blob 3\na\nb\n1b blob 0\n\n";
        assert_eq!(split_batch(output), Some(vec![&b"a\nb"[..], b""]));
        assert_eq!(split_batch(b""), Some(Vec::new()));
    }

    #[test]
    fn a_batch_that_is_cut_short_or_lacks_an_object_is_refused() {
        for output in
            [&b"0a missing\n"[..], b"0a blob 9\nab\n", b"0a blob 3\nabc", b"0a blob", b"0a blob 99999999999999999999\n"]
        {
            assert_eq!(split_batch(output), None, "{}", String::from_utf8_lossy(output));
        }
    }
}
