//! One part of a group: its holders of late, and its last move for balance.

use std::time::Duration;

use elector_protocol::{Identity, LeaseRecord, LeaseSnapshot, Timestamp};

use crate::entry::between;
use crate::reading::{duration, is_same};

/// A Lease of a group.
#[derive(Debug)]
pub(super) struct BalancedPart {
    /// The group, by the label of the newest revision.
    pub(super) group: Option<String>,
    /// The newest revision that could be read.
    pub(super) last: Option<LeaseSnapshot>,
    /// When the first revision was seen.
    pub(super) first: Timestamp,
    /// When the object was created, by the server's clock.
    created: Option<Timestamp>,
    /// The last gap of the recording.
    pub(super) gap: Option<Timestamp>,
    /// Its holders, each from some moment on, the oldest first.
    past: Vec<PartHolding>,
    /// The preference for balance that stands, and when it was written.
    asked: Option<(Identity, Timestamp)>,
    /// The last move for balance.
    pub(super) moved: Option<LastMove>,
}

/// A move for balance: when it was asked for, and when the part had its new holder.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastMove {
    pub(super) asked: Timestamp,
    pub(super) at: Timestamp,
}

/// The holder of a part from some moment on.
#[derive(Clone, Debug)]
pub(super) struct PartHolding {
    from: Timestamp,
    /// False from its deletion on.
    exists: bool,
    /// The candidate that has the part, or is about to get it by a preference.
    holder: Option<Identity>,
    /// Since when the record has been the same.
    since: Timestamp,
    lasts: Option<Duration>,
}

// === impl BalancedPart ===

impl BalancedPart {
    pub(super) fn new(first: Timestamp, created: Option<Timestamp>) -> Self {
        Self {
            group: None,
            last: None,
            first,
            created,
            gap: None,
            past: Vec::new(),
            asked: None,
            moved: None,
        }
    }

    /// Takes in the next revision; `asks` where it prefers a candidate for balance.
    pub(super) fn follow(
        &mut self,
        mut holding: PartHolding,
        after: LeaseSnapshot,
        asks: bool,
        gap: bool,
    ) {
        let at = holding.from;
        let same_object = |last: &&LeaseSnapshot| last.uid == after.uid;
        if let (Some(last), Some(before)) =
            (self.last.as_ref().filter(same_object), self.past.last())
            && is_same(&last.record, &after.record)
        {
            holding.since = before.since;
        }
        if gap {
            self.gap = Some(at);
            self.asked = None;
        }
        let before = self.last.as_ref().map(|last| &last.record);
        let record = &after.record;
        let changes = before
            .is_none_or(|before| (&before.holder, before.term) != (&record.holder, record.term));
        if asks {
            self.asked = record.preferred_holder.clone().map(|to| (to, at));
        } else if changes && record.holder.is_some() {
            let asked = self.asked.take();
            if let Some((_, asked)) = asked.filter(|(to, _)| record.holder.as_ref() == Some(to)) {
                self.moved = Some(LastMove { asked, at });
            }
        } else if !changes {
            let stands = record.preferred_holder.as_ref();
            self.asked = self.asked.take().filter(|(to, _)| stands == Some(to));
        }
        self.past.push(holding);
        self.last = Some(after);
    }

    /// The Lease was deleted.
    pub(super) fn end(&mut self, at: Timestamp) {
        self.asked = None;
        self.past.push(PartHolding {
            from: at,
            exists: false,
            holder: None,
            since: at,
            lasts: None,
        });
    }

    /// Forgets what was over before a moment.
    pub(super) fn forget_before(&mut self, moment: Timestamp) {
        let over = self.past.partition_point(|holding| holding.from <= moment);
        self.past.drain(..over.saturating_sub(1));
    }

    /// The candidate that has the part at a moment; `None` where it is unheld, or late (R15) by a clock of this rate, or not
    /// there. `longest` is the duration of a record that says none.
    pub(super) fn holder_at(
        &self,
        moment: Timestamp,
        longest: Duration,
        rate: f64,
    ) -> Option<&Identity> {
        let holding = self.at(moment)?;
        let late = holding.lasts.unwrap_or(longest) * 2 / 3;
        holding
            .holder
            .as_ref()
            .filter(|_| between(holding.since, moment).mul_f64(rate) < late)
    }

    /// True if the Lease is there at a moment.
    pub(super) fn exists_at(&self, moment: Timestamp) -> bool {
        self.at(moment).is_some_and(|holding| holding.exists)
    }

    /// The moments from this one on at which anything changed.
    pub(super) fn changes(&self, from: Timestamp) -> impl Iterator<Item = Timestamp> {
        let moments = self.past.iter().map(|holding| holding.from);
        moments.filter(move |at| from <= *at)
    }

    /// True if it was created when the recording had begun.
    pub(super) fn is_new(&self, delay: Duration) -> bool {
        self.created
            .is_some_and(|created| between(created, self.first) <= delay.max(WHOLE_SECOND))
    }

    /// True if it may have been there at a moment of which the recording has no revision of it.
    pub(super) fn may_precede(&self, moment: Timestamp) -> bool {
        moment < self.first && self.created.is_none_or(|created| created <= moment)
    }

    fn at(&self, moment: Timestamp) -> Option<&PartHolding> {
        let known = self.past.partition_point(|holding| holding.from <= moment);
        self.past[..known].last()
    }
}

/// The precision of the times at which objects were created.
const WHOLE_SECOND: Duration = Duration::from_secs(1);

// === impl PartHolding ===

impl PartHolding {
    /// The holding that a revision shows, which was seen at `from`.
    pub(super) fn of(from: Timestamp, record: &LeaseRecord) -> Self {
        let holder = record.holder.as_ref();
        Self {
            from,
            exists: true,
            holder: holder
                .and(record.preferred_holder.as_ref())
                .or(holder)
                .cloned(),
            since: from,
            lasts: duration(record),
        }
    }
}
