//! Determines the formats of a log. The user specifies the formats, or they are detected from a sample of the log's
//! lines.
//!
//! - `columns` recognizes fields that were added to a known format.
//! - `units` infers the unit of durations that are whole numbers.

mod columns;
mod units;

use crate::entry::{Line, LineParseError, Scratch};
use crate::entry_text::present_fields;
use crate::error::LogError;
use crate::format::{Format, Parsed, docker, finish_line, parse_ip};
use brimful_core::profile::{FieldSample, FormatShare};
use brimful_core::text::one_line;
use columns::Inferred;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The formats of one log, the most likely first, with the number of requests that each format has read.
#[derive(Clone, Debug)]
pub struct Formats {
    formats: Vec<CountedFormat>,
    /// The index of the format that read the last line.
    current: usize,
}

#[derive(Clone, Debug)]
struct CountedFormat {
    format: Format,
    /// Number of requests that the format has read.
    requests: u64,
    /// The fields of the first request that the format has read.
    sample: Vec<FieldSample>,
    /// A note for the user about how the format reads lines.
    remark: Option<String>,
}

impl CountedFormat {
    fn new(format: Format, remark: Option<String>) -> CountedFormat {
        CountedFormat { format, requests: 0, sample: Vec::new(), remark }
    }

    #[inline]
    fn finish<'a>(&mut self, parsed: &Parsed<'a>, buffer: &'a mut Vec<u8>) -> Line<'a> {
        self.requests += u64::from(matches!(parsed, Parsed::Request(_)));
        let line = finish_line(parsed, buffer);
        if self.requests == 1 {
            self.take_sample(&line);
        }
        line
    }

    #[cold]
    fn take_sample(&mut self, line: &Line<'_>) {
        if let Line::Entry(entry) = line {
            self.sample = present_fields(entry);
        }
    }
}

impl Formats {
    /// Creates the set with the given formats, the most likely first.
    pub fn from_list(formats: Vec<Format>) -> Formats {
        Formats { formats: formats.into_iter().map(|format| CountedFormat::new(format, None)).collect(), current: 0 }
    }

    /// Detects formats from sample lines (without newlines). Keeps the formats that read at least one line, sorted by
    /// the number of lines. If several formats read the same lines, only the most specific format is kept.
    pub fn detect(sample: &[&[u8]]) -> Result<Formats, LogError> {
        let lines: Vec<Cow<'_, [u8]>> = sample.iter().map(|line| without_wrapping(line)).collect();
        let lines: Vec<&[u8]> = lines.iter().map(|line| &**line).filter(|line| !line.trim_ascii().is_empty()).collect();
        if lines.is_empty() {
            return Err(LogError::Empty("it has no line, so there is no format to find out".to_owned()));
        }
        let mut candidates = Candidate::all(&lines);
        let mut is_read = vec![false; lines.len()];
        let mut chosen = Vec::new();
        while let Some(best) = best(&candidates, &is_read) {
            let candidate = candidates.remove(best);
            for (is_read, outcome) in is_read.iter_mut().zip(&candidate.outcomes) {
                *is_read |= *outcome != Outcome::LineParseError;
            }
            let (format, remark) = units::with_unit(candidate.format, &lines);
            chosen.push(CountedFormat::new(format, candidate.remark.or(remark)));
        }
        let count = is_read.iter().filter(|is_read| **is_read).count();
        if chosen.is_empty() || count * 2 < lines.len() {
            return Err(unknown(&lines));
        }
        Ok(Formats { formats: chosen, current: 0 })
    }

    /// Merges another set into this set. Appends the formats that this set lacks, and adds the counts of the formats
    /// that both sets have.
    pub fn merge(&mut self, others: Formats) {
        for other in others.formats {
            match self.formats.iter_mut().find(|known| known.format.name() == other.format.name()) {
                Some(known) => {
                    known.requests += other.requests;
                    if known.sample.is_empty() {
                        known.sample = other.sample;
                    }
                }
                None => self.formats.push(other),
            }
        }
    }

    /// A copy of the formats with counts of zero.
    pub(crate) fn with_zero_counts(&self) -> Formats {
        let with_zero_counts =
            |counted: &CountedFormat| CountedFormat::new(counted.format.clone(), counted.remark.clone());
        Formats { formats: self.formats.iter().map(with_zero_counts).collect(), current: 0 }
    }

    /// Reads and counts a line. Docker's wrapping is removed first. The format that read the previous line is tried
    /// first, and then the other formats. If no format can read the line, the error is that of the most likely format.
    pub fn read<'a>(&mut self, line: &'a [u8], scratch: &'a mut Scratch) -> Result<Line<'a>, LineParseError> {
        let Scratch { bytes, line: place } = scratch;
        match docker::unwrap(line, place) {
            None => self.read_unwrapped(line, bytes),
            Some(inner) => self.read_unwrapped(inner, bytes).map_err(|malformed| {
                let column = malformed.column + docker::LINE_START.len();
                LineParseError { column, ..malformed }
            }),
        }
    }

    #[inline]
    fn read_unwrapped<'a>(&mut self, line: &'a [u8], place: &'a mut Vec<u8>) -> Result<Line<'a>, LineParseError> {
        let malformed = match self.formats.get_mut(self.current) {
            Some(counted) => match counted.format.read_raw(line) {
                Ok(parsed) => return Ok(counted.finish(&parsed, place)),
                Err(malformed) => malformed,
            },
            None => return Err(LineParseError::at_byte(0, "a format to read it with")),
        };
        let (index, parsed) = self.read_by_another(line, malformed)?;
        // A format that accepts any additional fields does not become the current format, because it would also read
        // lines of a more specific format.
        if self.formats.get(index).is_some_and(|counted| !counted.format.is_loose()) {
            self.current = index;
        }
        Ok(match self.formats.get_mut(index) {
            Some(counted) => counted.finish(&parsed, place),
            None => Line::Other,
        })
    }

    /// Reads a line that the current format cannot read. Returns the index of the format that read the line, or the
    /// error of the most likely format.
    #[cold]
    fn read_by_another<'a>(
        &mut self,
        line: &'a [u8],
        malformed: LineParseError,
    ) -> Result<(usize, Parsed<'a>), LineParseError> {
        let mut likeliest = malformed;
        for (index, counted) in self.formats.iter_mut().enumerate().filter(|(index, _)| *index != self.current) {
            match counted.format.read_raw(line) {
                Ok(parsed) => return Ok((index, parsed)),
                Err(malformed) if index == 0 => likeliest = malformed,
                Err(_) => {}
            }
        }
        Err(likeliest)
    }

    /// The share of all requests that each format has read, the largest first. Formats that have read no request are
    /// left out.
    pub fn shares(&self) -> Vec<FormatShare> {
        let all: u64 = self.formats.iter().map(|counted| counted.requests).sum();
        let mut counted: Vec<&CountedFormat> = self.formats.iter().filter(|counted| counted.requests > 0).collect();
        counted.sort_by_key(|counted| std::cmp::Reverse(counted.requests));
        let share = |counted: &CountedFormat| counted.requests as f64 / all as f64;
        counted.iter().map(|c| FormatShare { name: c.format.name().to_owned(), share: share(c) }).collect()
    }

    /// The fields of one request, with their values. It is the first request that was read by the format with the most
    /// requests.
    pub fn sample(&self) -> Vec<FieldSample> {
        let most = self.formats.iter().max_by_key(|counted| counted.requests);
        most.map(|counted| counted.sample.clone()).unwrap_or_default()
    }

    /// Notes on how lines were read. Only formats that have read at least one request have notes.
    pub fn remarks(&self) -> Vec<String> {
        self.formats
            .iter()
            .filter(|counted| counted.requests > 0)
            .filter_map(|counted| counted.remark.clone())
            .collect()
    }
}

/// Removes Docker's wrapping from a line.
fn without_wrapping(line: &[u8]) -> Cow<'_, [u8]> {
    let mut place = Vec::new();
    docker::unwrap(line, &mut place).map_or(Cow::Borrowed(line), |inner| Cow::Owned(inner.to_vec()))
}

/// A format that detection considers, with the results of reading the sample with it.
struct Candidate {
    format: Format,
    outcomes: Vec<Outcome>,
    remark: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Entry,
    Other,
    LineParseError,
}

impl Candidate {
    /// All formats that may match these lines, with their results, the most specific first.
    fn all(lines: &[&[u8]]) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> =
            Format::candidates().into_iter().map(|format| Candidate::new(format, lines)).collect();
        for Inferred { base_format, format, remark } in columns::inferred(lines) {
            let loose = format!("{base_format} + fields");
            let Some(place) = candidates.iter().position(|candidate| candidate.format.name() == loose) else {
                continue;
            };
            match format {
                Some(format) => candidates.insert(place, Candidate { remark, ..Candidate::new(format, lines) }),
                None => {
                    if let Some(loose) = candidates.get_mut(place) {
                        loose.remark = remark;
                    }
                }
            }
        }
        reject_host_or_client(&mut candidates, lines);
        candidates
    }

    fn new(mut format: Format, lines: &[&[u8]]) -> Candidate {
        let mut outcomes = Vec::with_capacity(lines.len());
        let mut has_service = false;
        let mut addresses = 0;
        let mut scratch = Scratch::default();
        for line in lines {
            outcomes.push(match format.read(line, &mut scratch) {
                Ok(Line::Entry(entry)) => {
                    has_service |= entry.service_ns.is_some();
                    addresses += usize::from(is_host(entry.client));
                    Outcome::Entry
                }
                Ok(Line::Other) => Outcome::Other,
                Err(_) => Outcome::LineParseError,
            });
        }
        let mut candidate = Candidate { format, outcomes, remark: None };
        if !candidate.has_read() {
            return candidate;
        }
        // A column that contains only `-` matches every notation of a duration. So a format with a duration is rejected
        // if no line contains a duration.
        let times = ["%D", "%T", "s}T", "request_time", "$duration"];
        let has_time = |name: &str| times.iter().any(|time| name.contains(time));
        let lacks_time = !has_service && has_time(candidate.format.name());
        // A format with a forwarded client is rejected if less than half of the clients are addresses or host names.
        let lacks_clients = addresses * 2 < candidate.entries() && candidate.format.name().contains("x_forwarded_for");
        if lacks_time || lacks_clients {
            candidate.reject();
        }
        candidate
    }

    /// Whether the format can read at least one line.
    fn has_read(&self) -> bool {
        self.outcomes.iter().any(|outcome| *outcome != Outcome::LineParseError)
    }

    fn reject(&mut self) {
        self.outcomes.fill(Outcome::LineParseError);
    }

    fn entries(&self) -> usize {
        self.outcomes.iter().filter(|outcome| **outcome == Outcome::Entry).count()
    }
}

/// Whether a client is an address or a host name, or is missing.
fn is_host(client: &[u8]) -> bool {
    parse_ip(client).is_some() || client.is_empty() || client.contains(&b'.')
}

/// Decides between a format that begins with a virtual host and one that begins with a forwarded client, if both read
/// the same lines. Rejects one of the two.
fn reject_host_or_client(candidates: &mut [Candidate], lines: &[&[u8]]) {
    let hosts: Vec<usize> = (0..candidates.len())
        .filter(|&index| candidates.get(index).is_some_and(|candidate| candidate.entries() > 0))
        .collect();
    for host in hosts {
        let Some(name) = candidates.get(host).map(|candidate| candidate.format.name()) else { continue };
        let Some(rest) = name.strip_prefix("%v ").or_else(|| name.strip_prefix("vhost_")) else { continue };
        let is_forwarded = |other: &Candidate| other.format.name().strip_prefix("forwarded ") == Some(rest);
        let Some(forwarded) = candidates.iter().position(is_forwarded) else { continue };
        let Ok([forwarded, host]) = candidates.get_disjoint_mut([forwarded, host]) else { continue };
        if host.entries() < forwarded.entries() {
            continue;
        }
        let rejected = if looks_forwarded(&host.format, lines) { host } else { forwarded };
        rejected.reject();
    }
}

/// Whether the values that the format `with_host` reads as virtual hosts look like forwarded clients, as in
/// `203.0.113.7 10.0.0.1 - - [`.
///
/// Virtual hosts are names, or a few addresses to which many clients send requests. Forwarded clients are many
/// addresses behind a few proxies.
fn looks_forwarded(with_host: &Format, lines: &[&[u8]]) -> bool {
    let mut format = with_host.clone();
    let mut scratch = Scratch::default();
    let mut hosts = BTreeSet::new();
    let mut clients = BTreeSet::new();
    for line in lines {
        if let Ok(Line::Entry(entry)) = format.read(line, &mut scratch) {
            clients.insert(entry.client.to_vec());
            if !entry.host.is_empty() {
                hosts.insert(entry.host.to_vec());
            }
        }
    }
    let addresses: Vec<IpAddr> = hosts.iter().filter_map(|host| parse_ip(host)).collect();
    if addresses.len() < hosts.len() {
        return false;
    }
    match addresses.as_slice() {
        [] => true,
        [host] => {
            let is_server =
                is_private(*host) && clients.iter().filter_map(|client| parse_ip(client)).any(|ip| !is_private(ip));
            clients.len() == 1 && !is_server
        }
        _ => addresses.len() >= clients.len(),
    }
}

/// Whether an address belongs to a private network.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private() || v4.is_loopback() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

/// The candidate that reads the most lines that no other candidate has read yet. If several candidates are equal,
/// returns the first.
fn best(candidates: &[Candidate], is_read: &[bool]) -> Option<usize> {
    let reads = |candidate: &Candidate| {
        let new = candidate.outcomes.iter().zip(is_read);
        new.filter(|(outcome, is_read)| **outcome == Outcome::Entry && !**is_read).count()
    };
    let counts = candidates.iter().map(reads).enumerate().filter(|(_, count)| *count > 0);
    counts.min_by_key(|(index, count)| (std::cmp::Reverse(*count), *index)).map(|(index, _)| index)
}

/// The error for an unknown format. It shows a line, the format that reads the longest part of this line, the position
/// at which this format fails, and what to do.
fn unknown(lines: &[&[u8]]) -> LogError {
    let line = lines.iter().find(|line| !line.starts_with(b"#")).or(lines.first()).copied().unwrap_or_default();
    let start = String::from_utf8_lossy(line.get(..100).unwrap_or(line)).into_owned();
    let dots = if line.len() > 100 { "…" } else { "" };
    let mut nearest: Option<(LineParseError, String)> = None;
    for mut format in Format::candidates() {
        if let Err(malformed) = format.read(line, &mut Scratch::default())
            && nearest.as_ref().is_none_or(|(best, _)| malformed.column > best.column)
        {
            nearest = Some((malformed, format.name().to_owned()));
        }
    }
    let nearest = nearest.map_or(String::new(), |(malformed, name)| {
        format!(" The nearest is {name}, which expects {} in column {}.", malformed.expected, malformed.column)
    });
    LogError::UnknownFormat(format!(
        "no known format reads lines like `{}{dots}`.{nearest} Name the format: --format takes a name ({}) or the \
         LogFormat (Apache) or log_format (nginx) string, and --format-from /etc/nginx/nginx.conf reads it from the \
         server's configuration",
        one_line(&start),
        Format::names().join(", ")
    ))
}
