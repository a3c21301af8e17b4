//! What is sent beyond the requests of classes: those of sessions that are written out, cookies, and calls that follow
//! redirects.
//!
//! A jar of cookies is made when a session is given its first one, and gone when the session has ended. A request with
//! cookies is the one without, copied once with one line more; where there are none, nothing is copied.

use crate::body_file::BodyFile;
use crate::redirects::{Follow, Redirect, Redirects};
use crate::{EngineError, Requests, Wire};
use brimful_core::url::encode_target;
use brimful_core::workload::{Expect, ScriptedRequest, Workload};
use brimful_core::{CallSpec, ClassId, RequestId, SessionId};
use brimful_http::{Jar, Request};
use std::borrow::Cow;
use std::collections::HashMap;
use std::time::SystemTime;

/// Requests of a load of sessions, or of one that follows redirects; those of its classes come from `R`. One per shard.
#[derive(Debug)]
pub struct SessionRequests<'a, R> {
    of_classes: R,
    scripted: &'a ScriptedRequests,
    jars: Option<Jars>,
    redirects: Option<Redirects<'a>>,
}

/// The requests that are written out, each rendered once.
#[derive(Clone, Debug, Default)]
pub struct ScriptedRequests {
    rendered: Vec<Request>,
    /// For each call that is written out, where its request is among the `rendered`.
    places: Vec<u32>,
}

impl ScriptedRequests {
    /// Renders those of a workload; it may have none.
    ///
    /// # Errors
    /// [`EngineError::Request`] when method, path or headers cannot be sent as HTTP.
    pub fn render(workload: &Workload, wire: &Wire) -> Result<ScriptedRequests, EngineError> {
        let mut known: HashMap<ScriptedRequest<'_>, u32> = HashMap::new();
        let mut all = ScriptedRequests::default();
        for request in workload.scripted_requests() {
            let place = match known.get(&request) {
                Some(place) => *place,
                None => {
                    let class = &workload.classes[request.class];
                    let headers: Vec<(String, String)> =
                        class.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                    let ScriptedRequest { method, path, body, .. } = request;
                    let failed = |source| EngineError::Request { class: class.name.clone(), source };
                    let place = all.rendered.len() as u32;
                    // The connections of a session do not end with a call.
                    let path = encode_target(path);
                    let rendered = wire.request(method, &path, &headers, body.as_bytes(), false).map_err(failed)?;
                    all.rendered.push(rendered);
                    known.insert(request, place);
                    place
                }
            };
            all.places.push(place);
        }
        Ok(all)
    }

    fn get(&self, request: RequestId) -> Option<&Request> {
        let place = self.places.get(ScriptedRequest::nth(request)?)?;
        self.rendered.get(*place as usize)
    }
}

impl<'a, R: Requests<'a>> SessionRequests<'a, R> {
    /// The requests of classes, and those that are written out.
    pub fn new(of_classes: R, scripted: &'a ScriptedRequests) -> Self {
        SessionRequests { of_classes, scripted, jars: None, redirects: None }
    }

    /// With a jar of cookies for each session; those that are for TLS alone are kept if the requests go by it.
    #[must_use]
    pub fn with_cookies(self, tls: bool) -> Self {
        SessionRequests { jars: Some(Jars { tls, ..Jars::default() }), ..self }
    }

    /// Following redirects, if `how` says so.
    #[must_use]
    pub fn following(self, how: Option<&'a Follow>) -> Self {
        SessionRequests { redirects: how.map(Redirects::new), ..self }
    }

    fn bare(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request> {
        let redirects = self.redirects.as_ref().filter(|redirects| redirects.is_one(call));
        if let Some(request) = redirects.and_then(|redirects| redirects.request(call, last)) {
            return Cow::Owned(request);
        }
        match self.scripted.get(call.request) {
            Some(request) => Cow::Borrowed(request),
            None => self.of_classes.request(call, last),
        }
    }
}

impl<'a, R: Requests<'a>> Requests<'a> for SessionRequests<'a, R> {
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request> {
        let request = self.bare(call, last);
        match (&mut self.jars, call.session) {
            (Some(jars), Some(session)) => jars.dress(session, request),
            _ => request,
        }
    }

    fn longest(&self) -> usize {
        let written = self.scripted.rendered.iter().map(|request| request.bytes().len()).max().unwrap_or(0);
        let longest = self.of_classes.longest().max(written);
        if self.jars.is_some() { longest.saturating_add(Jar::MOST_BYTES) } else { longest }
    }

    fn body(&mut self, call: &CallSpec) -> Option<&'a BodyFile> {
        self.of_classes.body(call)
    }

    fn reads_heads(&self) -> bool {
        self.jars.is_some() || self.redirects.is_some() || self.of_classes.reads_heads()
    }

    fn expected(&self, class: ClassId) -> Option<&Expect> {
        self.of_classes.expected(class)
    }

    fn read_head(&mut self, call: &CallSpec, head: &[u8]) -> Option<Redirect> {
        if let (Some(_), Some(session)) = (&self.jars, call.session)
            && Jar::is_set_by(head)
        {
            self.take_cookies(call, session, head);
        }
        let leads = self.of_classes.read_head(call, head);
        let Some(redirects) = &mut self.redirects else { return leads };
        if redirects.is_one(call) {
            return redirects.after(call, head, None);
        }
        // A request that many calls share is asked for again; that changes nothing.
        let first = self.bare(call, false);
        self.redirects.as_mut()?.after(call, head, Some(&first))
    }

    fn ended(&mut self, call: &CallSpec) {
        if let Some(redirects) = &mut self.redirects {
            redirects.ended(call);
        }
        self.of_classes.ended(call);
    }

    fn session_ended(&mut self, session: SessionId) {
        self.of_classes.session_ended(session);
        if let Some(jars) = &mut self.jars {
            jars.of.remove(&session);
            jars.rendered.remove(&session);
        }
    }
}

impl<'a, R: Requests<'a>> SessionRequests<'a, R> {
    fn take_cookies(&mut self, call: &CallSpec, session: SessionId, head: &[u8]) {
        let rendered = self.jars.as_ref().and_then(|jars| jars.rendered.get(&session).cloned());
        // A request that many calls share is asked for again; that changes nothing.
        let target = rendered.unwrap_or_else(|| self.bare(call, false).target().to_vec());
        if let Some(jars) = &mut self.jars {
            let jar = jars.of.entry(session).or_default();
            jar.receive(head, &target, jars.tls, seconds_since_1970);
        }
    }
}

/// The cookies of all sessions of a shard.
#[derive(Debug, Default)]
struct Jars {
    of: HashMap<SessionId, Jar>,
    /// What the latest request asked for that was rendered for a call of the session alone. Of several under way at
    /// once it may be another one's: that matters where they are in other directories, and a cookie names no path.
    rendered: HashMap<SessionId, Vec<u8>>,
    tls: bool,
    /// Written anew for each call.
    cookies: Vec<u8>,
}

impl Jars {
    /// The request with the cookies that go with it.
    fn dress<'a>(&mut self, session: SessionId, request: Cow<'a, Request>) -> Cow<'a, Request> {
        if let Cow::Owned(request) = &request {
            let target = self.rendered.entry(session).or_default();
            target.clear();
            target.extend_from_slice(request.target());
        } else {
            self.rendered.remove(&session);
        }
        let Some(jar) = self.of.get(&session).filter(|jar| !jar.is_empty()) else { return request };
        self.cookies.clear();
        jar.write(request.target(), seconds_since_1970, &mut self.cookies);
        if self.cookies.is_empty() { request } else { Cow::Owned(request.with_cookies(&self.cookies)) }
    }
}

/// By the clock that servers' dates are of.
fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Close, FixedRequests};
    use brimful_http::Version;

    fn wire() -> Wire {
        let (version, close) = (Version::Http11, Close::Server);
        Wire { authority: "a".to_owned(), version, is_secure: false, headers: Vec::new(), close }
    }

    fn text(request: &Request) -> String {
        String::from_utf8(request.bytes().to_vec()).unwrap()
    }

    /// The cookies that go with a call.
    fn sent<'a>(requests: &mut impl Requests<'a>, id: RequestId, session: u32) -> Option<String> {
        let request = requests.request(&call(id, session), false);
        let cookies = text(&request).lines().find_map(|line| Some(line.strip_prefix("Cookie: ")?.to_owned()));
        assert_eq!(cookies.is_some(), matches!(request, Cow::Owned(_)), "nothing is copied in vain");
        cookies
    }

    fn call(request: RequestId, session: u32) -> CallSpec {
        CallSpec { request, session: Some(SessionId(session)), ..CallSpec::of_class(ClassId(0)) }
    }

    /// Two sessions written out, with a request that is in both.
    fn workload() -> Workload {
        toml::from_str(
            "[[class]]\nname = \"all\"\npath = \"/class\"\nheaders = { X = \"y\" }\n[load.sessions]\nusers = 1\n\
             [[load.sessions.script]]\nbursts = [{ calls = [{ path = \"/in/a\" }, { path = \"/b\", method = \"PUT\", \
             body = \"c\" }] }]\n[[load.sessions.script]]\nbursts = [{ calls = [{ path = \"/in/a\" }] }]\n",
        )
        .unwrap()
    }

    #[test]
    fn what_is_written_out_is_rendered_once() {
        let (workload, wire) = (workload(), wire());
        let (fixed, scripted) =
            (FixedRequests::render(&workload, &wire).unwrap(), ScriptedRequests::render(&workload, &wire).unwrap());
        assert_eq!((scripted.rendered.len(), scripted.places.as_slice()), (2, &[0, 1, 0][..]));
        let mut requests = SessionRequests::new(&fixed, &scripted);
        let ids = [RequestId(0), ScriptedRequest::id(0), ScriptedRequest::id(1), ScriptedRequest::id(2)];
        let lines = ids.map(|id| text(&requests.request(&call(id, 1), false)).lines().next().unwrap().to_owned());
        assert_eq!(lines, ["GET /class", "GET /in/a", "PUT /b", "GET /in/a"].map(|line| format!("{line} HTTP/1.1")));
        let put = text(&requests.request(&call(ids[2], 1), false));
        assert!(put.contains("\r\nX: y\r\n") && put.ends_with("\r\n\r\nc"), "{put}");
        assert!(requests.longest() >= put.len());
    }

    #[test]
    fn cookies_come_and_go_by_http2() {
        let (workload, wire) = (workload(), Wire { version: Version::Http2, ..wire() });
        let (fixed, scripted) =
            (FixedRequests::render(&workload, &wire).unwrap(), ScriptedRequests::render(&workload, &wire).unwrap());
        assert!(!SessionRequests::new(&fixed, &scripted).reads_heads());
        let mut requests = SessionRequests::new(&fixed, &scripted).with_cookies(false);
        assert!(requests.reads_heads());
        let [in_a, b] = [0, 1].map(ScriptedRequest::id);
        let bare = requests.request(&call(in_a, 1), false).into_owned();
        requests.read_head(&call(in_a, 1), b"HTTP/2 200\r\nset-cookie: s=1; path=/\r\nset-cookie: d=2\r\n\r\n");
        assert_eq!(*requests.request(&call(in_a, 1), false), bare.with_cookies(b"d=2; s=1"));
        assert!(requests.request(&call(b, 1), false).bytes().ends_with(b"\x03s=1"));
        assert_eq!(*requests.request(&call(in_a, 2), false), bare);
    }

    #[test]
    fn a_session_sends_its_own_cookies_until_it_ends() {
        let (workload, wire) = (workload(), wire());
        let (fixed, scripted) =
            (FixedRequests::render(&workload, &wire).unwrap(), ScriptedRequests::render(&workload, &wire).unwrap());
        let mut requests = SessionRequests::new(&fixed, &scripted).with_cookies(false);
        let [in_a, b] = [0, 1].map(ScriptedRequest::id);
        assert_eq!(sent(&mut requests, in_a, 1), None);
        requests.read_head(&call(in_a, 1), b"HTTP/1.1 200 OK\r\nSet-Cookie: s=1; Path=/\r\nSet-Cookie: d=2\r\n\r\n");
        requests.read_head(&call(in_a, 2), b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n");
        assert_eq!(sent(&mut requests, in_a, 1).as_deref(), Some("d=2; s=1"), "without a path it is the directory's");
        assert_eq!(sent(&mut requests, b, 1).as_deref(), Some("s=1"));
        assert_eq!(sent(&mut requests, in_a, 2), None);
        requests.read_head(&call(b, 1), b"HTTP/1.1 200 OK\r\nSet-Cookie: s=; Path=/; Max-Age=0\r\n\r\n");
        assert_eq!(sent(&mut requests, b, 1), None);
        requests.session_ended(SessionId(1));
        assert_eq!(sent(&mut requests, in_a, 1), None);
        let jars = requests.jars.as_ref().unwrap();
        assert!(jars.of.is_empty() && jars.rendered.is_empty());
    }
}
