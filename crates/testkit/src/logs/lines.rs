//! Builds the line of a request from texts that were prepared before.

use super::random::Random;
use super::urls::Urls;
use super::{LogFormat, LogSpec};

/// Builds the lines of a log. The time stamp of the last line is cached.
pub(super) struct Lines {
    random: Random,
    start: i64,
    subsecond: bool,
    format: LogFormat,
    urls: Urls,
    /// The time stamp of the last line, like `[01/Jan/2026:00:00:00`.
    stamp: Vec<u8>,
    /// The second of `stamp`, since 1970; `None` before the first line.
    stamp_second: Option<i64>,
}

impl Lines {
    /// Prepares the URLs and the random stream of a log.
    pub fn new(spec: &LogSpec) -> Lines {
        let mut random = Random(spec.seed ^ 0x5eed_0f11);
        let urls = Urls::new(spec.urls.max(1), spec.zipf, &mut random);
        let LogSpec { start, subsecond, format, .. } = *spec;
        Lines { random, start, subsecond, format, urls, stamp: Vec::new(), stamp_second: None }
    }

    /// Appends the line of a request that arrives `second` seconds after the start of the log.
    pub fn push(&mut self, line: &mut Vec<u8>, second: f64, client: u32) {
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
            _ => (b"200 ", Some(self.urls.body_bytes(url))),
        };
        // Responses with status 404 are for paths that begin with `/old`, which do not exist.
        let before_path: &[u8] = if (150..180).contains(&draw) { b"/old" } else { b"" };
        Answer { method, before_path, status, bytes: bytes.filter(|_| has_body) }
    }

    fn push_stamp(&mut self, line: &mut Vec<u8>, second: f64) {
        let whole = self.start + second as i64;
        if self.stamp_second != Some(whole) {
            self.stamp_second = Some(whole);
            self.stamp.clear();
            push_date(&mut self.stamp, whole);
        }
        line.extend_from_slice(&self.stamp);
        if self.subsecond {
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
            // URLs are in groups of eight: a page and its seven parts. The referer of a part is the page.
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

/// The user agents. An eighth of them are robots. Each text includes the quotation mark at the end of its field.
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
    // The client's number is hashed, so that clients with consecutive numbers have unrelated user agents.
    AGENTS[(Random(u64::from(client)).next() >> 60) as usize]
}

/// Appends a client's address. Every sixteenth client has an IPv6 address.
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

/// Appends the date and the time of a time stamp, like `[01/Jan/2026:00:00:00`.
fn push_date(stamp: &mut Vec<u8>, second: i64) {
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let (year, month, day) = civil_date(second.div_euclid(86_400));
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

/// Converts a day since 1970 to year, month and day in the Gregorian calendar. The computation counts days in eras of
/// 400 years that begin on 1 March.
fn civil_date(day: i64) -> (u64, u64, u64) {
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

/// Appends a number with leading zeros, so that it has as many digits as `unit`, which is a power of ten.
fn push_padded(line: &mut Vec<u8>, number: u64, mut unit: u64) {
    while unit > 0 {
        line.push(b'0' + (number / unit % 10) as u8);
        unit /= 10;
    }
}

fn push_number(line: &mut Vec<u8>, number: u64) {
    push_padded(line, number, 10_u64.pow(number.checked_ilog10().unwrap_or(0)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
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
}
