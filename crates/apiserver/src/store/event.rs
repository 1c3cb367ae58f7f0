//! A change of one object.

use std::sync::Arc;

use tokio::time::Instant;

use super::object::Stored;

/// A change of one object.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) happened: ChangeKind,
    /// The object as it is now, or as it last was.
    pub(crate) object: Arc<Stored>,
    /// The object as it was before.
    pub(crate) previous: Option<Arc<Stored>>,
    /// When it was committed, for watches that are to hear of it later.
    pub(crate) at: Instant,
}

/// A kind of change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created.
    Added,
    /// It was changed.
    Modified,
    /// It was removed.
    Deleted,
}

// === impl Event ===

impl Event {
    pub(super) fn now(
        happened: ChangeKind,
        object: Arc<Stored>,
        previous: Option<Arc<Stored>>,
    ) -> Self {
        Self {
            happened,
            object,
            previous,
            at: Instant::now(),
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.object.revision()
    }
}
