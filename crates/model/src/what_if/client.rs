//! A client behind a network link of its own: `class4:speed=128kbps,size=45.5KB,rtt=200ms`.
//!
//! Menascé, Peraino, Dinh & Dinh (CMG 1999), Figs. 8 and 9: a closed class whose customers think, send a request of one
//! class over their access link and the Internet, and wait for the response. The other load of the server does not
//! change. The link and the Internet are delay stations, because each client has a link of its own and its traffic does
//! not slow the Internet down. With `link=shared`, the clients share one link, which is a queue.

use super::amount::{Amount, Unit};
use super::new_class::{absolute, items_of};
use super::suggestions::listed;
use crate::ModelError;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Clients that send requests of a class over a network link. The text begins with the class's name. It has `speed=`
/// and `size=` (bytes transferred per request, in both directions). It may also have `rtt=` (one round trip per
/// request), `clients=` (default 1), `think=` (default none), and `link=shared` if all clients share one link. Numbers
/// may be ranges.
///
/// The clients become a closed class `client`, whose response time includes the time on the link and the round trip.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// The class whose requests the clients send.
    pub(super) class: String,
    /// Speed of the link.
    pub(super) speed: Amount,
    /// Bytes transferred per request, in both directions.
    pub(super) size: Amount,
    /// Time of a round trip through the Internet, once per request.
    pub(super) rtt: Option<Amount>,
    /// Number of clients.
    pub(super) clients: Option<Amount>,
    /// Think time of the clients.
    pub(super) think: Option<Amount>,
    /// Whether all clients share one link.
    pub(super) shared: bool,
}

const KEYS: [&str; 6] = ["speed", "size", "rtt", "clients", "think", "link"];
const UNITS: [Unit; 5] = [Unit::BitRate, Unit::Size, Unit::Time, Unit::Count, Unit::Time];

impl FromStr for Client {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Client, ModelError> {
        let error = |problem: String| ModelError::WhatIf { text: text.into(), problem };
        // Names and ranges may contain a `:`. The name ends at the first `:` that is followed by a key and `=`.
        let keyed = |rest: &str| KEYS.iter().any(|key| rest.trim_start().strip_prefix(key).is_some_and(followed));
        let at = text.match_indices(':').map(|(at, _)| at).find(|at| keyed(&text[at + 1..]));
        let example = "write it like class4:speed=128kbps,size=45.5KB,rtt=200ms";
        let at = at.ok_or_else(|| error(format!("has no `CLASS:speed=…`: {example}")))?;
        let (mut found, mut shared) = ([None; 5], None);
        for (key, value) in items_of(&text[at + 1..]).map_err(error)? {
            let known = KEYS.iter().position(|known| *known == key);
            let place = known.ok_or_else(|| error(format!("has no `{key}`: there is {}", listed(key, KEYS))))?;
            let twice = || error(format!("has `{key}` twice"));
            if place == UNITS.len() {
                let is_shared = match value {
                    "shared" => true,
                    "own" => false,
                    _ => return Err(error(format!("has `link={value}`: there is `own`, `shared`"))),
                };
                if shared.replace(is_shared).is_some() {
                    return Err(twice());
                }
                continue;
            }
            let amount = absolute(key, value, UNITS[place]).map_err(|why| error(format!("cannot be: {why}")))?;
            if found[place].replace(amount).is_some() {
                return Err(twice());
            }
        }
        let [speed, size, rtt, clients, think] = found;
        let (Some(speed), Some(size)) = (speed, size) else {
            return Err(error(format!("needs speed and size: {example}")));
        };
        let class = text[..at].trim().to_owned();
        Ok(Client { class, speed, size, rtt, clients, think, shared: shared.unwrap_or(false) })
    }
}

fn followed(rest: &str) -> bool {
    rest.trim_start().starts_with('=')
}

impl Client {
    /// All numbers of the client, each with its key, such as `rtt`.
    pub(super) fn amounts(&self) -> impl Iterator<Item = (&'static str, &Amount)> {
        let all = [Some(&self.speed), Some(&self.size), self.rtt.as_ref(), self.clients.as_ref(), self.think.as_ref()];
        KEYS.into_iter().zip(all).filter_map(|(key, amount)| Some((key, amount?)))
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.amounts().map(|(key, amount)| format!("{key}={amount}")).collect();
        write!(f, "{}:{}{}", self.class, items.join(","), if self.shared { ",link=shared" } else { "" })
    }
}

impl Serialize for Client {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
