//! Uses arbitrary text as the parts of a request. Checks that [`Request::new`] refuses the text or makes exactly one
//! request.
//!
//! Input: a byte of flags (bit 0: HTTP/1.0; bit 1: close the connection), then parts separated by bytes 0xff: the
//! method, the authority, the path, the body, and the names and values of headers alternately. `README.md` contains the
//! command that runs this target.
#![no_main]

use brimful_http::{Request, Version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&flags, rest)) = input.split_first() else {
        return;
    };
    let version = if flags & 1 == 1 {
        Version::Http10
    } else {
        Version::Http11
    };
    let close = flags & 2 == 2;
    let mut parts = rest
        .split(|&byte| byte == 0xff)
        .map(String::from_utf8_lossy);
    let (Some(method), Some(authority), Some(path), Some(body)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    let mut headers = Vec::new();
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        headers.push((name.into_owned(), value.into_owned()));
    }
    headers.truncate(50);
    let Ok(request) = Request::new(
        &method,
        &authority,
        &path,
        &headers,
        body.as_bytes(),
        version,
        close,
    ) else {
        return;
    };

    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut fields);
    let Ok(httparse::Status::Complete(head)) = parsed.parse(request.bytes()) else {
        panic!(
            "not one head: {:?}",
            String::from_utf8_lossy(request.bytes())
        );
    };
    assert_eq!(&request.bytes()[head..], body.as_bytes());
    assert_eq!((parsed.method, parsed.path), (Some(&*method), Some(&*path)));
    assert_eq!(
        parsed.version,
        Some(if version == Version::Http10 { 0 } else { 1 })
    );
    assert_eq!(request.is_head(), method == "HEAD");
    for field in parsed.headers.iter() {
        let name = field.name.to_ascii_lowercase();
        let is_given = headers
            .iter()
            .any(|(given, _)| given.eq_ignore_ascii_case(&name));
        let is_ours = [
            "host",
            "user-agent",
            "accept",
            "connection",
            "content-length",
        ]
        .contains(&&*name);
        assert!(is_given || is_ours, "the field {name} was not requested");
        assert_ne!(name, "transfer-encoding");
        if name == "content-length" {
            assert_eq!(field.value, body.len().to_string().as_bytes());
        }
    }
    let sent_length = parsed
        .headers
        .iter()
        .any(|field| field.name.eq_ignore_ascii_case("content-length"));
    assert!(sent_length || body.is_empty());
});
