//! The least-squares line and its standard errors.

/// A least-squares line, y = intercept + slope·x, with its standard errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The value of y at x = 0.
    pub intercept: f64,
    /// Change of y per unit of x.
    pub slope: f64,
    /// Standard error of the intercept.
    pub intercept_se: f64,
    /// Standard error of the slope.
    pub slope_se: f64,
    /// Coefficient of determination R²: the share of the variance of y that the line explains; 1 if y does not vary.
    pub r2: f64,
    /// Standard deviation of the residuals (n − 2 degrees of freedom).
    pub residual_sd: f64,
}

/// Fits the least-squares line. `None` if there are fewer than three points, if a value is not finite, or if all x are
/// equal.
pub fn ols(x: &[f64], y: &[f64]) -> Option<Line> {
    if x.len() != y.len() || x.len() < 3 || x.iter().chain(y).any(|v| !v.is_finite()) {
        return None;
    }
    let n = x.len() as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let mx = mean(x);
    let my = mean(y);
    let sxx: f64 = x.iter().map(|x| (x - mx).powi(2)).sum();
    let syy: f64 = y.iter().map(|y| (y - my).powi(2)).sum();
    let sxy: f64 = x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum();
    if !sxx.is_normal() {
        return None;
    }
    let slope = sxy / sxx;
    let intercept = my - slope * mx;
    let rss: f64 = x.iter().zip(y).map(|(x, y)| (y - my - slope * (x - mx)).powi(2)).sum();
    let residual_sd = (rss / (n - 2.0)).sqrt();
    Some(Line {
        intercept,
        slope,
        intercept_se: residual_sd * (1.0 / n + mx * mx / sxx).sqrt(),
        slope_se: residual_sd / sxx.sqrt(),
        r2: if syy > 0.0 { 1.0 - rss / syy } else { 1.0 },
        residual_sd,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_needs_spread_and_three_points() {
        assert_eq!(ols(&[1.0; 3], &[1.0, 2.0, 3.0]), None);
        assert_eq!(ols(&[1.0], &[1.0]), None);
        assert_eq!(ols(&[1.0], &[]), None);
        assert_eq!(ols(&[1.0, f64::NAN, 2.0], &[1.0; 3]), None);
    }
}
