//! Parses the files that a request class names: lists of URLs, lists of requests, and CSV rows for placeholders. This
//! module parses texts and does no I/O.
//!
//! - A **list of URLs** has one URL per line: a path, optionally followed by its weight and by the size of its response
//!   in bytes, like `/a.png 3 4096`. Empty lines and lines that begin with `#` are ignored. A file that contains NUL
//!   characters has the format of httperf's `--wlog`: each path ends with NUL.
//! - A **list of requests** has one JSON object per line: `path`, and optionally `method`, `headers`, `body`, `class`,
//!   `weight` and `bytes`. If any line names a class, lines without a class belong to the class `all`.
//! - **Rows** are CSV, with the names of the columns in the first line.
//!
//! Invariant: every path in a list can be sent as it is. It begins with a slash and contains neither spaces nor control
//! characters, so it cannot break the request line. Paths are percent-encoded as browsers do.

use crate::csv;
use crate::quantity::pluralize;
use crate::template::is_template;
use crate::text::strip_bom_bytes;
use crate::url::{encode_target, is_absolute_url};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The contents of the files that a request class names, after reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileContents {
    /// The URLs or requests among which the calls of the class choose.
    pub(super) list: Option<Arc<List>>,
    /// The CSV rows with the values for placeholders.
    pub(super) rows: Option<Arc<Rows>>,
}

/// The list of URLs or requests of a class.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum List {
    Urls(UrlList),
    Requests(Vec<ListedRequest>),
}

/// A syntax error in a file, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// Number of the line, from 1. In a list whose entries end with NUL, it is the number of the entry.
    pub line: usize,
    /// Position in the line, in characters from 1.
    pub column: usize,
    /// What was expected at this position.
    pub expected: String,
}

impl std::error::Error for LineError {}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.expected)
    }
}

impl LineError {
    fn new(line: usize, column: usize, expected: impl Into<String>) -> LineError {
        LineError { line, column, expected: expected.into() }
    }

    /// Converts the bytes of a file to text.
    ///
    /// # Errors
    /// Returns the position of the first invalid byte if the file is not UTF-8.
    pub fn decode_utf8(bytes: &[u8]) -> Result<&str, LineError> {
        std::str::from_utf8(bytes).map_err(|error| {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
            let line_from = good.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let column = String::from_utf8_lossy(good.get(line_from..).unwrap_or_default()).chars().count() + 1;
            LineError::new(line, column, "text in UTF-8; in paths, percent-encode other bytes")
        })
    }
}

/// A list of URLs. All paths are stored in one string to save memory: 100,000 paths of 30 bytes need 3.4 MB, and 50 %
/// more if they have weights and sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UrlList {
    text: String,
    /// End of each path in `text`, in bytes.
    ends: Vec<u32>,
    /// Weight of each URL; empty if all weights are 1.
    weights: Vec<f64>,
    /// Size of each URL's response in bytes, or [`UNKNOWN_SIZE`]; empty if no size is known.
    bytes: Vec<u64>,
    /// Whether any path contains a placeholder.
    pub is_template: bool,
}

const UNKNOWN_SIZE: u64 = u64::MAX;

impl UrlList {
    /// Parses a list of URLs in either of its two formats.
    pub fn parse(bytes: &[u8]) -> Result<UrlList, LineError> {
        let text = LineError::decode_utf8(bytes)?;
        let mut list = UrlList::default();
        if text.contains('\0') {
            let entries = text.split('\0').map(|entry| entry.trim_start_matches(['\n', '\r']));
            for (index, entry) in entries.enumerate().filter(|(_, entry)| !entry.is_empty()) {
                check_target(entry).map_err(|(at, expected)| LineError::new(index + 1, 1 + at, expected))?;
                list.add(index + 1, 1, entry, 1.0, None)?;
            }
        } else {
            for (index, line) in text.lines().enumerate() {
                list.add_line(index + 1, line)?;
            }
        }
        if list.ends.is_empty() {
            return Err(LineError::new(1, 1, "a list has a path on a line, like /index.html"));
        }
        list.text.shrink_to_fit();
        list.ends.shrink_to_fit();
        Ok(list)
    }

    fn add_line(&mut self, line: usize, text: &str) -> Result<(), LineError> {
        let mut words = words(text);
        let Some((column, path)) = words.next().filter(|(_, path)| !path.starts_with('#')) else { return Ok(()) };
        check_path(path).map_err(|(at, expected)| LineError::new(line, column + at, expected))?;
        let weight = match words.next() {
            Some((column, word)) => weight(word)
                .ok_or_else(|| LineError::new(line, column, "a weight, which is a number of zero or more"))?,
            None => 1.0,
        };
        let bytes = match words.next() {
            Some((column, word)) => Some(
                word.parse::<u64>()
                    .ok()
                    .filter(|bytes| *bytes != UNKNOWN_SIZE)
                    .ok_or_else(|| LineError::new(line, column, "the bytes of the answer, a whole number"))?,
            ),
            None => None,
        };
        if let Some((column, _)) = words.next() {
            return Err(LineError::new(line, column, "the end of the line after path, weight and bytes"));
        }
        self.add(line, column, path, weight, bytes)
    }

    /// Appends a path, which must be valid.
    fn add(
        &mut self,
        line: usize,
        column: usize,
        path: &str,
        weight: f64,
        bytes: Option<u64>,
    ) -> Result<(), LineError> {
        self.text.push_str(&encode_target(path));
        let end = u32::try_from(self.text.len());
        self.ends.push(end.map_err(|_| LineError::new(line, column, "no more than 4 GiB of paths in a list"))?);
        let before = self.ends.len() - 1;
        if weight != 1.0 && self.weights.is_empty() {
            self.weights.resize(before, 1.0);
        }
        if weight != 1.0 || !self.weights.is_empty() {
            self.weights.push(weight);
        }
        if bytes.is_some() && self.bytes.is_empty() {
            self.bytes.resize(before, UNKNOWN_SIZE);
        }
        if bytes.is_some() || !self.bytes.is_empty() {
            self.bytes.push(bytes.unwrap_or(UNKNOWN_SIZE));
        }
        self.is_template |= is_template(path);
        Ok(())
    }

    /// Number of URLs in the list.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the path and query of a URL, percent-encoded; empty if there is no URL with this index.
    pub fn path(&self, index: usize) -> &str {
        let from = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let to = self.ends.get(index).copied().unwrap_or(from);
        self.text.get(from as usize..to as usize).unwrap_or_default()
    }

    /// Returns the weight of a URL.
    pub fn weight(&self, index: usize) -> f64 {
        self.weights.get(index).copied().unwrap_or(1.0)
    }

    /// Whether any URL has a weight other than 1.
    pub fn has_weights(&self) -> bool {
        !self.weights.is_empty()
    }

    /// Returns the size of a URL's response in bytes, if known.
    pub fn bytes(&self, index: usize) -> Option<u64> {
        self.bytes.get(index).copied().filter(|bytes| *bytes != UNKNOWN_SIZE)
    }
}

/// One request of a list of requests.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedRequest {
    /// Path and query of the request.
    pub path: String,
    /// HTTP method; if absent, the class's method.
    #[serde(default)]
    pub method: Option<String>,
    /// Header fields, in addition to those of the class.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Request body; if absent, the class's body.
    #[serde(default)]
    pub body: Option<String>,
    /// Fraction of the class's calls that send this request, relative to the weights of the other requests.
    #[serde(default = "one")]
    pub weight: f64,
    /// Size of the response body in bytes, if known.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Name of the class to which the request belongs.
    #[serde(default)]
    pub class: Option<String>,
}

impl ListedRequest {
    /// Parses a list of requests, one JSON object per line.
    pub(super) fn parse(bytes: &[u8]) -> Result<Vec<ListedRequest>, LineError> {
        let mut requests = Vec::new();
        for (index, line) in LineError::decode_utf8(bytes)?.lines().enumerate() {
            let number = index + 1;
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let mut request: ListedRequest = serde_json::from_str(line).map_err(|error| {
                // serde_json counts the column in bytes from the start of this line, because each line is parsed
                // separately.
                let before = line.as_bytes().get(..error.column().saturating_sub(1)).unwrap_or_default();
                let text = error.to_string();
                let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
                let hint = "write {\"path\": \"/a\"}, with method, headers, body, class, weight and bytes if wanted";
                LineError::new(number, String::from_utf8_lossy(before).chars().count() + 1, format!("{what}; {hint}"))
            })?;
            check_path(&request.path).map_err(|(at, expected)| {
                LineError::new(number, 1, format!("path, character {}: {expected}", at + 1))
            })?;
            if !(request.weight.is_finite() && request.weight >= 0.0) {
                return Err(LineError::new(number, 1, "weight: a number of zero or more"));
            }
            if let Cow::Owned(encoded) = encode_target(&request.path) {
                request.path = encoded;
            }
            requests.push(request);
        }
        if requests.is_empty() {
            return Err(LineError::new(1, 1, "a list has a request on a line, like {\"path\": \"/index.html\"}"));
        }
        Ok(requests)
    }

    /// Returns the names of the classes in a list of requests, in the order of their first requests, each with the sum
    /// of the weights of its requests.
    ///
    /// # Errors
    /// Returns [`LineError`] if the list has a syntax error.
    pub fn classes(bytes: &[u8]) -> Result<Vec<(String, f64)>, LineError> {
        let mut classes: Vec<(String, f64)> = Vec::new();
        for request in ListedRequest::parse(strip_bom_bytes(bytes))? {
            let name = request.class.unwrap_or_else(|| DEFAULT_CLASS.to_owned());
            match classes.iter_mut().find(|(known, _)| *known == name) {
                Some((_, weight)) => *weight += request.weight,
                None => classes.push((name, request.weight)),
            }
        }
        Ok(classes)
    }

    /// Returns the requests that belong to `class`. If no request names a class, returns all requests.
    pub(super) fn of_class(requests: Vec<ListedRequest>, class: &str) -> Vec<ListedRequest> {
        if requests.iter().all(|request| request.class.is_none()) {
            return requests;
        }
        requests.into_iter().filter(|request| request.class.as_deref().unwrap_or(DEFAULT_CLASS) == class).collect()
    }

    /// Returns the texts that may contain placeholders: path, values of headers, and body.
    pub(super) fn texts(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.path).chain(self.headers.values()).chain(&self.body)
    }
}

/// The class of the requests without a class, in a list in which other requests name a class.
const DEFAULT_CLASS: &str = "all";

/// The rows of a CSV file. All cells are stored in one string to save memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    columns: Vec<String>,
    text: String,
    /// End of each cell in `text` in bytes, row by row.
    ends: Vec<u32>,
    /// Line number of each row in the file, for error messages.
    lines: Vec<u32>,
}

impl Rows {
    /// Parses a CSV file whose first line contains the names of the columns.
    pub(super) fn parse(bytes: &[u8]) -> Result<Rows, LineError> {
        let mut rows = csv::parse(LineError::decode_utf8(bytes)?).into_iter();
        let columns = rows.next().map(|row| row.fields).unwrap_or_default();
        let mut table = Rows { columns, text: String::new(), ends: Vec::new(), lines: Vec::new() };
        for row in rows {
            if row.fields.len() != table.columns.len() {
                let expected = pluralize(table.columns.len() as u64, "field") + ", as many as the first line names";
                return Err(LineError::new(row.line, 1, expected));
            }
            for field in &row.fields {
                table.text.push_str(field);
                let end = u32::try_from(table.text.len());
                table.ends.push(end.map_err(|_| LineError::new(row.line, 1, "no more than 4 GiB of values"))?);
            }
            table.lines.push(row.line as u32);
        }
        if table.lines.is_empty() {
            return Err(LineError::new(1, 1, "a line with the names of the columns, and one or more with values"));
        }
        Ok(table)
    }

    /// Number of rows of the CSV file, without the line with the column names.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Always false: the parser requires at least one row.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Names of the columns of the CSV file.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Index of the column with this name, from 0; `None` if there is none.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The value in a row and a column, both counted from 0; empty if there is no such value.
    pub fn cell(&self, row: usize, column: usize) -> &str {
        let index = row * self.columns.len() + column;
        let from = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let to = self.ends.get(index).copied().unwrap_or(from);
        self.text.get(from as usize..to as usize).unwrap_or_default()
    }

    /// Position in the file of the first value in a column that contains a forbidden character.
    pub(super) fn find(&self, column: usize, forbidden: impl Fn(char) -> bool) -> Option<LineError> {
        let bad = |row: &usize| self.cell(*row, column).contains(&forbidden);
        let row = (0..self.len()).find(bad)?;
        let line = self.lines.get(row).map_or(0, |line| *line as usize);
        Some(LineError::new(line, column + 1, String::new()))
    }

    /// Length of the longest value of a column, in bytes.
    pub fn max_cell_bytes(&self, column: usize) -> usize {
        (0..self.len()).map(|row| self.cell(row, column).len()).max().unwrap_or(0)
    }
}

const UNENCODED: &str = "no space, line break or other control character: percent-encode it (%20)";

/// Checks that a path begins with a slash and contains no forbidden character. The error contains the number of
/// characters before the problem, and what was expected there.
pub(super) fn check_path(path: &str) -> Result<(), (usize, &'static str)> {
    if !path.starts_with('/') {
        return Err((0, "a path, which begins with /"));
    }
    match path.chars().position(is_forbidden_in_path) {
        Some(at) => Err((at, UNENCODED)),
        None => Ok(()),
    }
}

/// Checks a path or an absolute URL; requests to a proxy contain absolute URLs (RFC 9112 §3.2.2). The error is that of
/// [`check_path`].
pub(super) fn check_target(target: &str) -> Result<(), (usize, &'static str)> {
    match is_absolute_url(target) {
        true => target.chars().position(is_forbidden_in_path).map_or(Ok(()), |at| Err((at, UNENCODED))),
        false => check_path(target),
    }
}

/// Whether a character is not allowed in a path, because it would end the path or the request line.
pub(super) fn is_forbidden_in_path(c: char) -> bool {
    c <= ' ' || c == '\x7f'
}

/// Whether a character is not allowed in the value of a header field, for example because it would end the line.
pub(super) fn is_forbidden_in_header(c: char) -> bool {
    (c < ' ' && c != '\t') || c == '\x7f'
}

/// Splits a line into words, each with the column at which it begins, in characters from 1.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    // Only spaces and tabs separate words. Other white space remains in the words, so that the checks report it as an
    // error.
    let mut at = 0;
    line.split([' ', '\t']).filter_map(move |word| {
        let column = at + 1;
        at += word.chars().count() + 1;
        (!word.is_empty()).then_some((column, word))
    })
}

fn weight(word: &str) -> Option<f64> {
    word.parse().ok().filter(|weight: &f64| weight.is_finite() && *weight >= 0.0)
}

fn one() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_paths_weights_and_sizes() {
        let list = UrlList::parse("# ours\n/a\n\n  /b.png 3 4096\n/c\t0.5\r\n".as_bytes());
        // The carriage return before the last line break is not part of the weight of `/c`.
        let list = list.unwrap();
        let all: Vec<_> = (0..list.len()).map(|i| (list.path(i), list.weight(i), list.bytes(i))).collect();
        assert_eq!(all, [("/a", 1.0, None), ("/b.png", 3.0, Some(4096)), ("/c", 0.5, None)]);
        assert!(!list.is_template && list.has_weights());
        assert!(UrlList::parse(b"/u/{seq}").unwrap().is_template);
        assert_eq!(list.path(3), "");
    }

    #[test]
    fn paths_are_encoded_as_browsers_do() {
        let list = UrlList::parse("/ü?q=ß 2\n/a#part\n/ö/{csv.größe}\n".as_bytes()).unwrap();
        let paths: Vec<&str> = (0..list.len()).map(|index| list.path(index)).collect();
        assert_eq!(paths, ["/%C3%BC?q=%C3%9F", "/a", "/%C3%B6/{csv.größe}"]);
        let requests = ListedRequest::parse("{\"path\": \"/ü?q='\"}".as_bytes()).unwrap();
        assert_eq!(requests[0].path, "/%C3%BC?q=%27");
    }

    #[test]
    fn a_list_that_ends_its_entries_in_nul_is_httperfs() {
        let list = UrlList::parse(b"/a\0/b\0\n/a\0\n").unwrap();
        assert_eq!((0..list.len()).map(|i| list.path(i)).collect::<Vec<_>>(), ["/a", "/b", "/a"]);
        let error = UrlList::parse(b"/a\0/b c\0").unwrap_err();
        assert_eq!((error.line, error.column), (2, 3), "{error}");
    }

    #[test]
    fn what_is_wrong_in_a_list_has_a_line_and_a_column() {
        for (text, line, column, word) in [
            (&b""[..], 1, 1, "a path on a line"),
            (b"# nothing\n", 1, 1, "a path on a line"),
            (b"/a\nb", 2, 1, "begins with /"),
            (b"http://a/b", 1, 1, "begins with /"),
            (b"/a\n/b x", 2, 4, "weight"),
            (b"/a -1", 1, 4, "weight"),
            (b"/a 1 y", 1, 6, "bytes"),
            (b"/a 1 2 3", 1, 8, "the end of the line"),
            (b"/a\x0bb", 1, 3, "control character"),
            (b"/a\rX: y", 1, 3, "control character"),
            (b"/a\n/\xff", 2, 2, "UTF-8"),
        ] {
            let error = UrlList::parse(text).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
            assert!(error.to_string().contains(word), "{text:?}: {error}");
        }
    }

    #[test]
    fn requests_are_objects_on_lines() {
        let text = "{\"path\": \"/a\"}\n\n{\"path\":\"/b\",\"method\":\"POST\",\"headers\":{\"X\":\"y\"},\"body\":\"{}\",\
                    \"class\":\"write\",\"weight\":3}\n";
        let all = ListedRequest::parse(text.as_bytes()).unwrap();
        assert_eq!((all.len(), all[1].method.as_deref(), all[1].weight), (2, Some("POST"), 3.0));
        let classes = ListedRequest::classes(text.as_bytes()).unwrap();
        assert_eq!(classes, [("all".to_owned(), 1.0), ("write".to_owned(), 3.0)]);
        let of = |class| ListedRequest::of_class(all.clone(), class).len();
        assert_eq!((of("all"), of("write"), of("read")), (1, 1, 0));
        assert_eq!(
            ListedRequest::of_class(all[..1].to_vec(), "read").len(),
            1,
            "without class names, every class has all lines"
        );
    }

    #[test]
    fn what_is_wrong_in_a_request_has_a_line_and_a_column() {
        for (text, line, column, word) in [
            ("", 1, 1, "a request on a line"),
            ("{\"path\": \"/a\"}\n{\"path\": 3}", 2, 10, "expected a string"),
            ("{\"url\": \"/a\"}", 1, 6, "unknown field"),
            ("{\"path\": \"/a b\"}", 1, 1, "character 3: no space"),
            ("{\"path\": \"/a\\r\\nX: y\"}", 1, 1, "character 3: no space"),
            ("{\"path\": \"a\"}", 1, 1, "begins with /"),
            ("{\"path\": \"/a\", \"weight\": -1}", 1, 1, "weight"),
            ("/a", 1, 1, "expected value"),
        ] {
            let error = ListedRequest::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.column.abs_diff(column) <= 2 && error.to_string().contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn rows_are_found_by_the_names_of_their_columns() {
        let rows = Rows::parse(b"user,pass\nann,x y\n\"b,ob\",z\n").unwrap();
        assert_eq!((rows.len(), rows.column("pass"), rows.column("mail")), (2, Some(1), None));
        assert_eq!((rows.cell(0, 0), rows.cell(1, 0), rows.cell(1, 1), rows.cell(2, 0)), ("ann", "b,ob", "z", ""));
        assert_eq!((rows.max_cell_bytes(0), rows.find(1, is_forbidden_in_path).unwrap().line), (4, 2));
        for (text, line, word) in
            [("", 1, "names of the columns"), ("a,b\n", 1, "names of the columns"), ("a,b\n1,2\n3\n", 3, "2 fields")]
        {
            let error = Rows::parse(text.as_bytes()).unwrap_err();
            assert!(error.line == line && error.to_string().contains(word), "{text}: {error}");
        }
    }
}
