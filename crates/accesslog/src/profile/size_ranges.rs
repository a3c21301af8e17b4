//! Classes of responses by ranges of sizes that the user chose. Responses without a body always form a separate class.

use brimful_core::quantity::count;
use brimful_core::units::Bytes;
use std::str::FromStr;

/// The name of the class of responses without a body.
pub const EMPTY_CLASS: &str = "empty";
/// Maximum number of bounds that the user may specify.
const MAX_BOUNDS: usize = 63;

/// Ranges of sizes, defined by their upper bounds in bytes. For example, `0,4372,19284` defines four ranges: no body, 1
/// to 4,372 bytes, 4,373 to 19,284 bytes, and more bytes. A first bound of 0 may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeRanges {
    /// The positive bounds in ascending order.
    bounds: Vec<u64>,
}

impl SizeRanges {
    /// The ranges of Menascé, Peraino, Dinh & Dinh (CMG 1999), Table 1.
    pub fn menasce_1999() -> SizeRanges {
        SizeRanges { bounds: vec![4_372, 19_284] }
    }

    /// Number of classes, including the class of responses without a body.
    pub fn class_count(&self) -> usize {
        self.bounds.len() + 2
    }

    /// Index of the size class of a response with a body of `bytes` bytes.
    pub fn class_of(&self, bytes: u64) -> usize {
        if bytes == 0 { 0 } else { 1 + self.bounds.partition_point(|bound| *bound < bytes) }
    }

    /// Name of a class: `empty`, `1-4372` or `from-19285`.
    pub fn name(&self, class: usize) -> String {
        match self.limits(class) {
            (_, Some(0)) => EMPTY_CLASS.to_owned(),
            (from, Some(to)) => format!("{from}-{to}"),
            (from, None) => format!("from-{from}"),
        }
    }

    /// The sizes of a class as text for reports.
    pub fn range_text(&self, class: usize) -> String {
        match self.limits(class) {
            (_, Some(0)) => "no body".to_owned(),
            (from, Some(to)) => format!("{} – {} bytes", count(from), count(to)),
            (from, None) => format!("{} bytes and more", count(from)),
        }
    }

    /// The smallest and the largest size of a class; `None` if there is no largest size.
    pub fn limits(&self, class: usize) -> (u64, Option<u64>) {
        let Some(sized) = class.checked_sub(1) else { return (0, Some(0)) };
        let from = sized.checked_sub(1).and_then(|below| self.bounds.get(below)).map_or(1, |bound| bound + 1);
        (from, self.bounds.get(sized).copied())
    }
}

impl FromStr for SizeRanges {
    type Err = String;

    fn from_str(text: &str) -> Result<SizeRanges, String> {
        let example = "write the upper bounds in ascending order, like 0,1k,10k,100k";
        let bound = |item: &str| {
            let bytes: Bytes = item.trim().parse().map_err(|error| format!("{error}; {example}"))?;
            Ok::<u64, String>(bytes.0)
        };
        let mut bounds: Vec<u64> = text.split(',').map(bound).collect::<Result<_, _>>()?;
        if let Some(pair) = bounds.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(format!("{} follows {}: {example}", pair[1], pair[0]));
        }
        if bounds.first() == Some(&0) {
            bounds.remove(0);
        }
        match bounds.len() {
            n if n > MAX_BOUNDS => Err(format!("{n} bounds are too many: give at most {MAX_BOUNDS}")),
            _ if bounds.iter().any(|bound| *bound >= u64::MAX / 2) => Err(format!("a bound is too large: {example}")),
            _ => Ok(SizeRanges { bounds }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_belong_to_the_class_below_them() {
        let ranges: SizeRanges = "0,4372,19284".parse().unwrap();
        assert_eq!(ranges, SizeRanges::menasce_1999());
        assert_eq!(ranges, "4372,19284".parse().unwrap());
        let classes = [0, 1, 4_372, 4_373, 19_284, 19_285, u64::MAX].map(|bytes| ranges.class_of(bytes));
        assert_eq!((classes, ranges.class_count()), ([0, 1, 1, 2, 2, 3, 3], 4));
        let names: Vec<String> = (0..4).map(|class| ranges.name(class)).collect();
        assert_eq!(names, ["empty", "1-4372", "4373-19284", "from-19285"]);
        assert_eq!(ranges.range_text(2), "4,373 – 19,284 bytes");
        let ranges: SizeRanges = "0,1k,10k,100KiB".parse().unwrap();
        assert_eq!(ranges.name(4), "from-102401");
        let ranges: SizeRanges = "0".parse().unwrap();
        assert_eq!((ranges.class_count(), ranges.name(1), ranges.class_of(7)), (2, "from-1".to_owned(), 1));
    }

    #[test]
    fn bounds_that_make_no_ranges_are_refused() {
        for text in ["", "a", "10k,1k", "1k,1k", "1k,,2k", "-5", "0,0", "1e30,2", "99999999999G"] {
            let error = text.parse::<SizeRanges>().unwrap_err();
            assert!(error.contains("0,1k,10k,100k"), "{text}: {error}");
        }
    }
}
