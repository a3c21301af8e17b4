//! HTTP/2 for tests: encodes frames, and runs a server whose behaviour the test defines.

use crate::RawServer;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

/// Types of frames.
pub mod kind {
    #![allow(missing_docs, reason = "the names are those of RFC 9113")]
    /// Content of a request or response.
    pub const DATA: u8 = 0;
    /// Header fields of a request or response, which begin a stream.
    pub const HEADERS: u8 = 1;
    /// Ends a stream with an error.
    pub const RST_STREAM: u8 = 3;
    /// Settings of the sender.
    pub const SETTINGS: u8 = 4;
    /// Announces a response that the client did not request.
    pub const PUSH_PROMISE: u8 = 5;
    /// Tests whether the connection is alive.
    pub const PING: u8 = 6;
    /// Announces the end of the connection.
    pub const GOAWAY: u8 = 7;
    /// Permits the peer to send more content.
    pub const WINDOW_UPDATE: u8 = 8;
    /// Continues the header fields of the previous frame.
    pub const CONTINUATION: u8 = 9;
}

/// The flag `END_STREAM` of DATA and HEADERS frames.
pub const END_STREAM: u8 = 0x01;
/// The flag `ACK` of SETTINGS and PING frames.
pub const ACK: u8 = 0x01;
/// The flag `END_HEADERS` of HEADERS and CONTINUATION frames.
pub const END_HEADERS: u8 = 0x04;

const PREFACE: usize = 24;

/// Encodes a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a payload fits a frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Encodes a SETTINGS frame with these pairs of identifier and value.
pub fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let entry = |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(kind::SETTINGS, 0, 0, &entries.iter().flat_map(entry).collect::<Vec<u8>>())
}

/// Encodes a response with status 200 and this body.
pub fn answer(stream: u32, body: &[u8]) -> Vec<u8> {
    [frame(kind::HEADERS, END_HEADERS, stream, &[0x88]), frame(kind::DATA, END_STREAM, stream, body)].concat()
}

/// Encodes a GOAWAY frame. `last` is the number of the last stream that the server processes.
pub fn goaway(last: u32) -> Vec<u8> {
    frame(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

/// The server's end of an HTTP/2 connection.
pub struct Http2Peer<'c> {
    conn: &'c TcpStream,
    reader: BufReader<&'c TcpStream>,
}

/// Starts a server that sends the SETTINGS frame `settings` on each connection, and then calls `behaviour`. The second
/// argument of `behaviour` is the number of the connection, from 0.
pub fn http2_server(
    settings: Vec<u8>,
    behaviour: impl Fn(&mut Http2Peer<'_>, usize) + Send + Sync + 'static,
) -> RawServer {
    RawServer::start(move |conn, number| {
        conn.set_nodelay(true).expect("set TCP_NODELAY on an open socket");
        let mut peer = Http2Peer { conn: &conn, reader: BufReader::new(&conn) };
        let mut preface = [0; PREFACE];
        if peer.reader.read_exact(&mut preface).is_ok() {
            // Close the connection without a response if the client tries TLS.
            let wants_tls = preface.starts_with(&[0x16, 3]);
            assert!(wants_tls || preface.starts_with(b"PRI * HTTP/2.0\r\n"), "no preface: {preface:?}");
            if !wants_tls && peer.send(&settings) {
                behaviour(&mut peer, number);
            }
        }
    })
}

impl Http2Peer<'_> {
    /// Sends bytes. Returns whether that succeeded.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        (&mut self.conn).write_all(bytes).is_ok()
    }

    /// Reads the next frame and returns its type, flags, stream and payload. `None` at the end of the connection.
    pub fn frame(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut header = [0; 9];
        self.reader.read_exact(&mut header).ok()?;
        let [a, b, c, kind, flags, stream @ ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.reader.read_exact(&mut payload).ok()?;
        Some((kind, flags, u32::from_be_bytes(stream), payload))
    }

    /// Skips frames until the next HEADERS frame, and returns the number of its stream. `None` at the end of the
    /// connection.
    pub fn request(&mut self) -> Option<u32> {
        loop {
            if let (kind::HEADERS, _, stream, _) = self.frame()? {
                return Some(stream);
            }
        }
    }

    /// The stream numbers of the next `count` requests; fewer if the connection ends.
    pub fn requests(&mut self, count: usize) -> Vec<u32> {
        (0..count).map_while(|_| self.request()).collect()
    }

    /// Reads until the client closes the connection.
    pub fn drain(&mut self) {
        while self.frame().is_some() {}
    }
}
