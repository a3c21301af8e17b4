//! The requests of a workload. Requests that many calls share are rendered before the run and borrowed. Every other
//! request is rendered for its call, in one buffer.
//!
//! A class with up to [`MAX_RENDERED`] requests, or [`MAX_RENDERED_HTTP2`] with HTTP/2, is rendered before the run.
//! Each request has a second form for the last call on a connection, which asks the server to close the connection
//! (`Connection: close`) if the server is the side that closes. This form is rendered before the run for the first
//! [`MAX_EAGER`] requests of a class. For other requests, it is rendered when it is first sent.
//!
//! Two kinds of classes have templates instead: classes with placeholders, and larger classes whose requests differ
//! only in their path. For the latter, rendering again is faster than reading a rendered request from main memory.

use super::template::{Draws, Template};
use super::{RequestSettings, Requests};
use crate::EngineError;
use crate::body_file::BodyFile;
use brimful_core::alias::AliasTable;
use brimful_core::template::TemplateError;
use brimful_core::workload::{Expect, Order, RequestClass, Workload};
use brimful_core::{CallSpec, ClassId, RequestId};
use brimful_http::{Request, RequestError, Version};
use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Maximum number of requests of a class that are rendered before the run.
const MAX_RENDERED: usize = 1 << 10;
/// Maximum number of requests of a class that are rendered before the run with HTTP/2, where rendering takes longer
/// because of header compression.
const MAX_RENDERED_HTTP2: usize = 1 << 17;
/// Maximum number of requests of a class whose second form, for the last call on a connection, is rendered before the
/// run.
const MAX_EAGER: usize = 1 << 10;

/// All requests of a workload, for all shards of a run. A call's [`RequestId`] identifies its request. In classes that
/// identify calls by number, it is the number of the call within the class. In all other classes, it is the index of
/// the call's target among the targets of all classes, where a class that identifies calls by number counts as one
/// target. `Mix` of `brimful-workload` uses the same identifiers.
#[derive(Clone, Debug)]
pub struct FixedRequests {
    classes: Vec<ClassRequests>,
    settings: Arc<RequestSettings>,
    seed: u64,
    /// Whether any class requires a status, length or content of its responses.
    has_expectations: bool,
}

/// The requests of one class.
#[derive(Clone, Debug)]
struct ClassRequests {
    class: RequestClass,
    /// The file with the body of the class's requests, if any.
    body: Option<Arc<BodyFile>>,
    choice: TargetChoice,
    source: Source,
}

/// How the target (path and parameters) of a call is determined.
#[derive(Clone, Debug)]
enum TargetChoice {
    /// The target's index in this class is the call's [`RequestId`] less `first`, the number of targets of all classes
    /// before. A class that identifies calls by number counts as one target.
    ByIndex { first: u32 },
    /// The targets of the class are used in turn, by the call's number.
    InOrder,
    /// The targets are the files of a file set, in the order of `FileSet::file_for_call` with this ratio.
    Walk { ratio: f64 },
    /// The target is drawn at random with the targets' weights. The draw depends on the call's number.
    Random(AliasTable),
}

/// How the requests of a class are produced. The first template of a pair is for a connection that stays open, and the
/// second for the last call on a connection.
#[derive(Clone, Debug)]
enum Source {
    /// The requests of each target, rendered before the run.
    Rendered(Vec<Forms>),
    /// One pair of templates for all targets, because they differ only in their path.
    AnyPath(Box<[Template; 2]>),
    /// A pair of templates for each target.
    PerTarget(Vec<[Template; 2]>),
}

/// The two forms of a request: one for a connection that stays open, and one for the last call on a connection.
#[derive(Clone, Debug)]
struct Forms {
    kept_open: Request,
    last: OnceLock<Box<Request>>,
}

impl FixedRequests {
    /// Renders all requests of a workload. The files that the workload refers to must have been read before.
    ///
    /// # Errors
    /// [`EngineError::Request`] if method, path or headers cannot be sent as HTTP; [`EngineError::Template`] if a
    /// placeholder is invalid; [`EngineError::BodyFile`] if a file with a body cannot be read.
    pub fn render(workload: &Workload, settings: &RequestSettings) -> Result<FixedRequests, EngineError> {
        let is_http2 = settings.version == Version::Http2;
        let max_rendered = if is_http2 { MAX_RENDERED_HTTP2 } else { MAX_RENDERED };
        FixedRequests::render_up_to(workload, settings, max_rendered)
    }

    /// Sets the seed for the random values of placeholders; it is 0 by default.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> FixedRequests {
        self.seed = seed;
        self
    }

    fn render_up_to(
        workload: &Workload,
        settings: &RequestSettings,
        max_rendered: usize,
    ) -> Result<FixedRequests, EngineError> {
        let settings = Arc::new(settings.clone());
        let mut first = 0;
        let mut render_class = |class: &RequestClass| {
            let requests = ClassRequests::render(class, first, &settings, max_rendered);
            first += if class.identifies_calls_by_number() { 1 } else { class.len() as u32 };
            requests
        };
        let classes = workload.classes.iter().map(&mut render_class).collect::<Result<_, _>>()?;
        let has_expectations = workload.classes.iter().any(|class| class.expect.is_some());
        Ok(FixedRequests { classes, settings, seed: 0, has_expectations })
    }

    fn render_call(&self, call: &CallSpec, last: bool) -> Cow<'_, Request> {
        let requests = &self.classes[usize::from(call.class.0)];
        match &requests.source {
            Source::Rendered(all) => {
                let index = requests.target(call.request, || Draws::for_call(self.seed, call.class, call.request));
                let forms = &all[index];
                Cow::Borrowed(if last { forms.last(&self.settings, requests, index) } else { &forms.kept_open })
            }
            Source::AnyPath(forms) => {
                let draws = Draws::for_call(self.seed, call.class, call.request);
                let path = requests.class.path(requests.target(call.request, || draws));
                Cow::Owned(forms[usize::from(last)].render(&path, draws))
            }
            Source::PerTarget(all) => {
                let draws = Draws::for_call(self.seed, call.class, call.request);
                Cow::Owned(all[requests.target(call.request, || draws)][usize::from(last)].render("", draws))
            }
        }
    }
}

impl<'a> Requests<'a> for &'a FixedRequests {
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request> {
        let all: &'a FixedRequests = self;
        all.render_call(call, last)
    }

    fn body(&mut self, call: &CallSpec) -> Option<&'a BodyFile> {
        let all: &'a FixedRequests = self;
        all.classes.get(usize::from(call.class.0))?.body.as_deref()
    }

    fn reads_heads(&self) -> bool {
        false
    }

    fn max_request_bytes(&self) -> usize {
        self.classes.iter().map(ClassRequests::max_request_bytes).max().unwrap_or(0)
    }

    fn expected(&self, class: ClassId) -> Option<&Expect> {
        if !self.has_expectations {
            return None;
        }
        self.classes.get(usize::from(class.0))?.class.expect.as_ref()
    }
}

impl ClassRequests {
    /// Renders the requests of a class, or compiles their templates. `first` is the index of the class's first target.
    fn render(
        class: &RequestClass,
        first: u32,
        settings: &Arc<RequestSettings>,
        max_rendered: usize,
    ) -> Result<ClassRequests, EngineError> {
        let walk = class.file_set.as_ref().and_then(|set| set.ratio);
        let choice = match (walk, class.order) {
            _ if !class.identifies_calls_by_number() => TargetChoice::ByIndex { first },
            (Some(ratio), _) => TargetChoice::Walk { ratio },
            (None, Order::Listed | Order::Once) => TargetChoice::InOrder,
            (None, Order::Random) if class.len() <= 1 => TargetChoice::InOrder,
            (None, Order::Random) => {
                let weights: Vec<f64> = (0..class.len()).map(|index| class.weight(index)).collect();
                AliasTable::new(&weights).map_or(TargetChoice::InOrder, TargetChoice::Random)
            }
        };
        let file = (!class.body_file.is_empty()).then(|| BodyFile::open(Path::new(&class.body_file)));
        let body = file.transpose()?.map(Arc::new);
        let requests = ClassRequests { class: class.clone(), body, choice, source: Source::Rendered(Vec::new()) };
        let source = match (class.is_template(), class.differs_only_in_path()) {
            (false, by_path) if class.len() <= max_rendered || !by_path => Source::Rendered(requests.forms(settings)?),
            // All targets share one pair of templates, because their paths have no placeholders.
            (_, true) if !class.has_template_paths() => {
                let compile = |last| requests.compile(None, settings, last);
                Source::AnyPath(Box::new([compile(false)?, compile(true)?]))
            }
            _ => {
                let compile = |index, last| requests.compile(Some(index), settings, last);
                let compile_both = |index| Ok([compile(index, false)?, compile(index, true)?]);
                Source::PerTarget((0..class.len()).map(compile_both).collect::<Result<_, EngineError>>()?)
            }
        };
        Ok(ClassRequests { source, ..requests })
    }

    fn forms(&self, settings: &RequestSettings) -> Result<Vec<Forms>, EngineError> {
        let failed = |source| EngineError::Request { class: self.class.name.clone(), source };
        let render_forms = |index| {
            let kept_open = self.render_target(index, None, settings, false).map_err(failed)?;
            let forms = Forms { kept_open, last: OnceLock::new() };
            if index < MAX_EAGER {
                forms.last(settings, self, index);
            }
            Ok(forms)
        };
        (0..self.class.len()).map(render_forms).collect()
    }

    /// Renders the request of the target with this index, without replacing placeholders. If `path` is given, it is
    /// used instead of the target's path.
    fn render_target(
        &self,
        index: usize,
        path: Option<&str>,
        settings: &RequestSettings,
        last: bool,
    ) -> Result<Request, RequestError> {
        let target = self.class.target(index);
        let headers = owned(&target.headers);
        let method = target.method;
        let path = path.unwrap_or(&target.path);
        // A target of a request list may have its own body, which is used instead of the class's file.
        match self.body.as_ref().filter(|_| target.body.is_empty()) {
            None => settings.request(method, path, &headers, target.body.as_bytes(), last),
            Some(file) => settings.streamed(method, path, &headers, file.bytes(), last),
        }
    }

    /// Compiles a template for the target with index `index`. If `index` is `None`, compiles one template for all
    /// targets, which differ only in path.
    fn compile(
        &self,
        index: Option<usize>,
        settings: &Arc<RequestSettings>,
        last: bool,
    ) -> Result<Template, EngineError> {
        let class = &self.class;
        let failed = |source| EngineError::Request { class: class.name.clone(), source };
        let invalid =
            |error: TemplateError| EngineError::Template { class: class.name.clone(), why: error.to_string() };
        let any_path = index.is_none();
        let index = index.unwrap_or(0);
        let target = class.target(index);
        let request = self.render_target(index, any_path.then_some("/"), settings, last).map_err(failed)?;
        let template = if settings.version == Version::Http2 {
            Template::compile_http2(request, &target, any_path, settings, class.rows())
        } else {
            Template::compile(&request, target.body.len(), any_path, class.rows())
        };
        template.map_err(invalid)
    }

    #[inline]
    fn target(&self, request: RequestId, draws: impl FnOnce() -> Draws) -> usize {
        let number = request.0 as usize;
        match &self.choice {
            TargetChoice::ByIndex { first } => number - *first as usize,
            TargetChoice::InOrder => number % self.class.len().max(1),
            TargetChoice::Walk { ratio } => {
                self.class.file_set.as_ref().map_or(0, |set| set.file_for_call(*ratio, number as u64) as usize)
            }
            TargetChoice::Random(shares) => shares.index_at(draws().unit()),
        }
    }

    fn max_request_bytes(&self) -> usize {
        let longest = match &self.source {
            Source::Rendered(all) => all.iter().map(Forms::max_request_bytes).max().unwrap_or(0),
            Source::AnyPath(forms) => {
                let path = match &self.class.file_set {
                    Some(_) => self.class.path(0).len(),
                    None => (0..self.class.len()).map(|index| self.class.path(index).len()).max().unwrap_or(0),
                };
                forms.iter().map(|template| template.max_request_bytes(path)).max().unwrap_or(0)
            }
            Source::PerTarget(all) => {
                all.iter().flatten().map(|template| template.max_request_bytes(0)).max().unwrap_or(0)
            }
        };
        let streamed = self.body.as_ref().map_or(0, |file| file.bytes());
        longest.saturating_add(streamed as usize)
    }
}

impl Forms {
    fn max_request_bytes(&self) -> usize {
        let kept_open = self.kept_open.bytes().len();
        // The length of the form for the last call is estimated, because that form may not have been rendered yet: it
        // has at most this additional line.
        let last = || kept_open + "Connection: close\r\n".len();
        self.last.get().map_or_else(last, |request| request.bytes().len()).max(kept_open)
    }

    fn last(&self, settings: &RequestSettings, requests: &ClassRequests, index: usize) -> &Request {
        // HTTP/2 has no header field that asks to close a connection, so one form is enough.
        if settings.version == Version::Http2 {
            return &self.kept_open;
        }
        // An error is not possible, because the other form was rendered without one.
        let render = || requests.render_target(index, None, settings, true).unwrap_or_else(|_| self.kept_open.clone());
        self.last.get_or_init(|| Box::new(render()))
    }
}

fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Close;

    fn settings(close: Close) -> RequestSettings {
        let authority = "a".to_owned();
        RequestSettings { authority, version: Version::Http11, is_secure: false, headers: Vec::new(), close }
    }

    fn file(name: &str) -> std::io::Result<Vec<u8>> {
        Ok(match name {
            "users" => b"user,pass\nann,x\nbob,y\n".to_vec(),
            "urls" => b"/a 3\n/b\n/c\n".to_vec(),
            _ => b"{\"path\":\"/1\",\"method\":\"PUT\",\"body\":\"{seq}\"}\n{\"path\":\"/2\"}\n".to_vec(),
        })
    }

    fn workload(toml: &str) -> Workload {
        let mut workload: Workload = toml::from_str(toml).unwrap();
        workload.validate().unwrap();
        workload.read_files(file).unwrap();
        workload
    }

    fn call(class: u16, request: u32) -> CallSpec {
        CallSpec { class: ClassId(class), request: RequestId(request.into()), session: None }
    }

    /// The first line of a call's request, without the HTTP version.
    fn line(requests: &FixedRequests, call: CallSpec, last: bool) -> String {
        let text = String::from_utf8(requests.render_call(&call, last).bytes().to_vec()).unwrap();
        assert_eq!(text.contains("\r\nConnection: close\r\n"), last, "{text}");
        text.split(" HTTP/1.1").next().unwrap().to_owned()
    }

    #[test]
    fn requests_are_found_by_their_index_among_all() {
        let toml =
            "[[class]]\nname='x'\nurls_file='urls'\n[[class]]\nname='y'\npath='/{seq}'\n[[class]]\nname='z'\npath='/z'";
        let workload = workload(toml);
        for max_rendered in [0, 2, 10] {
            let requests = FixedRequests::render_up_to(&workload, &settings(Close::Server), max_rendered).unwrap();
            for last in [false, true] {
                assert_eq!(line(&requests, call(0, 2), last), "GET /c");
                assert_eq!(line(&requests, call(1, 77), last), "GET /77");
                assert_eq!(line(&requests, call(2, 4), last), "GET /z");
            }
            assert!(matches!(requests.render_call(&call(2, 4), false), Cow::Borrowed(_)) || max_rendered == 0);
            assert!((&requests).max_request_bytes() >= requests.render_call(&call(0, 2), true).bytes().len());
        }
    }

    #[test]
    fn lists_in_order_and_walks_follow_the_number() {
        let toml = "[[class]]\nname='x'\nurls_file='urls'\norder='listed'\n[[class]]\nname='y'\npath='/s'\n\
                    file_set={files=11,ratio=0.5}";
        let workload = workload(toml);
        for max_rendered in [0, 100] {
            let requests = FixedRequests::render_up_to(&workload, &settings(Close::Server), max_rendered).unwrap();
            let lines: Vec<String> = (0..4).map(|n| line(&requests, call(0, n), n > 2)).collect();
            assert_eq!(lines, ["GET /a", "GET /b", "GET /c", "GET /a"]);
            let lines: Vec<String> = [0, 1, 2, 19, 21].map(|n| line(&requests, call(1, n), false)).to_vec();
            assert_eq!(
                lines,
                ["/s/0/0", "/s/0/1", "/s/0/1", "/s/1/0", "/s/0/0"].map(|path| format!("GET {path}.html"))
            );
        }
    }

    #[test]
    fn rows_fill_in_path_header_and_body_in_turn() {
        let toml = "[[class]]\nname='x'\nmethod='POST'\npath='/{csv.user}'\nheaders={A='{csv.pass}'}\n\
                    body='u={csv.user}&p={csv.pass}'\ncsv='users'";
        let requests = FixedRequests::render(&workload(toml), &settings(Close::Server)).unwrap();
        for (number, user, pass) in [(0, "ann", "x"), (1, "bob", "y"), (2, "ann", "x")] {
            let request = requests.render_call(&call(0, number), false);
            let text = String::from_utf8(request.bytes().to_vec()).unwrap();
            assert!(
                text.starts_with(&format!("POST /{user} ")) && text.contains(&format!("\r\nA: {pass}\r\n")),
                "{text}"
            );
            assert!(text.ends_with(&format!("\r\n\r\nu={user}&p={pass}")), "{text}");
            assert!(text.contains("\r\nContent-Length: 9\r\n"), "{text}");
        }
    }

    /// Expects that non-ASCII paths are percent-encoded as UTF-8, as browsers do, however the request is produced.
    #[test]
    fn paths_that_are_not_ascii_are_encoded_in_every_kind_of_request() {
        let toml = "[[class]]\nname='one'\npath=\"/ü?q='\"\n[[class]]\nname='some'\nurls=[{path='/ß#a'}]\n\
                    [[class]]\nname='row'\npath='/ö/{csv.größe}'\nheaders={A='{csv.größe}'}\ncsv='sizes'\n\
                    [[class]]\nname='list'\nurls_file='words'\nheaders={B='{seq}'}\n\
                    [[class]]\nname='files'\npath='/é'\nfile_set={files=1}";
        let mut workload: Workload = toml::from_str(toml).unwrap();
        let content = |name: &str| if name == "sizes" { "größe\nkürz\n" } else { "/ä\n" };
        workload.read_files(|name| Ok(content(name).into())).unwrap();
        for version in [Version::Http11, Version::Http2] {
            let settings = RequestSettings { version, ..settings(Close::Server) };
            let requests = FixedRequests::render(&workload, &settings).unwrap();
            let row = "/%C3%B6/k%C3%BCrz";
            for (class, path) in [(0, "/%C3%BC?q=%27"), (1, "/%C3%9F"), (2, row), (3, "/%C3%A4"), (4, "/%C3%A9.html")] {
                // If a class identifies calls by index, its indices continue those of the classes before. Class 3
                // identifies calls by number, and counts as one target.
                let request = requests.render_call(&call(class, if class == 3 { 0 } else { u32::from(class) }), false);
                assert_eq!(String::from_utf8_lossy(request.target()), path, "{version:?}");
                assert!(request.bytes().len() <= (&requests).max_request_bytes());
            }
            let request = requests.render_call(&call(2, 0), false);
            assert!(String::from_utf8_lossy(&request.text()).to_lowercase().contains("a: kürz\r\n"));
            let request = settings.request("GET", "/ü/{csv.größe}", &[], b"", false).unwrap();
            assert_eq!(String::from_utf8_lossy(request.target()), "/%C3%BC/{csv.größe}");
        }
    }

    #[test]
    fn http2_templates_are_filled_in_field_by_field() {
        let settings = RequestSettings { version: Version::Http2, ..settings(Close::Server) };
        let toml = "[[class]]\nname='x'\nmethod='POST'\npath='/{csv.user}'\nheaders={A='{csv.pass}'}\n\
                    body='u={csv.user}&n={seq}'\ncsv='users'\n[[class]]\nname='y'\nurls_file='urls'\n\
                    headers={B='{uuid}'}\n[[class]]\nname='z'\nurls_file='urls'";
        let requests = FixedRequests::render_up_to(&workload(toml), &settings, 1).unwrap();
        let render = |method, path: &str, headers: &[(&str, &str)], body: &str| {
            settings.request(method, path, &owned(headers), body.as_bytes(), false).unwrap()
        };
        for (number, user, pass) in [(0, "ann", "x"), (1, "bob", "y"), (12, "ann", "x")] {
            let expected = render("POST", &format!("/{user}"), &[("A", pass)], &format!("u={user}&n={number}"));
            for last in [false, true] {
                let request = requests.render_call(&call(0, number), last).into_owned();
                assert_eq!(request, expected);
                assert!(request.bytes().len() <= (&requests).max_request_bytes());
            }
        }
        let drawn: Vec<Request> = (0..50).map(|n| requests.render_call(&call(1, n), false).into_owned()).collect();
        for path in ["/a", "/b", "/c"] {
            let length = render("GET", path, &[("B", &"x".repeat(36))], "").bytes().len();
            let of_path = || drawn.iter().filter(|request| request.target() == path.as_bytes());
            assert!(of_path().count() > 0 && of_path().all(|request| request.bytes().len() == length), "{path}");
        }
        assert!(drawn.iter().skip(1).all(|other| *other != drawn[0]), "each request has its own id");
        assert_eq!(
            *requests.render_call(&call(2, 4), false),
            render("GET", "/c", &[], ""),
            "the class has too many requests to render before the run"
        );
    }

    #[test]
    fn bodies_come_from_files_in_every_kind_of_request() {
        let path = std::env::temp_dir().join(format!("brimful-fixed-{}", std::process::id()));
        std::fs::write(&path, b"content").unwrap();
        let class = |name: &str, more: &str| {
            format!("[[class]]\nname='{name}'\nmethod='PUT'\nbody_file='{}'\n{more}\n", path.display())
        };
        let toml = class("x", "path='/x'") + &class("y", "path='/{seq}'");
        for version in [Version::Http11, Version::Http2] {
            let requests =
                FixedRequests::render(&workload(&toml), &RequestSettings { version, ..settings(Close::Fin) }).unwrap();
            for call in [call(0, 0), call(1, 7)] {
                let request = requests.render_call(&call, false);
                assert_eq!(request.streamed_bytes(), 7);
                let head = String::from_utf8_lossy(&request.text()).to_ascii_lowercase();
                assert!(head.contains("content-length: 7\r\n") && head.ends_with("\r\n\r\n"), "{head}");
                assert_eq!((&requests).body(&call).map(BodyFile::bytes), Some(7));
                assert!((&requests).max_request_bytes() >= request.bytes().len() + request.streamed_bytes() as usize);
            }
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn listed_templates_are_drawn_by_weight() {
        let workload = workload("[[class]]\nname='x'\nurls_file='urls'\nheaders={X-Id='{uuid}'}");
        let requests = FixedRequests::render(&workload, &settings(Close::Fin)).unwrap().with_seed(5);
        let mut counts = [0; 3];
        for number in 0..5000 {
            let request = requests.render_call(&call(0, number), true);
            let text = String::from_utf8(request.bytes().to_vec()).unwrap();
            assert!(!text.contains("Connection") && !text.contains('{'), "{text}");
            counts[["GET /a", "GET /b", "GET /c"].iter().position(|line| text.starts_with(line)).unwrap()] += 1;
        }
        assert!(counts[0] > 2800 && counts[0] < 3200 && counts[1] > 850, "{counts:?}");
    }

    #[test]
    fn requests_of_a_file_have_their_own_methods_and_bodies() {
        let requests = FixedRequests::render(
            &workload("[[class]]\nname='x'\nrequests_file='r'\norder='listed'"),
            &settings(Close::Server),
        );
        let requests = requests.unwrap();
        let text = |number| String::from_utf8(requests.render_call(&call(0, number), false).bytes().to_vec()).unwrap();
        assert!(
            text(10).starts_with("PUT /1 ") && text(10).ends_with("\r\nContent-Length: 2\r\n\r\n10"),
            "{}",
            text(10)
        );
        assert!(text(1).starts_with("GET /2 "));
    }

    #[test]
    fn each_class_has_its_own_expectations() {
        let toml = "[[class]]\nname='x'\npath='/'\n[[class]]\nname='y'\npath='/'\nexpect={status=200}";
        let requests = FixedRequests::render(&workload(toml), &settings(Close::Server)).unwrap();
        assert!((&requests).expected(ClassId(0)).is_none());
        assert!((&requests).expected(ClassId(1)).is_some_and(|expect| !expect.accepts(404, 0)));
    }
}
