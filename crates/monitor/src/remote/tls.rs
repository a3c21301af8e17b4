//! TLS 1.3 for connections between hosts. The monitor on the server's host (the watching side) has a certificate. The
//! load generator has the certificate of the authority that signed the watching side's certificate. A self-signed
//! certificate is its own authority.

use super::protocol::{LinkError, sanitize};
use super::secret_file::SecretFile;
use crate::MonitorError;
use brimful_core::pem::{self, PemKind};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Connection, Error, InvalidMessage, OtherError,
    RootCertStore, ServerConfig, ServerConnection,
};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The command that creates a self-signed certificate.
const MAKE_ONE: &str = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 \
                        -keyout key.pem -out cert.pem -subj /CN=brimful -addext basicConstraints=critical,CA:FALSE \
                        -addext subjectAltName=DNS:HOST,IP:ADDRESS";

/// Certificate chain and private key of the monitor on the server's host, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Path of the PEM file with the certificate and its chain to the authority.
    pub certificate: PathBuf,
    /// Path of the PEM file with the private key.
    pub key: PathBuf,
}

/// Creates the server side of TLS connections.
#[derive(Clone, Debug)]
pub struct Acceptor(Arc<ServerConfig>);

impl Acceptor {
    /// Reads the certificate and the key.
    pub fn new(identity: &Identity) -> Result<Acceptor, MonitorError> {
        let certificates = certificates(&identity.certificate)?;
        let file = SecretFile::read(&identity.key).map_err(|error| unusable(&identity.key, "private key", &error))?;
        let key = PrivateKeyDer::from_pem_slice(pem::without_bom(&file.bytes))
            .map_err(|error| unsuitable(&identity.key, &file.bytes, PemKind::PrivateKey, &error))?;
        file.require_private(&identity.key)?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key));
        let config = config.map_err(|error| unusable(&identity.certificate, "certificate for that key", &error))?;
        Ok(Acceptor(Arc::new(config)))
    }

    /// The server side of a new TLS connection.
    pub fn connection(&self) -> Result<Connection, LinkError> {
        let connection = ServerConnection::new(self.0.clone()).map_err(|error| LinkError(error.to_string()))?;
        Ok(Connection::Server(connection))
    }
}

/// The client side of a new TLS connection. The server must prove that it is `host` by a certificate of this authority.
pub fn connect(host: &str, authority: &Path) -> Result<Connection, MonitorError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority)? {
        roots.add(certificate).map_err(|error| unusable(authority, "certificate", &error))?;
    }
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| MonitorError::Unusable(format!("`{host}` is no name that a certificate could have: check it")))?;
    let connection = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map(|builder| Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
        .and_then(|config| ClientConnection::new(config, name));
    connection.map(Connection::Client).map_err(|error| unusable(authority, "authority", &error))
}

/// Turns an error of the TLS handshake into a message for the user.
pub fn explain(error: io::Error) -> LinkError {
    let Some(cause) = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) else { return error.into() };
    let advice = match cause {
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            "the other side does not speak TLS: give --watch-ca if and only if `brimful watch` has --tls-cert"
        }
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "its certificate was not signed by the given authority: copy the file that `brimful watch` has as --tls-cert, or \
             the certificate of who signed that one, and give it as --watch-ca"
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => {
            "its certificate is for another host: connect to a name or address that the certificate has, or make one \
             with this one as subjectAltName"
        }
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "its certificate has expired: make a new one"
        }
        Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) if is_of_authority(&**cause) => {
            return LinkError(format!(
                "its certificate is an authority's own, which may not serve: make one by `{MAKE_ONE}`"
            ));
        }
        Error::AlertReceived(
            AlertDescription::UnknownCA | AlertDescription::DecryptError | AlertDescription::BadCertificate,
        ) => "the other side does not trust this certificate: give it there as --watch-ca",
        _ => return LinkError(format!("TLS: {}", sanitize(&cause.to_string()))),
    };
    LinkError(advice.to_owned())
}

/// Whether the error is that the server presented an authority's certificate as its own. rustls passes on this error of
/// its library without a type, so only the text identifies it.
fn is_of_authority(cause: &dyn fmt::Debug) -> bool {
    format!("{cause:?}").contains("CaUsedAsEndEntity")
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, MonitorError> {
    let bytes = fs::read(path).map_err(|error| unusable(path, "certificate", &error))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem::without_bom(&bytes)).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(unsuitable(path, &bytes, PemKind::Certificate, &"it has none")),
        Err(error) => Err(unsuitable(path, &bytes, PemKind::Certificate, &error)),
    }
}

/// The error for a file that does not contain the wanted kind of item. It names the actual contents, if they can be
/// recognized.
fn unsuitable(path: &Path, bytes: &[u8], wanted: PemKind, error: &dyn fmt::Display) -> MonitorError {
    let what = if wanted == PemKind::Certificate { "certificate" } else { "private key" };
    match pem::explain(path, bytes, wanted) {
        Some(why) => unusable(path, what, &why),
        None => unusable(path, what, error),
    }
}

fn unusable(path: &Path, what: &str, why: &dyn fmt::Display) -> MonitorError {
    let path = path.display();
    MonitorError::Unusable(format!("{path} holds no usable {what}: {why}; it must be PEM, as created by `{MAKE_ONE}`"))
}
