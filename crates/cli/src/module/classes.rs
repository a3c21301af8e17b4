//! Classes of requests in the server's configuration. A class has a name, and a rule by size or by path.
//!
//! Names and patterns are accepted only if both nginx and Apache read them as a single word. So no class can end a
//! directive and start another one.

use brimful_core::text::one_line;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// Maximum number of rules in a server's configuration (`struct brimful_settings` in recorder.h).
pub const MAX_RULES: usize = 64;
/// Maximum number of named classes; the sixteenth class is "other".
pub const MAX_CLASSES: usize = 15;
/// Maximum length of a class name in bytes, without the terminating zero in recorder.h.
const MAX_NAME_BYTES: usize = 47;
/// Maximum length of a pattern in bytes, without the terminating zero in recorder.h.
const MAX_PATTERN_BYTES: usize = 255;

/// A rule for a class of requests, with the name of the class. Several rules may name the same class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The name of the class: letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// The condition that the requests of the class meet.
    pub rule: Rule,
}

/// The condition under which a request belongs to a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Size of the body in bytes: lower and upper bound, inclusive.
    Size(u64, Option<u64>),
    /// A pattern of the path without the query; `*` matches any text.
    Url(String),
}

/// Formats the class as arguments of the module's directive. The syntax is the same in nginx and Apache.
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
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(is_plain) {
            return Err(format!(
                "a class's name is 1 to {MAX_NAME_BYTES} letters, digits, dots, dashes or underscores"
            ));
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
    let least = number(least)?;
    let most = if most.is_empty() { None } else { Some(number(most)?) };
    if most.is_some_and(|most| most < least) {
        return Err(format!("size {}: the lower bound exceeds the upper one: swap them", one_line(text)));
    }
    Ok(Rule::Size(least, most))
}

fn pattern(text: &str) -> Result<String, String> {
    // The excluded characters end a word or have a meaning in one of the two servers' configurations.
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"'\\;{}$#<>".contains(c);
    if !text.starts_with(['/', '*']) || text.len() > MAX_PATTERN_BYTES || !text.chars().all(is_plain) {
        return Err(format!(
            "url {}: a pattern is a path like /images/*, of at most {MAX_PATTERN_BYTES} characters, without spaces and quotes",
            one_line(text)
        ));
    }
    Ok(text.to_owned())
}

/// Checks that the rules and classes fit into a server's configuration.
///
/// # Errors
/// States which limit is exceeded.
pub fn check(classes: &[Class]) -> Result<(), String> {
    let mut names: Vec<&str> =
        classes.iter().map(|class| class.name.as_str()).filter(|name| *name != "other").collect();
    names.sort_unstable();
    names.dedup();
    match (names.len() > MAX_CLASSES, classes.len() > MAX_RULES) {
        (true, _) => Err(format!("{} classes are too many: name at most {MAX_CLASSES}", names.len())),
        (_, true) => Err(format!("{} rules are too many: give at most {MAX_RULES}", classes.len())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_written_as_the_servers_read_them() {
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
    fn no_class_can_end_the_directive() {
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
            assert!(given.parse::<Class>().is_err(), "{given:?} was accepted");
        }
        assert!(format!("{}=size 0-", "n".repeat(48)).parse::<Class>().is_err());
        assert!(format!("n=url /{}", "p".repeat(255)).parse::<Class>().is_err());
    }

    #[test]
    fn the_number_of_classes_and_rules_is_limited() {
        let classes = |n: usize| (0..n).map(|i| format!("c{i}=size 0-").parse().unwrap()).collect::<Vec<Class>>();
        assert!(check(&classes(15)).is_ok());
        assert!(check(&classes(16)).is_err());
        let same = |n: usize| vec![Class { name: "same".to_owned(), rule: Rule::Size(0, None) }; n];
        assert!(check(&same(64)).is_ok());
        assert!(check(&same(65)).is_err());
    }
}
