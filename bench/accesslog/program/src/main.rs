//! Writes an access log for `bench/accesslog`. Reads the properties of the log as a JSON object from standard input,
//! and prints a JSON object with the size of the written log.
#![forbid(unsafe_code)]

use brimful_testkit::logs::{Burstiness, LogFormat, LogSpec};
use serde::Deserialize;
use serde_json::json;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write, stdin};
use std::path::PathBuf;
use std::process::ExitCode;

/// Number of lines in the sample log from which the average length of a line is computed.
const SAMPLE_LINES: u64 = 20_000;

/// The properties of the log. Missing fields have the values of [`LogSpec::default`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    path: PathBuf,
    /// Approximate size of the log in bytes. For an exact number of lines, `lines` is given instead.
    bytes: Option<u64>,
    lines: Option<u64>,
    urls: Option<u32>,
    zipf: Option<f64>,
    clients: Option<u32>,
    #[serde(default)]
    sessions: bool,
    rate: Option<f64>,
    #[serde(default)]
    on_off: bool,
    #[serde(default)]
    fine: bool,
    format: Option<Format>,
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Format {
    Common,
    Combined,
    CombinedWithTime,
}

fn main() -> ExitCode {
    match write_log() {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn write_log() -> Result<serde_json::Value, Box<dyn Error>> {
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    let request: Request = serde_json::from_str(&text)?;
    let mut spec = request.spec();
    spec.lines = match (request.lines, request.bytes) {
        (Some(lines), None) => lines,
        (None, Some(bytes)) => lines_in(bytes, &spec)?,
        _ => return Err("the request needs either `lines` or `bytes`, not both".into()),
    };
    let mut file = CountingWriter { inner: File::create(&request.path)?, bytes: 0 };
    spec.write(&mut file)?;
    Ok(json!({ "bytes": file.bytes, "lines": spec.lines, "format": spec.log_format() }))
}

impl Request {
    fn spec(&self) -> LogSpec {
        let usual = LogSpec::default();
        LogSpec {
            urls: self.urls.unwrap_or(usual.urls),
            zipf: self.zipf.unwrap_or(usual.zipf),
            clients: self.clients.unwrap_or(usual.clients),
            sessions: self.sessions,
            rate: self.rate.unwrap_or(usual.rate),
            burstiness: if self.on_off { Burstiness::OnOff } else { Burstiness::None },
            seed: self.seed.unwrap_or(usual.seed),
            subsecond: self.fine,
            format: match self.format {
                Some(Format::Common) => LogFormat::Common,
                Some(Format::Combined) | None => LogFormat::Combined,
                Some(Format::CombinedWithTime) => LogFormat::CombinedWithTime,
            },
            ..usual
        }
    }
}

/// Estimates the number of lines of a log with this size in bytes.
fn lines_in(bytes: u64, spec: &LogSpec) -> io::Result<u64> {
    let mut sample = CountingWriter { inner: io::sink(), bytes: 0 };
    LogSpec { lines: SAMPLE_LINES, ..spec.clone() }.write(&mut sample)?;
    Ok((bytes as f64 / sample.bytes as f64 * SAMPLE_LINES as f64) as u64)
}

/// A writer that counts the bytes written to it.
struct CountingWriter<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
