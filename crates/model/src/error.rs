//! Errors of solving a model. Each message says how to avoid the error.

use brimful_core::number::NumberError;
use brimful_core::quantity::percent;

/// A reason why a model is invalid or cannot be solved.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The input is incomplete, or contradicts itself. The text describes the problem.
    #[error("the input does not fit together: {0}")]
    Inconsistent(String),
    /// A number of the input is invalid.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// A class is closed, but the solver supports only open classes.
    #[error(
        "class `{class}` is closed and this solver takes open classes: give it `type = \"open\"` and a rate, or use a \
         closed method"
    )]
    ClosedClass {
        /// Name of the class.
        class: String,
    },
    /// Requests arrive at a station faster than it can serve them.
    #[error(
        "station `{station}` cannot keep up: the load asks for {} of its capacity; at this mix it saturates at {} \
         requests per second, so lower the rates, add servers or cut its demands",
        percent(*.utilization),
        significant(*.saturation_rate)
    )]
    Unstable {
        /// The station that saturates first.
        station: String,
        /// Ratio of the offered work to the capacity that is left for requests; 1 or more.
        utilization: f64,
        /// Rate of all classes together, at their present mix, at which the station saturates, in requests per second.
        saturation_rate: f64,
    },
    /// An open class is never served, because classes of higher priority use the whole station.
    #[error(
        "class `{class}` is never served at station `{station}`, which closed classes of higher priority keep busy: give \
         `{class}` a smaller `priority` (more urgent), or the station more servers"
    )]
    Starved {
        /// Name of the station.
        station: String,
        /// Name of the class.
        class: String,
    },
    /// The number of requests in a simulation keeps growing.
    #[error(
        "station `{station}` does not keep up in the simulation: {present} requests are there after {} s and ever more \
         come, so lower the rates, add servers or cut its demands",
        significant(*.time_s)
    )]
    GrowingQueue {
        /// The station with the most requests.
        station: String,
        /// Number of requests in the network when the simulation stopped.
        present: u64,
        /// Simulated time until the simulation stopped, in seconds.
        time_s: f64,
    },
    /// A simulation ended before it had a result.
    #[error("{events} events are too few for a result: allow at least {needed}")]
    TooShort {
        /// Number of events that were simulated.
        events: u64,
        /// Approximate number of events needed.
        needed: u64,
    },
    /// The name of a method is unknown.
    #[error(
        "there is no method `{0}`: use `auto`, `exact`, `erlang`, `seidmann`, `schweitzer`, `linearizer` or `simulation`"
    )]
    UnknownMethod(String),
    /// A change of the model (what-if) cannot be parsed, or the model does not permit it.
    #[error("`{text}` {problem}")]
    WhatIf {
        /// Text of the change, as the user wrote it.
        text: String,
        /// The problem, and what to write instead.
        problem: String,
    },
    /// Two changes (what-ifs) set the same parameter.
    #[error("`{first}` and `{second}` both set {what}: leave out one of them")]
    Contradiction {
        /// Text of the first change.
        first: String,
        /// Text of the second change.
        second: String,
        /// Name of the parameter that both changes set.
        what: String,
    },
    /// The demands of some classes are known only jointly, but the proportions of these classes in the model differ
    /// from the measured proportions.
    #[error(
        "the demands of these classes at station `{station}` were measured only together, while their requests had constant \
         proportions ({classes}). The demand of each class is not known, so keep the proportions, or measure each class \
         alone and calibrate again, or set each demand, like {station}.{example}.demand=2ms"
    )]
    ChangedJointShares {
        /// Name of the station.
        station: String,
        /// Names of the classes, with their measured proportions.
        classes: String,
        /// Name of one of these classes, for the example in the message.
        example: String,
    },
    /// A class has no demand at any station.
    #[error("class `{class}` visits no station: give it a demand somewhere, or leave it out")]
    NoDemand {
        /// Name of the class.
        class: String,
    },
    /// An exact solution was requested, but none is known for this network.
    #[error(
        "station `{station}` {reason}, so no exact solution is known: use `simulation` (`erlang` if all classes are open)"
    )]
    NoProductForm {
        /// Name of the station.
        station: String,
        /// The property of the station that rules out an exact solution.
        reason: &'static str,
    },
    /// An exact solution would need too much time or memory.
    #[error(
        "the exact solution would go through {populations:.0} populations, hold {:.0} MiB and take about {seconds:.0} s: use \
         `linearizer` or `schweitzer`, which approximate any population", .bytes / 1048576.0
    )]
    TooLarge {
        /// Number of populations, the combinations of 0 to N customers of each class.
        populations: f64,
        /// Memory that the solution would need, in bytes.
        bytes: f64,
        /// Time that the solution would need on one core, in seconds.
        seconds: f64,
    },
    /// An approximation did not converge.
    #[error("the approximation did not settle within {rounds} rounds: use `exact`, or the simulator")]
    NotConverged {
        /// Number of iterations before the method gave up.
        rounds: usize,
    },
    /// Some text of the input cannot be parsed.
    #[error("{place}: {problem}")]
    Input {
        /// The line or entry of the text, by its number, from 1.
        place: String,
        /// The problem, and how to correct it.
        problem: String,
    },
}

/// Returns the utilization of a single server.
///
/// # Errors
/// When the utilization is 1 or more.
pub(crate) fn stable_utilization(rate: f64, mean_service: f64) -> Result<f64, ModelError> {
    let utilization = rate * mean_service;
    if utilization < 1.0 {
        return Ok(utilization);
    }
    Err(ModelError::Unstable { station: "queue".into(), utilization, saturation_rate: 1.0 / mean_service })
}

/// Formats a number for a message: four significant digits, without an exponent.
pub(crate) fn significant(value: f64) -> String {
    let digits = if value > 0.0 && value.is_finite() { 3.0 - value.log10().floor() } else { 0.0 };
    format!("{value:.0$}", digits.clamp(0.0, 15.0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_readable() {
        assert_eq!(significant(123.25006), "123.3");
        assert_eq!(significant(61234.56), "61235");
        assert_eq!(significant(0.0012345), "0.001234");
        assert_eq!(significant(0.0), "0");
        assert_eq!(significant(f64::INFINITY), "inf");
    }
}
