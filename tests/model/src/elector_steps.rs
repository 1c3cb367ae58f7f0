//! The steps of the electors: what each of them would request, by the production step.

use std::cell::RefCell;
use std::rc::Rc;

use elector_protocol::elector::Settings;

use super::elector::{ElectorProcess, ElectorRequest};
use super::intern::{QuickMap, address};
use super::run::Run;
use super::store::LeaseStore;

/// The electors' settings, and the requests of those electors that have been met.
pub(super) struct ElectorSteps {
    settings: [Settings; 2],
    known: RefCell<KnownRequests>,
}

/// The requests of an elector, by whether it reserves, and by its address: it is interned, and kept for ever.
type KnownRequests = QuickMap<(bool, usize), Rc<Vec<ElectorRequest>>>;

// === impl ElectorSteps ===

impl ElectorSteps {
    /// Steps by these settings, which may differ in whether the elector reserves.
    pub(super) fn new(settings: [Settings; 2]) -> Self {
        Self {
            settings,
            known: RefCell::default(),
        }
    }

    /// The requests of the elector of an index. Most electors are met many times.
    pub(super) fn requests(
        &self,
        index: usize,
        elector: &Rc<ElectorProcess>,
        store: &LeaseStore,
        run: &Run,
    ) -> Rc<Vec<ElectorRequest>> {
        let settings = &self.settings[index];
        let requests = || Rc::new(elector.requests(store, settings, run));
        // A mutant may look at more than the elector's own memory.
        if run.mutant.is_some() {
            return requests();
        }
        let mut known = self.known.borrow_mut();
        let key = (settings.reserve, address(elector));
        Rc::clone(known.entry(key).or_insert_with(requests))
    }
}
