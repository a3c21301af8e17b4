//! Requirements for responses. A complete response that violates them counts as `unexpected` and not as completed.

use crate::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Requirements for the responses of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Required status: 200, "2xx", or a list of these. If absent, every status is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Statuses>,
    /// Required size of the response body in bytes, as transferred. For a compressed response, it is the compressed
    /// size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Required SHA-256 digest of the response body as transferred, as 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
}

/// A set of status codes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "SerializedStatuses", into = "SerializedStatuses")]
#[schemars(with = "SerializedStatuses")]
pub struct Statuses(Vec<Status>);

/// One status code, or all codes of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Code(u16),
    /// All status codes with this first digit.
    Class(u16),
}

/// The SHA-256 digest of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Sha256(pub [u8; 32]);

/// The serialised form of [`Statuses`]: a code, a class or a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, rename = "Statuses")]
enum SerializedStatuses {
    /// A status code, like 200.
    Code(u16),
    /// A class of status codes, like "2xx".
    Text(String),
    /// A list of codes and classes, like [200, "3xx"].
    Several(Vec<SerializedStatus>),
}

/// The serialised form of one [`Status`]: a code or a class.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, rename = "Status")]
enum SerializedStatus {
    /// A status code, like 200.
    Code(u16),
    /// A class of status codes, like "2xx".
    Text(String),
}

impl Expect {
    /// Whether a response meets the requirements for the status and the size of its body, in bytes. The digest is not
    /// checked.
    pub fn accepts(&self, status: u16, length: u64) -> bool {
        self.status.as_ref().is_none_or(|statuses| statuses.contains(status))
            && self.length.is_none_or(|is| is == length)
    }

    /// Whether there are no requirements, so that every response is accepted.
    pub fn is_empty(&self) -> bool {
        *self == Expect::default()
    }
}

impl fmt::Display for Expect {
    /// Formats the requirements, like `status 200, 1,234 bytes, SHA-256 0a1b…`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.as_ref().map(|status| format!("status {status}"));
        let length = self.length.map(|length| format!("{length} bytes"));
        let digest = self.sha256.map(|digest| format!("SHA-256 {:.8}…", digest.to_string()));
        let all: Vec<String> = [status, length, digest].into_iter().flatten().collect();
        f.write_str(&all.join(", "))
    }
}

impl Statuses {
    /// Whether the set contains a status code. Invalid codes from 600 on belong to the class 5xx (RFC 9110 §15).
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|expected| match expected {
            Status::Code(code) => *code == status,
            Status::Class(digit) => (status / 100).min(5) == *digit,
        })
    }
}

impl Status {
    fn from_code(code: u16) -> Result<Status, String> {
        let wrong = || format!("{code} is not a status: write 100 to 599, or 2xx for all that begin so");
        (100..600).contains(&code).then_some(Status::Code(code)).ok_or_else(wrong)
    }
}

impl FromStr for Status {
    type Err = String;

    fn from_str(text: &str) -> Result<Status, String> {
        let text = text.trim();
        let wrong = || format!("`{text}` is not a status: write 200, or 2xx for all that begin so");
        match text.strip_suffix("xx") {
            Some(digit) => {
                digit.parse().ok().filter(|digit| (1..=5).contains(digit)).map(Status::Class).ok_or_else(wrong)
            }
            None => text.parse().map_err(|_| wrong()).and_then(Status::from_code),
        }
    }
}

impl FromStr for Statuses {
    type Err = String;

    /// Parses a list of codes and classes, like `200,3xx`.
    fn from_str(text: &str) -> Result<Statuses, String> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Statuses)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Code(code) => write!(f, "{code}"),
            Status::Class(digit) => write!(f, "{digit}xx"),
        }
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(Status::to_string).collect();
        f.write_str(&all.join(" or "))
    }
}

impl TryFrom<SerializedStatuses> for Statuses {
    type Error = String;

    fn try_from(written: SerializedStatuses) -> Result<Statuses, String> {
        let one = |written: SerializedStatus| match written {
            SerializedStatus::Code(code) => Status::from_code(code),
            SerializedStatus::Text(text) => text.parse(),
        };
        let statuses = match written {
            SerializedStatuses::Code(code) => vec![Status::from_code(code)?],
            SerializedStatuses::Text(text) => return text.parse(),
            SerializedStatuses::Several(several) => several.into_iter().map(one).collect::<Result<_, _>>()?,
        };
        if statuses.is_empty() {
            return Err("no status is as expected then: write 200 or \"2xx\", or leave status out".to_owned());
        }
        Ok(Statuses(statuses))
    }
}

impl From<Statuses> for SerializedStatuses {
    fn from(statuses: Statuses) -> SerializedStatuses {
        let one = |status: &Status| match status {
            Status::Code(code) => SerializedStatus::Code(*code),
            class => SerializedStatus::Text(class.to_string()),
        };
        match statuses.0.as_slice() {
            [Status::Code(code)] => SerializedStatuses::Code(*code),
            [class] => SerializedStatuses::Text(class.to_string()),
            several => SerializedStatuses::Several(several.iter().map(one).collect()),
        }
    }
}

impl FromStr for Sha256 {
    type Err = String;

    fn from_str(text: &str) -> Result<Sha256, String> {
        let wrong = || format!("`{text}` is no SHA-256: write the 64 hexadecimal digits that `sha256sum` prints");
        let digits: Vec<u8> = text
            .chars()
            .map(|digit| digit.to_digit(16).map(|digit| digit as u8))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| 16 * byte + digit)).collect();
        if digits.len() == 64 { bytes.try_into().map(Sha256).map_err(|_| wrong()) } else { Err(wrong()) }
    }
}

impl TryFrom<String> for Sha256 {
    type Error = String;

    fn try_from(text: String) -> Result<Sha256, String> {
        text.parse()
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<Sha256> for String {
    fn from(digest: Sha256) -> String {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn read(toml: &str) -> Result<Expect, String> {
        toml::from_str(toml).map_err(|error| error.to_string())
    }

    #[test]
    fn statuses_as_people_write_them() {
        for (toml, have, have_not) in [
            ("status = 200", &[200][..], &[201, 404][..]),
            ("status = '2xx'", &[200, 299], &[304, 100]),
            ("status = [200, 304]", &[200, 304], &[301]),
            ("status = ['2xx', 404]", &[204, 404], &[403]),
            ("status = '200,3xx'", &[200, 301], &[201]),
            ("", &[200, 500], &[]),
        ] {
            let expect = read(toml).unwrap();
            assert!(have.iter().all(|status| expect.accepts(*status, 7)), "{toml}");
            assert!(!have_not.iter().any(|status| expect.accepts(*status, 7)), "{toml}");
            let written = toml::to_string(&expect).unwrap();
            assert_eq!(read(&written).as_ref(), Ok(&expect), "{written}");
        }
    }

    #[test]
    fn lengths_and_digests() {
        let expect = read(&format!("length = 0\nsha256 = '{EMPTY}'")).unwrap();
        assert!(expect.accepts(500, 0) && !expect.accepts(500, 1) && !expect.is_empty());
        assert_eq!(expect.to_string(), "0 bytes, SHA-256 e3b0c442…");
        assert_eq!(read(&toml::to_string(&expect).unwrap()), Ok(expect));
        assert_eq!(read("status = [200, '3xx']").unwrap().to_string(), "status 200 or 3xx");
        assert!(read("").unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_expected_is_said() {
        for (toml, word) in [
            ("status = 99", "100 to 599"),
            ("status = '6xx'", "200, or 2xx"),
            ("status = 'ok'", "200, or 2xx"),
            ("status = []", "no status"),
            ("sha256 = 'abc'", "64 hexadecimal"),
            ("sha256 = 'é'", "64 hexadecimal"),
            ("size = 3", "unknown field"),
        ] {
            let error = read(toml).unwrap_err();
            assert!(error.contains(word), "{toml}: {error}");
        }
    }
}
