//! What follows the fields of a format that is often extended: which column of it is the time that requests took, and in
//! which unit.
//!
//! Decimals like nginx's are read without this. Here are whole numbers, which may as well be a process, a connection's
//! count of requests or bytes, and durations with a unit of their own.

use super::units::{self, Guess, Timed};
use crate::format::{Format, TailField, TailFields, Unit, has_milliseconds, has_unit, ip, is_address_list, whole};
use crate::{Line, Scratch};
use std::collections::{BTreeSet, HashMap};

/// With fewer lines, what numbers are cannot be told from how they vary.
const LEAST_VARIED: usize = 8;
/// So many tell a few processes from a few durations.
const LEAST_SHARED: usize = 32;
/// The least that a process's number usually is.
const LEAST_PROCESS: u64 = 300;
/// Bytes that a head adds to a body, at most.
const LARGEST_HEAD: u64 = 2_048;
/// Labels of columns that are times.
const LABELS: [&str; 14] = [
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

/// A format that was inferred.
pub(super) struct Inferred {
    /// The format whose fields come first.
    pub base: &'static str,
    /// With what follows them; none where no column is a time.
    pub format: Option<Format>,
    /// What to know of it.
    pub remark: Option<String>,
}

/// What is inferred for each format that is often extended and reads any of the lines.
pub(super) fn inferred(lines: &[&[u8]]) -> Vec<Inferred> {
    Format::open_ended().filter_map(|(base, mut format)| infer(base, &mut format, lines)).collect()
}

/// A line with columns.
struct Row<'a> {
    time_ns: i64,
    bytes: Option<u64>,
    status: u16,
    client: Vec<u8>,
    fields: Vec<TailField<'a>>,
}

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Whole numbers that may be times.
    Whole,
    /// A time in whole numbers of a unit.
    Time(Unit),
    /// Seconds and microseconds of the same time.
    SecondsAndMicroseconds,
    /// A time with its unit.
    OwnUnit,
    /// A time whose unit is the next column.
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
            Role::Time(Unit::Microseconds) => "%D",
            Role::Time(Unit::Milliseconds) => "%{ms}T",
            Role::Time(Unit::Seconds) => "%T",
            Role::Time(Unit::Nanoseconds) => "%{ns}T",
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
    let rows = alike(rows(open, lines))?;
    let first = &rows.first()?.fields;
    let columns: Vec<Column<'_, '_>> = (0..first.len()).map(|place| Column { rows: &rows, place }).collect();
    let mut roles: Vec<Role> = columns.iter().map(Column::role).collect::<Option<_>>()?;
    name_unit_words(&columns, &mut roles);
    let guess = if roles.iter().any(|role| role.is_time()) { None } else { choose(&columns, &mut roles) };
    let name = |roles: &[Role]| {
        let tokens: Vec<String> = first.iter().zip(roles).map(|(field, role)| written(field, *role)).collect();
        format!("{base} + {}", tokens.join(" "))
    };
    if !roles.iter().any(|role| role.is_time()) {
        let is_known = roles.iter().any(|role| matches!(role, Role::Process | Role::Keepalive | Role::Sent));
        let remark = "Whole numbers after the log's other fields look like processes, counts or bytes: none is read as the \
                      time that a request took. If one is, name it with --format.";
        return is_known.then(|| Inferred { base, format: None, remark: Some(remark.to_owned()) });
    }
    let remark = guess.map(|(place, guess, requests)| remark(place, &guess, &requests, &roles, name));
    Some(Inferred { base, format: Some(Format::named(&name(&roles))?), remark })
}

/// How the numbers are read, and how to have them read otherwise.
fn remark(place: usize, guess: &Guess, requests: &[Timed], roles: &[Role], name: impl Fn(&[Role]) -> String) -> String {
    let said = units::said(requests, guess.unit);
    let other = guess.others.first().copied().unwrap_or(match guess.unit {
        Unit::Microseconds => Unit::Milliseconds,
        _ => Unit::Microseconds,
    });
    let mut instead = roles.to_vec();
    if let Some(role) = instead.get_mut(place) {
        *role = Role::Time(other);
    }
    let may_be = if guess.others.is_empty() { "If they are" } else { "They may be" };
    let end = if guess.others.is_empty() { "" } else { ": then" };
    let comma = if guess.others.is_empty() { "," } else { "" };
    format!("{said}. {may_be} {}{comma}{end} give --format '{}'.", other.name(), name(&instead))
}

/// A column as the name of the format has it.
fn written(field: &TailField<'_>, role: Role) -> String {
    let label = match field.label {
        [] => String::new(),
        label => format!("{}=", String::from_utf8_lossy(label)),
    };
    let token = role.token();
    if field.is_quoted { format!("{label}\"{token}\"") } else { label + token }
}

fn rows<'a>(open: &mut Format, lines: &[&'a [u8]]) -> Vec<Row<'a>> {
    let mut scratch = Scratch::default();
    let mut rows = Vec::new();
    for line in lines {
        let Some(rest) = open.rest_of(line).filter(|rest| !rest.is_empty()) else { continue };
        let Ok(fields) = TailFields::new(rest, 0).collect::<Result<Vec<_>, _>>() else { continue };
        if let Ok(Line::Entry(entry)) = open.read(line, &mut scratch) {
            let (time_ns, bytes, status) = (entry.time_ns, entry.bytes, entry.status);
            rows.push(Row { time_ns, bytes, status, client: entry.client.to_vec(), fields });
        }
    }
    rows
}

/// Those rows that have the columns that most have; none where fewer than half have the same.
fn alike(rows: Vec<Row<'_>>) -> Option<Vec<Row<'_>>> {
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

/// A column of all rows.
struct Column<'r, 'a> {
    rows: &'r [Row<'a>],
    place: usize,
}

impl<'a> Column<'_, 'a> {
    fn texts(&self) -> impl Iterator<Item = &'a [u8]> {
        self.rows.iter().filter_map(|row| row.fields.get(self.place)).map(|field| field.value)
    }

    /// Its whole numbers, with their rows; none where other things are in it.
    fn numbers(&self) -> Option<Vec<(&Row<'a>, u64)>> {
        let mut numbers = Vec::new();
        for (row, text) in self.rows.iter().zip(self.texts()) {
            match whole(text) {
                Some((value, length)) if length == text.len() => numbers.push((row, value)),
                _ if text == b"-" => {}
                _ => return None,
            }
        }
        Some(numbers)
    }

    /// What it is as far as that can be told by itself. None where it is a decimal, which is known without all this.
    fn role(&self) -> Option<Role> {
        let label = self.rows.first().and_then(|row| row.fields.get(self.place)).map_or(&[][..], |field| field.label);
        let is_quoted =
            self.rows.first().and_then(|row| row.fields.get(self.place)).is_some_and(|field| field.is_quoted);
        let present = || self.texts().filter(|text| *text != b"-");
        if present().next().is_none() {
            return Some(Role::Unknown);
        }
        if present().all(is_pair) {
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
        if is_quoted && present().all(|text| is_address_list(text) && ip(text).is_none_or(|_| !text.ends_with(b":80")))
        {
            return Some(Role::Forwarded);
        }
        let is_labelled = !label.is_empty();
        let names_a_time = LABELS.iter().any(|known| known.as_bytes() == label);
        Some(match self.numbers() {
            Some(_) if is_labelled && !names_a_time => Role::Unknown,
            Some(numbers) => whole_role(&numbers),
            None => Role::Unknown,
        })
    }

    fn is_before_ms(&self) -> bool {
        let next = Column { rows: self.rows, place: self.place + 1 };
        next.texts().next().is_some() && next.texts().all(|text| text == b"ms")
    }
}

/// `0/5040`: seconds, and microseconds of the same time.
fn is_pair(text: &[u8]) -> bool {
    let slash = text.iter().position(|byte| *byte == b'/');
    let Some((seconds, micros)) = slash.and_then(|slash| Some((text.get(..slash)?, text.get(slash + 1..)?))) else {
        return false;
    };
    let all = |text: &[u8]| whole(text).filter(|(_, length)| *length == text.len()).map(|(value, _)| value);
    all(seconds).zip(all(micros)).is_some_and(|(seconds, micros)| seconds == micros / 1_000_000)
}

/// What whole numbers are that are no times, where that can be seen.
fn whole_role(numbers: &[(&Row<'_>, u64)]) -> Role {
    let distinct = numbers.iter().map(|(_, value)| *value).collect::<BTreeSet<_>>();
    let count = numbers.len();
    let (Some(least), Some(most)) = (distinct.first().copied(), distinct.last().copied()) else { return Role::Unknown };
    if count >= LEAST_VARIED {
        let is_narrow = least >= 100 && most < least + least / 2 && distinct.len() * 2 <= count;
        let is_shared = count >= LEAST_SHARED && least >= LEAST_PROCESS && distinct.len() * 8 <= count;
        let statuses = numbers.iter().filter(|(row, value)| u64::from(row.status) == *value).count();
        if statuses * 10 >= count * 9 {
            return Role::Unknown;
        }
        if is_narrow || is_shared {
            return Role::Process;
        }
        // What the kernel gives to clients; durations are not spread evenly over just these.
        if count >= 2 * LEAST_VARIED && least >= 32_768 && most <= 65_535 && most - least > 8_000 {
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

/// Whether each client's numbers count its requests: 0, 1, 2, …
fn is_keepalive(numbers: &[(&Row<'_>, u64)]) -> bool {
    let mut last: HashMap<&[u8], u64> = HashMap::new();
    let (mut next, mut others) = (0, 0);
    for (row, value) in numbers {
        if let Some(before) = last.insert(&row.client, *value)
            && *value > 0
        {
            if *value == before + 1 { next += 1 } else { others += 1 }
        }
    }
    next >= 5 && next >= 4 * others
}

/// Whether they are the bytes of the answers, perhaps with their heads.
fn is_sent(numbers: &[(&Row<'_>, u64)]) -> bool {
    let pairs: Vec<(u64, u64)> = numbers.iter().filter_map(|(row, value)| Some((row.bytes?, *value))).collect();
    let distinct = pairs.iter().map(|(bytes, _)| *bytes).collect::<BTreeSet<_>>();
    let range = distinct.first().zip(distinct.last()).map_or(0, |(least, most)| most - least);
    let with_head = pairs.iter().filter(|(bytes, value)| value >= bytes && value - bytes <= LARGEST_HEAD).count();
    range > 4 * LARGEST_HEAD && with_head * 10 >= pairs.len() * 9
}

/// The word `ms` after a number is no column of its own.
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
                *role = Role::Time(Unit::Milliseconds);
            }
        }
    }
}

/// Chooses the column of whole numbers that is the time, and its unit. What is returned is to be said: where two columns
/// have the same time in two units there is no doubt.
fn choose(columns: &[Column<'_, '_>], roles: &mut [Role]) -> Option<(usize, Guess, Vec<Timed>)> {
    let places: Vec<usize> = (0..roles.len()).filter(|place| roles.get(*place) == Some(&Role::Whole)).collect();
    let numbers = |place: usize| columns.get(place).and_then(Column::numbers).unwrap_or_default();
    for coarse in &places {
        for fine in places.iter().filter(|fine| *fine != coarse) {
            if let Some(unit) = unit_of_pair(&numbers(*coarse), &numbers(*fine)) {
                set(roles, *fine, Role::Time(unit));
                return None;
            }
        }
    }
    // Where nothing tells them apart, the first: servers write it before the rest.
    let best = places
        .iter()
        .copied()
        .reduce(|best, place| if is_likelier(&numbers(place), &numbers(best)) { place } else { best })?;
    let requests: Vec<Timed> =
        numbers(best).into_iter().map(|(row, value)| Timed { time_ns: row.time_ns, bytes: row.bytes, value }).collect();
    let guess = units::of_servers(&requests);
    set(roles, best, Role::Time(guess.unit));
    Some((best, guess, requests))
}

fn set(roles: &mut [Role], place: usize, role: Role) {
    if let Some(old) = roles.get_mut(place) {
        *old = role;
    }
}

/// The unit of the finer of two columns with the same time, of which the other is whole seconds: `0 5040`.
fn unit_of_pair(coarse: &[(&Row<'_>, u64)], fine: &[(&Row<'_>, u64)]) -> Option<Unit> {
    let per_second = |unit: Unit| 1_000_000_000 / unit.ns();
    let is_unit = |unit: &Unit| {
        let same = coarse.iter().zip(fine).all(|((_, seconds), (_, value))| *seconds == value / per_second(*unit));
        same && fine.iter().any(|(_, value)| *value >= 20)
    };
    // Where no request took a second, both units fit.
    let has_seconds = coarse.iter().any(|(_, seconds)| *seconds > 0);
    let units = [Unit::Microseconds, Unit::Milliseconds];
    if has_seconds && coarse.len() == fine.len() { units.into_iter().find(is_unit) } else { None }
}

/// Whether the numbers of a column look more like times than those of another: more of them differ, or as many and they
/// are much larger.
fn is_likelier(numbers: &[(&Row<'_>, u64)], than: &[(&Row<'_>, u64)]) -> bool {
    let (share, other_share) = (distinct_share(numbers), distinct_share(than));
    let is_larger = median(numbers) > median(than).saturating_mul(50);
    share > 1.3 * other_share || (is_larger && 1.3 * share > other_share)
}

/// What part of the numbers are different ones.
fn distinct_share(numbers: &[(&Row<'_>, u64)]) -> f64 {
    let distinct = numbers.iter().map(|(_, value)| *value).collect::<BTreeSet<_>>();
    distinct.len() as f64 / numbers.len().max(1) as f64
}

fn median(numbers: &[(&Row<'_>, u64)]) -> u64 {
    let mut values: Vec<u64> = numbers.iter().map(|(_, value)| *value).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
