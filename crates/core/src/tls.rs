//! TLS settings (`[tls]` of a workload), negotiated TLS parameters, and TLS failures.
//!
//! Sources: RFC 8446 (TLS 1.3), Rescorla 2018; RFC 5246 (TLS 1.2), Dierks & Rescorla 2008.

use crate::JsonSchema;
use crate::number::is_default;
use serde::{Deserialize, Serialize};
use std::fmt;

/// TLS settings of the connections to an `https://` URL: the table `[tls]` of a workload. A workload never contains
/// keys or certificates; only the command line can name the files that contain them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Whether a new connection resumes an earlier TLS session if the client has a session ticket. If false, every
    /// connection performs a full handshake, like that of a new user.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resume: bool,
    /// The oldest permitted version of TLS.
    #[serde(default, skip_serializing_if = "TlsVersion::is_oldest")]
    pub minimum: TlsVersion,
    /// The server name that the client sends (SNI) and that the certificate must be valid for. If absent, it is the
    /// host of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sni: Option<String>,
    /// Whether the client accepts every certificate without verification.
    #[serde(default, skip_serializing_if = "is_default")]
    pub insecure: bool,
}

/// A version of TLS that the client may require as the minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum TlsVersion {
    /// TLS 1.2 (2008).
    #[default]
    #[serde(rename = "1.2")]
    V12,
    /// TLS 1.3 (2018).
    #[serde(rename = "1.3")]
    V13,
}

impl TlsVersion {
    fn is_oldest(&self) -> bool {
        *self == TlsVersion::V12
    }
}

/// The TLS parameters that client and server negotiated in a handshake before a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TlsSpoken")]
pub struct NegotiatedTls {
    /// The TLS version that client and server negotiated, like `TLS 1.3`.
    pub version: String,
    /// Name of the cipher suite in the IANA registry.
    pub cipher_suite: String,
    /// Group of the key exchange, like `X25519`; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_exchange: Option<String>,
    /// The application protocol, if the server selected one by ALPN: `http/1.1` or `h2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// Number of calls that failed because of one kind of TLS failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TlsFailure {
    /// Identifier of the kind of failure, for programs.
    pub reason: TlsFault,
    /// Explanation for the user: what happened and what to do.
    pub message: String,
    /// Number of calls that failed for this reason.
    pub calls: u64,
}

/// The kinds of failures of a TLS handshake or a TLS stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TlsFault {
    /// The bytes that the server sent are not TLS.
    NotTls,
    /// The certificate has expired.
    CertificateExpired,
    /// The certificate is not valid yet.
    CertificateNotYetValid,
    /// The certificate is not valid for the server name.
    CertificateName,
    /// The issuer of the certificate is not trusted.
    CertificateIssuer,
    /// The certificate is invalid for another reason.
    CertificateInvalid,
    /// Client and server have no version of TLS in common.
    Version,
    /// Client and server have no cipher suite, key exchange or signature algorithm in common.
    NothingInCommon,
    /// The server requires a client certificate, or rejected the client's certificate.
    ClientCertificate,
    /// The server does not recognise the server name that the client sent.
    UnknownName,
    /// The server supports no application protocol (HTTP version) that the client offered.
    Protocol,
    /// The server closed the connection by a TLS alert that does not state a specific reason.
    Alert,
    /// The handshake was not completed within the response timeout.
    TimedOut,
    /// The stream ended without a close_notify alert, and the response does not state its length, so it may be
    /// incomplete.
    Truncated,
    /// The received data cannot be decrypted; it may have been changed in transit.
    Undecryptable,
    /// The server violated the TLS protocol in another way.
    Misbehaved,
}

impl TlsFault {
    /// All kinds of failures, in the order of their declaration.
    pub const ALL: [TlsFault; 16] = [
        TlsFault::NotTls,
        TlsFault::CertificateExpired,
        TlsFault::CertificateNotYetValid,
        TlsFault::CertificateName,
        TlsFault::CertificateIssuer,
        TlsFault::CertificateInvalid,
        TlsFault::Version,
        TlsFault::NothingInCommon,
        TlsFault::ClientCertificate,
        TlsFault::UnknownName,
        TlsFault::Protocol,
        TlsFault::Alert,
        TlsFault::TimedOut,
        TlsFault::Truncated,
        TlsFault::Undecryptable,
        TlsFault::Misbehaved,
    ];

    /// Advice for the user on how to correct the failure, without a full stop at the end.
    pub fn remedy(self) -> &'static str {
        match self {
            TlsFault::NotTls => "if it speaks plain HTTP, write http:// in place of https://",
            TlsFault::CertificateExpired => "renew it, or use --insecure to load the server anyway",
            TlsFault::CertificateNotYetValid => {
                "check this host's clock (`date -u`), or use --insecure to load the server anyway"
            }
            TlsFault::CertificateName => "use a name of the certificate in the URL or by --sni NAME, or use --insecure",
            TlsFault::CertificateIssuer => {
                "name the issuer's certificate (a self-signed one itself) by --ca FILE, make the server send the whole \
                 chain, or use --insecure"
            }
            TlsFault::CertificateInvalid => {
                "show it with `openssl s_client -connect HOST:PORT -showcerts`, or use --insecure"
            }
            TlsFault::Version => {
                "`openssl s_client -connect HOST:PORT` shows its version; brimful supports 1.2 and 1.3, with \
                 --tls-min 1.3 only 1.3"
            }
            TlsFault::NothingInCommon => {
                "allow an ECDHE suite with AES-GCM or ChaCha20 at the server, and a certificate of RSA, P-256, P-384 or \
                 Ed25519"
            }
            TlsFault::ClientCertificate => "name one that the server accepts by --cert FILE --key FILE",
            TlsFault::UnknownName => "use the name of one of its sites, in the URL or by --sni NAME",
            TlsFault::Protocol => "use another --http, or enable that version at the server",
            TlsFault::Alert => "see the server's error log",
            TlsFault::TimedOut => "check what keeps the server busy, or raise --timeout",
            TlsFault::Truncated => "make the server send close_notify, or a Content-Length",
            TlsFault::Undecryptable => "look for a proxy that changes bytes, and at the server's error log",
            TlsFault::Misbehaved => "see the server's error log, and `openssl s_client -connect HOST:PORT`",
        }
    }
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TlsFault::NotTls => "what the server sent is not TLS",
            TlsFault::CertificateExpired => "the server's certificate has expired",
            TlsFault::CertificateNotYetValid => "the server's certificate is not valid yet",
            TlsFault::CertificateName => "the server's certificate is for another name",
            TlsFault::CertificateIssuer => "the issuer of the server's certificate is not trusted",
            TlsFault::CertificateInvalid => "the server's certificate is not valid",
            TlsFault::Version => "the server speaks no version of TLS that is allowed here",
            TlsFault::NothingInCommon => {
                "the server has no cipher suite, key exchange or signature in common with brimful"
            }
            TlsFault::ClientCertificate => "the server requires a client certificate, or rejected the given one",
            TlsFault::UnknownName => "the server does not recognise the server name",
            TlsFault::Protocol => "the server does not support the requested HTTP version",
            TlsFault::Alert => "the server closed the connection by a TLS alert",
            TlsFault::TimedOut => "the TLS handshake did not finish in time",
            TlsFault::Truncated => "the TLS stream ended within a response, without close_notify",
            TlsFault::Undecryptable => "what the server sent cannot be decrypted",
            TlsFault::Misbehaved => "the server violated the TLS protocol",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_listed_once_and_in_order() {
        assert!(TlsFault::ALL.is_sorted_by(|a, b| a < b));
        assert_eq!(TlsFault::ALL.last().map(|last| *last as usize + 1), Some(TlsFault::ALL.len()));
        for fault in TlsFault::ALL {
            assert!(!fault.to_string().is_empty() && !fault.remedy().ends_with('.'), "{fault:?}");
        }
    }

    #[test]
    fn what_is_not_said_is_not_written() {
        assert_eq!(serde_json::to_string(&Tls::default()).unwrap(), "{}");
        let tls: Tls = serde_json::from_str(r#"{"resume":true,"minimum":"1.3","sni":"a.example"}"#).unwrap();
        assert_eq!((tls.resume, tls.minimum, tls.insecure), (true, TlsVersion::V13, false));
        assert_eq!(serde_json::from_str::<Tls>(&serde_json::to_string(&tls).unwrap()).unwrap(), tls);
        for wrong in [r#"{"minimum":"1.1"}"#, r#"{"key":"-----BEGIN PRIVATE KEY-----"}"#] {
            assert!(serde_json::from_str::<Tls>(wrong).is_err(), "{wrong}");
        }
    }
}
