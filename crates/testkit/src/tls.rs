//! A TLS server. The test defines its behaviour after the handshake.

use crate::{Identity, RawServer, Request};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The behaviour of a TLS server.
#[derive(Clone, Debug)]
pub struct TlsBehaviour {
    /// The bytes that the server sends in response to each request.
    pub response: Vec<u8>,
    /// The action of the server after a response, such as closing the connection.
    pub ending: TlsEnding,
    /// Maximum number of bytes that the server writes at once.
    pub chunk_bytes: usize,
    /// Number of bytes after which the server stops writing but keeps the connection open; `None` for no limit.
    pub stops_after: Option<usize>,
    /// Application protocols that the server supports, for their negotiation (ALPN).
    pub protocols: Vec<Vec<u8>>,
    /// Number of clients that have replied to the server's close_notify. Only [`TlsEnding::AwaitNotify`] counts them.
    pub answered: Arc<AtomicUsize>,
}

/// The action of a server after a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsEnding {
    /// Reads the next request.
    KeepAlive,
    /// Sends close_notify and closes the connection.
    NotifyAndClose,
    /// Sends close_notify and keeps the connection open.
    NotifyOnly,
    /// Sends close_notify, and closes the connection when the client has replied with close_notify or closed it, like
    /// Python's asyncio.
    AwaitNotify,
    /// Sends close_notify, then another TLS record, which violates the protocol.
    NotifyAndMore,
    /// Closes the connection without close_notify, as if it were cut.
    Cut,
    /// Sends these bytes unencrypted instead of the response.
    Raw(Vec<u8>),
}

impl TlsBehaviour {
    /// Sends this response to each request, and keeps connections open.
    pub fn with_response(response: impl Into<Vec<u8>>) -> TlsBehaviour {
        TlsBehaviour {
            response: response.into(),
            ending: TlsEnding::KeepAlive,
            chunk_bytes: usize::MAX,
            stops_after: None,
            protocols: Vec::new(),
            answered: Arc::default(),
        }
    }
}

/// The TLS configuration of a server with this certificate and key.
pub fn server_config(identity: &Identity, protocols: Vec<Vec<u8>>) -> Arc<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(&identity.certificate).expect("open the certificates of a test");
    let chain = chain.collect::<Result<_, _>>().expect("read the certificates of a test");
    let key = PrivateKeyDer::from_pem_file(&identity.key).expect("read the key of a test");
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("ring supports the default TLS versions");
    let mut config =
        builder.with_no_client_auth().with_single_cert(chain, key).expect("key and certificate are a pair");
    config.alpn_protocols = protocols;
    Arc::new(config)
}

impl RawServer {
    /// Starts a TLS server with this certificate and key.
    pub fn start_tls(identity: &Identity, behaviour: TlsBehaviour) -> RawServer {
        let config = server_config(identity, behaviour.protocols.clone());
        RawServer::start(move |connection, _| {
            let tls = ServerConnection::new(Arc::clone(&config)).expect("the configuration was already checked");
            // Ignore errors: clients may close the connection early.
            let _ = serve(connection, tls, &behaviour);
        })
    }
}

fn serve(connection: TcpStream, mut tls: ServerConnection, behaviour: &TlsBehaviour) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut wire = Wire { connection, chunk_bytes: behaviour.chunk_bytes.max(1), left: behaviour.stops_after };
    loop {
        {
            let mut reader = BufReader::new(Stream::new(&mut tls, &mut wire));
            if Request::read(&mut reader).is_none() {
                // Send the alert that is pending. Keep the connection open until the client has read it.
                while tls.wants_write() && tls.write_tls(&mut wire).is_ok() {}
                wire.connection.shutdown(Shutdown::Write)?;
                return wire.drain();
            }
        }
        if let TlsEnding::Raw(bytes) = &behaviour.ending {
            wire.write_all(bytes)?;
            return wire.drain();
        }
        if behaviour.ending == TlsEnding::AwaitNotify {
            // Send response and close_notify in one write, so that the client receives both together, even on a busy
            // host.
            tls.writer().write_all(&behaviour.response)?;
        } else {
            Stream::new(&mut tls, &mut wire).write_all(&behaviour.response)?;
        }
        match behaviour.ending {
            TlsEnding::KeepAlive => continue,
            TlsEnding::NotifyAndClose | TlsEnding::NotifyOnly | TlsEnding::AwaitNotify | TlsEnding::NotifyAndMore => {
                tls.send_close_notify();
                let mut records = Vec::new();
                while tls.wants_write() {
                    tls.write_tls(&mut records)?;
                }
                wire.write_all(&records)?;
            }
            TlsEnding::Cut | TlsEnding::Raw(_) => {}
        }
        if behaviour.ending == TlsEnding::AwaitNotify {
            // Reading returns 0 only after a close_notify. If the connection ends without one, reading fails.
            let end = Stream::new(&mut tls, &mut wire).read(&mut [0; 64]);
            behaviour.answered.fetch_add(usize::from(matches!(end, Ok(0))), Ordering::SeqCst);
            return Ok(());
        }
        if behaviour.ending == TlsEnding::NotifyAndMore {
            wire.write_all(b"\x17\x03\x03\x00\x05hello")?;
        } else if behaviour.ending != TlsEnding::NotifyOnly {
            wire.connection.shutdown(Shutdown::Write)?;
        }
        return wire.drain();
    }
}

/// A connection with a limit on the size of each write.
struct Wire {
    connection: TcpStream,
    chunk_bytes: usize,
    left: Option<usize>,
}

impl Wire {
    /// Waits until the client closes the connection.
    fn drain(&mut self) -> io::Result<()> {
        io::copy(&mut self.connection, &mut io::sink()).map(drop)
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.connection.read(buffer)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(self.chunk_bytes).min(self.left.unwrap_or(usize::MAX));
        if length == 0 && !bytes.is_empty() {
            self.drain()?;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let written = self.connection.write(&bytes[..length])?;
        self.left = self.left.map(|left| left - written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.connection.flush()
    }
}
