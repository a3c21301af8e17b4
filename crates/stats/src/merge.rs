//! Merges the Records of a load's shards into the Record of the whole load. The shards may have run in several
//! processes or on several hosts. Counts and times are merged exactly, the resources of the generators are added up,
//! and the verdict is computed again.

use crate::account::{Account, AddError};
use crate::derive::{RunFacts, derive};
use crate::error::{MergeMismatch, StatsError};
use brimful_core::Nanos;
use brimful_core::account::PackedAccount;
use brimful_core::record::{Generator, HostContention, Record, ShardOrigin, join_values};
use brimful_core::server::HostProbe;
use std::collections::BTreeMap;
use std::mem;

/// Merges Records in any order. Each Record has the user's name for it, which messages use. If shards are missing, the
/// verdict of the result states that part of the load was missing.
///
/// # Errors
/// [`StatsError`] if a Record has no `account` (serialised statistics), or if the Records are not the shards of one
/// load.
pub fn merge(records: Vec<(String, Record)>) -> Result<Record, StatsError> {
    let mut merger = Merger::default();
    records.into_iter().try_for_each(|(name, record)| merger.add(name, record))?;
    merger.finish()
}

/// Merges Records one by one, with the statistics of at most two in memory. Several mergers may each merge some of the
/// Records. [`Merger::join`] then combines them.
#[derive(Debug, Default)]
pub struct Merger {
    so_far: Option<Part>,
}

impl Merger {
    /// Merges one more Record.
    ///
    /// # Errors
    /// The errors of [`merge`]. After an error, the Records merged before are lost.
    pub fn add(&mut self, name: String, record: Record) -> Result<(), StatsError> {
        self.join(Merger { so_far: Some(Part::read((name, record))?) })
    }

    /// Merges the Records of another merger into this one.
    ///
    /// # Errors
    /// The errors of [`merge`].
    pub fn join(&mut self, other: Merger) -> Result<(), StatsError> {
        self.so_far = match (self.so_far.take(), other.so_far) {
            (Some(ours), Some(theirs)) => Some(ours.merge(theirs)?),
            (ours, theirs) => ours.or(theirs),
        };
        Ok(())
    }

    /// Records that a shard was lost at the start of the load, so that it has no observations. Shards are numbered from
    /// 1.
    ///
    /// # Errors
    /// [`StatsError`] if no Record was merged yet, if the load has no shard of this number, or if the shard's Record
    /// was merged.
    pub fn mark_lost(&mut self, index: u64) -> Result<(), StatsError> {
        let part = self.so_far.as_mut().ok_or(StatsError::NoRecord)?;
        let of = part.facts.shards.first().map_or(0, |shard| shard.total);
        if !(1..=of).contains(&index) {
            return Err(StatsError::NoSuchShard { index, of });
        }
        if let Some(name) = part.names.insert((index, of), "--lost".to_owned()) {
            return Err(StatsError::NotLost { index, name });
        }
        part.facts.shards.push(ShardOrigin { index, total: of, lost_at_s: Some(0.0), ..ShardOrigin::default() });
        part.facts.shards.sort_by_key(|shard| shard.index);
        Ok(())
    }

    /// The Record of the whole load.
    ///
    /// # Errors
    /// [`StatsError`] if no Record was merged.
    pub fn finish(self) -> Result<Record, StatsError> {
        let whole = self.so_far.ok_or(StatsError::NoRecord)?;
        let account = match &whole.account {
            PartAccount::Packed(packed) => &unpacked(packed, &whole.name())?,
            PartAccount::Merged(account) => account,
        };
        Ok(derive(account, whole.facts))
    }
}

/// One or more merged Records: their counts and times, and the other facts of the run.
#[derive(Debug)]
struct Part {
    /// The user's name for the Record of each shard. The key is the shard's index and the load's number of shards.
    names: BTreeMap<(u64, u64), String>,
    account: PartAccount,
    facts: RunFacts,
}

/// The counts and times of one Record or of several merged Records.
#[derive(Debug)]
enum PartAccount {
    /// The serialised counts and times of one Record.
    Packed(Box<PackedAccount>),
    /// The merged counts and times of several Records.
    Merged(Box<Account>),
}

impl Part {
    fn read((name, mut record): (String, Record)) -> Result<Part, StatsError> {
        if let [shard] = &mut record.shards[..] {
            shard.reasons.clone_from(&record.verdict.reasons);
        }
        let named = |source| StatsError::InRecord { name: name.clone(), source: Box::new(source) };
        if record.shards.is_empty() {
            return Err(named(StatsError::NotAShard));
        }
        let account = record.account.take().ok_or_else(|| named(StatsError::NoAccount))?;
        let names = record.shards.iter().map(|shard| ((shard.index, shard.total), name.clone())).collect();
        Ok(Part { names, account: PartAccount::Packed(Box::new(account)), facts: RunFacts::from_record(record) })
    }

    fn merge(mut self, mut other: Part) -> Result<Part, StatsError> {
        // The Records with the lowest shard index come first, so that neither the result nor a message depends on the
        // order of the two arguments.
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
            return Err(StatsError::DifferentLoads { first, second, unlike });
        }
        let account = match (self.account, other.account) {
            (PartAccount::Merged(mut merged), PartAccount::Packed(packed)) => {
                add(&mut merged, &packed, first, second).map(|()| merged)
            }
            (PartAccount::Packed(packed), PartAccount::Merged(mut merged)) => {
                add(&mut merged, &packed, second, first).map(|()| merged)
            }
            (PartAccount::Packed(ours), PartAccount::Packed(theirs)) => {
                let mut merged = Box::new(unpacked(&ours, &first)?);
                add(&mut merged, &theirs, first, second).map(|()| merged)
            }
            (PartAccount::Merged(mut merged), PartAccount::Merged(theirs)) => match merged.merge_from(&theirs) {
                Ok(()) => Ok(merged),
                Err(unlike) => Err(StatsError::DifferentLoads { first, second, unlike }),
            },
        }?;
        self.names.extend(other.names);
        Ok(Part { names: self.names, account: PartAccount::Merged(account), facts: self.facts.merge(other.facts) })
    }

    /// The user's name for the first of the merged Records.
    fn name(&self) -> String {
        self.names.values().next().cloned().unwrap_or_default()
    }
}

/// Adds the serialised counts and times of the Record `name` to `merged`. `of` is the name of the first Record in
/// `merged`, for messages.
fn add(merged: &mut Account, packed: &PackedAccount, of: String, name: String) -> Result<(), StatsError> {
    merged.add(packed).map_err(|error| match error {
        AddError::MergeMismatch(unlike) => StatsError::DifferentLoads { first: of, second: name, unlike },
        AddError::Damaged(source) => StatsError::InRecord { name, source: Box::new(source) },
    })
}

fn unpacked(packed: &PackedAccount, name: &str) -> Result<Account, StatsError> {
    Account::unpack(packed).map_err(|source| StatsError::InRecord { name: name.to_owned(), source: Box::new(source) })
}

impl RunFacts {
    /// The contents of a Record that do not follow from its counts and times.
    fn from_record(record: Record) -> RunFacts {
        RunFacts {
            started_at: record.started_at,
            started_monotonic_ns: record.started_monotonic_ns,
            duration: Nanos::from_secs_f64(record.duration_s),
            window: Nanos::from_secs_f64(record.window_s),
            brimful_version: record.brimful_version,
            command: record.command,
            labels: record.labels,
            machine: record.machine,
            server_software: record.server_software,
            target: record.target,
            seed: record.seed,
            interrupted: record.interrupted,
            stopped_by: record.stopped_by,
            warm_up_s: record.warm_up_s,
            generator: record.generator,
            server: record.server,
            tls: record.tls,
            wants_tls: record.wants_tls,
            http: record.http,
            workload: record.workload,
            shards: record.shards,
        }
    }

    /// The first property that differs between two Records although it must be the same for all shards of a load.
    fn unlike(&self, other: &RunFacts) -> Option<MergeMismatch> {
        let shards = |facts: &RunFacts| facts.shards.first().map_or(0, |shard| shard.total).to_string();
        let differing = |what, of: &dyn Fn(&RunFacts) -> String| {
            let (first, second) = (of(self), of(other));
            (first != second).then_some(MergeMismatch::Other { what, first, second })
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

    /// Merges the facts of two Records. If one of them has observations of a monitor, its monotonic start time is kept,
    /// because the observations refer to the clock of that host.
    fn merge(mut self, other: RunFacts) -> RunFacts {
        let clock = if self.server.is_none() && other.server.is_some() {
            other.started_monotonic_ns
        } else {
            self.started_monotonic_ns
        };
        self.shards.extend(other.shards);
        self.shards.sort_by_key(|shard| shard.index);
        RunFacts {
            // RFC 3339 times in UTC sort as text in order of time.
            started_at: self.started_at.min(other.started_at),
            started_monotonic_ns: clock,
            duration: self.duration.max(other.duration),
            window: self.window.max(other.window),
            interrupted: self.interrupted || other.interrupted,
            stopped_by: self.stopped_by.or(other.stopped_by),
            labels: merge_labels(self.labels, other.labels),
            machine: self.machine.into_iter().chain(other.machine).reduce(|ours, theirs| ours.merge(&theirs)),
            server_software: self.server_software.or(other.server_software),
            warm_up_s: self.warm_up_s.into_iter().chain(other.warm_up_s).reduce(f64::max),
            generator: merge_generators(self.generator, other.generator),
            server: self.server.or(other.server),
            tls: self.tls.or(other.tls),
            wants_tls: self.wants_tls || other.wants_tls,
            ..self
        }
    }
}

/// Merges the labels of two Records. A label whose values differ gets both values.
fn merge_labels(mut ours: BTreeMap<String, String>, theirs: BTreeMap<String, String>) -> BTreeMap<String, String> {
    for (name, value) in theirs {
        let merged = ours.get(&name).map_or(value.clone(), |former| join_values(former, &value));
        ours.insert(name, merged);
    }
    ours
}

/// Merges the resource usage of two generators. Resources and maximum rates are added up. For metrics that can make a
/// verdict invalid, such as lateness, the worse of both values is kept.
fn merge_generators(a: Generator, b: Generator) -> Generator {
    let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
    // If only one generator has a value, it is used.
    let worse = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
    Generator {
        cpu_s: sum(a.cpu_s, b.cpu_s),
        cpu_user_s: sum(a.cpu_user_s, b.cpu_user_s),
        cpu_system_s: sum(a.cpu_system_s, b.cpu_system_s),
        busy: a.busy.max(b.busy),
        longest_gap_s: worse(a.longest_gap_s, b.longest_gap_s),
        threads: a.threads + b.threads,
        max_open_connections: a.max_open_connections + b.max_open_connections,
        // The entry of a lost shard has an empty engine name.
        engine: join_values(&a.engine, &b.engine),
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
