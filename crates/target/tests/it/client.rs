//! An HTTP client for tests. It panics if a response violates HTTP.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Timeout of a read: longer than any test takes, but short enough to notice a hung test.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to the server.
pub struct Client {
    reader: BufReader<TcpStream>,
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// The status line and the header fields.
    pub head: String,
    pub body: Vec<u8>,
}

impl Client {
    /// Connects to the server.
    pub fn new(addr: SocketAddr) -> Client {
        Client::from_stream(TcpStream::connect(addr).unwrap())
    }

    /// Makes a client of an established connection.
    pub fn from_stream(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { reader: BufReader::new(stream) }
    }

    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub fn send(&self, bytes: impl AsRef<[u8]>) {
        self.stream().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a GET request, and reads the response.
    pub fn get(&mut self, path: &str) -> Reply {
        self.send(request(path));
        self.reply()
    }

    /// Reads a response with its body.
    pub fn reply(&mut self) -> Reply {
        let mut reply = self.head();
        let length = reply.field("content-length").unwrap().parse().unwrap();
        reply.body = vec![0; length];
        self.reader.read_exact(&mut reply.body).unwrap();
        reply
    }

    /// Reads a response that has no body.
    pub fn head(&mut self) -> Reply {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(self.reader.read_line(&mut head).unwrap(), 0, "the connection ended in: {head:?}");
        }
        let status = head.strip_prefix("HTTP/1.1 ").and_then(|h| h[..3].parse().ok()).unwrap();
        Reply { status, head, body: Vec::new() }
    }

    /// Reads until the server closes the connection. Returns whether it sent nothing more before that.
    pub fn has_ended(&mut self) -> bool {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest).unwrap();
        rest.is_empty()
    }

    /// Number of bytes that have arrived but were not read yet. Does not wait for bytes.
    pub fn unread_bytes(&self) -> usize {
        self.stream().set_nonblocking(true).unwrap();
        let mut buffer = vec![0; 1 << 20];
        let peeked = self.stream().peek(&mut buffer);
        self.stream().set_nonblocking(false).unwrap();
        match peeked {
            Ok(n) => n + self.reader.buffer().len(),
            Err(e) if e.kind() == ErrorKind::WouldBlock => self.reader.buffer().len(),
            Err(e) => panic!("{e}"),
        }
    }
}

impl Reply {
    /// The value of a header field, if the response has it.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (n, value) = line.split_once(": ")?;
            n.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// A GET request for this path.
pub fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n")
}
