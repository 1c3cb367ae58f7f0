//! Follows who leads: by news, by the clock, and by what the work of a term says.

use std::pin::Pin;
use std::time::Duration;

use elector_candidate::LeaseStatus;
use futures::{Stream, StreamExt as _, stream};
use tokio::sync::watch;

use super::leader_view::{LeaderSource, SeenLeader};
use crate::candidate::current_term::RunningTerm;

/// Wakes for each change of a part of what is seen.
pub(super) struct LeaderFollower<P> {
    source: LeaderSource,
    /// Wakes by the clock too.
    changes: Pin<Box<dyn Stream<Item = LeaseStatus> + Send>>,
    /// Wakes for renewals too.
    known: watch::Receiver<LeaseStatus>,
    term: watch::Receiver<Option<RunningTerm>>,
    part: fn(&SeenLeader) -> P,
    seen: Option<P>,
    has_ended: bool,
}

/// The end of a wait.
enum Followed {
    Change,
    /// Nothing has changed for a while.
    Silence,
}

/// The time after which a stream says that it still stands.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// A comment, by which a client sees that its stream still stands.
const COMMENT: &str = ": no change\n\n";

// === impl LeaderFollower ===

impl<P: PartialEq + Send + 'static> LeaderFollower<P> {
    pub(super) fn new(source: LeaderSource, part: fn(&SeenLeader) -> P) -> Self {
        Self {
            changes: Box::pin(source.handle().changes()),
            known: source.handle().watch(),
            term: source.current().watch(),
            source,
            part,
            seen: None,
            has_ended: false,
        }
    }

    /// The event at once, again for each change and at the end of the run, and comments in between.
    pub(super) fn events(
        self,
        event: impl Fn() -> String + Send + 'static,
    ) -> impl Stream<Item = String> + Send {
        stream::unfold((self, event), |(mut this, event)| async move {
            let text = match this.next().await? {
                Followed::Change => event(),
                Followed::Silence => COMMENT.to_owned(),
            };
            Some((text, (this, event)))
        })
    }

    async fn next(&mut self) -> Option<Followed> {
        while !self.has_ended {
            // From here on each publication wakes.
            self.known.mark_unchanged();
            self.term.mark_unchanged();
            let seen = (self.part)(&self.source.look().1);
            if self.seen.as_ref() != Some(&seen) {
                self.seen = Some(seen);
                return Some(Followed::Change);
            }
            let goes_on = tokio::select! {
                biased;
                change = self.changes.next() => change.is_some(),
                changed = self.known.changed() => changed.is_ok(),
                changed = self.term.changed() => changed.is_ok(),
                () = tokio::time::sleep(HEARTBEAT) => return Some(Followed::Silence),
            };
            if !goes_on {
                // The last word of a run is that this process does not lead.
                self.has_ended = true;
                return Some(Followed::Change);
            }
        }
        None
    }
}
