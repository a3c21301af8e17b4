//! What rustls says went wrong, as the kinds that a Record counts, and in words.

use super::verify::is_an_authoritys;
use brimful_core::TlsFault;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

/// Of which kind it is.
pub fn kind(error: &Error) -> TlsFault {
    match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            TlsFault::NotTls
        }
        Error::InvalidCertificate(why) => of_certificate(why),
        Error::NoCertificatesPresented | Error::UnsupportedNameType => TlsFault::CertificateInvalid,
        Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled,
        ) => TlsFault::Version,
        Error::PeerIncompatible(_) => TlsFault::NothingInCommon,
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::NoApplicationProtocol => TlsFault::Protocol,
        Error::DecryptError => TlsFault::Undecryptable,
        _ => TlsFault::Misbehaved,
    }
}

fn of_certificate(why: &CertificateError) -> TlsFault {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFault::CertificateExpired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => TlsFault::CertificateNotYetValid,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsFault::CertificateName
        }
        // An issuer of a trusted one's name that is another.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => TlsFault::CertificateIssuer,
        _ => TlsFault::CertificateInvalid,
    }
}

fn of_alert(alert: AlertDescription) -> TlsFault {
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

/// What the kind does not tell.
pub fn detail(error: &Error) -> Option<String> {
    match error {
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) => {
            Some(match presented.as_slice() {
                [] => "it names nobody as subjectAltName".to_owned(),
                names => format!("it is for {}", plain_names(names)),
            })
        }
        Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::Expired | CertificateError::NotValidYet,
        ) => None,
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            Some("its issuer has the name of a trusted one, and another key".to_owned())
        }
        Error::InvalidCertificate(CertificateError::ExpiredContext { time, not_after }) => {
            Some(format!("{} ago", days(time.as_secs().saturating_sub(not_after.as_secs()))))
        }
        Error::InvalidCertificate(CertificateError::NotValidYetContext { time, not_before }) => {
            Some(format!("it will be in {}", days(not_before.as_secs().saturating_sub(time.as_secs()))))
        }
        _ if is_an_authoritys(error) => {
            Some("it is an authority's own, which may not serve; named by --ca it may".to_owned())
        }
        Error::InvalidCertificate(why) => Some(why.to_string()),
        Error::AlertReceived(alert) => Some(format!("it sent the alert {alert:?}")),
        Error::InvalidMessage(_) | Error::DecryptError | Error::NoApplicationProtocol => None,
        other => Some(other.to_string()),
    }
}

/// As a certificate has them, like `DnsName("a.example")` and `IpAddress(127.0.0.1)`; the first few.
fn plain_names(names: &[String]) -> String {
    const FEW: usize = 5;
    let plain = |name: &String| {
        let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
        inner.trim_matches('"').to_owned()
    };
    let shown: Vec<String> = names.iter().take(FEW).map(plain).collect();
    let more = if names.len() > FEW { format!(" and {} more", names.len() - FEW) } else { String::new() };
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
    fn names_are_as_people_write_them() {
        let names = ["DnsName(\"a.example\")", "IpAddress(127.0.0.1)", "odd"].map(str::to_owned);
        assert_eq!(plain_names(&names), "a.example, 127.0.0.1, odd");
        assert_eq!(plain_names(&vec!["x".to_owned(); 7]), "x, x, x, x, x and 2 more");
        assert_eq!([days(5), days(100_000), days(1_000_000)], ["less than a day", "one day", "11 days"]);
    }

    #[test]
    fn what_a_server_says_has_a_kind() {
        let alert = |alert| kind(&Error::AlertReceived(alert));
        assert_eq!(alert(AlertDescription::CertificateRequired), TlsFault::ClientCertificate);
        assert_eq!(alert(AlertDescription::ProtocolVersion), TlsFault::Version);
        assert_eq!(alert(AlertDescription::InternalError), TlsFault::Alert);
        assert_eq!(kind(&Error::InvalidMessage(InvalidMessage::InvalidContentType)), TlsFault::NotTls);
        assert_eq!(kind(&Error::PeerSentOversizedRecord), TlsFault::Misbehaved);
    }
}
