//! The part of a profile's report about burstiness, service times and sessions.

use super::{apart, foreign, foreign_words, lasting, pace, said};
use crate::format::{figure, interval, number as known, table, words};
use brimful_core::profile::{Dispersion, Profile, Sessions, Times, UrlTimes};
use brimful_core::quantity::{count, number, percent, seconds};

/// Maximum number of indices of dispersion (one per time scale) in the report.
const MAX_EPOCHS: usize = 6;
/// Maximum number of slow URLs in the report.
const MAX_SLOW_URLS: usize = 10;
/// The percentiles in the tables of times.
const PERCENTILES: [&str; 4] = ["50", "90", "95", "99"];

/// Describes the burstiness of arrivals in the peak window.
pub(super) fn bursts(profile: &Profile) -> String {
    let mut text = String::new();
    if let Some(burst) = profile.burstiness {
        let epoch = lasting(burst.epoch_s);
        let what = format!(
            "a {}, b {} in epochs of {epoch}; the fullest has {} times the mean",
            number(burst.a),
            number(burst.b),
            number(burst.peak_to_mean)
        );
        text += &said("bursts", &what);
    }
    let index = |d: &Dispersion| {
        let [low, high] = d.interval95;
        format!("{} ({}) in {}", number(d.index), interval(low, high, known), lasting(d.epoch_s))
    };
    if !profile.dispersion.is_empty() {
        let shown: Vec<String> = spread(&profile.dispersion).into_iter().map(index).collect();
        text += &said("dispersion", &(shown.join(", ") + "; 1 is Poisson's"));
    }
    let hurst = profile.hurst.map(|hurst| {
        let [low, high] = hurst.interval95;
        let (from, to) = (lasting(hurst.from_s), lasting(hurst.to_s));
        format!("{} ({}), from {from} to {to}; 0.5 is without memory", number(hurst.value), interval(low, high, known))
    });
    let missing = || profile.hurst_missing.as_ref().map(|why| format!("not known: {}", foreign_words(why)));
    text + &hurst.or_else(missing).map_or_else(String::new, |hurst| said("Hurst", &hurst))
}

/// Selects at most [`MAX_EPOCHS`] of the indices of dispersion: the first, the last, and evenly spaced ones between
/// them.
fn spread(all: &[Dispersion]) -> Vec<&Dispersion> {
    let last = all.len().saturating_sub(1);
    if all.len() <= MAX_EPOCHS {
        return all.iter().collect();
    }
    (0..MAX_EPOCHS).filter_map(|i| all.get(i * last / (MAX_EPOCHS - 1))).collect()
}

/// A table of service times and of interarrival times.
pub(super) fn times(profile: &Profile) -> String {
    let rows = [
        ("server", &profile.service_s),
        ("upstream", &profile.upstream_s),
        ("between requests", &profile.interarrival_s),
    ];
    let known = rows.into_iter().filter_map(|(name, times)| Some((name, times.as_ref()?)));
    let rows: Vec<Vec<String>> =
        known.filter(|(_, times)| times.samples > 0).map(|(name, times)| row(name, times, seconds)).collect();
    if rows.is_empty() { String::new() } else { distributions("times", &rows) }
}

/// A table of the service times of each class in the peak window.
pub(super) fn times_by_class(profile: &Profile) -> String {
    let known = profile.classes.iter().filter_map(|class| Some((class, class.service_s.as_ref()?)));
    let rows: Vec<Vec<String>> = known.map(|(class, times)| row(&foreign(&class.name, 24), times, seconds)).collect();
    if rows.is_empty() { String::new() } else { distributions("server, by class", &rows) }
}

/// Names the hour with the longest service times, and has a table of the slowest URLs.
pub(super) fn slowest(profile: &Profile) -> String {
    let percentile = |times: &Times, of: &str| times.percentiles.get(of).map_or("-".to_owned(), |x| seconds(*x));
    let hour = profile.slowest_hour.as_ref().map(|hour| {
        let what = format!(
            "95 % of {} requests took at most {}, in the hour from {}; in the usual hour {}",
            count(hour.service_s.samples),
            percentile(&hour.service_s, "95"),
            foreign(&hour.from, 40),
            seconds(hour.median_p95_s)
        );
        said("slowest", &what)
    });
    let columns = [
        figure("requests", 0, None),
        figure("of time", 2, None),
        figure("mean", 2, None),
        figure("50 %", 2, None),
        figure("95 %", 2, None),
        figure("99 %", 2, None),
        figure("max", 2, None),
        words("slowest URLs", 2),
    ];
    let row = |url: &UrlTimes| {
        let method =
            if url.method.is_empty() || url.method == "GET" { String::new() } else { foreign(&url.method, 10) + " " };
        let mut cells = vec![count(url.service_s.samples), percent(url.time_share), seconds(url.service_s.mean)];
        cells.extend(["50", "95", "99"].map(|of| percentile(&url.service_s, of)));
        cells.extend([seconds(url.service_s.max), method + &foreign(&url.url, 36)]);
        cells
    };
    let rows: Vec<Vec<String>> = profile.slowest_urls.iter().take(MAX_SLOW_URLS).map(row).collect();
    let table = if rows.is_empty() { String::new() } else { table(&columns, &rows) };
    apart([hour.unwrap_or_default(), table])
}

/// Describes the sessions of clients: their number, lengths and bursts.
pub(super) fn sessions(profile: &Profile) -> String {
    let Some(sessions) = &profile.sessions else { return String::new() };
    let Sessions { gap_s, burst_gap_s, .. } = sessions;
    let cut = match sessions.cut_short {
        0 => String::new(),
        n => format!("; {} were ended early, as too many were open at once", count(n)),
    };
    let what = format!(
        "{}, {} new ones; a pause of {} ends one, one of {} a burst{cut}",
        count(sessions.sessions),
        pace(sessions.rate),
        lasting(*gap_s),
        lasting(*burst_gap_s)
    );
    let rows = [
        ("requests", &sessions.requests, number as fn(f64) -> String),
        ("length", &sessions.length_s, seconds),
        ("bursts", &sessions.bursts, number),
        ("requests of a burst", &sessions.requests_per_burst, number),
        ("think time", &sessions.think_s, seconds),
    ];
    let known = rows.into_iter().filter(|(_, times, _)| times.samples > 0);
    let rows: Vec<Vec<String>> = known.map(|(name, times, shown)| row(name, times, shown)).collect();
    said("sessions", &what) + &if rows.is_empty() { String::new() } else { distributions("of a session", &rows) }
}

fn row(name: &str, times: &Times, shown: fn(f64) -> String) -> Vec<String> {
    let percentile = |of: &str| times.percentiles.get(of).map_or("-".to_owned(), |x| shown(*x));
    let mut cells = vec![name.to_owned(), count(times.samples), shown(times.mean), number(times.scv)];
    cells.extend(PERCENTILES.map(percentile));
    cells.push(shown(times.max));
    cells
}

fn distributions(title: &str, rows: &[Vec<String>]) -> String {
    let columns = [
        words(title, 0),
        figure("number", 2, None),
        figure("mean", 2, None),
        figure("scv", 2, None),
        figure("50 %", 2, None),
        figure("90 %", 2, None),
        figure("95 %", 2, None),
        figure("99 %", 2, None),
        figure("max", 2, None),
    ];
    table(&columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_epochs_the_ends_are_among_those_shown() {
        let of = |n: u32| {
            let all: Vec<Dispersion> =
                (0..n).map(|i| Dispersion { epoch_s: f64::from(i), ..Dispersion::default() }).collect();
            spread(&all).iter().map(|d| d.epoch_s).collect::<Vec<_>>()
        };
        assert_eq!((of(0), of(2)), (vec![], vec![0.0, 1.0]));
        assert_eq!(of(11), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    }
}
