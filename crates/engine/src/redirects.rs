//! Redirects that are followed: what an answer leads to is a call of its own, which begins as soon as the answer is whole.
//!
//! It belongs to the client, or the session, of the call that was answered: whoever waits for an answer waits for the last
//! one. It is of a class of its own, beyond those of the workload, and no call that the schedule has brought. What leads to
//! another server, further than is wanted, or to sending content once more is not followed, and that is said.

use crate::Wire;
use brimful_core::workload::Workload;
use brimful_core::{CallSpec, ClassId, RequestId, Unfollowed};
use brimful_http::{Redirection, Request};
use std::collections::HashMap;

/// What becomes of an answer that leads elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// This call follows.
    To(CallSpec),
    /// None does.
    NotFollowed(Unfollowed),
}

/// How redirects are followed; the same for all shards of a run.
#[derive(Clone, Debug)]
pub struct Follow {
    /// At most so many, one after another.
    most: u64,
    /// Scheme, host and port.
    origin: String,
    wire: Wire,
    /// Of each class, the header fields that are the same for all its calls.
    headers: Vec<Vec<(String, String)>>,
}

impl Follow {
    /// Follows up to `most` redirects, one after another, of the calls of this workload.
    pub fn new(most: u64, workload: &Workload, wire: &Wire) -> Follow {
        let scheme = if wire.is_secure { "https" } else { "http" };
        let host = wire.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let host = host.map_or(wire.authority.as_str(), |(_, value)| value.trim());
        let fixed = |(name, value): (&String, &String)| {
            let is_content = ["content-type", "content-length", "content-encoding", "expect"]
                .iter()
                .any(|content| name.eq_ignore_ascii_case(content));
            // What is filled in is of one call.
            (!is_content && !value.contains('{')).then(|| (name.clone(), value.clone()))
        };
        Follow {
            most,
            origin: format!("{scheme}://{host}"),
            wire: wire.clone(),
            headers: workload.classes.iter().map(|class| class.headers.iter().filter_map(fixed).collect()).collect(),
        }
    }

    /// The class of calls that follow a redirect.
    fn class(&self) -> ClassId {
        ClassId(self.headers.len() as u16)
    }
}

/// The calls of one shard that follow redirects.
#[derive(Debug)]
pub struct Redirects<'a> {
    follow: &'a Follow,
    under_way: HashMap<RequestId, Hop>,
    /// The next one's number.
    next: u64,
}

/// One of them.
#[derive(Clone, Debug)]
struct Hop {
    method: String,
    target: String,
    request: Request,
    /// The class of the call that the schedule brought.
    of: ClassId,
    /// Which one after that call, from 1.
    nth: u64,
}

impl<'a> Redirects<'a> {
    pub fn new(follow: &'a Follow) -> Redirects<'a> {
        Redirects { follow, under_way: HashMap::new(), next: 0 }
    }

    /// Whether this call follows a redirect.
    pub fn is_one(&self, call: &CallSpec) -> bool {
        call.class == self.follow.class()
    }

    /// The request of one of them; it ends its connection if it is the `last`.
    pub fn request(&self, call: &CallSpec, last: bool) -> Option<Request> {
        let hop = self.under_way.get(&call.request)?;
        let again = || self.render(&hop.method, &hop.target, hop.of, true);
        Some(last.then(again).flatten().unwrap_or_else(|| hop.request.clone()))
    }

    /// Where the head of this call's answer leads, if it does; `first` is the request of a call that follows none.
    pub fn after(&mut self, call: &CallSpec, head: &[u8], first: Option<&Request>) -> Option<Redirect> {
        let Follow { most, origin, .. } = self.follow;
        let (method, target, of, nth) = match (self.under_way.get(&call.request).filter(|_| self.is_one(call)), first) {
            (Some(hop), _) => (hop.method.clone(), hop.target.clone(), hop.of, hop.nth + 1),
            (None, Some(first)) => {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                (text(first.method()), text(first.target()), call.class, 1)
            }
            (None, None) => return None,
        };
        let (method, target) = match Redirection::of(head, &method, &target, origin)? {
            Redirection::Elsewhere => return Some(Redirect::NotFollowed(Unfollowed::Elsewhere)),
            Redirection::Content => return Some(Redirect::NotFollowed(Unfollowed::Content)),
            Redirection::Nowhere => return Some(Redirect::NotFollowed(Unfollowed::Nowhere)),
            Redirection::Here { .. } if nth > *most => return Some(Redirect::NotFollowed(Unfollowed::TooMany)),
            Redirection::Here { method, target } => (method.into_owned(), target),
        };
        let Some(request) = self.render(&method, &target, of, false) else {
            return Some(Redirect::NotFollowed(Unfollowed::Nowhere));
        };
        let id = RequestId(self.next);
        self.next = self.next.wrapping_add(1);
        self.under_way.insert(id, Hop { method, target, request, of, nth });
        Some(Redirect::To(CallSpec { class: self.follow.class(), request: id, session: call.session }))
    }

    /// This call has ended, or will not be made.
    pub fn ended(&mut self, call: &CallSpec) {
        if self.is_one(call) {
            self.under_way.remove(&call.request);
        }
    }

    fn render(&self, method: &str, target: &str, of: ClassId, last: bool) -> Option<Request> {
        let headers = self.follow.headers.get(usize::from(of.0))?;
        self.follow.wire.request(method, target, headers, b"", last).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Close;
    use brimful_http::Version;

    fn follow(most: u64, version: Version) -> (Follow, Request) {
        let workload: Workload = toml::from_str(
            "[[class]]\nname = \"all\"\npath = \"/a/b\"\nmethod = \"POST\"\nbody = \"x\"\n\
             headers = { Content-Type = \"text/plain\", Accept = \"text/html\", X-Seq = \"{seq}\" }\n",
        )
        .unwrap();
        let headers = vec![("Host".to_owned(), "app.example".to_owned())];
        let wire = Wire { authority: "h:80".to_owned(), version, is_secure: false, headers, close: Close::Server };
        let first = wire.request("POST", "/a/b", &[], b"x", false).unwrap();
        (Follow::new(most, &workload, &wire), first)
    }

    const CALL: CallSpec = CallSpec { class: ClassId(0), request: RequestId(0), session: None };

    #[test]
    fn a_chain_of_redirects_is_followed_so_far_and_no_further() {
        for version in [Version::Http11, Version::Http2] {
            let (follow, first) = follow(2, version);
            let mut redirects = Redirects::new(&follow);
            let head = b"HTTP/1.1 302 Found\r\nLocation: http://app.example/a/c\r\n\r\n";
            let Some(Redirect::To(hop)) = redirects.after(&CALL, head, Some(&first)) else {
                panic!("it is not followed")
            };
            assert!(redirects.is_one(&hop) && !redirects.is_one(&CALL));
            let request = redirects.request(&hop, false).unwrap();
            assert_eq!((request.method(), request.target()), (&b"GET"[..], &b"/a/c"[..]));
            let relative = b"HTTP/1.1 307 Again\r\nLocation: d\r\n\r\n";
            let Some(Redirect::To(second)) = redirects.after(&hop, relative, None) else { panic!("nor is the second") };
            assert_eq!(redirects.request(&second, true).unwrap().target(), b"/a/d");
            let third = redirects.after(&second, relative, None);
            assert_eq!(third, Some(Redirect::NotFollowed(Unfollowed::TooMany)));
            assert_eq!(redirects.after(&second, b"HTTP/1.1 200 OK\r\n\r\n", None), None);
            [CALL, hop, second].iter().for_each(|call| redirects.ended(call));
            assert!(redirects.under_way.is_empty());
        }
    }

    #[test]
    fn header_fields_of_content_and_of_one_call_do_not_follow() {
        let (follow, first) = follow(1, Version::Http11);
        let mut redirects = Redirects::new(&follow);
        let head = b"HTTP/1.1 303 See\r\nLocation: /x\r\n\r\n";
        let Some(Redirect::To(hop)) = redirects.after(&CALL, head, Some(&first)) else { panic!("it is not followed") };
        let text = |last| String::from_utf8(redirects.request(&hop, last).unwrap().bytes().to_vec()).unwrap();
        let on_going = text(false);
        assert!(on_going.contains("\r\nAccept: text/html\r\n") && on_going.contains("\r\nHost: app.example\r\n"));
        assert!(!on_going.contains("X-Seq") && !on_going.contains("Content-"), "{on_going}");
        assert!(text(true).contains("Connection: close"));
    }

    #[test]
    fn what_leads_away_is_said() {
        let (follow, first) = follow(9, Version::Http11);
        let mut redirects = Redirects::new(&follow);
        for (head, why) in [
            (&b"HTTP/1.1 301 M\r\nLocation: https://app.example/\r\n\r\n"[..], Unfollowed::Elsewhere),
            (b"HTTP/1.1 307 M\r\nLocation: /x\r\n\r\n", Unfollowed::Content),
            (b"HTTP/1.1 301 M\r\n\r\n", Unfollowed::Nowhere),
        ] {
            assert_eq!(redirects.after(&CALL, head, Some(&first)), Some(Redirect::NotFollowed(why)));
        }
        assert!(redirects.under_way.is_empty());
    }
}
