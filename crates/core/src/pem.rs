//! Explains why a file is not a certificate or private key in PEM format, and names the command that converts it.
//!
//! PEM is a text format (RFC 7468) that encodes the binary format DER. PKCS#12 (`.p12`, `.pfx`) is a binary container
//! for certificates and keys. The checks examine only the first bytes of binary files.

use std::path::Path;

/// The content that a PEM file should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PemKind {
    /// One or more certificates.
    Certificate,
    /// A private key without a passphrase.
    PrivateKey,
}

/// Removes the byte order mark that some editors write at the start of a file.
pub fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Returns an explanation for the user if the file does not have the wanted kind of content: what it contains instead,
/// and how to convert it. Returns `None` if the content seems to be of the wanted kind.
pub fn explain(path: &Path, bytes: &[u8], wanted: PemKind) -> Option<String> {
    let file = quoted(path);
    let bytes = without_bom(bytes);
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Some(format!("it is text in UTF-16: write it as `iconv -f UTF-16 -t ASCII {file} > plain.pem` does"));
    }
    if bytes.first() == Some(&0x30) {
        return Some(binary(&file, bytes));
    }
    let has = |label: &str| find(bytes, format!("-----BEGIN {label}-----").as_bytes());
    match wanted {
        PemKind::PrivateKey => key(&file, bytes, has),
        PemKind::Certificate => certificate(&file, has),
    }
}

fn key(file: &str, bytes: &[u8], has: impl Fn(&str) -> bool) -> Option<String> {
    if has("ENCRYPTED PRIVATE KEY") || (find(bytes, b"Proc-Type:") && find(bytes, b"ENCRYPTED")) {
        return Some(format!(
            "its key is encrypted with a passphrase. Decrypt it by `openssl pkey -in {file} -out plain.pem`, and name \
             plain.pem instead"
        ));
    }
    if ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"].into_iter().any(&has) {
        return None;
    }
    if has("OPENSSH PRIVATE KEY") {
        return Some(format!(
            "it is a key in OpenSSH's own form. Make it PEM by `cp {file} plain.pem; ssh-keygen -p -m PKCS8 -f plain.pem`"
        ));
    }
    if has("DSA PRIVATE KEY") {
        return Some("it is a DSA key, which TLS 1.3 does not have: make an RSA or EC key".to_owned());
    }
    if has("CERTIFICATE") {
        return Some("it is a certificate: are certificate and key swapped?".to_owned());
    }
    if has("PUBLIC KEY") {
        return Some("it is a public key: name the file with the private one".to_owned());
    }
    has("EC PARAMETERS").then(|| {
        "it has the parameters of a curve, but no key: make one by `openssl ecparam -name prime256v1 -genkey`"
            .to_owned()
    })
}

fn certificate(file: &str, has: impl Fn(&str) -> bool) -> Option<String> {
    if has("CERTIFICATE") {
        return None;
    }
    if has("TRUSTED CERTIFICATE") || has("X509 CERTIFICATE") {
        return Some(format!(
            "its certificate is in another form of OpenSSL. Convert it by `openssl x509 -in {file} -out plain.pem`"
        ));
    }
    if has("PKCS7") || has("CMS") {
        return Some(format!(
            "it is a PKCS#7 bundle. Take the certificates out by `openssl pkcs7 -print_certs -in {file} -out plain.pem`"
        ));
    }
    if has("CERTIFICATE REQUEST") || has("NEW CERTIFICATE REQUEST") {
        return Some(
            "it is a request for a certificate: name the certificate that the authority made of it".to_owned(),
        );
    }
    let keys = ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY"];
    keys.into_iter().any(has).then(|| "it is a private key: are certificate and key swapped?".to_owned())
}

/// Explains what a binary file contains. A DER file is a SEQUENCE whose first element identifies the kind of content.
fn binary(file: &str, bytes: &[u8]) -> String {
    let content = match bytes.get(1) {
        Some(length) if *length < 0x80 => bytes.get(2..),
        // In the long form of a DER length, the low seven bits of this byte are the number of further bytes of the
        // length.
        Some(length) => bytes.get(2 + usize::from(length & 0x7f)..),
        None => None,
    };
    match content.unwrap_or_default() {
        // PKCS#12: the version, INTEGER 3, followed by a SEQUENCE (RFC 7292 §4).
        [0x02, 0x01, 0x03, 0x30, ..] => format!(
            "it is a PKCS#12 container. Take certificate and key out by `openssl pkcs12 -in {file} -nodes -out plain.pem`, \
             and name plain.pem for both"
        ),
        // A private key begins with its version, an INTEGER: 0 for RSA and PKCS#8, 1 for the EC format (RFC 8017, 5208,
        // 5915).
        [0x02, 0x01, 0x00 | 0x01, ..] => {
            format!("it is a private key in binary form (DER). Make it PEM by `openssl pkey -in {file} -out plain.pem`")
        }
        // An encrypted key begins with a SEQUENCE that contains an OBJECT IDENTIFIER (0x06). A certificate also begins
        // with a SEQUENCE, but with other content.
        [0x30, _, 0x06, ..] => format!(
            "its key is encrypted with a passphrase, and in binary form (DER). Decrypt it by `openssl pkey -in {file} -out \
             plain.pem`"
        ),
        [0x06, ..] => format!(
            "it is a PKCS#7 bundle in binary form (DER). Take the certificates out by `openssl pkcs7 -inform DER \
             -print_certs -in {file} -out plain.pem`"
        ),
        _ => {
            format!("it is a certificate in binary form (DER). Make it PEM by `openssl x509 -in {file} -out plain.pem`")
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

/// Quotes a path for a shell, if necessary.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(bytes: &[u8], wanted: PemKind) -> String {
        explain(Path::new("a b.pem"), bytes, wanted).unwrap_or_default()
    }

    #[test]
    fn text_of_another_kind_is_named_with_what_to_do() {
        let pem = |label: &str| format!("\u{feff}Bag Attributes\r\n-----BEGIN {label}-----\r\nAAAA\r\n");
        for (label, wanted, part) in [
            ("PRIVATE KEY", PemKind::PrivateKey, ""),
            ("RSA PRIVATE KEY", PemKind::PrivateKey, ""),
            ("CERTIFICATE", PemKind::Certificate, ""),
            ("ENCRYPTED PRIVATE KEY", PemKind::PrivateKey, "`openssl pkey -in 'a b.pem' -out plain.pem`"),
            ("RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n-----", PemKind::PrivateKey, "encrypted"),
            ("OPENSSH PRIVATE KEY", PemKind::PrivateKey, "ssh-keygen"),
            ("CERTIFICATE", PemKind::PrivateKey, "swapped"),
            ("EC PRIVATE KEY", PemKind::Certificate, "swapped"),
            ("DSA PRIVATE KEY", PemKind::PrivateKey, "TLS 1.3 does not have"),
            ("PUBLIC KEY", PemKind::PrivateKey, "public key"),
            ("EC PARAMETERS", PemKind::PrivateKey, "-genkey"),
            ("TRUSTED CERTIFICATE", PemKind::Certificate, "openssl x509"),
            ("X509 CERTIFICATE", PemKind::Certificate, "openssl x509"),
            ("PKCS7", PemKind::Certificate, "-print_certs"),
            ("CMS", PemKind::Certificate, "-print_certs"),
            ("CERTIFICATE REQUEST", PemKind::Certificate, "request"),
            ("NEW CERTIFICATE REQUEST", PemKind::Certificate, "request"),
        ] {
            let found = explained(pem(label).as_bytes(), wanted);
            assert!(found.contains(part) && found.is_empty() == part.is_empty(), "{label}: {found}");
        }
        assert_eq!(explained(b" \n", PemKind::Certificate), "");
        for utf16 in [b"\xff\xfe-\0-\0", b"\xfe\xff\0-\0-"] {
            assert!(explained(utf16, PemKind::Certificate).contains("UTF-16"));
        }
        assert_eq!(explained(b"something", PemKind::Certificate), "");
    }

    #[test]
    fn binary_files_are_named_by_how_they_begin() {
        for (bytes, part) in [
            (&[0x30, 0x82, 0x01, 0x00, 0x02, 0x01, 0x03, 0x30][..], "PKCS#12"),
            (&[0x30, 0x82, 0x01, 0x00, 0x02, 0x01, 0x00, 0x30], "private key in binary form"),
            (&[0x30, 0x77, 0x02, 0x01, 0x01, 0x04], "private key in binary form"),
            (&[0x30, 0x82, 0x01, 0x00, 0x30, 0x1c, 0x06], "encrypted"),
            (&[0x30, 0x82, 0x01, 0x00, 0x30, 0x82, 0x00, 0x80], "certificate in binary form"),
            (&[0x30, 0x82, 0x01, 0x00, 0x06, 0x09], "PKCS#7"),
            (&[0x30], "binary"),
            (&[0x30, 0x82], "binary"),
        ] {
            assert!(explained(bytes, PemKind::PrivateKey).contains(part), "{bytes:?}");
        }
    }
}
