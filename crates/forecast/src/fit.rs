//! Trend and season together, on each scale that may suit them.

use crate::closed::Closed;
use crate::options::ForecastMethod;
use crate::outliers;
use crate::result::InSample;
use crate::scale::Scale;
use crate::season::{Season, decompose, detect, usual};
use crate::trend::Trend;
use crate::trend::TrendKind;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// How to fit a history.
#[derive(Clone, Copy)]
pub(crate) struct How<'a> {
    pub step_s: u32,
    pub seasons: Option<&'a [usize]>,
    pub method: ForecastMethod,
    /// Whether logarithms may be tried.
    pub log: bool,
    /// Steps that are zero whatever is fitted.
    pub closed: &'a Closed,
}

/// What a forecast is made from.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub scale: Scale,
    pub seasons: Vec<Season>,
    pub trend: Trend,
    /// Indices of the values that the trend was fitted without.
    pub outliers: Vec<usize>,
    /// How many it was fitted to.
    pub values: usize,
}

/// Trend and season fitted in each way that may be chosen, always in the same order: the seasonal naive method is last.
pub(crate) struct Candidates {
    pub all: Vec<Fitted>,
    /// The one to use where no back-test tells more.
    pub preferred: usize,
    /// The period that the seasonal naive method repeats, in steps.
    pub period: usize,
}

impl Candidates {
    /// Fits rates, and their logarithms if `how` allows that and no rate is 0. The period is found if it is not given.
    pub(crate) fn fit(rates: &[f64], how: How<'_>, period: Option<usize>) -> Self {
        let mut all = Fitted::on(Scale::Linear, rates, how);
        let period = period.unwrap_or_else(|| all[0].longest_season());
        let mut preferred = 0;
        if how.log {
            let log = Fitted::on(Scale::Log, rates, how);
            if log[0].criterion(rates) < all[0].criterion(rates) {
                preferred = all.len();
            }
            all.extend(log);
        }
        all.push(Fitted::seasonal_naive(rates, period));
        Self { all, preferred, period }
    }
}

impl Fitted {
    fn on(scale: Scale, rates: &[f64], how: How<'_>) -> Vec<Self> {
        let values: Vec<f64> = rates.iter().map(|r| scale.of(*r)).collect();
        let seasons = match how.seasons {
            Some(periods) => decompose(&values, periods).0,
            None => detect(&values, &usual(how.step_s)),
        };
        let mut adjusted: Vec<f64> =
            values.iter().enumerate().map(|(i, v)| v - seasons.iter().map(|s| s.at(i)).sum::<f64>()).collect();
        // Who asks for a method asks for it as textbooks have it.
        let outliers = match how.method {
            ForecastMethod::Auto => outliers::replace(&mut adjusted),
            _ => Vec::new(),
        };
        let fitted =
            |trend| Self { scale, seasons: seasons.clone(), trend, outliers: outliers.clone(), values: rates.len() };
        Trend::candidates(&adjusted, how.method).into_iter().map(fitted).collect()
    }

    fn seasonal_naive(rates: &[f64], period: usize) -> Self {
        // What is repeated contains the season; this says its length and adds nothing.
        let seasons = if period > 1 { vec![Season { pattern: vec![0.0; period] }] } else { Vec::new() };
        let trend = Trend::seasonal_naive(rates, period);
        Self { scale: Scale::Linear, seasons, trend, outliers: Vec::new(), values: rates.len() }
    }

    /// Location and standard deviation of each of the next values, on the scale of the fit.
    pub(crate) fn predict(&self, horizon: usize) -> Vec<(f64, f64)> {
        let n = self.values as f64;
        // What the patterns took up is missing from the errors, and each of their values is a mean of so many.
        let inflation = (n / (n - self.in_seasons()).max(1.0) + self.in_seasons() / n).sqrt();
        let points = self.trend.predict(horizon).into_iter().enumerate();
        points.map(|(h, (location, sd))| (location + self.season_at(self.values + h), sd * inflation)).collect()
    }

    /// The highest upper end of the 95 % interval within so many steps, if intervals are widened so much.
    pub(crate) fn highest(&self, horizon: usize, widening: f64) -> f64 {
        let (_, t95) = self.quantiles();
        let upper = |(location, sd): (f64, f64)| self.scale.back(location + t95 * widening * sd);
        self.predict(horizon).into_iter().map(upper).fold(0.0, f64::max)
    }

    /// What the seasons add at an index of the series.
    pub(crate) fn season_at(&self, index: usize) -> f64 {
        self.seasons.iter().map(|s| s.at(index)).sum()
    }

    /// Half widths of 80 and 95 % intervals in standard deviations.
    pub(crate) fn quantiles(&self) -> (f64, f64) {
        let freedom = (self.values as f64 - self.trend.parameters as f64 - self.in_seasons()).max(1.0);
        StudentsT::new(0.0, 1.0, freedom)
            .map_or((f64::INFINITY, f64::INFINITY), |t| (t.inverse_cdf(0.9), t.inverse_cdf(0.975)))
    }

    /// Relative growth of the trend per month over the horizon, which lasts so many months; absent if nothing arrives
    /// now or the trend has no growth to tell.
    pub(crate) fn growth(&self, months: f64, horizon: usize) -> Option<f64> {
        if self.trend.kind == TrendKind::SeasonalNaive {
            return None;
        }
        let now = self.scale.back(self.trend.level());
        let then = self.scale.back(self.trend.predict(horizon).last()?.0);
        let growth = (then / now).powf(1.0 / months) - 1.0;
        (now > 0.0 && growth.is_finite()).then_some(growth)
    }

    /// How well the fit predicted its own rates, compared with those a period before.
    pub(crate) fn in_sample(&self, rates: &[f64], period: usize, closed: &Closed) -> InSample {
        let errors = &self.trend.errors;
        let first = rates.len() - errors.len();
        // What is closed was filled in, and is no prediction.
        let open = (first..rates.len()).filter(|i| !closed.at(*i));
        let (predicted, off): (Vec<f64>, Vec<f64>) = open
            .map(|i| (rates[i], (rates[i] - self.scale.back(self.scale.of(rates[i]) - errors[i - first])).abs()))
            .unzip();
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let relative = predicted.iter().zip(&off).map(|(rate, off)| off / rate).collect();
        let naive = naive_error(rates, period);
        InSample {
            mape: predicted.iter().all(|r| *r > 0.0).then(|| mean(relative)),
            mase: (naive > 0.0).then(|| mean(off) / naive),
        }
    }

    /// The longest season, in steps; 1 if there is none.
    fn longest_season(&self) -> usize {
        self.seasons.iter().map(|s| s.pattern.len()).max().unwrap_or(1)
    }

    /// Parameters of the patterns.
    fn in_seasons(&self) -> f64 {
        match self.trend.kind {
            TrendKind::SeasonalNaive => 0.0,
            _ => self.seasons.iter().map(Season::parameters).sum(),
        }
    }

    /// AICc of the rates themselves, whatever the scale.
    fn criterion(&self, rates: &[f64]) -> f64 {
        let jacobian = if self.scale == Scale::Log { 2.0 * rates.iter().map(|r| r.ln()).sum::<f64>() } else { 0.0 };
        self.trend.criterion + 2.0 * self.in_seasons() + jacobian
    }
}

/// The mean error of saying that a period ago it was the same.
pub(crate) fn naive_error(rates: &[f64], period: usize) -> f64 {
    let pairs = rates.iter().zip(rates.iter().skip(period));
    pairs.map(|(a, b)| (b - a).abs()).sum::<f64>() / rates.len().saturating_sub(period).max(1) as f64
}
