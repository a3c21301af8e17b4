//! Finds the program that used the CPU in time steps whose utilization the requests do not explain (outliers). The data
//! are process accounting, or a log of `brimful watch`.
//!
//! The result is the program whose CPU use rises most in the outlying steps, if it explains enough of the utilization.
//! Menascé et al. (CMG 1999) found a job that used 37 % of the CPU in this way.

use crate::documents::display_name;
use crate::exit::UsageError;
use brimful_core::server::{LogLine, Programs};
use brimful_estimate::site::OutlyingStep;
use brimful_report::plan::site::SiteProgram;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Minimum share of the busy time not explained by requests that a program must account for to be named.
const MIN_EXPLAINED: f64 = 0.3;
/// Length in bytes of a record of process accounting, version 3 (`struct acct_v3` in linux/acct.h).
const RECORD: usize = 64;
/// Version of the records that a little-endian machine writes. A big-endian machine also sets bit 7.
const VERSION: u8 = 3;
/// Ticks per second in the records of process accounting.
const TICKS_PER_S: f64 = 100.0;
const FORMATS: &str = "use pacct of process accounting (version 3), or process.jsonl of `brimful watch --log`";

/// CPU time that a program used in an interval.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProgramUse {
    /// Name of the program.
    pub name: String,
    /// Start of the interval, in seconds since 1970.
    pub from_s: f64,
    /// End of the interval, in seconds since 1970.
    pub to_s: f64,
    /// CPU time in the interval, in seconds.
    pub cpu_s: f64,
}

/// Reads the file of `--programs`, or else process.jsonl in the directory of kernel.jsonl. Empty if there is no such
/// file.
pub(super) fn read(given: Option<&Path>, utilization: &Path) -> anyhow::Result<Vec<ProgramUse>> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => match process_log_beside(utilization) {
            Some(path) => path,
            None => return Ok(Vec::new()),
        },
    };
    let name = display_name(&path);
    let bytes = std::fs::read(&path)
        .map_err(|error| UsageError(format!("cannot read {name}: {error}; check its name and permissions")))?;
    Ok(parse(&bytes).map_err(|why| UsageError(format!("--programs {name}: {why}")))?)
}

/// The path of process.jsonl, the log of programs, if it is in the same directory as this kernel.jsonl.
fn process_log_beside(utilization: &Path) -> Option<PathBuf> {
    let is_log = utilization.file_name().is_some_and(|name| name == "kernel.jsonl");
    Some(utilization.with_file_name("process.jsonl")).filter(|path| is_log && path.is_file())
}

fn parse(bytes: &[u8]) -> Result<Vec<ProgramUse>, String> {
    match bytes.first() {
        None => Err(format!("it is empty: {FORMATS}")),
        Some(b'{') => parse_log(bytes),
        Some(_) => parse_accounting(bytes),
    }
}

/// Parses the lines of process.jsonl. The last line may be incomplete.
fn parse_log(bytes: &[u8]) -> Result<Vec<ProgramUse>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("{error}: {FORMATS}"))?;
    let mut found = Vec::new();
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).peekable();
    while let Some((number, line)) = lines.next() {
        let line: LogLine<Programs> = match serde_json::from_str(line) {
            Ok(line) => line,
            Err(_) if lines.peek().is_none() && number > 1 => break,
            Err(error) => return Err(format!("line {number}: {error}; {FORMATS}")),
        };
        let to: jiff::Timestamp = line.at.parse().map_err(|_| format!("line {number}: `at` is not a time"))?;
        let to_s = to.as_millisecond() as f64 / 1000.0;
        found.extend(line.figures.process.into_iter().map(|program| ProgramUse {
            name: program.name,
            from_s: to_s - line.length_s,
            to_s,
            cpu_s: program.cpu_s,
        }));
    }
    Ok(found)
}

/// Parses records of process accounting, one for each process that ended. The CPU time of a process is spread evenly
/// over its lifetime.
fn parse_accounting(bytes: &[u8]) -> Result<Vec<ProgramUse>, String> {
    let is_accounting = bytes.len().is_multiple_of(RECORD) && bytes.chunks(RECORD).all(|record| record[1] == VERSION);
    if !is_accounting {
        return Err(format!("its format is unknown: {FORMATS}"));
    }
    Ok(bytes.chunks_exact(RECORD).filter_map(process).collect())
}

fn process(record: &[u8]) -> Option<ProgramUse> {
    let u16_at = |at: usize| Some(u16::from_le_bytes(record.get(at..at + 2)?.try_into().ok()?));
    let from_s = f64::from(u32::from_le_bytes(record.get(24..28)?.try_into().ok()?));
    let elapsed = f64::from(f32::from_le_bytes(record.get(28..32)?.try_into().ok()?)) / TICKS_PER_S;
    let cpu_s = (ticks(u16_at(32)?) + ticks(u16_at(34)?)) / TICKS_PER_S;
    let name = record.get(48..64)?;
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(&name[..length]).into_owned();
    let is_sane = elapsed.is_finite() && elapsed >= 0.0 && !name.is_empty();
    // A process that ended within one tick (0.01 s) is recorded with a lifetime of 0. It is assumed to have lived for
    // one tick.
    is_sane.then(|| ProgramUse { name, from_s, to_s: from_s + elapsed.max(0.01), cpu_s })
}

/// Decodes a number of ticks in the kernel's format `comp_t`: 13 bits of a mantissa and 3 bits of an exponent to the
/// base 8.
fn ticks(packed: u16) -> f64 {
    f64::from(packed & 0x1fff) * 8_f64.powi(i32::from(packed >> 13))
}

/// The program whose CPU use rises most in the outlying time steps. `steps` has the start and length of all steps in
/// seconds, including the outlying ones.
pub(super) fn outlier_program(
    outliers: &[OutlyingStep],
    steps: &[(f64, f64)],
    uses: &[ProgramUse],
) -> Option<SiteProgram> {
    let is_outlier = |from_s: f64| outliers.iter().any(|outlier| outlier.from_s == from_s.floor() as i64);
    let (outlying, usual): (Vec<_>, Vec<_>) = steps.iter().copied().partition(|(from_s, _)| is_outlier(*from_s));
    let unexplained = outliers.iter().map(|step| step.unexplained_busy * step.seconds).sum::<f64>()
        / outliers.iter().map(|step| step.seconds).sum::<f64>();
    let mut programs: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for used in uses {
        let (then, otherwise) = programs.entry(&used.name).or_default();
        *then += cpu_time_within(used, &outlying);
        *otherwise += cpu_time_within(used, &usual);
    }
    let length = |steps: &[(f64, f64)]| steps.iter().map(|(_, seconds)| seconds).sum::<f64>();
    let (then_s, otherwise_s) = (length(&outlying), length(&usual));
    let cores = |cpu_s: f64, seconds: f64| if seconds > 0.0 { cpu_s / seconds } else { 0.0 };
    let all = programs.into_iter().map(|(name, (then, otherwise))| SiteProgram {
        name: name.to_owned(),
        cores: cores(then, then_s),
        usual_cores: cores(otherwise, otherwise_s),
    });
    let excess = |program: &SiteProgram| program.cores - program.usual_cores;
    let most = all.max_by(|a, b| excess(a).total_cmp(&excess(b)))?;
    (excess(&most) >= MIN_EXPLAINED * unexplained).then_some(most)
}

/// CPU time of a program within these time steps. The program is assumed to use the CPU evenly in its interval.
fn cpu_time_within(used: &ProgramUse, steps: &[(f64, f64)]) -> f64 {
    // The binary search works, because the time steps are sorted.
    let first = steps.partition_point(|(from, seconds)| from + seconds <= used.from_s);
    let overlapping = steps[first..].iter().take_while(|(from, _)| *from < used.to_s);
    let overlap = |(from, seconds): &(f64, f64)| (used.to_s.min(from + seconds) - used.from_s.max(*from)).max(0.0);
    used.cpu_s * overlapping.map(overlap).sum::<f64>() / (used.to_s - used.from_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of process accounting.
    fn record(name: &str, from_s: u32, elapsed_s: f32, user_ticks: u16) -> Vec<u8> {
        let mut record = vec![0; RECORD];
        record[1] = VERSION;
        record[24..28].copy_from_slice(&from_s.to_le_bytes());
        record[28..32].copy_from_slice(&(100.0 * elapsed_s).to_le_bytes());
        record[32..34].copy_from_slice(&user_ticks.to_le_bytes());
        record[48..48 + name.len()].copy_from_slice(name.as_bytes());
        record
    }

    #[test]
    fn records_of_process_accounting_are_read() {
        let bytes = [record("webalizer", 3600, 600.0, (1 << 13) | 2775), record("sh", 10, 0.0, 1)].concat();
        let found = parse(&bytes).unwrap();
        let expected = ProgramUse { name: "webalizer".to_owned(), from_s: 3600.0, to_s: 4200.0, cpu_s: 222.0 };
        assert_eq!((found.len(), &found[0]), (2, &expected));
        for bad in [&bytes[..100], b"", b"atop", b"{", b"{\"at\": 5}\n{}"] {
            assert!(parse(bad).unwrap_err().contains("pacct"), "{bad:?}");
        }
        let mut old = bytes.clone();
        old[1] = 2;
        assert!(parse(&old).is_err());
    }

    #[test]
    fn the_log_of_a_watch_is_read_if_it_is_beside_that_of_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = dir.path().join("kernel.jsonl");
        assert_eq!(read(None, &kernel).unwrap(), []);
        let line = r#"{"at":"1970-01-01T00:15:00Z","t_s":5,"length_s":60,"suspended_s":0,
            "process":[{"name":"perl","cpu_s":20},{"name":"nginx","cpu_s":3}]}"#;
        let line = line.replace('\n', "");
        std::fs::write(dir.path().join("process.jsonl"), format!("{line}\n{{\"at\":\"19")).unwrap();
        let found = read(None, &kernel).unwrap();
        let expected = ProgramUse { name: "perl".to_owned(), from_s: 840.0, to_s: 900.0, cpu_s: 20.0 };
        assert_eq!((found.len(), &found[0]), (2, &expected));
        assert_eq!(read(None, &dir.path().join("cpu.csv")).unwrap(), []);
    }

    #[test]
    fn the_program_that_explains_the_outliers_is_named() {
        let steps: Vec<(f64, f64)> = (0..96).map(|step| (900.0 * f64::from(step), 900.0)).collect();
        let outlier = |from_s| OutlyingStep { from_s, seconds: 900.0, unexplained_busy: 0.37 };
        let outliers: Vec<OutlyingStep> = (0..24).map(|hour| outlier(3600 * hour)).collect();
        let job = |hour: u32| record("webalizer", 3600 * hour, 800.0, (1 << 13) | 4162);
        let steady = |hour: u32| record("httpd", 3600 * hour, 3600.0, (1 << 13) | 8000);
        let bytes: Vec<u8> = (0..24).flat_map(|hour| [job(hour), steady(hour)]).flatten().collect();
        let uses = parse(&bytes).unwrap();
        let found = outlier_program(&outliers, &steps, &uses).unwrap();
        assert_eq!(found.name, "webalizer");
        assert!((found.cores - 0.37).abs() < 0.01 && found.usual_cores < 0.01, "{found:?}");
        // Without the job's records, no program explains the outliers.
        let others: Vec<ProgramUse> = uses.into_iter().filter(|used| used.name == "httpd").collect();
        assert_eq!(outlier_program(&outliers, &steps, &others), None);
    }
}
