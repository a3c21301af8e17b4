//! Encodes URLs as browsers do: percent-encoding of paths and queries, and conversion of host names to ASCII.
//!
//! Sources: the percent-encode sets of the WHATWG URL Standard (§1.3); Punycode (RFC 3492). An existing `%XX` is kept,
//! so encoding twice yields the same result as encoding once. Placeholders of a template, such as `{csv.name}`, are
//! also kept.

use crate::template::{TemplatePart, parse};
use std::borrow::Cow;
use std::fmt::Write;

/// The part of a URL, which determines the characters that must be encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Query,
}

/// Percent-encodes a path with query as a browser does, and removes the fragment (`#…`).
pub fn encode_target(text: &str) -> Cow<'_, str> {
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    // A malformed template is encoded as plain text here. The workload's validation reports its error.
    let pieces = parse(text).unwrap_or_else(|_| vec![TemplatePart::Text(text)]);
    let mut encoded = String::with_capacity(text.len() + 16);
    let mut part = Part::Path;
    for piece in pieces {
        match piece {
            TemplatePart::Text(literal) => {
                if encode_into(literal.as_bytes(), &mut part, &mut encoded) {
                    break;
                }
            }
            TemplatePart::Seq => encoded.push_str("{seq}"),
            TemplatePart::Uuid => encoded.push_str("{uuid}"),
            TemplatePart::Rand { from, to } => encoded.push_str(&format!("{{rand:{from}-{to}}}")),
            TemplatePart::Csv(column) => encoded.push_str(&format!("{{csv.{column}}}")),
        }
    }
    Cow::Owned(encoded)
}

/// Percent-encodes a path with query, given as bytes in any character set, and removes the fragment (`#…`).
pub fn encode_bytes(bytes: &[u8]) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    encode_into(bytes, &mut Part::Path, &mut encoded);
    encoded
}

/// Percent-encodes only the bytes that are not ASCII.
pub fn encode_non_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        if byte.is_ascii() { encoded.push(char::from(byte)) } else { push_encoded(byte, &mut encoded) }
    }
    Cow::Owned(encoded)
}

/// Whether `target` is a URL with scheme and host, and not only a path.
pub fn is_absolute_url(target: &str) -> bool {
    ["http://", "https://"].into_iter().any(|scheme| target.len() > scheme.len() && target.starts_with(scheme))
}

/// Converts a host name to ASCII (`xn--bcher-kva.example`), label by label. Labels are converted to lower case. Other
/// mappings of IDNA are omitted, because the result is only shown to the user as a suggestion.
pub fn to_ascii_host(host: &str) -> String {
    let label = |label: &str| match label.is_ascii() {
        true => label.to_owned(),
        false => format!("xn--{}", punycode(&label.to_lowercase())),
    };
    host.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']).map(label).collect::<Vec<_>>().join(".")
}

/// Whether a byte is never encoded, neither in paths nor in queries.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'#' | b'<' | b'>' | b'^' | b'`' | b'{' | b'}' | b'\'')
}

/// Whether a browser encodes a byte in this part of an `http` or `https` URL. The apostrophe is encoded only in
/// queries.
fn is_encoded(byte: u8, part: Part) -> bool {
    let everywhere = !byte.is_ascii_graphic() || matches!(byte, b'"' | b'<' | b'>');
    everywhere
        || match part {
            Part::Path => matches!(byte, b'^' | b'`' | b'{' | b'}'),
            Part::Query => byte == b'\'',
        }
}

/// Appends the encoded bytes to `encoded`, up to a fragment (`#…`). Returns whether there is a fragment.
fn encode_into(bytes: &[u8], part: &mut Part, encoded: &mut String) -> bool {
    for byte in bytes {
        match byte {
            b'#' => return true,
            b'?' => {
                *part = Part::Query;
                encoded.push('?');
            }
            byte if is_encoded(*byte, *part) => push_encoded(*byte, encoded),
            byte => encoded.push(char::from(*byte)),
        }
    }
    false
}

fn push_encoded(byte: u8, encoded: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(encoded, "%{byte:02X}");
}

/// Encodes one label of a host name in Punycode, without the prefix `xn--` (RFC 3492 §6.3).
fn punycode(label: &str) -> String {
    const BASE: u64 = 36;
    const T_MIN: u64 = 1;
    const T_MAX: u64 = 26;
    let mut encoded: String = label.chars().filter(char::is_ascii).collect();
    let basic = encoded.len() as u64;
    if basic > 0 {
        encoded.push('-');
    }
    let all = label.chars().count() as u64;
    let mut done = basic;
    let mut delta = 0;
    let mut code_point = 128;
    let mut bias = 72;
    while done < all {
        let next = label.chars().map(|c| u64::from(u32::from(c))).filter(|c| *c >= code_point).min();
        let Some(next) = next else { break };
        delta += (next - code_point) * (done + 1);
        code_point = next;
        for c in label.chars().map(|c| u64::from(u32::from(c))) {
            if c < code_point {
                delta += 1;
            }
            if c != code_point {
                continue;
            }
            let mut rest = delta;
            let mut position = BASE;
            loop {
                let threshold = position.saturating_sub(bias).clamp(T_MIN, T_MAX);
                if rest < threshold {
                    break;
                }
                encoded.push(digit(threshold + (rest - threshold) % (BASE - threshold)));
                rest = (rest - threshold) / (BASE - threshold);
                position += BASE;
            }
            encoded.push(digit(rest));
            bias = adapted_bias(delta, done + 1, done == basic);
            delta = 0;
            done += 1;
        }
        delta += 1;
        code_point += 1;
    }
    encoded
}

/// Computes the bias for the next code point (Punycode's adaptation function, RFC 3492 §6.1).
fn adapted_bias(delta: u64, points: u64, is_first: bool) -> u64 {
    let mut delta = if is_first { delta / 700 } else { delta / 2 };
    delta += delta / points;
    let mut steps = 0;
    while delta > 455 {
        delta /= 35;
        steps += 36;
    }
    steps + 36 * delta / (delta + 38)
}

/// Returns a digit of base 36: `a` to `z`, then `0` to `9`.
fn digit(value: u64) -> char {
    char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[(value % 36) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The expected texts are those of `new URL(text, "http://h").href` in Node.js 20, except for `^`, which the WHATWG
    /// standard encodes since 2023.
    #[test]
    fn paths_and_queries_are_encoded_as_browsers_do() {
        for (text, encoded) in [
            ("/a/b?c=d&e=%20f", "/a/b?c=d&e=%20f"),
            ("/ü?q=ß", "/%C3%BC?q=%C3%9F"),
            ("/日本 語?q=a b", "/%E6%97%A5%E6%9C%AC%20%E8%AA%9E?q=a%20b"),
            ("/%C3%BC/%zz/%", "/%C3%BC/%zz/%"),
            ("/a\"<>^`{}|'b", "/a%22%3C%3E%5E%60%7B%7D|'b"),
            ("/?a\"<>^`{}|'b?c", "/?a%22%3C%3E^`{}|%27b?c"),
            ("/a#fragment", "/a"),
            ("/a?b#frag?ü", "/a?b"),
            ("/😀", "/%F0%9F%98%80"),
        ] {
            assert_eq!(encode_target(text), encoded);
            assert_eq!(encode_target(encoded), encoded, "encoding twice changes nothing");
            assert_eq!(encode_bytes(text.as_bytes()), encoded);
        }
        assert_eq!(encode_bytes(b"/\xfc?\xe9\xff"), "/%FC?%E9%FF", "bytes that are not UTF-8 are encoded, too");
        assert_eq!(encode_non_ascii("/ü{a}'#"), "/%C3%BC{a}'#");
    }

    #[test]
    fn places_of_templates_are_kept() {
        for (text, encoded) in [
            ("/ü/{seq}?ß={csv.größe}'", "/%C3%BC/{seq}?%C3%9F={csv.größe}%27"),
            ("/{seq}{rand:1-3}/{x}", "/{seq}{rand:1-3}/%7Bx%7D"),
            ("{seq}/ü/{uuid}s", "{seq}/%C3%BC/{uuid}s"),
            ("/{seq}#{seq}", "/{seq}"),
        ] {
            assert_eq!(encode_target(text), encoded);
        }
    }

    #[test]
    fn host_names_have_an_ascii_form() {
        for (host, ascii) in [
            ("example.com", "example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("BÜCHER.Example", "xn--bcher-kva.Example"),
            ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
            ("пример.испытание", "xn--e1afmkfd.xn--80akhbyknj4f"),
            ("faß.de", "xn--fa-hia.de"),
            ("他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye"),
        ] {
            assert_eq!(to_ascii_host(host), ascii);
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_ascii_and_stays_as_it_is(text: String) {
            let encoded = encode_bytes(text.as_bytes());
            prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(encode_bytes(encoded.as_bytes()), encoded);
        }
    }
}
