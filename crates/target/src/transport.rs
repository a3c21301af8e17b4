//! Sends and receives on a connection's socket, with or without TLS.

use crate::certificate::{self, SelfSigned};
use crate::error::TargetError;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// The TLS configuration of a server, and its self-signed certificate.
#[derive(Debug)]
pub(crate) struct Security {
    config: Arc<ServerConfig>,
    /// The self-signed certificate, in DER.
    pub(crate) certificate: Vec<u8>,
}

impl Security {
    /// Generates a key and a certificate. The server supports HTTP/2 and HTTP/1.1, and session resumption with tickets.
    pub(crate) fn new() -> Result<Security, TargetError> {
        let failed = |why: &dyn std::fmt::Display| TargetError::Tls(why.to_string());
        let SelfSigned { certificate, key } = certificate::make().map_err(|error| failed(&error))?;
        let chain = vec![CertificateDer::from(certificate.clone())];
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config.with_no_client_auth().with_single_cert(chain, PrivatePkcs8KeyDer::from(key).into())
            })
            .map_err(|error| failed(&error))?;
        config.alpn_protocols = [&b"h2"[..], b"http/1.1"].map(<[u8]>::to_vec).to_vec();
        config.ticketer = ring::Ticketer::new().map_err(|error| failed(&error))?;
        Ok(Security { config: Arc::new(config), certificate })
    }
}

/// The transport of a connection: plain TCP, or TLS.
#[derive(Debug)]
pub(crate) enum Transport {
    Plain,
    Tls(Box<ServerConnection>),
}

impl Transport {
    /// Makes the transport of a new connection; `None` if rustls fails.
    pub(crate) fn new(security: Option<&Security>) -> Option<Transport> {
        let Some(security) = security else { return Some(Transport::Plain) };
        ServerConnection::new(Arc::clone(&security.config)).ok().map(|tls| Transport::Tls(Box::new(tls)))
    }

    /// Receives bytes, and decrypts them if the connection uses TLS. Returns an empty slice at the end of the stream.
    pub(crate) fn recv<'b>(&mut self, socket: &OwnedFd, into: &'b mut [u8]) -> Result<&'b [u8], Errno> {
        let n = match self {
            Transport::Plain => recv(socket, &mut *into, RecvFlags::empty())?.0,
            Transport::Tls(tls) => decrypted(tls, socket, into)?,
        };
        Ok(&into[..n])
    }

    /// Sends as many of the bytes as the socket accepts. With TLS, bytes may be buffered until [`Transport::flush`].
    /// Returns the number of bytes that were sent or buffered.
    pub(crate) fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Transport::Plain => send(socket, bytes, SendFlags::NOSIGNAL),
            Transport::Tls(tls) => {
                flush(tls, socket)?;
                let n = tls.writer().write(bytes).map_err(|error| errno(&error))?;
                match flush(tls, socket) {
                    Ok(()) | Err(Errno::AGAIN) => Ok(n),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Sends the buffered bytes.
    pub(crate) fn flush(&mut self, socket: &OwnedFd) -> Result<(), Errno> {
        match self {
            Transport::Plain => Ok(()),
            Transport::Tls(tls) => flush(tls, socket),
        }
    }

    /// Sends the TLS alert close_notify, if the socket accepts it now.
    pub(crate) fn send_close_notify(&mut self, socket: &OwnedFd) {
        if let Transport::Tls(tls) = self {
            tls.send_close_notify();
            // If close_notify cannot be sent, the client still notices the end of the connection.
            let _ = flush(tls, socket);
        }
    }
}

fn decrypted(tls: &mut ServerConnection, socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match tls.reader().read(into) {
            Ok(n) => return Ok(n),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The client has closed the connection without close_notify.
            Err(_) => return Ok(0),
        }
        tls.read_tls(&mut Socket(socket)).map_err(|error| errno(&error))?;
        let state = tls.process_new_packets();
        match flush(tls, socket) {
            Ok(()) | Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        // The call above has already sent the alert for this error.
        state.map_err(|_| Errno::PROTO)?;
    }
}

fn flush(tls: &mut ServerConnection, socket: &OwnedFd) -> Result<(), Errno> {
    while tls.wants_write() {
        tls.write_tls(&mut Socket(socket)).map_err(|error| errno(&error))?;
    }
    Ok(())
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// A socket that implements the traits `Read` and `Write`, which rustls needs.
struct Socket<'s>(&'s OwnedFd);

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.0, into, RecvFlags::empty())?.0)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
