//! Requests beyond those of a workload's classes: scripted requests (which a session's script lists), requests with
//! cookies, and requests that follow redirects.
//!
//! A session has a cookie jar from its first cookie until its end. A request is copied only if cookies are added to it.

use crate::body_file::BodyFile;
use crate::redirects::{Redirect, RedirectPolicy, Redirects};
use crate::{EngineError, RequestSettings, Requests};
use brimful_core::url::encode_target;
use brimful_core::workload::{Expect, ScriptedRequest, Workload};
use brimful_core::{CallSpec, ClassId, RequestId, SessionId};
use brimful_http::{CookieJar, Request};
use std::borrow::Cow;
use std::collections::HashMap;
use std::time::SystemTime;

/// The requests of one shard if the load has sessions or follows redirects. `R` provides the requests of the workload's
/// classes.
#[derive(Debug)]
pub struct SessionRequests<'a, R> {
    of_classes: R,
    scripted: &'a ScriptedRequests,
    jars: Option<Jars>,
    redirects: Option<Redirects<'a>>,
}

/// The scripted requests of a workload's sessions. Equal requests are rendered once.
#[derive(Clone, Debug, Default)]
pub struct ScriptedRequests {
    rendered: Vec<Request>,
    /// For each scripted request of the workload, its index in `rendered`.
    indices: Vec<u32>,
}

impl ScriptedRequests {
    /// Renders the scripted requests of a workload; returns an empty collection if there are none.
    ///
    /// # Errors
    /// [`EngineError::Request`] if method, path or headers cannot be sent as HTTP.
    pub fn render(workload: &Workload, settings: &RequestSettings) -> Result<ScriptedRequests, EngineError> {
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
                    let path = encode_target(path);
                    // The request never has `Connection: close`, because a session's connections do not end after a
                    // fixed number of calls.
                    let rendered = settings.request(method, &path, &headers, body.as_bytes(), false).map_err(failed)?;
                    all.rendered.push(rendered);
                    known.insert(request, place);
                    place
                }
            };
            all.indices.push(place);
        }
        Ok(all)
    }

    fn get(&self, request: RequestId) -> Option<&Request> {
        let place = self.indices.get(ScriptedRequest::index_of(request)?)?;
        self.rendered.get(*place as usize)
    }
}

impl<'a, R: Requests<'a>> SessionRequests<'a, R> {
    /// Combines the requests of the workload's classes with its scripted requests.
    pub fn new(of_classes: R, scripted: &'a ScriptedRequests) -> Self {
        SessionRequests { of_classes, scripted, jars: None, redirects: None }
    }

    /// Enables cookies: each session gets its own cookie jar. `tls` says whether to keep `Secure` cookies.
    #[must_use]
    pub fn with_cookies(self, tls: bool) -> Self {
        SessionRequests { jars: Some(Jars { tls, ..Jars::default() }), ..self }
    }

    /// Enables redirects if a policy is given.
    #[must_use]
    pub fn with_redirects(self, policy: Option<&'a RedirectPolicy>) -> Self {
        SessionRequests { redirects: policy.map(Redirects::new), ..self }
    }

    /// Returns the request of a call without cookies.
    fn without_cookies(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request> {
        let redirects = self.redirects.as_ref().filter(|redirects| redirects.follows_redirect(call));
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
        let request = self.without_cookies(call, last);
        match (&mut self.jars, call.session) {
            (Some(jars), Some(session)) => jars.add_cookies(session, request),
            _ => request,
        }
    }

    fn max_request_bytes(&self) -> usize {
        let written = self.scripted.rendered.iter().map(|request| request.bytes().len()).max().unwrap_or(0);
        let longest = self.of_classes.max_request_bytes().max(written);
        if self.jars.is_some() { longest.saturating_add(CookieJar::MAX_BYTES) } else { longest }
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
            && CookieJar::sets_cookies(head)
        {
            self.receive_cookies(call, session, head);
        }
        let redirect = self.of_classes.read_head(call, head);
        let Some(redirects) = &mut self.redirects else { return redirect };
        if redirects.follows_redirect(call) {
            return redirects.redirect_in(call, head, None);
        }
        // Renders the request again, which gives the same bytes as before, because a call's request never changes.
        let first = self.without_cookies(call, false);
        self.redirects.as_mut()?.redirect_in(call, head, Some(&first))
    }

    fn ended(&mut self, call: &CallSpec) {
        if let Some(redirects) = &mut self.redirects {
            redirects.forget(call);
        }
        self.of_classes.ended(call);
    }

    fn session_ended(&mut self, session: SessionId) {
        self.of_classes.session_ended(session);
        if let Some(jars) = &mut self.jars {
            jars.by_session.remove(&session);
            jars.targets.remove(&session);
        }
    }
}

impl<'a, R: Requests<'a>> SessionRequests<'a, R> {
    fn receive_cookies(&mut self, call: &CallSpec, session: SessionId, head: &[u8]) {
        let known_target = self.jars.as_ref().and_then(|jars| jars.targets.get(&session).cloned());
        // Renders the request again, which gives the same target as before, because a call's request never changes.
        let target = known_target.unwrap_or_else(|| self.without_cookies(call, false).target().to_vec());
        if let Some(jars) = &mut self.jars {
            let jar = jars.by_session.entry(session).or_default();
            jar.receive(head, &target, jars.tls, seconds_since_1970);
        }
    }
}

/// The cookies of all sessions of a shard.
#[derive(Debug, Default)]
struct Jars {
    by_session: HashMap<SessionId, CookieJar>,
    /// The target of a session's latest request, if that request was rendered for one call. If several calls of a
    /// session are under way at once, the target may belong to a later call. This matters only if the targets are in
    /// different directories and a cookie has no path.
    targets: HashMap<SessionId, Vec<u8>>,
    /// Whether to keep `Secure` cookies, because the requests use TLS.
    tls: bool,
    /// Buffer in which the value of the `Cookie` field is assembled.
    cookies: Vec<u8>,
}

impl Jars {
    /// Adds the session's cookies to a request.
    fn add_cookies<'a>(&mut self, session: SessionId, request: Cow<'a, Request>) -> Cow<'a, Request> {
        if let Cow::Owned(request) = &request {
            let target = self.targets.entry(session).or_default();
            target.clear();
            target.extend_from_slice(request.target());
        } else {
            self.targets.remove(&session);
        }
        let Some(jar) = self.by_session.get(&session).filter(|jar| !jar.is_empty()) else { return request };
        self.cookies.clear();
        jar.write(request.target(), seconds_since_1970, &mut self.cookies);
        if self.cookies.is_empty() { request } else { Cow::Owned(request.with_cookies(&self.cookies)) }
    }
}

/// Wall-clock time in seconds since 1970, with which the expiry dates of cookies are compared.
fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Close, FixedRequests};
    use brimful_http::Version;

    fn settings() -> RequestSettings {
        let (version, close) = (Version::Http11, Close::Server);
        RequestSettings { authority: "a".to_owned(), version, is_secure: false, headers: Vec::new(), close }
    }

    fn text(request: &Request) -> String {
        String::from_utf8(request.bytes().to_vec()).unwrap()
    }

    /// The value of the `Cookie` field in the request of this call; `None` if it has none.
    fn sent<'a>(requests: &mut impl Requests<'a>, id: RequestId, session: u32) -> Option<String> {
        let request = requests.request(&call(id, session), false);
        let cookies = text(&request).lines().find_map(|line| Some(line.strip_prefix("Cookie: ")?.to_owned()));
        assert_eq!(cookies.is_some(), matches!(request, Cow::Owned(_)), "a request is copied only to add cookies");
        cookies
    }

    fn call(request: RequestId, session: u32) -> CallSpec {
        CallSpec { request, session: Some(SessionId(session)), ..CallSpec::for_class(ClassId(0)) }
    }

    /// A workload of two scripted sessions that share one request.
    fn workload() -> Workload {
        toml::from_str(
            "[[class]]\nname = \"all\"\npath = \"/class\"\nheaders = { X = \"y\" }\n[load.sessions]\nusers = 1\n\
             [[load.sessions.script]]\nbursts = [{ calls = [{ path = \"/in/a\" }, { path = \"/b\", method = \"PUT\", \
             body = \"c\" }] }]\n[[load.sessions.script]]\nbursts = [{ calls = [{ path = \"/in/a\" }] }]\n",
        )
        .unwrap()
    }

    #[test]
    fn scripted_requests_are_rendered_once() {
        let (workload, settings) = (workload(), settings());
        let (fixed, scripted) = (
            FixedRequests::render(&workload, &settings).unwrap(),
            ScriptedRequests::render(&workload, &settings).unwrap(),
        );
        assert_eq!((scripted.rendered.len(), scripted.indices.as_slice()), (2, &[0, 1, 0][..]));
        let mut requests = SessionRequests::new(&fixed, &scripted);
        let ids = [
            RequestId(0),
            ScriptedRequest::request_id(0),
            ScriptedRequest::request_id(1),
            ScriptedRequest::request_id(2),
        ];
        let lines = ids.map(|id| text(&requests.request(&call(id, 1), false)).lines().next().unwrap().to_owned());
        assert_eq!(lines, ["GET /class", "GET /in/a", "PUT /b", "GET /in/a"].map(|line| format!("{line} HTTP/1.1")));
        let put = text(&requests.request(&call(ids[2], 1), false));
        assert!(put.contains("\r\nX: y\r\n") && put.ends_with("\r\n\r\nc"), "{put}");
        assert!(requests.max_request_bytes() >= put.len());
    }

    #[test]
    fn cookies_work_with_http2() {
        let (workload, settings) = (workload(), RequestSettings { version: Version::Http2, ..settings() });
        let (fixed, scripted) = (
            FixedRequests::render(&workload, &settings).unwrap(),
            ScriptedRequests::render(&workload, &settings).unwrap(),
        );
        assert!(!SessionRequests::new(&fixed, &scripted).reads_heads());
        let mut requests = SessionRequests::new(&fixed, &scripted).with_cookies(false);
        assert!(requests.reads_heads());
        let [in_a, b] = [0, 1].map(ScriptedRequest::request_id);
        let bare = requests.request(&call(in_a, 1), false).into_owned();
        requests.read_head(&call(in_a, 1), b"HTTP/2 200\r\nset-cookie: s=1; path=/\r\nset-cookie: d=2\r\n\r\n");
        assert_eq!(*requests.request(&call(in_a, 1), false), bare.with_cookies(b"d=2; s=1"));
        assert!(requests.request(&call(b, 1), false).bytes().ends_with(b"\x03s=1"));
        assert_eq!(*requests.request(&call(in_a, 2), false), bare);
    }

    #[test]
    fn a_session_sends_its_own_cookies_until_it_ends() {
        let (workload, settings) = (workload(), settings());
        let (fixed, scripted) = (
            FixedRequests::render(&workload, &settings).unwrap(),
            ScriptedRequests::render(&workload, &settings).unwrap(),
        );
        let mut requests = SessionRequests::new(&fixed, &scripted).with_cookies(false);
        let [in_a, b] = [0, 1].map(ScriptedRequest::request_id);
        assert_eq!(sent(&mut requests, in_a, 1), None);
        requests.read_head(&call(in_a, 1), b"HTTP/1.1 200 OK\r\nSet-Cookie: s=1; Path=/\r\nSet-Cookie: d=2\r\n\r\n");
        requests.read_head(&call(in_a, 2), b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n");
        assert_eq!(sent(&mut requests, in_a, 1).as_deref(), Some("d=2; s=1"), "the path is the directory by default");
        assert_eq!(sent(&mut requests, b, 1).as_deref(), Some("s=1"));
        assert_eq!(sent(&mut requests, in_a, 2), None);
        requests.read_head(&call(b, 1), b"HTTP/1.1 200 OK\r\nSet-Cookie: s=; Path=/; Max-Age=0\r\n\r\n");
        assert_eq!(sent(&mut requests, b, 1), None);
        requests.session_ended(SessionId(1));
        assert_eq!(sent(&mut requests, in_a, 1), None);
        let jars = requests.jars.as_ref().unwrap();
        assert!(jars.by_session.is_empty() && jars.targets.is_empty());
    }
}
