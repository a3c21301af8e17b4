//! Converts a logged request target to a path that can be requested again. Clients chose the bytes of the target, so
//! bytes that could end the request line or the path are percent-encoded.

use std::str::FromStr;

/// A rule that replaces the beginning `from` of a path by `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    from: String,
    to: String,
}

impl PathRule {
    /// Applies the first rule that matches the path. If no rule matches, returns the path unchanged.
    pub fn apply(rules: &[PathRule], path: String) -> String {
        let fits = |rule: &PathRule| path.strip_prefix(rule.from.as_str()).map(|rest| rule.to.clone() + rest);
        rules.iter().find_map(fits).unwrap_or(path)
    }
}

impl FromStr for PathRule {
    type Err = String;

    /// Parses a rule such as `/old/=/new/`.
    fn from_str(text: &str) -> Result<PathRule, String> {
        let rule = |(from, to): (&str, &str)| PathRule { from: from.to_owned(), to: to.to_owned() };
        let found = text.split_once('=').map(rule);
        found.filter(|rule| rule.from.starts_with('/') && rule.to.starts_with('/')).ok_or_else(|| {
            format!("`{text}` is no rule: write what paths begin with and what instead, like /old/=/new/")
        })
    }
}

/// The path and query of a target, percent-encoded where necessary; `None` if there is no path. If the target is an
/// absolute URL, as proxies log, the result is the path and query of this URL.
pub fn requestable_path(target: &[u8]) -> Option<String> {
    let target = unescaped(target);
    let target = path_of(&target)?;
    let mut path = String::with_capacity(target.len());
    for byte in target {
        if byte.is_ascii_graphic()
            && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | b'#')
        {
            path.push(char::from(*byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    Some(path)
}

fn path_of(target: &[u8]) -> Option<&[u8]> {
    if target.first() == Some(&b'/') {
        return Some(target);
    }
    let rest = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"))?;
    let slash = rest.iter().position(|byte| *byte == b'/')?;
    Some(&rest[slash..])
}

/// Decodes the escapes that nginx and Apache write: `\x22`, `\"`, `\\`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let hex =
        |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16)).and_then(|n| u8::try_from(n).ok());
    let mut found = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        let escape = (*byte == b'\\').then(|| match after.first() {
            Some(b'x') => hex(after.get(1)).zip(hex(after.get(2))).map(|(high, low)| (16 * high + low, 3)),
            Some(quoted @ (b'"' | b'\\')) => Some((*quoted, 1)),
            _ => None,
        });
        let (byte, length) = escape.flatten().unwrap_or((*byte, 0));
        found.push(byte);
        rest = &after[length..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_are_kept_and_the_rest_is_encoded() {
        let path = |text: &str| requestable_path(text.as_bytes());
        assert_eq!(path("/a/b?c=d&e=%20f").as_deref(), Some("/a/b?c=d&e=%20f"));
        assert_eq!(path("http://example.com/x?y").as_deref(), Some("/x?y"));
        assert_eq!(path(r#"/a\x22b\"c\\d"#).as_deref(), Some("/a%22b%22c%5Cd"));
        assert_eq!(path("/ü x#y\r\nHost: evil").as_deref(), Some("/%C3%BC%20x%23y%0D%0AHost:%20evil"));
        for text in ["", "*", "-", "host:443", "http://example.com", r"\x16\x03\x01"] {
            assert_eq!(path(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_rule_that_fits_is_taken() {
        let rules: Vec<PathRule> = ["/api/v1/=/api/v2/", "/=/site/"].iter().map(|rule| rule.parse().unwrap()).collect();
        assert_eq!(PathRule::apply(&rules, "/api/v1/x".to_owned()), "/api/v2/x");
        assert_eq!(PathRule::apply(&rules, "/y".to_owned()), "/site/y");
        assert!("a=b".parse::<PathRule>().is_err() && "/a".parse::<PathRule>().is_err());
    }

    proptest! {
        #[test]
        fn nothing_ends_a_request_line(bytes: Vec<u8>) {
            if let Some(path) = requestable_path(&bytes) {
                prop_assert!(path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
