//! Classes of requests as the server's configuration states them: a name, and a rule by size or by path.
//!
//! What is accepted here is what both servers read as one word each, so that no class can end a directive and begin
//! another.

use brimful_core::text::one_line;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// Rules that a server's configuration holds at most (`struct brimful_settings` in recorder.h).
pub const RULES_MOST: usize = 64;
/// Names of classes that it holds at most; the sixteenth is "other".
pub const CLASSES_MOST: usize = 15;
/// Bytes of a name or a pattern at most; recorder.h has one more, a zero.
const NAME_MOST: usize = 47;
const PATTERN_MOST: usize = 255;

/// One rule, and the class of what it fits. A class may have several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Letters, digits, `.`, `_`, `-`.
    pub name: String,
    /// What fits.
    pub rule: Rule,
}

/// What a request must be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Bytes of the body: from, and to, inclusive.
    Size(u64, Option<u64>),
    /// The path without the query; `*` matches anything.
    Url(String),
}

/// As the directives of both servers take it, after the directive's name.
impl Display for Class {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Rule::Size(least, Some(most)) => write!(f, "{} size {least}-{most}", self.name),
            Rule::Size(least, None) => write!(f, "{} size {least}-", self.name),
            Rule::Url(pattern) => write!(f, "{} url {pattern}", self.name),
        }
    }
}

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Class, String> {
        let Some((name, rule)) = text.split_once('=') else {
            return Err("a class is NAME=RULE, like small='size 0-4999' or images='url /images/*'".to_owned());
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > NAME_MOST || !name.chars().all(is_plain) {
            return Err(format!("a class's name is 1 to {NAME_MOST} letters, digits, dots, dashes or underscores"));
        }
        let (kind, what) = rule.trim().split_once(' ').unwrap_or((rule.trim(), ""));
        let rule = match kind {
            "size" => size(what.trim())?,
            "url" => Rule::Url(pattern(what.trim())?),
            _ => return Err(format!("{}: a rule is `size FROM-TO`, `size FROM-` or `url PATTERN`", one_line(rule))),
        };
        Ok(Class { name: name.to_owned(), rule })
    }
}

fn size(text: &str) -> Result<Rule, String> {
    let wrong = || format!("size {}: sizes are bytes, like `size 0-4999` or `size 5000-`", one_line(text));
    let (least, most) = text.split_once('-').ok_or_else(wrong)?;
    let number = |digits: &str| match digits.bytes().all(|digit| digit.is_ascii_digit()) {
        true => digits.parse::<u64>().map_err(|_| wrong()),
        false => Err(wrong()),
    };
    let (least, most) = (number(least)?, if most.is_empty() { None } else { Some(number(most)?) });
    if most.is_some_and(|most| most < least) {
        return Err(format!("size {}: nothing is as large as that and as small: turn it round", one_line(text)));
    }
    Ok(Rule::Size(least, most))
}

fn pattern(text: &str) -> Result<String, String> {
    // What ends a word or begins something else in one of the two servers' configurations.
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"'\\;{}$#<>".contains(c);
    if !text.starts_with(['/', '*']) || text.len() > PATTERN_MOST || !text.chars().all(is_plain) {
        return Err(format!(
            "url {}: a pattern is a path like /images/*, of {PATTERN_MOST} letters at most, without spaces and quotes",
            one_line(text)
        ));
    }
    Ok(text.to_owned())
}

/// Whether a server's configuration holds so many.
///
/// # Errors
/// What is too many.
pub fn check(classes: &[Class]) -> Result<(), String> {
    let mut names: Vec<&str> =
        classes.iter().map(|class| class.name.as_str()).filter(|name| *name != "other").collect();
    names.sort_unstable();
    names.dedup();
    match (names.len() > CLASSES_MOST, classes.len() > RULES_MOST) {
        (true, _) => Err(format!("{} classes are too many: name {CLASSES_MOST} at most", names.len())),
        (_, true) => Err(format!("{} rules are too many: give {RULES_MOST} at most", classes.len())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_parsed_is_what_the_server_reads() {
        for (given, written) in [
            ("small=size 0-4999", "small size 0-4999"),
            ("large=size 5000-", "large size 5000-"),
            ("images= url  /images/*.png ", "images url /images/*.png"),
            ("one=size 7-7", "one size 7-7"),
        ] {
            assert_eq!(given.parse::<Class>().unwrap().to_string(), written);
        }
    }

    #[test]
    fn nothing_ends_the_directive() {
        for given in [
            "",
            "small",
            "=size 0-1",
            "a b=size 0-1",
            "a;=size 0-1",
            "a=size",
            "a=size 1",
            "a=size -1",
            "a=size 5-1",
            "a=size +1-2",
            "a=size 0-99999999999999999999",
            "a=weight 1-2",
            "a=url",
            "a=url images",
            "a=url /a; }",
            "a=url /a\nbrimful",
            "a=url /$uri",
            "a=url /\"",
            "a=url /\u{e9}",
        ] {
            assert!(given.parse::<Class>().is_err(), "{given:?} was taken");
        }
        assert!(format!("{}=size 0-", "n".repeat(48)).parse::<Class>().is_err());
        assert!(format!("n=url /{}", "p".repeat(255)).parse::<Class>().is_err());
    }

    #[test]
    fn a_server_holds_so_many() {
        let of = |n: usize| (0..n).map(|i| format!("c{i}=size 0-").parse().unwrap()).collect::<Vec<Class>>();
        assert!(check(&of(15)).is_ok());
        assert!(check(&of(16)).is_err());
        let same = |n: usize| vec![Class { name: "same".to_owned(), rule: Rule::Size(0, None) }; n];
        assert!(check(&same(64)).is_ok());
        assert!(check(&same(65)).is_err());
    }
}
