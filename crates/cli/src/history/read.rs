//! Reads the runs of a history: files of one document, files of JSON lines, directories of both, and git notes.
//! Thousands of documents may be read. So documents are parsed on all CPUs, and the fields that a history does not use
//! are dropped at once.

use super::git_notes;
use crate::documents::{display_name, schema};
use crate::exit::UsageError;
use crate::results::drop_details;
use crate::runs::{files_in, is_run, is_run_schema, parse_run};
use brimful_core::text::strip_bom_bytes;
use brimful_stats::Run;
use std::fs;
use std::io::Read;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::str::from_utf8;
use std::thread;

/// Extensions of the files in a directory that are read.
const EXTENSIONS: [&str; 3] = ["json", "jsonl", "ndjson"];

/// The runs of a history, and notes about lines that could not be read.
pub struct ReadRuns {
    /// The runs, each with its file and, in a file of JSON lines, its line.
    pub runs: Vec<(String, Run)>,
    /// One note for each truncated line that was skipped.
    pub notes: Vec<String>,
}

/// A document that is not parsed yet.
struct Source<'a> {
    /// The file and, in a file of JSON lines, the line.
    name: String,
    text: &'a [u8],
    /// Whether this is the last line of its file, and lacks its newline.
    may_be_truncated: bool,
}

/// Reads all runs of these files and directories, and of the git notes of this ref.
pub fn read(paths: &[PathBuf], notes: Option<&str>) -> Result<ReadRuns, UsageError> {
    let mut read = ReadRuns { runs: Vec::new(), notes: Vec::new() };
    for path in paths {
        if path.is_dir() {
            for file in files_in(path, &EXTENSIONS)? {
                read_file(&file, true, &mut read)?;
            }
        } else {
            read_file(path, false, &mut read)?;
        }
    }
    if let Some(reference) = notes {
        read_notes(reference, &mut read)?;
    }
    if read.runs.is_empty() {
        let names = paths.iter().map(|path| display_name(path)).collect::<Vec<_>>().join(", ");
        let message = format!(
            "no Record or survey in {names}: `brimful load … --record-to FILE` appends each run to a file; in a directory, \
             the names must end in .json or .jsonl"
        );
        return Err(UsageError(message));
    }
    Ok(read)
}

/// Reads the runs in a file. `in_directory` means that the file was found in a directory, not named by the user.
fn read_file(path: &Path, in_directory: bool, read: &mut ReadRuns) -> Result<(), UsageError> {
    let name = display_name(path);
    let bytes = read_bytes(path).map_err(|error| UsageError(format!("cannot read {name}: {error}")))?;
    read_documents(&name, &bytes, in_directory, read)
}

/// Reads the runs in the git notes of a ref. The commit of a note becomes the label `commit` of its run, unless the run
/// has this label.
fn read_notes(reference: &str, read: &mut ReadRuns) -> Result<(), UsageError> {
    let before = read.runs.len();
    for note in git_notes::read(reference)? {
        let first = read.runs.len();
        read_documents(&format!("note of {}", note.commit), &note.content, true, read)?;
        for (_, run) in read.runs.iter_mut().skip(first) {
            let labels = match run {
                Run::Record(record) => &mut record.labels,
                Run::Survey(survey) => &mut survey.labels,
            };
            labels.entry("commit".to_owned()).or_insert_with(|| note.commit.clone());
        }
    }
    if read.runs.len() == before {
        let message = format!(
            "no Record or survey in the git notes of `{reference}`: `git notes --ref={reference} add -F record.json COMMIT` \
             attaches one to a commit"
        );
        return Err(UsageError(message));
    }
    Ok(())
}

/// Reads one document, or one per line. If `others_allowed` is set, a file is skipped if its only or first document is
/// of another kind. Any other document of another kind is an error.
fn read_documents(name: &str, bytes: &[u8], others_allowed: bool, read: &mut ReadRuns) -> Result<(), UsageError> {
    let bytes = strip_bom_bytes(bytes);
    if !has_lines(Path::new(name), bytes) {
        let text = from_utf8(bytes).map_err(|error| UsageError(format!("{name}: {error}: it is not a text file")))?;
        if !others_allowed || is_run(Path::new(name), text) {
            read.runs.push((name.to_owned(), slim(parse_run(name, text)?)));
        }
        return Ok(());
    }
    let lines = lines(name, bytes);
    if others_allowed && lines.first().is_some_and(is_other_document) {
        read.notes.push(format!("{name} is left out: its lines are not Records or surveys"));
        return Ok(());
    }
    for parsed in parse_all(&lines) {
        match parsed {
            Parsed::Run(name, run) => read.runs.push((name, *run)),
            Parsed::Truncated(name) => {
                read.notes.push(format!("{name} is left out: the line is cut short, as by a full disk"));
            }
            Parsed::Broken(message) => return Err(UsageError(message)),
        }
    }
    Ok(())
}

/// Whether a line is a JSON object other than a Record or a survey, like a line of `watch --log`.
fn is_other_document(line: &Source<'_>) -> bool {
    from_utf8(line.text).is_ok_and(|text| {
        !is_run_schema(&schema(text))
            && serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok()
    })
}

fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    if path.as_os_str() != "-" {
        return fs::read(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
}

/// Whether a file has one document per line. This is so if the extension of the file says it, or if the file has
/// several lines and the first line is a complete object.
fn has_lines(path: &Path, bytes: &[u8]) -> bool {
    let by_name = path.extension().is_some_and(|extension| extension == "jsonl" || extension == "ndjson");
    let mut lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    by_name || (first.starts_with(b"{") && first.ends_with(b"}") && lines.next().is_some())
}

/// The lines of a file that are not empty.
fn lines<'a>(name: &str, bytes: &'a [u8]) -> Vec<Source<'a>> {
    let is_whole = bytes.ends_with(b"\n");
    let all = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).enumerate();
    let mut sources: Vec<Source<'a>> = all
        .filter(|(_, text)| !text.is_empty())
        .map(|(index, text)| Source { name: format!("{name}:{}", index + 1), text, may_be_truncated: false })
        .collect();
    if let Some(last) = sources.last_mut() {
        last.may_be_truncated = !is_whole;
    }
    sources
}

/// The result of parsing one line.
enum Parsed {
    Run(String, Box<Run>),
    /// A last line that is incomplete, with its name (`file:line`).
    Truncated(String),
    /// An invalid line: the error message, which contains the line's name.
    Broken(String),
}

/// Parses documents on all CPUs. The results are in the order of `sources`.
fn parse_all(sources: &[Source<'_>]) -> Vec<Parsed> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let part = sources.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> =
            sources.chunks(part).map(|part| scope.spawn(|| part.iter().map(parse).collect::<Vec<_>>())).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

fn parse(source: &Source<'_>) -> Parsed {
    let Source { name, text, may_be_truncated } = source;
    let parsed = match from_utf8(text) {
        Ok(text) => parse_run(name, text).map_err(|error| error.0),
        Err(error) => Err(format!("{name}: {error}: it is not text")),
    };
    match parsed {
        Ok(run) => Parsed::Run(name.clone(), Box::new(slim(run))),
        Err(_) if *may_be_truncated => Parsed::Truncated(name.clone()),
        Err(message) => Parsed::Broken(message),
    }
}

/// Removes the fields of a Record that a history does not use. They are most of the size of a Record.
fn slim(mut run: Run) -> Run {
    if let Run::Record(record) = &mut run {
        drop_details(record);
    }
    run
}
