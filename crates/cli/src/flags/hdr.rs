//! `--hdr FILE`: writes the response times of a Record for HdrHistogram's own tools.

use crate::exit::UsageError;
use crate::output::OutFile;
use brimful_core::record::Record;
use brimful_stats::HdrFormat;
use clap::Args;
use std::path::PathBuf;
use std::time::SystemTime;

/// The flag `--hdr`.
#[derive(Debug, Args)]
pub struct HdrArgs {
    /// Write response times for HdrHistogram's tools: FILE.hgrm by percentile, FILE.hlog by interval
    ///
    /// The times of all completed calls, from when each was due. A .hgrm file is in milliseconds, as wrk2 prints it; a .hlog
    /// file has a compressed histogram in nanoseconds for each interval.
    #[arg(long, value_name = "FILE", help_heading = "Output", hide_short_help = true)]
    pub hdr: Option<PathBuf>,
}

/// The open output files of `--hdr`.
#[derive(Debug)]
pub struct HdrFile {
    format: HdrFormat,
    file: OutFile,
}

impl HdrArgs {
    /// Opens the files if the flag is given.
    pub fn open(&self) -> anyhow::Result<Option<HdrFile>> {
        let Some(path) = &self.hdr else { return Ok(None) };
        let format = HdrFormat::from_path(path).ok_or_else(|| {
            UsageError(format!(
                "--hdr {}: unknown file extension: use .hgrm for percentiles as text, or .hlog for one histogram per \
                 interval",
                path.display()
            ))
        })?;
        Ok(Some(HdrFile { format, file: OutFile::create(path, "--hdr")? }))
    }
}

impl HdrFile {
    /// Writes the response times of the Record.
    pub fn write(self, record: &Record) -> anyhow::Result<()> {
        let started = humantime::parse_rfc3339(&record.started_at).unwrap_or(SystemTime::UNIX_EPOCH);
        let started_s = started.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        self.file.commit(&self.format.content(record, started_s)?)
    }
}
