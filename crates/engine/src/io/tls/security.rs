//! How the connections of a run are secured: whom they trust, as whom they come, and what they offer.

use super::identity::{self, CERTIFICATE, certificates, unusable};
use super::tickets::Tickets;
use super::verify::{Checking, Unchecked};
use brimful_core::tls::TlsVersion;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// HTTP/2 by its name in a handshake (RFC 9113 §3.1).
pub const HTTP2: &[u8] = b"h2";
/// HTTP/1 likewise; what a server speaks that chooses nothing.
const HTTP1: &[u8] = b"http/1.1";

/// Where distributions keep the certificates of the authorities that they trust: Debian, Fedora, openSUSE, Alpine.
const STORES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Names another store, to OpenSSL and to most who take its place.
const STORE_VARIABLE: &str = "SSL_CERT_FILE";

/// What a user can say about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityOptions {
    /// The server's name or address: what it is asked for, and what its certificate has to be for.
    pub name: String,
    /// PEM file of the certificates to trust in place of this host's store.
    pub authorities: Option<PathBuf>,
    /// PEM files of a client's certificate, with those that lead to its authority, and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Whether any certificate will do.
    pub insecure: bool,
    /// The oldest version.
    pub minimum: TlsVersion,
    /// Whether sessions are resumed.
    pub resume: bool,
    /// Whether it is HTTP/2 that is to be spoken inside.
    pub http2: bool,
}

/// Why connections cannot be secured like that.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// A file that could not be read as PEM.
    #[error("{path} holds no usable {what}: {why}; it is to be PEM, with -----BEGIN {begin}-----", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it was to hold.
        what: &'static str,
        /// How that begins.
        begin: &'static str,
        /// What is wrong.
        why: String,
    },
    /// A file that holds something else, or nothing.
    #[error("{path} holds no usable {what}: {why}", path = path.display())]
    Unsuitable {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What it holds, and what to do about it.
        why: String,
    },
    /// No name that a certificate could have.
    #[error("`{0}` is no name that a certificate could have: give the server's by --sni NAME")]
    Name(String),
    /// This host trusts nobody.
    #[error("this host has no store of trusted authorities: install ca-certificates, or give --ca FILE, or --insecure")]
    NoStore,
    /// The private key is not the one of the certificate.
    #[error(
        "the key in {key} is not the key of the certificate in {certificate}: give the key that the certificate was made \
         for, and put the client's own certificate first in its file", key = key.display(),
        certificate = certificate.display()
    )]
    Mismatch {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
    /// A key of a kind that cannot sign here.
    #[error(
        "the key in {key} cannot be used: brimful signs with RSA keys of 2,048 bits and more, EC keys on P-256 and P-384, \
         and Ed25519 keys; have a certificate made for one of these", key = key.display()
    )]
    KeyKind {
        /// The file with the key.
        key: PathBuf,
    },
    /// rustls refuses.
    #[error("TLS cannot be set up: {0}")]
    Config(#[from] rustls::Error),
}

impl SecurityError {
    /// Whether the command line or a file is wrong, and not the host.
    pub fn is_usage(&self) -> bool {
        !matches!(self, SecurityError::NoStore | SecurityError::Config(_))
    }
}

/// How the connections of a run are secured; each shard has a configuration of its own made of it.
#[derive(Clone)]
pub struct Security {
    config: ClientConfig,
    name: ServerName<'static>,
    /// `None` where anybody is trusted.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    named: Arc<[CertificateDer<'static>]>,
    resume: bool,
    http2: bool,
}

impl fmt::Debug for Security {
    /// Says nothing of what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Security { name, resume, http2, .. } = self;
        f.debug_struct("Security")
            .field("name", name)
            .field("resume", resume)
            .field("http2", http2)
            .finish_non_exhaustive()
    }
}

impl Security {
    /// Reads what has to be read.
    ///
    /// # Errors
    /// [`SecurityError`] when a file cannot be used, or the name is none.
    pub fn new(options: &SecurityOptions) -> Result<Security, SecurityError> {
        const VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];
        let bare = options.name.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_owned();
        let name = ServerName::try_from(bare).map_err(|_| SecurityError::Name(options.name.clone()))?;
        let provider = Arc::new(ring::default_provider());
        let versions = if options.minimum == TlsVersion::V13 { &VERSIONS[..1] } else { VERSIONS };
        let (authorities, named) = if options.insecure { (None, Vec::new()) } else { trusted(options, &provider)? };
        let named: Arc<[CertificateDer<'static>]> = named.into();
        let unchecked = Unchecked(provider.signature_verification_algorithms.supported_schemes());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(unchecked));
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let identity = identity::read(certificate, key, builder.crypto_provider())?;
                builder.with_client_cert_resolver(identity)
            }
        };
        config.alpn_protocols = vec![if options.http2 { HTTP2 } else { HTTP1 }.to_vec()];
        Ok(Security { config, name, authorities, named, resume: options.resume, http2: options.http2 })
    }

    /// The same for another server, which shows this certificate (DER) and no other for this name: whoever trusts anybody
    /// still does, and all others trust it alone.
    ///
    /// # Errors
    /// [`SecurityError`] when it is none that could be trusted.
    pub fn trusting(&self, certificate: &[u8], name: &'static str) -> Result<Security, SecurityError> {
        let name = ServerName::try_from(name).map_err(|_| SecurityError::Name(name.to_owned()))?;
        let certificate = CertificateDer::from(certificate.to_vec());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone())?;
        let authorities = match self.authorities {
            None => None,
            Some(_) => Some(verifier(roots, self.config.crypto_provider())?),
        };
        Ok(Security { name, authorities, named: [certificate].into(), ..self.clone() })
    }

    /// A configuration with tickets, and a memory for certificates, of its own.
    pub(crate) fn of_shard(&self) -> Arc<ClientConfig> {
        let mut config = self.config.clone();
        if let Some(authorities) = &self.authorities {
            let checking = Checking::new(Arc::clone(authorities), Arc::clone(&self.named));
            config.dangerous().set_certificate_verifier(Arc::new(checking));
        }
        config.resumption = Resumption::store(Arc::new(Tickets::new(self.resume)));
        Arc::new(config)
    }

    /// One that trusts anybody, to look at a server's certificates.
    pub(crate) fn unchecked(&self) -> Arc<ClientConfig> {
        Arc::new(self.config.clone())
    }

    /// The server's name.
    pub(crate) fn name(&self) -> &ServerName<'static> {
        &self.name
    }

    /// Whether it is HTTP/2 that is to be spoken inside.
    pub fn is_http2(&self) -> bool {
        self.http2
    }
}

/// Who is trusted, and what the user named for it.
type Trusted = (Option<Arc<WebPkiServerVerifier>>, Vec<CertificateDer<'static>>);

fn trusted(options: &SecurityOptions, provider: &Arc<CryptoProvider>) -> Result<Trusted, SecurityError> {
    let mut roots = RootCertStore::empty();
    let named = match &options.authorities {
        Some(path) => {
            let named = certificates(path)?;
            for certificate in &named {
                let unusable = |error: rustls::Error| unusable(path, CERTIFICATE, &error);
                roots.add(certificate.clone()).map_err(unusable)?;
            }
            named
        }
        None => {
            // Of some hundred authorities one or another is always odd, and nobody's fault here.
            roots.add_parsable_certificates(certificates(&store().ok_or(SecurityError::NoStore)?)?);
            Vec::new()
        }
    };
    Ok((Some(verifier(roots, provider)?), named))
}

fn verifier(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, SecurityError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    verifier.map_err(|error| SecurityError::Config(rustls::Error::General(error.to_string())))
}

/// This host's store of trusted authorities.
fn store() -> Option<PathBuf> {
    let named = std::env::var_os(STORE_VARIABLE).map(PathBuf::from);
    named.into_iter().chain(STORES.map(PathBuf::from)).find(|path| path.is_file())
}
