//! Runs nghttpd, the server of nghttp2, which supports only HTTP/2, without TLS.
use crate::daemon::{Daemon, Program, default_files};
use std::ops::Deref;
use std::path::Path;

const PATH: &str = "/usr/sbin/nghttpd";
/// nghttpd does not write a pid file. So a shell writes the file, and then runs nghttpd in the same process.
const PROGRAM: Program =
    Program { path: "/bin/sh", package: "nghttp2-server", args: |dir| vec![format!("{dir}/server.conf")] };

/// A running nghttpd. Dropping this value stops it. It serves `hello\n` at `/`.
pub struct Nghttpd(Daemon);

impl Nghttpd {
    /// Starts nghttpd with these additional options. Returns when it accepts connections. Panics with nghttpd's error
    /// message if that fails.
    pub fn start(options: &str) -> Nghttpd {
        assert!(Path::new(PATH).exists(), "{PATH} is missing and this test needs it: apt-get install nghttp2-server");
        let configure = |dir: &str, port| {
            format!("echo $$ >{dir}/server.pid\nexec {PATH} --no-tls -a 127.0.0.1 -d {dir}/www {options} {port}\n")
        };
        Nghttpd(Daemon::start(&PROGRAM, 0, &default_files(), configure))
    }
}

impl Deref for Nghttpd {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.0
    }
}
