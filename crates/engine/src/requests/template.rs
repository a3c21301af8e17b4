//! Requests with placeholders. They are compiled to templates before the run, and rendered for each call in one buffer.
//!
//! The random values of a call depend only on the seed, the class and the call's number ([`Draws`]). Therefore the
//! requests of a load do not depend on the number of shards.
//!
//! An HTTP/1 request is rendered directly as bytes. In HTTP/2, the length of a string precedes the string, so the
//! values of all fields are rendered first, and the request is then encoded from them.
//!
//! Invariant: whatever values replace the placeholders, the bytes are exactly one request. Numbers and UUIDs contain no
//! line break, CSV rows are checked when they are read, and Content-Length is computed when the body is known.

use super::RequestSettings;
use brimful_core::template::{TemplateError, TemplatePart, parse};
use brimful_core::url::encode_non_ascii;
use brimful_core::workload::{Rows, Target};
use brimful_core::{ClassId, RequestId};
use brimful_http::Request;
use std::io::Write;
use std::sync::Arc;

/// The compiled template of one request.
#[derive(Clone, Debug)]
pub(super) struct Template {
    head: Head,
    body: Vec<Part>,
    rows: Option<Arc<Rows>>,
    /// With HTTP/1, an empty request with the method and the other properties that all rendered requests share. With
    /// HTTP/2, the request with its placeholders as text, which is sent only if encoding fails.
    prototype: Request,
    /// Upper bound of a rendered request's length in bytes, without a path that the target provides.
    max_bytes: usize,
}

#[derive(Clone, Debug)]
enum Head {
    /// The template of an HTTP/1 request.
    Bytes(Vec<Part>),
    /// The template of an HTTP/2 request.
    Fields(Box<Fields>),
}

/// The parts of an HTTP/2 request that are encoded for each call.
#[derive(Clone, Debug)]
struct Fields {
    settings: Arc<RequestSettings>,
    method: String,
    path: Vec<Part>,
    headers: Vec<(String, Vec<Part>)>,
    /// Length of the body in bytes if it is sent separately, otherwise 0.
    streamed: u64,
}

/// A part of a template: fixed text, or a placeholder.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(Box<[u8]>),
    /// The path of the call's target, which is not part of the template.
    Path,
    /// The length of the body, as a decimal number.
    Length,
    Seq,
    Uuid,
    Rand {
        from: u64,
        to: u64,
    },
    /// The cell in this column of the class's CSV file, in the call's row.
    Csv(usize),
    /// Like `Csv`, but percent-encodes non-ASCII bytes, for use in a path.
    EncodedCsv(usize),
}

/// Length of a UUID as text.
const UUID_BYTES: usize = 36;
/// Maximum number of decimal digits of a 64-bit number.
const MAX_DIGITS: usize = 20;

impl Template {
    /// Compiles an HTTP/1 request that was rendered with its placeholders as text, and whose body has `body` bytes. If
    /// `any_path` is set, the request was rendered for the path `/`, and each call replaces it by the path of its
    /// target.
    pub fn compile(
        rendered: &Request,
        body: usize,
        any_path: bool,
        rows: Option<&Arc<Rows>>,
    ) -> Result<Template, TemplateError> {
        let bytes = rendered.bytes();
        let (head, body) = bytes.split_at(bytes.len().saturating_sub(body));
        let text = |bytes| {
            let wrong = |_| TemplateError { column: 1, expected: "text in UTF-8".to_owned() };
            std::str::from_utf8(bytes).map_err(wrong)
        };
        let body = parts(text(body)?, rows)?;
        let is_fixed = body.iter().all(|part| matches!(part, Part::Text(_)));
        let mut compiled = Vec::new();
        let mut rest = head;
        if any_path {
            let path = rest.iter().position(|byte| *byte == b' ').map_or(0, |space| space + 1);
            compiled.extend(parts(text(&rest[..path])?, rows)?);
            compiled.push(Part::Path);
            rest = &rest[path + 1..];
        }
        if let Some((from, to)) = content_length_range(rest).filter(|_| !is_fixed) {
            compiled.extend(parts(text(&rest[..from])?, rows)?);
            compiled.push(Part::Length);
            rest = &rest[to..];
        }
        compiled.extend(parts(text(rest)?, rows)?);
        encode_in_request_line(&mut compiled);
        let max_bytes = compiled.iter().chain(&body).map(|part| part.max_bytes(rows)).sum();
        let prototype = rendered.with_request_bytes(Vec::new(), 0);
        Ok(Template { head: Head::Bytes(compiled), body, rows: rows.cloned(), prototype, max_bytes })
    }

    /// Compiles the template of an HTTP/2 request. If `any_path` is set, each call inserts the path of its target.
    pub fn compile_http2(
        rendered: Request,
        target: &Target<'_>,
        any_path: bool,
        settings: &Arc<RequestSettings>,
        rows: Option<&Arc<Rows>>,
    ) -> Result<Template, TemplateError> {
        let mut path = if any_path { vec![Part::Path] } else { parts(&target.path, rows)? };
        encode_in_request_line(&mut path);
        let body = parts(target.body, rows)?;
        let is_fixed = body.iter().all(|part| matches!(part, Part::Text(_)));
        // Leaves out Content-Length if the length of the body varies; the encoder of the request then adds it.
        let headers =
            target.headers.iter().filter(|(name, _)| is_fixed || !name.eq_ignore_ascii_case("Content-Length"));
        let headers: Result<Vec<_>, TemplateError> =
            headers.map(|(name, value)| Ok(((*name).to_owned(), parts(value, rows)?))).collect();
        let method = target.method.to_owned();
        let streamed = rendered.streamed_bytes();
        let fields = Fields { settings: Arc::clone(settings), method, path, headers: headers?, streamed };
        let in_head = fields.path.iter().chain(fields.headers.iter().flat_map(|(_, value)| value));
        let filled: usize = in_head.chain(&body).map(|part| part.max_bytes(rows)).sum();
        let max_bytes = rendered.bytes().len() + filled;
        Ok(Template { head: Head::Fields(Box::new(fields)), body, rows: rows.cloned(), prototype: rendered, max_bytes })
    }

    /// Upper bound of the request's length in bytes, with a path of this length.
    pub fn max_request_bytes(&self, path: usize) -> usize {
        self.max_bytes + path
    }

    /// Renders the request of one call. `path` is the path of its target, for templates without a fixed path.
    pub fn render(&self, path: &str, draws: Draws) -> Request {
        match &self.head {
            Head::Bytes(head) => self.render_bytes(head, path, draws),
            Head::Fields(fields) => self.render_fields(fields, path, draws),
        }
    }

    fn render_bytes(&self, head: &[Part], path: &str, draws: Draws) -> Request {
        let filled = |(index, part)| Filled { part, index, template: self, draws, path };
        let first = head.len();
        let body = || (first..).zip(&self.body).map(filled);
        let length: usize = body().map(|part| part.length()).sum();
        let mut bytes = Vec::with_capacity(self.max_bytes + path.len());
        (0..).zip(head).map(filled).for_each(|part| part.write(length, &mut bytes));
        let head_bytes = bytes.len();
        body().for_each(|part| part.write(length, &mut bytes));
        self.prototype.with_request_bytes(bytes, head_bytes)
    }

    fn render_fields(&self, fields: &Fields, path: &str, draws: Draws) -> Request {
        let mut index = 0;
        let mut filled = |parts: &[Part]| {
            let mut bytes = Vec::new();
            for part in parts {
                Filled { part, index, template: self, draws, path }.write(0, &mut bytes);
                index += 1;
            }
            bytes
        };
        // An error is not possible, because all parts are valid UTF-8.
        let text = |bytes| String::from_utf8(bytes).unwrap_or_default();
        let path = text(filled(&fields.path));
        let headers = fields.headers.iter().map(|(name, value)| (name.clone(), text(filled(value))));
        let headers: Vec<(String, String)> = headers.collect();
        let Fields { settings, method, streamed, .. } = fields;
        let request = match streamed {
            0 => settings.request(method, &path, &headers, &filled(&self.body), false),
            bytes => settings.streamed(method, &path, &headers, *bytes, false),
        };
        // An error is not expected, because the prototype, with its placeholders as text, was encoded without one.
        request.unwrap_or_else(|_| self.prototype.clone())
    }
}

impl Part {
    /// Upper bound of the part's length in bytes; 0 for the target's path, whose length is added by the caller.
    fn max_bytes(&self, rows: Option<&Arc<Rows>>) -> usize {
        match self {
            Part::Text(text) => text.len(),
            Part::Path => 0,
            Part::Length | Part::Seq | Part::Rand { .. } => MAX_DIGITS,
            Part::Uuid => UUID_BYTES,
            Part::Csv(column) => rows.map_or(0, |rows| rows.max_cell_bytes(*column)),
            // Percent-encoding replaces one byte by at most three.
            Part::EncodedCsv(column) => rows.map_or(0, |rows| 3 * rows.max_cell_bytes(*column)),
        }
    }
}

fn parts(text: &str, rows: Option<&Arc<Rows>>) -> Result<Vec<Part>, TemplateError> {
    let part = |piece| match piece {
        TemplatePart::Text(text) => Ok(Part::Text(text.as_bytes().into())),
        TemplatePart::Seq => Ok(Part::Seq),
        TemplatePart::Uuid => Ok(Part::Uuid),
        TemplatePart::Rand { from, to } => Ok(Part::Rand { from, to }),
        TemplatePart::Csv(name) => {
            let column = rows.and_then(|rows| rows.column(name));
            let expected = || format!("a column of the class's csv file in place of `{name}`");
            column.map(Part::Csv).ok_or_else(|| TemplateError { column: 1, expected: expected() })
        }
    };
    parse(text)?.into_iter().map(part).collect()
}

/// Marks the cells in the request line for percent-encoding, because they are part of the path.
fn encode_in_request_line(parts: &mut [Part]) {
    for part in parts {
        match part {
            Part::Csv(column) => *part = Part::EncodedCsv(*column),
            Part::Text(text) if text.contains(&b'\n') => return,
            _ => {}
        }
    }
}

/// Start and end offset of the value of the Content-Length field in a request's head.
fn content_length_range(head: &[u8]) -> Option<(usize, usize)> {
    const NAME: &[u8] = b"\r\ncontent-length:";
    let name = head.windows(NAME.len()).position(|bytes| bytes.eq_ignore_ascii_case(NAME))?;
    let from = name + NAME.len();
    let value = head.get(from..)?;
    let spaces = value.iter().take_while(|byte| **byte == b' ').count();
    let digits = value.iter().skip(spaces).take_while(|byte| byte.is_ascii_digit()).count();
    Some((from + spaces, from + spaces + digits))
}

/// A part of a template together with the data of the call to render it for.
struct Filled<'t> {
    part: &'t Part,
    /// Index of the part among all parts of the request, which selects its random values.
    index: usize,
    template: &'t Template,
    draws: Draws,
    path: &'t str,
}

impl Filled<'_> {
    fn cell(&self, column: usize) -> &str {
        let row = |rows: &Arc<Rows>| self.draws.number as usize % rows.len().max(1);
        self.template.rows.as_ref().map_or("", |rows| rows.cell(row(rows), column))
    }

    fn number(&self, from: u64, to: u64) -> u64 {
        // The number is `from` plus the upper 64 bits of the product of 64 random bits and `range`. It is uniform,
        // except for a relative error of `range` / 2⁶⁴.
        let range = u128::from(to - from) + 1;
        from + ((u128::from(self.draws.bits(2 * self.index as u64)) * range) >> 64) as u64
    }

    fn length(&self) -> usize {
        let digits = |number: u64| number.checked_ilog10().unwrap_or(0) as usize + 1;
        match self.part {
            Part::Text(text) => text.len(),
            Part::Path => self.path.len(),
            Part::Length => 0,
            Part::Seq => digits(self.draws.number),
            Part::Uuid => UUID_BYTES,
            Part::Rand { from, to } => digits(self.number(*from, *to)),
            Part::Csv(column) => self.cell(*column).len(),
            Part::EncodedCsv(column) => encode_non_ascii(self.cell(*column)).len(),
        }
    }

    fn write(&self, body: usize, bytes: &mut Vec<u8>) {
        // Writing to a vector never fails.
        let _ = match self.part {
            Part::Text(text) => bytes.write_all(text),
            Part::Path => bytes.write_all(self.path.as_bytes()),
            Part::Length => write!(bytes, "{body}"),
            Part::Seq => write!(bytes, "{}", self.draws.number),
            Part::Uuid => {
                let index = 2 * self.index as u64;
                // The version is 4, and the variant has the bits 10 (RFC 9562 §5.4).
                let high = self.draws.bits(index) & !0xf000 | 0x4000;
                let low = self.draws.bits(index + 1) & (u64::MAX >> 2) | 1 << 63;
                let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
                write!(bytes, "{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
            }
            Part::Rand { from, to } => write!(bytes, "{}", self.number(*from, *to)),
            Part::Csv(column) => bytes.write_all(self.cell(*column).as_bytes()),
            Part::EncodedCsv(column) => bytes.write_all(encode_non_ascii(self.cell(*column)).as_bytes()),
        };
    }
}

/// The random numbers of one call, computed by SplitMix64 (Steele, Lea & Flood 2014), which can compute any of them
/// directly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws {
    /// Number of the call within its class.
    pub number: u64,
    state: u64,
}

impl Draws {
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The random numbers of the call with the number `request` in its class. Equal arguments give equal numbers.
    pub fn for_call(seed: u64, class: ClassId, request: RequestId) -> Draws {
        let class_state = mix(seed.wrapping_add(Draws::GAMMA.wrapping_mul(u64::from(class.0) + 1)));
        let state = mix(class_state.wrapping_add(Draws::GAMMA.wrapping_mul(request.0.wrapping_add(1))));
        Draws { number: request.0, state }
    }

    /// Returns 64 random bits. Each index `n` has its own.
    pub fn bits(self, n: u64) -> u64 {
        mix(self.state.wrapping_add(Draws::GAMMA.wrapping_mul(n + 1)))
    }

    /// A random number, uniform on [0, 1). It is independent of the numbers from [`Draws::bits`].
    pub fn unit(self) -> f64 {
        (self.bits(u64::MAX - 1) >> 11) as f64 * 2f64.powi(-53)
    }
}

fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_http::Version;

    fn rendered(path: &str, body: &str) -> Request {
        let headers = [("X-Id".to_owned(), "{uuid}".to_owned())];
        Request::new("POST", "a", path, &headers, body.as_bytes(), Version::Http11, false).unwrap()
    }

    fn draws_for_call(number: u64) -> Draws {
        Draws::for_call(7, ClassId(1), RequestId(number))
    }

    #[test]
    fn placeholders_are_filled_in_and_the_length_is_computed() {
        let body = r#"{"id":{seq},"n":{rand:1-100000}}"#;
        let template = Template::compile(&rendered("/u/{seq}", body), body.len(), false, None).unwrap();
        let mut lengths = Vec::new();
        for number in [0, 9, 10, 12345] {
            let request = template.render("", draws_for_call(number));
            let text = String::from_utf8(request.into_bytes()).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("POST /u/{number} HTTP/1.1\r\n")), "{text}");
            assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{text}");
            assert!(body.starts_with(&format!("{{\"id\":{number},\"n\":")), "{text}");
            assert!(text.len() <= template.max_request_bytes(0));
            lengths.push(body.len());
        }
        assert!(lengths.iter().min() < lengths.iter().max());
    }

    #[test]
    fn uuids_have_version_4_and_differ() {
        let template = Template::compile(&rendered("/{uuid}/{uuid}", ""), 0, false, None).unwrap();
        let text = |number| String::from_utf8(template.render("", draws_for_call(number)).into_bytes()).unwrap();
        let one = text(1);
        let uuids: Vec<&str> = one.split(['/', ' ']).filter(|word| word.len() == UUID_BYTES).collect();
        assert_eq!(uuids.len(), 2);
        for uuid in &uuids {
            assert!(uuid.as_bytes()[14] == b'4' && b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
            assert!(uuid.split('-').map(str::len).eq([8, 4, 4, 4, 12]), "{uuid}");
        }
        assert_ne!(uuids[0], uuids[1]);
        assert_eq!(one, text(1), "a call's values depend on the call only");
        assert_ne!(one, text(2));
    }

    #[test]
    fn the_path_of_the_target_is_filled_in() {
        let template = Template::compile(&rendered("/", ""), 0, true, None).unwrap();
        let text = String::from_utf8(template.render("/a/b?c", draws_for_call(3)).into_bytes()).unwrap();
        assert!(text.starts_with("POST /a/b?c HTTP/1.1\r\nHost: a\r\n"), "{text}");
        assert!(!text.contains("{uuid}") && text.contains("\r\nContent-Length: 0\r\n"), "{text}");
    }

    #[test]
    fn numbers_cover_their_range() {
        let drawn = |from, to| {
            let request = rendered(&format!("/{{rand:{from}-{to}}}"), "");
            let template = Template::compile(&request, 0, false, None).unwrap();
            (0..1000).map(move |number| {
                let text = String::from_utf8(template.render("", draws_for_call(number)).into_bytes()).unwrap();
                text.split(['/', ' ']).nth(2).unwrap().parse::<u64>().unwrap()
            })
        };
        let mut counts = [0; 5];
        drawn(3, 7).for_each(|number| counts[number as usize - 3] += 1);
        assert!(counts.iter().all(|count| (130..270).contains(count)), "{counts:?}");
        assert!(drawn(9, 9).all(|number| number == 9));
        assert!(drawn(0, u64::MAX).any(|number| number > u64::MAX / 2));
    }

    #[test]
    fn units_are_uniform() {
        let mean = (0..10_000).map(|number| draws_for_call(number).unit()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.015, "{mean}");
    }
}
