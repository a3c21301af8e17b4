//! Counts redirects by outcome, in a run that follows redirects.

use crate::error::StatsError;
use crate::histogram::MAX_COUNT;
use crate::tally::Tally;
use brimful_core::UnfollowedReason;
use brimful_core::account::PackedRedirects;
use brimful_core::record::{NotFollowed, Redirects};

/// Counts of the calls that followed redirects, and of the redirects that were not followed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RedirectTally {
    /// Counts and times of the requests that followed a redirect.
    pub(crate) followed: Tally,
    not_followed: NotFollowed,
}

impl RedirectTally {
    pub(crate) fn new() -> RedirectTally {
        RedirectTally { followed: Tally::new("redirects".to_owned()), not_followed: NotFollowed::default() }
    }

    /// Counts a redirect that was not followed, by reason.
    pub(crate) fn unfollowed(&mut self, why: UnfollowedReason) {
        let NotFollowed { other_server, too_many, needs_body, invalid_location } = &mut self.not_followed;
        *match why {
            UnfollowedReason::OtherServer => other_server,
            UnfollowedReason::TooManyRedirects => too_many,
            UnfollowedReason::NeedsBody => needs_body,
            UnfollowedReason::InvalidLocation => invalid_location,
        } += 1;
    }

    /// Adds the counts of `other`.
    pub(crate) fn merge(&mut self, other: &RedirectTally) {
        self.followed.merge(&other.followed);
        let NotFollowed { other_server, too_many, needs_body, invalid_location } = &mut self.not_followed;
        *other_server += other.not_followed.other_server;
        *too_many += other.not_followed.too_many;
        *needs_body += other.not_followed.needs_body;
        *invalid_location += other.not_followed.invalid_location;
    }

    pub(crate) fn clear(&mut self) {
        self.followed.clear();
        self.not_followed = NotFollowed::default();
    }

    /// The redirects as a Record contains them.
    pub(crate) fn figures(&self) -> Redirects {
        Redirects { followed: self.followed.to_record(), not_followed: self.not_followed }
    }

    pub(crate) fn pack(&self) -> PackedRedirects {
        PackedRedirects { followed: self.followed.pack(), not_followed: self.not_followed }
    }

    pub(crate) fn unpack(packed: &PackedRedirects) -> Result<RedirectTally, StatsError> {
        let NotFollowed { other_server, too_many, needs_body, invalid_location } = packed.not_followed;
        if [other_server, too_many, needs_body, invalid_location].into_iter().any(|count| count > MAX_COUNT) {
            return Err(StatsError::Damaged("more redirects than any run has".to_owned()));
        }
        Ok(RedirectTally { followed: Tally::unpack(&packed.followed)?, not_followed: packed.not_followed })
    }
}
