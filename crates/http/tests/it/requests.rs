//! Tests that [`Request::new`] refuses its arguments or makes exactly one request.

use brimful_http::{Request, Version};
use proptest::prelude::*;

/// Generates text with many characters that can split requests.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,20}", "[A-Za-z-]{1,12}", "(\\PC|\r\n|[\r\n\t :/\0]){0,12}"]
}

/// Generates mostly the valid text `good`, and otherwise text with characters that can split requests.
fn mostly(good: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![3 => Just(good.to_owned()), 1 => text()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn one_request_is_one_request(
        method in mostly("POST"),
        authority in mostly("a.example"),
        path in mostly("/x?y"),
        headers in proptest::collection::vec((text(), text()), 0..4),
        body in proptest::collection::vec(any::<u8>(), 0..40),
        http10: bool,
        close: bool,
    ) {
        let version = if http10 { Version::Http10 } else { Version::Http11 };
        let Ok(request) = Request::new(&method, &authority, &path, &headers, &body, version, close) else {
            return Ok(());
        };
        let mut fields = [httparse::EMPTY_HEADER; 16];
        let mut parsed = httparse::Request::new(&mut fields);
        let Ok(httparse::Status::Complete(head)) = parsed.parse(request.bytes()) else {
            return Err(TestCaseError::fail(format!("not one head: {:?}", String::from_utf8_lossy(request.bytes()))));
        };
        prop_assert_eq!(&request.bytes()[head..], &body[..]);
        prop_assert_eq!(parsed.method, Some(&method[..]));
        prop_assert_eq!(parsed.path, Some(&path[..]));
        let given = |name: &str| headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name)).count();
        let sent = |name: &str| parsed.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name)).count();
        for name in ["Host", "User-Agent", "Accept"] {
            prop_assert_eq!(sent(name), given(name).max(1), "{}", name);
        }
        for (name, _) in &headers {
            prop_assert!(sent(name) == given(name), "{}", name);
        }
        if !body.is_empty() {
            let length = parsed.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-length"));
            prop_assert_eq!(length.map(|field| field.value.to_vec()), Some(body.len().to_string().into_bytes()));
        }
    }
}
