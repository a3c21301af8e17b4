//! A second, slow implementation of RFC 9112 that reads whole inputs. Tests compare the codec with it. It shares no
//! code with the codec or with `httparse`. Its comments mention input that both implementations accept although the
//! grammar forbids it.

use brimful_http::{MAX_CHUNK_LINE_BYTES, MAX_EMPTY_LINES, MAX_FIELDS, MAX_HEAD_BYTES, Response};

/// The result of reading all bytes that were received on a connection before it was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A complete response, the number of bytes up to the end of the response, and the number of empty lines before it.
    Complete(Response, usize, u32),
    /// A response of which only the beginning was received.
    Truncated,
    /// Bytes that are not the beginning of a response.
    Malformed,
}

/// Reads one response. `head_request` is true if the response answers a HEAD request.
pub fn read(bytes: &[u8], head_request: bool) -> Reading {
    let read = || {
        let mut rest = bytes;
        let (mut head_bytes, mut empty_lines) = (0, 0);
        loop {
            rest = skip_empty_lines(rest, &mut empty_lines)?;
            let head = Head::read(rest)?;
            head_bytes += head.length;
            rest = &rest[head.length..];
            if (100..200).contains(&head.status) && head.status != 101 {
                continue;
            }
            let (body_bytes, length, by_close) = head.body(rest, head_request)?;
            let keep_alive = head.keep_alive() && !by_close && head.status != 101;
            let head_bytes = head_bytes as u64;
            let response = Response { status: head.status, keep_alive, head_bytes, body_bytes };
            return Ok(Reading::Complete(response, bytes.len() - rest.len() + length, empty_lines));
        }
    };
    read().unwrap_or_else(|otherwise| otherwise)
}

/// A part of a response, or the reason why this part cannot be read: [`Reading::Truncated`] or [`Reading::Malformed`].
type Part<T> = Result<T, Reading>;

fn malformed<T>() -> Part<T> {
    Err(Reading::Malformed)
}

fn truncated<T>() -> Part<T> {
    Err(Reading::Truncated)
}

/// Skips empty lines before a response. The grammar of RFC 9112 §4 does not allow them. RFC 9112 §2.2 tells servers to
/// skip them before a request, and clients skip them before a response.
fn skip_empty_lines<'a>(mut bytes: &'a [u8], lines: &mut u32) -> Part<&'a [u8]> {
    loop {
        bytes = match bytes {
            [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => rest,
            [b'\r'] => return truncated(),
            [b'\r', ..] => return malformed(),
            _ => return Ok(bytes),
        };
        *lines += 1;
        if *lines > MAX_EMPTY_LINES {
            return malformed();
        }
    }
}

/// Returns the first line of `bytes` without its line break, and its length with the line break: LF or CRLF (RFC 9112
/// §2.2).
fn line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1))
}

/// The head of a message (§2.1): status and fields.
struct Head {
    length: usize,
    minor_version: u8,
    status: u16,
    /// The fields, with names in lower case, and values unfolded and trimmed.
    fields: Vec<(String, Vec<u8>)>,
}

impl Head {
    fn read(bytes: &[u8]) -> Part<Head> {
        let version = b"HTTP/1.";
        if bytes.iter().zip(version).any(|(byte, expected)| byte != expected) {
            return malformed();
        }
        let mut lines: Vec<&[u8]> = Vec::new();
        let mut length = 0;
        loop {
            let Some((text, taken)) = line(&bytes[length..]) else {
                return if bytes.len() >= MAX_HEAD_BYTES { malformed() } else { truncated() };
            };
            length += taken;
            if length > MAX_HEAD_BYTES {
                return malformed();
            }
            if text.is_empty() {
                break;
            }
            lines.push(text);
        }
        let (minor_version, status) = status_line(lines.remove(0))?;
        let fields = unfold(&lines)?.iter().map(|text| field(text)).collect::<Part<Vec<_>>>()?;
        if fields.len() > MAX_FIELDS {
            return malformed();
        }
        Ok(Head { length, minor_version, status, fields })
    }

    /// Returns the list members of all fields with this name (in lower case), as one list (RFC 9110 §5.3).
    fn list(&self, name: &str) -> Vec<String> {
        let values = self.fields.iter().filter(|(field, _)| field == name);
        let members = values.flat_map(|(_, value)| value.split(|byte| *byte == b','));
        members.map(|member| String::from_utf8_lossy(member).trim_matches([' ', '\t']).to_ascii_lowercase()).collect()
    }

    /// Reads a body (§6.3). Returns the length of the content, the length of the body with its framing, and whether the
    /// end of the connection delimits the body.
    fn body(&self, rest: &[u8], head_request: bool) -> Part<(u64, usize, bool)> {
        if head_request || matches!(self.status, 100..=199 | 204 | 304) {
            return Ok((0, 0, false));
        }
        let all = Ok((rest.len() as u64, rest.len(), true));
        let codings: Vec<String> =
            self.list("transfer-encoding").into_iter().filter(|coding| !coding.is_empty()).collect();
        match codings.last() {
            Some(last) if last == "chunked" => return chunked(rest).map(|(content, length)| (content, length, false)),
            Some(_) => return all,
            None => {}
        }
        let lengths = self.list("content-length");
        let Some(first) = lengths.first() else { return all };
        let number = |text: &String| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<u64>().or(malformed()),
            false => malformed(),
        };
        let length = number(first)?;
        for other in &lengths {
            if number(other)? != length {
                return malformed();
            }
        }
        if (rest.len() as u64) < length { truncated() } else { Ok((length, length as usize, false)) }
    }

    /// Whether the connection persists after this response (§9.3). The rule for transfer codings in HTTP/1.0 is in
    /// §6.1.
    fn keep_alive(&self) -> bool {
        let options = self.list("connection");
        let says = |option: &str| options.iter().any(|one| one == option);
        let coded = self.list("transfer-encoding").iter().any(|coding| !coding.is_empty());
        !says("close") && (self.minor_version == 1 || says("keep-alive") && !coded)
    }
}

/// Reads a status line (§4). Unlike the grammar, this function accepts a line that ends after the status code.
fn status_line(text: &[u8]) -> Part<(u8, u16)> {
    let [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ (b'0' | b'1'), b' ', code @ ..] = text else {
        return malformed();
    };
    let Some((code, reason)) = code.split_at_checked(3) else { return malformed() };
    let status = code.iter().try_fold(0, |status, digit| {
        digit.is_ascii_digit().then(|| status * 10 + u16::from(digit - b'0')).ok_or(Reading::Malformed)
    })?;
    let has_reason = reason.is_empty() || reason[0] == b' ' && reason.iter().all(|byte| is_text(*byte));
    if has_reason && status >= 100 { Ok((minor - b'0', status)) } else { malformed() }
}

/// Joins folded lines (§5.2): a line that begins with white space continues the line before it.
fn unfold(lines: &[&[u8]]) -> Part<Vec<Vec<u8>>> {
    let mut fields: Vec<Vec<u8>> = Vec::new();
    for text in lines {
        match (text[0], fields.last_mut()) {
            (b' ' | b'\t', None) => return malformed(),
            (b' ' | b'\t', Some(field)) => {
                field.push(b' ');
                field.extend_from_slice(text);
            }
            _ => fields.push(text.to_vec()),
        }
    }
    Ok(fields)
}

/// Splits a field into name and value (§5). No white space may precede the colon.
fn field(text: &[u8]) -> Part<(String, Vec<u8>)> {
    let Some(colon) = text.iter().position(|byte| *byte == b':') else { return malformed() };
    let (name, value) = (&text[..colon], &text[colon + 1..]);
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if name.is_empty() || !name.iter().all(is_token) || !value.iter().all(|byte| is_text(*byte)) {
        return malformed();
    }
    Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), value.to_vec()))
}

/// Whether a byte may occur in a field value: HTAB, SP, VCHAR and obs-text (RFC 9110 §5.5).
fn is_text(byte: u8) -> bool {
    byte == b'\t' || byte >= b' ' && byte != 0x7f
}

/// Reads a chunked body (§7.1). Returns the length of the content, and the length of the whole body.
fn chunked(bytes: &[u8]) -> Part<(u64, usize)> {
    let (mut content, mut at) = (0, 0);
    loop {
        let (size, length) = chunk_line(&bytes[at..])?;
        at += length;
        if size == 0 {
            return Ok((content, at + trailers(&bytes[at..])?));
        }
        if ((bytes.len() - at) as u64) < size {
            return truncated();
        }
        content += size;
        at += size as usize;
        at += crlf(&bytes[at..])?;
    }
}

/// Reads a chunk line. Returns the size of the chunk and the length of the line. Unlike the grammar, this function
/// accepts white space after the size.
fn chunk_line(bytes: &[u8]) -> Part<(u64, usize)> {
    let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
    let text = &bytes[..end];
    if bytes.len().min(end + 2) > MAX_CHUNK_LINE_BYTES {
        return malformed();
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let significant = text[..digits].iter().skip_while(|digit| **digit == b'0').count();
    let after = text[digits..].iter().find(|byte| !matches!(byte, b' ' | b'\t'));
    if significant > 16 || after.is_some_and(|byte| *byte != b';') {
        return malformed();
    }
    if digits == 0 {
        return if bytes.is_empty() { truncated() } else { malformed() };
    }
    let number = String::from_utf8_lossy(&text[..digits]);
    let size = u64::from_str_radix(&number, 16).or(malformed())?;
    Ok((size, end + crlf(&bytes[end..])?))
}

/// Returns the length of the trailer section, whose fields are ignored.
fn trailers(bytes: &[u8]) -> Part<usize> {
    let (mut at, mut fields) = (0, 0);
    loop {
        let rest = &bytes[at..];
        let ends = match rest.first() {
            Some(b'\r') => Some(crlf(rest)?),
            Some(b'\n') => Some(1),
            _ => None,
        };
        let length = ends.or_else(|| line(rest).map(|(_, length)| length));
        if at + length.unwrap_or(rest.len()) > MAX_HEAD_BYTES {
            return malformed();
        }
        let Some(length) = length else { return truncated() };
        at += length;
        fields += usize::from(ends.is_none());
        if fields > MAX_FIELDS {
            return malformed();
        }
        if ends.is_some() {
            return Ok(at);
        }
    }
}

fn crlf(bytes: &[u8]) -> Part<usize> {
    match bytes {
        [b'\r', b'\n', ..] => Ok(2),
        [] | [b'\r'] => truncated(),
        _ => malformed(),
    }
}
