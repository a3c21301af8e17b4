//! A minimal HTTP/1 parser for the servers in tests, which reads one request at a time. It does not use the codec under
//! test, so that a mistake of the codec does not go unnoticed.
use std::io::BufRead;

/// A request, as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method, such as `GET`.
    pub method: String,
    /// The target, such as `/index.html?q=1`.
    pub target: String,
    /// Names and values of the header fields, in order. The case of names is preserved.
    pub headers: Vec<(String, String)>,
    /// The body. Its length is the value of `Content-Length`.
    pub body: Vec<u8>,
}

impl Request {
    /// Reads the next request. `None` if the client has closed the connection, or if the bytes are not a complete
    /// request.
    pub fn read(reader: &mut impl BufRead) -> Option<Request> {
        let first = read_line(reader)?;
        let mut parts = first.split(' ');
        let method = parts.next()?.to_owned();
        let target = parts.next()?.to_owned();
        let mut headers = Vec::new();
        loop {
            let field = read_line(reader)?;
            if field.is_empty() {
                break;
            }
            let (name, value) = field.split_once(':')?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut request = Request { method, target, headers, body: Vec::new() };
        let length = request.header("content-length").map_or(Some(0), |value| value.parse().ok())?;
        request.body.resize(length, 0);
        reader.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    /// The value of the first header field with this name, regardless of case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Reads a line, and returns it without the line break. `None` if the line break is missing.
fn read_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let line = line.strip_suffix('\n')?;
    Some(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_pipelined_requests_one_by_one() {
        let mut bytes = &b"POST /a?b HTTP/1.1\r\nHost: x\r\nCONTENT-length: 3\r\n\r\nabcGET / HTTP/1.0\r\n\r\nHEA"[..];
        let post = Request::read(&mut bytes).unwrap();
        assert_eq!((post.method.as_str(), post.target.as_str(), &post.body[..]), ("POST", "/a?b", &b"abc"[..]));
        assert_eq!(post.header("host"), Some("x"));
        assert_eq!(Request::read(&mut bytes).unwrap().method, "GET");
        assert_eq!(Request::read(&mut bytes), None);
    }

    #[test]
    fn an_incomplete_request_is_none() {
        let whole = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab";
        for end in 0..whole.len() {
            assert_eq!(Request::read(&mut &whole[..end]), None, "{end} bytes of {}", whole.len());
        }
        assert!(Request::read(&mut &whole[..]).is_some());
    }
}
