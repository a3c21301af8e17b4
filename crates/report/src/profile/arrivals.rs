//! When requests come: small charts by hour, by weekday and over the whole span, and the last one's figures as CSV.

use super::{apart, foreign, lasting, pace, said};
use crate::format::{NAMES, width, wrap};
use brimful_core::profile::{Arrivals, Profile};
use brimful_core::quantity::percent;
use brimful_forecast::Timestamp;

/// Beside the names and a chart over time so many columns stay free.
const MARGIN: usize = 8;
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
const LEVELS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const HOURS: usize = 24;

/// The charts that there is something to see in.
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
    let means: Vec<f64> = arrivals.rates.chunks(per_column).map(mean).collect();
    let step = lasting(arrivals.step_s as f64 * per_column as f64);
    let highest = arrivals.rates.iter().copied().fold(0.0, f64::max);
    let within = lasting(arrivals.step_s as f64);
    let legend = format!("in steps of {step}; at most {} in {within}", pace(highest));
    said("over time", &sparkline(&means)) + &wrap(&legend, NAMES)
}

/// Weekdays below one another, hours beside one another; only where the log has more than one day of the week.
fn grid(arrivals: &Arrivals) -> String {
    let rows = &arrivals.by_weekday_and_hour;
    let days_seen = arrivals.by_weekday.iter().filter(|n| **n > 0).count();
    if days_seen < 2 || rows.len() != DAYS.len() || rows.iter().any(|row| row.len() != HOURS) {
        return String::new();
    }
    let highest = rows.iter().flatten().copied().filter(|x| x.is_finite()).fold(0.0, f64::max);
    let all: f64 = arrivals.by_weekday.iter().map(|n| *n as f64).sum();
    // Two characters for an hour where there is room for them and the shares.
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

/// A shade that is darker the nearer the figure is to the highest.
fn shade(x: f64, highest: f64, characters: usize) -> String {
    let of = |level: usize| SHADES.get(level).copied().unwrap_or(' ').to_string().repeat(characters);
    of(level(x, highest, SHADES.len() - 1))
}

/// One character for each figure, the higher the figure the higher; a dot for none.
pub(super) fn sparkline(figures: &[f64]) -> String {
    let highest = figures.iter().copied().filter(|x| x.is_finite()).fold(0.0, f64::max);
    let of = |x: &f64| LEVELS.get(level(*x, highest, LEVELS.len() - 1)).copied().unwrap_or('?');
    figures.iter().map(of).collect()
}

/// 0 for nothing, else 1 to `most`.
fn level(x: f64, highest: f64, most: usize) -> usize {
    if x > 0.0 && highest > 0.0 { ((x / highest * most as f64).ceil() as usize).clamp(1, most) } else { 0 }
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len().max(1) as f64
}

/// The mean rate in each step of the span, for spreadsheets and for `brimful plan forecast --unit rates`.
pub fn csv(profile: &Profile) -> String {
    let arrivals = &profile.arrivals;
    let from = arrivals.from.parse::<Timestamp>().ok();
    let row = |(i, per_s): (usize, &f64)| {
        let seconds = i64::try_from(arrivals.step_s.saturating_mul(i as u64)).unwrap_or(i64::MAX);
        let time = from.map_or_else(|| seconds.to_string(), |from| from.after(seconds).to_string());
        format!("{time},{per_s}\n")
    };
    "time,requests_per_second\n".to_owned() + &arrivals.rates.iter().enumerate().map(row).collect::<String>()
}
