//! Effects of a term's work, as the fakes that it acts on write them down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use elector_runtime::TokioClock;

use crate::time::elapsed;

/// The effects of the work of one term, each with its time. Clones are the same log.
///
/// The work gets it beside its guard ([`TestCluster::run`](crate::TestCluster::run)) and passes it to the fakes of what it
/// acts on: a database, a cloud, a cluster. These record each effect when it takes place.
#[derive(Clone, Debug)]
pub struct EffectLog {
    clock: Arc<TokioClock>,
    effects: Arc<Mutex<Vec<(Duration, String)>>>,
}

// === impl EffectLog ===

impl EffectLog {
    pub(crate) fn new(clock: Arc<TokioClock>) -> Self {
        Self {
            clock,
            effects: Arc::default(),
        }
    }

    /// An effect takes place now; it is recorded in the words of the test.
    pub fn record(&self, what: impl Into<String>) {
        let (at, what) = (elapsed(&self.clock), what.into());
        self.lock().push((at, what));
    }

    /// The effects so far, oldest first, each with the time since the cluster's start.
    #[must_use]
    pub fn effects(&self) -> Vec<(Duration, String)> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Duration, String)>> {
        // A poisoned lock holds a valid state: every section adds one thing or none.
        self.effects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
