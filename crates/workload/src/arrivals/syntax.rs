//! The syntax of arrival processes, like `onoff:4,10%,100s`. [`FromStr`] parses the output of
//! [`Display`](fmt::Display).

use super::{ArrivalProcess, Hurst, Mmpp, OnOff, Steps};
use crate::ArrivalsError;
use brimful_core::Nanos;
use std::fmt;
use std::str::FromStr;

impl FromStr for ArrivalProcess {
    type Err = ArrivalsError;

    fn from_str(text: &str) -> Result<ArrivalProcess, ArrivalsError> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let parameters: Vec<&str> = parameters.split(',').map(str::trim).collect();
        let error = |form| ArrivalsError::Parameters { text: text.to_owned(), form };
        match (name, &parameters[..]) {
            ("constant", [""]) => Ok(ArrivalProcess::Constant),
            ("poisson", [""]) => Ok(ArrivalProcess::Poisson),
            ("uniform", [spread]) => match fraction(spread) {
                Some(spread) if (0.0..=1.0).contains(&spread) => Ok(ArrivalProcess::Uniform(spread)),
                _ => Err(error(UNIFORM)),
            },
            ("steps", steps) => {
                let step = |step: &&str| {
                    let (rate, time) = step.split_once('@')?;
                    Some((number(rate)?, time.parse().ok()?))
                };
                let steps: Option<Vec<(f64, Nanos)>> = steps.iter().map(step).collect();
                Steps::new(&steps.ok_or_else(|| error(STEPS))?).map(ArrivalProcess::Steps)
            }
            ("onoff", [ratio, share, rest @ ..]) if rest.len() <= 1 => {
                let period = rest.first().map_or(Ok(OnOff::DEFAULT_PERIOD), |period| period.parse());
                let (Some(ratio), Some(share), Ok(period)) = (number(ratio), fraction(share), period) else {
                    return Err(error(ON_OFF));
                };
                OnOff::new(ratio, share, period).map(ArrivalProcess::OnOff)
            }
            ("mmpp", [ratio, share, sojourn]) => {
                let (Some(ratio), Some(share), Ok(sojourn)) = (number(ratio), fraction(share), sojourn.parse()) else {
                    return Err(error(MMPP));
                };
                Mmpp::new(ratio, share, sojourn).map(ArrivalProcess::Mmpp)
            }
            ("selfsimilar", [h, rest @ ..]) if rest.len() <= 1 => {
                let hurst = Hurst::new(number(h).ok_or_else(|| error(SELF_SIMILAR))?)?;
                match rest.first() {
                    None | Some(&"fgn") => Ok(ArrivalProcess::Fgn(hurst)),
                    Some(&"pareto") => Ok(ArrivalProcess::Pareto(hurst)),
                    Some(_) => Err(error(SELF_SIMILAR)),
                }
            }
            ("constant", _) => Err(error("constant")),
            ("poisson", _) => Err(error("poisson")),
            ("uniform", _) => Err(error(UNIFORM)),
            ("onoff", _) => Err(error(ON_OFF)),
            ("mmpp", _) => Err(error(MMPP)),
            ("selfsimilar", _) => Err(error(SELF_SIMILAR)),
            _ => Err(ArrivalsError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for ArrivalProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArrivalProcess::Constant => f.write_str("constant"),
            ArrivalProcess::Poisson => f.write_str("poisson"),
            ArrivalProcess::Uniform(spread) => write!(f, "uniform:{spread}"),
            ArrivalProcess::Steps(steps) => steps.fmt(f),
            ArrivalProcess::OnOff(bursts) => bursts.fmt(f),
            ArrivalProcess::Mmpp(bursts) => bursts.fmt(f),
            ArrivalProcess::Fgn(hurst) => write!(f, "selfsimilar:{}", hurst.get()),
            ArrivalProcess::Pareto(hurst) => write!(f, "selfsimilar:{},pareto", hurst.get()),
        }
    }
}

const UNIFORM: &str = "uniform:SPREAD, like uniform:50% for gaps from half to one and a half times their mean";
const STEPS: &str = "steps:RATE@TIME,…, like steps:1@20s,3@10s for three times the rate in every third 10 s";
const ON_OFF: &str = "onoff:RATIO,SHARE[,PERIOD], like onoff:4,10%,100s for four times the mean rate in the first \
                      tenth of every 100 s";
const MMPP: &str = "mmpp:RATIO,SHARE,SOJOURN, like mmpp:4,10%,2s for bursts of four times the mean rate that take a \
                    tenth of the time and last 2 s on average";
const SELF_SIMILAR: &str = "selfsimilar:H for fractional Gaussian noise or selfsimilar:H,pareto for Pareto on/off \
                            sources, like selfsimilar:0.8";

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Parses a fraction that is written like `5%` or `0.05`.
fn fraction(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Arrivals;
    use super::*;
    use brimful_core::Rate;
    use proptest::prelude::*;

    fn process() -> impl Strategy<Value = ArrivalProcess> {
        let burst = || (1.0..100.0, 0.001..1.0).prop_map(|(ratio, fill)| (ratio, f64::min(fill / ratio, 0.999)));
        let hurst = || (0.501..0.99).prop_map(|h| Hurst::new(h).unwrap());
        prop_oneof![
            Just(ArrivalProcess::Constant),
            Just(ArrivalProcess::Poisson),
            (0.0..=1.0).prop_map(ArrivalProcess::Uniform),
            prop::collection::vec((0.001..100.0, 1u64..u64::MAX / 64), 1..=super::super::steps::MAX_STEPS)
                .prop_map(|steps| steps.into_iter().map(|(rate, ns)| (rate, Nanos(ns))).collect::<Vec<_>>())
                .prop_map(|steps| ArrivalProcess::Steps(Steps::new(&steps).unwrap())),
            (burst(), 1u64..u64::MAX / 4)
                .prop_map(|((ratio, share), ns)| ArrivalProcess::OnOff(OnOff::new(ratio, share, Nanos(ns)).unwrap())),
            (burst(), 1u64..1_000_000)
                .prop_map(|((ratio, share), ms)| Mmpp::new(ratio, share, Nanos::from_millis(ms)).unwrap())
                .prop_map(ArrivalProcess::Mmpp),
            hurst().prop_map(ArrivalProcess::Fgn),
            hurst().prop_map(ArrivalProcess::Pareto),
        ]
    }

    proptest! {
        #[test]
        fn what_is_displayed_reads_back(process in process()) {
            prop_assert_eq!(process.to_string().parse(), Ok(process));
        }

        /// Expects that every text of a process is either rejected or yields calls.
        #[test]
        fn no_arrivals_hang(
            name in "uniform|steps|onoff|mmpp|selfsimilar",
            numbers in prop::collection::vec("(0|1|2|9|0\\.1|0\\.5|0\\.9|1e-?[0-9]{1,3})(@|%|ms|ns|us|s|h)?(1ns|1s|1e9s|9h)?", 0..4),
            log_rate in -9.0..7.0f64,
        ) {
            let text = format!("{name}:{}", numbers.join(","));
            if let Ok(process) = text.parse::<ArrivalProcess>()
                && let Ok(arrivals) = Arrivals::new(process, Rate(10f64.powf(log_rate)), 1)
            {
                let due: Vec<Nanos> = arrivals.take(5).collect();
                prop_assert!(due.len() == 5 && due.is_sorted(), "{text}: {due:?}");
            }
        }

        #[test]
        fn no_text_panics(text in "(uniform|steps|onoff|mmpp|selfsimilar|constant|.*):?[-0-9.e%,smx ]*") {
            let _ = text.parse::<ArrivalProcess>();
        }
    }

    #[test]
    fn processes_as_people_write_them() {
        for (text, shown) in [
            ("constant", "constant"),
            ("poisson", "poisson"),
            ("uniform:50%", "uniform:0.5"),
            ("steps:1@2s, 0.5@90s", "steps:1@2s,0.5@90s"),
            ("onoff:6,5%", "onoff:6,0.05,100s"),
            ("onoff:6,0.05,1m 30s", "onoff:6,0.05,90s"),
            ("mmpp:4, 10%, 1500ms", "mmpp:4,0.1,1500ms"),
            ("selfsimilar:0.8", "selfsimilar:0.8"),
            ("selfsimilar:0.8,fgn", "selfsimilar:0.8"),
            ("selfsimilar:0.8,pareto", "selfsimilar:0.8,pareto"),
        ] {
            assert_eq!(text.parse::<ArrivalProcess>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn errors_show_the_correct_form() {
        for (text, part) in [
            ("", "constant, poisson, onoff:"),
            ("pareto", "constant, poisson, onoff:"),
            ("poisson:3", "write it like poisson"),
            ("uniform:2", "uniform:50%"),
            ("uniform", "uniform:50%"),
            ("steps:1", "steps:1@20s,3@10s"),
            ("steps:0@1s", "above zero"),
            ("onoff:4", "onoff:4,10%,100s"),
            ("onoff:4,5,6,7", "onoff:4,10%,100s"),
            ("onoff:4,10%,30", "onoff:4,10%,100s"),
            ("onoff:20,10%", "at most 10,"),
            // The largest possible ratio is 6.666…, so the message must round it down. Otherwise its suggestion would
            // be rejected.
            ("onoff:20,15%", "at most 6.6666,"),
            ("onoff:0.5,10%", "1 or more"),
            ("onoff:2,0", "like 5% or 0.05"),
            ("onoff:2,10%,0s", "a period above zero"),
            ("mmpp:4,10%", "mmpp:4,10%,2s"),
            ("mmpp:4,10%,1us", "1ms or more"),
            ("selfsimilar:", "selfsimilar:0.8"),
            ("selfsimilar:0.8,wavelet", "selfsimilar:0.8"),
            ("selfsimilar:0.5", "0.7 to 0.9"),
            ("selfsimilar:1", "0.7 to 0.9"),
        ] {
            let message = text.parse::<ArrivalProcess>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
