//! Certificates and private keys as files hold them, and the client's own ones, ready to be shown to a server.
//!
//! A client's certificate is sent as it is: whether it is good is for the server to say. So one of X.509 version 1 is
//! sent too, as curl does, although rustls would refuse it.

use super::security::SecurityError;
use brimful_core::pem::{self, Wanted};
use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey, SingleCertAndKey};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// What a file should hold, and how that begins.
pub(super) const CERTIFICATE: (&str, &str) = ("certificate", "CERTIFICATE");
const KEY: (&str, &str) = ("private key", "PRIVATE KEY");

/// A client's certificate, with those that lead to its authority, and its key.
///
/// # Errors
/// [`SecurityError`] when a file cannot be used, or the key is not the certificate's.
pub(super) fn read(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<Arc<dyn ResolvesClientCert>, SecurityError> {
    let chain = certificates(certificate)?;
    let signing = provider
        .key_provider
        .load_private_key(private_key(key)?)
        .map_err(|_| SecurityError::KeyKind { key: key.to_owned() })?;
    if chain.first().is_some_and(|own| !is_key_of(&*signing, own)) {
        return Err(SecurityError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() });
    }
    Ok(Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, signing))))
}

/// Whether the certificate has the public key of this private key. It has it byte for byte, in whatever version it is.
fn is_key_of(key: &dyn SigningKey, certificate: &CertificateDer<'_>) -> bool {
    key.public_key().is_none_or(|public| certificate.windows(public.len()).any(|window| window == &public[..]))
}

/// All certificates of a PEM file; at least one.
///
/// # Errors
/// [`SecurityError`] when there is none, or one that cannot be read.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SecurityError> {
    let bytes = fs::read(path).map_err(|error| unusable(path, CERTIFICATE, &error))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem::without_bom(&bytes)).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(unsuitable(path, &bytes, Wanted::Certificate, &"it has none")),
        Err(error) => Err(unsuitable(path, &bytes, Wanted::Certificate, &error)),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, SecurityError> {
    let bytes = fs::read(path).map_err(|error| unusable(path, KEY, &error))?;
    PrivateKeyDer::from_pem_slice(pem::without_bom(&bytes))
        .map_err(|error| unsuitable(path, &bytes, Wanted::PrivateKey, &error))
}

fn unsuitable(path: &Path, bytes: &[u8], wanted: Wanted, error: &dyn fmt::Display) -> SecurityError {
    let kind = if wanted == Wanted::Certificate { CERTIFICATE } else { KEY };
    match pem::explain(path, bytes, wanted) {
        Some(why) => SecurityError::Unsuitable { path: path.to_owned(), what: kind.0, why },
        None => unusable(path, kind, error),
    }
}

pub(super) fn unusable(
    path: &Path,
    (what, begin): (&'static str, &'static str),
    why: &dyn fmt::Display,
) -> SecurityError {
    SecurityError::File { path: path.to_owned(), what, begin, why: why.to_string() }
}
