//! Labelled Tab-separated Values (ltsv.org): `label:value`, with a tab between fields. What the labels mean is in
//! [`labelled`](super::labelled), but for `host`, which is the client here.

use super::found::Parsed;
use super::labelled::{Labelled, Meaning, Name, Value};
use super::number::Unit;
use super::time::Clock;
use crate::entry::Malformed;
use memchr::memchr;

pub(crate) fn read<'a>(line: &'a [u8], clock: &mut Clock, whole: Unit) -> Result<Parsed<'a>, Malformed> {
    let mut fields = Labelled::new(whole);
    let mut at = 0;
    loop {
        let rest = line.get(at..).unwrap_or_default();
        let field = rest.get(..memchr(b'\t', rest).unwrap_or(rest.len())).unwrap_or_default();
        let label_length = field.iter().take_while(|byte| is_label(**byte)).count();
        let label = field.get(..label_length).unwrap_or_default();
        if label.is_empty() || field.get(label_length) != Some(&b':') {
            return Err(Malformed::at(at, "a label, a colon and a value"));
        }
        let raw = field.get(label_length + 1..).unwrap_or_default();
        let known = if label == b"host" { Some((Meaning::Client, 0)) } else { Name::new().with(label).meaning() };
        if let Some(known) = known {
            let value = Value { raw, is_escaped: false };
            fields.set(known, value, clock).map_err(|expected| Malformed::at(at + label_length + 1, expected))?;
        }
        if field.len() == rest.len() {
            return fields.finish().map_err(|expected| Malformed::at(line.len(), expected));
        }
        at += field.len() + 1;
    }
}

fn is_label(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}
