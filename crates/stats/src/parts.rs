//! Checks that a load was complete if it was divided among shards. If a shard is lost, its share of the load is
//! missing. The server is then measured under less load than the workload specifies, and the results of the other
//! shards do not show this. The merged results of many generators also hide that a single generator was the limit.

use crate::thresholds::{MAX_LOST_SHARE, MAX_START_SKEW_SHARE, TOLERATED_START_SKEW_S};
use brimful_core::Nanos;
use brimful_core::quantity::{percent, seconds};
use brimful_core::record::{Reason, ReasonCode, ShardOrigin};

/// Maximum number of shards that a message names.
const MAX_NAMED: usize = 5;

/// A message if a relevant part of the load was missing, or if the shards did not start together. The Record of a
/// single shard is complete by itself, so missing shards are reported only after several Records were merged.
pub(crate) fn missing(shards: &[ShardOrigin], window: Nanos) -> Option<String> {
    let of = shards.first()?.total;
    let window_s = window.as_secs_f64();
    let lost: Vec<(&ShardOrigin, f64)> =
        shards.iter().filter_map(|shard| Some((shard, shard.lost_at_s.filter(|at| *at < window_s)?))).collect();
    let absent = if shards.len() > 1 { of.saturating_sub(shards.len() as u64) } else { 0 };
    let lost_share: f64 = lost.iter().map(|(_, at)| 1.0 - (at / window_s).clamp(0.0, 1.0)).sum();
    let share = (lost_share + absent as f64) / of.max(1) as f64;
    if share < MAX_LOST_SHARE {
        return apart(shards, window_s);
    }
    let named = lost.iter().take(MAX_NAMED).map(|(shard, at)| match at {
        0.0 => format!("shard {}/{of} never began{}", shard.index, on(shard)),
        at => format!("shard {}/{of}{} was lost {} after the start", shard.index, on(shard), seconds(*at)),
    });
    let more = lost.len().saturating_sub(MAX_NAMED);
    let others = [(more, "more were lost"), (absent as usize, "are not among these Records")];
    let others = others.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} of {of} {what}"));
    let what: Vec<String> = named.chain(others).collect();
    Some(format!(
        "{} of the load was missing: {}. See what ended it (memory, the host, the network), and make the whole load again.",
        percent(share),
        what.join("; ")
    ))
}

/// A message if the shards started too far apart in time to form one load.
fn apart(shards: &[ShardOrigin], window_s: f64) -> Option<String> {
    let mut offsets: Vec<(f64, &ShardOrigin)> =
        shards.iter().filter_map(|shard| Some((shard.offset_us? / 1e6, shard))).collect();
    offsets.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let ((first, _), (last, late)) = (offsets.first()?, offsets.last()?);
    let apart = last - first;
    (apart > TOLERATED_START_SKEW_S && apart > MAX_START_SKEW_SHARE * window_s).then(|| {
        format!(
            "The parts of the load began {} apart, shard {}/{}{} last. Give them more time to get ready before they start, \
             and CPUs of their own.",
            seconds(apart),
            late.index,
            late.total,
            on(late)
        )
    })
}

/// Reasons to doubt the generators of single shards, at most one per reason code. Codes of the reasons `said` are left
/// out, because they already apply to the whole load.
pub(crate) fn doubts(shards: &[ShardOrigin], said: &[Reason]) -> Vec<Reason> {
    use ReasonCode::{BeyondClientMax, GeneratorCpu, GeneratorLate, GeneratorStalled};
    [GeneratorLate, GeneratorStalled, GeneratorCpu, BeyondClientMax]
        .into_iter()
        .filter(|code| said.iter().all(|reason| reason.code != *code))
        .filter_map(|code| {
            let mut doubtful =
                shards.iter().filter_map(|shard| Some((shard, shard.reasons.iter().find(|r| r.code == code)?)));
            let (shard, reason) = doubtful.next()?;
            let others = match doubtful.count() {
                0 => String::new(),
                n => format!(" The same is true of {n} more."),
            };
            let (index, of) = (shard.index, shard.total);
            Some(Reason { code, message: format!("Of shard {index}/{of}{}: {}{others}", on(shard), reason.message) })
        })
        .collect()
}

/// The text ` on HOST`, which names the host of a shard; empty if the host is not known.
fn on(shard: &ShardOrigin) -> String {
    if shard.host.is_empty() { String::new() } else { format!(" on {}", shard.host) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Nanos = Nanos::from_secs(10);

    fn shards(of: u64, there: &[u64]) -> Vec<ShardOrigin> {
        let shard =
            |index: &u64| ShardOrigin { index: *index, total: of, host: "a".to_owned(), ..ShardOrigin::default() };
        there.iter().map(shard).collect()
    }

    #[test]
    fn what_was_lost_matters_by_its_share_of_the_load() {
        let lost = |at: f64| {
            let mut all = shards(4, &[1, 2, 3, 4]);
            all[2].lost_at_s = Some(at);
            missing(&all, WINDOW)
        };
        let said = "20.0 % of the load was missing: shard 3/4 on a was lost 2.00 s after the start. ";
        assert!(lost(2.0).is_some_and(|message| message.starts_with(said)), "{:?}", lost(2.0));
        assert!(lost(0.0).is_some_and(|message| message.contains("shard 3/4 never began on a.")), "{:?}", lost(0.0));
        // If one of four shards is lost after 9.7 of 10 s, only 0.75 % of the load is missing. If it is lost after 10.5
        // s, nothing is missing, because the load has ended.
        assert_eq!([lost(9.7), lost(10.5)], [None, None]);
    }

    #[test]
    fn parts_that_are_not_there_are_missing_but_one_part_is_one() {
        assert_eq!(missing(&shards(4, &[2]), WINDOW), None);
        assert_eq!(missing(&shards(2, &[1, 2]), WINDOW), None);
        let two = missing(&shards(4, &[1, 3]), WINDOW).unwrap();
        assert!(two.starts_with("50.0 % of the load was missing: 2 of 4 are not among these Records."), "{two}");
        assert_eq!(missing(&[], WINDOW), None);
    }

    #[test]
    fn parts_that_begin_apart_are_no_one_load() {
        let mut all = shards(2, &[1, 2]);
        all[0].offset_us = Some(20.0);
        assert_eq!(missing(&all, WINDOW), None, "the start of one part is unknown");
        all[1].offset_us = Some(250_020.0);
        let message = missing(&all, WINDOW).unwrap();
        assert!(message.starts_with("The parts of the load began 250 ms apart, shard 2/2 on a last."), "{message}");
        assert_eq!(missing(&all, Nanos::from_secs(60)), None, "a skew of 0.5 % of the run is tolerated");
    }

    #[test]
    fn a_part_in_doubt_is_said_once() {
        let late = |message: &str| Reason { code: ReasonCode::GeneratorLate, message: message.to_owned() };
        let mut all = shards(3, &[1, 2, 3]);
        all[1].reasons = vec![late("Late.")];
        all[2].reasons = vec![late("Later.")];
        let said = vec![late("Of shard 2/3 on a: Late. The same is true of 1 more.")];
        assert_eq!(doubts(&all, &[]), said);
        assert_eq!(doubts(&all, &said), []);
        // Reasons that concern the outcomes of calls are judged for the whole load, so they must not be reported for
        // single shards.
        all.iter_mut().flat_map(|shard| &mut shard.reasons).for_each(|reason| reason.code = ReasonCode::Interrupted);
        assert_eq!(doubts(&all, &[]), []);
    }
}
