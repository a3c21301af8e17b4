//! Reads certificates and private keys from files, and prepares the client's own certificate for handshakes.
//!
//! A client's certificate is sent unchecked, because the server decides whether it is valid. This allows certificates
//! of X.509 version 1, which rustls would reject; curl sends them too.

use super::error::SecurityError;
use brimful_core::pem::{self, PemKind};
use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey, SingleCertAndKey};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A certificate's name in error messages, and its PEM label.
pub(super) const CERTIFICATE: (&str, &str) = ("certificate", "CERTIFICATE");
const KEY: (&str, &str) = ("private key", "PRIVATE KEY");

/// Reads a client's certificate chain and its private key.
///
/// # Errors
/// [`SecurityError`] if a file cannot be used, or if the key does not belong to the certificate.
pub(super) fn read(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<Arc<dyn ResolvesClientCert>, SecurityError> {
    let chain = certificates(certificate)?;
    let signing = provider
        .key_provider
        .load_private_key(private_key(key)?)
        .map_err(|_| SecurityError::UnsupportedKey { key: key.to_owned() })?;
    if chain.first().is_some_and(|own| !is_key_of(&*signing, own)) {
        return Err(SecurityError::WrongKey { certificate: certificate.to_owned(), key: key.to_owned() });
    }
    Ok(Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, signing))))
}

/// Whether the certificate contains the public key of this private key. The bytes are compared, which works for every
/// version of X.509.
fn is_key_of(key: &dyn SigningKey, certificate: &CertificateDer<'_>) -> bool {
    key.public_key().is_none_or(|public| certificate.windows(public.len()).any(|window| window == &public[..]))
}

/// Reads all certificates of a PEM file; there must be at least one.
///
/// # Errors
/// [`SecurityError`] if there is no certificate, or if one cannot be read.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SecurityError> {
    let bytes = fs::read(path).map_err(|error| unusable(path, CERTIFICATE, &error))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem::without_bom(&bytes)).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(unsuitable(path, &bytes, PemKind::Certificate, &"it has none")),
        Err(error) => Err(unsuitable(path, &bytes, PemKind::Certificate, &error)),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, SecurityError> {
    let bytes = fs::read(path).map_err(|error| unusable(path, KEY, &error))?;
    PrivateKeyDer::from_pem_slice(pem::without_bom(&bytes))
        .map_err(|error| unsuitable(path, &bytes, PemKind::PrivateKey, &error))
}

fn unsuitable(path: &Path, bytes: &[u8], wanted: PemKind, error: &dyn fmt::Display) -> SecurityError {
    let kind = if wanted == PemKind::Certificate { CERTIFICATE } else { KEY };
    match pem::explain(path, bytes, wanted) {
        Some(why) => SecurityError::WrongContent { path: path.to_owned(), what: kind.0, why },
        None => unusable(path, kind, error),
    }
}

/// The error for a PEM file that cannot be used.
pub(super) fn unusable(
    path: &Path,
    (what, begin): (&'static str, &'static str),
    why: &dyn fmt::Display,
) -> SecurityError {
    SecurityError::InvalidPem { path: path.to_owned(), what, begin, why: why.to_string() }
}
