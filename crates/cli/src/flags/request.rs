//! Flags that `survey`, `load` and `replay` share: requests, connections, TLS, and the load generator.

use crate::documents::parse_workload;
use crate::exit::UsageError;
use crate::flags::values::{
    Credentials, Header, Label, MixList, close_parser, engine_parser, http_version_parser, parse_credentials,
    parse_header, parse_label, parse_mix, tls_version_parser,
};
use brimful_core::cpus::CpuList;
use brimful_core::tls::{Tls, TlsVersion};
use brimful_core::units::Count;
use brimful_core::workload::Workload;
use brimful_core::{Bytes, Nanos};
use brimful_engine::{Cidr, Close, Engine};
use brimful_http::Version;
use brimful_run::{ConnectOverrides, ConnectTo, Endpoint};
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Flags for requests, connections, TLS, and the load generator.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub struct RequestArgs {
    /// Header field, like 'Accept: text/html' (repeatable)
    ///
    /// 'Host: NAME' requests another virtual host than the URL's. With 'Connection: close', each call has a new connection.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = parse_header)]
    pub headers: Vec<Header>,
    /// Basic authentication; stored and shown as •••
    #[arg(short, long, value_name = "NAME:PASSWORD", value_parser = parse_credentials, short_alias = 'a')]
    pub user: Option<Credentials>,
    /// Header field whose value is stored and shown as ••• (repeatable)
    ///
    /// The values of Authorization, Proxy-Authorization, Cookie, X-Api-Key and X-Auth-Token are always hidden in this
    /// way.
    #[arg(long = "secret-header", value_name = "NAME", hide_short_help = true)]
    pub secret_headers: Vec<String>,
    /// Label in the document, like commit=abc123; `compare` shows it (repeatable)
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = parse_label, hide_short_help = true)]
    pub labels: Vec<Label>,
    /// HTTP version: 1.0, 1.1 or 2
    ///
    /// HTTP/2 is negotiated by TLS (ALPN) or, for http:// URLs, used by prior knowledge.
    #[arg(long, value_name = "VERSION", default_value = "1.1", value_parser = http_version_parser(), hide_possible_values = true)]
    pub http: Version,
    /// Request classes and their mix, from a TOML file; the URL then only names the server
    #[arg(long, value_name = "FILE")]
    pub workload: Option<PathBuf>,
    /// Other shares for the workload's classes, like light=0.7,heavy=0.3
    #[arg(long, value_name = "CLASS=SHARE,…", requires = "workload", value_parser = parse_mix, hide_short_help = true)]
    pub mix: Option<MixList>,
    /// Flags for connections.
    #[command(flatten)]
    pub connections: ConnectionArgs,
    /// Flags for TLS.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Flags for the load generator.
    #[command(flatten)]
    pub generator: GeneratorArgs,
}

/// Flags for connections.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionArgs {
    /// Connect to this Unix socket; the URL only sets the Host header and the path
    ///
    /// A URL like http+unix:/run/app.sock:/path does the same.
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub unix_socket: Option<PathBuf>,
    /// Connect to another address, as with curl: HOST:PORT:ADDRESS:PORT (repeatable)
    ///
    /// Host header, SNI and URL do not change. An empty HOST or first PORT matches any; an empty ADDRESS or second PORT means
    /// that of the URL. Several ADDRESSes, separated by commas, are used in turn. The first rule that matches applies; it is
    /// an error if none matches.
    #[arg(long, value_name = "RULE", conflicts_with = "unix_socket", hide_short_help = true)]
    pub connect_to: Vec<ConnectTo>,
    /// Use only the first address of the host that accepts connections [default: all, in turn]
    #[arg(long, hide_short_help = true)]
    pub first_address: bool,
    /// Open a new connection for every call [default: keep connections alive]
    #[arg(long, conflicts_with = "calls_per_connection", alias = "disable-keepalive")]
    pub new_connection: bool,
    /// Close a connection after this many calls
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub calls_per_connection: Option<Count>,
    /// Up to N calls at once on a connection, pipelined or on HTTP/2 streams [default: 1]
    ///
    /// An HTTP/2 server may allow fewer streams. With HTTP/1 and --clients, each client sends a burst of N calls in one write
    /// once its last burst has been answered. The default of a survey with HTTP/2 is 100: calls share connections once all
    /// open connections are in use.
    #[arg(long, value_name = "N", alias = "streams", hide_short_help = true)]
    pub pipeline: Option<Count>,
    /// Side that closes a connection after its last call: server, or this one with fin or rst
    ///
    /// `server` requests it with `Connection: close`, and the server's host keeps the socket in TIME_WAIT. `rst` costs little,
    /// but the server sees an error.
    #[arg(long, value_name = "WHO", default_value = "server", value_parser = close_parser(), hide_possible_values = true)]
    #[arg(hide_short_help = true)]
    pub close: Close,
    /// Abandon a connection attempt after this time [default: 3s; with --clients the kernel's limit]
    ///
    /// The attempt's port is then free again. Clients of a closed loop let the kernel retry.
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub connect_timeout: Option<Nanos>,
    /// Abandon a call if it takes longer than this from sending to response
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub timeout: Nanos,
    /// Retry calls whose reused connection was closed before any response, as browsers do
    ///
    /// The server probably closed the connection while it was idle. Such a call is sent on another connection, at most twice,
    /// and keeps its due time. A call that is not safe to repeat, like a POST, may then reach the server twice.
    #[arg(long, hide_short_help = true)]
    pub retry_closed: bool,
    /// Connect from these addresses of this host in turn, like 127.0.0.0/28
    ///
    /// Each address has its own range of ports.
    #[arg(long, value_name = "CIDR", hide_short_help = true)]
    pub source_ip: Option<Cidr>,
    /// Send buffer of each socket (SO_SNDBUF) [default: the kernel's]
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub send_buffer: Option<Bytes>,
    /// Receive buffer of each socket (SO_RCVBUF) [default: the kernel's]
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub receive_buffer: Option<Bytes>,
}

/// Flags for the TLS of https:// URLs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connections")]
pub struct TlsArgs {
    /// Accept any certificate of an https:// server
    ///
    /// Neither the certificate nor the server's ownership of its key is verified.
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    /// Trust the certificates in this PEM file instead of this host's store
    #[arg(long, value_name = "FILE", alias = "cacert", hide_short_help = true)]
    pub ca: Option<PathBuf>,
    /// Client certificate for a server that requests one, a PEM file
    ///
    /// The file must also contain the intermediate certificates, if any.
    #[arg(long, value_name = "FILE", requires = "key", hide_short_help = true)]
    pub cert: Option<PathBuf>,
    /// Private key of the client certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "cert", hide_short_help = true)]
    pub key: Option<PathBuf>,
    /// Resume TLS sessions, as browsers do [default: every handshake is a full one]
    ///
    /// A new connection uses a ticket of an earlier connection.
    #[arg(long, hide_short_help = true)]
    pub tls_resume: bool,
    /// Minimum TLS version
    #[arg(long, value_name = "VERSION", value_parser = tls_version_parser(), hide_short_help = true)]
    pub tls_min: Option<TlsVersion>,
    /// Server name for SNI and for the check of the certificate [default: the URL's host]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub sni: Option<String>,
}

/// Flags for the load generator.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub struct GeneratorArgs {
    /// Threads of the load generator [default: one per CPU of --cpus, else 1]
    #[arg(short, long, value_name = "N")]
    pub threads: Option<Count>,
    /// CPUs of the load generator, like 1 or 2-3 [default: any; survey --demo: the second CPU]
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub cpus: Option<CpuList>,
    /// I/O engine: uring, epoll, or auto (uring if it is allowed)
    #[arg(long, default_value = "auto", value_parser = engine_parser(), hide_short_help = true, hide_possible_values = true)]
    pub engine: Engine,
    /// Seed of all random numbers [default: from the clock, and recorded]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
}

impl RequestArgs {
    /// The workload in the file of `--workload`. The shares of `--mix` replace the shares in the file.
    pub fn workload(&self) -> anyhow::Result<Option<Workload>> {
        let Some(path) = &self.workload else { return Ok(None) };
        let usage = |message: String| UsageError(format!("{}: {message}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
        let mut workload = parse_workload(&text).map_err(usage)?;
        if let Some(MixList(mix)) = &self.mix {
            workload.set_mix(mix).map_err(|error| UsageError(format!("--mix: {error}")))?;
        }
        Ok(Some(workload))
    }

    /// The header fields of every request, from `--header` and `--user`.
    pub fn headers(&self) -> Result<Vec<(String, String)>, UsageError> {
        let given = self.headers.iter().map(|header| (header.name.clone(), header.value.clone()));
        let headers: Vec<_> = given.chain(self.user.as_ref().map(Credentials::header)).collect();
        let authorizations = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("authorization")).count();
        match self.user.is_some() && authorizations > 1 {
            true => {
                Err(UsageError("--user sends an Authorization header, and another one is given: remove one".to_owned()))
            }
            false => Ok(headers),
        }
    }

    /// The labels, by name.
    pub fn labels(&self) -> Result<BTreeMap<String, String>, UsageError> {
        let mut labels = BTreeMap::new();
        for Label { name, value } in &self.labels {
            if labels.insert(name.clone(), value.clone()).is_some() {
                return Err(UsageError(format!("--label {name} is given twice: give each label one value")));
            }
        }
        Ok(labels)
    }

    /// The number of calls after which a connection is closed, if a flag or the header `Connection: close` sets it.
    pub fn calls_per_connection(&self) -> Result<Option<u64>, UsageError> {
        let closes = |header: &Header| {
            header.name.eq_ignore_ascii_case("connection") && header.value.eq_ignore_ascii_case("close")
        };
        match (self.headers.iter().any(closes), self.connections.calls_per_connection) {
            (true, Some(Count(calls))) if calls != 1 => Err(UsageError(format!(
                "'Connection: close' ends a connection after one call, not {calls}: remove the header"
            ))),
            (true, _) => Ok(Some(1)),
            (false, _) if self.connections.new_connection => Ok(Some(1)),
            (false, calls) => Ok(calls.map(|calls| calls.0)),
        }
    }
}

impl ConnectionArgs {
    /// The destination of connections, if flags set one instead of the address of the URL's host.
    pub fn connect_overrides(&self) -> ConnectOverrides {
        ConnectOverrides {
            socket: self.unix_socket.clone(),
            connect_to: self.connect_to.clone(),
            first_address: self.first_address,
        }
    }

    /// Checks that the endpoint supports the flags.
    ///
    /// # Errors
    /// Returns an error if a flag needs TCP and the endpoint is a Unix socket.
    pub fn check(&self, endpoint: &Endpoint) -> Result<(), UsageError> {
        let problem = match (endpoint.port(), self.close, self.source_ip) {
            (None, Close::Rst, _) => "--close rst needs TCP: a Unix socket has no RST",
            (None, _, Some(_)) => "--source-ip needs TCP: a Unix socket has no addresses",
            _ => return Ok(()),
        };
        Err(UsageError(format!("{problem}; remove the flag, or give the server's port in the URL")))
    }
}

impl TlsArgs {
    /// The TLS settings of the workload, overridden by the flags.
    pub fn override_tls(&self, workload: Option<&Tls>) -> Tls {
        let tls = workload.cloned().unwrap_or_default();
        Tls {
            resume: tls.resume || self.tls_resume,
            minimum: self.tls_min.unwrap_or(tls.minimum),
            sni: self.sni.clone().or(tls.sni),
            insecure: tls.insecure && self.ca.is_none() || self.insecure,
        }
    }

    /// A TLS flag that the user gave, for an error message; `None` if there is none.
    pub fn first_flag(&self) -> Option<&'static str> {
        let flags = [
            ("--insecure", self.insecure),
            ("--ca", self.ca.is_some()),
            ("--cert", self.cert.is_some()),
            ("--tls-resume", self.tls_resume),
            ("--tls-min", self.tls_min.is_some()),
            ("--sni", self.sni.is_some()),
        ];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

impl GeneratorArgs {
    /// The CPUs of the generator; empty for any CPU.
    pub fn cpus(&self) -> Vec<usize> {
        self.cpus.as_ref().map(|list| list.0.clone()).unwrap_or_default()
    }
}
