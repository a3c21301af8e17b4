//! The requests of a workload: those that are the same for many calls, rendered before the run and borrowed, and those
//! that are put together for one call, each in one buffer.
//!
//! Up to [`MOST_RENDERED`] requests of a class, or [`MOST_BLOCKS`] of HTTP/2, are rendered before the run, for connections
//! that go on; of the first [`MOST_EAGER`] also the form that ends its connection, of the others when it is first sent.
//! Beyond that, and where something is to be filled in, there is one template for all, and the paths stand where they were
//! read: to fetch a request that is in no cache takes longer than to put it together.

use super::template::{Draws, Template};
use super::{Requests, Wire};
use crate::EngineError;
use crate::body_file::BodyFile;
use brimful_core::alias::Alias;
use brimful_core::template::TemplateError;
use brimful_core::workload::{Class, Expect, Order, Workload};
use brimful_core::{CallSpec, ClassId, RequestId};
use brimful_http::{Request, RequestError, Version};
use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, OnceLock};

const MOST_RENDERED: usize = 1 << 10;
/// Header blocks take longer to put together.
const MOST_BLOCKS: usize = 1 << 17;
const MOST_EAGER: usize = 1 << 10;

/// All requests of a workload, for all shards of a run. Which one a call has, its [`RequestId`] says: of a class that is
/// numbered, its number; else its place among all requests that are drawn by themselves, as `Mix` of `brimful-workload`
/// counts them.
#[derive(Clone, Debug)]
pub struct FixedRequests {
    classes: Vec<OfClass>,
    wire: Arc<Wire>,
    seed: u64,
    /// Whether answers have to be like anything at all.
    expects: bool,
}

#[derive(Clone, Debug)]
struct OfClass {
    class: Class,
    /// The file with the body of its requests.
    body: Option<Arc<BodyFile>>,
    pick: Pick,
    made: Made,
}

/// Which target a call has.
#[derive(Clone, Debug)]
enum Pick {
    /// The one drawn for it; the first one's number.
    Drawn { first: u32 },
    /// They come in turn.
    InOrder,
    /// A set of files is walked.
    Walk { ratio: f64 },
    /// Any, drawn by the call's number.
    ByNumber(Alias),
}

/// How it is made.
#[derive(Clone, Debug)]
enum Made {
    /// Rendered before the run, target by target.
    Rendered(Vec<Forms>),
    /// For any path, as sent on a connection that goes on and on one that ends with it.
    Paths(Box<[Template; 2]>),
    /// Target by target, likewise.
    Each(Vec<[Template; 2]>),
}

/// One request, as it is sent on a connection that goes on and on one that ends with it.
#[derive(Clone, Debug)]
struct Forms {
    on_going: Request,
    last: OnceLock<Box<Request>>,
}

impl FixedRequests {
    /// Renders all requests of a workload whose files have been read.
    ///
    /// # Errors
    /// [`EngineError::Request`] when method, path or headers cannot be sent as HTTP, [`EngineError::Template`] when a
    /// place to be filled in is not written as it should be, [`EngineError::BodyFile`] when a file with a body cannot be
    /// read.
    pub fn render(workload: &Workload, wire: &Wire) -> Result<FixedRequests, EngineError> {
        let most = if wire.version == Version::Http2 { MOST_BLOCKS } else { MOST_RENDERED };
        FixedRequests::rendering(workload, wire, most)
    }

    /// The same with other numbers where these are drawn anew for every call.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> FixedRequests {
        self.seed = seed;
        self
    }

    fn rendering(workload: &Workload, wire: &Wire, most: usize) -> Result<FixedRequests, EngineError> {
        let wire = Arc::new(wire.clone());
        let mut first = 0;
        let mut of_class = |class: &Class| {
            let made = OfClass::render(class, first, &wire, most);
            first += if class.is_numbered() { 1 } else { class.len() as u32 };
            made
        };
        let classes = workload.classes.iter().map(&mut of_class).collect::<Result<_, _>>()?;
        let expects = workload.classes.iter().any(|class| class.expect.is_some());
        Ok(FixedRequests { classes, wire, seed: 0, expects })
    }

    fn of_call(&self, call: &CallSpec, last: bool) -> Cow<'_, Request> {
        let of_class = &self.classes[usize::from(call.class.0)];
        match &of_class.made {
            Made::Rendered(all) => {
                let place = of_class.target(call.request, || Draws::of_call(self.seed, call.class, call.request));
                let forms = &all[place];
                Cow::Borrowed(if last { forms.last(&self.wire, of_class, place) } else { &forms.on_going })
            }
            Made::Paths(forms) => {
                let draws = Draws::of_call(self.seed, call.class, call.request);
                let path = of_class.class.path(of_class.target(call.request, || draws));
                Cow::Owned(forms[usize::from(last)].render(&path, draws))
            }
            Made::Each(all) => {
                let draws = Draws::of_call(self.seed, call.class, call.request);
                Cow::Owned(all[of_class.target(call.request, || draws)][usize::from(last)].render("", draws))
            }
        }
    }
}

impl<'a> Requests<'a> for &'a FixedRequests {
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request> {
        let all: &'a FixedRequests = self;
        all.of_call(call, last)
    }

    fn body(&mut self, call: &CallSpec) -> Option<&'a BodyFile> {
        let all: &'a FixedRequests = self;
        all.classes.get(usize::from(call.class.0))?.body.as_deref()
    }

    fn reads_heads(&self) -> bool {
        false
    }

    fn longest(&self) -> usize {
        self.classes.iter().map(OfClass::longest).max().unwrap_or(0)
    }

    fn expected(&self, class: ClassId) -> Option<&Expect> {
        if !self.expects {
            return None;
        }
        self.classes.get(usize::from(class.0))?.class.expect.as_ref()
    }
}

impl OfClass {
    /// With `first` requests before it that are drawn by themselves.
    fn render(class: &Class, first: u32, wire: &Arc<Wire>, most: usize) -> Result<OfClass, EngineError> {
        let walk = class.file_set.as_ref().and_then(|set| set.ratio);
        let pick = match (walk, class.order) {
            _ if !class.is_numbered() => Pick::Drawn { first },
            (Some(ratio), _) => Pick::Walk { ratio },
            (None, Order::Listed | Order::Once) => Pick::InOrder,
            (None, Order::Random) if class.len() <= 1 => Pick::InOrder,
            (None, Order::Random) => {
                let weights: Vec<f64> = (0..class.len()).map(|place| class.weight(place)).collect();
                Alias::new(&weights).map_or(Pick::InOrder, Pick::ByNumber)
            }
        };
        let file = (!class.body_file.is_empty()).then(|| BodyFile::open(Path::new(&class.body_file)));
        let body = file.transpose()?.map(Arc::new);
        let of_class = OfClass { class: class.clone(), body, pick, made: Made::Rendered(Vec::new()) };
        let made = match (class.is_template(), class.differs_by_path_alone()) {
            (false, by_path) if class.len() <= most || !by_path => Made::Rendered(of_class.forms(wire)?),
            // Its own paths have nothing to fill in.
            (_, true) if !class.has_template_paths() => {
                let [on_going, last] = [false, true].map(|last| of_class.compiled(None, wire, last));
                Made::Paths(Box::new([on_going?, last?]))
            }
            _ => {
                let form = |place, last| of_class.compiled(Some(place), wire, last);
                let both = |place| Ok([form(place, false)?, form(place, true)?]);
                Made::Each((0..class.len()).map(both).collect::<Result<_, EngineError>>()?)
            }
        };
        Ok(OfClass { made, ..of_class })
    }

    fn forms(&self, wire: &Wire) -> Result<Vec<Forms>, EngineError> {
        let failed = |source| EngineError::Request { class: self.class.name.clone(), source };
        let forms = |place| {
            let on_going = self.rendered(place, None, wire, false).map_err(failed)?;
            let forms = Forms { on_going, last: OnceLock::new() };
            if place < MOST_EAGER {
                forms.last(wire, self, place);
            }
            Ok(forms)
        };
        (0..self.class.len()).map(forms).collect()
    }

    /// The request of one target, or the same for another path, with its places as they are written.
    fn rendered(&self, place: usize, path: Option<&str>, wire: &Wire, last: bool) -> Result<Request, RequestError> {
        let target = self.class.target(place);
        let headers = owned(&target.headers);
        let (method, path) = (target.method, path.unwrap_or(&target.path));
        // A target of a list may have a body of its own.
        match self.body.as_ref().filter(|_| target.body.is_empty()) {
            None => wire.request(method, path, &headers, target.body.as_bytes(), last),
            Some(file) => wire.streamed(method, path, &headers, file.bytes(), last),
        }
    }

    /// A template of one target, or of all that differ by nothing but their paths.
    fn compiled(&self, place: Option<usize>, wire: &Arc<Wire>, last: bool) -> Result<Template, EngineError> {
        let class = &self.class;
        let failed = |source| EngineError::Request { class: class.name.clone(), source };
        let wrong = |error: TemplateError| EngineError::Template { class: class.name.clone(), why: error.to_string() };
        let (target, any_path) = (class.target(place.unwrap_or(0)), place.is_none());
        let request = self.rendered(place.unwrap_or(0), any_path.then_some("/"), wire, last).map_err(failed)?;
        let template = if wire.version == Version::Http2 {
            Template::of_fields(request, &target, any_path, wire, class.rows())
        } else {
            Template::compile(&request, target.body.len(), any_path, class.rows())
        };
        template.map_err(wrong)
    }

    #[inline]
    fn target(&self, request: RequestId, draws: impl FnOnce() -> Draws) -> usize {
        let number = request.0 as usize;
        match &self.pick {
            Pick::Drawn { first } => number - *first as usize,
            Pick::InOrder => number % self.class.len().max(1),
            Pick::Walk { ratio } => {
                self.class.file_set.as_ref().map_or(0, |set| set.walk(*ratio, number as u64) as usize)
            }
            Pick::ByNumber(shares) => shares.at(draws().unit()),
        }
    }

    fn longest(&self) -> usize {
        let longest = match &self.made {
            Made::Rendered(all) => all.iter().map(Forms::longest).max().unwrap_or(0),
            Made::Paths(forms) => {
                let path = match &self.class.file_set {
                    Some(_) => self.class.path(0).len(),
                    None => (0..self.class.len()).map(|place| self.class.path(place).len()).max().unwrap_or(0),
                };
                forms.iter().map(|template| template.longest(path)).max().unwrap_or(0)
            }
            Made::Each(all) => all.iter().flatten().map(|template| template.longest(0)).max().unwrap_or(0),
        };
        let streamed = self.body.as_ref().map_or(0, |file| file.bytes());
        longest.saturating_add(streamed as usize)
    }
}

impl Forms {
    fn longest(&self) -> usize {
        let on_going = self.on_going.bytes().len();
        // One that has not been rendered yet has a line more at most.
        let last = || on_going + "Connection: close\r\n".len();
        self.last.get().map_or_else(last, |request| request.bytes().len()).max(on_going)
    }

    fn last(&self, wire: &Wire, of_class: &OfClass, place: usize) -> &Request {
        // HTTP/2 says goodbye in other ways.
        if wire.version == Version::Http2 {
            return &self.on_going;
        }
        // What can be sent without asking for the end of the connection can be sent with it.
        let rendered = || of_class.rendered(place, None, wire, true).unwrap_or_else(|_| self.on_going.clone());
        self.last.get_or_init(|| Box::new(rendered()))
    }
}

fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Close;

    fn wire(close: Close) -> Wire {
        let authority = "a".to_owned();
        Wire { authority, version: Version::Http11, is_secure: false, headers: Vec::new(), close }
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

    /// Method and path of a call's request.
    fn line(requests: &FixedRequests, call: CallSpec, last: bool) -> String {
        let text = String::from_utf8(requests.of_call(&call, last).bytes().to_vec()).unwrap();
        assert_eq!(text.contains("\r\nConnection: close\r\n"), last, "{text}");
        text.split(" HTTP/1.1").next().unwrap().to_owned()
    }

    #[test]
    fn requests_that_are_drawn_are_found_by_their_place_among_all() {
        let toml =
            "[[class]]\nname='x'\nurls_file='urls'\n[[class]]\nname='y'\npath='/{seq}'\n[[class]]\nname='z'\npath='/z'";
        let workload = workload(toml);
        for most in [0, 2, 10] {
            let requests = FixedRequests::rendering(&workload, &wire(Close::Server), most).unwrap();
            for last in [false, true] {
                assert_eq!(line(&requests, call(0, 2), last), "GET /c");
                assert_eq!(line(&requests, call(1, 77), last), "GET /77");
                assert_eq!(line(&requests, call(2, 4), last), "GET /z");
            }
            assert!(matches!(requests.of_call(&call(2, 4), false), Cow::Borrowed(_)) || most == 0);
            assert!((&requests).longest() >= requests.of_call(&call(0, 2), true).bytes().len());
        }
    }

    #[test]
    fn lists_in_order_and_walks_follow_the_number() {
        let toml = "[[class]]\nname='x'\nurls_file='urls'\norder='listed'\n[[class]]\nname='y'\npath='/s'\n\
                    file_set={files=11,ratio=0.5}";
        let workload = workload(toml);
        for most in [0, 100] {
            let requests = FixedRequests::rendering(&workload, &wire(Close::Server), most).unwrap();
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
    fn rows_come_one_after_another_and_fill_in_path_header_and_body() {
        let toml = "[[class]]\nname='x'\nmethod='POST'\npath='/{csv.user}'\nheaders={A='{csv.pass}'}\n\
                    body='u={csv.user}&p={csv.pass}'\ncsv='users'";
        let requests = FixedRequests::render(&workload(toml), &wire(Close::Server)).unwrap();
        for (number, user, pass) in [(0, "ann", "x"), (1, "bob", "y"), (2, "ann", "x")] {
            let request = requests.of_call(&call(0, number), false);
            let text = String::from_utf8(request.bytes().to_vec()).unwrap();
            assert!(
                text.starts_with(&format!("POST /{user} ")) && text.contains(&format!("\r\nA: {pass}\r\n")),
                "{text}"
            );
            assert!(text.ends_with(&format!("\r\n\r\nu={user}&p={pass}")), "{text}");
            assert!(text.contains("\r\nContent-Length: 9\r\n"), "{text}");
        }
    }

    /// Paths with characters that are not ASCII are sent as browsers do, from wherever they come.
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
            let wire = Wire { version, ..wire(Close::Server) };
            let requests = FixedRequests::render(&workload, &wire).unwrap();
            let row = "/%C3%B6/k%C3%BCrz";
            for (class, path) in [(0, "/%C3%BC?q=%27"), (1, "/%C3%9F"), (2, row), (3, "/%C3%A4"), (4, "/%C3%A9.html")] {
                // A class that is not numbered has its targets' numbers after those of the classes before it.
                let request = requests.of_call(&call(class, if class == 3 { 0 } else { u32::from(class) }), false);
                assert_eq!(String::from_utf8_lossy(request.target()), path, "{version:?}");
                assert!(request.bytes().len() <= (&requests).longest());
            }
            let request = requests.of_call(&call(2, 0), false);
            assert!(String::from_utf8_lossy(&request.text()).to_lowercase().contains("a: kürz\r\n"));
            let request = wire.request("GET", "/ü/{csv.größe}", &[], b"", false).unwrap();
            assert_eq!(String::from_utf8_lossy(request.target()), "/%C3%BC/{csv.größe}");
        }
    }

    #[test]
    fn templates_of_http2_are_filled_in_field_by_field() {
        let wire = Wire { version: Version::Http2, ..wire(Close::Server) };
        let toml = "[[class]]\nname='x'\nmethod='POST'\npath='/{csv.user}'\nheaders={A='{csv.pass}'}\n\
                    body='u={csv.user}&n={seq}'\ncsv='users'\n[[class]]\nname='y'\nurls_file='urls'\n\
                    headers={B='{uuid}'}\n[[class]]\nname='z'\nurls_file='urls'";
        let requests = FixedRequests::rendering(&workload(toml), &wire, 1).unwrap();
        let made = |method, path: &str, headers: &[(&str, &str)], body: &str| {
            wire.request(method, path, &owned(headers), body.as_bytes(), false).unwrap()
        };
        for (number, user, pass) in [(0, "ann", "x"), (1, "bob", "y"), (12, "ann", "x")] {
            let expected = made("POST", &format!("/{user}"), &[("A", pass)], &format!("u={user}&n={number}"));
            for last in [false, true] {
                let request = requests.of_call(&call(0, number), last).into_owned();
                assert_eq!(request, expected);
                assert!(request.bytes().len() <= (&requests).longest());
            }
        }
        let drawn: Vec<Request> = (0..50).map(|n| requests.of_call(&call(1, n), false).into_owned()).collect();
        for path in ["/a", "/b", "/c"] {
            let length = made("GET", path, &[("B", &"x".repeat(36))], "").bytes().len();
            let of_path = || drawn.iter().filter(|request| request.target() == path.as_bytes());
            assert!(of_path().count() > 0 && of_path().all(|request| request.bytes().len() == length), "{path}");
        }
        assert!(drawn.iter().skip(1).all(|other| *other != drawn[0]), "each has an id of its own");
        assert_eq!(*requests.of_call(&call(2, 4), false), made("GET", "/c", &[], ""), "which are too many");
    }

    #[test]
    fn bodies_come_from_files_however_requests_are_made() {
        let path = std::env::temp_dir().join(format!("brimful-fixed-{}", std::process::id()));
        std::fs::write(&path, b"content").unwrap();
        let class = |name: &str, more: &str| {
            format!("[[class]]\nname='{name}'\nmethod='PUT'\nbody_file='{}'\n{more}\n", path.display())
        };
        let toml = class("x", "path='/x'") + &class("y", "path='/{seq}'");
        for version in [Version::Http11, Version::Http2] {
            let requests = FixedRequests::render(&workload(&toml), &Wire { version, ..wire(Close::Fin) }).unwrap();
            for call in [call(0, 0), call(1, 7)] {
                let request = requests.of_call(&call, false);
                assert_eq!(request.streamed_bytes(), 7);
                let head = String::from_utf8_lossy(&request.text()).to_ascii_lowercase();
                assert!(head.contains("content-length: 7\r\n") && head.ends_with("\r\n\r\n"), "{head}");
                assert_eq!((&requests).body(&call).map(BodyFile::bytes), Some(7));
                assert!((&requests).longest() >= request.bytes().len() + request.streamed_bytes() as usize);
            }
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn templates_in_lists_are_drawn_by_weight_whatever_the_shard() {
        let workload = workload("[[class]]\nname='x'\nurls_file='urls'\nheaders={X-Id='{uuid}'}");
        let requests = FixedRequests::render(&workload, &wire(Close::Fin)).unwrap().seeded(5);
        let mut counts = [0; 3];
        for number in 0..5000 {
            let request = requests.of_call(&call(0, number), true);
            let text = String::from_utf8(request.bytes().to_vec()).unwrap();
            assert!(!text.contains("Connection") && !text.contains('{'), "{text}");
            counts[["GET /a", "GET /b", "GET /c"].iter().position(|line| text.starts_with(line)).unwrap()] += 1;
        }
        assert!(counts[0] > 2800 && counts[0] < 3200 && counts[1] > 850, "{counts:?}");
    }

    #[test]
    fn requests_of_a_file_have_methods_and_bodies_of_their_own() {
        let requests = FixedRequests::render(
            &workload("[[class]]\nname='x'\nrequests_file='r'\norder='listed'"),
            &wire(Close::Server),
        );
        let requests = requests.unwrap();
        let text = |number| String::from_utf8(requests.of_call(&call(0, number), false).bytes().to_vec()).unwrap();
        assert!(
            text(10).starts_with("PUT /1 ") && text(10).ends_with("\r\nContent-Length: 2\r\n\r\n10"),
            "{}",
            text(10)
        );
        assert!(text(1).starts_with("GET /2 "));
    }

    #[test]
    fn what_is_expected_is_the_classes() {
        let toml = "[[class]]\nname='x'\npath='/'\n[[class]]\nname='y'\npath='/'\nexpect={status=200}";
        let requests = FixedRequests::render(&workload(toml), &wire(Close::Server)).unwrap();
        assert!((&requests).expected(ClassId(0)).is_none());
        assert!((&requests).expected(ClassId(1)).is_some_and(|expect| !expect.admits(404, 0)));
    }
}
