//! Effects of a term's work, as the fakes that it acts on write them down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use elector_protocol::Instant;
use elector_runtime::{Clock as _, TokioClock};

/// The effects of the work of one term, each with its time. Clones are the same log.
///
/// The work gets it beside its guard ([`EmbeddedCluster::run`](crate::EmbeddedCluster::run)) and passes it to the fakes of
/// what it acts on: a database, a cloud, a cluster. These record each effect when it takes place.
#[derive(Clone, Debug)]
pub struct EffectLog {
    clock: Arc<TokioClock>,
    effects: Arc<Mutex<Vec<RecordedEffect>>>,
}

/// Something that the work did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedEffect {
    /// The effect, in the words of the test.
    pub what: String,
    /// When it took place, on the holder's clock.
    pub at: Instant,
}

// === impl EffectLog ===

impl EffectLog {
    pub(crate) fn new(clock: Arc<TokioClock>) -> Self {
        Self {
            clock,
            effects: Arc::default(),
        }
    }

    /// An effect takes place now.
    pub fn record(&self, what: impl Into<String>) {
        let (what, at) = (what.into(), self.clock.holder());
        self.lock().push(RecordedEffect { what, at });
    }

    /// The effects so far, oldest first.
    #[must_use]
    pub fn effects(&self) -> Vec<RecordedEffect> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RecordedEffect>> {
        // A poisoned lock holds a valid state: every section adds one thing or none.
        self.effects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
