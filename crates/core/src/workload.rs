//! The `Workload` document (TOML): the request classes with their mix and requests, and the arrivals of calls
//! ([`Load`]).
//!
//! ```toml
//! [[class]]
//! name = "page"
//! weight = 0.7
//! path = "/index.html"
//!
//! [[class]]
//! name = "search"
//! weight = 0.3
//! method = "POST"
//! path = "/search"
//! headers = { Content-Type = "application/json" }
//! body = '{"q":"brim"}'                 # or body_file = "query.json"
//!
//! [[class]]
//! name = "images"
//! weight = 2.0
//! urls = [{ path = "/a.png", weight = 3.0, bytes = 4096 }, { path = "/b.png" }]    # in place of `path`
//! ```
//!
//! In place of `urls`, a class may name a file of URLs, a file of requests or a set of files (`class.rs`). These files
//! are read only by [`Workload::read_files`].

mod class;
mod expect;
mod file_set;
mod listed;
mod load;
mod popularity;
mod sessions;
mod spread;

pub use class::{Order, Target};
pub use expect::{Expect, Sha256, Statuses};
pub use file_set::{FileSet, MAX_FILES};
pub use listed::{FileContents, LineError, ListedRequest, Rows};
pub use load::{AttemptPace, Load, LogReplay, Stage, Trace};
pub use popularity::Popularity;
pub use sessions::{BetweenBursts, Script, ScriptedBurst, ScriptedCall, ScriptedRequest, SessionArrivals, Sessions};
pub use spread::{Spread, SpreadError};

use crate::JsonSchema;
use crate::secret::{self, CREDENTIAL_MASK};
use crate::tls::Tls;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The workload of a run: the request classes, and the arrivals of calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The request classes, at least one.
    #[serde(rename = "class")]
    pub classes: Vec<RequestClass>,
    /// The arrivals of calls; absent if command-line options or the command itself determine the arrivals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// TLS settings of connections to an `https://` URL, if they differ from the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

/// A class of requests, with its weight in the mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestClass {
    /// Name of the class in tables and documents; no other class has this name.
    pub name: String,
    /// Fraction of the calls that belong to this class, relative to the weights of the other classes.
    #[serde(default = "one")]
    pub weight: f64,
    /// HTTP method of the requests.
    #[serde(default = "get")]
    pub method: String,
    /// Path and query of the requests; the URL on the command line provides scheme and authority. Left out if there are
    /// `urls`. The placeholders `{seq}`, `{uuid}`, `{rand:1-500}` and `{csv.COLUMN}` are replaced by values in each
    /// call. They may occur in `path`, in `urls`, in the values of `headers` and in `body`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Alternative to `path`: a list of URLs, which are requested with probabilities proportional to their weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<Url>,
    /// Alternative to `urls`: name of a file with one URL per line, optionally followed by its weight and by the size
    /// of its response in bytes: `/a.png 3 4096`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urls_file: Option<String>,
    /// Alternative to `urls`: name of a file with one request per line. A request is a JSON object with a path and
    /// optionally method, headers, body, class, weight and bytes. If any request in the file names a class, this class
    /// uses only the requests that name this class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_file: Option<String>,
    /// A set of files below the URL path `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_set: Option<FileSet>,
    /// Popularity law, like `zipf:0.8`: it determines how often each URL or file is requested from the position in the
    /// list or set. If absent, the weights of the URLs determine this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub popularity: Option<Popularity>,
    /// The order in which the URLs or requests of the list are requested.
    #[serde(default, skip_serializing_if = "Order::is_random")]
    pub order: Order,
    /// Name of a file of comma-separated values for `{csv.COLUMN}`. Its first line contains the names of the columns.
    /// The n-th call of the class uses the n-th row; after the last row, the rows are used again from the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csv: Option<String>,
    /// Additional header fields of the requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Body of the requests.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// Alternative to `body`: path of a file with the request body, relative to the working directory. The file is sent
    /// in pieces as the server reads them. The `Content-Length` is the size of the file at the start of the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body_file: String,
    /// Requirements for the responses. A response that violates them is `unexpected` and counts as a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// Contents of the files that the class names, after reading. They are not serialised.
    #[serde(skip)]
    #[schemars(skip)]
    pub contents: FileContents,
}

/// One of the URLs of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Url {
    /// Path and query of the URL.
    pub path: String,
    /// Fraction of the class's calls that request this URL, relative to the weights of the other URLs.
    #[serde(default = "one")]
    pub weight: f64,
    /// Size of the response body in bytes, if known. `brimful fileset` creates a file of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// The reasons why a workload is invalid.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum WorkloadError {
    /// The workload has no class.
    #[error("the workload has no class: add a [[class]] with a name and a path")]
    Empty,
    /// Two classes share a name.
    #[error("two classes are named `{0}`: give each class a name of its own")]
    DuplicateName(String),
    /// A class has a negative or non-finite weight, or all classes have weight zero.
    #[error("class `{name}` has weight {weight}: weights are finite and not negative, and one of them is above zero")]
    BadWeight {
        /// Name of the class with the invalid weight.
        name: String,
        /// The invalid weight.
        weight: f64,
    },
    /// A path does not begin with a slash.
    #[error("class `{name}` has path `{path}`: a path begins with `/`")]
    BadPath {
        /// Name of the class with the invalid path.
        name: String,
        /// The invalid path.
        path: String,
    },
    /// A class does not have exactly one source of requests: a path, a list or a file.
    #[error(
        "class `{0}` needs either a `path` or `urls`, or one of `urls_file` and `requests_file`; a `file_set` goes with a \
         `path`"
    )]
    BadTargets(String),
    /// A class has both a `body` and a `body_file`.
    #[error("class `{0}` has both a `body` and a `body_file`: leave out one of them")]
    BodyAndBodyFile(String),
    /// The fields of a class contradict each other.
    #[error("class `{name}`: {why}")]
    BadClass {
        /// Name of the class whose fields contradict each other.
        name: String,
        /// Description of the error and how to correct it.
        why: String,
    },
    /// A file that a class names cannot be read.
    #[error("cannot read {file}: {why}; check the path, which begins where the command is run")]
    Unreadable {
        /// Path of the file that cannot be read, as the class gives it.
        file: String,
        /// The error message of the operating system.
        why: String,
    },
    /// A file that a class names has a syntax error.
    #[error("{file}, {error}")]
    BadFile {
        /// Path of the file that has the syntax error, as the class gives it.
        file: String,
        /// The position of the syntax error, and what was expected there.
        error: LineError,
    },
    /// A URL has a negative or non-finite weight, or all URLs of a class have weight zero.
    #[error(
        "class `{name}` has `{path}` with weight {weight}: weights are finite and not negative, and one is above zero"
    )]
    BadUrlWeight {
        /// Name of the class to which the URL belongs.
        name: String,
        /// Path of the URL with the invalid weight.
        path: String,
        /// The invalid weight of the URL.
        weight: f64,
    },
    /// The load has invalid parameters.
    #[error("{0}")]
    BadLoad(&'static str),
    /// A field of the sessions has an invalid value.
    #[error("{what}: {why}")]
    BadSessions {
        /// Name of the field with the invalid value.
        what: &'static str,
        /// The reason why the value is invalid.
        why: SpreadError,
    },
    /// A scripted session is invalid.
    #[error("scripted session {script}{place}: {why}")]
    BadScript {
        /// Number of the scripted session, from 1.
        script: usize,
        /// The burst and the call that contain the error; empty if the error concerns the whole session.
        place: String,
        /// Description of the error and how to correct it.
        why: String,
    },
    /// A text is not a stage (a period of a load) in the notation `LENGTH:RATE`.
    #[error("`{0}` is not a stage: write its length and the rate at its end, like 30s:1000")]
    BadStage(String),
    /// A mix names a class that the workload does not have.
    #[error("there is no class `{name}`; the classes are: {known}")]
    UnknownClass {
        /// The class name that the workload does not have.
        name: String,
        /// The names of the workload's classes, for the message.
        known: String,
    },
}

/// The kind of a load: what determines when the next call is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// Open load: a schedule that is independent of the server determines when calls are due.
    Open,
    /// Closed load: each client makes its next call after the answer to its previous call.
    Closed,
    /// S-Clients (Banga & Druschel 1997): each client makes one connection attempt after another, and abandons attempts
    /// that take too long.
    SClients,
}

impl LoadKind {
    /// Returns the kind of a workload's load. A workload without a load has the default, an open load.
    pub fn from_workload(workload: Option<&Workload>) -> LoadKind {
        workload.and_then(|workload| workload.load.as_ref()).map_or(LoadKind::Open, Load::kind)
    }
}

impl Workload {
    /// Creates a workload with one class, named `all`, that requests one path.
    pub fn single_class(method: &str, path: &str) -> Workload {
        Workload {
            classes: vec![RequestClass {
                name: "all".to_owned(),
                weight: 1.0,
                method: method.to_owned(),
                path: path.to_owned(),
                urls: Vec::new(),
                urls_file: None,
                requests_file: None,
                file_set: None,
                popularity: None,
                order: Order::Random,
                csv: None,
                headers: BTreeMap::new(),
                body: String::new(),
                body_file: String::new(),
                expect: None,
                contents: FileContents::default(),
            }],
            load: None,
            tls: None,
        }
    }

    /// Checks the conditions on the fields that their types do not guarantee.
    ///
    /// # Errors
    /// Returns the first error in the workload. Its message states how to correct it.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        if self.classes.is_empty() {
            return Err(WorkloadError::Empty);
        }
        for (i, class) in self.classes.iter().enumerate() {
            let bad_weight = || WorkloadError::BadWeight { name: class.name.clone(), weight: class.weight };
            if !class.weight.is_finite() || class.weight < 0.0 || self.classes.iter().all(|c| c.weight == 0.0) {
                return Err(bad_weight());
            }
            class.validate()?;
            if class.order == Order::Once && self.classes.len() > 1 {
                let why = "a list that is gone through once ends the load, so it has no other class beside it: write \
                           order = \"listed\"";
                return Err(WorkloadError::BadClass { name: class.name.clone(), why: why.to_owned() });
            }
            if self.classes[..i].iter().any(|other| other.name == class.name) {
                return Err(WorkloadError::DuplicateName(class.name.clone()));
            }
        }
        self.load.as_ref().map_or(Ok(()), Load::validate)?;
        self.validate_scripts()
    }

    /// Returns the workload without secrets, for documents that users share. The values of secret header fields are
    /// replaced by [`CREDENTIAL_MASK`]. A header field is secret if its name is well known, like `authorization`, or is
    /// listed in `secret_headers`.
    pub fn without_secrets(mut self, secret_headers: &[String]) -> Workload {
        for (name, value) in self.classes.iter_mut().flat_map(|class| &mut class.headers) {
            if secret::is_secret_header(name, secret_headers) {
                CREDENTIAL_MASK.clone_into(value);
            }
        }
        self
    }

    /// Returns the fraction of the calls that belong to each class, in the order of the classes; the sum is 1. The
    /// workload must be valid.
    pub fn mix(&self) -> Vec<f64> {
        let total: f64 = self.classes.iter().map(|c| c.weight).sum();
        self.classes.iter().map(|c| c.weight / total).collect()
    }

    /// Sets the weights of the named classes, and sets all other weights to zero. `--mix light=0.7,heavy=0.3` uses this
    /// function.
    ///
    /// # Errors
    /// Returns [`WorkloadError::UnknownClass`] if `mix` contains an unknown name, or the error of
    /// [`Workload::validate`].
    pub fn set_mix(&mut self, mix: &[(String, f64)]) -> Result<(), WorkloadError> {
        for (name, _) in mix {
            if !self.classes.iter().any(|c| &c.name == name) {
                let known = self.classes.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(WorkloadError::UnknownClass { name: name.clone(), known });
            }
        }
        for class in &mut self.classes {
            class.weight = mix.iter().find(|(name, _)| *name == class.name).map_or(0.0, |(_, weight)| *weight);
        }
        self.validate()
    }
}

fn one() -> f64 {
    1.0
}

fn get() -> String {
    "GET".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_names_classes_that_exist() {
        let mut workload = Workload::single_class("GET", "/");
        let error = workload.set_mix(&[("heavy".to_owned(), 1.0)]).unwrap_err();
        assert_eq!(error.to_string(), "there is no class `heavy`; the classes are: all");
        assert_eq!(workload.set_mix(&[("all".to_owned(), 2.0)]), Ok(()));
        assert_eq!(workload.mix(), [1.0]);
    }

    #[test]
    fn a_class_asks_for_its_urls_as_often_as_they_weigh() {
        let mut workload = Workload::single_class("GET", "/a");
        let mut images = workload.classes[0].clone();
        let url = |path: &str, weight| Url { path: path.to_owned(), weight, bytes: None };
        (images.name, images.weight) = ("images".to_owned(), 3.0);
        (images.path, images.urls) = (String::new(), vec![url("/b", 1.0), url("/c", 2.0)]);
        workload.classes.push(images);
        assert_eq!(workload.validate(), Ok(()));
        let images = &workload.classes[1];
        let targets: Vec<_> =
            (0..images.len()).map(|i| (images.target(i).path.into_owned(), images.weight(i))).collect();
        assert_eq!(targets, [("/b".to_owned(), 1.0), ("/c".to_owned(), 2.0)]);
        assert_eq!((workload.mix(), workload.classes[0].len()), (vec![0.25, 0.75], 1));
        workload.classes[1].path = "/d".to_owned();
        assert_eq!(workload.validate(), Err(WorkloadError::BadTargets("images".to_owned())));
        workload.classes[1].path.clear();
        workload.classes[1].urls = vec![url("/b", 0.0)];
        assert!(matches!(workload.validate(), Err(WorkloadError::BadUrlWeight { .. })));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut workload = Workload::single_class("GET", "nowhere");
        assert!(matches!(workload.validate(), Err(WorkloadError::BadPath { .. })));
        workload.classes[0].path = "/".to_owned();
        (workload.classes[0].body, workload.classes[0].body_file) = ("x".to_owned(), "x.bin".to_owned());
        assert_eq!(workload.validate(), Err(WorkloadError::BodyAndBodyFile("all".to_owned())));
        workload.classes[0].body.clear();
        assert_eq!(workload.validate(), Ok(()));
        workload.classes[0].weight = -1.0;
        assert!(matches!(workload.validate(), Err(WorkloadError::BadWeight { .. })));
        workload.classes.clear();
        assert_eq!(workload.validate(), Err(WorkloadError::Empty));
    }
}
