//! Handshakes of TLS within a level. Its connections are opened beforehand, so they come where the server closes these. Each
//! costs it as much as many calls, of which the model knows nothing.

use brimful_core::counts::Counts;
use brimful_core::quantity::{count, percent};

/// From this share of the calls on they make a difference.
const MANY: f64 = 0.002;
/// Who shakes hands for every other call or more often means to.
const MEANT: f64 = 0.5;

/// What is to be said of a level with these counts, if anything.
pub(crate) fn say(counts: &Counts) -> Option<String> {
    let of_calls = counts.handshakes as f64 / counts.completed as f64;
    (MANY..MEANT).contains(&of_calls).then(|| {
        format!(
            "{} TLS handshakes for {} calls ({}), as the server closes connections (nginx after keepalive_requests, Apache \
             after MaxKeepAliveRequests): they cost it what the model does not know of, and calls wait for them",
            count(counts.handshakes),
            count(counts.completed),
            percent(of_calls),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say_of(handshakes: u64, completed: u64) -> Option<String> {
        say(&Counts { handshakes, completed, ..Counts::default() })
    }

    #[test]
    fn handshakes_are_named_where_they_are_many_and_not_one_for_each_call() {
        let said = say_of(1_200, 60_000).unwrap();
        assert!(said.starts_with("1,200 TLS handshakes for 60,000 calls (2"), "{said}");
        assert!(said.contains("the server closes connections"), "{said}");
        // None by TLS; a dozen connections that are kept; a connection for each call; nothing was completed.
        for (handshakes, completed) in [(0, 60_000), (12, 60_000), (60_000, 60_000), (5, 0)] {
            assert_eq!(say_of(handshakes, completed), None, "{handshakes} of {completed}");
        }
    }
}
