//! Trend and season together, on the scale that suits them.

use super::season::{Season, decompose, detect, usual};
use super::trend::Trend;
use super::{ForecastMethod, How, InSample, Scale};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// What a forecast is made from.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    pub scale: Scale,
    pub seasons: Vec<Season>,
    pub trend: Trend,
    values: usize,
}

impl Fitted {
    /// Fits rates, or their logarithms where those suit better.
    pub(super) fn new(rates: &[f64], how: How<'_>) -> Self {
        let linear = Self::on(Scale::Linear, rates, how);
        if how.method != ForecastMethod::Auto || rates.iter().any(|r| *r <= 0.0) {
            return linear;
        }
        let log = Self::on(Scale::Log, rates, how);
        if log.criterion(rates) < linear.criterion(rates) { log } else { linear }
    }

    fn on(scale: Scale, rates: &[f64], how: How<'_>) -> Self {
        let values: Vec<f64> = rates.iter().map(|r| scale.of(*r)).collect();
        let seasons = match how.seasons {
            Some(periods) => decompose(&values, periods).0,
            None => detect(&values, &usual(how.step_s)),
        };
        let adjusted: Vec<f64> =
            values.iter().enumerate().map(|(i, v)| v - seasons.iter().map(|s| s.at(i)).sum::<f64>()).collect();
        let trend = Trend::fit(&adjusted, how.method);
        Self { scale, seasons, trend, values: rates.len() }
    }

    /// Location and standard deviation of each of the next values, on the scale of the fit.
    pub(super) fn predict(&self, horizon: usize) -> Vec<(f64, f64)> {
        let n = self.values as f64;
        // What the patterns took up is missing from the errors, and each of their values is a mean of so many.
        let inflation = (n / (n - self.in_seasons()).max(1.0) + self.in_seasons() / n).sqrt();
        let points = self.trend.predict(horizon).into_iter().enumerate();
        points.map(|(h, (location, sd))| (location + self.season_at(self.values + h), sd * inflation)).collect()
    }

    /// What the seasons add at an index of the series.
    pub(super) fn season_at(&self, index: usize) -> f64 {
        self.seasons.iter().map(|s| s.at(index)).sum()
    }

    /// Half widths of 80 and 95 % intervals in standard deviations.
    pub(super) fn quantiles(&self) -> (f64, f64) {
        let freedom = (self.values as f64 - self.trend.parameters as f64 - self.in_seasons()).max(1.0);
        StudentsT::new(0.0, 1.0, freedom)
            .map_or((f64::INFINITY, f64::INFINITY), |t| (t.inverse_cdf(0.9), t.inverse_cdf(0.975)))
    }

    /// The mean error of saying that a season ago it was the same.
    pub(super) fn naive_error(&self, rates: &[f64]) -> f64 {
        let lag = self.seasons.iter().map(|s| s.pattern.len()).max().unwrap_or(1);
        let pairs = rates.iter().zip(rates.iter().skip(lag));
        pairs.map(|(a, b)| (b - a).abs()).sum::<f64>() / rates.len().saturating_sub(lag).max(1) as f64
    }

    /// Relative growth of the trend per month over the horizon, which lasts so many months; absent if nothing arrives now.
    pub(super) fn growth(&self, months: f64, horizon: usize) -> Option<f64> {
        let now = self.scale.back(self.trend.level());
        let then = self.scale.back(self.trend.predict(horizon).last()?.0);
        let growth = (then / now).powf(1.0 / months) - 1.0;
        (now > 0.0 && growth.is_finite()).then_some(growth)
    }

    /// How well the fit foretold its own rates.
    pub(super) fn in_sample(&self, rates: &[f64]) -> InSample {
        let errors = &self.trend.errors;
        let foretold = &rates[rates.len() - errors.len()..];
        let off: Vec<f64> = foretold
            .iter()
            .zip(errors)
            .map(|(rate, error)| (rate - self.scale.back(self.scale.of(*rate) - error)).abs())
            .collect();
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let relative = foretold.iter().zip(&off).map(|(rate, off)| off / rate).collect();
        let naive = self.naive_error(rates);
        InSample {
            mape: foretold.iter().all(|r| *r > 0.0).then(|| mean(relative)),
            mase: (naive > 0.0).then(|| mean(off) / naive),
        }
    }

    /// Parameters of the patterns.
    fn in_seasons(&self) -> f64 {
        self.seasons.iter().map(Season::parameters).sum()
    }

    /// AICc of the rates themselves, whatever the scale.
    fn criterion(&self, rates: &[f64]) -> f64 {
        let jacobian = if self.scale == Scale::Log { 2.0 * rates.iter().map(|r| r.ln()).sum::<f64>() } else { 0.0 };
        self.trend.criterion + 2.0 * self.in_seasons() + jacobian
    }
}
