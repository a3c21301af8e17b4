//! Generates a self-signed certificate and its private key in memory. The key is never written to a file. The
//! certificate has version 3 (RFC 5280 §4.1), an ECDSA key on the curve P-256, and the encoding DER (X.690).

use ring::error::Unspecified;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

/// The DNS name in the server's self-signed certificate. The certificate is also valid for 127.0.0.1 and ::1.
pub const CERTIFIED_NAME: &str = "localhost";

/// Tags of DER values.
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// Context-specific tags of DER values: the version and the extensions of a `TBSCertificate`, and the DNS name and the
/// IP address of a `GeneralName`.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;

/// DER-encoded object identifiers: ecdsa-with-SHA256, id-ecPublicKey, prime256v1, id-at-commonName,
/// id-ce-subjectAltName.
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const PRIME256V1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// A self-signed certificate and its private key, both encoded in DER. The key has the format PKCS #8.
pub(crate) struct SelfSigned {
    /// The certificate.
    pub(crate) certificate: Vec<u8>,
    /// The private key that belongs to the certificate.
    pub(crate) key: Vec<u8>,
}

/// Generates a private key and a self-signed certificate.
pub(crate) fn make() -> Result<SelfSigned, Unspecified> {
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random)?;
    let pair =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.as_ref(), &random).map_err(|_| Unspecified)?;
    let algorithm = sequence(&[&value(OBJECT, ECDSA_WITH_SHA256)]);
    let to_be_signed = to_be_signed(&algorithm, pair.public_key().as_ref());
    let signature = pair.sign(&random, &to_be_signed)?;
    let certificate = sequence(&[&to_be_signed, &algorithm, &bit_string(signature.as_ref())]);
    Ok(SelfSigned { certificate, key: key.as_ref().to_vec() })
}

fn to_be_signed(algorithm: &[u8], public_key: &[u8]) -> Vec<u8> {
    let attribute = sequence(&[&value(OBJECT, COMMON_NAME), &value(UTF8_STRING, CERTIFIED_NAME.as_bytes())]);
    let name = sequence(&[&value(SET, &attribute)]);
    // The certificate is valid from 1970 on, in case the client's clock is wrong, and never expires: this is the
    // meaning of the second date (RFC 5280 §4.1.2.5).
    let validity = sequence(&[&value(UTC_TIME, b"700101000000Z"), &value(GENERALIZED_TIME, b"99991231235959Z")]);
    let key_algorithm = sequence(&[&value(OBJECT, EC_PUBLIC_KEY), &value(OBJECT, PRIME256V1)]);
    let key = sequence(&[&key_algorithm, &bit_string(public_key)]);
    let mut loopback_v6 = [0; 16];
    loopback_v6[15] = 1;
    let names = sequence(&[
        &value(DNS_NAME, CERTIFIED_NAME.as_bytes()),
        &value(IP_ADDRESS, &[127, 0, 0, 1]),
        &value(IP_ADDRESS, &loopback_v6),
    ]);
    let extension = sequence(&[&value(OBJECT, SUBJECT_ALT_NAME), &value(OCTET_STRING, &names)]);
    let third_version = value(VERSION, &value(INTEGER, &[2]));
    let extensions = value(EXTENSIONS, &sequence(&[&extension]));
    let number = value(INTEGER, &[1]);
    sequence(&[&third_version, &number, algorithm, &name, &validity, &name, &key, &extensions])
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    value(SEQUENCE, &parts.concat())
}

/// Encodes a bit string whose number of bits is a multiple of eight.
fn bit_string(content: &[u8]) -> Vec<u8> {
    value(BIT_STRING, &[&[0], content].concat())
}

/// Encodes a DER value: the tag, the length and the content. The content must be shorter than 64 KiB.
fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let length: &[u8] = match (high, low) {
        (0, 0..=0x7f) => &[low],
        (0, _) => &[0x81, low],
        _ => &[0x82, high, low],
    };
    [&[tag], length, content].concat()
}
