//! The belief of each elector that it leads the others, as far as their lock in the store allows it.
//!
//! The code of an elector is not asked. An elector leads no longer than H after it sent its newest write of the lock
//! that was applied, by its own clock, and not once it has begun to let go. So what is found here is never less than
//! what the elector believes while it follows the rules.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use elector_protocol::Instant;
use elector_runtime::Clock as _;

use crate::clock::SimClock;
use crate::history::{
    Author, LOCK_CHANGED, LeaseHistory, LeaseRevision, RequestAttempt, Role, STORE_RESTORED,
};
use crate::names::ELECTOR_LOCK;

/// Holds what electors send against the lock of the electors.
#[derive(Debug, Default)]
pub(crate) struct ElectorMonitor {
    /// H of the lock; `None` where the electors elect none of themselves, so that all of them act.
    limit: Option<Duration>,
    /// The electors that run, by the names of their processes: their incarnations and clocks.
    running: BTreeMap<String, (u32, SimClock)>,
    /// The number of revisions of the lock at the last check.
    checked: usize,
    /// Pairs that were found to overlap, so that each is reported once.
    reported: BTreeSet<(String, String)>,
    /// The kind of the write that exempts each of the others.
    pub(crate) exempt: Vec<&'static str>,
}

/// The newest write of the lock that lets an elector believe.
#[derive(Clone, Copy, Debug)]
struct BeliefProof {
    /// When it was sent, by the elector's own holder clock.
    sent: Instant,
    /// The version of the lock that it became.
    version: u64,
    /// True if the elector has begun to let go since.
    released: bool,
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
        self.running.insert(name.to_owned(), (incarnation, clock));
    }

    /// The incarnation of an elector is over.
    pub(crate) fn end(&mut self, name: &str) {
        self.running.remove(name);
    }

    /// The elector that leads the others now.
    pub(crate) fn leader(&self, history: &LeaseHistory) -> Option<&str> {
        self.leaders(history).map(|(name, _)| name).next()
    }

    /// S1 at this instant: no two electors lead at the same time. A restore of the store, or a write of a stranger, that
    /// came between what lets the one and what lets the other believe exempts them, also one that only empties or deletes
    /// the lock: electors wait for no proof that such a lock is free, since two of them are harmless (R17). It does so until
    /// the belief of the first ends, which it cannot renew.
    pub(crate) fn check(&mut self, history: &LeaseHistory) -> Vec<(&'static str, String)> {
        let lock = lock_revisions(history);
        if std::mem::replace(&mut self.checked, lock.len()) == lock.len() {
            return Vec::new(); // belief begins with a revision
        }
        let by_an_elector = |revision: &&LeaseRevision| {
            let attempt = revision.attempt.and_then(|it| history.attempts.get(it));
            attempt.is_some_and(|it| matches!(it.author.role, Role::Elector { .. }))
        };
        let exemption = |first: u64, second: u64| {
            let between = first + 1..=second;
            let mut foreign = lock.iter().filter(|it| !by_an_elector(it));
            let mut restores = history.lost.iter();
            if restores.any(|it| (first..second).contains(&it.newest)) {
                return Some(STORE_RESTORED);
            }
            let foreign = foreign.any(|it| between.contains(&it.version));
            foreign.then_some(LOCK_CHANGED)
        };
        let leaders: Vec<_> = self.leaders(history).collect();
        let mut pairs = Vec::new();
        for (index, (one, version)) in leaders.iter().enumerate() {
            for (other, of_other) in leaders.iter().skip(index + 1) {
                let exempt = exemption(*version.min(of_other), *version.max(of_other));
                pairs.push((((*one).to_owned(), (*other).to_owned()), exempt));
            }
        }
        pairs.retain(|(pair, _)| self.reported.insert(pair.clone()));
        let mut found = Vec::new();
        for ((one, other), exempt) in pairs {
            match exempt {
                Some(why) => self.exempt.push(why),
                None => found.push(("S1", format!("{one} and {other} both lead the electors"))),
            }
        }
        found
    }

    /// S2 and R12: what an elector sends needs its belief, but for the creation and the acquisition of the lock. `clock`
    /// is what its holder clock said when it was sent, `lock` the attempt, where it is a write of the lock.
    pub(crate) fn check_write(
        &self,
        history: &LeaseHistory,
        author: &Author,
        clock: Instant,
        lock: Option<&RequestAttempt>,
    ) -> Option<(&'static str, String)> {
        let limit = self.limit?;
        let (incarnation, _) = self.running.get(&author.name)?;
        if *incarnation != author.incarnation {
            return None;
        }
        let proof = proof(history, author);
        let proof = proof.filter(|proof| clock < proof.sent.after(limit));
        let (allowed, what) = match lock {
            None => (proof.is_some_and(|it| !it.released), "acts"),
            Some(attempt) => {
                let own = continues_own_term(history, attempt);
                (!own || proof.is_some(), "renews or releases the lock")
            }
        };
        let name = &author.name;
        (!allowed).then(|| {
            let text = format!("{name} {what} and does not lead the electors");
            ("S2", text)
        })
    }

    /// The electors that may lead by their own clocks, and the versions of the lock that let them.
    fn leaders(&self, history: &LeaseHistory) -> impl Iterator<Item = (&str, u64)> {
        let running = self.running.iter();
        running.filter_map(|(name, (incarnation, clock))| {
            let own = |it: &&RequestAttempt| {
                it.author.name == *name && it.author.incarnation == *incarnation
            };
            let newest = history.attempts.iter().rev().find(own)?;
            let proof = proof(history, &newest.author).filter(|it| !it.released)?;
            let believes = clock.holder() < proof.sent.after(self.limit?);
            believes.then_some((name.as_str(), proof.version))
        })
    }
}

/// The number of terms of the lock.
pub(crate) fn lock_terms(history: &LeaseHistory) -> u64 {
    let records = lock_revisions(history)
        .iter()
        .filter_map(|it| it.record.as_ref());
    let mut terms: Vec<_> = records
        .filter_map(|record| Some((record.holder.as_ref()?, record.term)))
        .collect();
    terms.dedup();
    terms.len() as u64
}

fn lock_revisions(history: &LeaseHistory) -> &[LeaseRevision] {
    let lock = history.stored.leases.get(ELECTOR_LOCK);
    lock.map(Vec::as_slice).unwrap_or_default()
}

/// The newest write of the lock by this author that was applied and names it.
fn proof(history: &LeaseHistory, author: &Author) -> Option<BeliefProof> {
    let attempts = history.attempts.iter().rev();
    let own = attempts.filter(|it| it.lease == ELECTOR_LOCK && it.author == *author);
    let mut released = false;
    // The creation of a lock is no claim to it.
    for attempt in own.filter(|it| it.base.is_some()) {
        if !attempt.names_author() {
            released = true;
        } else if let Some(version) = attempt.applied {
            return Some(BeliefProof {
                sent: attempt.clock,
                version,
                released,
            });
        }
    }
    None
}

/// True if a write renews or ends the very term of its author, and does not begin one.
fn continues_own_term(history: &LeaseHistory, attempt: &RequestAttempt) -> bool {
    let replaced = lock_revisions(history)
        .iter()
        .rfind(|it| Some(it.version) == attempt.base)
        .and_then(|it| it.record.as_ref());
    let (Some(replaced), Some(record)) = (replaced, &attempt.record) else {
        return false;
    };
    replaced.holder.is_some()
        && replaced.holder == attempt.author.identity
        && (record.holder != replaced.holder || record.term == replaced.term)
}
