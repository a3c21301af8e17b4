//! Recognizes fields that were added to a common log format. Determines which added field is the duration of the
//! request, and the unit of this duration.
//!
//! This module handles durations that are written with their unit, and whole numbers. A whole number may be a duration,
//! a process ID, a request count or a number of bytes. Durations with a decimal point, as nginx writes them, are
//! recognized elsewhere (`$request_time` in the formats that detection tries).

use super::units::{self, TimedRequest, UnitGuess};
use crate::format::{
    Format, TailField, TailFields, TimeUnit, has_milliseconds, has_unit, is_address_list, parse_ip, whole_number,
};
use crate::{Line, Scratch};
use std::collections::{BTreeSet, HashMap};

/// Minimum number of lines for inferring the meaning of a column from the differences between its values.
const MIN_VARIED_LINES: usize = 8;
/// Minimum number of lines for recognizing process IDs, which have few distinct values. In fewer lines, durations may
/// have few distinct values, too.
const MIN_PROCESS_LINES: usize = 32;
/// Minimum value of a number that may be the process ID of a server. Lower process IDs usually belong to the system.
const MIN_PROCESS_ID: u64 = 300;
/// Upper bound of the size of response headers, in bytes.
const MAX_HEADER_BYTES: u64 = 2_048;
/// Labels of fields that are durations, as in `rt=12`.
const DURATION_LABELS: [&str; 14] = [
    "rt",
    "request_time",
    "reqtime",
    "response_time",
    "resp_time",
    "time",
    "t",
    "took",
    "taken",
    "duration",
    "elapsed",
    "latency",
    "D",
    "T",
];

/// A format that was inferred from lines with additional fields.
pub(super) struct Inferred {
    /// The name of the common format with which the lines begin.
    pub base_format: &'static str,
    /// The format with the added fields; `None` if no added field is a duration.
    pub format: Option<Format>,
    /// A note for the user about how the fields are read.
    pub remark: Option<String>,
}

/// Infers the added fields, for each common format that reads at least one of the lines.
pub(super) fn inferred(lines: &[&[u8]]) -> Vec<Inferred> {
    Format::open_ended().filter_map(|(base, mut format)| infer(base, &mut format, lines)).collect()
}

/// A line with added fields.
struct Row<'a> {
    time_ns: i64,
    bytes: Option<u64>,
    status: u16,
    client: Vec<u8>,
    fields: Vec<TailField<'a>>,
}

/// The meaning of a column of added fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Whole numbers that may be a duration in an unknown unit.
    Whole,
    /// A duration, as a whole number of this unit.
    Time(TimeUnit),
    /// A duration that is written twice, in seconds and in microseconds.
    SecondsAndMicroseconds,
    /// A duration that is written with its unit.
    OwnUnit,
    /// A duration in milliseconds, whose unit `ms` is the next column.
    Milliseconds,
    UnitWord,
    Process,
    Keepalive,
    Sent,
    Forwarded,
    Unknown,
}

impl Role {
    fn token(self) -> &'static str {
        match self {
            Role::Time(TimeUnit::Microseconds) => "%D",
            Role::Time(TimeUnit::Milliseconds) => "%{ms}T",
            Role::Time(TimeUnit::Seconds) => "%T",
            Role::Time(TimeUnit::Nanoseconds) => "%{ns}T",
            Role::SecondsAndMicroseconds => "%T/%D",
            Role::OwnUnit => "$duration",
            Role::Milliseconds => ":response-time",
            Role::UnitWord => "ms",
            Role::Process => "%P",
            Role::Keepalive => "%k",
            Role::Sent => "%O",
            Role::Forwarded => "$http_x_forwarded_for",
            Role::Whole | Role::Unknown => "_",
        }
    }

    fn is_time(self) -> bool {
        matches!(self, Role::Time(_) | Role::SecondsAndMicroseconds | Role::OwnUnit | Role::Milliseconds)
    }
}

fn infer(base: &'static str, open: &mut Format, lines: &[&[u8]]) -> Option<Inferred> {
    let rows = rows_of_usual_shape(parse_rows(open, lines))?;
    let first = &rows.first()?.fields;
    let columns: Vec<Column<'_, '_>> = (0..first.len()).map(|place| Column { rows: &rows, place }).collect();
    let mut roles: Vec<Role> = columns.iter().map(Column::role).collect::<Option<_>>()?;
    name_unit_words(&columns, &mut roles);
    let guess = if roles.iter().any(|role| role.is_time()) { None } else { choose_duration(&columns, &mut roles) };
    let name = |roles: &[Role]| {
        let tokens: Vec<String> = first.iter().zip(roles).map(|(field, role)| column_name(field, *role)).collect();
        format!("{base} + {}", tokens.join(" "))
    };
    if !roles.iter().any(|role| role.is_time()) {
        let is_known = roles.iter().any(|role| matches!(role, Role::Process | Role::Keepalive | Role::Sent));
        let remark = "Whole numbers after the log's other fields look like process IDs, counts or bytes: none is read as the \
                              time that a request took. If one is a duration, name it with --format.";
        return is_known.then(|| Inferred { base_format: base, format: None, remark: Some(remark.to_owned()) });
    }
    let remark = guess.map(|(place, guess, requests)| remark(place, &guess, &requests, &roles, name));
    Some(Inferred { base_format: base, format: Some(Format::by_name(&name(&roles))?), remark })
}

/// Writes a note for the user: how the numbers are read, and how to choose another unit.
fn remark(
    place: usize,
    guess: &UnitGuess,
    requests: &[TimedRequest],
    roles: &[Role],
    name: impl Fn(&[Role]) -> String,
) -> String {
    let said = units::unit_remark(requests, guess.unit);
    let other = guess.other_units.first().copied().unwrap_or(match guess.unit {
        TimeUnit::Microseconds => TimeUnit::Milliseconds,
        _ => TimeUnit::Microseconds,
    });
    let mut instead = roles.to_vec();
    if let Some(role) = instead.get_mut(place) {
        *role = Role::Time(other);
    }
    let may_be = if guess.other_units.is_empty() { "If they are" } else { "They may be" };
    let end = if guess.other_units.is_empty() { "" } else { ": then" };
    let comma = if guess.other_units.is_empty() { "," } else { "" };
    format!("{said}. {may_be} {}{comma}{end} give --format '{}'.", other.name(), name(&instead))
}

/// The notation of a column within the name of a format, such as `rt=%D`.
fn column_name(field: &TailField<'_>, role: Role) -> String {
    let label = match field.label {
        [] => String::new(),
        label => format!("{}=", String::from_utf8_lossy(label)),
    };
    let token = role.token();
    if field.is_quoted { format!("{label}\"{token}\"") } else { label + token }
}

fn parse_rows<'a>(open: &mut Format, lines: &[&'a [u8]]) -> Vec<Row<'a>> {
    let mut scratch = Scratch::default();
    let mut rows = Vec::new();
    for line in lines {
        let Some(rest) = open.rest_of(line).filter(|rest| !rest.is_empty()) else { continue };
        let Ok(fields) = TailFields::new(rest, 0).collect::<Result<Vec<_>, _>>() else { continue };
        if let Ok(Line::Entry(entry)) = open.read(line, &mut scratch) {
            let time_ns = entry.time_ns;
            let bytes = entry.bytes;
            let status = entry.status;
            rows.push(Row { time_ns, bytes, status, client: entry.client.to_vec(), fields });
        }
    }
    rows
}

/// The rows whose fields have the most common combination of labels and quotes; `None` if fewer than half of all rows
/// have it.
fn rows_of_usual_shape(rows: Vec<Row<'_>>) -> Option<Vec<Row<'_>>> {
    let shape = |row: &Row<'_>| -> Vec<(Vec<u8>, bool)> {
        row.fields.iter().map(|field| (field.label.to_vec(), field.is_quoted)).collect()
    };
    let mut counts: HashMap<Vec<(Vec<u8>, bool)>, usize> = HashMap::new();
    for row in &rows {
        *counts.entry(shape(row)).or_default() += 1;
    }
    let all = rows.len();
    let (usual, count) = counts.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)))?;
    (count * 2 >= all).then(|| rows.into_iter().filter(|row| shape(row) == usual).collect())
}

/// One column of all rows.
struct Column<'r, 'a> {
    rows: &'r [Row<'a>],
    place: usize,
}

impl<'a> Column<'_, 'a> {
    fn texts(&self) -> impl Iterator<Item = &'a [u8]> {
        self.rows.iter().filter_map(|row| row.fields.get(self.place)).map(|field| field.value)
    }

    /// The whole numbers of the column, with their rows; `None` if the column also has other values.
    fn numbers(&self) -> Option<Vec<(&Row<'a>, u64)>> {
        let mut numbers = Vec::new();
        for (row, text) in self.rows.iter().zip(self.texts()) {
            match whole_number(text) {
                Some((value, length)) if length == text.len() => numbers.push((row, value)),
                _ if text == b"-" => {}
                _ => return None,
            }
        }
        Some(numbers)
    }

    /// The meaning of the column, judged by its own values only. `None` if the values have a decimal point, because
    /// such columns are recognized elsewhere.
    fn role(&self) -> Option<Role> {
        let label = self.rows.first().and_then(|row| row.fields.get(self.place)).map_or(&[][..], |field| field.label);
        let is_quoted =
            self.rows.first().and_then(|row| row.fields.get(self.place)).is_some_and(|field| field.is_quoted);
        let present = || self.texts().filter(|text| *text != b"-");
        if present().next().is_none() {
            return Some(Role::Unknown);
        }
        if present().all(is_seconds_and_microseconds) {
            return Some(Role::SecondsAndMicroseconds);
        }
        if present().all(|text| has_unit(text) && text.first().is_some_and(u8::is_ascii_digit)) {
            return Some(Role::OwnUnit);
        }
        if present()
            .all(|text| has_milliseconds(text) && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'))
        {
            return if self.is_before_ms() { Some(Role::Milliseconds) } else { None };
        }
        if is_quoted
            && present().all(|text| is_address_list(text) && parse_ip(text).is_none_or(|_| !text.ends_with(b":80")))
        {
            return Some(Role::Forwarded);
        }
        let is_labelled = !label.is_empty();
        let names_a_time = DURATION_LABELS.iter().any(|known| known.as_bytes() == label);
        Some(match self.numbers() {
            Some(_) if is_labelled && !names_a_time => Role::Unknown,
            Some(numbers) => role_of_numbers(&numbers),
            None => Role::Unknown,
        })
    }

    fn is_before_ms(&self) -> bool {
        let next = Column { rows: self.rows, place: self.place + 1 };
        next.texts().next().is_some() && next.texts().all(|text| text == b"ms")
    }
}

/// Whether a text is like `0/5040`: the same duration in seconds and in microseconds.
fn is_seconds_and_microseconds(text: &[u8]) -> bool {
    let slash = text.iter().position(|byte| *byte == b'/');
    let Some((seconds, micros)) = slash.and_then(|slash| Some((text.get(..slash)?, text.get(slash + 1..)?))) else {
        return false;
    };
    let all = |text: &[u8]| whole_number(text).filter(|(_, length)| *length == text.len()).map(|(value, _)| value);
    all(seconds).zip(all(micros)).is_some_and(|(seconds, micros)| seconds == micros / 1_000_000)
}

/// The meaning of a column of whole numbers. Recognizes numbers that are not durations, such as port numbers.
fn role_of_numbers(numbers: &[(&Row<'_>, u64)]) -> Role {
    let distinct = numbers.iter().map(|(_, value)| *value).collect::<BTreeSet<_>>();
    let count = numbers.len();
    let (Some(least), Some(most)) = (distinct.first().copied(), distinct.last().copied()) else { return Role::Unknown };
    if count >= MIN_VARIED_LINES {
        let is_narrow = least >= 100 && most < least + least / 2 && distinct.len() * 2 <= count;
        let is_shared = count >= MIN_PROCESS_LINES && least >= MIN_PROCESS_ID && distinct.len() * 8 <= count;
        let statuses = numbers.iter().filter(|(row, value)| u64::from(row.status) == *value).count();
        if statuses * 10 >= count * 9 {
            return Role::Unknown;
        }
        if is_narrow || is_shared {
            return Role::Process;
        }
        // The numbers are ephemeral ports: they are spread over the range of these ports, unlike durations.
        if count >= 2 * MIN_VARIED_LINES && least >= 32_768 && most <= 65_535 && most - least > 8_000 {
            return Role::Unknown;
        }
        if is_keepalive(numbers) {
            return Role::Keepalive;
        }
        if is_sent(numbers) {
            return Role::Sent;
        }
    }
    Role::Whole
}

/// Whether the numbers count the requests of each client's connection: 0, 1, 2, …
fn is_keepalive(numbers: &[(&Row<'_>, u64)]) -> bool {
    let mut last: HashMap<&[u8], u64> = HashMap::new();
    let mut next = 0;
    let mut others = 0;
    for (row, value) in numbers {
        if let Some(before) = last.insert(&row.client, *value)
            && *value > 0
        {
            if *value == before + 1 { next += 1 } else { others += 1 }
        }
    }
    next >= 5 && next >= 4 * others
}

/// Whether the numbers are the bytes sent, with or without response headers.
fn is_sent(numbers: &[(&Row<'_>, u64)]) -> bool {
    let pairs: Vec<(u64, u64)> = numbers.iter().filter_map(|(row, value)| Some((row.bytes?, *value))).collect();
    let distinct = pairs.iter().map(|(bytes, _)| *bytes).collect::<BTreeSet<_>>();
    let range = distinct.first().zip(distinct.last()).map_or(0, |(least, most)| most - least);
    let with_head = pairs.iter().filter(|(bytes, value)| value >= bytes && value - bytes <= MAX_HEADER_BYTES).count();
    range > 4 * MAX_HEADER_BYTES && with_head * 10 >= pairs.len() * 9
}

/// If a column contains only the word `ms`, treats it as the unit of the column before.
fn name_unit_words(columns: &[Column<'_, '_>], roles: &mut [Role]) {
    for place in 1..roles.len() {
        let is_unit = columns.get(place).is_some_and(|column| column.texts().all(|text| text == b"ms"));
        let before = roles.get(place - 1).copied();
        if is_unit && matches!(before, Some(Role::Milliseconds | Role::Whole)) {
            if let Some(role) = roles.get_mut(place) {
                *role = Role::UnitWord;
            }
            if let Some(role) = roles.get_mut(place - 1)
                && *role == Role::Whole
            {
                *role = Role::Time(TimeUnit::Milliseconds);
            }
        }
    }
}

/// Chooses the column of whole numbers that is the duration, and guesses its unit. Returns the column, the guess and
/// the requests on which the guess is based. Returns `None` if there is no guess: either two columns show the same
/// duration in two units, or no column can be a duration.
fn choose_duration(columns: &[Column<'_, '_>], roles: &mut [Role]) -> Option<(usize, UnitGuess, Vec<TimedRequest>)> {
    let places: Vec<usize> = (0..roles.len()).filter(|place| roles.get(*place) == Some(&Role::Whole)).collect();
    let numbers = |place: usize| columns.get(place).and_then(Column::numbers).unwrap_or_default();
    for coarse in &places {
        for fine in places.iter().filter(|fine| *fine != coarse) {
            if let Some(unit) = unit_of_pair(&numbers(*coarse), &numbers(*fine)) {
                set_role(roles, *fine, Role::Time(unit));
                return None;
            }
        }
    }
    // If several columns are equally likely, the first is chosen, because servers write the duration before other
    // numbers.
    let best = places
        .iter()
        .copied()
        .reduce(|best, place| if is_likelier(&numbers(place), &numbers(best)) { place } else { best })?;
    let requests: Vec<TimedRequest> = numbers(best)
        .into_iter()
        .map(|(row, value)| TimedRequest { time_ns: row.time_ns, bytes: row.bytes, value })
        .collect();
    let guess = units::guess_unit(&requests);
    set_role(roles, best, Role::Time(guess.unit));
    Some((best, guess, requests))
}

fn set_role(roles: &mut [Role], place: usize, role: Role) {
    if let Some(old) = roles.get_mut(place) {
        *old = role;
    }
}

/// The unit of the column `fine`, if the column `coarse` shows the same duration in whole seconds, as in `0 5040`. The
/// unit is microseconds or milliseconds.
fn unit_of_pair(coarse: &[(&Row<'_>, u64)], fine: &[(&Row<'_>, u64)]) -> Option<TimeUnit> {
    let per_second = |unit: TimeUnit| 1_000_000_000 / unit.ns();
    let is_unit = |unit: &TimeUnit| {
        let same = coarse.iter().zip(fine).all(|((_, seconds), (_, value))| *seconds == value / per_second(*unit));
        same && fine.iter().any(|(_, value)| *value >= 20)
    };
    // If every request took less than a second, microseconds and milliseconds both match, so the unit is unknown.
    let has_seconds = coarse.iter().any(|(_, seconds)| *seconds > 0);
    let units = [TimeUnit::Microseconds, TimeUnit::Milliseconds];
    if has_seconds && coarse.len() == fine.len() { units.into_iter().find(is_unit) } else { None }
}

/// Whether `numbers` look more like durations than `others`, the numbers of another column. The column with more
/// distinct numbers is preferred. If both have about as many distinct numbers, the column with much larger numbers is
/// preferred.
fn is_likelier(numbers: &[(&Row<'_>, u64)], others: &[(&Row<'_>, u64)]) -> bool {
    let share = distinct_share(numbers);
    let other_share = distinct_share(others);
    let is_larger = median(numbers) > median(others).saturating_mul(50);
    share > 1.3 * other_share || (is_larger && 1.3 * share > other_share)
}

/// The ratio of the number of distinct values to the number of values.
fn distinct_share(numbers: &[(&Row<'_>, u64)]) -> f64 {
    let distinct = numbers.iter().map(|(_, value)| *value).collect::<BTreeSet<_>>();
    distinct.len() as f64 / numbers.len().max(1) as f64
}

fn median(numbers: &[(&Row<'_>, u64)]) -> u64 {
    let mut values: Vec<u64> = numbers.iter().map(|(_, value)| *value).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
