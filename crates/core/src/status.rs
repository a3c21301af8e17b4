//! Classes of HTTP status codes (RFC 9110 §15), with 429 as a class of its own.

/// A class of HTTP status codes, like 2xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StatusClass {
    /// Informational responses. Only 101, which switches the protocol, ends a call and is counted here.
    S1xx,
    /// Responses that report success (200 to 299).
    S2xx,
    /// Redirects (300 to 399).
    S3xx,
    /// Responses that report an error of the client (400 to 499), except 429.
    S4xx,
    /// Responses with status 429, "too many requests", by which a server limits the rate of its clients.
    S429,
    /// Responses that report an error of the server (500 to 599), including invalid codes from 600 on.
    S5xx,
}

impl StatusClass {
    /// All classes, in the order of their codes.
    pub const ALL: [StatusClass; 6] = [
        StatusClass::S1xx,
        StatusClass::S2xx,
        StatusClass::S3xx,
        StatusClass::S4xx,
        StatusClass::S429,
        StatusClass::S5xx,
    ];

    /// Returns the class of a status code.
    pub fn from_code(code: u16) -> StatusClass {
        match code {
            ..200 => StatusClass::S1xx,
            200..=299 => StatusClass::S2xx,
            300..=399 => StatusClass::S3xx,
            429 => StatusClass::S429,
            400..=499 => StatusClass::S4xx,
            500.. => StatusClass::S5xx,
        }
    }

    /// Returns the name of the class in documents, like `2xx`.
    pub fn name(self) -> &'static str {
        match self {
            StatusClass::S1xx => "1xx",
            StatusClass::S2xx => "2xx",
            StatusClass::S3xx => "3xx",
            StatusClass::S4xx => "4xx",
            StatusClass::S429 => "429",
            StatusClass::S5xx => "5xx",
        }
    }

    /// Returns the class with this name in documents; `None` if there is none.
    pub fn from_name(name: &str) -> Option<StatusClass> {
        StatusClass::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Whether the server refuses a request by an answer of this class: 5xx or 429. Other 4xx codes may be correct
    /// answers, like 404 for a page that does not exist.
    pub fn is_refusal(self) -> bool {
        matches!(self, StatusClass::S429 | StatusClass::S5xx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_class_and_only_429_and_5xx_are_refusals() {
        for (code, name, refusal) in [
            (101, "1xx", false),
            (200, "2xx", false),
            (299, "2xx", false),
            (304, "3xx", false),
            (404, "4xx", false),
            (429, "429", true),
            (430, "4xx", false),
            (500, "5xx", true),
            (999, "5xx", true),
        ] {
            let class = StatusClass::from_code(code);
            assert_eq!((class.name(), class.is_refusal()), (name, refusal), "{code}");
            assert_eq!(StatusClass::from_name(name), Some(class));
        }
        assert_eq!(StatusClass::from_name("6xx"), None);
    }
}
