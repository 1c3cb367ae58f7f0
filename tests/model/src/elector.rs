//! The process of an elector: the production election, its watch and its writes.

use elector_protocol::elector::{Effect, Election, NewsSource, Reason, Settings};
use elector_protocol::{
    CandidateRecord, LeaseSnapshot, LeaseWrite, Occupancy, Renumber, Renumbering,
};

use super::elector_variation::{AlteredStep, ElectorVariation};
use super::mutant::Mutant;
use super::numbers::{FRESH, NOW, timestamp};
use super::run::Run;
use super::store::LeaseStore;
use super::witness::Witnesses;

/// One elector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ElectorProcess {
    pub(super) election: Election,
    /// Which of the two lives that take turns this is: their rules may differ.
    pub(super) life: usize,
    /// True if its watch of the Lease is whole. If not, it lists.
    pub(super) whole: bool,
    /// Changes of the Lease that its watch has yet to deliver, the oldest first.
    pub(super) backlog: Vec<Option<LeaseSnapshot>>,
    /// A write that it has sent.
    pub(super) message: Option<LeaseWrite>,
    /// Kept for mutants alone.
    pub(super) variation: ElectorVariation,
}

/// The highest counts in the memory of an elector.
#[derive(Default)]
struct ElectorCounts {
    failures: u8,
    withdrawals: u8,
}

// === impl ElectorProcess ===

impl ElectorProcess {
    /// A process that has just started. What an earlier life sent may land yet.
    pub(super) fn new(life: usize, message: Option<LeaseWrite>) -> Self {
        Self {
            election: Election::unknown(),
            life,
            whole: false,
            backlog: Vec::new(),
            message,
            variation: ElectorVariation::default(),
        }
    }

    /// True if it has listed the candidates.
    pub(super) fn knows_candidates(&self) -> bool {
        self.election.candidates().next().is_some()
    }

    /// True if there is anything to see.
    pub(super) fn can_see(&self) -> bool {
        !self.whole || !self.backlog.is_empty()
    }

    /// True if it is about to list an unproven record that looks as the one that it knows, in a newer revision.
    pub(super) fn finds_again(&self, store: &LeaseStore) -> bool {
        let (false, Some(known), Some(found)) = (self.whole, self.election.lease(), &store.lease)
        else {
            return false;
        };
        known.uid == found.uid
            && known.version < found.version
            && known.record.same_record(&found.record)
            && found.record.occupancy() == Occupancy::Unproven
    }

    /// Its watch has this to deliver; one that lags too far behind ends.
    pub(super) fn deliver(&mut self, change: Option<LeaseSnapshot>, run: &Run) {
        if self.whole {
            self.backlog.push(change);
            if self.backlog.len() > run.backlog {
                self.break_watch();
            }
        }
    }

    /// Dies and starts again. What it has sent may land yet.
    pub(super) fn restart(&mut self, run: &Run) {
        let life = run.next_life.map_or(self.life, |_| 1 - self.life);
        *self = Self::new(life, self.message.take());
    }

    /// True if its order of the candidates is the other way round.
    pub(super) fn reverses(&self, run: &Run) -> bool {
        self.life == 1 && run.next_life.is_some_and(|rules| rules.reversed)
    }

    /// A candidate's object as it reads it: one that reverses the order takes the best for the worst.
    fn reading_of(&self, index: usize, object: &CandidateRecord, run: &Run) -> CandidateRecord {
        let mut read = object.clone();
        if self.reverses(run) {
            read.spec = run.candidate(run.candidates - 1 - index).spec;
        }
        read
    }

    /// Its watch ends; it will list.
    pub(super) fn break_watch(&mut self) {
        self.whole = false;
        self.backlog.clear();
    }

    /// Takes the next event from its watch, or lists.
    pub(super) fn see(&mut self, store: &LeaseStore, run: &Run) {
        if self.whole {
            if !self.backlog.is_empty() {
                let change = self.backlog.remove(0);
                self.take(change, store, NewsSource::Watch, run);
            }
            return;
        }
        self.whole = true;
        self.backlog.clear();
        self.take(store.lease.clone(), store, NewsSource::List, run);
        if self.knows_candidates() {
            return;
        }
        // Where no candidate is pinged, every candidate counts as just created.
        let known = !run.pings || run.mutant == Some(Mutant::NoPings);
        let news = if known {
            NewsSource::Watch
        } else {
            NewsSource::List
        };
        for (index, object) in store.objects.iter().enumerate() {
            if let Some(object) = object {
                let read = self.reading_of(index, object, run);
                self.election.handle_candidate(NOW, read, news);
            }
        }
    }

    /// Sees the reply to its own write.
    pub(super) fn take_reply(&mut self, snapshot: LeaseSnapshot, store: &LeaseStore, run: &Run) {
        self.take(Some(snapshot), store, NewsSource::OwnWrite, run);
    }

    /// Sees a change of a candidate's object.
    pub(super) fn see_object(&mut self, index: usize, object: Option<&CandidateRecord>, run: &Run) {
        match object {
            Some(object) => {
                let before = self
                    .election
                    .candidates()
                    .find(|known| known.name == object.name);
                if run.mutant.is_some_and(Mutant::is_unanimous)
                    && before.is_some_and(|before| before.renew != object.renew)
                {
                    self.variation.acked |= 1 << index;
                }
                let read = self.reading_of(index, object, run);
                self.election.handle_candidate(NOW, read, NewsSource::Watch);
            }
            None => {
                let gone = self
                    .election
                    .candidates()
                    .find(|known| known.name.as_str() == format!("c{index}"))
                    .map(|known| known.name.clone());
                if let Some(name) = gone {
                    self.election.handle_candidate_gone(&name, None);
                }
            }
        }
    }

    /// The witnesses of what it has come to know.
    pub(super) fn witnesses(&self, settings: &[Settings; 2]) -> Witnesses {
        let mut counts = ElectorCounts::default();
        self.election.clone().renumber(&mut counts);
        let settings = &settings[self.life];
        let reason = self.election.step(NOW, timestamp(FRESH), settings).reason;
        Witnesses::FREEZES.when(matches!(reason, Reason::Frozen { .. }))
            | Witnesses::FAILS_TWICE.when(counts.failures > 1)
            | Witnesses::WITHDRAWN_TWICE.when(counts.withdrawals > 1)
    }

    /// The effects of the production step now.
    pub(super) fn effects(
        &self,
        store: &LeaseStore,
        settings: &[Settings; 2],
        run: &Run,
    ) -> Vec<Effect> {
        let settings = &settings[self.life];
        let step = |election: &Election| election.step(NOW, timestamp(FRESH), settings).effects;
        let mut effects = step(&self.election);
        if let Some(mutant) = run.mutant {
            let altered = AlteredStep {
                election: &self.election,
                variation: &self.variation,
                whole: self.whole,
                run,
                store,
                step: &step,
            };
            mutant.alter_decision(&mut effects, &altered);
        }
        // No candidate is silent for long enough here.
        effects.retain(|effect| !matches!(effect, Effect::Collect { .. }));
        effects
    }

    fn take(
        &mut self,
        change: Option<LeaseSnapshot>,
        store: &LeaseStore,
        mut news: NewsSource,
        run: &Run,
    ) {
        self.variation.acked = 0;
        let Some(mut snapshot) = change else {
            // A list that lacks the Lease says nothing of when it went.
            let version = (news == NewsSource::Watch).then_some(store.revision);
            if run.mutant == Some(Mutant::ForgetHolders) {
                self.variation.absent = Some(NOW);
            }
            self.election.handle_lease_gone(NOW, version, news);
            return;
        };
        let at = match run.mutant {
            Some(mutant) => mutant.alter_news(
                &self.election,
                &mut self.variation,
                &mut snapshot,
                &mut news,
                store,
                run,
            ),
            None => NOW,
        };
        if snapshot.record.occupancy() == Occupancy::Unproven
            && news == NewsSource::Watch
            && let Some(absent) = self.variation.absent
        {
            // As if the Lease had just appeared.
            self.election
                .handle_lease_gone(absent, None, NewsSource::List);
        }
        self.election.handle_lease(at, snapshot, news);
    }
}

impl Renumber for ElectorProcess {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.election.renumber(by);
        self.backlog.renumber(by);
        self.message.renumber(by);
        self.variation.renumber(by);
    }
}

impl Renumbering for ElectorCounts {
    fn failures(&mut self, failures: &mut u8) {
        self.failures = self.failures.max(*failures);
    }

    fn withdrawals(&mut self, withdrawals: &mut u8) {
        self.withdrawals = self.withdrawals.max(*withdrawals);
    }
}
