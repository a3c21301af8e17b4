//! How the loads of a survey used connections, as a part of the survey's document and as a sentence for the user.

use crate::JsonSchema;
use crate::quantity::count;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How the loads of a survey used connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Size of the connection pool of open loads: if all connections are busy, a call waits for one. Absent if there
    /// was no pool: a call then opened a further connection if all were busy.
    #[serde(rename = "most")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u64>,
    /// Number of connections that the server serves at the same time, if the survey reached this limit. Calls on
    /// further connections wait until a served connection is closed, even if all served connections are idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_at_once: Option<u64>,
    /// Whether each call used a new connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_call_each: bool,
    /// Whether each call used a new connection because the server closes each connection after its answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed_by_server: bool,
}

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |number: u64| if number == 1 { "connection" } else { "connections" };
        match (self.closed_by_server, self.served_at_once) {
            (true, Some(served)) => write!(
                f,
                "This server closes each connection after its answer, and answered only {} of those that were opened at \
                 once: the survey opens a new connection for each call, ",
                count(served)
            )?,
            (true, None) => write!(
                f,
                "This server closes each connection after its answer: the survey opens a new one for each call, "
            )?,
            (false, Some(served)) => {
                write!(f, "This server serves {} {} at a time: the survey uses ", count(served), plural(served))?;
            }
            (false, None) if self.one_call_each => f.write_str("Each call has a connection of its own, ")?,
            (false, None) if self.max_connections.is_some() => f.write_str("The survey uses a pool of ")?,
            (false, None) => f.write_str("The survey opens ")?,
        }
        match self.max_connections {
            Some(most) if self.one_call_each => write!(f, "{} at once at most", count(most))?,
            Some(most) if self.served_at_once.is_some() => write!(f, "{}", count(most))?,
            Some(most) => write!(f, "at most {} {}, for which calls wait", count(most), plural(most))?,
            None => f.write_str("as many connections at once as there are calls under way")?,
        }
        f.write_str(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_how_many_connections_a_survey_used_and_why() {
        let connections = Connections::default();
        let max_connections = Some(64);
        for (connections, sentence) in [
            (connections, "The survey opens as many connections at once as there are calls under way."),
            (
                Connections { max_connections, ..connections },
                "The survey uses a pool of at most 64 connections, for which calls wait.",
            ),
            (
                Connections { max_connections: Some(1), ..connections },
                "The survey uses a pool of at most 1 connection, for which calls wait.",
            ),
            (
                Connections { max_connections, one_call_each: true, ..connections },
                "Each call has a connection of its own, 64 at once at most.",
            ),
            (
                Connections { max_connections: Some(4), served_at_once: Some(4), ..connections },
                "This server serves 4 connections at a time: the survey uses 4.",
            ),
            (
                Connections { max_connections, one_call_each: true, closed_by_server: true, ..connections },
                "This server closes each connection after its answer: the survey opens a new one for each call, 64 at \
                 once at most.",
            ),
            (
                Connections {
                    max_connections: Some(8),
                    served_at_once: Some(8),
                    one_call_each: true,
                    closed_by_server: true,
                },
                "This server closes each connection after its answer, and answered only 8 of those that were opened at \
                 once: the survey opens a new connection for each call, 8 at once at most.",
            ),
        ] {
            assert_eq!(connections.to_string(), sentence);
        }
    }
}
