//! Feeds arbitrary response heads to a cookie jar and adds the jar's cookies to a request. Checks that nothing panics,
//! that the jar stays within its limits and that the result is still one request.
//!
//! Input: a byte of flags (bit 0: TLS is used; bits 1 to 7: seconds that pass between responses), then heads, each of
//! which ends in an empty line. `README.md` contains the command that runs this target.
#![no_main]

use brimful_http::{CookieJar, Request, Version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&flags, mut heads)) = input.split_first() else {
        return;
    };
    let request = Request::new("GET", "a", "/a/b?c", &[], b"x", Version::Http11, false).expect("the request is valid");
    let (mut jar, mut now) = (CookieJar::default(), 1_800_000_000);
    while !heads.is_empty() {
        let end = heads.windows(2).position(|two| two == b"\n\n").map_or(heads.len(), |at| at + 2);
        let (head, rest) = heads.split_at(end);
        heads = rest;
        jar.receive(head, request.target(), flags & 1 == 1, || now);
        now += u64::from(flags >> 1);

        let mut cookies = Vec::new();
        jar.write(request.target(), || now, &mut cookies);
        assert!(cookies.len() <= CookieJar::MAX_BYTES + 2 * CookieJar::MAX_COOKIES);
        let dressed = request.with_cookies(&cookies);
        let mut fields = [httparse::EMPTY_HEADER; 16];
        let mut parsed = httparse::Request::new(&mut fields);
        let body = match parsed.parse(dressed.bytes()) {
            Ok(httparse::Status::Complete(head)) => &dressed.bytes()[head..],
            other => panic!("{other:?}"),
        };
        assert_eq!(body, b"x", "cookies do not change the body");
        let sent: Vec<&[u8]> = parsed.headers.iter().filter(|f| f.name == "Cookie").map(|f| f.value).collect();
        // White space around a value is not part of the value.
        assert_eq!(sent.concat(), cookies.trim_ascii(), "at most one field is added");
    }
});
