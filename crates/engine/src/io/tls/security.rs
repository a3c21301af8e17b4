//! The TLS configuration of a run: trusted authorities, the client's own certificate, versions and protocols.

use super::error::SecurityError;
use super::identity::{self, CERTIFICATE, certificates, unusable};
use super::tickets::Tickets;
use super::verify::{CachingVerifier, InsecureVerifier};
use brimful_core::tls::TlsVersion;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The ALPN name of HTTP/2 (RFC 9113 §3.1).
pub const ALPN_HTTP2: &[u8] = b"h2";
/// The ALPN name of HTTP/1. HTTP/1 is also used if the server chooses no protocol.
const HTTP1: &[u8] = b"http/1.1";

/// Paths of the trusted authorities' certificates on Debian, Fedora, openSUSE and Alpine.
const STORES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// The environment variable with the path of the trusted authorities' certificates, as in OpenSSL and most TLS
/// libraries.
const STORE_VARIABLE: &str = "SSL_CERT_FILE";

/// The TLS options that a user can set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityOptions {
    /// The server's name or address. It is sent in the handshake, and the server's certificate must be valid for it.
    pub name: String,
    /// PEM file of the trusted certificates, used instead of this host's store.
    pub authorities: Option<PathBuf>,
    /// PEM files of the client's own certificate chain and of its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Whether to accept any server certificate (`--insecure`).
    pub insecure: bool,
    /// The oldest TLS version to accept.
    pub min_version: TlsVersion,
    /// Whether to resume earlier TLS sessions.
    pub resume: bool,
    /// Whether the connections use HTTP/2.
    pub http2: bool,
}

/// The TLS configuration of a run. Each shard derives its own from it.
#[derive(Clone)]
pub struct Security {
    config: ClientConfig,
    name: ServerName<'static>,
    /// Checks certificates against the trusted authorities; `None` to accept any certificate.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    /// The trusted certificates from the user's file; empty without such a file.
    named: Arc<[CertificateDer<'static>]>,
    resume: bool,
    http2: bool,
}

impl fmt::Debug for Security {
    /// Leaves out private keys and other secrets.
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
    /// Builds the configuration from the options, and reads the files that they name.
    ///
    /// # Errors
    /// [`SecurityError`] if a file or the name cannot be used.
    pub fn new(options: &SecurityOptions) -> Result<Security, SecurityError> {
        const VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];
        let bare = options.name.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_owned();
        let name = ServerName::try_from(bare).map_err(|_| SecurityError::InvalidServerName(options.name.clone()))?;
        let provider = Arc::new(ring::default_provider());
        let versions = if options.min_version == TlsVersion::V13 { &VERSIONS[..1] } else { VERSIONS };
        let (authorities, named) = if options.insecure { (None, Vec::new()) } else { trusted(options, &provider)? };
        let named: Arc<[CertificateDer<'static>]> = named.into();
        let unchecked = InsecureVerifier(provider.signature_verification_algorithms.supported_schemes());
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
        config.alpn_protocols = vec![if options.http2 { ALPN_HTTP2 } else { HTTP1 }.to_vec()];
        Ok(Security { config, name, authorities, named, resume: options.resume, http2: options.http2 })
    }

    /// Returns the same configuration for another server with this name. Only its certificate (DER) is accepted, unless
    /// this configuration accepts every certificate.
    ///
    /// # Errors
    /// [`SecurityError`] if the certificate or the name cannot be used.
    pub fn with_trusted_certificate(&self, certificate: &[u8], name: &'static str) -> Result<Security, SecurityError> {
        let name = ServerName::try_from(name).map_err(|_| SecurityError::InvalidServerName(name.to_owned()))?;
        let certificate = CertificateDer::from(certificate.to_vec());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone())?;
        let authorities = match self.authorities {
            None => None,
            Some(_) => Some(verifier(roots, self.config.crypto_provider())?),
        };
        Ok(Security { name, authorities, named: [certificate].into(), ..self.clone() })
    }

    /// The rustls configuration of one shard, with its own store of session tickets and its own cache of verified
    /// certificates.
    pub(crate) fn shard_config(&self) -> Arc<ClientConfig> {
        let mut config = self.config.clone();
        if let Some(authorities) = &self.authorities {
            let verifier = CachingVerifier::new(Arc::clone(authorities), Arc::clone(&self.named));
            config.dangerous().set_certificate_verifier(Arc::new(verifier));
        }
        config.resumption = Resumption::store(Arc::new(Tickets::new(self.resume)));
        Arc::new(config)
    }

    /// A rustls configuration that accepts any certificate, used to inspect a server's certificates.
    pub(crate) fn unchecked_config(&self) -> Arc<ClientConfig> {
        Arc::new(self.config.clone())
    }

    /// The server's name, as sent in the handshake.
    pub(crate) fn name(&self) -> &ServerName<'static> {
        &self.name
    }

    /// Whether the connections use HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.http2
    }
}

/// The verifier of server certificates (`None` to accept any), and the trusted certificates from the user's file.
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
            // Skips certificates that cannot be parsed. A system's store contains hundreds, of which a few are often
            // malformed, and the user cannot change them.
            roots.add_parsable_certificates(certificates(&store().ok_or(SecurityError::NoTrustStore)?)?);
            Vec::new()
        }
    };
    Ok((Some(verifier(roots, provider)?), named))
}

fn verifier(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, SecurityError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    verifier.map_err(|error| SecurityError::Config(rustls::Error::General(error.to_string())))
}

/// Path of this host's trusted certificates.
fn store() -> Option<PathBuf> {
    let named = std::env::var_os(STORE_VARIABLE).map(PathBuf::from);
    named.into_iter().chain(STORES.map(PathBuf::from)).find(|path| path.is_file())
}
