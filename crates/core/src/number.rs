//! Numbers from outside, held to what they may be.

/// A number that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what} is {value}; it must be {need}")]
pub struct NumberError {
    /// Which number.
    pub what: String,
    /// What it was.
    pub value: f64,
    /// What it may be.
    pub need: &'static str,
}

/// `value`, if it is finite and not negative.
pub fn non_negative(value: f64, what: impl FnOnce() -> String) -> Result<f64, NumberError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(NumberError { what: what(), value, need: "finite and not negative" })
}

/// `value`, if it is finite and positive.
pub fn positive(value: f64, what: impl FnOnce() -> String) -> Result<f64, NumberError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(NumberError { what: what(), value, need: "finite and positive" })
}
