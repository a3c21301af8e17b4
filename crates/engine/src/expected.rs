//! Compares responses with the status and content that the workload expects. If the workload expects a digest, the
//! content is hashed while it is received, and is not kept.

use brimful_core::End;
use brimful_core::workload::Expect;
use brimful_http::Response;
use ring::digest::{Context, SHA256};
use std::fmt;

/// The digest of the content received so far.
pub struct Digest(Context);

impl Digest {
    /// Creates the digest of empty content.
    pub fn new() -> Box<Digest> {
        Box::new(Digest(Context::new(&SHA256)))
    }

    /// Hashes more content.
    pub fn add(&mut self, content: &[u8]) {
        self.0.update(content);
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest")
    }
}

/// Determines the outcome of a call whose response is complete. The response to a HEAD request has no content to check.
pub fn end_of_response(
    expect: Option<&Expect>,
    response: &Response,
    digest: Option<Box<Digest>>,
    is_head: bool,
) -> End {
    let status = response.status;
    let Some(expect) = expect else { return End::Completed { status } };
    let length = if is_head { expect.length.unwrap_or(0) } else { response.body_bytes };
    let matches_digest = |expected: [u8; 32]| digest.is_none_or(|digest| digest.0.finish().as_ref() == expected);
    let as_expected =
        expect.accepts(status, length) && expect.sha256.is_none_or(|sha256| is_head || matches_digest(sha256.0));
    if as_expected { End::Completed { status } } else { End::Unexpected { status } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_length_and_content_are_checked() {
        let read = |toml: &str| toml::from_str::<Expect>(toml).unwrap();
        let abc = read("sha256 = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'");
        let ends = |expect: &Expect, status, content: &str, is_head| {
            let body_bytes = content.len() as u64;
            let response = Response { status, keep_alive: true, head_bytes: 9, body_bytes };
            let mut digest = Digest::new();
            content.as_bytes().chunks(2).for_each(|part| digest.add(part));
            end_of_response(Some(expect), &response, Some(digest), is_head) == End::Completed { status }
        };
        assert!(ends(&abc, 500, "abc", false) && !ends(&abc, 200, "abd", false) && ends(&abc, 200, "", true));
        let three = read("status = '2xx'\nlength = 3");
        assert!(ends(&three, 201, "xyz", false) && ends(&three, 204, "", true));
        assert!(!ends(&three, 200, "xy", false) && !ends(&three, 404, "xyz", false) && !ends(&three, 404, "", true));
        let response = Response { status: 500, keep_alive: false, head_bytes: 9, body_bytes: 0 };
        assert_eq!(end_of_response(None, &response, None, false), End::Completed { status: 500 });
    }
}
