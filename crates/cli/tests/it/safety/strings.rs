//! Tests random strings in the syntax of arrivals, objectives, distributions and log formats. Each must be rejected, or
//! yield its first result, within 10 ms. `BRIMFUL_STRINGS=100000` tests this number of strings of each kind.

use brimful_accesslog::format::Format;
use brimful_core::workload::Spread;
use brimful_core::{Rate, Slo};
use brimful_workload::{ArrivalProcess, Arrivals};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Maximum CPU time for a string. A string that hangs takes seconds. Without optimization, the program is a few times
/// slower.
const LIMIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 100 } else { 10 });

const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "2",
    "0.5",
    "-1",
    "1e-9",
    "1e-300",
    "5e-324",
    "1e9",
    "1e300",
    "1.7e308",
    "nan",
    "inf",
    "-inf",
    "0.999999",
    "0.500001",
    "4",
    "10%",
    "100%",
    "0%",
    "99.9",
    "18446744073709551615",
    "4294967296",
    "",
];
const TIMES: [&str; 12] =
    ["1ns", "1us", "1ms", "1s", "100s", "1h", "0s", "-1s", "1e300s", "18446744073709551615ns", "5", ""];
const SIGNS: [&str; 14] = [":", ",", "@", "<", "<=", "=", "%", "x", " ", ";", "$", "\"", "{", "}"];
const WORDS: [&str; 40] = [
    "constant",
    "poisson",
    "uniform",
    "steps",
    "onoff",
    "mmpp",
    "selfsimilar",
    "pareto",
    "fgn",
    "exponential",
    "geometric",
    "lognormal",
    "quantiles",
    "p99",
    "p99.9",
    "mean",
    "utilization",
    "errors",
    "cpu",
    "page",
    "apache",
    "nginx",
    "w3c",
    "json",
    "%h",
    "%l",
    "%u",
    "%t",
    "%r",
    "%>s",
    "%b",
    "%D",
    "%{Referer}i",
    "%{%s}t",
    "%{",
    "$remote_addr",
    "$status",
    "$request_time",
    "$",
    "combined",
];

/// A generator of random numbers: SplitMix64 (Steele, Lea & Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }

    /// A random string: one of these forms with random values, or random parts.
    fn text(&mut self, forms: &[&str]) -> String {
        if self.below(4) == 0 {
            let parts = [&WORDS[..], &NUMBERS, &TIMES, &SIGNS];
            return (0..self.below(12))
                .map(|_| {
                    let kind = self.below(4);
                    self.pick(parts[kind])
                })
                .collect();
        }
        let form = forms[self.below(forms.len())];
        let mut text = String::new();
        for character in form.chars() {
            match character {
                'N' => text.push_str(self.pick(&NUMBERS)),
                'T' => text.push_str(self.pick(&TIMES)),
                'W' => text.push_str(self.pick(&WORDS)),
                other => text.push(other),
            }
        }
        text
    }
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// Calls `read` with random strings, and asserts that each call is quick. `read` returns whether it has accepted the
/// string.
fn each_is_quick(forms: &[&str], read: impl Fn(&str, &mut Random) -> bool) {
    let count = std::env::var("BRIMFUL_STRINGS").ok().and_then(|count| count.parse().ok()).unwrap_or(2_000);
    let mut random = Random(1997);
    let mut accepted = 0;
    for _ in 0..count {
        let text = random.text(forms);
        let began = cpu_time();
        accepted += u64::from(read(&text, &mut random));
        let took = cpu_time() - began;
        assert!(took < LIMIT, "{text:?} takes {took:?}");
    }
    assert!(accepted > count / 50, "only {accepted} of {count} are accepted: the test tries too few of them");
}

#[test]
fn arrivals_are_refused_or_begin_at_once() {
    let forms = [
        "uniform:N",
        "steps:N@T",
        "steps:N@T,N@T",
        "steps:N@T,N@T,N@T",
        "onoff:N,N",
        "onoff:N,N,T",
        "mmpp:N,N,T",
        "selfsimilar:N",
        "selfsimilar:N,pareto",
        "selfsimilar:N,fgn",
        "constant",
        "poisson",
    ];
    let rates = [1e-9, 1e-4, 0.1, 1.0, 1e3, 1e6, 1e9];
    each_is_quick(&forms, |text, random| {
        let Ok(process) = text.parse::<ArrivalProcess>() else { return false };
        let rate = Rate(rates[random.below(rates.len())]);
        let Ok(mut arrivals) = Arrivals::new(process, rate, random.below(1_000) as u64) else { return false };
        arrivals.next().is_some()
    });
}

#[test]
fn objectives_are_refused_or_read_at_once() {
    let forms = ["pN<T", "meanN<T", "mean<T", "W:pN<T", "utilization<N", "W.utilization<N", "WWW:p99 <= T"];
    each_is_quick(&forms, |text, _| text.parse::<Slo>().is_ok_and(|slo| !slo.to_string().is_empty()));
}

#[test]
fn distributions_are_refused_or_drawn_from_at_once() {
    let forms = [
        "N",
        "exponential:N",
        "geometric:N",
        "lognormal:N,N",
        "pareto:N,N",
        "quantiles:0=N,1=N",
        "quantiles:0=N,N=N,1=N",
        "quantiles:0=1,0.5=N,1=N",
    ];
    each_is_quick(&forms, |text, random| {
        let Ok(spread) = text.parse::<Spread>() else { return false };
        for _ in 0..8 {
            let value = spread.quantile(random.below(1_000) as f64 / 1_000.0);
            assert!(value.is_finite() && value >= 0.0, "{text} gives {value}");
        }
        spread.mean().is_finite() || spread.count(0.5) > 0
    });
}

#[test]
fn log_formats_are_refused_or_read_a_line_at_once() {
    let forms = ["%h W %t \"%r\" %>s %b W", "WWW", "W W W W", "%{W}t %h", "$remote_addr W [$time_local] W", "W\"W\"W"];
    let line = br#"127.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 512 "-" "x" 0.001"#;
    each_is_quick(&forms, |text, _| {
        let Ok(mut format) = Format::parse(text) else { return false };
        let _ = format.read(line, &mut Default::default());
        true
    });
}
