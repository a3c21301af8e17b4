//! Whether a server is the one that it says it is.
//!
//! - A certificate that was found good is not looked at again for a while, byte by byte the same as it then is: to verify
//!   a chain costs as much as the rest of a handshake, and a load has thousands of one server in a minute. That the
//!   server has the certificate's key is verified each time.
//! - An authority's own certificate that the user named as trusted may serve, as `openssl req -x509` makes such by default
//!   and other clients take them; its name is checked.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::{Arc, Mutex, PoisonError};

/// A chain is verified again after this many seconds.
const GOOD_FOR_S: u64 = 60;

/// Checks certificates for one shard.
#[derive(Debug)]
pub struct Checking {
    authorities: Arc<WebPkiServerVerifier>,
    /// What the user named.
    named: Arc<[CertificateDer<'static>]>,
    /// What the server showed the last time, and when it was found good.
    good: Mutex<Option<(Vec<CertificateDer<'static>>, UnixTime)>>,
}

impl Checking {
    pub fn new(authorities: Arc<WebPkiServerVerifier>, named: Arc<[CertificateDer<'static>]>) -> Checking {
        Checking { authorities, named, good: Mutex::new(None) }
    }

    fn is_known_good(&self, end_entity: &[u8], others: &[CertificateDer<'_>], now: UnixTime) -> bool {
        let good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        good.as_ref().is_some_and(|(chain, since)| {
            let recent = (since.as_secs()..since.as_secs() + GOOD_FOR_S).contains(&now.as_secs());
            let shown = std::iter::once(end_entity).chain(others.iter().map(|other| &other[..]));
            recent && chain.iter().map(|known| &known[..]).eq(shown)
        })
    }
}

impl ServerCertVerifier for Checking {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.is_known_good(end_entity, intermediates, now) {
            return Ok(ServerCertVerified::assertion());
        }
        match self.authorities.verify_server_cert(end_entity, intermediates, name, ocsp_response, now) {
            Ok(_) => {}
            Err(error) if is_an_authoritys(&error) && self.named.iter().any(|named| named == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
            }
            Err(error) => return Err(error),
        }
        let chain = std::iter::once(end_entity).chain(intermediates).map(|shown| shown.clone().into_owned()).collect();
        *self.good.lock().unwrap_or_else(PoisonError::into_inner) = Some((chain, now));
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

/// An authority's certificate was shown as a server's; rustls hands that on as its own library said it.
pub fn is_an_authoritys(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref::<webpki::Error>(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Takes any certificate, and any signature by it: `--insecure`. Whoever may be anybody need not have a key either.
#[derive(Debug)]
pub struct Unchecked(pub Vec<SignatureScheme>);

impl ServerCertVerifier for Unchecked {
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
