//! Why TLS cannot be set up.

use std::path::PathBuf;

/// Why TLS cannot be set up with these options.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// A file that could not be read as PEM.
    #[error("{path} holds no usable {what}: {why}; it must be PEM, with -----BEGIN {begin}-----", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it should contain.
        what: &'static str,
        /// The label of its first line.
        begin: &'static str,
        /// What is wrong.
        why: String,
    },
    /// A file that contains something else, or nothing.
    #[error("{path} holds no usable {what}: {why}", path = path.display())]
    Unsuitable {
        /// The file.
        path: PathBuf,
        /// What it should contain.
        what: &'static str,
        /// What it contains, and what to do about it.
        why: String,
    },
    /// The server's name cannot be in a certificate.
    #[error("`{0}` is not a name that a certificate could have: give the server's name by --sni NAME")]
    Name(String),
    /// This host has no trusted authorities.
    #[error("this host has no store of trusted authorities: install ca-certificates, or give --ca FILE, or --insecure")]
    NoStore,
    /// The private key does not belong to the certificate.
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
    /// A kind of key that is not supported.
    #[error(
        "the key in {key} cannot be used: brimful signs with RSA keys of 2,048 bits and more, EC keys on P-256 and P-384, \
         and Ed25519 keys; have a certificate made for one of these", key = key.display()
    )]
    KeyKind {
        /// The file with the key.
        key: PathBuf,
    },
    /// An error of rustls.
    #[error("TLS cannot be set up: {0}")]
    Config(#[from] rustls::Error),
}

impl SecurityError {
    /// Whether the command line or a file is wrong, and not the host.
    pub fn is_usage(&self) -> bool {
        !matches!(self, SecurityError::NoStore | SecurityError::Config(_))
    }
}
