//! A system with candidates of ours, ready to be searched.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use elector_protocol::CandidateTiming;
use elector_protocol::elector::Settings;
use elector_protocol::holder::{HolderConfig, HolderMode};

use super::super::canonical::Canonical;
use super::super::elector_steps::ElectorSteps;
use super::super::intern::{QuickMap, address};
use super::super::lease_system::LeaseSystem;
use super::super::run::Run;
use super::super::start::identity;
use super::super::state::{Parts, SystemState};
use super::super::store::NAMES;
use super::candidate::CandidateProcess;

/// The state of a system with candidates of ours.
pub(in super::super) type ElectionState = SystemState<CandidateProcess>;

/// The system of a run with candidates of ours.
pub(in super::super) type ElectionSystem = LeaseSystem<ElectionKind>;

/// The part peculiar to a system with candidates of ours.
pub(in super::super) struct ElectionKind {
    pub(super) configs: Vec<Arc<HolderConfig>>,
    /// By address of the interned process, which it keeps for ever.
    due: RefCell<QuickMap<usize, bool>>,
}

// === impl ElectionSystem ===

impl ElectionSystem {
    /// The system of a run.
    pub(in super::super) fn new(run: Run) -> Self {
        let timing = run.candidate_timing();
        let config = |index| {
            Arc::new(HolderConfig {
                identity: identity(NAMES[run.name_of(index)]),
                timing: CandidateTiming::clone(&timing),
                mode: HolderMode::Elected,
            })
        };
        let timing = run.elector_timing();
        let settings = Settings {
            timing: timing.clone(),
            ..Settings::default()
        };
        Self {
            steps: ElectorSteps::new(settings),
            canonical: Canonical::new(run, timing),
            parts: Parts::new(),
            kind: ElectionKind {
                configs: (0..run.candidates).map(config).collect(),
                due: RefCell::default(),
            },
            run,
        }
    }

    /// True if a candidate's step would do something.
    pub(super) fn is_due(&self, candidate: &Rc<CandidateProcess>) -> bool {
        let mut known = self.kind.due.borrow_mut();
        *known
            .entry(address(candidate))
            .or_insert_with(|| candidate.is_due())
    }

    /// The state at the start, with the clocks of a mix.
    pub(super) fn start(&self, mix: usize) -> ElectionState {
        let run = &self.run;
        let objects = (0..=run.name_of(run.candidates - 1)).map(|index| Some(run.candidate(index)));
        let store = run.store(objects.collect());
        let candidates = self.kind.configs.iter().enumerate().map(|(index, config)| {
            let name = run.name_of(index);
            Rc::new(CandidateProcess::new(index, name, Arc::clone(config)))
        });
        self.state_of(mix, store, candidates.collect())
    }
}
