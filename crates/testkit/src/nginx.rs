//! Runs Debian's nginx with a configuration for tests.
use crate::daemon::{Daemon, Program, default_files, is_root};
use std::ops::Deref;

const PROGRAM: Program = Program {
    path: "/usr/sbin/nginx",
    package: "nginx",
    // Without the option -e, nginx would open the log file of its default configuration before it reads `server.conf`.
    args: |dir| ["-p", dir, "-e", "error.log", "-c", "server.conf"].map(str::to_owned).to_vec(),
};

/// Configuration of an nginx server. By default, nginx has one worker, keeps connections open and serves `hello\n` at
/// `/`.
pub struct NginxOptions {
    /// Number of worker processes.
    pub workers: usize,
    /// Whether connections stay open after a response, for any number of requests.
    pub keepalive: bool,
    /// Files to serve: each has a path below the document root and a content.
    pub files: Vec<(String, Vec<u8>)>,
    /// Parameters of the `listen` directive, such as `ssl`.
    pub listen: String,
    /// Further directives for the `server` block, such as `keepalive_requests 10;` or `location /s { stub_status; }`.
    pub extra: String,
    /// Further directives for the top level, such as `include modules.d/*.conf;`. Paths are relative to the server's
    /// temporary directory.
    pub main: String,
    /// Further directives for the `http` block.
    pub http: String,
}

impl Default for NginxOptions {
    fn default() -> Self {
        NginxOptions {
            workers: 1,
            keepalive: true,
            files: default_files(),
            listen: String::new(),
            extra: String::new(),
            main: String::new(),
            http: String::new(),
        }
    }
}

/// A running nginx. Dropping this value stops it.
pub struct Nginx(Daemon);

impl Nginx {
    /// Starts nginx. Returns when it accepts connections and has all its workers. Panics with nginx's error message if
    /// that fails.
    pub fn start(options: NginxOptions) -> Nginx {
        let configure = |dir: &str, port| configuration(&options, dir, port);
        Nginx(Daemon::start(&PROGRAM, options.workers, &options.files, configure))
    }
}

impl Deref for Nginx {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.0
    }
}

fn configuration(options: &NginxOptions, dir: &str, port: u16) -> String {
    let NginxOptions { workers, keepalive, listen, extra, main, http, .. } = options;
    let user = if is_root() { "user www-data;" } else { "" };
    let keepalive_timeout = if *keepalive { 75 } else { 0 };
    format!(
        r#"daemon off;
{user}
worker_processes {workers};
pid "{dir}/server.pid";
error_log "{dir}/error.log" warn;
{main}
events {{ worker_connections 4096; }}
http {{
    access_log off;
    default_type application/octet-stream;
    types {{ text/html html; text/plain txt; }}
    keepalive_timeout {keepalive_timeout};
    keepalive_requests 1000000000;
    client_body_temp_path "{dir}/client_body";
    proxy_temp_path "{dir}/proxy";
    fastcgi_temp_path "{dir}/fastcgi";
    scgi_temp_path "{dir}/scgi";
    uwsgi_temp_path "{dir}/uwsgi";
    {http}
    server {{
        listen 127.0.0.1:{port} {listen};
        root "{dir}/www";
        {extra}
    }}
}}
"#
    )
}
