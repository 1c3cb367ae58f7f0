//! A system with holders as client-go makes them, ready to be searched.

use std::rc::Rc;

use elector_protocol::elector::{PreferenceField, Settings};
use elector_protocol::{CandidateRecord, LeaseWrite};

use super::super::canonical::Canonical;
use super::super::elector_steps::ElectorSteps;
use super::super::lease_system::LeaseSystem;
use super::super::mutant::Mutant;
use super::super::run::Run;
use super::super::state::{Parts, SystemState};
use super::super::store::{LeaseStore, Side};
use super::holder::PlainHolder;
use super::setup::Reservation;

/// The state of a system with holders as client-go makes them.
pub(in super::super) type ReservationState = SystemState<PlainHolder>;

/// The system of a run with holders as client-go makes them.
pub(in super::super) type ReservationSystem = LeaseSystem<Reservation>;

// === impl ReservationSystem ===

impl ReservationSystem {
    /// The system of a run.
    pub(in super::super) fn new(run: Run, setup: Reservation) -> Self {
        let mut timing = run.elector_timing();
        timing.max_lease_duration = setup.duration;
        let settings = setup.by.map(|reserves| Settings {
            timing: timing.clone(),
            preference_field: PreferenceField::Dropped,
            reserve: reserves,
        });
        Self {
            canonical: Canonical::new(run, timing),
            parts: Parts::new(),
            steps: ElectorSteps::new(settings),
            run,
            kind: setup,
        }
    }

    /// The state at the start, with the clocks of a mix.
    pub(in super::super) fn start(&self, mix: usize) -> ReservationState {
        let run = &self.run;
        let object = |index| CandidateRecord {
            marked: false,
            ..run.candidate(index)
        };
        let objects = (0..run.candidates).map(|index| Some(object(index)));
        let store = run.store(objects.collect());
        let candidates = (0..run.candidates).map(|_| Rc::new(PlainHolder::default()));
        self.state_of(mix, store, candidates.collect())
    }

    /// Whether an elector's write would be applied: on the very revision that was judged (R2), unless that is the rule
    /// which is broken.
    pub(in super::super) fn lands(&self, write: &LeaseWrite, store: &LeaseStore) -> bool {
        let careless = self.run.mutant == Some(Mutant::ReserveWithoutBase)
            && write.record.reserved_from().is_some();
        store.accepts(write, Side::Elector) || (careless && store.lease.is_some())
    }
}
