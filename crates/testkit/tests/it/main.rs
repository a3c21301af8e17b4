//! Tests that each server starts, serves and stops, and that no processes and files remain.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking, as tests do")]

mod raw;
mod real;
mod timed;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
const LAST_GET: &str = "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";

fn connect(addr: SocketAddr) -> TcpStream {
    let conn = TcpStream::connect(addr).unwrap();
    // A timeout of 20 s, which only a failing test reaches.
    conn.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    conn
}

/// Sends `request`, and reads until the connection ends or fails.
fn exchange(addr: SocketAddr, request: &str) -> (Vec<u8>, io::Result<()>) {
    let mut conn = connect(addr);
    conn.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let end = conn.read_to_end(&mut bytes).map(|_| ());
    (bytes, end)
}

/// Sends `request`, and returns all bytes that the server sends. Fails unless the server ends the connection with FIN.
fn answers(addr: SocketAddr, request: &str) -> String {
    let (bytes, end) = exchange(addr, request);
    end.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Sends `request` on an open connection, reads as many bytes as `expected` has, and asserts that they are equal.
fn ask(conn: &mut TcpStream, request: &str, expected: &str) {
    conn.write_all(request.as_bytes()).unwrap();
    let mut bytes = vec![0; expected.len()];
    conn.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}

fn refused(addr: SocketAddr) -> bool {
    TcpStream::connect(addr).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
}
