//! The flags that whatever makes load has in common: what is requested, by which connections, and from which threads.

use crate::documents::parse_workload;
use crate::exit::UsageError;
use crate::flags::values::{
    Credentials, Header, MixList, close, credentials, engine, header, http_version, mix, tls_version,
};
use brimful_core::cpus::CpuList;
use brimful_core::tls::{Tls, TlsVersion};
use brimful_core::units::Count;
use brimful_core::workload::Workload;
use brimful_core::{Bytes, Nanos};
use brimful_engine::{Cidr, Close, Engine};
use brimful_http::Version;
use brimful_run::{ConnectTo, Detour, Endpoint};
use clap::Args;
use std::path::PathBuf;

/// What `survey`, `load` and `replay` have in common.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub struct RequestArgs {
    /// Header field, like 'Accept: text/html'; 'Connection: close' closes (repeatable)
    ///
    /// 'Host: NAME' asks for another virtual host than the URL's. After a call with 'Connection: close' the server closes the
    /// connection, and the next call has a new one.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub headers: Vec<Header>,
    /// Basic authentication; stored and shown as •••
    #[arg(short, long, value_name = "NAME:PASSWORD", value_parser = credentials, short_alias = 'a')]
    pub user: Option<Credentials>,
    /// Header field whose value is stored and shown as ••• (repeatable)
    ///
    /// As those of Authorization, Proxy-Authorization, Cookie, X-Api-Key and X-Auth-Token are anyway.
    #[arg(long = "secret-header", value_name = "NAME", hide_short_help = true)]
    pub secret_headers: Vec<String>,
    /// HTTP version: 1.0, 1.1 or 2
    ///
    /// 2 is agreed on by TLS (ALPN) or, for http:// URLs, by prior knowledge.
    #[arg(long, value_name = "VERSION", default_value = "1.1", value_parser = http_version(), hide_possible_values = true)]
    pub http: Version,
    /// Request classes and their mix, from a TOML file; the URL then gives host and port only
    #[arg(long, value_name = "FILE")]
    pub workload: Option<PathBuf>,
    /// Other shares for the workload's classes, like light=0.7,heavy=0.3
    #[arg(long, value_name = "CLASS=SHARE,…", requires = "workload", value_parser = mix, hide_short_help = true)]
    pub mix: Option<MixList>,
    /// Connections.
    #[command(flatten)]
    pub connections: ConnectionArgs,
    /// TLS.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// The generator.
    #[command(flatten)]
    pub generator: GeneratorArgs,
}

/// How connections are used.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionArgs {
    /// Connect to the server at this Unix socket; the URL then gives name and path
    ///
    /// So does a URL like http+unix:/run/app.sock:/path.
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub unix_socket: Option<PathBuf>,
    /// Connect elsewhere, as with curl: HOST:PORT:ADDRESS:PORT (repeatable)
    ///
    /// Host, SNI and URL stay as they are. An empty HOST or PORT in front matches any; one behind leaves what the URL has.
    /// Several ADDRESSes, with commas between them, take turns. The first that matches counts; that none does is an error.
    #[arg(long, value_name = "RULE", conflicts_with = "unix_socket", hide_short_help = true)]
    pub connect_to: Vec<ConnectTo>,
    /// Use only the first of the host's addresses that accepts [default: all, in turn]
    #[arg(long, hide_short_help = true)]
    pub first_address: bool,
    /// A new connection for every call [default: keep connections alive]
    #[arg(long, conflicts_with = "calls_per_connection", alias = "disable-keepalive")]
    pub new_connection: bool,
    /// Close a connection after this many calls
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub calls_per_connection: Option<Count>,
    /// Up to so many calls at once on a connection, or streams of HTTP/2 [default: 1]
    ///
    /// One behind the other, or on as many streams of HTTP/2, of which the server may allow fewer. Clients (--clients) call
    /// in bursts of N by HTTP/1: each burst on its connection in one write, once the last one has been answered. In a survey
    /// by HTTP/2 the default is 100: calls share a connection once all that are open are taken.
    #[arg(long, value_name = "N", alias = "streams", hide_short_help = true)]
    pub pipeline: Option<Count>,
    /// Who closes a connection: server, or this side by fin or rst
    ///
    /// After its last call. The server is asked by `Connection: close`, and keeps the TIME_WAIT. RST is cheap, and the server sees an error.
    #[arg(long, value_name = "WHO", default_value = "server", value_parser = close(), hide_possible_values = true)]
    #[arg(hide_short_help = true)]
    pub close: Close,
    /// Give up a connection attempt after this time [default: 3s; --clients: the kernel's]
    ///
    /// Its port is free again then. Clients of a closed loop leave it to the kernel to try again.
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub connect_timeout: Option<Nanos>,
    /// Give up a call whose answer is not whole this long after it was sent
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub timeout: Nanos,
    /// Send calls again whose reused connection the server closed unanswered, as browsers do
    ///
    /// Before any byte of the answer had come: the server had probably closed it while it was idle. Such a call goes to
    /// another connection, at most twice, and keeps its due time. One that is not safe to repeat, like a POST, may then
    /// reach the server twice.
    #[arg(long, hide_short_help = true)]
    pub retry_closed: bool,
    /// Connect from these addresses of this host in turn, like 127.0.0.0/28
    ///
    /// Each has ports of its own.
    #[arg(long, value_name = "CIDR", hide_short_help = true)]
    pub source_ip: Option<Cidr>,
    /// Send buffer of each socket (SO_SNDBUF) [default: the kernel's]
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub send_buffer: Option<Bytes>,
    /// Receive buffer of each socket (SO_RCVBUF) [default: the kernel's]
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub receive_buffer: Option<Bytes>,
}

/// How connections are secured.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connections")]
pub struct TlsArgs {
    /// Take any certificate of an https:// server
    ///
    /// Neither it nor who has its key is checked.
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    /// Trust the certificates in this PEM file, in place of this host's store
    #[arg(long, value_name = "FILE", alias = "cacert", hide_short_help = true)]
    pub ca: Option<PathBuf>,
    /// This client's certificate for a server that asks for one, a PEM file
    ///
    /// With the certificates that lead to its authority.
    #[arg(long, value_name = "FILE", requires = "key", hide_short_help = true)]
    pub cert: Option<PathBuf>,
    /// That certificate's private key, a PEM file
    #[arg(long, value_name = "FILE", requires = "cert", hide_short_help = true)]
    pub key: Option<PathBuf>,
    /// Resume TLS sessions, as browsers do [default: every handshake is a full one]
    ///
    /// A new connection uses a ticket of an earlier one.
    #[arg(long, hide_short_help = true)]
    pub tls_resume: bool,
    /// The oldest version of TLS to speak
    #[arg(long, value_name = "VERSION", value_parser = tls_version(), hide_short_help = true)]
    pub tls_min: Option<TlsVersion>,
    /// Ask for the server by this name, and expect it in its certificate [default: the URL's]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub sni: Option<String>,
}

/// The generator.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub struct GeneratorArgs {
    /// Threads of the generator [default: one per CPU of --cpus, else 1]
    #[arg(short, long, value_name = "N")]
    pub threads: Option<Count>,
    /// CPUs for the generator, like 1 or 2-3 [default: any; survey --demo: the second]
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub cpus: Option<CpuList>,
    /// How sockets are driven: uring, epoll or auto, the first allowed
    #[arg(long, default_value = "auto", value_parser = engine(), hide_short_help = true, hide_possible_values = true)]
    pub engine: Engine,
    /// Seed of all randomness [default: from the clock, and recorded]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
}

impl RequestArgs {
    /// The workload of `--workload` and `--mix`, if there is one.
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

    /// The header fields of every request: `--header`, and that of `--user`.
    pub fn headers(&self) -> Result<Vec<(String, String)>, UsageError> {
        let given = self.headers.iter().map(|header| (header.name.clone(), header.value.clone()));
        let headers: Vec<_> = given.chain(self.user.as_ref().map(Credentials::header)).collect();
        let authorizations = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("authorization")).count();
        match self.user.is_some() && authorizations > 1 {
            true => {
                Err(UsageError("--user is a header Authorization, and there is one already: leave out one".to_owned()))
            }
            false => Ok(headers),
        }
    }

    /// After how many calls a connection is closed, where that is said; a header can say it as well.
    pub fn calls_per_connection(&self) -> Result<Option<u64>, UsageError> {
        let closes = |header: &Header| {
            header.name.eq_ignore_ascii_case("connection") && header.value.eq_ignore_ascii_case("close")
        };
        match (self.headers.iter().any(closes), self.connections.calls_per_connection) {
            (true, Some(Count(calls))) if calls != 1 => Err(UsageError(format!(
                "with 'Connection: close' a connection has one call, and not {calls}: leave out the header"
            ))),
            (true, _) => Ok(Some(1)),
            (false, _) if self.connections.new_connection => Ok(Some(1)),
            (false, calls) => Ok(calls.map(|calls| calls.0)),
        }
    }
}

impl ConnectionArgs {
    /// What leads connections elsewhere than to the addresses of the URL's host.
    pub fn detour(&self) -> Detour {
        Detour {
            socket: self.unix_socket.clone(),
            connect_to: self.connect_to.clone(),
            first_address: self.first_address,
        }
    }

    /// Whether there is all of it with this server.
    ///
    /// # Errors
    /// [`UsageError`] for what a Unix socket does not have.
    pub fn check(&self, endpoint: &Endpoint) -> Result<(), UsageError> {
        let missing = match (endpoint.port(), self.close, self.source_ip) {
            (None, Close::Rst, _) => "--close rst is of TCP, and a Unix socket knows no RST",
            (None, _, Some(_)) => "--source-ip is of TCP, and a Unix socket has no addresses",
            _ => return Ok(()),
        };
        Err(UsageError(format!("{missing}: leave it out, or give the server's port in the URL")))
    }
}

impl TlsArgs {
    /// How TLS is asked for: by the workload, unless flags say otherwise.
    pub fn over(&self, workload: Option<&Tls>) -> Tls {
        let said = workload.cloned().unwrap_or_default();
        Tls {
            resume: said.resume || self.tls_resume,
            minimum: self.tls_min.unwrap_or(said.minimum),
            sni: self.sni.clone().or(said.sni),
            insecure: said.insecure && self.ca.is_none() || self.insecure,
        }
    }

    /// The first of its flags, if one was given.
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
    /// The CPUs of the generator.
    pub fn cpus(&self) -> Vec<usize> {
        self.cpus.as_ref().map(|list| list.0.clone()).unwrap_or_default()
    }
}
