//! Converts errors of rustls into the kinds of TLS fault that results count, and into messages.

use super::verify::is_authority_certificate;
use brimful_core::TlsFault;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

/// Returns the kind of TLS fault for an error of rustls.
pub fn classify(error: &Error) -> TlsFault {
    match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            TlsFault::NotTls
        }
        Error::InvalidCertificate(why) => certificate_fault(why),
        Error::NoCertificatesPresented | Error::UnsupportedNameType => TlsFault::CertificateInvalid,
        Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled,
        ) => TlsFault::Version,
        Error::PeerIncompatible(_) => TlsFault::NothingInCommon,
        Error::AlertReceived(alert) => alert_fault(*alert),
        Error::NoApplicationProtocol => TlsFault::Protocol,
        Error::DecryptError => TlsFault::Undecryptable,
        _ => TlsFault::Misbehaved,
    }
}

fn certificate_fault(why: &CertificateError) -> TlsFault {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFault::CertificateExpired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => TlsFault::CertificateNotYetValid,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsFault::CertificateName
        }
        // The issuer has the name of a trusted authority but another key, which shows as a bad signature.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => TlsFault::CertificateIssuer,
        _ => TlsFault::CertificateInvalid,
    }
}

fn alert_fault(alert: AlertDescription) -> TlsFault {
    match alert {
        AlertDescription::ProtocolVersion => TlsFault::Version,
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => TlsFault::NothingInCommon,
        AlertDescription::NoCertificate
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::CertificateRequired => TlsFault::ClientCertificate,
        AlertDescription::UnrecognisedName => TlsFault::UnknownName,
        AlertDescription::NoApplicationProtocol => TlsFault::Protocol,
        AlertDescription::BadRecordMac | AlertDescription::DecryptError => TlsFault::Undecryptable,
        _ => TlsFault::Alert,
    }
}

/// Describes an error in more detail than its [`TlsFault`], for messages; `None` if there are no details.
pub fn describe(error: &Error) -> Option<String> {
    match error {
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) => {
            Some(match presented.as_slice() {
                [] => "it has no subjectAltName".to_owned(),
                names => format!("it is for {}", plain_names(names)),
            })
        }
        Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::Expired | CertificateError::NotValidYet,
        ) => None,
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            Some("its issuer has the name of a trusted authority, but another key".to_owned())
        }
        Error::InvalidCertificate(CertificateError::ExpiredContext { time, not_after }) => {
            Some(format!("{} ago", days(time.as_secs().saturating_sub(not_after.as_secs()))))
        }
        Error::InvalidCertificate(CertificateError::NotValidYetContext { time, not_before }) => {
            Some(format!("it will be in {}", days(not_before.as_secs().saturating_sub(time.as_secs()))))
        }
        _ if is_authority_certificate(error) => {
            Some("it is an authority's own certificate, which a server may use only if --ca names it".to_owned())
        }
        Error::InvalidCertificate(why) => Some(why.to_string()),
        Error::AlertReceived(alert) => Some(format!("it sent the alert {alert:?}")),
        Error::InvalidMessage(_) | Error::DecryptError | Error::NoApplicationProtocol => None,
        other => Some(other.to_string()),
    }
}

/// Joins the first few names of a certificate. Strips the debug notation of rustls, `DnsName("a.example")`.
fn plain_names(names: &[String]) -> String {
    const MAX_NAMES: usize = 5;
    let plain = |name: &String| {
        let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
        inner.trim_matches('"').to_owned()
    };
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(plain).collect();
    let more = if names.len() > MAX_NAMES { format!(" and {} more", names.len() - MAX_NAMES) } else { String::new() };
    shown.join(", ") + &more
}

fn days(seconds: u64) -> String {
    match seconds / 86_400 {
        0 => "less than a day".to_owned(),
        1 => "one day".to_owned(),
        days => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_plainly() {
        let names = ["DnsName(\"a.example\")", "IpAddress(127.0.0.1)", "odd"].map(str::to_owned);
        assert_eq!(plain_names(&names), "a.example, 127.0.0.1, odd");
        assert_eq!(plain_names(&vec!["x".to_owned(); 7]), "x, x, x, x, x and 2 more");
        assert_eq!([days(5), days(100_000), days(1_000_000)], ["less than a day", "one day", "11 days"]);
    }

    #[test]
    fn errors_and_alerts_have_a_kind() {
        let alert = |alert| classify(&Error::AlertReceived(alert));
        assert_eq!(alert(AlertDescription::CertificateRequired), TlsFault::ClientCertificate);
        assert_eq!(alert(AlertDescription::ProtocolVersion), TlsFault::Version);
        assert_eq!(alert(AlertDescription::InternalError), TlsFault::Alert);
        assert_eq!(classify(&Error::InvalidMessage(InvalidMessage::InvalidContentType)), TlsFault::NotTls);
        assert_eq!(classify(&Error::PeerSentOversizedRecord), TlsFault::Misbehaved);
    }
}
