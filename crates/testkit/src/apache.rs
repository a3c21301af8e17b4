//! Runs Debian's Apache with a configuration for tests.
use crate::daemon::{Daemon, Program, default_files, is_root};
use std::ops::Deref;

const PROGRAM: Program = Program {
    path: "/usr/sbin/apache2",
    package: "apache2-bin",
    args: |dir| vec!["-f".to_owned(), format!("{dir}/server.conf"), "-DFOREGROUND".to_owned()],
};

/// Apache's multi-processing module (MPM).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpm {
    /// Each process serves one connection.
    Prefork,
    /// Each worker thread serves one request. A listener thread waits for requests on idle connections.
    Event,
}

/// Configuration of an Apache server. By default, it uses the event module, has 16 workers and serves `hello\n` at `/`.
pub struct ApacheOptions {
    /// The multi-processing module (MPM), which determines how Apache serves connections.
    pub mpm: Mpm,
    /// Number of workers: processes with prefork, threads of one process with event. The number does not change,
    /// because starting workers during a measurement would affect it.
    pub max_workers: usize,
    /// Files to serve: each has a path below the document root and a content.
    pub files: Vec<(String, Vec<u8>)>,
    /// Further directives for the end of the configuration, such as `IncludeOptional conf.d/*.conf`. Paths are relative
    /// to the server's temporary directory.
    pub extra: String,
}

impl Default for ApacheOptions {
    fn default() -> Self {
        ApacheOptions { mpm: Mpm::Event, max_workers: 16, files: default_files(), extra: String::new() }
    }
}

/// A running Apache. Dropping this value stops it. Idle connections stay open for up to 75 s after a response.
pub struct Apache(Daemon);

impl Apache {
    /// Starts Apache. Returns when it accepts connections and has all its workers. Panics with Apache's error message
    /// if that fails.
    pub fn start(options: ApacheOptions) -> Apache {
        let configure = |dir: &str, port| configuration(&options, dir, port);
        let processes = if options.mpm == Mpm::Prefork { options.max_workers } else { 1 };
        Apache(Daemon::start(&PROGRAM, processes, &options.files, configure))
    }
}

impl Deref for Apache {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.0
    }
}

fn configuration(options: &ApacheOptions, dir: &str, port: u16) -> String {
    let n = options.max_workers;
    let extra = &options.extra;
    let (module, pool) = match options.mpm {
        Mpm::Prefork => (
            "prefork",
            format!(
                "ServerLimit {n}\nStartServers {n}\nMinSpareServers {n}\nMaxSpareServers {}\nMaxRequestWorkers {n}",
                n + 1
            ),
        ),
        Mpm::Event => (
            "event",
            format!(
                "ServerLimit 1\nStartServers 1\nThreadLimit {n}\nThreadsPerChild {n}\nMinSpareThreads {n}\n\
                 MaxSpareThreads {n}\nMaxRequestWorkers {n}"
            ),
        ),
    };
    let user = if is_root() { "User www-data\nGroup www-data" } else { "" };
    format!(
        r#"ServerRoot "{dir}"
ServerName localhost
LoadModule mpm_{module}_module /usr/lib/apache2/modules/mod_mpm_{module}.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
{pool}
{user}
Listen 127.0.0.1:{port}
DefaultRuntimeDir "{dir}"
PidFile "{dir}/server.pid"
ErrorLog "{dir}/error.log"
LogLevel warn
DocumentRoot "{dir}/www"
DirectoryIndex index.html
KeepAlive On
KeepAliveTimeout 75
MaxKeepAliveRequests 0
{extra}
"#
    )
}
