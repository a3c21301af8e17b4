//! Masks credentials in documents, because users share documents with other people.

use std::borrow::Cow;

/// The text that replaces a secret.
pub const CREDENTIAL_MASK: &str = "•••";

/// Names of the header fields whose values are always treated as credentials, in lower case.
const HEADERS: [&str; 5] = ["authorization", "proxy-authorization", "cookie", "x-api-key", "x-auth-token"];

/// Whether the value of the header field `name` is a secret: the name is a well-known one, like `authorization`, or is
/// listed in `others`.
pub fn is_secret_header(name: &str, others: &[String]) -> bool {
    let mut secret = HEADERS.into_iter().chain(others.iter().map(String::as_str));
    secret.any(|secret| secret.trim().eq_ignore_ascii_case(name.trim()))
}

/// Masks the user name and the password in a URL, or in the first URL of a text.
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    let start = text.find("://").map_or(0, |at| at + 3);
    let rest = &text[start..];
    let authority = &rest[..rest.find(['/', '?', '#', ' ']).unwrap_or(rest.len())];
    match authority.rfind('@') {
        Some(at) => Cow::Owned(format!("{}{CREDENTIAL_MASK}{}", &text[..start], &rest[at..])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_secret_by_name_in_any_case() {
        for name in ["Authorization", "COOKIE", "proxy-authorization", "X-Internal"] {
            assert!(is_secret_header(name, &["x-internal".to_owned()]), "{name}");
        }
        assert!(!is_secret_header("Accept", &[]) && !is_secret_header("X-Internal", &[]));
    }

    #[test]
    fn urls_lose_their_credentials_and_nothing_else() {
        for (url, shown) in [
            ("http://user:pass@host:80/a?b@c", "http://•••@host:80/a?b@c"),
            ("http://p@ss:w@host/", "http://•••@host/"),
            ("user:pass@host", "•••@host"),
            ("--url=http://u:p@h", "--url=http://•••@h"),
            ("http://host/mail@example", "http://host/mail@example"),
            ("http://[::1]:8080/", "http://[::1]:8080/"),
        ] {
            assert_eq!(without_credentials(url), shown);
        }
    }
}
