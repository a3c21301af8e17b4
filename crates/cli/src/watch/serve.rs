//! `brimful watch --serve`: load generators on other hosts have samples taken here.

use super::args::WatchArgs;
use super::events::Events;
use crate::output::say;
use crate::remote::find_token;
use brimful_monitor::{Identity, MonitorConfig, ServeConfig, Serving, Token};

/// Serves until it is dropped.
pub struct Served {
    _serving: Serving,
    /// Where, and by which token if nobody knows it yet.
    pub words: String,
}

/// Begins to serve, if that is asked for, and says where on stderr.
pub fn start(args: &WatchArgs, watch: &MonitorConfig, events: &Events) -> anyhow::Result<Option<Served>> {
    let Some(address) = args.serving.serve else { return Ok(None) };
    let (token, news) = match find_token(args.serving.token_file.as_deref())? {
        Some(token) => (token, String::new()),
        None => {
            let token = Token::generate()?;
            let news = format!(", token {}", token.reveal());
            (token, news)
        }
    };
    let identity = args.serving.tls_cert.clone().zip(args.serving.tls_key.clone());
    let identity = identity.map(|(certificate, key)| Identity { certificate, key });
    let config = ServeConfig { address, token, identity, watch: watch.clone() };
    let serving = Serving::start(config, events.of_clients())?;
    let words = format!("samples are served at {}{news}", serving.address());
    say(&words);
    Ok(Some(Served { _serving: serving, words }))
}
