//! R23, judged by what the store shows and each elector certainly saw: how many holders it has make room, and how long it
//! prefers no candidate after a hand-over that was not accepted.

use std::time::Duration;

use elector_protocol::{Identity, LeaseRecord, LeaseSnapshot, Timestamp};

use crate::reading::is_released;
use crate::recorded_writer::{ElectorSight, RecordedWriter};

/// The pre-emptions of a lease so far, and the term under way.
#[derive(Debug, Default)]
pub(super) struct Preemptions {
    /// Holders that made room, but for balance alone: that has no share in the budget (L9).
    done: Vec<SeenSpan>,
    /// Pre-emptions whose electee did not accept.
    failures: Vec<SeenSpan>,
    /// True where the writers of this record and of all of its term are known.
    is_known: bool,
    /// True if the term was accepted.
    is_accepted: bool,
    /// When the holder of this term was first asked to make room.
    asked: Option<Timestamp>,
    /// True if it was asked for anything but balance.
    counts: bool,
    /// When the holder before was asked, where it made room and no electee has accepted since.
    preempted: Option<Timestamp>,
}

/// An event that an elector knows only if it watched from the one moment to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeenSpan {
    from: Timestamp,
    /// When it was complete, from where it counts.
    at: Timestamp,
}

/// The budget of pre-emptions (`--preemptions`), doubled for the candidate that an operator prefers.
const BUDGET: usize = 3;

/// The window of that budget (`--preemption-window`).
const WINDOW: Duration = Duration::from_secs(10 * 60);

/// The time for which no candidate is preferred after a hand-over that was not accepted. After several in a row it is longer, and for
/// candidates that are new: elections remember that, and a record does not show it.
const HELD_BACK: Duration = Duration::from_secs(60);

// === impl Preemptions ===

impl Preemptions {
    /// Takes in the next revision, and says what is wrong with it; `for_balance` where its preference is for that alone.
    pub(super) fn follow(
        &mut self,
        before: Option<&LeaseSnapshot>,
        after: &LeaseSnapshot,
        at: Timestamp,
        writer: Option<&RecordedWriter>,
        for_balance: bool,
    ) -> Result<(), String> {
        let (overrides, record) = (before.map(|it| &it.overrides), &after.record);
        let before = before.filter(|it| it.uid == after.uid);
        let before = before.map(|it| &it.record);
        let Some(writer) = writer else {
            // A stranger's write ends what is known of this term, unless it leaves the record, as an operator's word.
            self.is_known &= before == Some(record);
            return Ok(());
        };
        let own = record.holder.is_some() && record.holder.as_ref() == writer.holder();
        let Some(before) = before.filter(|_| self.is_known) else {
            self.is_known = true;
            self.preempted = None;
            self.begin_term(own);
            return Ok(());
        };
        if (&before.holder, before.term) != (&record.holder, record.term) {
            self.change_term(at, before, record);
            self.begin_term(own);
        }
        self.is_accepted |= own;
        if self.is_accepted && record.holder.is_some() {
            self.preempted = None;
        }
        let (Some(preferred), Some(sight)) = (&record.preferred_holder, writer.sight()) else {
            return Ok(());
        };
        if before.preferred_holder.as_ref() == Some(preferred) {
            return Ok(());
        }
        let by_operator = overrides.and_then(|overrides| overrides.prefer.as_ref());
        let by_operator = by_operator.is_some_and(|it| it.candidate == *preferred);
        let budget = sight.preemptions.map_or(BUDGET, usize::from);
        let budget = if by_operator { 2 * budget } else { budget };
        let budget = (!for_balance).then_some(budget);
        let judged = self.preference(writer, sight, preferred, budget);
        self.asked.get_or_insert(writer.sent);
        self.counts |= !for_balance;
        judged
    }

    /// Another term began, or this one was released.
    fn change_term(&mut self, at: Timestamp, before: &LeaseRecord, after: &LeaseRecord) {
        let made_room = after.holder.is_some() || is_released(after);
        if let Some(from) = self.asked.filter(|_| self.is_accepted && made_room) {
            if self.counts {
                self.done.push(SeenSpan { from, at });
            }
            self.preempted = Some(from);
        } else if before.holder.is_some()
            && !self.is_accepted
            && let Some(from) = self.preempted.take()
        {
            self.failures.push(SeenSpan { from, at });
        }
    }

    fn begin_term(&mut self, accepted: bool) {
        self.is_accepted = accepted;
        self.asked = None;
        self.counts = false;
    }

    /// An elector asks a holder to make room; `budget` is none where it does so for balance.
    fn preference(
        &self,
        writer: &RecordedWriter,
        sight: &ElectorSight,
        preferred: &Identity,
        budget: Option<usize>,
    ) -> Result<(), String> {
        let lately = |spans: &[SeenSpan], time| {
            let seen = spans.iter().filter(|span| sight.saw(span.from, span.at));
            seen.filter(|span| writer.counted_from(span.at) < time)
                .count()
        };
        let count = lately(&self.done, WINDOW);
        if budget.is_some_and(|budget| count >= budget) {
            return Err(format!(
                "{preferred} is preferred after {count} holders made room within {WINDOW:?} (R23)"
            ));
        }
        if lately(&self.failures, HELD_BACK) > 0 {
            return Err(format!(
                "{preferred} is preferred within {HELD_BACK:?} of a hand-over that was not accepted (R23)"
            ));
        }
        Ok(())
    }
}
