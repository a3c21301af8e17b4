//! Fits trend and seasons together. Fits the rates and, if the settings allow it, the logarithms of the rates.

use crate::closed::ClosedSteps;
use crate::options::ForecastMethod;
use crate::outliers;
use crate::result::{InSample, Scale};
use crate::season::{Season, decompose, detect, usual_periods};
use crate::trend::Trend;
use crate::trend::TrendKind;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Settings of a fit.
#[derive(Clone, Copy)]
pub(crate) struct FitSettings<'a> {
    /// Length of a step, in seconds.
    pub step_s: u32,
    /// Lengths of the seasons, in steps; `None` to detect them.
    pub seasons: Option<&'a [usize]>,
    /// The forecasting method.
    pub method: ForecastMethod,
    /// Whether to fit not only the rates, but also their logarithms.
    pub with_logarithms: bool,
    /// Steps in which nothing ever arrives.
    pub closed_steps: &'a ClosedSteps,
}

/// A fitted trend with seasons, from which forecasts are computed.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    /// The scale of the fitted values: rates or their logarithms.
    pub scale: Scale,
    /// The seasons, which are added to the trend.
    pub seasons: Vec<Season>,
    /// The trend of the values without the seasons.
    pub trend: Trend,
    /// Indices of the outliers, which were replaced before the trend was fitted.
    pub outliers: Vec<usize>,
    /// Number of fitted values.
    pub values: usize,
}

/// All fits from which the forecast is chosen, in a fixed order. The last one is the seasonal naive method.
pub(crate) struct Candidates {
    /// The fits; the last one is the seasonal naive method, which repeats the last season.
    pub all: Vec<Fitted>,
    /// Index of the best fit on the scale (rates or logarithms) that fits the whole history better. The back-test keeps
    /// this candidate unless another one is clearly better.
    pub preferred: usize,
    /// Number of steps that the seasonal naive method repeats.
    pub period: usize,
}

impl Candidates {
    /// Fits the rates and, if `settings.with_logarithms` is set, their logarithms. `period` is the number of steps that
    /// the seasonal naive method repeats. If it is `None`, the method repeats the longest season of the fit.
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
            None => detect(&values, &usual_periods(settings.step_s)),
        };
        let mut adjusted: Vec<f64> =
            values.iter().enumerate().map(|(i, v)| v - seasons.iter().map(|s| s.value_at(i)).sum::<f64>()).collect();
        // If the user chose a method, outliers are not replaced, as in textbooks.
        let outliers = match settings.method {
            ForecastMethod::Auto => outliers::replace(&mut adjusted),
            _ => Vec::new(),
        };
        let fitted =
            |trend| Self { scale, seasons: seasons.clone(), trend, outliers: outliers.clone(), values: rates.len() };
        Trend::candidates(&adjusted, settings.method).into_iter().map(fitted).collect()
    }

    fn seasonal_naive(rates: &[f64], period: usize) -> Self {
        // The seasonal naive method itself repeats the season. This pattern of zeros only records the length of the
        // season.
        let seasons = if period > 1 { vec![Season { pattern: vec![0.0; period] }] } else { Vec::new() };
        let trend = Trend::seasonal_naive(rates, period);
        Self { scale: Scale::Linear, seasons, trend, outliers: Vec::new(), values: rates.len() }
    }

    /// Mean and standard deviation of the forecast of each of the next `horizon` values, on the scale of the fit: rates
    /// or logarithms.
    pub(crate) fn predict(&self, horizon: usize) -> Vec<(f64, f64)> {
        let n = self.values as f64;
        // The fit of the seasonal patterns makes the residuals too small, and each value of a pattern has an error
        // itself. The factor corrects both.
        let inflation = (n / (n - self.seasonal_parameters()).max(1.0) + self.seasonal_parameters() / n).sqrt();
        let points = self.trend.predict(horizon).into_iter().enumerate();
        points.map(|(h, (location, sd))| (location + self.season_at(self.values + h), sd * inflation)).collect()
    }

    /// The highest upper end of the 95 % intervals within the horizon, converted to a rate. The intervals are widened
    /// by the factor `widening`.
    pub(crate) fn highest_upper_end(&self, horizon: usize, widening: f64) -> f64 {
        let (_, t95) = self.quantiles();
        let upper = |(location, sd): (f64, f64)| self.scale.inverse(location + t95 * widening * sd);
        self.predict(horizon).into_iter().map(upper).fold(0.0, f64::max)
    }

    /// The sum of all seasons at an index of the series.
    pub(crate) fn season_at(&self, index: usize) -> f64 {
        self.seasons.iter().map(|s| s.value_at(index)).sum()
    }

    /// Half widths of the 80 % and the 95 % prediction interval, in standard deviations of the forecast.
    pub(crate) fn quantiles(&self) -> (f64, f64) {
        let freedom = (self.values as f64 - self.trend.parameters as f64 - self.seasonal_parameters()).max(1.0);
        StudentsT::new(0.0, 1.0, freedom)
            .map_or((f64::INFINITY, f64::INFINITY), |t| (t.inverse_cdf(0.9), t.inverse_cdf(0.975)))
    }

    /// Mean relative growth of the trend per month. `months` is the length of the horizon, which has `horizon` steps.
    /// `None` if the rate is 0 now, or if the method has no trend.
    pub(crate) fn growth(&self, months: f64, horizon: usize) -> Option<f64> {
        if self.trend.kind == TrendKind::SeasonalNaive {
            return None;
        }
        let now = self.scale.inverse(self.trend.level());
        let then = self.scale.inverse(self.trend.predict(horizon).last()?.0);
        let growth = (then / now).powf(1.0 / months) - 1.0;
        (now > 0.0 && growth.is_finite()).then_some(growth)
    }

    /// Errors of the predictions one step ahead, within the history to which the trend was fitted.
    pub(crate) fn in_sample(&self, rates: &[f64], period: usize, closed_steps: &ClosedSteps) -> InSample {
        let errors = &self.trend.errors;
        let first = rates.len() - errors.len();
        // The values of closed steps are interpolated, so their errors are not errors of the fit.
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

    /// The length of the longest season, in steps; 1 if there is no season.
    fn longest_season(&self) -> usize {
        self.seasons.iter().map(|s| s.pattern.len()).max().unwrap_or(1)
    }

    /// Number of parameters in the seasonal patterns.
    fn seasonal_parameters(&self) -> f64 {
        match self.trend.kind {
            TrendKind::SeasonalNaive => 0.0,
            _ => self.seasons.iter().map(Season::parameters).sum(),
        }
    }

    /// The corrected Akaike information criterion (AICc), converted to the scale of rates. So fits of rates and fits of
    /// logarithms can be compared.
    fn aicc(&self, rates: &[f64]) -> f64 {
        let jacobian = if self.scale == Scale::Log { 2.0 * rates.iter().map(|r| r.ln()).sum::<f64>() } else { 0.0 };
        self.trend.aicc + 2.0 * self.seasonal_parameters() + jacobian
    }
}

/// Mean absolute error of the seasonal naive method, in arrivals per second.
pub(crate) fn naive_error(rates: &[f64], period: usize) -> f64 {
    let pairs = rates.iter().zip(rates.iter().skip(period));
    pairs.map(|(a, b)| (b - a).abs()).sum::<f64>() / rates.len().saturating_sub(period).max(1) as f64
}
