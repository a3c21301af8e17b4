//! Flags of `brimful load` that define which requests are made: lists and sets of URLs, templates, and expected
//! responses. These flags become the classes of a Workload.

use crate::documents::load_files;
use crate::exit::UsageError;
use brimful_core::template::is_template;
use brimful_core::workload::{
    Expect, FileSet, ListedRequest, Order, Popularity, RequestClass, Sha256, Statuses, Workload,
};
use brimful_run::RunOptions;
use clap::Args;

/// Flags that define which requests are made, and which responses are expected.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub struct ChooserArgs {
    /// Request the URLs in this file, one per line: PATH [WEIGHT [BYTES]]
    ///
    /// Like '/a.png 3 4096': a path, optionally its weight and the size of its response. Only host and port of the URL
    /// argument are used.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "requests_file", "wset", "wlog"])]
    pub urls: Option<String>,
    /// Make the requests in this file, one JSON object per line: path, method, …
    ///
    /// The keys are path and optionally method, headers, body, class and weight.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "wset", "wlog", "zipf", "method", "data"])]
    #[arg(hide_short_help = true)]
    pub requests_file: Option<String>,
    /// Request N files below the URL's path, as httperf does
    ///
    /// Either X or --zipf is needed. X is the share of calls that move on to the next file, like 0.25. /0/1/0/3.html is the
    /// 103rd of 1024 files.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "N,X", value_parser = file_set, conflicts_with_all = ["workload", "wlog"])]
    pub wset: Option<FileSet>,
    /// Request the URLs in this file in their order, repeatedly (y) or once (n)
    ///
    /// Each URL ends with NUL, as httperf expects, or is on a line of its own.
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "y|n,FILE", value_parser = url_log, conflicts_with = "workload")]
    pub wlog: Option<UrlLog>,
    /// Request the i-th of --urls or --wset in proportion to 1/i^S; S is 0.6 to 1 for typical sites
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "S", value_parser = zipf, conflicts_with_all = ["workload", "wlog"])]
    pub zipf: Option<Popularity>,
    /// Values for {csv.COLUMN} in the URL's path, --data and -H, one row per call
    ///
    /// {seq}, {uuid} and {rand:1-500} are replaced in the same places.
    #[arg(long, value_name = "FILE", conflicts_with = "workload", hide_short_help = true)]
    pub csv: Option<String>,
    /// Count a response with any other status as a failure: 200, 2xx or 200,304
    #[arg(long, value_name = "STATUS", hide_short_help = true)]
    pub expect_status: Option<Statuses>,
    /// Count a response whose content has any other size as a failure
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub expect_length: Option<u64>,
    /// Count a response whose content has any other SHA-256 as a failure
    #[arg(long, value_name = "HEX", hide_short_help = true)]
    pub expect_sha256: Option<Sha256>,
}

/// `--wlog`: a file of URLs that are requested in the file's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlLog {
    order: Order,
    file: String,
}

impl ChooserArgs {
    /// Applies the flags to the options. Headers that are templates are moved to the classes.
    pub fn apply(&self, options: &mut RunOptions) -> anyhow::Result<()> {
        let headers = &mut options.server.headers;
        let templates: Vec<_> = headers.extract_if(.., |(_, value)| is_template(value)).collect();
        let has_templates = !templates.is_empty();
        let workload = &mut options.load.workload;
        self.apply_to_classes(workload, templates)?;
        if self.chooses_requests() || has_templates {
            load_files(workload).map_err(|error| UsageError(error.to_string()))?;
        }
        Ok(())
    }

    fn apply_to_classes(&self, workload: &mut Workload, headers: Vec<(String, String)>) -> anyhow::Result<()> {
        if let Some(file) = &self.requests_file {
            workload.classes = classes_of_requests(file, &workload.classes)?;
        }
        for class in &mut workload.classes {
            for (name, value) in &headers {
                class.headers.insert(name.clone(), value.clone());
            }
            if self.csv.is_some() {
                class.csv.clone_from(&self.csv);
            }
            if self.wset.is_some() {
                class.file_set.clone_from(&self.wset);
            }
            let list = self.urls.as_ref().or(self.wlog.as_ref().map(|log| &log.file));
            if let Some(file) = list {
                class.path.clear();
                class.urls_file = Some(file.clone());
            }
            if let Some(log) = &self.wlog {
                class.order = log.order;
            }
            if self.zipf.is_some() {
                class.popularity = self.zipf;
            }
            self.expect(class);
        }
        let set = self.wset.as_ref().filter(|set| set.ratio.is_none());
        if set.is_some() && self.zipf.is_none() {
            let message = "--wset needs the share of calls that move on to the next file: write --wset 1000,0.25, or add \
                           --zipf 0.8";
            return Err(UsageError(message.to_owned()).into());
        }
        Ok(())
    }

    /// Merges the flags into the expected response of the class. The flags have priority.
    fn expect(&self, class: &mut RequestClass) {
        let Expect { status, length, sha256 } = class.expect.take().unwrap_or_default();
        let expect = Expect {
            status: self.expect_status.clone().or(status),
            length: self.expect_length.or(length),
            sha256: self.expect_sha256.or(sha256),
        };
        class.expect = Some(expect).filter(|expect| !expect.is_empty());
    }

    fn chooses_requests(&self) -> bool {
        let ChooserArgs { urls, requests_file, wset, wlog, zipf, csv, .. } = self;
        [urls, requests_file, csv].into_iter().any(Option::is_some)
            || wset.is_some()
            || wlog.is_some()
            || zipf.is_some()
    }
}

/// Creates one class for each class name in the file of `--requests-file`. All other properties of the classes are
/// copied from the first class in `like`.
fn classes_of_requests(file: &str, like: &[RequestClass]) -> anyhow::Result<Vec<RequestClass>> {
    let named = |error: &dyn std::fmt::Display| UsageError(format!("--requests-file {file}: {error}"));
    let bytes = std::fs::read(file).map_err(|error| named(&error))?;
    let classes = ListedRequest::classes(&bytes).map_err(|error| named(&error))?;
    let Some(like) = like.first() else { return Ok(Vec::new()) };
    let class = |(name, weight)| RequestClass {
        name,
        weight,
        path: String::new(),
        requests_file: Some(file.to_owned()),
        ..like.clone()
    };
    Ok(classes.into_iter().map(class).collect())
}

/// Parses a set of files, like `1024,0.25` and `1024`.
fn file_set(text: &str) -> Result<FileSet, String> {
    let wrong = || {
        format!(
            "`{text}` is not a set of files: write their number and the share of calls that move on, like 1024,0.25"
        )
    };
    let (files, ratio) = match text.split_once(',') {
        Some((files, ratio)) => (files, Some(ratio.trim().parse::<f64>().map_err(|_| wrong())?)),
        None => (text, None),
    };
    let files = files.trim().parse().map_err(|_| wrong())?;
    let ratio = ratio.map(|ratio| Some(ratio).filter(|ratio| (0.0..=1.0).contains(ratio)).ok_or_else(wrong));
    Ok(FileSet { ratio: ratio.transpose()?, ..FileSet::new(files) })
}

/// Parses `y,FILE` or `n,FILE`.
fn url_log(text: &str) -> Result<UrlLog, String> {
    let order = |again: &str| match again {
        "y" => Some(Order::Listed),
        "n" => Some(Order::Once),
        _ => None,
    };
    let read = text.split_once(',').and_then(|(again, file)| Some((order(again)?, file.to_owned())));
    let (order, file) = read.filter(|(_, file)| !file.is_empty()).ok_or_else(|| {
        format!("`{text}` is not a list of URLs: write y,FILE to repeat it, or n,FILE to request it once")
    })?;
    Ok(UrlLog { order, file })
}

/// Parses an exponent, like `0.8`.
fn zipf(text: &str) -> Result<Popularity, String> {
    format!("zipf:{text}")
        .parse()
        .map_err(|_| format!("`{text}` is not an exponent: write a number of at least 0, like 0.8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_lists_and_exponents_as_people_write_them() {
        assert_eq!(file_set("1024,0.25"), Ok(FileSet { ratio: Some(0.25), ..FileSet::new(1024) }));
        assert_eq!(file_set("7"), Ok(FileSet::new(7)));
        for text in ["", ",", "x,1", "3,y", "3,-1", "3,1.5", "3,NaN", "-3,1", "3,1,1"] {
            assert!(file_set(text).is_err(), "{text}");
        }
        assert_eq!(url_log("y,a,b"), Ok(UrlLog { order: Order::Listed, file: "a,b".to_owned() }));
        assert_eq!(url_log("n,a").map(|log| log.order), Ok(Order::Once));
        for text in ["", "y", "y,", "x,a", "a"] {
            assert!(url_log(text).is_err(), "{text}");
        }
        assert_eq!(zipf("0.8"), Ok(Popularity::Zipf(0.8)));
        assert!(zipf("-1").is_err() && zipf("zipf:1").is_err());
    }
}
