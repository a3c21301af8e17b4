//! Tests how the server parses requests, and the exact form of its responses.

use crate::client::{Client, request};
use crate::start;
use std::net::Shutdown;

#[test]
fn classes_are_served_by_name() {
    let target = start("light=0,heavy=0/3000", 1);
    let mut client = Client::new(target.addr());
    for (path, length) in [("/", 1024), ("/light?x=1", 1024), ("/heavy", 3000), ("http://here/heavy", 3000)] {
        let reply = client.get(path);
        assert_eq!((reply.status, reply.body.len()), (200, length), "{path}");
    }
    let reply = client.get("/other");
    assert_eq!(reply.status, 404);
    assert!(reply.text().contains("/light, /heavy"), "{:?}", reply.text());
    // After this response, the connection must still be usable.
    assert_eq!(client.get("/light").status, 200);
}

#[test]
fn head_has_no_body() {
    let target = start("a=0/3000", 1);
    let mut client = Client::new(target.addr());
    client.send(format!("HEAD /a HTTP/1.1\r\nHost: here\r\n\r\n{}", request("/a")));
    assert_eq!(client.head().field("content-length"), Some("3000"));
    assert_eq!(client.reply().body.len(), 3000);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let target = start("a=0/10,b=0/20", 2);
    let mut client = Client::new(target.addr());
    let lengths: Vec<usize> = (0..200).map(|i| 10 + 10 * (i * i % 3)).collect();
    let requests: String = lengths.iter().map(|&l| request(if l == 10 { "/a" } else { "/b" })).collect();
    // The length of the pieces is not a multiple of the requests' lengths, so some heads are cut in two.
    for piece in requests.as_bytes().chunks(1009) {
        client.send(piece);
    }
    for length in lengths {
        assert_eq!(client.reply().body.len(), length);
    }
}

#[test]
fn request_bodies_are_read_and_discarded() {
    let target = start("a=0", 1);
    let mut client = Client::new(target.addr());
    let body = "x".repeat(300_000);
    client.send(format!("POST /a HTTP/1.1\r\nHost: here\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    assert_eq!(client.reply().status, 200);
    client.send("PUT /a HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n");
    for chunk in body.as_bytes().chunks(70_000) {
        client.send(format!("{:x};x=y\r\n{}\r\n", chunk.len(), "x".repeat(chunk.len())));
    }
    client.send("0\r\nTrailer: x\r\n\r\n");
    assert_eq!(client.reply().status, 200);
    assert_eq!(client.get("/a").status, 200);
}

#[test]
fn a_waiting_client_gets_100_continue() {
    let target = start("a=0", 1);
    let mut client = Client::new(target.addr());
    client.send("POST /a HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.head().status, 100);
    client.send("body");
    assert_eq!(client.reply().status, 200);
}

#[test]
fn connections_stay_open_as_the_client_requests() {
    let target = start("a=0", 1);
    for (head, lasts) in [
        ("GET /a HTTP/1.1\r\nHost: here", true),
        ("GET /a HTTP/1.1\r\nHost: here\r\nConnection: close", false),
        ("GET /a HTTP/1.0", false),
        ("GET /a HTTP/1.0\r\nConnection: keep-alive", true),
    ] {
        let mut client = Client::new(target.addr());
        client.send(format!("{head}\r\n\r\n"));
        let reply = client.reply();
        let connection = if lasts { "keep-alive" } else { "close" };
        assert_eq!(reply.field("connection"), Some(connection), "{head:?}");
        if lasts {
            assert_eq!(client.get("/a").status, 200, "{head:?}");
        } else {
            assert!(client.has_ended(), "{head:?}");
        }
    }
}

#[test]
fn a_client_that_has_shut_down_its_side_gets_a_response() {
    let target = start("a=1ms", 1);
    let mut client = Client::new(target.addr());
    client.send(request("/a").repeat(3));
    client.stream().shutdown(Shutdown::Write).unwrap();
    for _ in 0..3 {
        assert_eq!(client.reply().status, 200);
    }
    assert!(client.has_ended());
}

#[test]
fn invalid_requests_are_rejected_and_the_connection_closed() {
    let target = start("a=0", 1);
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(100_000));
    for (text, status) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("hello\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999\r\n\r\n", 413),
        (&long, 431),
    ] {
        let mut client = Client::new(target.addr());
        client.send(text);
        let reply = client.reply();
        assert_eq!((reply.status, reply.field("connection")), (status, Some("close")), "{text:.40}");
        assert!(client.has_ended(), "{text:.40}");
    }
    let mut client = Client::new(target.addr());
    client.send("OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n");
    let reply = client.reply();
    assert_eq!(reply.status, 405);
    assert!(reply.field("allow").unwrap().starts_with("GET, HEAD"));
    assert_eq!(client.get("/a").status, 200);
}
