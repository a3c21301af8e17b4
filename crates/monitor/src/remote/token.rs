//! The secret (token) that load generator and monitor share, and the proof that a side knows it.
//!
//! Neither side sends the secret: the other side may be a program of another user, who opened the port of an SSH tunnel
//! before the tunnel did. Each side chooses a nonce. Each side sends the HMAC-SHA-256 (RFC 2104), keyed by the token,
//! of the protocol, its role and both nonces. An eavesdropper cannot reuse a proof in another connection, and the
//! proofs of the two sides differ.

use super::secret_file::SecretFile;
use crate::MonitorError;
use ring::hmac;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// Name of the protocol, which is part of every proof. The number at its end increases with each incompatible change of
/// the protocol.
pub const PROTOCOL: &str = "brimful.watch/3";

/// The secret that a load generator must know: at least 128 bits as hexadecimal digits. It never appears in messages,
/// documents or debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Minimum number of digits of a token.
    const MIN_DIGITS: usize = 32;

    /// Generates a token from the kernel's random numbers.
    ///
    /// Returns an error if the kernel provides no random numbers.
    pub fn generate() -> Result<Token, MonitorError> {
        let mut bytes = [0_u8; 16];
        let given = getrandom(&mut bytes, GetRandomFlags::empty()).map_err(io::Error::from);
        match given {
            Ok(n) if n == bytes.len() => Ok(Token(hex(&bytes))),
            given => {
                let why = given.map_or_else(|error| error.to_string(), |n| format!("it gave {n} bytes of 16"));
                Err(MonitorError::Unusable(format!(
                    "the kernel gave no random token ({why}): write one of your own into a file, and give it by \
                     --token-file"
                )))
            }
        }
    }

    /// Reads a token from a file that contains nothing else.
    ///
    /// Returns an error if the file cannot be read, is not a token, or can be read by other users.
    pub fn read(path: &Path) -> Result<Token, MonitorError> {
        let named = |why: &dyn fmt::Display| MonitorError::Unusable(format!("{}: {why}", path.display()));
        let file = SecretFile::read(path).map_err(|error| named(&error))?;
        let token = String::from_utf8_lossy(brimful_core::text::strip_bom_bytes(&file.bytes))
            .parse()
            .map_err(|error: MonitorError| named(&error))?;
        file.require_private(path)?;
        Ok(token)
    }

    /// The token as text, to show it to the user.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The proof that a side knows this token. `watcher` and `generator` are the nonces of the monitor and of the load
    /// generator.
    pub(super) fn proof(&self, side: Side, watcher: &Nonce, generator: &Nonce) -> String {
        hex(hmac::sign(&self.key(), &statement(side, watcher, generator)).as_ref())
    }

    /// Whether a side's proof is valid. The duration of the check does not depend on how similar an invalid proof is to
    /// the valid proof.
    pub(super) fn proves(&self, side: Side, watcher: &Nonce, generator: &Nonce, proof: &str) -> bool {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
        let tag: Option<Vec<u8>> = proof.as_bytes().chunks(2).map(byte).collect();
        tag.is_some_and(|tag| hmac::verify(&self.key(), &statement(side, watcher, generator), &tag).is_ok())
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.0.as_bytes())
    }
}

/// One of the two sides of a connection.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// The load generator.
    Generator,
    /// The monitor on the server's host.
    Watcher,
}

/// A random number for one connection: 128 bits as hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Nonce(String);

impl Nonce {
    /// Generates a nonce from the kernel's random numbers.
    pub fn generate() -> Result<Nonce, MonitorError> {
        Token::generate().map(|Token(digits)| Nonce(digits))
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Nonce {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Nonce, Self::Error> {
        let is_one = text.len() == Token::MIN_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_one.then_some(Nonce(text)).ok_or("a nonce is 32 hexadecimal digits")
    }
}

impl From<Nonce> for String {
    fn from(Nonce(digits): Nonce) -> String {
        digits
    }
}

fn statement(side: Side, Nonce(watcher): &Nonce, Nonce(generator): &Nonce) -> Vec<u8> {
    // The words for the two sides are part of the protocol, so they must not be changed.
    let side = match side {
        Side::Generator => "client",
        Side::Watcher => "server",
    };
    format!("{PROTOCOL} {side} {watcher} {generator}").into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl FromStr for Token {
    type Err = MonitorError;

    fn from_str(text: &str) -> Result<Token, MonitorError> {
        let text = text.trim();
        if text.len() < Token::MIN_DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(MonitorError::Unusable(format!(
                "not a token: it has to be {} hexadecimal digits or more, as `openssl rand -hex 16` makes them",
                Token::MIN_DIGITS
            )));
        }
        Ok(Token(text.to_ascii_lowercase()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_long_secret_and_only_itself() {
        let (a, b) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert!(a != b && a == a.reveal().parse().unwrap());
        assert_eq!(format!("  {}\n", a.reveal().to_uppercase()).parse::<Token>().unwrap(), a);
        assert!(!format!("{a:?}").contains(a.reveal()));
        for text in ["", "123", "0123456789abcdef0123456789abcdeg", "0123456789abcdef 123456789abcdef0"] {
            assert!(text.parse::<Token>().unwrap_err().to_string().contains("openssl rand -hex 16"), "{text}");
        }
        assert!(Token::read(Path::new("/no/such/file")).unwrap_err().to_string().contains("/no/such/file"));
    }

    #[test]
    fn a_proof_is_of_one_token_one_side_and_one_connection() {
        let (token, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        let [here, there, another] = [(); 3].map(|()| Nonce::generate().unwrap());
        let proof = token.proof(Side::Generator, &here, &there);
        assert!(token.proves(Side::Generator, &here, &there, &proof) && !proof.contains(token.reveal()));
        assert!(!other.proves(Side::Generator, &here, &there, &proof));
        assert!(!token.proves(Side::Watcher, &here, &there, &proof));
        assert!(!token.proves(Side::Generator, &another, &there, &proof));
        assert!(!token.proves(Side::Generator, &here, &another, &proof));
        for wrong in ["", "0", &proof[..62], &format!("{proof}00"), &proof.replace(|_| true, "g"), "é"] {
            assert!(!token.proves(Side::Generator, &here, &there, wrong), "{wrong}");
        }
        for text in ["", "0123", "0123456789abcdef0123456789abcdeg", "0123456789abcdef0123456789abcdef0"] {
            assert!(Nonce::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, "00112233445566778899aabbccddeeff\n").unwrap();
        let read = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Token::read(&path)
        };
        for mode in [0o644, 0o640, 0o604, 0o660] {
            let error = read(mode).unwrap_err().to_string();
            assert!(error.contains(&format!("(mode 0{mode:o}): `chmod 600 {}`", path.display())), "{error}");
        }
        assert!(read(0o600).is_ok() && read(0o400).is_ok());
    }
}
