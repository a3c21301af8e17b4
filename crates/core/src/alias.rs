//! Selects one of many items with probabilities proportional to weights, in constant time, by the alias method (Walker
//! 1977). The table is built in linear time (Vose 1991).
//!
//! A selection consumes one uniform random number, so skipping n selections means skipping n numbers. The table needs
//! eight bytes per item. The error of a probability is below 2⁻³². Items of weight zero are never selected.

/// An alias table: selects an item with a probability proportional to its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct AliasTable(Vec<Entry>);

/// One column of the alias table. Each column has the same probability, which two items share.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    /// Part of the column's probability that belongs to the item with the same index as the column, in units of 2⁻³².
    /// The value `u32::MAX` means the whole column.
    own: u32,
    /// Index of the item to which the rest of the column belongs.
    other: u32,
}

impl AliasTable {
    /// Creates a table from the items' weights, which need not sum to 1. Returns `None` if no weight is positive, or if
    /// a weight is negative or not finite.
    pub fn new(weights: &[f64]) -> Option<AliasTable> {
        let total: f64 = weights.iter().sum();
        let valid = total.is_finite() && total > 0.0 && weights.iter().all(|weight| *weight >= 0.0);
        if !valid || u32::try_from(weights.len()).is_err() {
            return None;
        }
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / total * weights.len() as f64).collect();
        let heaviest = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b])).unwrap_or(0) as u32;
        // Initially, each column belongs entirely to its own item. Rounding errors may prevent the loop below from
        // changing some columns, so a column whose own item has weight zero initially belongs to the heaviest item.
        let unshared = |index: usize| match weights[index] {
            0.0 => Entry { own: 0, other: heaviest },
            _ => Entry { own: u32::MAX, other: index as u32 },
        };
        let mut entries: Vec<Entry> = (0..weights.len()).map(unshared).collect();
        let (mut below, mut above): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|index| shares[*index] < 1.0);
        while let (Some(small), Some(large)) = (below.pop(), above.pop()) {
            // An item above the average weight fills the rest of the column of an item below the average weight.
            entries[small] = Entry { own: (shares[small] * 2f64.powi(32)) as u32, other: large as u32 };
            shares[large] -= 1.0 - shares[small];
            if shares[large] < 1.0 { below.push(large) } else { above.push(large) }
        }
        Some(AliasTable(entries))
    }

    /// Returns the index of the selected item, given a uniform random number `u` in [0, 1).
    #[inline]
    pub fn index_at(&self, u: f64) -> usize {
        let place = u * self.0.len() as f64;
        let index = (place as usize).min(self.0.len().saturating_sub(1));
        let Some(entry) = self.0.get(index) else { return 0 };
        let within = (place - index as f64) * 2f64.powi(32);
        if (within as u32) < entry.own || entry.own == u32::MAX { index } else { entry.other as usize }
    }

    /// Number of items from which the table selects.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Always false: a table has at least one item.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Probability of each item, summed over all columns.
    fn shares(alias: &AliasTable) -> Vec<f64> {
        let mut shares = vec![0.0; alias.len()];
        for (index, entry) in alias.0.iter().enumerate() {
            let own = if entry.own == u32::MAX { 1.0 } else { f64::from(entry.own) / 2f64.powi(32) };
            shares[index] += own / alias.len() as f64;
            shares[entry.other as usize] += (1.0 - own) / alias.len() as f64;
        }
        shares
    }

    proptest! {
        #[test]
        fn each_is_drawn_as_often_as_it_weighs(weights in prop::collection::vec(prop_oneof![Just(0.0), 1e-6..1e6f64], 1..200)) {
            let total: f64 = weights.iter().sum();
            let Some(alias) = AliasTable::new(&weights) else {
                prop_assert_eq!(total, 0.0);
                return Ok(());
            };
            for (share, weight) in shares(&alias).into_iter().zip(&weights) {
                prop_assert!((share - weight / total).abs() < 1e-8, "{share} {}", weight / total);
                prop_assert!(*weight > 0.0 || share == 0.0);
            }
        }

        #[test]
        fn numbers_at_the_ends_draw_what_weighs_something(weights in prop::collection::vec(prop_oneof![Just(0.0), Just(1.0)], 1..50), u in 0.0..1.0f64) {
            let Some(alias) = AliasTable::new(&weights) else { return Ok(()) };
            for u in [0.0, u, 1.0 - f64::EPSILON / 2.0, 1.0] {
                prop_assert_eq!(weights[alias.index_at(u)], 1.0);
            }
        }
    }

    #[test]
    fn columns_are_where_the_numbers_say() {
        let alias = AliasTable::new(&[1.0, 3.0]).unwrap();
        let drawn: Vec<usize> = (0..1000).map(|i| alias.index_at((f64::from(i) + 0.5) / 1000.0)).collect();
        assert_eq!(drawn.iter().filter(|index| **index == 0).count(), 250);
    }

    #[test]
    fn from_nothing_nothing_is_drawn() {
        for weights in [&[][..], &[0.0, 0.0], &[1.0, -1.0], &[f64::NAN], &[f64::INFINITY, 1.0]] {
            assert_eq!(AliasTable::new(weights), None, "{weights:?}");
        }
    }
}
