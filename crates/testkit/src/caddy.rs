//! Runs Debian's Caddy with a configuration for tests: it serves HTTP/1 and HTTP/2, both without TLS.
use crate::daemon::{Daemon, Program, default_files};
use std::ops::Deref;

const PROGRAM: Program = Program {
    path: "/usr/bin/caddy",
    package: "caddy",
    args: |dir| {
        let files = [format!("{dir}/server.conf"), format!("{dir}/server.pid")];
        ["run", "--adapter", "caddyfile", "--config", &files[0], "--pidfile", &files[1]].map(str::to_owned).to_vec()
    },
};

/// A running Caddy. Dropping this value stops it. It serves `hello\n` at `/`, and writes `access.log`, which has one
/// JSON object per line.
pub struct Caddy(Daemon);

impl Caddy {
    /// Starts Caddy. Returns when it accepts connections. Panics with Caddy's error message if that fails.
    pub fn start() -> Caddy {
        Caddy(Daemon::start(&PROGRAM, 0, &default_files(), configuration))
    }
}

impl Deref for Caddy {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.0
    }
}

fn configuration(dir: &str, port: u16) -> String {
    format!(
        "{{
    admin off
    auto_https off
    storage file_system {dir}/storage
    servers {{
        protocols h1 h2c
    }}
    grace_period 1s
    log {{
        output file {dir}/error.log
    }}
}}
http://127.0.0.1:{port} {{
    bind 127.0.0.1
    root * {dir}/www
    file_server
    log {{
        output file {dir}/access.log
    }}
}}
"
    )
}
