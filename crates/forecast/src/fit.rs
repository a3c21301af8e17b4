//! Fits trend and seasons together: to the rates and, if the settings allow it, to their logarithms.

use crate::closed::ClosedSteps;
use crate::options::ForecastMethod;
use crate::outliers;
use crate::result::InSample;
use crate::scale::Scale;
use crate::season::{Season, decompose, detect, usual};
use crate::trend::Trend;
use crate::trend::TrendKind;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Settings of a fit.
#[derive(Clone, Copy)]
pub(crate) struct FitSettings<'a> {
    pub step_s: u32,
    pub seasons: Option<&'a [usize]>,
    pub method: ForecastMethod,
    /// Whether to fit the logarithms of the rates as well as the rates.
    pub with_logarithms: bool,
    /// Steps in which nothing ever arrives.
    pub closed_steps: &'a ClosedSteps,
}

/// A fitted trend with seasons, from which forecasts are computed.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub scale: Scale,
    pub seasons: Vec<Season>,
    pub trend: Trend,
    /// Indices of outliers that were replaced before fitting the trend.
    pub outliers: Vec<usize>,
    /// Number of values in the history.
    pub values: usize,
}

/// All fits to choose from, in a fixed order. The seasonal naive method is the last one.
pub(crate) struct Candidates {
    pub all: Vec<Fitted>,
    /// Index of the best fit on the scale that suits the whole history better. The back-test keeps this candidate
    /// unless another is clearly better.
    pub preferred: usize,
    /// The period that the seasonal naive method repeats, in steps.
    pub period: usize,
}

impl Candidates {
    /// Fits the rates and, if `settings.with_logarithms` is set, their logarithms. The naive method repeats `period`
    /// steps; if `period` is `None`, it repeats the longest season of the fit.
    pub(crate) fn fit(rates: &[f64], settings: FitSettings<'_>, period: Option<usize>) -> Self {
        let mut all = Fitted::on_scale(Scale::Linear, rates, settings);
        let period = period.unwrap_or_else(|| all[0].longest_season());
        let mut preferred = 0;
        if settings.with_logarithms {
            let log = Fitted::on_scale(Scale::Log, rates, settings);
            if log[0].aicc(rates) < all[0].aicc(rates) {
                preferred = all.len();
            }
            all.extend(log);
        }
        all.push(Fitted::seasonal_naive(rates, period));
        Self { all, preferred, period }
    }
}

impl Fitted {
    fn on_scale(scale: Scale, rates: &[f64], settings: FitSettings<'_>) -> Vec<Self> {
        let values: Vec<f64> = rates.iter().map(|r| scale.transform(*r)).collect();
        let seasons = match settings.seasons {
            Some(periods) => decompose(&values, periods).0,
            None => detect(&values, &usual(settings.step_s)),
        };
        let mut adjusted: Vec<f64> =
            values.iter().enumerate().map(|(i, v)| v - seasons.iter().map(|s| s.value_at(i)).sum::<f64>()).collect();
        // A method that the user chose is applied as in textbooks, without replacing outliers.
        let outliers = match settings.method {
            ForecastMethod::Auto => outliers::replace(&mut adjusted),
            _ => Vec::new(),
        };
        let fitted =
            |trend| Self { scale, seasons: seasons.clone(), trend, outliers: outliers.clone(), values: rates.len() };
        Trend::candidates(&adjusted, settings.method).into_iter().map(fitted).collect()
    }

    fn seasonal_naive(rates: &[f64], period: usize) -> Self {
        // The naive method repeats the season by itself. This pattern of zeros only records the length of the period.
        let seasons = if period > 1 { vec![Season { pattern: vec![0.0; period] }] } else { Vec::new() };
        let trend = Trend::seasonal_naive(rates, period);
        Self { scale: Scale::Linear, seasons, trend, outliers: Vec::new(), values: rates.len() }
    }

    /// Mean and standard deviation of the forecast of each of the next `horizon` values, on the scale of the fit.
    pub(crate) fn predict(&self, horizon: usize) -> Vec<(f64, f64)> {
        let n = self.values as f64;
        // Fitting the patterns reduced the residuals, and each value of a pattern has an error. The factor corrects for
        // both.
        let inflation = (n / (n - self.in_seasons()).max(1.0) + self.in_seasons() / n).sqrt();
        let points = self.trend.predict(horizon).into_iter().enumerate();
        points.map(|(h, (location, sd))| (location + self.season_at(self.values + h), sd * inflation)).collect()
    }

    /// The highest upper end of the 95 % intervals within the horizon, as a rate. The intervals are widened by the
    /// factor `widening`.
    pub(crate) fn highest(&self, horizon: usize, widening: f64) -> f64 {
        let (_, t95) = self.quantiles();
        let upper = |(location, sd): (f64, f64)| self.scale.inverse(location + t95 * widening * sd);
        self.predict(horizon).into_iter().map(upper).fold(0.0, f64::max)
    }

    /// The sum of all seasons at an index of the series.
    pub(crate) fn season_at(&self, index: usize) -> f64 {
        self.seasons.iter().map(|s| s.value_at(index)).sum()
    }

    /// Half the widths of the 80 % and the 95 % interval, in standard deviations.
    pub(crate) fn quantiles(&self) -> (f64, f64) {
        let freedom = (self.values as f64 - self.trend.parameters as f64 - self.in_seasons()).max(1.0);
        StudentsT::new(0.0, 1.0, freedom)
            .map_or((f64::INFINITY, f64::INFINITY), |t| (t.inverse_cdf(0.9), t.inverse_cdf(0.975)))
    }

    /// Relative growth of the trend per month over the horizon, which is `months` long. `None` if the rate is 0 now, or
    /// if the method has no trend.
    pub(crate) fn growth(&self, months: f64, horizon: usize) -> Option<f64> {
        if self.trend.kind == TrendKind::SeasonalNaive {
            return None;
        }
        let now = self.scale.inverse(self.trend.level());
        let then = self.scale.inverse(self.trend.predict(horizon).last()?.0);
        let growth = (then / now).powf(1.0 / months) - 1.0;
        (now > 0.0 && growth.is_finite()).then_some(growth)
    }

    /// Errors of the fit one step ahead, within the history to which it was fitted.
    pub(crate) fn in_sample(&self, rates: &[f64], period: usize, closed_steps: &ClosedSteps) -> InSample {
        let errors = &self.trend.errors;
        let first = rates.len() - errors.len();
        // The values of closed steps were interpolated, so their errors say nothing about the fit.
        let open = (first..rates.len()).filter(|i| !closed_steps.contains(*i));
        let (predicted, off): (Vec<f64>, Vec<f64>) = open
            .map(|i| {
                (rates[i], (rates[i] - self.scale.inverse(self.scale.transform(rates[i]) - errors[i - first])).abs())
            })
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

    /// Number of free values in the seasonal patterns.
    fn in_seasons(&self) -> f64 {
        match self.trend.kind {
            TrendKind::SeasonalNaive => 0.0,
            _ => self.seasons.iter().map(Season::parameters).sum(),
        }
    }

    /// The information criterion (AICc) converted to rates, so that fits of rates and fits of logarithms can be
    /// compared.
    fn aicc(&self, rates: &[f64]) -> f64 {
        let jacobian = if self.scale == Scale::Log { 2.0 * rates.iter().map(|r| r.ln()).sum::<f64>() } else { 0.0 };
        self.trend.aicc + 2.0 * self.in_seasons() + jacobian
    }
}

/// Mean absolute error of the seasonal naive method, in arrivals per second.
pub(crate) fn naive_error(rates: &[f64], period: usize) -> f64 {
    let pairs = rates.iter().zip(rates.iter().skip(period));
    pairs.map(|(a, b)| (b - a).abs()).sum::<f64>() / rates.len().saturating_sub(period).max(1) as f64
}
