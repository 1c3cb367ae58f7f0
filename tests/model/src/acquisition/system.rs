//! A system whose processes acquire leases themselves, ready to be searched.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use elector_protocol::elector::Settings;
use elector_protocol::holder::HolderConfig;
use elector_protocol::{CandidateRecord, Identity};

use super::super::canonical::Canonical;
use super::super::clocks::Time;
use super::super::elector::{ElectorProcess, ElectorRequest};
use super::super::elector_steps::ElectorSteps;
use super::super::intern::{QuickMap, address};
use super::super::run::Run;
use super::super::start::identity;
use super::super::state::{Parts, SystemState};
use super::super::store::{LeaseStore, NAMES};
use super::process::AcquiringProcess;
use super::setup::AcquisitionSetup;

/// The state of a system whose processes acquire leases themselves.
pub(in super::super) type AcquisitionState = SystemState<AcquiringProcess>;

/// The system of a run.
pub(in super::super) struct AcquisitionSystem {
    pub(super) run: Run,
    pub(super) setup: AcquisitionSetup,
    pub(super) canonical: Canonical,
    pub(super) parts: Parts<AcquiringProcess>,
    /// By the name.
    pub(super) configs: [Arc<HolderConfig>; NAMES.len()],
    steps: ElectorSteps,
    /// By address of the interned process, which it keeps for ever.
    due: RefCell<QuickMap<usize, bool>>,
}

// === impl AcquisitionSystem ===

impl AcquisitionSystem {
    /// The system of a run.
    pub(in super::super) fn new(run: Run, setup: AcquisitionSetup) -> Self {
        let longest = run.lease_duration();
        let config = |index: usize| {
            let name = NAMES[index];
            Arc::new(HolderConfig {
                identity: if setup.is_elector(index) {
                    Identity::of_elector(name, 0)
                } else {
                    identity(name)
                },
                timing: run.candidate_timing(),
                mode: setup.holder_mode(index, longest),
            })
        };
        let timing = run.elector_timing();
        let settings = || Settings {
            timing: timing.clone(),
            ..Settings::default()
        };
        let mut canonical = Canonical::new(run, timing.clone());
        canonical.waits = setup.longest_wait(longest).max(run.renew_deadline());
        canonical.usual = longest;
        Self {
            configs: std::array::from_fn(config),
            steps: ElectorSteps::new([settings(), settings()]),
            canonical,
            parts: Parts::new(),
            due: RefCell::default(),
            run,
            setup,
        }
    }

    /// The name that a process of this index bears next.
    pub(super) fn next_name(&self, index: usize, name: usize) -> usize {
        let spare = NAMES.len() - 1;
        match index {
            0 if self.setup.renames && name != spare => spare,
            _ => self.run.name_of(index),
        }
    }

    /// The requests of an elector, by its step.
    pub(super) fn requests(
        &self,
        index: usize,
        elector: &Rc<ElectorProcess>,
        store: &LeaseStore,
    ) -> Rc<Vec<ElectorRequest>> {
        self.steps.requests(index, elector, store, &self.run)
    }

    /// Whether a process's step would do something.
    pub(super) fn is_due(&self, process: &Rc<AcquiringProcess>) -> bool {
        let mut known = self.due.borrow_mut();
        *known
            .entry(address(process))
            .or_insert_with(|| process.is_due())
    }

    /// The state at the start, with the clocks of a mix.
    pub(super) fn start(&self, mix: usize) -> AcquisitionState {
        let run = &self.run;
        let object = |index| {
            let best = run.candidate(0).spec;
            let candidate = run.candidate(index);
            CandidateRecord {
                spec: if self.setup.ranked {
                    candidate.spec
                } else {
                    best
                },
                ..candidate
            }
        };
        // Without an elector the objects are of no use.
        let objects = if run.electors == 0 { 0 } else { run.candidates };
        let store = run.store((0..objects).map(|index| Some(object(index))).collect());
        let process = |index| {
            let name = run.name_of(index);
            let config = Arc::clone(&self.configs[name]);
            Rc::new(AcquiringProcess::new(name, config))
        };
        let mut state = SystemState {
            mix,
            store: Rc::new(store),
            candidates: (0..run.candidates).map(process).collect(),
            electors: (0..run.electors)
                .map(|_| Rc::new(ElectorProcess::new(None)))
                .collect(),
        };
        self.canonical.apply(&mut state, None, Time::Stands);
        state
    }
}
