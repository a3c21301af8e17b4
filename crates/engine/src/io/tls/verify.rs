//! Verifies servers' certificates.
//!
//! - A chain that equals the one verified last is not verified again for [`VERIFIED_FOR_S`] seconds. Verifying a chain
//!   costs as much as the rest of a handshake, and a load test makes thousands of handshakes with one server per
//!   minute. Each handshake still verifies that the server has the certificate's key.
//! - A server may use an authority's certificate as its own if the user's file of trusted certificates contains it.
//!   `openssl req -x509` makes such certificates by default, and other clients accept them. The server's name is still
//!   checked.

use brimful_core::panics::lock;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::{Arc, Mutex};

/// Number of seconds after which a certificate chain is verified again.
const VERIFIED_FOR_S: u64 = 60;

/// Verifies certificates for one shard, and remembers the latest verified chain.
#[derive(Debug)]
pub struct CachingVerifier {
    authorities: Arc<WebPkiServerVerifier>,
    /// The trusted certificates from the user's file; empty without such a file.
    named: Arc<[CertificateDer<'static>]>,
    /// The certificate chain that was verified last, and the time of its verification.
    verified: Mutex<Option<(Vec<CertificateDer<'static>>, UnixTime)>>,
}

impl CachingVerifier {
    /// Creates a verifier with an empty cache.
    pub fn new(authorities: Arc<WebPkiServerVerifier>, named: Arc<[CertificateDer<'static>]>) -> CachingVerifier {
        CachingVerifier { authorities, named, verified: Mutex::new(None) }
    }

    fn is_verified(&self, end_entity: &[u8], others: &[CertificateDer<'_>], now: UnixTime) -> bool {
        let verified = lock(&self.verified);
        verified.as_ref().is_some_and(|(chain, since)| {
            let recent = (since.as_secs()..since.as_secs() + VERIFIED_FOR_S).contains(&now.as_secs());
            let shown = std::iter::once(end_entity).chain(others.iter().map(|other| &other[..]));
            recent && chain.iter().map(|known| &known[..]).eq(shown)
        })
    }
}

impl ServerCertVerifier for CachingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.is_verified(end_entity, intermediates, now) {
            return Ok(ServerCertVerified::assertion());
        }
        match self.authorities.verify_server_cert(end_entity, intermediates, name, ocsp_response, now) {
            Ok(_) => {}
            Err(error) if is_authority_certificate(&error) && self.named.iter().any(|named| named == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
            }
            Err(error) => return Err(error),
        }
        let chain = std::iter::once(end_entity).chain(intermediates).map(|shown| shown.clone().into_owned()).collect();
        *lock(&self.verified) = Some((chain, now));
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Whether verification failed because the server uses an authority's certificate as its own. The webpki library
/// reports this error, wrapped by rustls.
pub fn is_authority_certificate(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref::<webpki::Error>(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Accepts any certificate and any signature (`--insecure`). A check of the signature alone would prove nothing,
/// because anyone can sign with a certificate of their own.
#[derive(Debug)]
pub struct InsecureVerifier(pub Vec<SignatureScheme>);

impl ServerCertVerifier for InsecureVerifier {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
