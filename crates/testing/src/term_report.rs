//! The stop of the work of a term, in time or not.

use std::fmt;

use elector_candidate::{StopReason, TermEnd};
use elector_protocol::Instant;

use crate::effect_log::RecordedEffect;

/// The stop of a term's work: [`ProgramUnderTest::term_report`](crate::ProgramUnderTest::term_report). All instants
/// are those of the holder's clock ([`EmbeddedCluster::now`](crate::EmbeddedCluster::now)).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TermReport {
    /// The number of the term.
    pub term: i32,
    /// Its fencing token.
    pub token: u64,
    /// The term's end.
    pub end: TermEnd,
    /// Why and when the work was asked to stop first. `None` where it had ended by then.
    pub told: Option<(StopReason, Instant)>,
    /// The end of the work's future, and its time. `None` while it blocks its thread.
    pub work: Option<(WorkStop, Instant)>,
    /// From when on nothing of the work may act any more: its time to stop was over, or the candidate took it for stopped,
    /// whichever came first. Another process may lead soon after, or does already.
    pub limit: Instant,
    /// The effects, oldest first, up to one lease duration after the end of the term.
    pub effects: Vec<RecordedEffect>,
}

/// The end of the work's future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkStop {
    /// It returned.
    Returned,
    /// It panicked.
    Panicked,
    /// It was dropped in the middle of what it did, because its time to stop was over.
    Dropped,
}

// === impl TermReport ===

impl TermReport {
    /// The work's effects when it might act no more.
    pub fn late_effects(&self) -> impl Iterator<Item = &RecordedEffect> {
        let limit = self.limit;
        self.effects.iter().filter(move |effect| limit < effect.at)
    }

    /// Asserts that nothing of the work acted after its time: not the work, nor anything that it left behind.
    ///
    /// A late actor is most often a task of `tokio::spawn` in the place of
    /// [`Leadership::spawn`](elector_candidate::Leadership::spawn).
    ///
    /// # Panics
    ///
    /// When something did. The message names each such effect, and how late it was.
    #[track_caller]
    pub fn assert_nothing_late(&self) {
        let late = self.late_effects().map(|effect| {
            let by = effect.at.since(self.limit);
            format!("\n  {:?}, {by:?} too late", effect.what)
        });
        let late = String::from_iter(late);
        assert!(
            late.is_empty(),
            "the work acted when its time was over{self}:{late}"
        );
    }

    /// Asserts that the work ended by itself once it was told to, and was not cut off in the middle of what it did. Work that
    /// may be dropped anywhere has no need of it.
    ///
    /// # Panics
    ///
    /// When it was dropped, panicked, or has not ended. The message says how long it had.
    #[track_caller]
    pub fn assert_returned(&self) {
        let how = match self.work {
            Some((WorkStop::Returned, _)) => return,
            Some((WorkStop::Panicked, _)) => "panicked",
            Some((WorkStop::Dropped, _)) => "did not return in time, and was dropped",
            None => "has not ended: it blocks its thread",
        };
        panic!("the work {how}{self}");
    }
}

impl fmt::Display for TermReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.told {
            None => f.write_str(" (it had ended by itself)"),
            Some((reason, told)) => {
                let left = self.limit.since(*told);
                write!(f, " (told to stop: {reason}; it had {left:?})")
            }
        }
    }
}
