//! The belief of each elector that it leads the others, as far as their lock in the store allows it.
//!
//! The code of an elector is not asked. An elector leads no longer than H after it sent its newest write of the lock
//! that was applied, by its own clock, and not once it has begun to let go. So what is found here is never less than
//! what the elector believes while it follows the rules.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use elector_protocol::{Identity, Instant, Term};
use elector_runtime::Clock as _;

use crate::clock::SimClock;
use crate::history::{Author, LeaseHistory, LeaseRevision, RequestAttempt, Role};
use crate::names::ELECTOR_LOCK;

/// Follows the lock of the electors, and holds what they send against it.
#[derive(Debug, Default)]
pub(crate) struct ElectorMonitor {
    /// H of the lock; `None` where the electors elect none of themselves, so that all of them act.
    limit: Option<Duration>,
    /// The electors that run, by the names of their processes.
    electors: BTreeMap<String, ElectorIncarnation>,
    /// The numbers of attempts and of revisions of the lock that have been followed.
    followed: (usize, usize),
    /// The newest revision of the lock that a stranger wrote, by its position.
    foreign: Option<usize>,
    /// The holder and the term of the lock as last written by an elector.
    term: Option<(Identity, Term)>,
    /// Pairs that were found to overlap, so that each is reported once.
    reported: BTreeSet<(String, String)>,
    /// The number of terms of the lock.
    pub(crate) terms: u64,
}

#[derive(Debug)]
struct ElectorIncarnation {
    incarnation: u32,
    clock: SimClock,
    proof: Option<BeliefProof>,
    /// The attempt by which it last began to let go.
    released: Option<usize>,
}

/// The newest write of the lock that lets an elector believe.
#[derive(Clone, Copy, Debug)]
struct BeliefProof {
    /// When it was sent, by the elector's own holder clock.
    sent: Instant,
    /// The position of the attempt, and that of the revision of the lock.
    attempt: usize,
    revision: usize,
}

// === impl ElectorMonitor ===

impl ElectorMonitor {
    /// Of electors whose lock has this H.
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// An incarnation of an elector begins.
    pub(crate) fn start(&mut self, name: &str, incarnation: u32, clock: SimClock) {
        let elector = ElectorIncarnation {
            incarnation,
            clock,
            proof: None,
            released: None,
        };
        self.electors.insert(name.to_owned(), elector);
    }

    /// The incarnation of an elector is over.
    pub(crate) fn end(&mut self, name: &str) {
        self.electors.remove(name);
    }

    /// The elector that leads the others now.
    pub(crate) fn leader(&mut self, history: &LeaseHistory) -> Option<&str> {
        let limit = self.limit?;
        self.follow(history);
        let mut electors = self.electors.iter();
        let (name, _) = electors.find(|(_, it)| it.believes(limit))?;
        Some(name)
    }

    /// S1 at this instant: no two electors lead at the same time. A write of a stranger that came between what lets the
    /// one and what lets the other believe exempts them, also one that only empties or deletes the lock: electors wait
    /// for no proof that such a lock is free, since two of them are harmless (R17).
    pub(crate) fn check(&mut self, history: &LeaseHistory) -> Vec<(&'static str, String)> {
        let Some(limit) = self.limit else {
            return Vec::new();
        };
        self.follow(history);
        let leaders = self.electors.iter().filter(|(_, it)| it.believes(limit));
        let leaders = leaders.filter_map(|(name, it)| Some((name, it.proof?.revision)));
        let leaders: Vec<_> = leaders.collect();
        let mut found = Vec::new();
        for (index, (one, since)) in leaders.iter().enumerate() {
            for (other, since_other) in leaders.iter().skip(index + 1) {
                let older = *since.min(since_other);
                let exempt = self.foreign.is_some_and(|foreign| foreign > older);
                let pair = ((*one).clone(), (*other).clone());
                if !exempt && self.reported.insert(pair) {
                    let text = format!("{one} and {other} both lead the electors");
                    found.push(("S1", text));
                }
            }
        }
        found
    }

    /// S2 and R12: what an elector sends needs its belief, but for the creation and the acquisition of the lock. `clock`
    /// is what its holder clock said when it was sent, `lock` the attempt, where it is a write of the lock.
    pub(crate) fn check_write(
        &mut self,
        history: &LeaseHistory,
        author: &Author,
        clock: Instant,
        lock: Option<&RequestAttempt>,
    ) -> Option<(&'static str, String)> {
        let limit = self.limit?;
        self.follow(history);
        let elector = self.running(author)?;
        let in_time = elector
            .proof
            .is_some_and(|proof| clock < proof.sent.after(limit));
        let (allowed, what) = match lock {
            None => (elector.believes(limit) && in_time, "acts"),
            Some(attempt) => {
                let own = continues_own_term(history, attempt);
                (!own || in_time, "renews or releases the lock")
            }
        };
        let name = &author.name;
        (!allowed).then(|| {
            let text = format!("{name} {what} and does not lead the electors");
            ("S2", text)
        })
    }

    fn running(&self, author: &Author) -> Option<&ElectorIncarnation> {
        let elector = self.electors.get(&author.name)?;
        (elector.incarnation == author.incarnation).then_some(elector)
    }

    fn running_mut(&mut self, author: &Author) -> Option<&mut ElectorIncarnation> {
        let elector = self.electors.get_mut(&author.name)?;
        (elector.incarnation == author.incarnation).then_some(elector)
    }

    /// Takes in what has been written since the last time.
    fn follow(&mut self, history: &LeaseHistory) {
        let (attempts, revisions) = self.followed;
        for (index, attempt) in history.attempts.iter().enumerate().skip(attempts) {
            let lets_go =
                attempt.lease == ELECTOR_LOCK && attempt.base.is_some() && !names_author(attempt);
            if lets_go && let Some(elector) = self.running_mut(&attempt.author) {
                elector.released = Some(index);
            }
        }
        let lock = history.leases.get(ELECTOR_LOCK);
        let lock = lock.map(Vec::as_slice).unwrap_or_default();
        for (position, revision) in lock.iter().enumerate().skip(revisions) {
            self.follow_lock(history, position, revision);
        }
        self.followed = (history.attempts.len(), lock.len());
    }

    fn follow_lock(&mut self, history: &LeaseHistory, position: usize, revision: &LeaseRevision) {
        let written = revision.attempt.and_then(|index| {
            let attempt = history.attempts.get(index)?;
            matches!(attempt.author.role, Role::Elector { .. }).then_some((index, attempt))
        });
        let Some((index, attempt)) = written else {
            self.foreign = Some(position);
            return;
        };
        let record = attempt.record.as_ref();
        let term = record.and_then(|it| Some((it.holder.clone()?, it.term)));
        if term.is_some() && term != self.term {
            self.terms += 1;
            self.term = term;
        }
        if names_author(attempt)
            && let Some(elector) = self.running_mut(&attempt.author)
        {
            elector.proof = Some(BeliefProof {
                sent: attempt.clock,
                attempt: index,
                revision: position,
            });
        }
    }
}

// === impl ElectorIncarnation ===

impl ElectorIncarnation {
    /// True if it may still lead by its own clock.
    fn believes(&self, limit: Duration) -> bool {
        self.proof.is_some_and(|proof| {
            let released = self.released.is_some_and(|at| at > proof.attempt);
            !released && self.clock.holder() < proof.sent.after(limit)
        })
    }
}

/// True if a write names its author as the holder.
fn names_author(attempt: &RequestAttempt) -> bool {
    let holder = attempt.record.as_ref().and_then(|it| it.holder.as_ref());
    holder.is_some() && holder == attempt.author.identity.as_ref()
}

/// True if a write renews or ends the very term of its author, and does not begin one.
fn continues_own_term(history: &LeaseHistory, attempt: &RequestAttempt) -> bool {
    let lock = history.leases.get(ELECTOR_LOCK).into_iter().flatten();
    let replaced = lock
        .rev()
        .find(|it| Some(it.version) == attempt.base)
        .and_then(|it| it.record.as_ref());
    let (Some(replaced), Some(record)) = (replaced, &attempt.record) else {
        return false;
    };
    replaced.holder.is_some()
        && replaced.holder == attempt.author.identity
        && (record.holder != replaced.holder || record.term == replaced.term)
}
