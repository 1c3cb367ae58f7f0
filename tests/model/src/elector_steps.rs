//! The steps of the electors: what each of them would request, by the production step.

use std::cell::RefCell;
use std::rc::Rc;

use elector_protocol::elector::Settings;

use super::elector::{ElectorProcess, ElectorRequest};
use super::intern::{QuickMap, address};
use super::run::Run;
use super::store::LeaseStore;

/// The settings of the electors, and the requests of those electors that have been met.
pub(super) struct ElectorSteps {
    settings: Settings,
    known: RefCell<KnownRequests>,
}

/// The requests of an elector, by its address: it is interned, and kept for ever.
type KnownRequests = QuickMap<usize, Rc<Vec<ElectorRequest>>>;

// === impl ElectorSteps ===

impl ElectorSteps {
    /// Steps by these settings.
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            known: RefCell::default(),
        }
    }

    /// The requests of an elector. Most electors are met many times.
    pub(super) fn requests(
        &self,
        elector: &Rc<ElectorProcess>,
        store: &LeaseStore,
        run: &Run,
    ) -> Rc<Vec<ElectorRequest>> {
        let requests = || Rc::new(elector.requests(store, &self.settings, run));
        // A mutant may look at more than the elector's own memory.
        if run.mutant.is_some() {
            return requests();
        }
        let mut known = self.known.borrow_mut();
        Rc::clone(known.entry(address(elector)).or_insert_with(requests))
    }
}
