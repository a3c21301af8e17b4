//! The targets of a request class. A target is one of the requests that the class can send: its only path, an entry of
//! its list of URLs or requests, or a file of its file set. Targets are selected at random, by weight or popularity, or
//! in order.
//!
//! The [`RequestClass::len`] targets of a class are numbered from 0. If the order is random, each call draws the number
//! of its target. If the class uses its targets in order, or contains placeholders, each call of the class has a
//! sequence number instead, which determines both its target and the values of its placeholders.

use super::listed::{List, UrlList, check_target, is_forbidden_in_header, is_forbidden_in_path};
use super::{FileContents, LineError, ListedRequest, RequestClass, Rows, Workload, WorkloadError};
use crate::JsonSchema;
use crate::template::{TemplatePart, is_template, parse};
use crate::text::strip_bom_bytes;
use crate::url::{encode_target, is_absolute_url};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The order in which the calls of a class use the entries of its list of URLs or requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Each call uses a random entry of the list, selected by weight or popularity.
    #[default]
    Random,
    /// The calls use the entries in the order of the list, and begin again after the last entry.
    Listed,
    /// The calls use the entries in the order of the list. The load ends after the last entry.
    Once,
}

impl Order {
    /// Whether each call uses a random entry.
    pub(super) fn is_random(&self) -> bool {
        *self == Order::Random
    }
}

/// One of the requests that a class can send, with placeholders not yet replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Target<'c> {
    /// HTTP method of the request.
    pub method: &'c str,
    /// Path and query of the request.
    pub path: Cow<'c, str>,
    /// Header fields of the request: names and values.
    pub headers: Vec<(&'c str, &'c str)>,
    /// Body of the request.
    pub body: &'c str,
}

impl Workload {
    /// Reads the files that the classes name, and stores their contents in the classes. `read` returns the content of
    /// one file.
    ///
    /// # Errors
    /// Returns [`WorkloadError::Unreadable`] or [`WorkloadError::BadFile`], with the name of the file.
    pub fn read_files(&mut self, mut read: impl FnMut(&str) -> std::io::Result<Vec<u8>>) -> Result<(), WorkloadError> {
        let mut known: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for class in &mut self.classes {
            let files = [&class.urls_file, &class.requests_file, &class.csv];
            for file in files.into_iter().flatten() {
                if !known.contains_key(file) {
                    let unreadable = |error: std::io::Error| WorkloadError::Unreadable {
                        file: file.clone(),
                        why: error.to_string(),
                    };
                    let bytes = read(file).map_err(unreadable)?;
                    known.insert(file.clone(), strip_bom_bytes(&bytes).to_vec());
                }
            }
            class.load_contents(&known)?;
        }
        Ok(())
    }

    /// Returns the first file that a class names and that has not been read yet. The load cannot begin until all files
    /// have been read.
    pub fn unread_file(&self) -> Option<&str> {
        self.classes.iter().find_map(RequestClass::unread_file)
    }

    /// Returns the number of calls after which the load ends, if the order of a class is [`Order::Once`].
    pub fn list_call_limit(&self) -> Option<u64> {
        let once = self.classes.iter().find(|class| class.order == Order::Once)?;
        Some(once.len() as u64)
    }
}

impl RequestClass {
    /// Number of targets of the class, which are the different requests that it can send. It is zero if the file with
    /// the list has not been read.
    pub fn len(&self) -> usize {
        match (&self.file_set, self.contents.list.as_deref()) {
            (Some(set), _) => set.files as usize,
            (None, Some(List::Urls(list))) => list.len(),
            (None, Some(List::Requests(list))) => list.len(),
            (None, None) if self.urls_file.is_some() || self.requests_file.is_some() => 0,
            (None, None) if self.urls.is_empty() => 1,
            (None, None) => self.urls.len(),
        }
    }

    /// Whether the class has no targets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the path of the target `index`, percent-encoded as browsers do.
    pub fn path(&self, index: usize) -> Cow<'_, str> {
        match (&self.file_set, self.contents.list.as_deref()) {
            (Some(set), _) => Cow::Owned(set.path(&encode_target(&self.path), index as u32)),
            (None, Some(List::Urls(list))) => Cow::Borrowed(list.path(index)),
            (None, Some(List::Requests(list))) => Cow::Borrowed(list.get(index).map_or("", |request| &request.path)),
            (None, None) => encode_target(self.urls.get(index).map_or(self.path.as_str(), |url| &url.path)),
        }
    }

    /// Returns the target (one of the requests that the class can send) with this index.
    pub fn target(&self, index: usize) -> Target<'_> {
        let own = match self.contents.list.as_deref() {
            Some(List::Requests(list)) => list.get(index),
            _ => None,
        };
        let given =
            |name: &str| own.is_some_and(|own| own.headers.keys().any(|other| other.eq_ignore_ascii_case(name)));
        let of_class = self.headers.iter().filter(|(name, _)| !given(name));
        let headers = of_class.chain(own.iter().flat_map(|own| &own.headers));
        Target {
            method: own.and_then(|own| own.method.as_deref()).unwrap_or(&self.method),
            path: self.path(index),
            headers: headers.map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            body: own.and_then(|own| own.body.as_deref()).unwrap_or(&self.body),
        }
    }

    /// Whether the targets of the class have different paths but are otherwise equal.
    pub fn differs_only_in_path(&self) -> bool {
        !matches!(self.contents.list.as_deref(), Some(List::Requests(_)))
    }

    /// Returns the weight of the target `index`, relative to the weights of the other targets of the class.
    pub fn weight(&self, index: usize) -> f64 {
        match (self.popularity, self.contents.list.as_deref()) {
            (Some(popularity), _) => popularity.weight(index),
            (None, _) if self.file_set.is_some() => 1.0,
            (None, Some(List::Urls(list))) => list.weight(index),
            (None, Some(List::Requests(list))) => list.get(index).map_or(0.0, |request| request.weight),
            (None, None) => self.urls.get(index).map_or(1.0, |url| url.weight),
        }
    }

    /// Returns the size of the response body of the target `index` in bytes, if known.
    pub fn bytes(&self, index: usize) -> Option<u64> {
        match (&self.file_set, self.contents.list.as_deref()) {
            (Some(set), _) => set.file_bytes(index as u32),
            (None, Some(List::Urls(list))) => list.bytes(index),
            (None, Some(List::Requests(list))) => list.get(index)?.bytes,
            (None, None) => self.urls.get(index)?.bytes,
        }
    }

    /// Whether the class has a list of targets or a file set.
    pub fn has_list(&self) -> bool {
        self.file_set.is_some() || self.urls_file.is_some() || self.requests_file.is_some() || !self.urls.is_empty()
    }

    /// Whether the calls of the class have sequence numbers. If false, the index of the target identifies the request
    /// of a call.
    pub fn identifies_calls_by_number(&self) -> bool {
        let walks = self.file_set.as_ref().is_some_and(|set| set.ratio.is_some());
        walks || self.order != Order::Random || self.is_template()
    }

    /// Whether any target of the class contains placeholders.
    pub fn is_template(&self) -> bool {
        self.headers.values().any(|value| is_template(value)) || is_template(&self.body) || self.has_template_paths()
    }

    /// Whether any path, header or body that differs between targets contains placeholders.
    pub fn has_template_paths(&self) -> bool {
        let listed = match self.contents.list.as_deref() {
            Some(List::Urls(list)) => list.is_template,
            Some(List::Requests(list)) => list.iter().flat_map(ListedRequest::texts).any(|text| is_template(text)),
            None => false,
        };
        listed || is_template(&self.path) || self.urls.iter().any(|url| is_template(&url.path))
    }

    /// Returns the rows of the class's CSV file; `None` if the class has none or the file has not been read.
    pub fn rows(&self) -> Option<&Arc<Rows>> {
        self.contents.rows.as_ref()
    }

    /// Replaces all targets of the class by a single path.
    pub fn set_path(&mut self, path: &str) {
        path.clone_into(&mut self.path);
        self.urls.clear();
        self.urls_file = None;
        self.requests_file = None;
        self.file_set = None;
        self.popularity = None;
        self.order = Order::Random;
        self.contents.list = None;
    }

    fn unread_file(&self) -> Option<&str> {
        let list = self.urls_file.as_ref().or(self.requests_file.as_ref());
        let list = list.filter(|_| self.contents.list.is_none());
        let rows = self.csv.as_ref().filter(|_| self.contents.rows.is_none());
        list.or(rows).map(String::as_str)
    }

    fn load_contents(&mut self, files: &BTreeMap<String, Vec<u8>>) -> Result<(), WorkloadError> {
        let bad_file = |file: &String| {
            let file = file.clone();
            move |error: LineError| WorkloadError::BadFile { file, error }
        };
        let bytes = |file: &String| files.get(file).map_or(&[][..], Vec::as_slice);
        let mut contents = FileContents::default();
        if let Some(file) = &self.csv {
            contents.rows = Some(Arc::new(Rows::parse(bytes(file)).map_err(bad_file(file))?));
        }
        if let Some(file) = &self.urls_file {
            let list = UrlList::parse(bytes(file)).map_err(bad_file(file))?;
            if self.popularity.is_some() && list.has_weights() {
                return Err(self.bad("popularity says how often each is asked for: leave the weights out of the list"));
            }
            contents.list = Some(Arc::new(List::Urls(list)));
        } else if let Some(file) = &self.requests_file {
            let requests = ListedRequest::parse(bytes(file)).map_err(bad_file(file))?;
            let requests = ListedRequest::of_class(requests, &self.name);
            contents.list = Some(Arc::new(List::Requests(requests)));
        }
        self.contents = contents;
        self.check_targets()?;
        self.check_values()
    }

    /// Checks that at least one target has a positive weight.
    fn check_targets(&self) -> Result<(), WorkloadError> {
        if self.is_empty() {
            let file = self.requests_file.as_deref().unwrap_or_default();
            return Err(
                self.bad(&format!("no request in {file} is of this class: give one \"class\": \"{}\"", self.name))
            );
        }
        match (0..self.len()).all(|index| self.weight(index) == 0.0) {
            true => Err(self.bad("all weights in its list are zero: give at least one a weight above zero")),
            false => Ok(()),
        }
    }

    /// Checks that all placeholders are valid, and that no value of a placeholder contains a character that would end a
    /// line of the request.
    fn check_values(&self) -> Result<(), WorkloadError> {
        for text in self.own_paths() {
            self.check_placeholders(text, "paths", is_forbidden_in_path)?;
        }
        match self.contents.list.as_deref() {
            Some(List::Urls(list)) if list.is_template => {
                (0..list.len())
                    .try_for_each(|i| self.check_placeholders(list.path(i), "paths", is_forbidden_in_path))?;
            }
            Some(List::Requests(list)) => {
                for request in list {
                    self.check_placeholders(&request.path, "paths", is_forbidden_in_path)?;
                    for value in request.headers.values() {
                        self.check_placeholders(value, "headers", is_forbidden_in_header)?;
                    }
                    request.body.iter().try_for_each(|body| self.check_placeholders(body, "bodies", |_| false))?;
                }
            }
            _ => {}
        }
        self.headers
            .values()
            .try_for_each(|value| self.check_placeholders(value, "headers", is_forbidden_in_header))?;
        self.check_placeholders(&self.body, "bodies", |_| false)
    }

    /// Checks the placeholders of one text. The names of CSV columns are checked only if the file has been read.
    fn check_placeholders(
        &self,
        text: &str,
        what: &str,
        forbidden: impl Fn(char) -> bool + Copy,
    ) -> Result<(), WorkloadError> {
        if !is_template(text) {
            return Ok(());
        }
        let pieces = parse(text).map_err(|error| self.bad(&format!("in `{text}`, {error}")))?;
        for piece in pieces {
            let TemplatePart::Csv(name) = piece else { continue };
            let (Some(file), rows) = (&self.csv, &self.contents.rows) else {
                return Err(
                    self.bad(&format!("`{text}` has {{csv.{name}}}: name the file, like csv = \"{name}s.csv\""))
                );
            };
            let Some(rows) = rows else { continue };
            let Some(column) = rows.column(name) else {
                let known = rows.columns().join(", ");
                return Err(self.bad(&format!("{file} has no column `{name}`; its columns are: {known}")));
            };
            if let Some(error) = rows.find(column, forbidden) {
                let characters = match what {
                    "paths" => "spaces or control characters, which paths cannot have: percent-encode them (%20)",
                    _ => "control characters, which headers cannot have",
                };
                let expected = format!("in the field `{name}`, no {characters}");
                let error = LineError { expected, ..error };
                return Err(WorkloadError::BadFile { file: file.clone(), error });
            }
        }
        Ok(())
    }

    /// Returns the paths that the workload document itself contains: `path`, and the paths in `urls`.
    fn own_paths(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.path.as_str()).chain(self.urls.iter().map(|url| url.path.as_str()))
    }

    fn bad(&self, why: &str) -> WorkloadError {
        WorkloadError::BadClass { name: self.name.clone(), why: why.to_owned() }
    }

    /// Checks the conditions on the fields that their types do not guarantee, except those on the contents of files.
    pub(super) fn validate(&self) -> Result<(), WorkloadError> {
        let lists = [!self.urls.is_empty(), self.urls_file.is_some(), self.requests_file.is_some()];
        let lists = lists.into_iter().filter(|there| *there).count();
        if lists + usize::from(!self.path.is_empty()) != 1 || (self.file_set.is_some() && lists > 0) {
            return Err(WorkloadError::BadTargets(self.name.clone()));
        }
        if !self.body.is_empty() && !self.body_file.is_empty() {
            return Err(WorkloadError::BodyAndBodyFile(self.name.clone()));
        }
        if !self.body_file.is_empty() && self.requests_file.is_some() {
            return Err(self.bad("the requests of a requests_file have their bodies there: leave out body_file"));
        }
        let has_list = lists > 0;
        self.validate_choice(has_list)?;
        let none = !has_list || !self.urls.is_empty() && self.urls.iter().all(|url| url.weight == 0.0);
        let urls = self.urls.iter().map(|url| (url.path.as_str(), url.weight));
        let path = (!self.path.is_empty()).then_some((self.path.as_str(), 1.0));
        for (path, weight) in path.into_iter().chain(urls) {
            let (name, path) = (self.name.clone(), path.to_owned());
            if !path.starts_with('/') && !is_absolute_url(&path) {
                return Err(WorkloadError::BadPath { name, path });
            }
            if let Err((at, expected)) = check_target(&path) {
                return Err(self.bad(&format!("`{path}`, character {}: {expected}", at + 1)));
            }
            if !weight.is_finite() || weight < 0.0 || (has_list && none) {
                return Err(WorkloadError::BadUrlWeight { name, path, weight });
            }
        }
        self.check_values()
    }

    /// Checks that the fields for popularity, order and file set are compatible with each other.
    fn validate_choice(&self, has_list: bool) -> Result<(), WorkloadError> {
        if let Some(wrong) = self.file_set.as_ref().and_then(super::FileSet::problem) {
            return Err(self.bad(wrong));
        }
        let walks = self.file_set.as_ref().is_some_and(|set| set.ratio.is_some());
        if self.popularity.is_some() && (walks || self.order != Order::Random) {
            return Err(
                self.bad("it goes through its list in order, so it has no popularity: leave one of the two out")
            );
        }
        if self.popularity.is_some() && !has_list && self.file_set.is_none() {
            return Err(self.bad("a popularity needs several URLs to choose from: add urls, urls_file or a file_set"));
        }
        if self.popularity.is_some() && self.urls.iter().any(|url| url.weight != 1.0) {
            return Err(self.bad("popularity says how often each is asked for: leave the weights of its urls out"));
        }
        if self.order != Order::Random && !has_list {
            return Err(self.bad("an order is of a list: give it urls or urls_file; a file_set has its ratio"));
        }
        if self.file_set.is_some() && is_template(&self.path) {
            return Err(self.bad("the path of a file_set is where its files lie, and cannot be filled in"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn read(toml: &str) -> Workload {
        toml::from_str(toml).unwrap()
    }

    fn class(toml: &str) -> RequestClass {
        read(&format!("[[class]]\nname = 'x'\n{toml}")).classes.remove(0)
    }

    fn file(name: &str) -> io::Result<Vec<u8>> {
        match name {
            "urls" => Ok(b"/a 2 10\n/b\n/c 1 30\n".to_vec()),
            "plain" => Ok(b"/a\n/b\n/c\n".to_vec()),
            "templates" => Ok(b"/a/{seq}\n/b\n".to_vec()),
            "nothing" => Ok(b"/a 0\n".to_vec()),
            "requests" => Ok(b"{\"path\":\"/a\",\"class\":\"x\",\"headers\":{\"A\":\"{uuid}\",\"accept\":\"b\"}}\n\
                               {\"path\":\"/b\",\"method\":\"PUT\",\"body\":\"2\",\"class\":\"y\"}\n"
                .to_vec()),
            "users" => Ok(b"user,note\nann,two words\nbob,x\n".to_vec()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }

    fn with_files(toml: &str) -> Result<RequestClass, String> {
        let mut workload = read(&format!("[[class]]\nname = 'x'\n{toml}"));
        workload.validate().map_err(|error| error.to_string())?;
        workload.read_files(file).map_err(|error| error.to_string())?;
        assert_eq!(workload.unread_file(), None);
        Ok(workload.classes.remove(0))
    }

    #[test]
    fn a_list_comes_from_a_file() {
        let unread = class("urls_file = 'urls'");
        assert_eq!((unread.len(), unread.unread_file()), (0, Some("urls")));
        let list = with_files("urls_file = 'urls'").unwrap();
        let all: Vec<_> = (0..3).map(|i| (list.path(i).into_owned(), list.weight(i), list.bytes(i))).collect();
        assert_eq!(
            all,
            [("/a".to_owned(), 2.0, Some(10)), ("/b".to_owned(), 1.0, None), ("/c".to_owned(), 1.0, Some(30))]
        );
        assert!(!list.identifies_calls_by_number() && list.has_list() && list.differs_only_in_path());
        assert_eq!(
            toml::to_string(&list).unwrap().matches("/a").count(),
            0,
            "the document must not contain the URLs of the list file"
        );
        let zipf = with_files("urls_file = 'plain'\npopularity = 'zipf:1'").unwrap();
        assert_eq!((zipf.weight(0), zipf.weight(1)), (1.0, 0.5));
        assert!(with_files("urls_file = 'plain'\norder = 'listed'").unwrap().identifies_calls_by_number());
        assert!(with_files("urls_file = 'templates'").unwrap().identifies_calls_by_number());
    }

    #[test]
    fn requests_of_a_file_belong_to_their_class() {
        let requests = with_files("requests_file = 'requests'\nheaders = { Accept = 'c', B = 'd' }").unwrap();
        assert_eq!((requests.len(), requests.is_template()), (1, true));
        let target = requests.target(0);
        assert_eq!((target.method, &*target.path, target.body), ("GET", "/a", ""));
        assert_eq!(target.headers, [("B", "d"), ("A", "{uuid}"), ("accept", "b")]);
        let mut other = read("[[class]]\nname = 'z'\nrequests_file = 'requests'");
        let error = other.read_files(file).unwrap_err().to_string();
        assert!(error.contains("no request in requests is of this class"), "{error}");
    }

    #[test]
    fn a_set_of_files_is_walked_or_drawn_from() {
        let set = with_files("path = '/set'\nfile_set = { files = 11, ratio = 0.5, bytes = 100 }").unwrap();
        assert_eq!((set.len(), &*set.path(10), set.bytes(3)), (11, "/set/1/0.html", Some(100)));
        assert!(set.identifies_calls_by_number());
        let drawn = with_files("path = '/'\nfile_set = { files = 11 }\npopularity = 'zipf:1'").unwrap();
        assert!(!drawn.identifies_calls_by_number() && drawn.weight(1) == 0.5);
    }

    #[test]
    fn values_are_checked_before_they_are_sent() {
        let error = |toml: &str| with_files(toml).unwrap_err();
        assert!(with_files("path = '/{csv.user}'\ncsv = 'users'\nbody = '{csv.note}'").is_ok());
        assert!(with_files("path = '/{csv.user}'\ncsv = 'users'\nheaders = { A = '{csv.note}' }").is_ok());
        let space = error("path = '/{csv.note}'\ncsv = 'users'");
        let start = "users, line 2, column 2: in the field `note`, no spaces or control characters";
        assert!(space.starts_with(start), "{space}");
        assert!(error("path = '/{csv.user}'").contains("name the file, like csv = \"users.csv\""));
        assert!(error("path = '/{csv.mail}'\ncsv = 'users'").contains("its columns are: user, note"));
        assert!(error("path = '/{rand:9-1}'").contains("in `/{rand:9-1}`, column 2: two whole numbers"));
        assert!(error("path = '/'\nbody = '{csv.x'").contains("a } after"));
        assert!(error("path = '/'\ncsv = 'absent'").contains("cannot read absent"));
        assert!(error("path = \"/a\\r\\nX: y\"").contains("character 3"));
    }

    #[test]
    fn what_cannot_be_chosen_is_said() {
        for (toml, word) in [
            ("", "needs either a `path`"),
            ("path = '/'\nurls_file = 'urls'", "needs either a `path`"),
            ("urls_file = 'urls'\nrequests_file = 'requests'", "needs either a `path`"),
            ("urls_file = 'urls'\nfile_set = { files = 3 }", "needs either a `path`"),
            ("path = '/'\nfile_set = { files = 0 }", "1 or more"),
            ("path = '/'\npopularity = 'zipf:1'", "several URLs"),
            ("path = '/'\norder = 'listed'", "of a list"),
            ("path = '/'\nfile_set = { files = 3, ratio = 1 }\npopularity = 'zipf:1'", "in order"),
            ("path = '/{seq}'\nfile_set = { files = 3 }", "cannot be filled in"),
            ("requests_file = 'requests'\nbody_file = 'body'", "leave out body_file"),
            ("urls = [{ path = '/', weight = 2 }]\npopularity = 'zipf:1'", "leave the weights"),
            ("urls_file = 'urls'\npopularity = 'zipf:1'", "leave the weights"),
            ("urls_file = 'nothing'", "above zero"),
            ("urls_file = 'users'", "users, line 1, column 1: a path"),
        ] {
            let error = with_files(toml).unwrap_err();
            assert!(error.contains(word), "{toml}: {error}");
        }
        let two = read("[[class]]\nname = 'x'\nurls_file = 'plain'\norder = 'once'\n[[class]]\nname = 'y'\npath = '/'");
        assert!(two.validate().unwrap_err().to_string().contains("ends the load"));
        let mut one = read("[[class]]\nname = 'x'\nurls_file = 'plain'\norder = 'once'");
        one.read_files(file).unwrap();
        assert_eq!((one.validate(), one.list_call_limit()), (Ok(()), Some(3)));
    }
}
