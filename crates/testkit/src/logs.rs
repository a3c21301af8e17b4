//! Access logs of known traffic, as fast as a disk takes them: the same shape gives the same bytes on every machine.
//!
//! - Requests begin as a Poisson process, or as one whose rate is switched on and off for times of Pareto's distribution
//!   with α = 1.4, which makes it long-range dependent with H = (3 − α)/2 = 0.8 (Heath, Resnick & Samorodnitsky 1998).
//! - URLs are as popular as Zipf's law says: the n-th one n^−s (an alias table; Walker 1977, Vose 1991).
//! - Every URL has one size: log-normal, and of 7 % of them Pareto's with α = 1.1 (Barford & Crovella 1998).
//! - 15 % of requests are answered by 304, 3 % by 404, 1 % by 301, 0.5 % by 500; 2 % are POST, 1 % HEAD.
//! - A session is a geometric number of pages, 3 on average, each a burst of geometrically many requests, 4 on average.
//!
//! Stamps never decrease. Units: seconds since 1970 (UTC), requests per second, bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

/// What a log is to be like.
#[derive(Clone, Debug)]
pub struct LogShape {
    /// How many requests.
    pub lines: u64,
    /// How many URLs there are, at least 1.
    pub urls: u32,
    /// s of Zipf's law; 0 makes all of them equally popular.
    pub zipf: f64,
    /// How many clients there are, at least 1 and at most 2^24.
    pub clients: u32,
    /// Whether clients ask in sessions, and not for one thing each time.
    pub sessions: bool,
    /// When the first second begins.
    pub start: i64,
    /// Mean requests per second.
    pub rate: f64,
    /// How they come.
    pub burstiness: Burstiness,
    /// Of all that is random.
    pub seed: u64,
    /// Whether stamps have milliseconds; see [`LogShape::log_format`].
    pub fine: bool,
    /// What a line has.
    pub format: LogFormat,
}

/// How requests, or sessions, begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burstiness {
    /// At a steady rate, independently.
    None,
    /// A quarter of the time at 3.25 times the rate, else at a quarter of it.
    OnOff,
}

/// What a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Up to the bytes.
    Common,
    /// The same with referer and agent.
    Combined,
    /// The same with the time that the server took, in microseconds.
    CombinedWithTime,
}

impl Default for LogShape {
    fn default() -> LogShape {
        LogShape {
            lines: 10_000,
            urls: 2000,
            zipf: 0.9,
            clients: 5000,
            sessions: false,
            // Thursday, 1 January 2026.
            start: 1_767_225_600,
            rate: 50.0,
            burstiness: Burstiness::None,
            seed: 1,
            fine: false,
            format: LogFormat::Combined,
        }
    }
}

impl LogShape {
    /// Writes the log.
    ///
    /// # Errors
    ///
    /// What `to` cannot take.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut lines = Lines::new(self);
        let mut requests = Requests::new(self);
        let mut buffer = Vec::with_capacity(2 * BUFFER_BYTES);
        for _ in 0..self.lines {
            let (second, client) = requests.next();
            lines.push(&mut buffer, second, client);
            if buffer.len() >= BUFFER_BYTES {
                to.write_all(&buffer)?;
                buffer.clear();
            }
        }
        to.write_all(&buffer)
    }

    /// What Apache's `LogFormat` would be.
    pub fn log_format(&self) -> &'static str {
        match (self.format, self.fine) {
            (LogFormat::Common, false) => r#"%h %l %u %t \"%r\" %>s %b"#,
            (LogFormat::Common, true) => r#"%h %l %u [%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] \"%r\" %>s %b"#,
            (LogFormat::Combined, false) => r#"%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\""#,
            (LogFormat::Combined, true) => {
                r#"%h %l %u [%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\""#
            }
            (LogFormat::CombinedWithTime, false) => r#"%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %D"#,
            (LogFormat::CombinedWithTime, true) => {
                r#"%h %l %u [%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %D"#
            }
        }
    }
}

const BUFFER_BYTES: usize = 256 * 1024;
/// On average: pages of a session, and requests of a page.
const PAGES: f64 = 3.0;
const REQUESTS_PER_PAGE: f64 = 4.0;
/// Seconds, on average: between the requests of a page, and between pages.
const BETWEEN_REQUESTS: f64 = 0.15;
const BETWEEN_PAGES: f64 = 20.0;
/// Seconds, on average, at the higher and at the lower rate; and these, relative to the mean.
const ON: (f64, f64) = (5.0, 3.25);
const OFF: (f64, f64) = (15.0, 0.25);
const ON_OFF_TAIL: f64 = 1.4;
/// No such time is longer than so many means, or a log might have no end.
const LONGEST: f64 = 100.0;

/// When requests come, and whose they are.
struct Requests {
    random: Random,
    clients: u32,
    in_sessions: bool,
    starts: Starts,
    next_start: f64,
    /// What open sessions ask for next.
    due: BinaryHeap<Reverse<Due>>,
}

/// A request that an open session will make. The time, as bits of a number that is not negative, sorts as the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    second_bits: u64,
    client: u32,
    left_of_page: u32,
    pages_left: u32,
}

impl Requests {
    fn new(shape: &LogShape) -> Requests {
        let mut random = Random(shape.seed);
        let per_session = if shape.sessions { PAGES * REQUESTS_PER_PAGE } else { 1.0 };
        let is_on_off = shape.burstiness == Burstiness::OnOff;
        let mut starts = Starts { rate: shape.rate / per_session, is_on_off, now: 0.0, is_on: true, until: 0.0 };
        let next_start = starts.next(&mut random);
        let due = BinaryHeap::new();
        Requests { random, clients: shape.clients.max(1), in_sessions: shape.sessions, starts, next_start, due }
    }

    /// The time of the next request since the log's start, and its client.
    fn next(&mut self) -> (f64, u32) {
        if let Some(Reverse(due)) = self.due.peek().copied()
            && f64::from_bits(due.second_bits) <= self.next_start
        {
            self.due.pop();
            let second = f64::from_bits(due.second_bits);
            self.go_on(second, due);
            return (second, due.client);
        }
        let second = self.next_start;
        self.next_start = self.starts.next(&mut self.random);
        let client = self.random.below(self.clients);
        if self.in_sessions {
            let pages_left = self.random.geometric(PAGES) - 1;
            let left_of_page = self.random.geometric(REQUESTS_PER_PAGE) - 1;
            self.go_on(second, Due { second_bits: 0, client, left_of_page, pages_left });
        }
        (second, client)
    }

    /// What the session asks for after this, if anything.
    fn go_on(&mut self, second: f64, mut session: Due) {
        let pause = if session.left_of_page > 0 {
            session.left_of_page -= 1;
            BETWEEN_REQUESTS
        } else if session.pages_left > 0 {
            session.pages_left -= 1;
            session.left_of_page = self.random.geometric(REQUESTS_PER_PAGE) - 1;
            BETWEEN_PAGES
        } else {
            return;
        };
        session.second_bits = (second + self.random.exponential(pause)).to_bits();
        self.due.push(Reverse(session));
    }
}

/// When requests or sessions begin.
struct Starts {
    rate: f64,
    is_on_off: bool,
    now: f64,
    is_on: bool,
    until: f64,
}

impl Starts {
    fn next(&mut self, random: &mut Random) -> f64 {
        if !self.is_on_off {
            self.now += random.exponential(1.0 / self.rate);
            return self.now;
        }
        loop {
            // Within a time of one rate gaps have no memory, so one that reaches beyond it may be drawn anew.
            let (_, factor) = if self.is_on { ON } else { OFF };
            let next = self.now + random.exponential(1.0 / (self.rate * factor));
            if next <= self.until {
                self.now = next;
                return next;
            }
            self.now = self.until;
            self.is_on = !self.is_on;
            let (mean, _) = if self.is_on { ON } else { OFF };
            let shortest = mean * (ON_OFF_TAIL - 1.0) / ON_OFF_TAIL;
            self.until += random.pareto(shortest, ON_OFF_TAIL).min(LONGEST * mean);
        }
    }
}

/// The texts of a log, ready to be put together.
struct Lines {
    random: Random,
    start: i64,
    fine: bool,
    format: LogFormat,
    urls: Urls,
    /// `[01/Jan/2026:00:00:00`, and the second that it is of.
    stamp: Vec<u8>,
    stamped: Option<i64>,
}

impl Lines {
    fn new(shape: &LogShape) -> Lines {
        let mut random = Random(shape.seed ^ 0x5eed_0f11_e5);
        let urls = Urls::new(shape.urls.max(1), shape.zipf, &mut random);
        let (start, fine, format) = (shape.start, shape.fine, shape.format);
        Lines { random, start, fine, format, urls, stamp: Vec::new(), stamped: None }
    }

    fn push(&mut self, line: &mut Vec<u8>, second: f64, client: u32) {
        push_client(line, client);
        line.extend_from_slice(b" - - ");
        self.push_stamp(line, second);
        let url = self.urls.draw(&mut self.random);
        let answer = self.answer(url);
        line.extend_from_slice(answer.method);
        line.extend_from_slice(answer.before_path);
        line.extend_from_slice(self.urls.path(url));
        line.extend_from_slice(b" HTTP/1.1\" ");
        line.extend_from_slice(answer.status);
        match answer.bytes {
            Some(bytes) => push_number(line, bytes),
            None => line.push(b'-'),
        }
        if self.format != LogFormat::Common {
            self.push_referer(line, url);
            line.extend_from_slice(agent(client));
        }
        if self.format == LogFormat::CombinedWithTime {
            let micros = 100.0 + self.random.exponential(300.0) + answer.bytes.unwrap_or(0) as f64 / 100.0;
            line.push(b' ');
            push_number(line, micros as u64);
        }
        line.push(b'\n');
    }

    fn answer(&mut self, url: u32) -> Answer {
        let draw = self.random.below(1000);
        let (method, has_body): (&[u8], _) = match self.random.below(100) {
            0 | 1 => (b"POST ", true),
            2 => (b"HEAD ", false),
            _ => (b"GET ", true),
        };
        let (status, bytes): (&[u8], _) = match draw {
            0..150 => (b"304 ", None),
            150..180 => (b"404 ", Some(196)),
            180..190 => (b"301 ", Some(169)),
            190..195 => (b"500 ", Some(528)),
            _ => (b"200 ", Some(self.urls.bytes(url))),
        };
        // What is not found is asked for at a place of its own.
        let before_path: &[u8] = if (150..180).contains(&draw) { b"/old" } else { b"" };
        Answer { method, before_path, status, bytes: bytes.filter(|_| has_body) }
    }

    fn push_stamp(&mut self, line: &mut Vec<u8>, second: f64) {
        let whole = self.start + second as i64;
        if self.stamped != Some(whole) {
            self.stamped = Some(whole);
            self.stamp.clear();
            push_date(&mut self.stamp, whole);
        }
        line.extend_from_slice(&self.stamp);
        if self.fine {
            let milliseconds = (second.fract() * 1000.0) as u64;
            line.push(b'.');
            push_padded(line, milliseconds, 100);
        }
        line.extend_from_slice(b" +0000] \"");
    }

    fn push_referer(&mut self, line: &mut Vec<u8>, url: u32) {
        match self.random.below(10) {
            0..4 => line.extend_from_slice(b" \"-"),
            4 => line.extend_from_slice(b" \"https://www.google.com/"),
            // A page that has it.
            _ => {
                line.extend_from_slice(b" \"https://www.example.com");
                line.extend_from_slice(self.urls.path(url / 8 * 8));
            }
        }
        line.extend_from_slice(b"\" \"");
    }
}

struct Answer {
    method: &'static [u8],
    before_path: &'static [u8],
    status: &'static [u8],
    bytes: Option<u64>,
}

/// Paths and sizes, the most popular first.
struct Urls {
    text: Vec<u8>,
    /// Where each one's path ends in the text.
    ends: Vec<usize>,
    bytes: Vec<u64>,
    /// The alias table: which share of a column is its own, and whose the rest is.
    own: Vec<f64>,
    other: Vec<u32>,
}

impl Urls {
    fn new(count: u32, zipf: f64, random: &mut Random) -> Urls {
        let mut urls = Urls { text: Vec::new(), ends: Vec::new(), bytes: Vec::new(), own: Vec::new(), other: Vec::new() };
        for url in 0..count {
            let path = match url % 8 {
                0 => format!("/{}/page-{url}.html", SECTIONS[url as usize / 8 % SECTIONS.len()]),
                1 => format!("/assets/css/style-{url}.css"),
                2 => format!("/assets/js/module-{url}.min.js?v={}", url % 17),
                3..6 => format!("/images/{}/photo-{url}.jpg", url / 64),
                6 => format!("/api/v1/items/{url}?fields=name,price&sort=-date"),
                _ => format!("/download/report-{url}.pdf"),
            };
            urls.text.extend_from_slice(path.as_bytes());
            urls.ends.push(urls.text.len());
            urls.bytes.push(random.body_bytes());
        }
        urls.set_weights(&(0..count).map(|url| f64::from(url + 1).powf(-zipf)).collect::<Vec<_>>());
        urls
    }

    /// Vose's construction: what is below the mean gets the rest of its column from what is above.
    fn set_weights(&mut self, weights: &[f64]) {
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        self.own = weights.iter().map(|weight| weight / mean).collect();
        self.other = (0..).take(weights.len()).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..weights.len()).partition(|&i| self.own[i] < 1.0);
        while let (Some(less), Some(&more)) = (small.pop(), large.last()) {
            self.other[less] = u32::try_from(more).expect("as many as a u32 counts");
            self.own[more] -= 1.0 - self.own[less];
            if self.own[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        let column = random.below(u32::try_from(self.own.len()).expect("as many as a u32 counts"));
        if random.unit() < self.own[column as usize] { column } else { self.other[column as usize] }
    }

    fn path(&self, url: u32) -> &[u8] {
        let url = url as usize;
        let start = if url == 0 { 0 } else { self.ends[url - 1] };
        &self.text[start..self.ends[url]]
    }

    fn bytes(&self, url: u32) -> u64 {
        self.bytes[url as usize]
    }
}

const SECTIONS: [&str; 6] = ["news", "products", "blog", "docs", "about/company", "shop/category"];

/// One per client; an eighth of them are robots.
const AGENTS: [&[u8]; 16] = [
    b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36\"",
    b"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:133.0) Gecko/20100101 Firefox/133.0\"",
    b"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15\"",
    b"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\"",
    b"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148\"",
    b"Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36\"",
    b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Edg/131.0.0.0\"",
    b"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)\"",
    b"Mozilla/5.0 (Linux; Android 13; SM-A536B) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36\"",
    b"Mozilla/5.0 (iPad; CPU OS 17_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.7 Safari/604.1\"",
    b"Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0\"",
    b"Mozilla/5.0 (Windows NT 6.1; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/109.0.0.0 Safari/537.36\"",
    b"Opera/9.80 (Windows NT 6.1; U; en) Presto/2.10.289 Version/12.02\"",
    b"Mozilla/5.0 (Macintosh; Intel Mac OS X 14.7; rv:132.0) Gecko/20100101 Firefox/132.0\"",
    b"Mozilla/5.0 (Linux; U; Android 10; en-us) AppleWebKit/537.36 Version/4.0 Mobile Safari/537.36 \\\"in-app\\\"\"",
    b"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)\"",
];

fn agent(client: u32) -> &'static [u8] {
    // Neighbouring numbers have nothing in common.
    AGENTS[(Random(u64::from(client)).next() >> 60) as usize]
}

/// Every sixteenth client has an address of IPv6.
fn push_client(line: &mut Vec<u8>, client: u32) {
    let [_, a, b, c] = client.to_be_bytes();
    if client % 16 == 15 {
        line.extend_from_slice(b"2001:db8::");
        for nibble in [a >> 4, a & 15, b >> 4, b & 15] {
            line.push(b"0123456789abcdef"[usize::from(nibble)]);
        }
        line.push(b':');
        push_number(line, u64::from(c));
        return;
    }
    line.extend_from_slice(b"10");
    for part in [a, b, c] {
        line.push(b'.');
        push_number(line, u64::from(part));
    }
}

/// `[01/Jan/2026:00:00:00`.
fn push_date(stamp: &mut Vec<u8>, second: i64) {
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let (year, month, day) = civil(second.div_euclid(86_400));
    let of_day = second.rem_euclid(86_400).unsigned_abs();
    stamp.push(b'[');
    push_padded(stamp, day, 10);
    stamp.push(b'/');
    stamp.extend_from_slice(MONTHS[month as usize - 1]);
    stamp.push(b'/');
    push_padded(stamp, year, 1000);
    for part in [of_day / 3600, of_day / 60 % 60, of_day % 60] {
        stamp.push(b':');
        push_padded(stamp, part, 10);
    }
}

/// Year, month and day of a day since 1970, of the Gregorian calendar in eras of 400 years that begin in March.
fn civil(day: i64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year.unsigned_abs(), month.unsigned_abs(), day.unsigned_abs())
}

/// With zeros before it, as many digits as `unit`, a power of ten, has.
fn push_padded(line: &mut Vec<u8>, number: u64, mut unit: u64) {
    while unit > 0 {
        line.push(b'0' + (number / unit % 10) as u8);
        unit /= 10;
    }
}

fn push_number(line: &mut Vec<u8>, number: u64) {
    push_padded(line, number, 10_u64.pow(number.checked_ilog10().unwrap_or(0)));
}

/// SplitMix64 (Steele, Lea & Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, count: u32) -> u32 {
        (((self.next() >> 32) * u64::from(count)) >> 32) as u32
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    fn pareto(&mut self, least: f64, index: f64) -> f64 {
        least * (1.0 - self.unit()).powf(-1.0 / index)
    }

    /// 1, 2, …, with this mean.
    fn geometric(&mut self, mean: f64) -> u32 {
        1 + ((1.0 - self.unit()).ln() / (1.0 - 1.0 / mean).ln()) as u32
    }

    /// Of a file of the web (Barford & Crovella 1998), but no larger than 1 GiB.
    fn body_bytes(&mut self) -> u64 {
        if self.unit() < 0.07 {
            return self.pareto(133_000.0, 1.1).min((1_u64 << 30) as f64) as u64;
        }
        // Box and Muller (1958).
        let normal = (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos();
        (9.357 + 1.318 * normal).exp().ceil().min(133_000.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    fn written(shape: &LogShape) -> String {
        let mut log = Vec::new();
        shape.write(&mut log).unwrap();
        String::from_utf8(log).unwrap()
    }

    /// A field between blanks, of those that have none in them.
    fn field(line: &str, n: usize) -> &str {
        line.split(' ').nth(n).unwrap()
    }

    #[test]
    fn a_shape_is_the_same_bytes_and_another_seed_is_not() {
        let shape = LogShape { lines: 2000, sessions: true, burstiness: Burstiness::OnOff, ..LogShape::default() };
        assert_eq!(written(&shape), written(&shape));
        assert_ne!(written(&shape), written(&LogShape { seed: 2, ..shape }));
    }

    #[test]
    fn stamps_never_decrease_and_the_rate_is_what_was_asked() {
        for (sessions, burstiness) in [(false, Burstiness::None), (true, Burstiness::None), (false, Burstiness::OnOff)] {
            let shape = LogShape { lines: 100_000, sessions, burstiness, fine: true, ..LogShape::default() };
            let log = written(&shape);
            // Within a month, as text, these sort like numbers.
            assert!(log.lines().map(|line| field(line, 3)).is_sorted());
            assert_eq!(log.lines().count(), 100_000);
            let mut requests = Requests::new(&shape);
            let last = (0..100_000).map(|_| requests.next().0).last().unwrap();
            let rate = 100_000.0 / last;
            // With such a tail 2,000 s are not many.
            let tolerance = if burstiness == Burstiness::None { 1.05 } else { 2.0 };
            assert!((shape.rate / tolerance..shape.rate * tolerance).contains(&rate), "{rate}");
        }
    }

    #[test]
    fn lines_are_as_servers_write_them() {
        let shape = LogShape { lines: 1, fine: true, format: LogFormat::CombinedWithTime, ..LogShape::default() };
        let line = written(&shape);
        let quotes: Vec<_> = line.split('"').collect();
        assert!(field(&line, 3).starts_with("[01/Jan/2026:00:00:00.") && field(&line, 3).len() == 25, "{line}");
        assert!(quotes.len() >= 7 && line.ends_with('\n'));
        assert!(line.trim_end().rsplit(' ').next().unwrap().parse::<u64>().unwrap() >= 100);
        assert_eq!(written(&LogShape { format: LogFormat::Common, lines: 1, ..shape }).split('"').count(), 3);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (second, date) in [
            (0, "[01/Jan/1970:00:00:00"),
            (951_782_399, "[28/Feb/2000:23:59:59"),
            (951_782_400, "[29/Feb/2000:00:00:00"),
            (1_767_225_600, "[01/Jan/2026:00:00:00"),
            (4_107_542_399, "[28/Feb/2100:23:59:59"),
            (4_107_542_400, "[01/Mar/2100:00:00:00"),
        ] {
            let mut stamp = Vec::new();
            push_date(&mut stamp, second);
            assert_eq!(String::from_utf8(stamp).unwrap(), date);
        }
        let mut numbers = Vec::new();
        for number in [0, 9, 10, 1_000_000, u64::MAX] {
            push_number(&mut numbers, number);
            numbers.push(b' ');
        }
        assert_eq!(String::from_utf8(numbers).unwrap(), "0 9 10 1000000 18446744073709551615 ");
    }

    #[test]
    fn statuses_urls_and_clients_have_the_shares_that_they_should() {
        let shape = LogShape { lines: 200_000, urls: 1000, zipf: 1.0, clients: 300, ..LogShape::default() };
        let log = written(&shape);
        let (mut statuses, mut urls, mut clients) = (HashMap::new(), HashMap::new(), HashSet::new());
        for line in log.lines() {
            *statuses.entry(field(line, 8)).or_insert(0.0) += 1.0 / 200_000.0;
            *urls.entry(field(line, 6)).or_insert(0.0) += 1.0 / 200_000.0;
            clients.insert(field(line, 0));
        }
        assert_eq!(clients.len(), 300);
        for (status, share) in [("304", 0.15), ("404", 0.03), ("301", 0.01), ("200", 0.805)] {
            assert!((statuses[status] / share - 1.0_f64).abs() < 0.1, "{status}");
        }
        // Of the first 1,000 harmonic numbers; 3 % are asked for elsewhere.
        let share = |rank: f64| 0.97 / rank / 7.485;
        assert!((urls["/news/page-0.html"] / share(1.0) - 1.0_f64).abs() < 0.03);
        assert!((urls["/download/report-7.pdf"] / share(8.0) - 1.0_f64).abs() < 0.05);
    }

    #[test]
    fn sessions_have_the_length_that_they_should() {
        let shape = LogShape { sessions: true, lines: 120_000, clients: 1 << 24, ..LogShape::default() };
        let mut requests = Requests::new(&shape);
        let clients: HashSet<u32> = (0..shape.lines).map(|_| requests.next().1).collect();
        let per_session = 120_000.0 / clients.len() as f64;
        assert!((per_session - 12.0).abs() < 1.0, "{per_session}");
    }
}
