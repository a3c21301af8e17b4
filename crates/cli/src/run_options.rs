//! Makes the options of a run that `load`, `replay` and `survey` have in common, from the flags [`RequestArgs`].

use crate::command_line;
use crate::exit::UsageError;
use crate::flags::RequestArgs;
use brimful_core::tls::Tls;
use brimful_core::workload::Workload;
use brimful_core::{Bytes, Nanos};
use brimful_engine::{ConnectionPolicy, Security, SecurityOptions};
use brimful_http::Version;
use brimful_run::{
    Endpoint, FleetOptions, GeneratorOptions, LoadOptions, RecordOptions, RunError, RunOptions, ServerOptions,
    TlsOptions,
};
use std::time::SystemTime;

/// Duration of a load if neither `--duration` nor `--requests` is given.
pub const DEFAULT_DURATION: Nanos = Nanos::from_secs(10);
/// Time limit of a connection attempt if `--connect-timeout` is not given, except in closed loops.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(3);

/// The options of a run against this URL, with the request classes of its workload. The caller adds the load.
///
/// # Errors
/// Returns an error if flags contradict one another or the URL, or the server cannot be reached.
pub fn run_options(url: &str, args: &RequestArgs) -> anyhow::Result<RunOptions> {
    let workload = args.workload()?;
    let connections = &args.connections;
    let connect_timeout = connections.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
    let endpoint = Endpoint::resolve_at(url, &connections.connect_overrides(), connect_timeout)?;
    connections.check(&endpoint)?;
    let mut workload = workload.unwrap_or_else(|| Workload::single_class("GET", &endpoint.path));
    let tls = tls_options(&endpoint, args, &mut workload, connect_timeout)?;
    let cpus = args.generator.cpus();
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |d| d.as_micros() as u64);
    Ok(RunOptions {
        server: ServerOptions {
            endpoint,
            version: args.http,
            headers: args.headers()?,
            tls,
            connections: ConnectionPolicy {
                calls_per_connection: args.calls_per_connection()?,
                pipeline: connections.pipeline.map_or(1, |count| count.0 as usize),
                close: connections.close,
                connect_timeout: Some(connect_timeout),
                retry_closed: connections.retry_closed,
                response_timeout: connections.timeout,
                source: connections.source_ip,
                send_buffer: buffer(connections.send_buffer)?,
                receive_buffer: buffer(connections.receive_buffer)?,
                ..ConnectionPolicy::default()
            },
        },
        load: LoadOptions {
            workload,
            trace: None,
            window: DEFAULT_DURATION,
            calls: u64::MAX,
            seed: args.generator.seed.unwrap_or_else(clock),
            tick: None,
            back_off: true,
            max_redirects: None,
        },
        generator: GeneratorOptions {
            engine: args.generator.engine,
            threads: args.generator.threads.map_or(cpus.len().max(1) as u64, |count| count.0),
            cpus,
            max_rate: None,
        },
        fleet: FleetOptions::default(),
        monitor: None,
        record: RecordOptions {
            command: command_line::without_secrets(args),
            labels: args.labels()?,
            interval: Nanos::from_secs(1),
            secret_headers: args.secret_headers.clone(),
        },
    })
}

/// The TLS options for an https:// endpoint. A handshake with the server checks them.
fn tls_options(
    endpoint: &Endpoint,
    args: &RequestArgs,
    workload: &mut Workload,
    timeout: Nanos,
) -> anyhow::Result<Option<TlsOptions>> {
    if !endpoint.is_secure {
        return match args.tls.first_flag() {
            None => Ok(None),
            Some(flag) => {
                Err(UsageError(format!("{flag} needs an https:// URL, and {} is not one", endpoint.url)).into())
            }
        };
    }
    let flags = &args.tls;
    let tls = flags.override_tls(workload.tls.as_ref());
    let security = Security::new(&SecurityOptions {
        name: tls.sni.clone().unwrap_or_else(|| endpoint.host().to_owned()),
        authorities: flags.ca.clone(),
        identity: flags.cert.clone().zip(flags.key.clone()),
        insecure: tls.insecure,
        min_version: tls.minimum,
        resume: tls.resume,
        http2: args.http == Version::Http2,
    })
    .map_err(RunError::from)?;
    let negotiated = TlsOptions::negotiate(security, endpoint, timeout)?;
    workload.tls = (tls != Tls::default()).then_some(tls);
    Ok(Some(negotiated))
}

fn buffer(size: Option<Bytes>) -> anyhow::Result<Option<u32>> {
    let too_large = || UsageError("a socket's buffer must be smaller than 2 GiB: give a smaller size".to_owned());
    Ok(size.map(|size| i32::try_from(size.0).map(|bytes| bytes as u32)).transpose().map_err(|_| too_large())?)
}
