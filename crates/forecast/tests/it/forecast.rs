//! Tests forecasts of series whose future values are known, and of unusual series.

use brimful_forecast::ForecastError;
use brimful_forecast::{Forecast, ForecastMethod, ForecastOptions, Series, Timestamp, crossing, forecast};
use brimful_forecast::{PeakBasis, Scale, TrendKind, Unit, Zone};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

pub(crate) const DAY_S: u32 = 86_400;
pub(crate) const HOUR_S: u32 = 3_600;
/// Weekly pattern: the amount that each day of the week adds to the arrival rate, per second.
pub(crate) const WEEK: [f64; 7] = [0.0, 10.0, 12.0, 8.0, 5.0, -15.0, -20.0];

/// Options of an automatic forecast for the next `steps` steps.
pub(crate) fn options(steps: usize, step_s: u32) -> ForecastOptions {
    let horizon_s = steps as f64 * f64::from(step_s);
    ForecastOptions { horizon_s, seasons: None, method: ForecastMethod::Auto, peak_to_mean: None }
}

pub(crate) fn series(step_s: u32, rates: &[f64]) -> Series {
    Series::new("2026-01-01".parse().unwrap(), step_s, rates.to_vec()).unwrap()
}

pub(crate) fn daily(rates: &[f64], ahead: usize) -> Forecast {
    forecast(&series(DAY_S, rates), &options(ahead, DAY_S)).unwrap()
}

/// `n` values of standard normal noise.
pub(crate) fn noise(seed: u64, n: usize) -> Vec<f64> {
    StandardNormal.sample_iter(Pcg64::seed_from_u64(seed)).take(n).collect()
}

pub(crate) fn says(forecast: &Forecast, what: &str) -> bool {
    forecast.notes.iter().any(|note| note.contains(what))
}

/// Shares of actual values inside the 80 % and 95 % intervals, averaged over 30 histories. The first two shares are of
/// the values after the history. The last two are those that the back-tests report.
fn coverage(step_s: u32, n: usize, ahead: usize, rates: fn(&[f64]) -> Vec<f64>) -> [f64; 4] {
    let (histories, mut sums) = (30, [0.0; 4]);
    for seed in 0..histories {
        let all = rates(&noise(seed, n + ahead));
        let forecast = forecast(&series(step_s, &all[..n]), &options(ahead, step_s)).unwrap();
        assert_eq!(forecast.points.len(), ahead);
        for (point, rate) in forecast.points.iter().zip(&all[n..]) {
            assert!(point.lower95 <= point.lower80 && point.lower80 <= point.likely);
            assert!(point.likely <= point.upper80 && point.upper80 <= point.upper95);
            sums[0] += f64::from((point.lower80..=point.upper80).contains(rate)) / ahead as f64;
            sums[1] += f64::from((point.lower95..=point.upper95).contains(rate)) / ahead as f64;
        }
        let backtest = forecast.backtest.unwrap();
        sums[2] += backtest.coverage80;
        sums[3] += backtest.coverage95;
    }
    sums.map(|s| s / histories as f64)
}

fn assert_promised(what: &str, [share80, share95, tried80, tried95]: [f64; 4]) {
    assert!((0.74..0.88).contains(&share80), "{what}: {share80} in the 80 % interval");
    assert!((0.91..0.98).contains(&share95), "{what}: {share95} in the 95 % interval");
    assert!((0.65..0.90).contains(&tried80) && (0.85..0.985).contains(&tried95), "{what}: {tried80}, {tried95} tried");
}

#[test]
fn intervals_hold_what_they_promise() {
    let line = |noise: &[f64]| -> Vec<f64> {
        noise.iter().enumerate().map(|(i, e)| 100.0 + 0.3 * i as f64 + WEEK[i % 7] + 5.0 * e).collect()
    };
    assert_promised("a line", coverage(DAY_S, 120, 60, line));
    assert_promised("a short line", coverage(DAY_S, 40, 20, line));
    let growth = |noise: &[f64]| -> Vec<f64> {
        noise.iter().enumerate().map(|(i, e)| (4.0 + 0.004 * i as f64 + WEEK[i % 7] / 100.0 + 0.08 * e).exp()).collect()
    };
    assert_promised("growth in proportion", coverage(DAY_S, 120, 60, growth));
    let lasting = |noise: &[f64]| -> Vec<f64> {
        let mut deviation = 0.0;
        let step = |(i, e): (usize, &f64)| {
            deviation = 0.7 * deviation + 5.0 * e;
            100.0 + 0.3 * i as f64 + WEEK[i % 7] + deviation
        };
        noise.iter().enumerate().map(step).collect()
    };
    assert_promised("lasting deviations", coverage(DAY_S, 120, 60, lasting));
    let walk = |noise: &[f64]| -> Vec<f64> {
        let mut level = 200.0;
        let step = |(i, e): (usize, &f64)| {
            level += 0.1 + 2.0 * e;
            f64::max(level + WEEK[i % 7], 0.0)
        };
        noise.iter().enumerate().map(step).collect()
    };
    assert_promised("a random walk", coverage(DAY_S, 400, 60, walk));
    let hours = |noise: &[f64]| -> Vec<f64> {
        let hour = |i: usize| 20.0 * (i as f64 / 24.0 * std::f64::consts::TAU).sin();
        let day = |i: usize| if i / 24 % 7 > 4 { -15.0 } else { 6.0 };
        noise.iter().enumerate().map(|(i, e)| 100.0 + 0.01 * i as f64 + hour(i) + day(i) + 5.0 * e).collect()
    };
    assert_promised("hours", coverage(HOUR_S, 24 * 7 * 3, 48, hours));
}

#[test]
fn trend_and_season_without_noise_go_on_as_they_were() {
    let truth = |i: usize| 100.0 + 0.5 * i as f64 + WEEK[i % 7];
    let rates: Vec<f64> = (0..70).map(truth).collect();
    let forecast = daily(&rates, 30);
    assert_eq!((forecast.seasons.as_slice(), forecast.scale), (&[7][..], Scale::Linear));
    for (h, point) in forecast.points.iter().enumerate() {
        assert!((point.likely / truth(70 + h) - 1.0).abs() < 0.01, "{h}: {point:?}");
    }
    assert_eq!(forecast.points[0].time.to_string(), "2026-03-12T00:00:00Z");
    // At the end of the history, the trend is at 135 and grows by 0.5 per day. This is about 11 % in the first month.
    assert!((0.08..0.13).contains(&forecast.growth_per_month.unwrap()), "{:?}", forecast.growth_per_month);
    assert!(
        forecast.in_sample.mase.unwrap() < 0.3 && forecast.in_sample.mape.unwrap() < 0.02,
        "{:?}",
        forecast.in_sample
    );
    let last_week = &rates[63..];
    assert!((forecast.present_rate - last_week.iter().sum::<f64>() / 7.0).abs() < 1e-9);
    assert_eq!(forecast.present_peak_rate, last_week.iter().fold(0.0, |a: f64, b| a.max(*b)));
}

#[test]
fn a_scaled_history_has_the_scaled_forecast() {
    for seed in 0..6 {
        let rates: Vec<f64> =
            noise(seed, 90).iter().enumerate().map(|(i, e)| 200.0 + i as f64 + WEEK[i % 7] + 8.0 * e).collect();
        let plain = daily(&rates, 30);
        for factor in [1e-6, 0.37, 1e9] {
            let scaled = daily(&rates.iter().map(|r| r * factor).collect::<Vec<_>>(), 30);
            assert_eq!((scaled.trend, scaled.scale, &scaled.seasons), (plain.trend, plain.scale, &plain.seasons));
            for (a, b) in plain.points.iter().zip(&scaled.points) {
                for (a, b) in [(a.likely, b.likely), (a.lower80, b.lower80), (a.upper95, b.upper95)] {
                    assert!((a * factor / b - 1.0).abs() < 1e-6, "{a} × {factor}, {b}");
                }
            }
        }
    }
}

#[test]
fn a_shifted_history_has_the_shifted_dates() {
    let rates: Vec<f64> = noise(1, 60).iter().enumerate().map(|(i, e)| 100.0 + i as f64 + 3.0 * e).collect();
    let early = series(DAY_S, &rates);
    let late = Series { start: early.start.plus_seconds(1000 * i64::from(DAY_S)), ..early.clone() };
    let [early, late] = [early, late].map(|s| forecast(&s, &options(60, DAY_S)).unwrap());
    for (a, b) in early.points.iter().zip(&late.points) {
        assert_eq!((a.likely, a.time.plus_seconds(1000 * i64::from(DAY_S))), (b.likely, b.time));
    }
    let [a, b] = [&early, &late].map(|f| crossing(f, 180.0).unwrap());
    assert_eq!(a.likely.map(|t| t.plus_seconds(1000 * i64::from(DAY_S))), b.likely);
    assert!(a.likely.is_some());
}

#[test]
fn a_crossing_is_dated_by_the_forecast_and_bounded_by_its_interval() {
    let rates: Vec<f64> = noise(2, 100).iter().enumerate().map(|(i, e)| 100.0 + i as f64 + 2.0 * e).collect();
    let forecast = daily(&rates, 120);
    let found = crossing(&forecast, 250.0).unwrap();
    let (earliest, likely, latest) = (found.earliest.unwrap(), found.likely.unwrap(), found.latest.unwrap());
    // The rate is 100 + i on day i after 2026-01-01, so it reaches 250 on day 150.
    let true_date: Timestamp = "2026-05-31".parse().unwrap();
    assert!((likely.unix() - true_date.unix()).abs() <= 3 * i64::from(DAY_S), "{likely}");
    assert!(earliest < likely && likely < latest && !found.already, "{found:?}");
    assert!(latest.unix() - earliest.unix() < 30 * i64::from(DAY_S), "{found:?}");
    let never = crossing(&forecast, 1000.0).unwrap();
    assert_eq!((never.earliest, never.likely, never.latest, never.already), (None, None, None, false));
    let already = crossing(&forecast, 150.0).unwrap();
    assert!(already.already && already.likely.unwrap() < forecast.start(), "{already:?}");
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(crossing(&forecast, wrong), Err(ForecastError::Number { .. })));
    }
}

#[test]
fn a_peak_within_the_day_crosses_sooner() {
    let rates: Vec<f64> = noise(3, 100).iter().enumerate().map(|(i, e)| 100.0 + i as f64 + 2.0 * e).collect();
    let given = ForecastOptions { peak_to_mean: Some(1.25), ..options(300, DAY_S) };
    let peaked = forecast(&series(DAY_S, &rates), &given).unwrap();
    assert_eq!((peaked.peak.factor, peaked.peak.basis), (1.25, PeakBasis::Given));
    let flat = daily(&rates, 300);
    assert_eq!(flat.peak.basis, PeakBasis::Unknown);
    assert!(says(&flat, "peak"), "{:?}", flat.notes);
    assert_eq!(crossing(&peaked, 312.5).unwrap().likely, crossing(&flat, 250.0).unwrap().likely);
    assert!(crossing(&peaked, 250.0).unwrap().likely < crossing(&flat, 250.0).unwrap().likely);
    assert_eq!(peaked.present_peak_rate, 1.25 * flat.present_peak_rate);
}

#[test]
fn far_ahead_hours_become_days_and_tell_their_peak() {
    // The history starts at 05:00, and the peak of every day is twice its mean.
    let shape = |hour: usize| if hour == 14 { 2.0 } else { 22.0 / 23.0 };
    let rates: Vec<f64> = (5..24 * 40 + 3).map(|i| (50.0 + (i / 24) as f64) * shape(i % 24)).collect();
    let start: Timestamp = "2026-01-01 05:00".parse().unwrap();
    let hours = Series::new(start, HOUR_S, rates).unwrap();
    let far = forecast(&hours, &ForecastOptions { seasons: Some(vec![24, 168]), ..options(90, DAY_S) }).unwrap();
    assert_eq!((far.history.step_s, far.history.rates.len(), far.points.len()), (DAY_S, 39, 90));
    assert_eq!(far.history.start.to_string(), "2026-01-02T00:00:00Z");
    assert_eq!(far.peak.basis, PeakBasis::Learnt);
    assert!((far.peak.factor - 2.0).abs() < 1e-9, "{:?}", far.peak);
    assert_eq!(far.seasons, [7], "a season of 168 hours must become 7 days");
    assert!((far.points[89].likely / (51.0 + 38.0 + 90.0) - 1.0).abs() < 0.02, "{:?}", far.points[89]);
    let near = forecast(&hours, &options(48, HOUR_S)).unwrap();
    assert_eq!((near.history.step_s, near.peak.factor), (HOUR_S, 1.0));
    assert_eq!(near.points.len(), 48);
}

#[test]
fn of_fine_steps_only_the_last_weeks_count() {
    let rates: Vec<f64> = noise(4, 24 * 70).iter().map(|e| 100.0 + e).collect();
    let near = forecast(&series(HOUR_S, &rates), &options(24, HOUR_S)).unwrap();
    assert_eq!((near.history.rates.len(), near.history.start.to_string().as_str()), (24 * 56, "2026-01-15T00:00:00Z"));
    assert!(says(&near, "last 56 days"), "{:?}", near.notes);
    assert_eq!(near.points[0].time.to_string(), "2026-03-12T00:00:00Z");
}

#[test]
fn a_history_too_short_for_a_season_is_forecast_without_and_it_is_said() {
    let rates: Vec<f64> = (0..12).map(|i| 100.0 + i as f64 + WEEK[i % 7]).collect();
    let forecast = daily(&rates, 7);
    assert!(forecast.seasons.is_empty());
    assert!(says(&forecast, "No season of 7 steps: it needs a history of 14"), "{:?}", forecast.notes);
    let asked = ForecastOptions { seasons: Some(vec![30]), ..options(7, DAY_S) };
    let asked = brimful_forecast::forecast(&series(DAY_S, &rates), &asked).unwrap();
    assert!(says(&asked, "No season of 30 steps"), "{:?}", asked.notes);
}

#[test]
fn what_is_too_short_for_anything_says_how_much_is_missing() {
    for n in 0..8 {
        let error = forecast(&series(DAY_S, &vec![5.0; n]), &options(7, DAY_S)).unwrap_err();
        assert_eq!(error, ForecastError::SeriesTooShort { given: n, needed: 8 });
        assert!(error.to_string().contains(&format!("{} more", 8 - n)), "{error}");
    }
    assert_eq!(daily(&[5.0; 8], 7).points.len(), 7);
}

#[test]
fn constants_and_zeros_stay_what_they_are() {
    for rate in [0.0, 5.0, 0.1, 1e15] {
        let forecast = daily(&[rate; 40], 10);
        assert_eq!((forecast.trend, forecast.seasons.len()), (TrendKind::Constant, 0));
        for point in &forecast.points {
            for value in [point.lower95, point.likely, point.upper95] {
                assert!((value - rate).abs() <= 1e-9 * rate, "{point:?}");
            }
        }
        assert_eq!(forecast.in_sample.mase, None);
        assert_eq!(daily(&[rate; 61], 10).growth_per_month, (rate > 0.0).then_some(0.0));
        assert_eq!(crossing(&forecast, rate * 1.01 + 1.0).unwrap().earliest, None);
    }
}

#[test]
fn a_jump_is_named_and_what_follows_it_can_be_forecast() {
    let rates: Vec<f64> = noise(5, 90).iter().enumerate().map(|(i, e)| if i < 60 { 50.0 } else { 100.0 } + e).collect();
    let forecast = daily(&rates, 14);
    assert!(says(&forecast, "At 2026-03-02T00:00:00Z arrivals changed"), "{:?}", forecast.notes);
    let last = forecast.points[13];
    assert!(last.lower80 < 100.0 && 100.0 < last.upper80 && forecast.widening <= 2.0, "{last:?}");
    let last = daily(&rates[60..], 14).points[13];
    assert!((98.0..102.0).contains(&last.likely) && last.upper95 < 105.0, "{last:?}");
    let smooth: Vec<f64> = noise(5, 90).iter().map(|e| 50.0 + e).collect();
    assert!(!says(&daily(&smooth, 14), "arrivals changed"));
    let exact: Vec<f64> = (0..90).map(|i| 50.0 + f64::from(i)).collect();
    assert!(!says(&daily(&exact, 14), "arrivals changed"));
}

#[test]
fn a_history_is_read_however_it_is_written() {
    let csv = "time,count\n2026-03-01 00:00,3600\n2026-03-01 01:00,7200\n2026-03-01 02:00,0\n";
    let read = Series::parse(csv, Unit::Counts, None).unwrap();
    assert_eq!((read.step_s, read.rates.as_slice()), (HOUR_S, &[1.0, 2.0, 0.0][..]));
    for same in [
        "2026-03-01T00:00:00Z;3600\r\n2026-03-01T01:00:00Z;7200\r\n2026-03-01T02:00:00Z;0",
        "# from the proxy\n1772323200\t3600\n\n1772326800\t7.2e3\n1772330400\t0\n",
        "\u{feff}\"time\",\"value\"\n\"2026-03-01T01:00:00+01:00\",\"3600\"\n2026-03-01T01:00Z,7200\n2026-03-01T02:00Z, 0",
        "[[1772323200, 3600], [1772326800000, 7200], [\"2026-03-01 02:00\", \"0\"]]",
        " [{\"time\": \"2026-03-01\", \"value\": 3600}, {\"value\": 7200.0, \"time\": 1772326800}, [1772330400.5, 0]]",
    ] {
        let again = Series::parse(same, Unit::Counts, None).unwrap();
        assert_eq!((again.start.unix(), again.step_s), (read.start.unix(), read.step_s), "{same}");
        assert_eq!(again.rates, read.rates, "{same}");
        // One of the texts has times with two different offsets from UTC. The offset of the latest time must be used.
        assert_eq!((again.mixed_offsets, again.zone), (same.contains("+01:00"), read.zone.clone()), "{same}");
    }
    assert_eq!(Series::parse(csv, Unit::Rates, None).unwrap().rates, [3600.0, 7200.0, 0.0]);
    let newest_first = "2026-03-03,3\n2026-03-02,2\n2026-03-01,1\n";
    let sorted = Series::parse(newest_first, Unit::Rates, None).unwrap();
    assert_eq!((sorted.rates.as_slice(), sorted.out_of_order), (&[1.0, 2.0, 3.0][..], 2));
}

#[test]
fn short_gaps_are_bridged_and_long_ones_refused() {
    let text = |missing: &[usize]| -> String {
        let days = (0..60).filter(|i| !missing.contains(i));
        let start: Timestamp = "2026-03-01".parse().unwrap();
        days.map(|i| format!("{},{}\n", start.plus_seconds(i as i64 * i64::from(DAY_S)).date(), 100 + i)).collect()
    };
    let bridged = Series::parse(&text(&[10, 30, 31, 32]), Unit::Rates, None).unwrap();
    assert!(bridged.rates.iter().enumerate().all(|(i, r)| (r - 100.0 - i as f64).abs() < 1e-9));
    let gaps: Vec<(String, usize)> = bridged.bridged.iter().map(|g| (g.from.date(), g.steps)).collect();
    assert_eq!(gaps, [("2026-03-11".to_owned(), 1), ("2026-03-31".to_owned(), 3)]);
    assert!(says(&forecast(&bridged, &options(7, DAY_S)).unwrap(), "4 missing values"));
    let long = Series::parse(&text(&[30, 31, 32, 33]), Unit::Rates, None).unwrap_err().to_string();
    assert!(long.contains("4 steps from 2026-03-31") && long.contains("begins at 2026-04-04"), "{long}");
    let many = Series::parse(&text(&[5, 15, 25, 35, 45, 50, 55]), Unit::Rates, None).unwrap_err();
    assert_eq!(many, ForecastError::Gaps { missing: 7, steps: 60 });
    let empty_value = text(&[]).replace("2026-03-05,104", "2026-03-05,");
    assert_eq!(Series::parse(&empty_value, Unit::Rates, None).unwrap().bridged.len(), 1);
}

#[test]
fn days_of_23_and_25_hours_are_days() {
    let local =
        "2026-03-28T00:00+01:00,1\n2026-03-29T00:00+01:00,2\n2026-03-30T00:00+02:00,3\n2026-03-31T00:00+02:00,4\n";
    let read = Series::parse(local, Unit::Rates, None).unwrap();
    assert_eq!((read.step_s, read.rates.as_slice()), (DAY_S, &[1.0, 2.0, 3.0, 4.0][..]));
}

#[test]
fn days_are_those_of_the_clocks() {
    let days = |offset: [&str; 2]| -> String {
        (10..31).map(|d| format!("2026-03-{d}T00:00:00{},{d}\n", offset[usize::from(d > 29)])).collect()
    };
    let dates = |series: &Series| {
        let found = forecast(series, &options(3, DAY_S)).unwrap();
        let times: Vec<String> = found.points.iter().map(|p| p.time.to_string()).collect();
        (found.history.start.date(), times.join(" "))
    };
    let east = Series::parse(&days(["+01:00"; 2]), Unit::Rates, None).unwrap();
    let next = "2026-03-31T00:00:00+01:00 2026-04-01T00:00:00+01:00 2026-04-02T00:00:00+01:00";
    assert_eq!((east.zone.to_string().as_str(), dates(&east)), ("+01:00", ("2026-03-10".into(), next.into())));
    let next = next.replace("+01:00", "+02:00");
    let both = Series::parse(&days(["+01:00", "+02:00"]), Unit::Rates, None).unwrap();
    assert_eq!((both.zone.to_string().as_str(), dates(&both)), ("+02:00", ("2026-03-10".into(), next.clone())));
    let berlin: Zone = "Europe/Berlin".parse().unwrap();
    for text in [days(["+01:00", "+02:00"]), days(["", ""])] {
        let read = Series::parse(&text, Unit::Rates, Some(&berlin)).unwrap();
        assert_eq!(dates(&read), ("2026-03-10".into(), next.clone()));
        assert_eq!(read.start.to_string(), "2026-03-10T00:00:00+01:00");
    }
    let utc = Series::parse(&days(["", ""]), Unit::Rates, None).unwrap();
    assert_eq!((utc.zone.to_string().as_str(), utc.start.to_string().as_str()), ("UTC", "2026-03-10T00:00:00Z"));
}

/// A shop opens at nine in local time. Its season must follow the change of the clocks on 2026-03-29. The times in the
/// history are in UTC.
#[test]
fn seasons_follow_the_clocks() {
    let berlin: Zone = "Europe/Berlin".parse().unwrap();
    let first = "2026-03-01T00:00:00+01:00".parse::<Timestamp>().unwrap().unix();
    let ahead_h = |i: i64| if i < 24 * 28 + 2 { 1 } else { 2 };
    let hour = |i: i64| (i + 23 + ahead_h(i)).rem_euclid(24);
    let rate = |i: i64| if (9..18).contains(&hour(i)) { 100.0 } else { 10.0 };
    let text: String = (0..24 * 35).map(|i| format!("{},{}\n", first + 3600 * i, rate(i))).collect();
    let read = Series::parse(&text, Unit::Rates, Some(&berlin)).unwrap();
    let found = forecast(&read, &options(72, HOUR_S)).unwrap();
    for (i, point) in (24 * 35..).zip(&found.points) {
        assert!((point.likely - rate(i)).abs() < 10.0, "{}: {}, not {}", point.time, point.likely, rate(i));
    }
    assert!(found.seasons.iter().all(|season| season % 24 == 0), "{:?}", found.seasons);
    // In daily steps, all days must have the same rate: no day may include an hour of the previous or next day.
    let far = forecast(&read, &options(30, DAY_S)).unwrap();
    assert_eq!(far.history.start.to_string(), "2026-03-01T00:00:00+01:00");
    assert_eq!(far.points[0].time.to_string(), "2026-04-05T00:00:00+02:00");
    let mean = (9.0 * 100.0 + 15.0 * 10.0) / 24.0;
    assert!(far.history.rates.iter().all(|r| (r - mean).abs() < 1e-9), "{:?}", far.history.rates);
    let mixed = text.replace(&format!("{first},"), "2026-03-01T00:00:00+01:00,");
    let last = format!("{},", first + 3600 * (24 * 35 - 1));
    let mixed = mixed.replace(&last, "2026-04-05T00:00:00+02:00,");
    let mixed = forecast(&Series::parse(&mixed, Unit::Rates, None).unwrap(), &options(72, HOUR_S)).unwrap();
    assert!(
        says(&mixed, "more than one offset from UTC; days and hours of the day are those of +02:00"),
        "{:?}",
        mixed.notes
    );
}

#[test]
fn what_is_no_history_is_refused_with_its_place() {
    let refused = |text: &str, expected: &str| {
        let error = Series::parse(text, Unit::Counts, None).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    };
    refused("", "8 more are needed");
    refused("2026-03-01,5", "7 more are needed");
    refused("[]", "8 more are needed");
    refused("time,value\n2026-03-01,-5\n", "line 2: `-5` is no number of arrivals");
    refused("2026-03-01,1\n2026-03-02,NaN\n", "line 2: `NaN`");
    refused("2026-03-01,1\n2026-03-02,inf\n", "line 2: `inf`");
    refused("2026-03-01,1\n03/02/2026,1\n", "line 2: `03/02/2026` is no time");
    refused("03/01/2026,1\n03/02/2026,1\n", "line 1: `03/01/2026` is no time");
    refused("2026-03-01,1,2\n", "line 1: 3 columns");
    refused("2026-03-01\n", "line 1: 1 columns");
    refused("2026-03-01,1\n2026-03-02,1\n2026-03-01,2\n", "line 3: 2026-03-01T00:00:00Z was given on line 1 already");
    refused(
        "2026-03-01,1\n2026-03-02,1\n2026-03-03,1\n2026-03-03 12:00,2\n",
        "line 4: 2026-03-03T12:00:00Z does not lie",
    );
    refused("2026-01-01,1\n2026-02-01,1\n2026-03-01,1\n2026-04-01,1\n", "months have none: use weeks");
    refused("0001-01-01,1\n9000-01-01,1\n", "check the times");
    refused("[[1, 2], [3]]", "entry 2");
    refused("[[1, 2], [3, 4]", "no JSON array");
    refused("[{\"time\": 1, \"value\": {}}]", "entry 1: `{}`");
}

#[test]
fn options_that_cannot_be_are_refused() {
    let history = series(DAY_S, &[5.0; 20]);
    let good = options(7, DAY_S);
    for wrong in [
        ForecastOptions { horizon_s: 0.0, ..good.clone() },
        ForecastOptions { horizon_s: f64::NAN, ..good.clone() },
        ForecastOptions { horizon_s: 1e300, ..good.clone() },
        ForecastOptions { seasons: Some(vec![1]), ..good.clone() },
        ForecastOptions { peak_to_mean: Some(0.5), ..good.clone() },
        ForecastOptions { peak_to_mean: Some(f64::NAN), ..good.clone() },
        ForecastOptions { method: ForecastMethod::Smoothing { alpha: 2.0 }, ..good.clone() },
        ForecastOptions { method: ForecastMethod::MovingAverage { window: 0 }, ..good.clone() },
    ] {
        assert!(matches!(forecast(&history, &wrong), Err(ForecastError::Number { .. })), "{wrong:?}");
    }
    let by_hand = Series { rates: vec![f64::NAN; 20], ..history.clone() };
    assert!(matches!(forecast(&by_hand, &good), Err(ForecastError::Number { .. })));
    let no_step = Series { step_s: 0, ..history };
    assert!(matches!(forecast(&no_step, &good), Err(ForecastError::Number { .. })));
}

/// Wolf's relative sunspot numbers of 1811 to 1869 (Box & Jenkins, *Time Series Analysis*, 1976, series E). The tests
/// use the number of each year as the rate of a day. The numbers rise and fall in cycles of varying length, which no
/// trend explains.
const SUNSPOTS: [f64; 59] = [
    1.0, 5.0, 12.0, 14.0, 35.0, 46.0, 41.0, 30.0, 24.0, 16.0, 7.0, 4.0, 2.0, 8.0, 17.0, 36.0, 50.0, 62.0, 67.0, 71.0,
    48.0, 28.0, 8.0, 13.0, 57.0, 122.0, 138.0, 103.0, 86.0, 63.0, 37.0, 24.0, 11.0, 15.0, 40.0, 62.0, 98.0, 124.0,
    96.0, 66.0, 64.0, 54.0, 39.0, 21.0, 7.0, 4.0, 23.0, 55.0, 94.0, 96.0, 77.0, 59.0, 44.0, 47.0, 30.0, 16.0, 7.0,
    37.0, 74.0,
];

/// Wherever the history ends, a forecast of 180 days must stay near past rates. If its interval does not, a note must
/// warn.
#[test]
fn what_nothing_vouches_for_is_not_extrapolated_far() {
    for zeros in [0, 1] {
        for end in 14..=SUNSPOTS.len() {
            let rates = [&vec![0.0; zeros][..], &SUNSPOTS[..end]].concat();
            let seen = rates.iter().copied().fold(0.0, f64::max);
            let forecast = daily(&rates, 180);
            for point in &forecast.points {
                assert!(point.likely <= 5.0 * seen && point.upper95 <= 50.0 * seen, "{zeros}, {end}: {point:?}");
            }
            let upper = forecast.points.iter().map(|p| p.upper95).fold(0.0, f64::max);
            assert_eq!(says(&forecast, "the highest rate of the history: so far ahead"), upper > 10.0 * seen);
            assert_eq!(forecast.growth_per_month, None, "no growth may be reported for a history of at most 60 days");
        }
    }
}

#[test]
fn growth_in_a_month_takes_two_to_see() {
    let hour = |i: usize| (100.0 + 0.2 * i as f64) * (1.0 + 0.3 * (i as f64 / 24.0 * std::f64::consts::TAU).sin());
    let rates = |n: usize| -> Vec<f64> { noise(6, n).iter().enumerate().map(|(i, e)| hour(i) + 2.0 * e).collect() };
    let short = forecast(&series(HOUR_S, &rates(72)), &options(180, DAY_S)).unwrap();
    assert_eq!(short.growth_per_month, None);
    assert!(
        says(&short, "No growth per month is reported") && says(&short, "this one lasts 3 days"),
        "{:?}",
        short.notes
    );
    let long = forecast(&series(HOUR_S, &rates(24 * 61)), &options(180, DAY_S)).unwrap();
    // The rate grows by 0.2 per hour from about 390. After 180 days, it is 3.2 times as high, which is a growth of
    // about 22 % per month.
    assert!((0.15..0.45).contains(&long.growth_per_month.unwrap()), "{:?}", long.growth_per_month);
    assert!(!says(&long, "No growth per month"), "{:?}", long.notes);
}

/// 700 daily rates, with or without holidays. In each year, nine single days and the last ten days are holidays.
fn with_holidays(there: bool) -> Vec<f64> {
    let holidays = [5, 108, 111, 120, 148, 159, 275, 304, 318];
    let day = |(i, e): (usize, &f64)| {
        let holiday = there && (holidays.contains(&(i % 365)) || i % 365 > 354);
        (1000.0 + 0.4 * i as f64) * (1.0 + WEEK[i % 7] / 100.0) * if holiday { 0.35 } else { 1.0 } * (1.0 + 0.04 * e)
    };
    noise(8, 700).iter().enumerate().map(day).collect()
}

#[test]
fn holidays_neither_bend_a_forecast_nor_blur_it() {
    let [plain, rates] = [false, true].map(with_holidays);
    let (mut off, mut again, mut widths, mut named) = (0.0, 0.0, [0.0; 2], 0);
    for end in (400..=660).step_by(20) {
        let [without, with] = [&plain, &rates].map(|rates| daily(&rates[..end], 28));
        let width = |forecast: &Forecast| forecast.points.iter().map(|p| p.upper80 - p.lower80).sum::<f64>();
        widths[0] += width(&without);
        widths[1] += width(&with);
        // If one of the last days was a holiday, there is no note, because that value may be a new level.
        named += usize::from(says(&with, "were kept out of the trend"));
        assert!(!says(&without, "were kept out of the trend"), "{:?}", without.notes);
        for (h, point) in with.points.iter().enumerate() {
            off += (point.likely - rates[end + h]).abs();
            again += (rates[end - 7 + h % 7] - rates[end + h]).abs();
        }
    }
    assert!(named > 7 && widths[1] < 2.0 * widths[0], "{named} of 14 notes, {widths:?}");
    assert!(off < again, "error {off}, seasonal naive error {again}");
}

#[test]
fn the_back_test_chooses_scale_and_trend() {
    let mut scales = Vec::new();
    for seed in 0..8 {
        let noise = noise(seed, 120);
        // Three kinds of series: each weekday follows its own random walk; seasonal swings proportional to the rate;
        // constant seasonal swings.
        let wandering = |i: usize| 100.0 + noise[i % 7..=i].iter().step_by(7).sum::<f64>() * 3.0 + 8.0 * WEEK[i % 7];
        let in_proportion = |i: usize| (3.0 + 0.02 * i as f64 + WEEK[i % 7] / 20.0 + 0.02 * noise[i]).exp();
        let steady = |i: usize| 100.0 + i as f64 + WEEK[i % 7] + noise[i];
        for rate in [&wandering as &dyn Fn(usize) -> f64, &in_proportion, &steady] {
            let rates: Vec<f64> = (0..120).map(|i| rate(i).max(0.0)).collect();
            let forecast = daily(&rates, 28);
            let backtest = forecast.backtest.as_ref().unwrap();
            let errors = || backtest.tried.iter().filter_map(|t| t.mase);
            assert!(backtest.mase.unwrap() <= 1.05 * errors().fold(f64::MAX, f64::min), "{backtest:?}");
            let naive = backtest.tried.last().unwrap();
            assert_eq!((naive.trend, naive.mase), (TrendKind::SeasonalNaive, backtest.naive_mase));
            let best = naive.mase.unwrap() <= errors().fold(f64::MAX, f64::min);
            assert_eq!(forecast.trend == TrendKind::SeasonalNaive, best, "{backtest:?}");
            assert_eq!(says(&forecast, "No method was better on the past than repeating the last"), best);
            scales.push(forecast.scale);
        }
    }
    assert!(scales.contains(&Scale::Log) && scales.contains(&Scale::Linear), "{scales:?}");
}

/// A method that the user chose must be used, even if another is better. If the seasonal naive method is as good, a
/// note must say so.
#[test]
fn a_method_asked_for_is_used_whatever_the_back_test_finds() {
    let rates: Vec<f64> = (0..60).map(|i| if i % 20 < 10 { 100.0 } else { 50.0 }).collect();
    let options = ForecastOptions { method: ForecastMethod::Line, seasons: Some(vec![20]), ..options(20, DAY_S) };
    let asked = forecast(&series(DAY_S, &rates), &options).unwrap();
    assert_eq!(asked.trend, TrendKind::Line);
    let falling: Vec<f64> = (0..60).map(|i| if i < 45 { 100.0 + i as f64 } else { 50.0 }).collect();
    let asked = forecast(&series(DAY_S, &falling), &ForecastOptions { seasons: Some(Vec::new()), ..options }).unwrap();
    assert_eq!(asked.trend, TrendKind::Line);
    assert!(says(&asked, "repeating the last value was no worse"), "{:?}", asked.notes);
}

fn any_method() -> impl Strategy<Value = ForecastMethod> {
    prop_oneof![
        Just(ForecastMethod::Auto),
        Just(ForecastMethod::Line),
        any::<f64>().prop_map(|alpha| ForecastMethod::Smoothing { alpha }),
        any::<usize>().prop_map(|window| ForecastMethod::MovingAverage { window }),
    ]
}

fn any_rates() -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![
        prop::collection::vec(any::<f64>(), 0..30),
        prop::collection::vec(prop_oneof![Just(0.0), Just(5e-324), Just(1e15), 0.0..100.0], 0..90),
        prop::collection::vec(0.0..1e3, 0..90),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_history_gets_a_forecast_or_an_error(
        start in any::<i64>(), step in prop_oneof![Just(0), Just(DAY_S), Just(HOUR_S), any::<u32>()], rates in any_rates(),
        horizon_s in prop_oneof![any::<f64>(), 1.0..1e7], seasons in prop::option::of(prop::collection::vec(0_usize..40, 0..3)),
        zone in prop_oneof![Just("UTC"), Just("Europe/Berlin"), Just("Australia/Lord_Howe"), Just("-03:30")],
        method in any_method(), peak_to_mean in prop::option::of(any::<f64>()), limit in any::<f64>(),
    ) {
        let series = Series { zone: zone.parse().unwrap(), start: Timestamp::from_unix(start), step_s: step, rates, ..series(DAY_S, &[]) };
        let options = ForecastOptions { horizon_s, seasons, method, peak_to_mean };
        if let Ok(forecast) = forecast(&series, &options) {
            for p in &forecast.points {
                let numbers = [0.0, p.lower95, p.lower80, p.likely, p.upper80, p.upper95, f64::MAX];
                prop_assert!(numbers.is_sorted(), "{:?}", p);
            }
            if let Ok(found) = crossing(&forecast, limit) {
                let dates = [found.earliest, found.likely, found.latest].map(|d| d.map_or(i64::MAX, Timestamp::unix));
                prop_assert!(dates.is_sorted(), "{:?}", found);
            }
        }
    }

    #[test]
    fn no_text_panics(text in "(.|\n){0,200}", lines in "([0-9TZ:, .\"+-]{0,24}\n){0,12}", json in "\\[[\\[\\]{}0-9,\" .:a-z-]{0,80}") {
        for text in [text, lines, json] {
            if let Ok(series) = Series::parse(&text, Unit::Counts, None) {
                let _ = forecast(&series, &options(10, series.step_s));
            }
        }
    }
}
