//! Which formats a log has: found out from a sample of its lines, or given.

use crate::entry::{Line, Malformed, Scratch};
use crate::error::LogError;
use crate::format::{Format, Parsed, docker, finished};
use brimful_core::profile::FormatShare;
use brimful_core::text::one_line;
use std::borrow::Cow;

/// Whole numbers after the fields of Combined are microseconds, unless half of them are less than this: no server
/// answers so fast, while whole seconds are mostly 0.
const LEAST_MICROSECONDS: u64 = 20;

/// The formats of one log, the likeliest first, with how many lines each has read.
#[derive(Clone, Debug)]
pub struct Formats {
    formats: Vec<Counted>,
    /// That which read the last line.
    current: usize,
}

#[derive(Clone, Debug)]
struct Counted {
    format: Format,
    /// Requests that it has read.
    lines: u64,
}

impl Counted {
    #[inline]
    fn finished<'a>(&mut self, parsed: &Parsed<'a>, place: &'a mut Vec<u8>) -> Line<'a> {
        self.lines += u64::from(matches!(parsed, Parsed::Found(_)));
        finished(parsed, place)
    }
}

impl Formats {
    /// These, the likeliest first.
    pub fn given(formats: Vec<Format>) -> Formats {
        Formats { formats: formats.into_iter().map(|format| Counted { format, lines: 0 }).collect(), current: 0 }
    }

    /// Looks at some lines (without newline) and keeps those formats that read any of them, the one that reads most
    /// first; of formats that read the same lines, the most particular.
    pub fn detect(sample: &[&[u8]]) -> Result<Formats, LogError> {
        let lines: Vec<Cow<'_, [u8]>> = sample.iter().map(|line| without_wrapping(line)).collect();
        let lines: Vec<&[u8]> = lines.iter().map(|line| &**line).filter(|line| !line.trim_ascii().is_empty()).collect();
        if lines.is_empty() {
            return Err(LogError::Empty("it has no line, so there is no format to find out".to_owned()));
        }
        let mut candidates: Vec<Candidate> =
            Format::candidates().into_iter().map(|f| Candidate::new(f, &lines)).collect();
        let mut is_read = vec![false; lines.len()];
        let mut chosen = Vec::new();
        while let Some(best) = best(&candidates, &is_read) {
            let candidate = candidates.remove(best);
            for (is_read, outcome) in is_read.iter_mut().zip(&candidate.outcomes) {
                *is_read |= *outcome != Outcome::Malformed;
            }
            chosen.push(candidate.in_seconds_if_so());
        }
        let count = is_read.iter().filter(|is_read| **is_read).count();
        if chosen.is_empty() || count * 2 < lines.len() {
            return Err(unknown(&lines));
        }
        Ok(Formats::given(chosen))
    }

    /// Adds those that are not among these, less likely than them, and what all have read.
    pub fn join(&mut self, others: Formats) {
        for other in others.formats {
            match self.formats.iter_mut().find(|known| known.format.name() == other.format.name()) {
                Some(known) => known.lines += other.lines,
                None => self.formats.push(other),
            }
        }
    }

    /// The same, as if they had not read a line.
    pub(crate) fn afresh(&self) -> Formats {
        Formats::given(self.formats.iter().map(|counted| counted.format.clone()).collect())
    }

    /// Reads a line by the format that read the last one, else by the others, and counts which. What is malformed is
    /// told by the likeliest. A line that Docker has wrapped up is read as it was before.
    pub fn read<'a>(&mut self, line: &'a [u8], scratch: &'a mut Scratch) -> Result<Line<'a>, Malformed> {
        let Scratch { bytes, line: place } = scratch;
        match docker::unwrapped(line, place) {
            None => self.read_bare(line, bytes),
            Some(inner) => self.read_bare(inner, bytes).map_err(|malformed| {
                let column = malformed.column + docker::BEGINS.len();
                Malformed { column, ..malformed }
            }),
        }
    }

    #[inline]
    fn read_bare<'a>(&mut self, line: &'a [u8], place: &'a mut Vec<u8>) -> Result<Line<'a>, Malformed> {
        let malformed = match self.formats.get_mut(self.current) {
            Some(counted) => match counted.format.parsed(line) {
                Ok(parsed) => return Ok(counted.finished(&parsed, place)),
                Err(malformed) => malformed,
            },
            None => return Err(Malformed::at(0, "a format to read it with")),
        };
        let (index, parsed) = self.parsed_by_another(line, malformed)?;
        // One that takes all sorts of fields would go on with lines that another understands better.
        if self.formats.get(index).is_some_and(|counted| !counted.format.is_loose()) {
            self.current = index;
        }
        Ok(match self.formats.get_mut(index) {
            Some(counted) => counted.finished(&parsed, place),
            None => Line::Other,
        })
    }

    /// Reads a line that the current format does not: by which format, and what. What is malformed is told by the
    /// likeliest.
    #[cold]
    fn parsed_by_another<'a>(
        &mut self,
        line: &'a [u8],
        malformed: Malformed,
    ) -> Result<(usize, Parsed<'a>), Malformed> {
        let mut told = malformed;
        for (index, counted) in self.formats.iter_mut().enumerate().filter(|(index, _)| *index != self.current) {
            match counted.format.parsed(line) {
                Ok(parsed) => return Ok((index, parsed)),
                Err(malformed) if index == 0 => told = malformed,
                Err(_) => {}
            }
        }
        Err(told)
    }

    /// What part of the requests each format has read, most first; those that have read none are not there.
    pub fn shares(&self) -> Vec<FormatShare> {
        let all: u64 = self.formats.iter().map(|counted| counted.lines).sum();
        let mut counted: Vec<&Counted> = self.formats.iter().filter(|counted| counted.lines > 0).collect();
        counted.sort_by_key(|counted| std::cmp::Reverse(counted.lines));
        let share = |counted: &Counted| counted.lines as f64 / all as f64;
        counted.iter().map(|c| FormatShare { name: c.format.name().to_owned(), share: share(c) }).collect()
    }
}

/// A line as it was before Docker wrapped it up.
fn without_wrapping(line: &[u8]) -> Cow<'_, [u8]> {
    let mut place = Vec::new();
    docker::unwrapped(line, &mut place).map_or(Cow::Borrowed(line), |inner| Cow::Owned(inner.to_vec()))
}

/// A format that is tried.
struct Candidate {
    format: Format,
    outcomes: Vec<Outcome>,
    /// In nanoseconds, of each request that has one.
    service_ns: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Entry,
    Other,
    Malformed,
}

impl Candidate {
    fn new(mut format: Format, lines: &[&[u8]]) -> Candidate {
        let (mut outcomes, mut service_ns) = (Vec::with_capacity(lines.len()), Vec::new());
        let mut scratch = Scratch::default();
        for line in lines {
            outcomes.push(match format.read(line, &mut scratch) {
                Ok(Line::Entry(entry)) => {
                    service_ns.extend(entry.service_ns);
                    Outcome::Entry
                }
                Ok(Line::Other) => Outcome::Other,
                Err(_) => Outcome::Malformed,
            });
        }
        // A `-` may be anything: a column of them is not one of times.
        let has_times = ["%D", "%T", "request_time"].iter().any(|time| format.name().contains(time));
        if has_times && service_ns.is_empty() {
            outcomes.fill(Outcome::Malformed);
        }
        Candidate { format, outcomes, service_ns }
    }

    /// What was taken for microseconds may be seconds.
    fn in_seconds_if_so(mut self) -> Format {
        let Some(base) = self.format.name().strip_suffix(" + %D") else { return self.format };
        self.service_ns.sort_unstable();
        let median = self.service_ns.get(self.service_ns.len() / 2).copied();
        let is_seconds = median.is_some_and(|ns| ns < LEAST_MICROSECONDS * 1000);
        let in_seconds = if is_seconds { Format::named(&format!("{base} + %T")) } else { None };
        in_seconds.unwrap_or(self.format)
    }
}

/// Which reads most requests of those lines that no other has read; the first of several.
fn best(candidates: &[Candidate], is_read: &[bool]) -> Option<usize> {
    let reads = |candidate: &Candidate| {
        let new = candidate.outcomes.iter().zip(is_read);
        new.filter(|(outcome, is_read)| **outcome == Outcome::Entry && !**is_read).count()
    };
    let counts = candidates.iter().map(reads).enumerate().filter(|(_, count)| *count > 0);
    counts.min_by_key(|(index, count)| (std::cmp::Reverse(*count), *index)).map(|(index, _)| index)
}

/// The error that shows a line, says which format comes nearest and where that one ends, and what to do.
fn unknown(lines: &[&[u8]]) -> LogError {
    let line = lines.iter().find(|line| !line.starts_with(b"#")).or(lines.first()).copied().unwrap_or_default();
    let start = String::from_utf8_lossy(line.get(..100).unwrap_or(line)).into_owned();
    let dots = if line.len() > 100 { "…" } else { "" };
    let mut nearest: Option<(Malformed, String)> = None;
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
        "no known format reads lines like `{}{dots}`.{nearest} Say what it is: --format takes a name ({}) or the \
         LogFormat (Apache) or log_format (nginx) string, and --format-from /etc/nginx/nginx.conf reads it from the \
         server's configuration",
        one_line(&start),
        Format::names().join(", ")
    ))
}
