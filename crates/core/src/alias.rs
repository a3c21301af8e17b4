//! Draws one of many things by weight in constant time: the alias method (Walker 1977), its table built in one pass
//! (Vose 1991).
//!
//! A draw takes one uniform number, so whoever passes over draws passes over as many numbers. A thing takes eight bytes,
//! and its share is kept to a 2⁻³² part of an even share; what weighs nothing is never drawn.

/// A table to draw from.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias(Vec<Entry>);

/// One column of the table: it stands for two things.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    /// The share of the column that is its own thing's, in 2⁻³².
    own: u32,
    /// Whose the rest is.
    other: u32,
}

impl Alias {
    /// Things of these weights, in any scale; `None` where nothing can be drawn by them: none at all, one that is
    /// negative or no number, or nothing but zeros.
    pub fn new(weights: &[f64]) -> Option<Alias> {
        let total: f64 = weights.iter().sum();
        let valid = total.is_finite() && total > 0.0 && weights.iter().all(|weight| *weight >= 0.0);
        if !valid || u32::try_from(weights.len()).is_err() {
            return None;
        }
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / total * weights.len() as f64).collect();
        let heaviest = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b])).unwrap_or(0) as u32;
        // What is left over when one of the two runs out is as good as an even share, but for rounding.
        let left_over = |index: usize| match weights[index] {
            0.0 => Entry { own: 0, other: heaviest },
            _ => Entry { own: u32::MAX, other: index as u32 },
        };
        let mut entries: Vec<Entry> = (0..weights.len()).map(left_over).collect();
        let (mut below, mut above): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|index| shares[*index] < 1.0);
        while let (Some(small), Some(large)) = (below.pop(), above.pop()) {
            // What is not a whole share is filled up by one that is more.
            entries[small] = Entry { own: (shares[small] * 2f64.powi(32)) as u32, other: large as u32 };
            shares[large] -= 1.0 - shares[small];
            if shares[large] < 1.0 { below.push(large) } else { above.push(large) }
        }
        Some(Alias(entries))
    }

    /// The thing that the number `u`, uniform on [0, 1), stands for: its place among the weights.
    #[inline]
    pub fn at(&self, u: f64) -> usize {
        let place = u * self.0.len() as f64;
        let index = (place as usize).min(self.0.len().saturating_sub(1));
        let Some(entry) = self.0.get(index) else { return 0 };
        let within = (place - index as f64) * 2f64.powi(32);
        if (within as u32) < entry.own || entry.own == u32::MAX { index } else { entry.other as usize }
    }

    /// How many things.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never: nothing cannot be drawn.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The share of each thing, exactly: what the columns give it.
    fn shares(alias: &Alias) -> Vec<f64> {
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
            let Some(alias) = Alias::new(&weights) else {
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
            let Some(alias) = Alias::new(&weights) else { return Ok(()) };
            for u in [0.0, u, 1.0 - f64::EPSILON / 2.0, 1.0] {
                prop_assert_eq!(weights[alias.at(u)], 1.0);
            }
        }
    }

    #[test]
    fn columns_are_where_the_numbers_say() {
        let alias = Alias::new(&[1.0, 3.0]).unwrap();
        let drawn: Vec<usize> = (0..1000).map(|i| alias.at((f64::from(i) + 0.5) / 1000.0)).collect();
        assert_eq!(drawn.iter().filter(|index| **index == 0).count(), 250);
    }

    #[test]
    fn from_nothing_nothing_is_drawn() {
        for weights in [&[][..], &[0.0, 0.0], &[1.0, -1.0], &[f64::NAN], &[f64::INFINITY, 1.0]] {
            assert_eq!(Alias::new(weights), None, "{weights:?}");
        }
    }
}
