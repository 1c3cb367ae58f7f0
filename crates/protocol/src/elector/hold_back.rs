//! The price of failed hand-overs and many pre-emptions: the preference, and not the lease (R23).
//!
//! A live holder makes room because a better candidate acked. A candidate that acks and does not accept leaves the lease
//! without a leader for an accept window, and may come back under another name or version at once, which R5 would not
//! know again. So this memory belongs to the lease, whatever names and specs come and go.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::elector::observed_candidates::ObservedCandidates;
use crate::lease::{LeaseRecord, LeaseSnapshot, Occupancy};
use crate::names::Identity;
use crate::renumber::{Renumber, Renumbering};
use crate::spec::CandidateSpec;
use crate::time::{Instant, Timestamp};
use crate::timing::ElectorTiming;

/// One elector's memory of the pre-emptions of a lease: hand-overs and releases for a better candidate, whichever
/// elector asked for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HoldBack {
    /// The newest pre-emption after which the lease was not accepted.
    failed: Option<Box<FailedHandOver>>,
    /// When holders were pre-empted, the oldest first; those for the balance of a group are not among them.
    preemptions: Vec<Instant>,
    /// When a holder was last pre-empted for the balance of its group.
    balanced: Option<Instant>,
    /// Candidates that have accepted a term of this lease, in the order of their names.
    accepted: Vec<Identity>,
    /// For what the holder was asked to make room in this term, if it was.
    asked: Option<PreferenceKind>,
    /// True if the holder before was pre-empted, and no grant has been accepted since.
    preempted: bool,
}

/// A pre-emption whose electee did not accept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FailedHandOver {
    at: Instant,
    /// The number of them in a row, each within an hour of the one before.
    failures: u8,
    /// The candidates that have stood unchanged since then.
    standing: BTreeSet<Identity>,
}

/// For what a candidate goes before the holder: each has a budget of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PreferenceKind {
    /// The group of the lease is balanced by it; by all else the two are equal.
    Balance,
    /// It is better by the strategy, or the holder cannot be elected.
    Strategy,
    /// An operator prefers it.
    Operator,
}

/// Why a better candidate is not preferred yet. `Display` is a fragment that follows a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldBackCause {
    /// The last holder that made room did so in vain, and no candidate is preferred for a while.
    FailedHandOver {
        /// The number of failures in a row.
        failures: u8,
    },
    /// The candidate appeared or changed after a hand-over was in vain, and has accepted no term of this lease.
    NewSinceFailure,
    /// This number of holders has made room lately.
    Preemptions {
        /// Their number.
        count: u8,
        /// Within which time.
        within: Duration,
    },
    /// The part was moved for the balance of its group a moment ago ([R16](crate::rules#r16)).
    Balanced {
        /// The time between two such moves.
        within: Duration,
    },
    /// Preferences of this term were withdrawn, so that electors seem to disagree ([R16](crate::rules#r16)).
    Withdrawn {
        /// Their number.
        times: u8,
    },
}

/// An elector's notice of a preference that it holds back, as far as it was written down: what is left of its memory
/// for those who have nothing but objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldBackNotice {
    /// The candidate that is better.
    pub candidate: Identity,
    /// Why it is not preferred.
    pub because: HoldBackCause,
    /// Until when, by the elector's wall clock.
    pub until: Timestamp,
    /// When that was reported, by the elector's wall clock.
    pub reported: Timestamp,
}

/// A text is no [`HoldBackCause`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a reason to hold a preference back")]
pub struct HoldBackCauseError;

/// The most pre-emptions remembered: the largest budget, once more for operators.
const REMEMBERED_MAX: usize = 2 * ElectorTiming::PREEMPTIONS_MAX as usize;
/// The failures are forgotten after this time without one.
const FALL_BACK: Duration = Duration::from_secs(3600);
/// From a second, this number of doublings exceeds a day, the longest maximum that can be set.
const FAILURES_MAX: u8 = 18;

// === impl HoldBack ===

impl HoldBack {
    /// Learns from the next record of the Lease.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        before: Option<&LeaseSnapshot>,
        after: &LeaseSnapshot,
        candidates: &ObservedCandidates,
    ) {
        let new = &after.record;
        let same_object = |before: &&LeaseSnapshot| before.uid == after.uid;
        match before.filter(same_object).map(|before| &before.record) {
            Some(old) if old.holder == new.holder && old.term == new.term => {}
            Some(old) => {
                self.note_end(now, old, new, candidates);
                self.asked = None;
            }
            None => (self.asked, self.preempted) = (None, false),
        }
        self.asked = self.asked.max(asked_for(after, candidates));
        if let Some(holder) = leader(new) {
            self.preempted = false;
            if candidates.contains(holder)
                && let Err(place) = self.accepted.binary_search(holder)
            {
                self.accepted.reserve_exact(1);
                self.accepted.insert(place, holder.clone());
            }
        }
    }

    /// The Lease was deleted, and the present term with it.
    pub(super) fn end_lease(&mut self) {
        (self.asked, self.preempted) = (None, false);
    }

    /// A candidate has another version by now.
    pub(super) fn change_candidate(&mut self, name: &Identity) {
        if let Some(failed) = &mut self.failed {
            failed.standing.remove(name);
        }
    }

    /// A candidate is gone, or another one has its name.
    pub(super) fn remove_candidate(&mut self, name: &Identity) {
        self.change_candidate(name);
        self.forget_terms(name);
    }

    /// Until when this candidate is not preferred, and why; `None` where it may be, as where that time is over. For the one
    /// that an operator prefers the budget is twice as large, whatever words come and go. A move for balance counts against
    /// none of these, and comes once in that time.
    pub(super) fn holds(
        &self,
        name: &Identity,
        kind: PreferenceKind,
        timing: &ElectorTiming,
    ) -> Option<(Instant, HoldBackCause)> {
        let failed = self.failed.as_ref().map(|failed| {
            let failures = failed.failures;
            (
                failed.held_until(timing),
                HoldBackCause::FailedHandOver { failures },
            )
        });
        let new = self.is_new_until(name, timing);
        let new = new.map(|until| (until, HoldBackCause::NewSinceFailure));
        let within = timing.preemption_window;
        let budget = |count| {
            let until = self.preempted_until(count, within)?;
            Some((until, HoldBackCause::Preemptions { count, within }))
        };
        let budget = match kind {
            PreferenceKind::Operator => budget(timing.preemptions.saturating_mul(2)),
            PreferenceKind::Strategy => budget(timing.preemptions),
            PreferenceKind::Balance => self
                .balanced
                .map(|at| (at.after(within), HoldBackCause::Balanced { within })),
        };
        let longest = [failed, new, budget].into_iter().flatten();
        longest.max_by_key(|(until, _)| *until)
    }

    /// When the holder was last pre-empted for the balance of its group.
    pub(super) const fn balanced(&self) -> Option<Instant> {
        self.balanced
    }

    /// Until when no candidate is preferred for balance.
    pub(super) fn holds_balance_until(&self, timing: &ElectorTiming) -> Option<Instant> {
        let failed = self.failed.as_ref().map(|failed| failed.held_until(timing));
        let balanced = self.balanced.map(|at| at.after(timing.preemption_window));
        failed.max(balanced)
    }

    /// Until when this candidate is not preferred for having appeared or changed since a hand-over failed.
    pub(super) fn is_new_until(&self, name: &Identity, timing: &ElectorTiming) -> Option<Instant> {
        let failed = self
            .failed
            .as_ref()
            .filter(|failed| self.is_new(failed, name))?;
        Some(failed.at.after(timing.preemption_window))
    }

    /// True if a grant goes to this candidate only when no other one acks: it has accepted no term of this lease, and
    /// hand-overs fail. `fails_now`: the present grant expires without an accept.
    pub(super) fn defers(
        &self,
        name: &Identity,
        fails_now: bool,
        now: Instant,
        timing: &ElectorTiming,
    ) -> bool {
        if self.has_led(name) {
            return false;
        }
        if fails_now && self.preempted && !timing.held_back_after(1).is_zero() {
            return true;
        }
        self.failed.as_ref().is_some_and(|failed| {
            now < failed.held_until(timing)
                || (now < failed.at.after(timing.preemption_window) && self.is_new(failed, name))
        })
    }

    /// Remembers what another elector reported, so that the same is held back until the same time. `until` is the notice's
    /// time as an instant; `standing` are the candidates that were there when it was reported.
    pub(super) fn replay(
        &mut self,
        notice: &HoldBackNotice,
        until: Instant,
        standing: impl Iterator<Item = Identity>,
        timing: &ElectorTiming,
    ) {
        let (lasts, failures) = match notice.because {
            HoldBackCause::Preemptions { count, .. } => {
                let at = until.before(timing.preemption_window);
                self.preemptions = vec![at; count.max(timing.preemptions).into()];
                return;
            }
            HoldBackCause::FailedHandOver { failures } => {
                (timing.held_back_after(failures), failures)
            }
            HoldBackCause::NewSinceFailure => (timing.preemption_window, 1),
            HoldBackCause::Balanced { within } => {
                self.balanced = Some(until.before(within));
                return;
            }
            // The memory of the present preference has this one.
            HoldBackCause::Withdrawn { .. } => return,
        };
        let mut standing: BTreeSet<Identity> = standing.collect();
        if notice.because == HoldBackCause::NewSinceFailure {
            standing.remove(&notice.candidate);
        }
        self.failed = Some(Box::new(FailedHandOver {
            at: until.before(lasts),
            failures,
            standing,
        }));
        // An object does not tell whether its candidate has ever led.
        self.forget_terms(&notice.candidate);
    }

    /// A term ended, or a grant without an accept.
    fn note_end(
        &mut self,
        now: Instant,
        old: &LeaseRecord,
        new: &LeaseRecord,
        candidates: &ObservedCandidates,
    ) {
        if old.is_unaccepted_grant() {
            if self.preempted {
                self.note_failure(now, old.holder.as_ref(), candidates);
            }
            return;
        }
        // A stranger's emptying pre-empts no holder: it may lead on.
        let made_room = new.occupancy() != Occupancy::Unproven;
        let Some(kind) = self.asked.filter(|_| leader(old).is_some() && made_room) else {
            return;
        };
        self.preempted = true;
        if kind == PreferenceKind::Balance {
            self.balanced = Some(now);
            return;
        }
        if self.preemptions.len() >= REMEMBERED_MAX {
            self.preemptions.remove(0);
        }
        self.preemptions.push(now);
    }

    fn note_failure(
        &mut self,
        now: Instant,
        electee: Option<&Identity>,
        candidates: &ObservedCandidates,
    ) {
        let recent = |failed: &&FailedHandOver| now.since(failed.at) < FALL_BACK;
        let before = self.failed.as_deref().filter(recent);
        let failures = before.map_or(0, |failed| failed.failures);
        self.failed = Some(Box::new(FailedHandOver {
            at: now,
            failures: failures.saturating_add(1).min(FAILURES_MAX),
            standing: candidates
                .iter()
                .map(|seen| seen.candidate.name.clone())
                .collect(),
        }));
        self.preempted = false;
        if let Some(electee) = electee {
            self.forget_terms(electee);
        }
    }

    /// True if a candidate has accepted a term of this lease.
    fn has_led(&self, name: &Identity) -> bool {
        self.accepted.binary_search(name).is_ok()
    }

    fn forget_terms(&mut self, name: &Identity) {
        if let Ok(place) = self.accepted.binary_search(name) {
            self.accepted.remove(place);
        }
    }

    /// True if nothing speaks for a candidate: neither has it accepted a term, nor was it there before the failure.
    fn is_new(&self, failed: &FailedHandOver, name: &Identity) -> bool {
        !self.has_led(name) && !failed.standing.contains(name)
    }

    /// Until when this number of pre-emptions lies within this time.
    fn preempted_until(&self, count: u8, within: Duration) -> Option<Instant> {
        let first = self.preemptions.len().checked_sub(count.into())?;
        let first = self.preemptions.get(first)?;
        Some(first.after(within))
    }
}

impl Renumber for HoldBack {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        if !by.tells_hold_backs() {
            *self = Self::default();
            return;
        }
        self.preemptions.retain_mut(|at| by.preemption(at));
        let balanced = self.balanced.as_mut();
        if !balanced.is_some_and(|at| by.preemption(at)) {
            self.balanced = None;
        }
        if let Some(failed) = &mut self.failed {
            by.failures(&mut failed.failures);
            if !by.failed_hand_over(&mut failed.at) {
                self.failed = None;
            }
        }
    }
}

// === impl FailedHandOver ===

impl FailedHandOver {
    /// Until when no candidate is preferred.
    fn held_until(&self, timing: &ElectorTiming) -> Instant {
        self.at.after(timing.held_back_after(self.failures))
    }
}

// === impl HoldBackCause ===

impl fmt::Display for HoldBackCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FailedHandOver { failures: 1 } => {
                f.write_str("the last hand-over was not accepted")
            }
            Self::FailedHandOver { failures } => {
                write!(f, "the last {failures} hand-overs were not accepted")
            }
            Self::NewSinceFailure => f.write_str(
                "it appeared or changed after a hand-over that was not accepted, and has never led",
            ),
            Self::Preemptions { count, within } => write!(
                f,
                "leaders have made room {count} times within {}s",
                within.as_secs()
            ),
            Self::Balanced { within } => {
                write!(
                    f,
                    "the part was moved for balance within {}s",
                    within.as_secs()
                )
            }
            Self::Withdrawn { times } => {
                write!(
                    f,
                    "electors disagree, and preferences of this term were withdrawn {times} times"
                )
            }
        }
    }
}

impl FromStr for HoldBackCause {
    type Err = HoldBackCauseError;

    /// Reads what `Display` writes.
    fn from_str(text: &str) -> Result<Self, HoldBackCauseError> {
        let of = |prefix, suffix| text.strip_prefix(prefix)?.strip_suffix(suffix);
        let cause = if text == Self::NewSinceFailure.to_string() {
            Some(Self::NewSinceFailure)
        } else if text == (Self::FailedHandOver { failures: 1 }).to_string() {
            Some(Self::FailedHandOver { failures: 1 })
        } else if let Some(failures) = of("the last ", " hand-overs were not accepted") {
            let failures = failures.parse().ok();
            failures.map(|failures| Self::FailedHandOver { failures })
        } else if let Some(times) = of(
            "electors disagree, and preferences of this term were withdrawn ",
            " times",
        ) {
            let times = times.parse().ok();
            times.map(|times| Self::Withdrawn { times })
        } else if let Some(seconds) = of("the part was moved for balance within ", "s") {
            let seconds = seconds.parse().ok();
            seconds.map(|seconds| Self::Balanced {
                within: Duration::from_secs(seconds),
            })
        } else {
            let counts = of("leaders have made room ", "s").and_then(|rest| {
                let (count, seconds) = rest.split_once(" times within ")?;
                Some((count.parse().ok()?, seconds.parse().ok()?))
            });
            counts.map(|(count, seconds)| Self::Preemptions {
                count,
                within: Duration::from_secs(seconds),
            })
        };
        cause.ok_or(HoldBackCauseError)
    }
}

/// For what the holder of this record is asked to make room, if it is.
fn asked_for(lease: &LeaseSnapshot, candidates: &ObservedCandidates) -> Option<PreferenceKind> {
    let record = &lease.record;
    let preferred = record.preferred_holder.as_ref()?;
    let overrides = &lease.overrides;
    if overrides
        .prefer
        .as_ref()
        .is_some_and(|word| &word.candidate == preferred)
    {
        return Some(PreferenceKind::Operator);
    }
    let is_for_balance = || {
        let strategy = record.strategy.as_ref()?.strategy()?;
        let spec = |name| candidates.get(name)?.candidate.offer().ok();
        let (holder, preferred) = (spec(record.holder.as_ref()?)?, spec(preferred)?);
        let group = |spec: &CandidateSpec| Some(Arc::clone(&spec.membership.as_ref()?.group));
        let of_one_group = group(holder)? == group(preferred)?;
        let equal = strategy.compare(holder, preferred) == Ordering::Equal;
        let may_stay = strategy.eligible(holder).is_ok() && holder.stand_down.is_none();
        Some(of_one_group && equal && may_stay && strategy.moves_for_balance())
    };
    Some(match is_for_balance() {
        Some(true) => PreferenceKind::Balance,
        _ => PreferenceKind::Strategy,
    })
}

/// The holder that has accepted the term of this record.
fn leader(record: &LeaseRecord) -> Option<&Identity> {
    let holder = record.holder.as_ref();
    holder.filter(|_| !record.is_unaccepted_grant())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says what still counts.
    struct StillCounts {
        hold_backs: bool,
        failed_hand_over: bool,
        preemptions: bool,
    }

    impl Renumbering for StillCounts {
        fn tells_hold_backs(&self) -> bool {
            self.hold_backs
        }

        fn failed_hand_over(&mut self, _: &mut Instant) -> bool {
            self.failed_hand_over
        }

        fn preemption(&mut self, _: &mut Instant) -> bool {
            self.preemptions
        }

        fn failures(&mut self, failures: &mut u8) {
            *failures = 1;
        }
    }

    #[test]
    fn what_does_not_count_any_more_is_forgotten() {
        let failed = |failures| FailedHandOver {
            at: Instant::default(),
            failures,
            standing: BTreeSet::new(),
        };
        let known = HoldBack {
            failed: Some(Box::new(failed(3))),
            preemptions: vec![Instant::default()],
            balanced: Some(Instant::default()),
            ..HoldBack::default()
        };
        let renumbered = |mut by: StillCounts| {
            let mut memory = known.clone();
            memory.renumber(&mut by);
            memory
        };
        let by = |hold_backs, failed_hand_over, preemptions| StillCounts {
            hold_backs,
            failed_hand_over,
            preemptions,
        };
        let mut expected = known.clone();
        expected.failed = Some(Box::new(failed(1)));
        assert_eq!(renumbered(by(true, true, true)), expected);
        expected.failed = None;
        assert_eq!(renumbered(by(true, false, true)), expected);
        (expected.preemptions, expected.balanced) = (Vec::new(), None);
        assert_eq!(renumbered(by(true, false, false)), expected);
        assert_eq!(renumbered(by(false, true, true)), HoldBack::default());
    }

    #[test]
    fn a_cause_is_read_as_it_is_written() {
        for cause in [
            HoldBackCause::FailedHandOver { failures: 1 },
            HoldBackCause::FailedHandOver { failures: 18 },
            HoldBackCause::NewSinceFailure,
            HoldBackCause::Withdrawn { times: 2 },
            HoldBackCause::Balanced {
                within: Duration::from_secs(600),
            },
            HoldBackCause::Preemptions {
                count: 6,
                within: Duration::from_secs(600),
            },
        ] {
            assert_eq!(cause.to_string().parse(), Ok(cause));
        }
        for text in ["", "the last 999 hand-overs were not accepted", "leaders"] {
            assert_eq!(text.parse::<HoldBackCause>(), Err(HoldBackCauseError));
        }
    }
}
