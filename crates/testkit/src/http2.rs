//! HTTP/2 as tests write it: frames, and a server that does with them what it is told.

use crate::RawServer;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

/// Types of frames.
pub mod kind {
    #![allow(missing_docs, reason = "the names are those of RFC 9113")]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// `END_STREAM`, and of SETTINGS and PING `ACK`.
pub const END: u8 = 0x01;
/// `END_HEADERS`.
pub const WHOLE: u8 = 0x04;

const PREFACE: usize = 24;

/// A frame as it goes over the wire.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a payload fits a frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// SETTINGS of these names and values.
pub fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let entry = |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(kind::SETTINGS, 0, 0, &entries.iter().flat_map(entry).collect::<Vec<u8>>())
}

/// A 200 with this body.
pub fn answer(stream: u32, body: &[u8]) -> Vec<u8> {
    [frame(kind::HEADERS, WHOLE, stream, &[0x88]), frame(kind::DATA, END, stream, body)].concat()
}

/// GOAWAY behind this stream.
pub fn goaway(last: u32) -> Vec<u8> {
    frame(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

/// A connection of a client that speaks HTTP/2.
pub struct Http2Peer<'c> {
    conn: &'c TcpStream,
    reader: BufReader<&'c TcpStream>,
}

/// A server whose connections begin with `settings`, and are then `behaviour`'s, with their numbers from 0.
pub fn http2_server(
    settings: Vec<u8>,
    behaviour: impl Fn(&mut Http2Peer<'_>, usize) + Send + Sync + 'static,
) -> RawServer {
    RawServer::start(move |conn, number| {
        conn.set_nodelay(true).expect("set TCP_NODELAY on an open socket");
        let mut peer = Http2Peer { conn: &conn, reader: BufReader::new(&conn) };
        let mut preface = [0; PREFACE];
        if peer.reader.read_exact(&mut preface).is_ok() {
            // Who wonders whether this is TLS has no answer.
            let wants_tls = preface.starts_with(&[0x16, 3]);
            assert!(wants_tls || preface.starts_with(b"PRI * HTTP/2.0\r\n"), "no preface: {preface:?}");
            if !wants_tls && peer.send(&settings) {
                behaviour(&mut peer, number);
            }
        }
    })
}

impl Http2Peer<'_> {
    /// Sends bytes; whether the client takes them.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        (&mut self.conn).write_all(bytes).is_ok()
    }

    /// The next frame: type, flags, stream and payload. `None` at the connection's end.
    pub fn frame(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut header = [0; 9];
        self.reader.read_exact(&mut header).ok()?;
        let [a, b, c, kind, flags, stream @ ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.reader.read_exact(&mut payload).ok()?;
        Some((kind, flags, u32::from_be_bytes(stream), payload))
    }

    /// The stream of the next request whose head is whole; what else comes is passed over.
    pub fn request(&mut self) -> Option<u32> {
        loop {
            if let (kind::HEADERS, _, stream, _) = self.frame()? {
                return Some(stream);
            }
        }
    }

    /// The streams of so many requests, or of those there are before the connection's end.
    pub fn requests(&mut self, count: usize) -> Vec<u32> {
        (0..count).map_while(|_| self.request()).collect()
    }

    /// Reads until the client closes.
    pub fn drain(&mut self) {
        while self.frame().is_some() {}
    }
}
