//! The Records of the shards of one load, which several processes or hosts have made, as the Record of that load: their
//! Accounts are merged exactly, what the generators used is added up, and the verdict is judged anew.

use crate::account::{Account, AddError};
use crate::derive::{Facts, derive};
use crate::error::{StatsError, Unlike};
use brimful_core::Nanos;
use brimful_core::account::PackedAccount;
use brimful_core::record::{Generator, HostContention, Record, ShardOrigin};
use brimful_core::server::HostProbe;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;

/// Merges Records, each under the name by which the user knows it, in any order. That shards are missing is no error: the
/// Record then says which there are, and that the rest of the load was missing.
///
/// # Errors
/// [`StatsError`] when one of them has no account, or they are not the shards of one load.
pub fn merge(records: Vec<(String, Record)>) -> Result<Record, StatsError> {
    let mut merger = Merger::default();
    records.into_iter().try_for_each(|(name, record)| merger.add(name, record))?;
    merger.finish()
}

/// Merges Records one by one: whatever their number, there are two Accounts in memory. Several may each merge a part of
/// them, and be joined.
#[derive(Debug, Default)]
pub struct Merger {
    so_far: Option<Part>,
}

impl Merger {
    /// Takes in one more Record, as [`merge`] does.
    ///
    /// # Errors
    /// As [`merge`]; what was merged before is lost then.
    pub fn add(&mut self, name: String, record: Record) -> Result<(), StatsError> {
        self.join(Merger { so_far: Some(Part::read((name, record))?) })
    }

    /// Takes in all that another has merged.
    ///
    /// # Errors
    /// As [`merge`].
    pub fn join(&mut self, other: Merger) -> Result<(), StatsError> {
        self.so_far = match (self.so_far.take(), other.so_far) {
            (Some(ours), Some(theirs)) => Some(ours.and(theirs)?),
            (ours, theirs) => ours.or(theirs),
        };
        Ok(())
    }

    /// Says that a shard, numbered from 1, was lost before it had seen anything.
    ///
    /// # Errors
    /// When there is no Record yet, no such shard, or a Record of it.
    pub fn lost(&mut self, index: u64) -> Result<(), StatsError> {
        let part = self.so_far.as_mut().ok_or(StatsError::Nothing)?;
        let of = part.facts.shards.first().map_or(0, |shard| shard.of);
        if !(1..=of).contains(&index) {
            return Err(StatsError::NoSuchShard { index, of });
        }
        if let Some(name) = part.names.insert((index, of), "--lost".to_owned()) {
            return Err(StatsError::NotLost { index, name });
        }
        part.facts.shards.push(ShardOrigin { index, of, lost_at_s: Some(0.0), ..ShardOrigin::default() });
        part.facts.shards.sort_by_key(|shard| shard.index);
        Ok(())
    }

    /// The Record of them all.
    ///
    /// # Errors
    /// When there was none.
    pub fn finish(self) -> Result<Record, StatsError> {
        let whole = self.so_far.ok_or(StatsError::Nothing)?;
        let account = match &whole.account {
            Seen::Packed(packed) => &unpacked(packed, &whole.name())?,
            Seen::Merged(account) => account,
        };
        Ok(derive(account, whole.facts))
    }
}

/// What one Record, or several once they are merged, says.
#[derive(Debug)]
struct Part {
    /// The Records' names, by index and number of their shards.
    names: BTreeMap<(u64, u64), String>,
    account: Seen,
    facts: Facts,
}

/// What was counted.
#[derive(Debug)]
enum Seen {
    /// By one shard, as its Record has it.
    Packed(Box<PackedAccount>),
    /// By several.
    Merged(Box<Account>),
}

impl Part {
    fn read((name, mut record): (String, Record)) -> Result<Part, StatsError> {
        if let [shard] = &mut record.shards[..] {
            shard.reasons.clone_from(&record.verdict.reasons);
        }
        let named = |source| StatsError::In { name: name.clone(), source: Box::new(source) };
        if record.shards.is_empty() {
            return Err(named(StatsError::NotAShard));
        }
        let account = record.account.take().ok_or_else(|| named(StatsError::NoAccount))?;
        let names = record.shards.iter().map(|shard| ((shard.index, shard.of), name.clone())).collect();
        Ok(Part { names, account: Seen::Packed(Box::new(account)), facts: Facts::of(record) })
    }

    fn and(mut self, mut other: Part) -> Result<Part, StatsError> {
        // What is said and kept does not depend on the order in which they are named.
        if other.names.keys().next() < self.names.keys().next() {
            mem::swap(&mut self, &mut other);
        }
        for (shard, second) in &other.names {
            if let Some(first) = self.names.get(shard) {
                let (first, second, (index, of)) = (first.clone(), second.clone(), shard);
                return Err(StatsError::SameShard { first, second, shard: format!("{index}/{of}") });
            }
        }
        let [first, second] = [&self, &other].map(Part::name);
        if let Some(unlike) = self.facts.unlike(&other.facts) {
            return Err(StatsError::NotOneLoad { first, second, unlike });
        }
        let account = match (self.account, other.account) {
            (Seen::Merged(mut merged), Seen::Packed(packed)) => {
                added(&mut merged, &packed, first, second).map(|()| merged)
            }
            (Seen::Packed(packed), Seen::Merged(mut merged)) => {
                added(&mut merged, &packed, second, first).map(|()| merged)
            }
            (Seen::Packed(ours), Seen::Packed(theirs)) => {
                let mut merged = Box::new(unpacked(&ours, &first)?);
                added(&mut merged, &theirs, first, second).map(|()| merged)
            }
            (Seen::Merged(mut merged), Seen::Merged(theirs)) => match merged.take_in(&theirs) {
                Ok(()) => Ok(merged),
                Err(unlike) => Err(StatsError::NotOneLoad { first, second, unlike }),
            },
        }?;
        self.names.extend(other.names);
        Ok(Part { names: self.names, account: Seen::Merged(account), facts: self.facts.and(other.facts) })
    }

    /// The name of its first Record.
    fn name(&self) -> String {
        self.names.values().next().cloned().unwrap_or_default()
    }
}

/// Adds what one Record says to what others say.
fn added(merged: &mut Account, packed: &PackedAccount, of: String, name: String) -> Result<(), StatsError> {
    merged.add(packed).map_err(|error| match error {
        AddError::Unlike(unlike) => StatsError::NotOneLoad { first: of, second: name, unlike },
        AddError::Damaged(source) => StatsError::In { name, source: Box::new(source) },
    })
}

fn unpacked(packed: &PackedAccount, name: &str) -> Result<Account, StatsError> {
    Account::unpack(packed).map_err(|source| StatsError::In { name: name.to_owned(), source: Box::new(source) })
}

impl Facts {
    /// What a Record says that does not follow from its Account.
    fn of(record: Record) -> Facts {
        Facts {
            started_at: record.started_at,
            started_monotonic_ns: record.started_monotonic_ns,
            duration: Nanos::from_secs_f64(record.duration_s),
            window: Nanos::from_secs_f64(record.window_s),
            command: record.command,
            target: record.target,
            seed: record.seed,
            interrupted: record.interrupted,
            generator: record.generator,
            server: record.server,
            tls: record.tls,
            wants_tls: record.wants_tls,
            http: record.http,
            workload: record.workload,
            shards: record.shards,
        }
    }

    /// What differs that the shards of a load have in common.
    fn unlike(&self, other: &Facts) -> Option<Unlike> {
        let shards = |facts: &Facts| facts.shards.first().map_or(0, |shard| shard.of).to_string();
        let differing = |what, of: &dyn Fn(&Facts) -> String| {
            let (first, second) = (of(self), of(other));
            (first != second).then_some(Unlike::Other { what, first, second })
        };
        differing("target", &|facts| facts.target.clone())
            .or_else(|| differing("number of shards", &shards))
            .or_else(|| differing("version of HTTP", &|facts| facts.http.clone().unwrap_or_default()))
            .or_else(|| differing("seed", &|facts| facts.seed.to_string()))
            .or_else(|| differing("kind of load", &|facts| format!("{:?}", facts.load_kind()).to_lowercase()))
            .or_else(|| {
                if self.workload == other.workload {
                    return None;
                }
                differing("workload", &|facts| format!("{:?}", facts.workload))
            })
    }

    /// Of both together. The clock is that of the Record with what the monitor saw, which is anchored on it.
    fn and(mut self, other: Facts) -> Facts {
        let clock = if self.server.is_none() && other.server.is_some() {
            other.started_monotonic_ns
        } else {
            self.started_monotonic_ns
        };
        self.shards.extend(other.shards);
        self.shards.sort_by_key(|shard| shard.index);
        Facts {
            // RFC 3339 in UTC is in the order of time.
            started_at: self.started_at.min(other.started_at),
            started_monotonic_ns: clock,
            duration: self.duration.max(other.duration),
            window: self.window.max(other.window),
            interrupted: self.interrupted || other.interrupted,
            generator: together(self.generator, other.generator),
            server: self.server.or(other.server),
            tls: self.tls.or(other.tls),
            wants_tls: self.wants_tls || other.wants_tls,
            ..self
        }
    }
}

/// What two generators were: what they used and could do is added up, what speaks against them is the worse of both.
fn together(a: Generator, b: Generator) -> Generator {
    let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
    // A host that does not say is no reason to pass over what the other says.
    let worse = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
    Generator {
        cpu_s: sum(a.cpu_s, b.cpu_s),
        cpu_user_s: sum(a.cpu_user_s, b.cpu_user_s),
        cpu_system_s: sum(a.cpu_system_s, b.cpu_system_s),
        busy: a.busy.max(b.busy),
        longest_gap_s: worse(a.longest_gap_s, b.longest_gap_s),
        threads: a.threads + b.threads,
        max_open_connections: a.max_open_connections + b.max_open_connections,
        engine: a
            .engine
            .split(", ")
            .chain(b.engine.split(", "))
            // What a part that was lost has not said.
            .filter(|engine| !engine.is_empty())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
            .join(", "),
        tick_s: worse(a.tick_s, b.tick_s),
        max_rate: sum(a.max_rate, b.max_rate),
        host: HostContention {
            cpu_wait_s: worse(a.host.cpu_wait_s, b.host.cpu_wait_s),
            throttled_s: worse(a.host.throttled_s, b.host.throttled_s),
            steal: worse(a.host.steal, b.host.steal),
        },
        host_probe: a.host_probe.into_iter().chain(b.host_probe).reduce(HostProbe::slower),
        panics: [a.panics, b.panics].concat(),
        body_error: a.body_error.or(b.body_error),
    }
}
