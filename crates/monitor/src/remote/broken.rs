//! Why a connection is of no more use, in words; some of them may be the other side's.

use crate::MonitorError;
use brimful_core::text::one_line;
use std::io::{self, ErrorKind};

/// Why a connection is of no more use.
#[derive(Debug)]
pub struct Broken(pub String);

impl From<MonitorError> for Broken {
    fn from(error: MonitorError) -> Broken {
        Broken(error.to_string())
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken(match error.kind() {
            ErrorKind::UnexpectedEof => "the connection was cut off".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// Words of the other side, fit for a terminal.
pub fn words(text: &str) -> String {
    one_line(text.trim()).chars().take(500).collect()
}
