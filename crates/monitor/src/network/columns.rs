//! Parses pairs of lines, as in /proc/net/snmp and netstat: a line with names, and below it a line with the values:
//!
//! ```text
//! Tcp: RtoAlgorithm RtoMin … InSegs …
//! Tcp: 1 200 … 4711 …
//! ```
//!
//! Kernels differ in the names and in their order, so columns are found by name. The line of names is parsed once, and
//! again only when it has changed.

use crate::procfs::{number, words};

/// Reads `N` counters from one pair of lines.
#[derive(Debug)]
pub(crate) struct Columns<const N: usize> {
    /// The prefix of the line of names and of the line of values, such as `Tcp:`.
    prefix: &'static [u8],
    names: [&'static str; N],
    /// The line of names that was parsed last.
    header: Vec<u8>,
    /// For each of `names` that the line contains, its column and its index in `names`. The list is sorted by column.
    places: Vec<(usize, usize)>,
}

impl<const N: usize> Columns<N> {
    /// Creates a reader of the lines that begin with `prefix`. `names` are the wanted counters.
    pub fn new(prefix: &'static str, names: [&'static str; N]) -> Columns<N> {
        Columns { prefix: prefix.as_bytes(), names, header: Vec::new(), places: Vec::new() }
    }

    /// The values of the counters, in the order of `names`.
    pub fn read(&mut self, text: &[u8]) -> [Option<u64>; N] {
        let mut values = [None; N];
        let Some((header, line)) = self.lines(text) else { return values };
        if header != self.header {
            self.learn(header);
        }
        let (mut words, mut passed) = (words(line), 0);
        for &(column, index) in &self.places {
            values[index] = words.nth(column - passed).and_then(number);
            passed = column + 1;
        }
        values
    }

    /// The names of wanted counters that the kernel does not provide.
    pub fn missing_names(&self) -> impl Iterator<Item = &'static str> {
        let known = |index: usize| self.places.iter().any(|&(_, known)| known == index);
        self.names.iter().enumerate().filter(move |(index, _)| !known(*index)).map(|(_, name)| *name)
    }

    /// The line of names and the line of values. An incomplete line is rejected, because its last number may be cut
    /// off.
    fn lines<'t>(&self, text: &'t [u8]) -> Option<(&'t [u8], &'t [u8])> {
        let mut lines = text.split_inclusive(|&byte| byte == b'\n').skip_while(|line| !line.starts_with(self.prefix));
        let header = lines.next()?;
        let values = lines.next()?;
        (values.starts_with(self.prefix) && values.ends_with(b"\n")).then_some((header, values))
    }

    fn learn(&mut self, header: &[u8]) {
        self.header = header.to_vec();
        self.places.clear();
        for (column, word) in words(header).enumerate() {
            if let Some(index) = self.names.iter().position(|name| name.as_bytes() == word) {
                self.places.push((column, index));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_are_found_by_name_and_found_again_where_they_have_moved() {
        let mut columns = Columns::new("Tcp:", ["OutSegs", "InSegs", "Missing"]);
        let before = b"Ip: InSegs OutSegs\nIp: 5 6\nTcp: MaxConn InSegs OutSegs\nTcp: -1 17 18\n";
        assert_eq!(columns.read(before), [Some(18), Some(17), None]);
        assert_eq!(columns.missing_names().collect::<Vec<_>>(), ["Missing"]);
        let after = b"Tcp: OutSegs Missing MaxConn InSegs\nTcp: 21 3 -1 22\nTcpExt: 0\n";
        assert_eq!(columns.read(after), [Some(21), Some(22), Some(3)]);
        assert_eq!(columns.missing_names().count(), 0);
        assert_eq!(columns.read(before), [Some(18), Some(17), None]);
    }

    #[test]
    fn what_is_cut_off_is_absent() {
        let text = b"Tcp: MaxConn InSegs OutSegs\nTcp: -1 17 180\n";
        for length in 0..text.len() {
            let mut columns = Columns::new("Tcp:", ["InSegs", "OutSegs"]);
            assert_eq!(columns.read(&text[..length]), [None, None], "{length}");
        }
        let mut columns = Columns::new("Tcp:", ["InSegs", "OutSegs"]);
        assert_eq!(columns.read(b"Tcp: MaxConn InSegs OutSegs\nTcp: -1 17\n"), [Some(17), None]);
        assert_eq!(columns.read(b"Tcp: InSegs OutSegs\nIp: 1 2\n"), [None, None]);
    }

    proptest! {
        #[test]
        fn each_value_is_that_below_its_name(order in Just(["A", "B", "C", "D", "E"]).prop_shuffle(), values in any::<[u64; 5]>()) {
            let row = |words: Vec<String>| format!("X: {}\n", words.join(" "));
            let text = row(order.map(str::to_owned).to_vec()) + &row(values.map(|v| v.to_string()).to_vec());
            let found = Columns::new("X:", ["A", "B", "C", "D", "E"]).read(text.as_bytes());
            let below = ["A", "B", "C", "D", "E"].map(|name| order.iter().position(|n| *n == name).map(|at| values[at]));
            prop_assert_eq!(found, below);
        }

        #[test]
        fn no_bytes_panic(head in "(Tcp: ?[A-Z a-z0-9-]{0,30}\n?){0,4}", tail in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut text = head.into_bytes();
            text.extend(tail);
            let mut columns = Columns::new("Tcp:", ["A", "b"]);
            columns.read(&text);
            columns.read(b"Tcp: A b\nTcp: 1 2\n");
            columns.read(&text);
        }
    }
}
