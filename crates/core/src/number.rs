//! Range checks for numbers that a user or a document supplies, and a test for default values.

/// The error for a number that is out of its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what} is {value}; it must be {requirement}")]
pub struct NumberError {
    /// Name of the number, for the error message.
    pub what: String,
    /// The value that is out of range.
    pub value: f64,
    /// The condition that the number violates.
    pub requirement: &'static str,
}

/// Whether a value equals the default of its type. Documents omit fields with default values.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns `value` if it is finite and not negative.
///
/// # Errors
/// Returns [`NumberError`] otherwise. `what` names the number in the error message.
pub fn check_non_negative(value: f64, what: impl FnOnce() -> String) -> Result<f64, NumberError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(NumberError { what: what(), value, requirement: "finite and not negative" })
}

/// Returns `value` if it is finite and positive.
///
/// # Errors
/// Returns [`NumberError`] otherwise. `what` names the number in the error message.
pub fn check_positive(value: f64, what: impl FnOnce() -> String) -> Result<f64, NumberError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(NumberError { what: what(), value, requirement: "finite and positive" })
}
