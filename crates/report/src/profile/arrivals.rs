//! Arrivals of a profile: small charts by hour, by weekday and over time, and the rates over time as CSV.

use super::{apart, foreign, lasting, pace, said};
use crate::format::{NAMES, width, wrap};
use brimful_core::moments::mean;
use brimful_core::profile::{Arrivals, Profile};
use brimful_core::quantity::percent;
use brimful_forecast::Timestamp;

/// Number of columns to the right of a chart over time that stay empty.
const MARGIN: usize = 8;
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
const LEVELS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const HOURS: usize = 24;

/// The charts. A chart with too little data is omitted.
pub(super) fn text(profile: &Profile) -> String {
    let arrivals = &profile.arrivals;
    apart([by_hour(profile) + &over_time(arrivals), grid(arrivals)])
}

fn by_hour(profile: &Profile) -> String {
    let counts = &profile.arrivals.by_hour;
    let all: f64 = counts.iter().map(|n| *n as f64).sum();
    let Some((busiest, most)) = counts.iter().enumerate().max_by_key(|(hour, n)| (**n, usize::MAX - hour)) else {
        return String::new();
    };
    if all == 0.0 || counts.len() != HOURS {
        return String::new();
    }
    let chart = sparkline(&counts.iter().map(|n| *n as f64).collect::<Vec<_>>());
    let zone = foreign(&profile.timezone, 40);
    said("by hour", &format!("{chart} 0 to 23 o'clock, {zone}; most at {busiest}, {}", percent(*most as f64 / all)))
}

fn over_time(arrivals: &Arrivals) -> String {
    if arrivals.rates.len() < 2 {
        return String::new();
    }
    let per_column = arrivals.rates.len().div_ceil(width() - NAMES - MARGIN);
    let means: Vec<f64> = arrivals.rates.chunks(per_column).filter_map(mean).collect();
    let step = lasting(arrivals.step_s as f64 * per_column as f64);
    let highest = arrivals.rates.iter().copied().fold(0.0, f64::max);
    let within = lasting(arrivals.step_s as f64);
    let legend = format!("in steps of {step}; at most {} in {within}", pace(highest));
    said("over time", &sparkline(&means)) + &wrap(&legend, NAMES)
}

/// A grid of weekdays (rows) and hours (columns); empty unless the log covers more than one day of the week.
fn grid(arrivals: &Arrivals) -> String {
    let rows = &arrivals.by_weekday_and_hour;
    let days_seen = arrivals.by_weekday.iter().filter(|n| **n > 0).count();
    if days_seen < 2 || rows.len() != DAYS.len() || rows.iter().any(|row| row.len() != HOURS) {
        return String::new();
    }
    let highest = rows.iter().flatten().copied().filter(|x| x.is_finite()).fold(0.0, f64::max);
    let all: f64 = arrivals.by_weekday.iter().map(|n| *n as f64).sum();
    // Each hour has two characters if the line is wide enough.
    let characters = if width() < NAMES + 2 * HOURS + MARGIN { 1 } else { 2 };
    let shades = |row: &[f64]| row.iter().map(|x| shade(*x, highest, characters)).collect::<String>();
    let quarters = [0, 6, 12].map(|hour| format!("{hour:<0$}", characters * HOURS / 4)).concat();
    let mut text = format!("{:NAMES$}{quarters}18\n", "");
    for ((day, row), requests) in DAYS.iter().zip(rows).zip(&arrivals.by_weekday) {
        text += &format!("{day:<NAMES$}{}  {:>6}\n", shades(row), percent(*requests as f64 / all));
    }
    let [none, .., darkest] = SHADES;
    let none = if none == ' ' { "blank".to_owned() } else { none.to_string() };
    let legend =
        format!("mean rate of each hour, 0 ({none}) to {} ({darkest}), and each day's requests", pace(highest));
    text + &wrap(&legend, NAMES)
}

/// The shade of a figure. Figures closer to the highest figure are darker.
fn shade(x: f64, highest: f64, characters: usize) -> String {
    let shade = SHADES.get(level(x, highest, SHADES.len() - 1)).copied().unwrap_or(' ');
    shade.to_string().repeat(characters)
}

/// A line with one bar per figure; a dot stands for zero.
pub(super) fn sparkline(figures: &[f64]) -> String {
    let highest = figures.iter().copied().filter(|x| x.is_finite()).fold(0.0, f64::max);
    let bar = |x: &f64| LEVELS.get(level(*x, highest, LEVELS.len() - 1)).copied().unwrap_or('?');
    figures.iter().map(bar).collect()
}

/// The level of a figure: 0 for zero, otherwise 1 to `most`, in proportion to the highest figure.
fn level(x: f64, highest: f64, most: usize) -> usize {
    if x > 0.0 && highest > 0.0 { ((x / highest * most as f64).ceil() as usize).clamp(1, most) } else { 0 }
}

/// The mean rates over time as CSV, for spreadsheets and for `brimful plan forecast --unit rates`.
pub fn csv(profile: &Profile) -> String {
    let arrivals = &profile.arrivals;
    let from = arrivals.from.parse::<Timestamp>().ok();
    let row = |(i, per_s): (usize, &f64)| {
        let seconds = i64::try_from(arrivals.step_s.saturating_mul(i as u64)).unwrap_or(i64::MAX);
        let time = from.map_or_else(|| seconds.to_string(), |from| from.plus_seconds(seconds).to_string());
        format!("{time},{per_s}\n")
    };
    "time,requests_per_second\n".to_owned() + &arrivals.rates.iter().enumerate().map(row).collect::<String>()
}
