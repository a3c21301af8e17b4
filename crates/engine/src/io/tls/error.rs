//! The errors that prevent TLS from being set up.

use std::path::PathBuf;

/// The reason why TLS cannot be set up with the given options.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// A file could not be read as PEM (base64 text between `-----BEGIN` and `-----END` lines).
    #[error("{path} holds no usable {what}: {why}; it must be PEM, with -----BEGIN {begin}-----", path = path.display())]
    InvalidPem {
        /// Path of the file.
        path: PathBuf,
        /// The expected kind of content, such as `certificate`.
        what: &'static str,
        /// The expected PEM label, as in `-----BEGIN label-----`.
        begin: &'static str,
        /// The reason why the file could not be read.
        why: String,
    },
    /// A PEM file has other content than expected.
    #[error("{path} holds no usable {what}: {why}", path = path.display())]
    WrongContent {
        /// Path of the file.
        path: PathBuf,
        /// The expected kind of content, such as `certificate`.
        what: &'static str,
        /// The actual content of the file, and advice to the user.
        why: String,
    },
    /// The server's name, which is the field, cannot occur in a certificate.
    #[error("`{0}` is not a name that a certificate could have: give the server's name by --sni NAME")]
    InvalidServerName(String),
    /// This host has no store of trusted certificate authorities.
    #[error("this host has no store of trusted authorities: install ca-certificates, or give --ca FILE, or --insecure")]
    NoTrustStore,
    /// The private key does not belong to the certificate.
    #[error(
        "the key in {key} is not the key of the certificate in {certificate}: give the key that the certificate was made \
         for, and put the client's own certificate first in its file", key = key.display(),
        certificate = certificate.display()
    )]
    WrongKey {
        /// Path of the file with the certificate.
        certificate: PathBuf,
        /// Path of the file with the key.
        key: PathBuf,
    },
    /// The private key is of a kind that is not supported.
    #[error(
        "the key in {key} cannot be used: brimful signs with RSA keys of 2,048 bits and more, EC keys on P-256 and P-384, \
         and Ed25519 keys; have a certificate made for one of these", key = key.display()
    )]
    UnsupportedKey {
        /// Path of the file with the key.
        key: PathBuf,
    },
    /// An error of rustls.
    #[error("TLS cannot be set up: {0}")]
    Config(#[from] rustls::Error),
}

impl SecurityError {
    /// Whether the user can correct the error on the command line or in a file. Otherwise, the cause is this host.
    pub fn is_usage(&self) -> bool {
        !matches!(self, SecurityError::NoTrustStore | SecurityError::Config(_))
    }
}
