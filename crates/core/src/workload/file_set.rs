//! A set of files that are requested below one URL path, in a tree with ten entries per directory, like those of
//! httperf's `--wset`. For example, file 103 of 1,024 files is `PREFIX/0/1/0/3.html`: the path consists of the digits
//! of the file's number. Leading zeros ensure that all paths of a set have the same number of digits. A set of one file
//! is `PREFIX.html`.

use super::Spread;
use crate::JsonSchema;
use crate::number::is_default;
use serde::{Deserialize, Serialize};

/// Highest number of files in a set.
pub const MAX_FILES: u32 = 100_000_000;

/// A set of files below the URL path of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSet {
    /// Number of files in the set.
    pub files: u32,
    /// If present, the files are requested in order, and this is the fraction of the calls that advance to the next
    /// file. With 0.25, every fourth call advances; with 1, every call advances, including the first. The first file
    /// follows the last. If absent, each call requests a random file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Number of the file at which the sequence begins, if the files are requested in order.
    #[serde(default, skip_serializing_if = "is_default")]
    pub first: u32,
    /// Number of files by which a call advances. If several clients share a set, each client begins at its own file and
    /// advances by the number of clients.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub stride: u32,
    /// Size of a file in bytes, or the distribution of the sizes. `brimful fileset` creates files of these sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Spread>,
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

impl FileSet {
    /// Creates a set from which each call requests a random file.
    pub fn new(files: u32) -> FileSet {
        FileSet { files, ratio: None, first: 0, stride: 1, bytes: None }
    }

    /// Returns the path of the file with the number `file`, counted from 0. `prefix` is the URL path of the class.
    pub fn path(&self, prefix: &str, file: u32) -> String {
        /// Number of digits of the largest `u32`.
        const MAX_DIGITS: usize = 10;
        let digits = self.files.saturating_sub(1).max(1).ilog10() as usize + 1;
        let mut path = String::with_capacity(prefix.len() + 2 * digits + ".html".len());
        path.push_str(prefix.trim_end_matches('/'));
        // If the set has only one file, its path does not contain the number.
        if self.files == 1 && !path.is_empty() {
            return path + ".html";
        }
        let mut directories = [b'/'; 2 * MAX_DIGITS];
        let mut left = file;
        for digit in directories.iter_mut().skip(1).step_by(2).take(digits).rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        path.push_str(std::str::from_utf8(&directories[..2 * digits]).unwrap_or_default());
        path.push_str(".html");
        path
    }

    /// Returns the number of the file that the call with the number `call` requests. `ratio` is the fraction of the
    /// calls that advance to the next file.
    pub fn file_for_call(&self, ratio: f64, call: u64) -> u32 {
        // Compensates for rounding errors in the product: 100 calls with a ratio of 0.57 must advance 57 times.
        const ROUNDING: f64 = 1e-9;
        let files = u64::from(self.files.max(1));
        let steps = ((call + 1) as f64 * ratio + ROUNDING).floor() as u64 % files;
        ((u64::from(self.first) + steps * u64::from(self.stride)) % files) as u32
    }

    /// Returns the size of a file in bytes: a quantile of the distribution of sizes. The probability of the quantile is
    /// the fractional part of (file + 0.5) times 0.618…, the reciprocal of the golden ratio; these values cover the
    /// unit interval evenly and do not correlate with popularity. The size depends only on the file's number, so
    /// `brimful fileset` and the workload compute the same size.
    pub fn file_bytes(&self, file: u32) -> Option<u64> {
        const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;
        let share = ((f64::from(file) + 0.5) * GOLDEN_RATIO).fract();
        Some(self.bytes.as_ref()?.quantile(share).round() as u64)
    }

    /// Returns a description of an invalid parameter; `None` if all parameters are valid.
    pub(super) fn problem(&self) -> Option<&'static str> {
        let ratio = |ratio: &f64| ratio.is_finite() && (0.0..=1.0).contains(ratio);
        if self.files == 0 || self.files > MAX_FILES {
            Some("a set has files = 1 or more, up to 100 million")
        } else if !self.ratio.as_ref().is_none_or(ratio) {
            Some("ratio says how often a call goes on to the next file: 0 to 1, like 0.25 for every fourth")
        } else if self.bytes.as_ref().is_some_and(|bytes| bytes.validate().is_err()) {
            Some("bytes is a size, or a distribution of sizes like \"lognormal:12000,2\"")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: u32) -> FileSet {
        FileSet::new(files)
    }

    /// The expected path of file 103 of 1,024 is the example in httperf's manual.
    #[test]
    fn the_103rd_of_1024_files_is_where_httperf_has_it() {
        assert_eq!(files(1024).path("/wset1024", 103), "/wset1024/0/1/0/3.html");
        assert_eq!([files(1).path("/", 0), files(1).path("/a", 0)], ["/0.html", "/a.html"]);
        assert_eq!(files(10).path("/a/", 9), "/a/9.html");
        assert_eq!(files(11).path("", 3), "/0/3.html");
        assert_eq!(files(1000).path("/a", 7), "/a/0/0/7.html");
        assert_eq!(files(1001).path("/a", 1000), "/a/1/0/0/0.html");
    }

    #[test]
    fn a_walk_goes_on_as_often_as_its_ratio_says() {
        let walked = |ratio, calls: u64| (0..calls).map(|call| files(3).file_for_call(ratio, call)).collect::<Vec<_>>();
        assert_eq!(walked(1.0, 5), [1, 2, 0, 1, 2]);
        assert_eq!(walked(0.25, 9), [0, 0, 0, 1, 1, 1, 1, 2, 2]);
        assert_eq!(walked(0.0, 3), [0, 0, 0]);
        let many = files(1000);
        assert!((1..1000).all(|call| many.file_for_call(0.57, 100 * call - 1) == (57 * call % 1000) as u32));
        let second_of_three = FileSet { first: 1, stride: 3, ..files(10) };
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|call| second_of_three.file_for_call(0.5, call)), [1, 4, 4, 7, 7, 0, 0]);
    }

    #[test]
    fn sizes_have_their_distribution_whatever_the_place() {
        let set = FileSet { bytes: Some("exponential:1000".parse().unwrap()), ..files(10_000) };
        let mean = |range: std::ops::Range<u32>| {
            let n = f64::from(range.end - range.start);
            range.map(|file| set.file_bytes(file).unwrap() as f64).sum::<f64>() / n
        };
        assert!((mean(0..10_000) - 1000.0).abs() < 5.0 && (mean(0..100) - 1000.0).abs() < 60.0, "{}", mean(0..100));
        assert_eq!(files(3).file_bytes(0), None);
    }

    #[test]
    fn what_is_no_set_is_said() {
        assert!(files(0).problem().is_some() && files(u32::MAX).problem().is_some());
        assert!(FileSet { ratio: Some(1.5), ..files(2) }.problem().unwrap().contains("0 to 1"));
        assert!(FileSet { bytes: Some(Spread::Constant(-1.0)), ..files(2) }.problem().unwrap().contains("size"));
        assert_eq!(FileSet { ratio: Some(1.0), ..files(2) }.problem(), None);
    }
}
