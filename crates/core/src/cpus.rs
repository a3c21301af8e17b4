//! Lists of CPU numbers in the notation of Linux, for example `0-3,7`.

use crate::units::ParseUnitError;
use std::fmt;
use std::str::FromStr;

/// Exclusive upper bound of CPU numbers: Linux supports at most 8192 CPUs.
const MAX_CPUS: usize = 8192;

/// A list of CPU numbers. A parsed list contains each number once, in the order in which the text names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

impl FromStr for CpuList {
    type Err = ParseUnitError;

    /// Parses a list such as `0` or `0,2-3`. An empty list is an error.
    fn from_str(text: &str) -> Result<CpuList, ParseUnitError> {
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|cpu| *cpu < MAX_CPUS);
        let mut cpus = Vec::new();
        for item in text.split(',') {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let range = number(first).zip(number(last)).filter(|(first, last)| first <= last);
            let (first, last) = range.ok_or_else(|| ParseUnitError {
                text: text.to_owned(),
                what: "list of CPUs",
                example: "0 or 0,2-3",
            })?;
            let new: Vec<usize> = (first..=last).filter(|cpu| !cpus.contains(cpu)).collect();
            cpus.extend(new);
        }
        Ok(CpuList(cpus))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.0.chunk_by(|cpu, next| cpu + 1 == *next);
        for (i, range) in ranges.enumerate() {
            let separator = if i == 0 { "" } else { "," };
            match *range {
                [first, .., last] => write!(f, "{separator}{first}-{last}")?,
                [one] => write!(f, "{separator}{one}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

impl From<&[usize]> for CpuList {
    fn from(cpus: &[usize]) -> CpuList {
        CpuList(cpus.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_read_and_shown() {
        for (text, cpus, shown) in [
            ("0", &[0][..], "0"),
            ("0-3,5\n", &[0, 1, 2, 3, 5], "0-3,5"),
            ("0, 2-3,2", &[0, 2, 3], "0,2-3"),
            ("3,1-2", &[3, 1, 2], "3,1-2"),
        ] {
            let list: CpuList = text.parse().unwrap();
            assert_eq!((list.0.as_slice(), list.to_string().as_str()), (cpus, shown));
        }
        for text in ["", "a", "3-1", "-1", "0-", "1,,2", "99999", "0-99999999999"] {
            let error = text.parse::<CpuList>().unwrap_err().to_string();
            assert!(error.ends_with("is not a list of CPUs: write it like 0 or 0,2-3"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(cpus in proptest::collection::btree_set(0usize..300, 1..40)) {
            let list = CpuList(cpus.into_iter().collect());
            prop_assert_eq!(list.to_string().parse(), Ok(list));
        }

        #[test]
        fn any_text_is_a_list_or_an_error(text in "[0-9,\\- \n]{0,20}|.*") {
            let _ = text.parse::<CpuList>();
        }
    }
}
