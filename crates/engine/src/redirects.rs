//! Follows redirects. Each followed redirect causes a new call, which begins as soon as the response with the redirect
//! is complete.
//!
//! The client or session of the redirected call also sends the new call and waits for its response. All such calls are
//! in one extra class after the classes of the workload, and are not part of the schedule. A redirect is counted but
//! not followed if it leads to another server, exceeds the limit, or would send a request body again.

use crate::RequestSettings;
use brimful_core::workload::Workload;
use brimful_core::{CallSpec, ClassId, RequestId, UnfollowedReason};
use brimful_http::{Redirection, Request};
use std::collections::HashMap;

/// A redirect in a response, and whether it is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// The redirect is followed by a new call with this specification.
    To(CallSpec),
    /// The redirect is not followed, for this reason.
    NotFollowed(UnfollowedReason),
}

/// Whether and how redirects are followed; the same for all shards of a run.
#[derive(Clone, Debug)]
pub struct RedirectPolicy {
    /// Maximum number of successive redirects that are followed for one scheduled call.
    max_redirects: u64,
    /// Scheme, host and port of the server.
    origin: String,
    settings: RequestSettings,
    /// For each class, the header fields with the same value in all of its calls.
    headers: Vec<Vec<(String, String)>>,
}

impl RedirectPolicy {
    /// Creates a policy that follows up to `max_redirects` redirects for each call of this workload.
    pub fn new(max_redirects: u64, workload: &Workload, settings: &RequestSettings) -> RedirectPolicy {
        let scheme = if settings.is_secure { "https" } else { "http" };
        let host = settings.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let host = host.map_or(settings.authority.as_str(), |(_, value)| value.trim());
        let shared_field = |(name, value): (&String, &String)| {
            let is_content = ["content-type", "content-length", "content-encoding", "expect"]
                .iter()
                .any(|content| name.eq_ignore_ascii_case(content));
            // Leaves out fields that describe a request body, and fields with a placeholder, whose value differs
            // between calls.
            (!is_content && !value.contains('{')).then(|| (name.clone(), value.clone()))
        };
        RedirectPolicy {
            max_redirects,
            origin: format!("{scheme}://{host}"),
            settings: settings.clone(),
            headers: workload
                .classes
                .iter()
                .map(|class| class.headers.iter().filter_map(shared_field).collect())
                .collect(),
        }
    }

    /// The extra class that contains all calls that follow redirects.
    fn class(&self) -> ClassId {
        ClassId(self.headers.len() as u16)
    }
}

/// The calls of one shard that follow redirects and have not ended.
#[derive(Debug)]
pub struct Redirects<'a> {
    policy: &'a RedirectPolicy,
    under_way: HashMap<RequestId, Hop>,
    /// The [`RequestId`] of the next call that follows a redirect.
    next: u64,
}

/// A call that follows a redirect: its request and its position in a series of redirects.
#[derive(Clone, Debug)]
struct Hop {
    method: String,
    target: String,
    request: Request,
    /// The class of the scheduled call that was redirected.
    class: ClassId,
    /// Number of redirects from the scheduled call to this call, at least 1.
    nth: u64,
}

impl<'a> Redirects<'a> {
    /// Creates the state of a shard that has followed no redirects.
    pub fn new(policy: &'a RedirectPolicy) -> Redirects<'a> {
        Redirects { policy, under_way: HashMap::new(), next: 0 }
    }

    /// Whether this call follows a redirect.
    pub fn follows_redirect(&self, call: &CallSpec) -> bool {
        call.class == self.policy.class()
    }

    /// The request of a call that follows a redirect; `None` if the call does not. `last` says that it is the last
    /// request on its connection.
    pub fn request(&self, call: &CallSpec, last: bool) -> Option<Request> {
        let hop = self.under_way.get(&call.request)?;
        let render_last = || self.render(&hop.method, &hop.target, hop.class, true);
        Some(last.then(render_last).flatten().unwrap_or_else(|| hop.request.clone()))
    }

    /// The redirect in the head of the response to this call; `None` if the response is not a redirect. `first` is the
    /// call's request if the call is scheduled, and `None` if the call itself follows a redirect.
    pub fn redirect_in(&mut self, call: &CallSpec, head: &[u8], first: Option<&Request>) -> Option<Redirect> {
        let RedirectPolicy { max_redirects, origin, .. } = self.policy;
        let (method, target, class, nth) =
            match (self.under_way.get(&call.request).filter(|_| self.follows_redirect(call)), first) {
                (Some(hop), _) => (hop.method.clone(), hop.target.clone(), hop.class, hop.nth + 1),
                (None, Some(first)) => {
                    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                    (text(first.method()), text(first.target()), call.class, 1)
                }
                (None, None) => return None,
            };
        let (method, target) = match Redirection::parse(head, &method, &target, origin)? {
            Redirection::OtherServer => return Some(Redirect::NotFollowed(UnfollowedReason::OtherServer)),
            Redirection::ResendBody => return Some(Redirect::NotFollowed(UnfollowedReason::NeedsBody)),
            Redirection::InvalidLocation => return Some(Redirect::NotFollowed(UnfollowedReason::InvalidLocation)),
            Redirection::SameServer { .. } if nth > *max_redirects => {
                return Some(Redirect::NotFollowed(UnfollowedReason::TooManyRedirects));
            }
            Redirection::SameServer { method, target } => (method.into_owned(), target),
        };
        let Some(request) = self.render(&method, &target, class, false) else {
            return Some(Redirect::NotFollowed(UnfollowedReason::InvalidLocation));
        };
        let id = RequestId(self.next);
        self.next = self.next.wrapping_add(1);
        self.under_way.insert(id, Hop { method, target, request, class, nth });
        Some(Redirect::To(CallSpec { class: self.policy.class(), request: id, session: call.session }))
    }

    /// Drops the request of a call that follows a redirect, once the call has ended or will not begin.
    pub fn forget(&mut self, call: &CallSpec) {
        if self.follows_redirect(call) {
            self.under_way.remove(&call.request);
        }
    }

    fn render(&self, method: &str, target: &str, class: ClassId, last: bool) -> Option<Request> {
        let headers = self.policy.headers.get(usize::from(class.0))?;
        self.policy.settings.request(method, target, headers, b"", last).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Close;
    use brimful_http::Version;

    fn policy(max_redirects: u64, version: Version) -> (RedirectPolicy, Request) {
        let workload: Workload = toml::from_str(
            "[[class]]\nname = \"all\"\npath = \"/a/b\"\nmethod = \"POST\"\nbody = \"x\"\n\
             headers = { Content-Type = \"text/plain\", Accept = \"text/html\", X-Seq = \"{seq}\" }\n",
        )
        .unwrap();
        let headers = vec![("Host".to_owned(), "app.example".to_owned())];
        let settings =
            RequestSettings { authority: "h:80".to_owned(), version, is_secure: false, headers, close: Close::Server };
        let first = settings.request("POST", "/a/b", &[], b"x", false).unwrap();
        (RedirectPolicy::new(max_redirects, &workload, &settings), first)
    }

    const CALL: CallSpec = CallSpec { class: ClassId(0), request: RequestId(0), session: None };

    #[test]
    fn a_chain_of_redirects_is_followed_up_to_the_limit() {
        for version in [Version::Http11, Version::Http2] {
            let (policy, first) = policy(2, version);
            let mut redirects = Redirects::new(&policy);
            let head = b"HTTP/1.1 302 Found\r\nLocation: http://app.example/a/c\r\n\r\n";
            let Some(Redirect::To(hop)) = redirects.redirect_in(&CALL, head, Some(&first)) else {
                panic!("the first redirect is not followed")
            };
            assert!(redirects.follows_redirect(&hop) && !redirects.follows_redirect(&CALL));
            let request = redirects.request(&hop, false).unwrap();
            assert_eq!((request.method(), request.target()), (&b"GET"[..], &b"/a/c"[..]));
            let relative = b"HTTP/1.1 307 Again\r\nLocation: d\r\n\r\n";
            let Some(Redirect::To(second)) = redirects.redirect_in(&hop, relative, None) else {
                panic!("the second redirect is not followed")
            };
            assert_eq!(redirects.request(&second, true).unwrap().target(), b"/a/d");
            let third = redirects.redirect_in(&second, relative, None);
            assert_eq!(third, Some(Redirect::NotFollowed(UnfollowedReason::TooManyRedirects)));
            assert_eq!(redirects.redirect_in(&second, b"HTTP/1.1 200 OK\r\n\r\n", None), None);
            [CALL, hop, second].iter().for_each(|call| redirects.forget(call));
            assert!(redirects.under_way.is_empty());
        }
    }

    #[test]
    fn fields_of_content_and_of_one_call_are_not_sent_again() {
        let (policy, first) = policy(1, Version::Http11);
        let mut redirects = Redirects::new(&policy);
        let head = b"HTTP/1.1 303 See\r\nLocation: /x\r\n\r\n";
        let Some(Redirect::To(hop)) = redirects.redirect_in(&CALL, head, Some(&first)) else {
            panic!("the first redirect is not followed")
        };
        let text = |last| String::from_utf8(redirects.request(&hop, last).unwrap().bytes().to_vec()).unwrap();
        let request = text(false);
        assert!(request.contains("\r\nAccept: text/html\r\n") && request.contains("\r\nHost: app.example\r\n"));
        assert!(!request.contains("X-Seq") && !request.contains("Content-"), "{request}");
        assert!(text(true).contains("Connection: close"));
    }

    #[test]
    fn redirects_that_are_not_followed_have_a_reason() {
        let (policy, first) = policy(9, Version::Http11);
        let mut redirects = Redirects::new(&policy);
        for (head, why) in [
            (&b"HTTP/1.1 301 M\r\nLocation: https://app.example/\r\n\r\n"[..], UnfollowedReason::OtherServer),
            (b"HTTP/1.1 307 M\r\nLocation: /x\r\n\r\n", UnfollowedReason::NeedsBody),
            (b"HTTP/1.1 301 M\r\n\r\n", UnfollowedReason::InvalidLocation),
        ] {
            assert_eq!(redirects.redirect_in(&CALL, head, Some(&first)), Some(Redirect::NotFollowed(why)));
        }
        assert!(redirects.under_way.is_empty());
    }
}
