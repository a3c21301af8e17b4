//! Tests the servers that delay their responses. Times are only compared with lower bounds, because a busy machine
//! makes everything slower.
use super::{GET, ask, connect, refused};
use brimful_testkit::{RefusingPort, full_backlog_listener, start_serial_server};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The response to the request with this number.
fn answer(index: usize) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{index}", index.to_string().len())
}

#[test]
fn requests_are_served_one_at_a_time_over_all_connections() {
    let service = Duration::from_millis(5);
    let server = start_serial_server(service, None);
    let mut conns: Vec<_> = (0..8).map(|_| connect(server.addr())).collect();
    let start = Instant::now();
    for conn in &mut conns {
        conn.write_all(GET.as_bytes()).unwrap();
    }
    for (index, conn) in conns.iter_mut().enumerate() {
        ask(conn, "", &answer(index));
    }
    assert!(start.elapsed() >= 8 * service, "{:?}", start.elapsed());
}

#[test]
fn requests_are_answered_in_order_of_arrival() {
    let server = start_serial_server(Duration::from_millis(2), Some((6, Duration::from_millis(50))));
    let mut conns: Vec<_> = (0..6).map(|_| connect(server.addr())).collect();
    // First let the server accept all connections: a request arrives only after its connection was accepted.
    for (index, conn) in conns.iter_mut().enumerate() {
        ask(conn, GET, &answer(index));
    }
    // During the stall of the first of these requests, all other requests arrive, in the reverse order of the
    // connections.
    for conn in conns.iter_mut().rev() {
        conn.write_all(GET.repeat(2).as_bytes()).unwrap();
    }
    for (nth, conn) in conns.iter_mut().rev().enumerate() {
        ask(conn, "", &(answer(6 + 2 * nth) + &answer(7 + 2 * nth)));
    }
}

#[test]
fn the_stall_falls_on_the_request_with_its_index() {
    let stall = Duration::from_millis(60);
    let server = start_serial_server(Duration::from_micros(100), Some((2, stall)));
    let mut conn = connect(server.addr());
    let times: Vec<_> = (0..4)
        .map(|index| {
            let start = Instant::now();
            ask(&mut conn, GET, &answer(index));
            start.elapsed()
        })
        .collect();
    assert!(times[2] >= stall, "{times:?}");
    // A busy machine may delay responses, so only the shortest time is compared with the stall.
    assert!(times.iter().min() < Some(&stall), "{times:?}");
}

#[test]
fn a_serial_server_survives_clients_that_leave_and_requests_in_pieces() {
    let server = start_serial_server(Duration::from_millis(1), None);
    drop(connect(server.addr()));
    let mut conn = connect(server.addr());
    let (first, second) = GET.split_at(9);
    conn.write_all(first.as_bytes()).unwrap();
    ask(&mut connect(server.addr()), GET, &answer(0));
    ask(&mut conn, second, &answer(1));
    // The server must still serve this request, although the client leaves before the response.
    conn.write_all(GET.as_bytes()).unwrap();
    drop(conn);
    let mut conn = connect(server.addr());
    ask(&mut conn, GET, &answer(3));
    let addr = server.addr();
    drop(server);
    assert_eq!(conn.read(&mut [0; 1]).unwrap(), 0);
    assert!(refused(addr));
}

#[test]
fn a_full_backlog_lets_attempts_hang_until_something_is_accepted() {
    let full = full_backlog_listener();
    for _ in 0..3 {
        let attempt = TcpStream::connect_timeout(&full.addr(), Duration::from_millis(50));
        assert_eq!(attempt.unwrap_err().kind(), ErrorKind::TimedOut);
    }
    full.listener().accept().unwrap();
    TcpStream::connect_timeout(&full.addr(), Duration::from_secs(10)).unwrap();
}

#[test]
fn a_silent_port_refuses_connections_until_it_listens() {
    let port = RefusingPort::reserve();
    let addr = port.addr();
    assert!(refused(addr) && std::net::TcpListener::bind(addr).is_err(), "{addr} must be bound without a listener");
    let _listener = port.listen();
    TcpStream::connect_timeout(&addr, Duration::from_secs(10)).unwrap();
}
