//! Creates the files that the requests of a Workload (the description of a load) need, under a document root. Each URL
//! that the Workload lists gets a file of the listed size. The Workload may list URLs directly, in a URL file or in a
//! file set. URL templates get no file, because a program answers them.
//!
//! File names have no query, so URLs that differ only in the query share one file. The file's size is the mean size of
//! these URLs, weighted by requests. The file of a URL that ends with a slash is `index.html`. So is the file of a URL
//! that is also a directory of other URLs.

use crate::LogError;
use brimful_core::template::is_template;
use brimful_core::workload::Workload;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Size in bytes of a file whose URL has no known size.
const UNKNOWN_BYTES: u64 = 1;
/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 30;
/// The text that fills the files, repeated as often as needed: the source of this module. Text compresses well, but not
/// as extremely as a single repeated byte.
const LINES: &[u8] = include_bytes!("fileset.rs");

/// Number and size of the files that were created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilesetTotals {
    /// Number of files that were created.
    pub files: u64,
    /// Total size of the created files, in bytes.
    pub bytes: u64,
}

/// Creates the files under a directory, which is created if necessary. Existing files in the directory stay unchanged
/// unless they have the name of a created file.
///
/// # Errors
/// [`LogError::Io`] if a file cannot be written, [`LogError::BadFormat`] if a URL leads out of the directory or its
/// file would be too large.
pub fn create_files(workload: &Workload, directory: &Path) -> Result<FilesetTotals, LogError> {
    let mut made = FilesetTotals::default();
    for (name, bytes) in file_sizes(workload)? {
        create_file(&directory.join(&name), bytes)?;
        made.files += 1;
        made.bytes += bytes;
    }
    Ok(made)
}

/// Creates one file of `bytes` bytes, and its parent directories.
pub(crate) fn create_file(path: &Path, bytes: u64) -> Result<(), LogError> {
    let failed = |source| LogError::Io { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    write(path, bytes).map_err(failed)
}

/// Rounds a size to its seven highest bits, so that sizes that differ by less than 1/64 share one file.
pub(crate) fn rounded_size(bytes: u64) -> u64 {
    let shift = (64 - bytes.leading_zeros()).saturating_sub(7);
    let half = if shift > 0 { 1 << (shift - 1) } else { 0 };
    (bytes.saturating_add(half) >> shift << shift).min(MAX_FILE_BYTES)
}

/// Size of each file in bytes, by its path relative to the directory.
fn file_sizes(workload: &Workload) -> Result<BTreeMap<PathBuf, u64>, LogError> {
    // For each file: the sum of the weights, and the sum of weights times bytes.
    let mut sizes: BTreeMap<PathBuf, (f64, f64)> = BTreeMap::new();
    for class in workload.classes.iter().filter(|class| class.has_list()) {
        for place in 0..class.len() {
            let path = class.path(place);
            if is_template(&path) {
                continue;
            }
            let known = sizes.entry(file_name(&path)?).or_default();
            let weight = class.weight(place);
            if let Some(bytes) = class.bytes(place).filter(|_| weight > 0.0) {
                *known = (known.0 + weight, known.1 + weight * bytes as f64);
            }
        }
    }
    // The map is sorted by path, so the files in a directory follow directly after the directory's own path.
    let names: Vec<PathBuf> = sizes.keys().cloned().collect();
    let mut next = names.iter().skip(1);
    let mut found = BTreeMap::new();
    for (file, (weight, sum)) in sizes {
        let bytes = if weight > 0.0 { (sum / weight).round() as u64 } else { UNKNOWN_BYTES };
        if bytes > MAX_FILE_BYTES {
            let what = format!("{} would have {bytes} bytes, more than 4 GiB: make it yourself", file.display());
            return Err(LogError::BadFormat(what));
        }
        let is_directory = next.next().is_some_and(|next| next.starts_with(&file));
        let file = if is_directory { file.join("index.html") } else { file };
        found.entry(file).and_modify(|known: &mut u64| *known = (*known).max(bytes)).or_insert(bytes);
    }
    Ok(found)
}

/// Returns the file that a server looks up for a URL: the path is percent-decoded, and the query is removed. URLs that
/// lead out of the document root are errors.
fn file_name(url: &str) -> Result<PathBuf, LogError> {
    let bad = |why: &str| LogError::BadFormat(format!("no file can stand for {}: {why}", one_line(url)));
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let decoded = String::from_utf8(percent_decoded(path.as_bytes())).map_err(|_| bad("its name is not UTF-8"))?;
    let parts: Vec<&str> = decoded.split('/').filter(|part| !part.is_empty()).collect();
    if parts.iter().any(|part| matches!(*part, "." | "..") || part.contains('\0') || part.len() > 255) {
        return Err(bad("it leads out of the directory, or has a name that no file can have"));
    }
    let name: PathBuf = parts.iter().collect();
    Ok(if decoded.ends_with('/') { name.join("index.html") } else { name })
}

fn percent_decoded(path: &[u8]) -> Vec<u8> {
    let hex = |byte: &u8| (*byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut found = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, after)) = rest.split_first() {
        let escape = after.first().and_then(hex).zip(after.get(1).and_then(hex)).filter(|_| *byte == b'%');
        found.push(escape.map_or(*byte, |(high, low)| 16 * high + low));
        rest = if escape.is_some() { &after[2..] } else { after };
    }
    found
}

fn one_line(text: &str) -> String {
    brimful_core::text::one_line(text).into_owned()
}

fn write(path: &Path, bytes: u64) -> std::io::Result<()> {
    let mut file = BufWriter::new(fs::File::create(path)?);
    let mut left = bytes;
    while left > 0 {
        let part = left.min(LINES.len() as u64);
        file.write_all(&LINES[..part as usize])?;
        left -= part;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::workload::{RequestClass, Url};

    fn workload(urls: &[(&str, f64, Option<u64>)]) -> Workload {
        let mut workload = Workload::single_class("GET", "");
        let url = |(path, weight, bytes): &(&str, f64, Option<u64>)| Url {
            path: (*path).to_owned(),
            weight: *weight,
            bytes: *bytes,
        };
        workload.classes[0] = RequestClass { urls: urls.iter().map(url).collect(), ..workload.classes[0].clone() };
        workload
    }

    #[test]
    fn every_url_has_a_file_of_its_size() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("www");
        let made = workload(&[
            ("/", 1.0, Some(100)),
            ("/a%20b?x=1", 1.0, Some(10)),
            ("/a%20b?x=2", 3.0, Some(30)),
            ("/docs", 1.0, Some(7)),
            ("/docs/a.html", 1.0, Some(20_000)),
            ("/unknown", 1.0, None),
        ]);
        assert_eq!(made.validate(), Ok(()));
        assert_eq!(create_files(&made, &root).unwrap(), FilesetTotals { files: 5, bytes: 100 + 25 + 7 + 20_000 + 1 });
        let size = |name: &str| fs::metadata(root.join(name)).unwrap().len();
        assert_eq!((size("index.html"), size("a b"), size("docs/index.html")), (100, 25, 7));
        assert_eq!((size("docs/a.html"), size("unknown")), (20_000, 1));
    }

    #[test]
    fn lists_and_sets_have_their_files_and_templates_none() {
        let toml = "[[class]]\nname='x'\npath='/set'\nfile_set={files=1000,ratio=0.5,bytes='exponential:100'}\n\
                    [[class]]\nname='y'\nurls_file='urls'\n[[class]]\nname='z'\npath='/{seq}'";
        let mut workload: Workload = toml::from_str(toml).unwrap();
        workload.read_files(|_| Ok(b"/u/a 1 7\n/u/b 1 9\n/{seq}\n/u 2 5".to_vec())).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let made = create_files(&workload, directory.path()).unwrap();
        assert_eq!(made.files, 1003);
        assert!((made.bytes as f64 / 1000.0 - 100.0).abs() < 2.0, "{made:?}");
        let size = |name: &str| fs::metadata(directory.path().join(name)).unwrap().len();
        assert_eq!(size("set/0/4/2.html"), workload.classes[0].bytes(42).unwrap());
        assert_eq!((size("u/a"), size("u/b"), size("u/index.html")), (7, 9, 5));
    }

    #[test]
    fn steps_of_sizes_are_fine_and_few() {
        let mut steps = std::collections::BTreeSet::new();
        for bytes in (0..3000).chain((1..400).map(|i| 7919 * i * i)) {
            let step = rounded_size(bytes);
            assert!(step.abs_diff(bytes) * 128 <= bytes.max(1), "{bytes} {step}");
            steps.insert(step);
        }
        assert!(steps.len() < 1000 && rounded_size(u64::MAX) == MAX_FILE_BYTES);
    }

    #[test]
    fn nothing_is_written_outside_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        for path in ["/../up", "/a/%2e%2e/%2e%2e/up", "/a\0b", "/%ff"] {
            let error = create_files(&workload(&[(path, 1.0, Some(1))]), directory.path()).unwrap_err();
            assert!(error.to_string().contains("no file can stand for"), "{path}: {error}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
