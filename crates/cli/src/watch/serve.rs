//! `brimful watch --serve`: serves samples to load generators on other hosts.

use super::args::WatchArgs;
use super::events::Events;
use crate::output::print_note;
use crate::remote::find_token;
use brimful_monitor::{Identity, MonitorConfig, MonitorServer, ServeConfig, Token};

/// A running service that sends samples to other hosts until it is dropped.
pub struct RemoteService {
    _serving: MonitorServer,
    /// A message with the server's address, and with the token if that is new.
    pub message: String,
}

/// Starts to serve if `--serve` is given, and prints the service's address on stderr.
pub fn start(args: &WatchArgs, watch: &MonitorConfig, events: &Events) -> anyhow::Result<Option<RemoteService>> {
    let Some(address) = args.remote.serve else { return Ok(None) };
    let (token, new_token) = match find_token(args.remote.token_file.as_deref())? {
        Some(token) => (token, String::new()),
        None => {
            let token = Token::generate()?;
            let new_token = format!(", token {}", token.reveal());
            (token, new_token)
        }
    };
    let identity = args.remote.tls_cert.clone().zip(args.remote.tls_key.clone());
    let identity = identity.map(|(certificate, key)| Identity { certificate, key });
    let config = ServeConfig { address, token, identity, watch: watch.clone() };
    let serving = MonitorServer::start(config, events.client_sender())?;
    let message = format!("samples are served at {}{new_token}", serving.address());
    print_note(&message);
    Ok(Some(RemoteService { _serving: serving, message }))
}
