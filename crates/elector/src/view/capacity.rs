//! Which candidates of a lease are considered: no more than a step can take in its stride, and always the same ones,
//! whatever comes after them.

use std::cmp::Reverse;

use elector_protocol::elector::NewsSource;
use elector_protocol::{CandidateRecord, Identity, Instant, LeaseSnapshot, ResourceVersion};

use crate::view::lease_entry::LeaseEntry;
use crate::view::limits::LEASE_CANDIDATES;
use crate::view::overflow::Seniority;

// === impl LeaseEntry ===

impl LeaseEntry {
    /// A revision of the Lease was seen. The candidates that its record names are considered when it is judged.
    pub(super) fn handle_lease(
        &mut self,
        now: Instant,
        snapshot: LeaseSnapshot,
        source: NewsSource,
    ) {
        if self.waiting.is_empty() {
            self.election.handle_lease(now, snapshot, source);
            return;
        }
        for name in named(&snapshot) {
            self.admit(now, &name);
        }
        self.election.handle_lease(now, snapshot, source);
        self.settle(now);
    }

    /// The Lease was seen deleted, or is missing in a complete list.
    pub(super) fn handle_lease_gone(
        &mut self,
        now: Instant,
        version: Option<ResourceVersion>,
        source: NewsSource,
    ) {
        self.election.handle_lease_gone(now, version, source);
        self.settle(now);
    }

    /// A revision of a candidate was seen. Says whether that may matter to the election.
    pub(super) fn handle_candidate(
        &mut self,
        now: Instant,
        candidate: CandidateRecord,
        source: NewsSource,
    ) -> bool {
        let name = candidate.name.clone();
        let considered = self.considers(&name);
        if !considered
            && self
                .election
                .candidates()
                .nth(LEASE_CANDIDATES - 1)
                .is_some()
        {
            self.waiting.insert(candidate);
            return self.settle(now);
        }
        self.election.handle_candidate(now, candidate, source);
        self.settle(now);
        true
    }

    /// A candidate does not name this lease any more. Says whether that may matter to the election.
    pub(super) fn handle_candidate_gone(&mut self, now: Instant, name: &Identity) -> bool {
        if self.waiting.take(name).is_some() {
            return false;
        }
        self.election.handle_candidate_gone(name, None);
        self.settle(now);
        true
    }

    /// The number considered, where none waited before; reported once, until a quarter of the places is free again.
    pub(super) fn new_overflow(&mut self) -> Option<usize> {
        if self.waiting.is_empty() && !self.overflow_reported {
            return None;
        }
        let considered = self.election.candidates().count();
        let reported = self.overflow_reported;
        self.overflow_reported =
            !self.waiting.is_empty() || (reported && considered > LEASE_CANDIDATES / 4 * 3);
        (!reported && self.overflow_reported).then_some(considered)
    }

    /// Where none of those that are considered answers (R15), gives their places to those that wait: a process that is
    /// killed again and again may leave more candidates behind than there are places. The youngest go first, so that the
    /// others stay until they are collected. Says whether a place changed hands.
    pub(super) fn replace_silent(&mut self, now: Instant, silent: &[Identity]) -> bool {
        let protected = self.protected();
        let candidates = self.election.candidates();
        let silent =
            candidates.filter(|it| silent.contains(&it.name) && !protected.contains(&it.name));
        let mut silent: Vec<_> = silent.cloned().collect();
        silent.sort_by_cached_key(|candidate| Reverse(Seniority::of(candidate)));
        let mut changed = false;
        for candidate in silent {
            let Some(successor) = self.waiting.successor().cloned() else {
                break;
            };
            self.election.handle_candidate_gone(&candidate.name, None);
            self.waiting.insert_silent(candidate);
            changed |= self.admit(now, &successor);
        }
        changed
    }

    /// Gives the places to those that come first, and says whether a place changed hands.
    fn settle(&mut self, now: Instant) -> bool {
        let mut changed = false;
        if self.waiting.is_empty() {
            self.make_room();
            return changed;
        }
        for name in self.protected() {
            changed |= self.admit(now, &name);
        }
        while let Some((first, name)) = self.waiting.oldest() {
            let free = self.election.candidates().count() < LEASE_CANDIDATES;
            let sooner = || self.last().is_some_and(|(last, _)| *first < last);
            if !free && !sooner() {
                break;
            }
            let name = name.clone();
            changed |= self.admit(now, &name);
            self.make_room();
        }
        self.make_room();
        changed
    }

    /// Considers a candidate that waits. Nothing was heard of it: that it waited is no sign of life.
    fn admit(&mut self, now: Instant, name: &Identity) -> bool {
        let Some(candidate) = self.waiting.take(name) else {
            return false;
        };
        self.election
            .handle_candidate(now, candidate, NewsSource::List);
        true
    }

    /// Lets those wait that come last, until no more are considered than there are places.
    fn make_room(&mut self) {
        while self.election.candidates().nth(LEASE_CANDIDATES).is_some()
            && let Some((_, last)) = self.last()
        {
            self.election.handle_candidate_gone(&last.name, None);
            self.waiting.insert(last);
        }
    }

    /// The candidate that gives its place away first, and its seniority.
    fn last(&self) -> Option<(Seniority, CandidateRecord)> {
        let protected = self.protected();
        let others = self.election.candidates();
        let others = others.filter(|candidate| !protected.contains(&candidate.name));
        let last = others.max_by_key(|candidate| Seniority::of(candidate))?;
        Some((Seniority::of(last), last.clone()))
    }

    fn considers(&self, name: &Identity) -> bool {
        self.election
            .candidates()
            .any(|candidate| candidate.name == *name)
    }

    /// The candidates that keep their places however many older ones there are.
    fn protected(&self) -> Vec<Identity> {
        let lease = self.election.lease();
        lease.map_or_else(Vec::new, named)
    }
}

/// The holder, the candidate that it is to make room for, and the one that an operator prefers.
fn named(lease: &LeaseSnapshot) -> Vec<Identity> {
    let record = &lease.record;
    let prefers = lease.overrides.prefer.as_deref();
    let names = [
        record.holder.as_ref(),
        record.preferred_holder.as_ref(),
        prefers.map(|preference| &preference.candidate),
    ];
    names.into_iter().flatten().cloned().collect()
}
