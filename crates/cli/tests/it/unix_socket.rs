//! Tests servers at Unix sockets: nginx, Node.js, and a server with a full accept queue.

use crate::documents;
use crate::program::{run, wait_until};
use brimful_testkit::{Nginx, NginxOptions};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An nginx that also listens at a Unix socket. Its page contains the `Host` field of the request.
fn nginx() -> (Nginx, tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    // nginx's workers run as another user, which needs access to the directory.
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let socket = dir.path().join("web.sock");
    let extra = format!(
        "listen unix:{}; location = /host {{ return 200 $host; }} location = /hop {{ return 302 /host; }}",
        socket.display()
    );
    (Nginx::start(NginxOptions { extra, ..NginxOptions::default() }), dir, socket)
}

#[test]
fn nginx_responds_on_a_socket_as_on_a_port() {
    let (_nginx, _dir, socket) = nginx();
    let path = socket.display().to_string();
    for engine in ["epoll", "uring"] {
        for load in
            [&["-c", "4"][..], &["-R", "500"], &["-c", "2", "--new-connection"], &["-c", "2", "--pipeline", "4"]]
        {
            let flags = [load, &["-n", "200", "--engine", engine, "--json"]].concat();
            let url = format!("http+unix:{path}:/index.html");
            let record = documents::record(&run(&[&["load", &url][..], &flags].concat()).exits(&[0, 4]).stdout);
            let counts = record.counts;
            assert_eq!((counts.completed, counts.status.s2xx, counts.imbalance()), (200, 200, (0, 0)), "{counts:?}");
            assert_eq!(record.generator.engine, engine);
            if load.contains(&"--new-connection") {
                assert_eq!(counts.established, 200);
            }
            assert!(record.target.starts_with("http+unix://%2F") && record.target.ends_with("web.sock/index.html"));
        }
    }
}

#[test]
fn the_url_with_a_socket_gives_host_and_path() {
    let (_nginx, _dir, socket) = nginx();
    let path = socket.display().to_string();
    let args = ["load", "http://app.example/host", "--unix-socket", &path, "-c", "1", "-n", "2", "--print", "1"];
    let shown = run(&args).exits(&[0, 4]).stderr;
    assert!(shown.contains("> Host: app.example") && shown.contains("< app.example"), "{shown}");
    // A redirect must be followed at the same socket.
    let url = format!("unix:{path}:/hop");
    let args = ["load", &url, "-c", "1", "-n", "5", "--follow", "1", "--json"];
    let record = documents::record(&run(&args).exits(&[0, 4]).stdout);
    assert_eq!(record.redirects.unwrap().followed.counts.status.s2xx, 5);
}

#[test]
fn the_programs_of_a_socket_are_watched() {
    let (_nginx, _dir, socket) = nginx();
    let url = format!("http+unix:{}", socket.display());
    let args = ["load", &url, "-c", "2", "-d", "300ms", "--watch", "--json"];
    let server = documents::record(&run(&args).exits(&[0, 4]).stdout).server.unwrap();
    assert!(server.process.iter().any(|program| program.name.contains("nginx")), "{:?}", server.process);
    assert!(server.connections.ports.is_empty(), "{:?}", server.connections);
}

#[test]
fn flags_that_a_socket_does_not_support_are_refused() {
    let (_nginx, dir, socket) = nginx();
    let url = format!("http+unix:{}", socket.display());
    run(&["load", &url, "--close", "rst"]).fails(2, "a Unix socket has no RST");
    run(&["load", &url, "--source-ip", "127.0.0.1"]).fails(2, "has no addresses");
    run(&["load", &url, "--calibrate"]).fails(2, "--calibrate does not work with a Unix socket");
    run(&["survey", &url]).fails(2, "accepts its Unix socket");
    run(&["load", &url, "--unix-socket", "/x"]).fails(2, "leave one out");
    let nobody = format!("unix:{}", dir.path().join("none.sock").display());
    run(&["load", &nobody]).fails(3, "there is no Unix socket at");
}

#[test]
fn a_full_accept_queue_counts_as_a_failure_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("full.sock");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _queued = UnixStream::connect(&path).unwrap();
    for engine in ["epoll", "uring"] {
        let url = format!("http+unix:{}", path.display());
        let args = ["load", &url, "-R", "200", "-n", "20", "--engine", engine, "--json"];
        let record = documents::record(&run(&args).exits(&[3, 4]).stdout);
        assert_eq!((record.counts.refused, record.counts.client_limited), (20, 0), "{:?}", record.counts);
    }
}

/// A Node.js process. Dropping this value kills it.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn node(socket: &Path) -> Node {
    let script = "require('http').createServer((q, s) => s.end('hello\\n')).listen(process.argv[1])";
    let child = Command::new("node").arg("-e").arg(script).arg(socket).stdin(Stdio::null()).spawn().unwrap();
    wait_until(|| UnixStream::connect(socket).is_ok());
    Node(child)
}

#[test]
fn node_responds_on_a_socket() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("app.sock");
    let _node = node(&socket);
    for engine in ["epoll", "uring"] {
        let path = socket.display().to_string();
        let args =
            ["load", "http://localhost/", "--unix-socket", &path, "-c", "4", "-n", "200", "--engine", engine, "--json"];
        let counts = documents::record(&run(&args).exits(&[0, 4]).stdout).counts;
        assert_eq!((counts.completed, counts.status.s2xx, counts.established), (200, 200, 4), "{counts:?}");
    }
}
