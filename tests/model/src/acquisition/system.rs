//! A system whose processes acquire leases themselves, ready to be searched.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use elector_protocol::elector::Settings;
use elector_protocol::holder::HolderConfig;
use elector_protocol::{CandidateRecord, Identity};

use super::super::canonical::Canonical;
use super::super::elector_steps::ElectorSteps;
use super::super::intern::{QuickMap, address};
use super::super::lease_system::LeaseSystem;
use super::super::run::Run;
use super::super::start::identity;
use super::super::state::{Parts, SystemState};
use super::super::store::NAMES;
use super::process::AcquiringProcess;
use super::setup::AcquisitionSetup;

/// The state of a system whose processes acquire leases themselves.
pub(in super::super) type AcquisitionState = SystemState<AcquiringProcess>;

/// The system of a run whose processes acquire leases themselves.
pub(in super::super) type AcquisitionSystem = LeaseSystem<AcquisitionKind>;

/// The part peculiar to a system whose processes acquire leases themselves.
pub(in super::super) struct AcquisitionKind {
    pub(super) setup: AcquisitionSetup,
    /// By the name.
    pub(super) configs: [Arc<HolderConfig>; NAMES.len()],
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
        let settings = Settings {
            timing: timing.clone(),
            ..Settings::default()
        };
        let mut canonical = Canonical::new(run, timing.clone());
        canonical.waits = setup.longest_wait(longest).max(run.renew_deadline());
        canonical.usual = longest;
        Self {
            steps: ElectorSteps::new(settings),
            canonical,
            parts: Parts::new(),
            kind: AcquisitionKind {
                configs: std::array::from_fn(config),
                due: RefCell::default(),
                setup,
            },
            run,
        }
    }

    /// The name that a process of this index bears next.
    pub(super) fn next_name(&self, index: usize, name: usize) -> usize {
        let spare = NAMES.len() - 1;
        match index {
            0 if self.kind.setup.renames && name != spare => spare,
            _ => self.run.name_of(index),
        }
    }

    /// True if a process's step would do something.
    pub(super) fn is_due(&self, process: &Rc<AcquiringProcess>) -> bool {
        let mut known = self.kind.due.borrow_mut();
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
                spec: if self.kind.setup.ranked {
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
            let config = Arc::clone(&self.kind.configs[name]);
            Rc::new(AcquiringProcess::new(name, config))
        };
        let candidates = (0..run.candidates).map(process).collect();
        self.state_of(mix, store, candidates)
    }
}
