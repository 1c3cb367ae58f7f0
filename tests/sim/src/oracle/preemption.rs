//! R23, judged by what the store shows: how many holders an elector has make room, and how long it prefers no candidate
//! after a hand-over that was in vain.
//!
//! An elector remembers what it saw. So a pre-emption counts against an elector only where it saw the whole of
//! it for certain: it had long begun when the preference was written, and no fault hit its reads until the end.

use std::collections::BTreeSet;
use std::time::Duration;

use elector_protocol::{Identity, LeaseRecord, Occupancy, Uid};

use crate::clock::TRUE_RATE;
use crate::history::{Author, LeaseHistory, LeaseRevision, Role};
use crate::names::lease_name;
use crate::plan::{FaultKind, PlannedFault, PlannedWord, Requests, RunPlan};

/// The pre-emptions of a lease so far, and the term under way.
struct PreemptionCheck<'a> {
    history: &'a LeaseHistory,
    plan: &'a RunPlan,
    /// The lease that it is about.
    lease: &'a str,
    /// Holders that made room.
    preemptions: Vec<SeenSpan>,
    /// Pre-emptions whose electee did not accept.
    failures: Vec<SeenSpan>,
    /// Candidates that have accepted a term of this lease.
    accepted: BTreeSet<Identity>,
    /// The newest record that could be read, unless a stranger wrote it.
    before: Option<(Option<Uid>, LeaseRecord)>,
    /// True if its term was accepted.
    is_accepted: bool,
    /// When the holder of this term was first asked to make room.
    asked: Option<Duration>,
    /// When the holder before was asked, where it made room and no electee has accepted since.
    preempted: Option<Duration>,
}

/// An event that an elector knows only if it watched from the one moment to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeenSpan {
    from: Duration,
    /// When it was complete, from where it counts.
    at: Duration,
}

/// The budget of pre-emptions (`--preemptions`).
const BUDGET: usize = 3;

/// The window of that budget, and the time for which new candidates are not preferred (`--preemption-window`).
const WINDOW: Duration = Duration::from_secs(10 * 60);

/// The time for which no candidate is preferred after the first hand-over in vain, and at most.
const HELD_BACK: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(15 * 60));

/// Failures are in a row where there is less between them. The rule says an hour; the rest is for clocks.
const IN_A_ROW: Duration = Duration::from_secs(50 * 60);

/// The longest time of an elector to list and to see what is new, and to watch again after a fault.
const CATCH_UP: Duration = Duration::from_secs(40);

/// The violations of R23 on one lease.
pub(super) fn violations(
    history: &LeaseHistory,
    plan: &RunPlan,
    (lease, revisions): (&str, &[LeaseRevision]),
) -> Vec<(Duration, String)> {
    let mut check = PreemptionCheck {
        history,
        plan,
        lease,
        preemptions: Vec::new(),
        failures: Vec::new(),
        accepted: BTreeSet::new(),
        before: None,
        is_accepted: false,
        asked: None,
        preempted: None,
    };
    let mut found = Vec::new();
    for revision in revisions {
        let wrong = check.follow(revision);
        found.extend(wrong.map(|text| (revision.at, text)));
    }
    found
}

// === impl PreemptionCheck ===

impl PreemptionCheck<'_> {
    /// Takes in the next revision, and says what is wrong with it.
    fn follow(&mut self, revision: &LeaseRevision) -> Option<String> {
        let attempt = revision.attempt;
        let attempt = attempt.and_then(|index| self.history.attempts.get(index));
        let author = attempt.map(|it| &it.author).filter(|it| it.is_ours());
        let lease = revision.lease.as_ref();
        let uid = lease.and_then(|lease| lease.metadata.uid.as_deref().map(Uid::new));
        let (Some(after), Some(author)) = (&revision.record, author) else {
            // A stranger's write ends what can be told of this term, unless it leaves the record, as an operator's word.
            let same = |(known, record): &(Option<Uid>, LeaseRecord)| {
                *known == uid && Some(record) == revision.record.as_ref()
            };
            if !self.before.as_ref().is_some_and(same) {
                self.before = None;
                self.end_term(false);
                self.preempted = None;
            }
            return None;
        };
        let sent = attempt.map_or(revision.at, |it| it.at);
        let before = self.before.replace((uid.clone(), after.clone()));
        let before = before.filter(|(known, _)| *known == uid);
        let own = after.holder.is_some() && after.holder == author.identity;
        let Some((_, before)) = before else {
            self.end_term(own);
            self.preempted = None;
            return None;
        };
        if (&before.holder, before.term) != (&after.holder, after.term) {
            self.change_term(revision.at, &before, after);
            self.end_term(own);
        } else if own {
            self.is_accepted = true;
        }
        if self.is_accepted
            && let Some(holder) = &after.holder
        {
            self.preempted = None;
            self.accepted.insert(holder.clone());
        }
        let preferred = after.preferred_holder.as_ref();
        let preferred = preferred.filter(|it| before.preferred_holder.as_ref() != Some(*it))?;
        let wrong = self.preference(sent, author, preferred);
        self.asked.get_or_insert(sent);
        wrong
    }

    /// Another term began, or this one was released.
    fn change_term(&mut self, at: Duration, before: &LeaseRecord, after: &LeaseRecord) {
        let made_room = after.occupancy() != Occupancy::Unproven;
        if let Some(from) = self.asked.filter(|_| self.is_accepted && made_room) {
            self.preemptions.push(SeenSpan { from, at });
            self.preempted = Some(from);
        } else if before.holder.is_some()
            && !self.is_accepted
            && let Some(from) = self.preempted.take()
        {
            self.failures.push(SeenSpan { from, at });
        }
    }

    fn end_term(&mut self, accepted: bool) {
        self.is_accepted = accepted;
        self.asked = None;
    }

    /// An elector asks a holder to make room.
    fn preference(&self, sent: Duration, author: &Author, preferred: &Identity) -> Option<String> {
        let Role::Elector { rate } = author.role else {
            return None;
        };
        let name = &author.name;
        let since = |at: Duration| local(sent.saturating_sub(at), rate);
        let known = |all: &[SeenSpan]| -> Vec<Duration> {
            let seen = all.iter().filter(|it| self.sees(author, it.from, it.at));
            seen.map(|it| it.at).collect()
        };
        let preemptions = known(&self.preemptions);
        let lately = preemptions.iter().filter(|at| since(**at) < WINDOW);
        let count = lately.count();
        let budget = match self.is_worded(preferred, sent) {
            true => 2 * BUDGET,
            false => BUDGET,
        };
        if count >= budget {
            return Some(format!(
                "{name} prefers {preferred} after {count} holders made room within {WINDOW:?}"
            ));
        }
        let failures = known(&self.failures);
        let failed = *failures.last()?;
        let gaps = failures.windows(2).rev();
        let in_a_row = gaps.take_while(|pair| match pair {
            [one, next] => next.saturating_sub(*one) < IN_A_ROW,
            _ => false,
        });
        let doublings = u32::try_from(in_a_row.count()).unwrap_or(u32::MAX);
        let (first, most) = HELD_BACK;
        let held_back = first.saturating_mul(2_u32.saturating_pow(doublings));
        let held_back = held_back.min(most);
        let waited = since(failed);
        if waited < held_back {
            return Some(format!(
                "{name} prefers {preferred} {waited:?} of its clock after a hand-over in vain, and not {held_back:?}"
            ));
        }
        let new = waited < WINDOW && self.is_new(author, preferred, failed, sent);
        new.then(|| {
            format!(
                "{name} prefers {preferred}, which is new since a hand-over in vain {waited:?} ago"
            )
        })
    }

    /// An operator may have preferred this candidate by then, or has not long ceased to.
    fn is_worded(&self, name: &Identity, sent: Duration) -> bool {
        self.plan.faults.iter().any(|fault| match &fault.kind {
            FaultKind::Say(lease, PlannedWord::Prefer(who), lasts) => {
                let said = fault.at..=fault.at + *lasts + CATCH_UP;
                let named = name.as_str().strip_prefix(&format!("c{}", who.0));
                lease_name(*lease) == self.lease
                    && said.contains(&sent)
                    && named.is_some_and(|rest| rest.starts_with(['-', 't']))
            }
            _ => false,
        })
    }

    /// True if an elector certainly saw all that happened between two moments.
    fn sees(&self, author: &Author, from: Duration, to: Duration) -> bool {
        let blinds = |fault: &&PlannedFault| {
            let lasts = match &fault.kind {
                // The requests that it hits may come at any later time.
                FaultKind::Refuse(_, requests, ..)
                | FaultKind::Lose(_, requests, ..)
                | FaultKind::Delay(_, requests, ..)
                    if matches!(requests, Requests::All | Requests::Reads) =>
                {
                    self.plan.faults_end
                }
                FaultKind::Compact => Duration::ZERO,
                FaultKind::Pause(_, lasts)
                | FaultKind::Partition(_, lasts)
                | FaultKind::Slow(_, _, lasts)
                | FaultKind::Freeze(_, lasts)
                | FaultKind::OldCache(_, _, lasts) => *lasts,
                FaultKind::EndWatches(..) => Duration::ZERO,
                _ => return false,
            };
            let hit = fault.kind.who();
            let hit = hit.is_none_or(|who| format!("e{}", who.0) == author.name);
            hit && fault.at <= to && from <= fault.at + lasts + CATCH_UP
        };
        author.born + CATCH_UP <= from && !self.plan.faults.iter().any(|it| blinds(&it))
    }

    /// True if a candidate appeared or changed after that failure, as the elector has certainly seen, and has accepted
    /// no term before.
    fn is_new(&self, author: &Author, name: &Identity, failed: Duration, sent: Duration) -> bool {
        let mut last = None;
        let mut new = false;
        for revision in &self.history.candidates {
            if revision.object.metadata.name.as_deref() != Some(name.as_str()) {
                continue;
            }
            let spec = &revision.object.spec;
            let state = (!revision.deleted).then(|| {
                let uid = revision.object.metadata.uid.clone();
                let versions = (spec.emulation_version.clone(), spec.binary_version.clone());
                (uid, versions)
            });
            let at = revision.at;
            // A change of just now may not have been seen yet.
            let counts = failed < at && at + CATCH_UP < sent;
            new |=
                counts && state.is_some() && state != last && self.sees(author, at, at + CATCH_UP);
            last = state;
        }
        new && !self.accepted.contains(name)
    }
}

/// The time that a clock of this rate counts in a span of real time.
fn local(time: Duration, rate: u64) -> Duration {
    let nanos = time.as_nanos() * u128::from(rate) / u128::from(TRUE_RATE);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
