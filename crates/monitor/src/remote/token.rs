//! The secret that both sides of a stream share.

use crate::MonitorError;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// Who knows it may watch: at least 128 bits as hexadecimal digits. It never shows in messages, documents or the
/// debugger's output.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The fewest digits.
    const LEAST: usize = 32;

    /// A new one, from the kernel's generator.
    ///
    /// # Errors
    /// The kernel has none to give.
    pub fn generate() -> Result<Token, MonitorError> {
        let mut bytes = [0_u8; 16];
        let given = getrandom(&mut bytes, GetRandomFlags::empty()).map_err(io::Error::from);
        match given {
            Ok(n) if n == bytes.len() => Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect())),
            given => {
                let why = given.map_or_else(|error| error.to_string(), |n| format!("it gave {n} bytes of 16"));
                Err(MonitorError::Unusable(format!(
                    "the kernel gave no random token ({why}): write one of your own into a file, and give it by \
                     --token-file"
                )))
            }
        }
    }

    /// From a file that holds nothing else.
    ///
    /// # Errors
    /// It cannot be read, or is no token.
    pub fn read(path: &Path) -> Result<Token, MonitorError> {
        let named = |why: &dyn fmt::Display| MonitorError::Unusable(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
        text.parse().map_err(|error: MonitorError| named(&error))
    }

    /// The token itself, for those who are to know it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether another is the same; the time this takes says nothing of where they differ.
    pub(super) fn is(&self, other: &str) -> bool {
        let differing =
            self.0.bytes().zip(other.bytes()).fold(0, |differing, (a, b)| std::hint::black_box(differing | (a ^ b)));
        self.0.len() == other.len() && differing == 0
    }
}

impl FromStr for Token {
    type Err = MonitorError;

    fn from_str(text: &str) -> Result<Token, MonitorError> {
        let text = text.trim();
        if text.len() < Token::LEAST || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(MonitorError::Unusable(format!(
                "not a token: it has to be {} hexadecimal digits or more, as `openssl rand -hex 16` makes them",
                Token::LEAST
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

    #[test]
    fn a_token_is_long_secret_and_only_itself() {
        let (a, b) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert!(a != b && a.is(a.reveal()) && !a.is(b.reveal()));
        assert!(!a.is("") && !a.is(&a.reveal()[..31]) && !a.is(&format!("{}0", a.reveal())));
        assert_eq!(format!("  {}\n", a.reveal().to_uppercase()).parse::<Token>().unwrap(), a);
        assert!(!format!("{a:?}").contains(a.reveal()));
        for text in ["", "123", "0123456789abcdef0123456789abcdeg", "0123456789abcdef 123456789abcdef0"] {
            assert!(text.parse::<Token>().unwrap_err().to_string().contains("openssl rand -hex 16"), "{text}");
        }
        assert!(Token::read(Path::new("/no/such/file")).unwrap_err().to_string().contains("/no/such/file"));
    }
}
