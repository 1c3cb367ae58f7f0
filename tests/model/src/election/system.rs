//! A system with candidates of ours, ready to be searched.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use elector_protocol::CandidateTiming;
use elector_protocol::elector::Settings;
use elector_protocol::holder::{HolderConfig, HolderMode};

use super::super::canonical::Canonical;
use super::super::clocks::Time;
use super::super::elector::{ElectorProcess, ElectorRequest};
use super::super::elector_steps::ElectorSteps;
use super::super::intern::{QuickMap, address};
use super::super::run::Run;
use super::super::start::identity;
use super::super::state::{Parts, SystemState};
use super::super::store::{LeaseStore, NAMES};
use super::candidate::CandidateProcess;

/// The state of a system with candidates of ours.
pub(in super::super) type ElectionState = SystemState<CandidateProcess>;

/// The system of a run.
pub(in super::super) struct ElectionSystem {
    pub(in super::super) run: Run,
    pub(in super::super) configs: Vec<Arc<HolderConfig>>,
    pub(in super::super) canonical: Canonical,
    pub(in super::super) parts: Parts<CandidateProcess>,
    steps: ElectorSteps,
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
        let settings = || Settings {
            timing: timing.clone(),
            ..Settings::default()
        };
        Self {
            configs: (0..run.candidates).map(config).collect(),
            steps: ElectorSteps::new([settings(), settings()]),
            canonical: Canonical::new(run, timing),
            parts: Parts::new(),
            due: RefCell::default(),
            run,
        }
    }

    /// The requests of an elector, by its step.
    pub(in super::super) fn requests(
        &self,
        index: usize,
        elector: &Rc<ElectorProcess>,
        store: &LeaseStore,
    ) -> Rc<Vec<ElectorRequest>> {
        self.steps.requests(index, elector, store, &self.run)
    }

    /// Whether a candidate's step would do something.
    pub(in super::super) fn is_due(&self, candidate: &Rc<CandidateProcess>) -> bool {
        let mut known = self.due.borrow_mut();
        *known
            .entry(address(candidate))
            .or_insert_with(|| candidate.is_due())
    }

    /// The state at the start, with the clocks of a mix.
    pub(in super::super) fn start(&self, mix: usize) -> ElectionState {
        let run = &self.run;
        let objects = (0..=run.name_of(run.candidates - 1)).map(|index| Some(run.candidate(index)));
        let store = run.store(objects.collect());
        let candidates = self.configs.iter().enumerate().map(|(index, config)| {
            Rc::new(CandidateProcess::new(
                index,
                run.name_of(index),
                Arc::clone(config),
            ))
        });
        let electors = (0..run.electors).map(|_| Rc::new(ElectorProcess::new(None)));
        let mut state = SystemState {
            mix,
            store: Rc::new(store),
            candidates: candidates.collect(),
            electors: electors.collect(),
        };
        self.canonical.apply(&mut state, None, Time::Stands);
        state
    }
}
