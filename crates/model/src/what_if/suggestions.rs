//! Lists known names in error messages about unknown names.

/// Lists the known names in the order of their similarity to `wanted`. The most similar name is first.
pub(super) fn listed<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_cached_key(|name| distance(wanted, name));
    let mut shown: Vec<String> = names.iter().take(MAX_SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(MAX_SHOWN) {
        0 if names.is_empty() => shown.push("none".into()),
        0 => {}
        more => shown.push(format!("{more} more")),
    }
    shown.join(", ")
}

const MAX_SHOWN: usize = 20;
/// Number of letters of a name that are compared. Further letters are ignored.
const MAX_COMPARED: usize = 64;

/// The number of letters that must be inserted, removed or changed to convert `a` into `b` (edit distance; Levenshtein
/// 1966), regardless of case.
fn distance(a: &str, b: &str) -> usize {
    let letters = |text: &str| -> Vec<char> { text.chars().flat_map(char::to_lowercase).take(MAX_COMPARED).collect() };
    let (a, b) = (letters(a), letters(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            let least = changed.min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], least);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_first() {
        assert_eq!(listed("cpus", ["disk 1", "CPU", "In-link"]), "`CPU`, `disk 1`, `In-link`");
        assert_eq!(listed("x", []), "none");
        let many: Vec<String> = (0..30).map(|i| format!("s{i}")).collect();
        let text = listed("s7", many.iter().map(String::as_str));
        assert!(text.starts_with("`s7`, ") && text.ends_with(", 10 more"), "{text}");
    }

    #[test]
    fn distances_are_levenshteins() {
        for (a, b, d) in [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "ABC", 0), ("flaw", "lawn", 2)] {
            assert_eq!((distance(a, b), distance(b, a)), (d, d), "{a} {b}");
        }
    }
}
