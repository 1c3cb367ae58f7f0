//! The status of a lease as a candidate knows it: the one value that its session publishes to all that ask.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use elector_protocol::holder::{Belief, StopReason, Wait};
use elector_protocol::{Identity, Instant, LeaseSnapshot, LeaseWatch, NewsSource};
#[cfg(feature = "events")]
use elector_protocol::{ResourceVersion, Uid};
use elector_runtime::Clock;
use tokio::sync::watch;

use crate::belief::{BeliefCell, BelievedTerm};
use crate::resolved_config::ResolvedConfig;
use crate::term_state::TermState;
use crate::waiting::Waiting;

/// The state of a lease as a candidate knows it.
///
/// Each method asks the clock and the belief of this process at the call, for the term in which the status was taken: a
/// status that is kept becomes only more modest. It never says that this process leads when that has ended.
#[derive(Clone)]
pub struct LeaseStatus {
    belief: BeliefCell,
    /// The term of this process then, or the last one.
    number: Option<u64>,
    lease: LeaseWatch,
    /// For records that name no duration.
    max_lease_duration: Duration,
    /// The wait for the next term, which the clock may have ended.
    wait: Option<Wait>,
    /// Until when what is known counts as fresh.
    fresh_until: Option<Instant>,
}

/// The part of a status that is worth waking for: all but how far the deadline has moved, and what is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusView {
    holder: Option<Identity>,
    term: Option<i32>,
    token: Option<u64>,
    leads: bool,
    stale: bool,
}

/// The end of the session. When it is dropped, this process leads no more, and is no candidate.
pub(crate) struct StatusPublisher {
    sender: watch::Sender<LeaseStatus>,
    belief: BeliefCell,
    config: ResolvedConfig,
}

/// An end of those who ask. The guard of a term and the handle of a candidate are views of it.
#[derive(Clone, Debug)]
pub(crate) struct StatusReader {
    pub(crate) belief: BeliefCell,
    pub(crate) known: watch::Receiver<LeaseStatus>,
}

// === impl LeaseStatus ===

impl LeaseStatus {
    /// Before the first session.
    const fn unknown(belief: BeliefCell, max_lease_duration: Duration) -> Self {
        Self {
            belief,
            number: None,
            lease: LeaseWatch::unknown(),
            max_lease_duration,
            wait: None,
            fresh_until: None,
        }
    }

    /// The identity that the Lease names, this process or another. `None` where it names none, where there is no
    /// Lease, and where the same record has been known for its whole lease duration, so that its holder may be gone.
    pub fn holder(&self) -> Option<&Identity> {
        if self.led().is_some() {
            return Some(self.belief.identity());
        }
        let now = self.belief.now();
        let lease = self.lease.lease();
        let standing = lease.filter(|lease| now < lease.expires_at(self.max_lease_duration))?;
        standing.snapshot.record.holder.as_ref()
    }

    /// The number of the term that the Lease is in, for people. `None` while no Lease is known.
    pub fn term(&self) -> Option<i32> {
        match self.led() {
            Some(led) => Some(led.term.0),
            None => Some(self.lease.lease()?.snapshot.record.term.0),
        }
    }

    /// The fencing token of that term. `None` where the holder has written none, as client-go does not.
    pub fn token(&self) -> Option<u64> {
        if let Some(led) = self.led() {
            return Some(led.token.0.0);
        }
        let record = &self.lease.lease()?.snapshot.record;
        let token = record.token.filter(|_| record.has_token())?;
        Some(token.0.0)
    }

    /// True if this process leads, in the term in which the status was taken.
    pub fn is_leader(&self) -> bool {
        self.led().is_some()
    }

    /// The time until the belief of this process that it leads ends unless a renewal succeeds. Zero where it does not
    /// lead.
    pub fn remaining(&self) -> Duration {
        self.led().map_or(Duration::ZERO, |led| led.remaining)
    }

    /// True if the API server has reported nothing of the Lease for a whole lease duration, or has not yet: another
    /// process may lead that is not known here. True before the run, and after it.
    pub fn is_stale(&self) -> bool {
        self.fresh_until
            .is_none_or(|until| until <= self.belief.now())
    }

    /// The wait of this process before it leads. `None` where it leads, and where it waits for nothing but the API
    /// server.
    pub fn waiting(&self) -> Option<Waiting> {
        let now = self.belief.now();
        let lasts = |wait: &&Wait| wait.until.is_none_or(|until| now < until);
        let wait = self.wait.as_ref().filter(lasts)?;
        self.led().is_none().then(|| Waiting::at(now, wait))
    }

    pub(crate) fn view(&self) -> StatusView {
        StatusView {
            holder: self.holder().cloned(),
            term: self.term(),
            token: self.token(),
            leads: self.is_leader(),
            stale: self.is_stale(),
        }
    }

    /// The newest revision of the Lease that is known.
    #[cfg(feature = "events")]
    pub(crate) fn revision(&self) -> Option<(Uid, ResourceVersion)> {
        let snapshot = &self.lease.lease()?.snapshot;
        Some((snapshot.uid.clone(), snapshot.version))
    }

    /// When the clock alone changes the status next.
    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        let lease = self.lease.lease();
        let expires_at = lease.map(|lease| lease.expires_at(self.max_lease_duration));
        let believed = self.number.and_then(|number| self.belief.deadline(number));
        let changes = [believed, expires_at, self.fresh_until];
        let changes = changes.into_iter().flatten();
        changes.filter(|at| now < *at).min()
    }

    fn led(&self) -> Option<BelievedTerm> {
        self.belief.led(Some(self.number?))
    }

    /// Takes in what a session knows of the Lease. A gap may lie between two sessions, and a record that stands as it
    /// stood expires when it would have.
    fn observe(&mut self, now: Instant, snapshot: Option<&LeaseSnapshot>) {
        match snapshot {
            Some(snapshot) => self.lease.observe(now, snapshot.clone(), NewsSource::List),
            None => self.lease = LeaseWatch::unknown(),
        }
    }
}

impl fmt::Debug for LeaseStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseStatus")
            .field("holder", &self.holder())
            .field("term", &self.term())
            .field("token", &self.token())
            .field("remaining", &self.remaining())
            .field("is_stale", &self.is_stale())
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}

// === impl StatusReader ===

impl StatusReader {
    /// The status now.
    pub(crate) fn status(&self) -> LeaseStatus {
        self.known.borrow().clone()
    }
}

// === impl StatusPublisher ===

impl StatusPublisher {
    pub(crate) fn new(config: &ResolvedConfig, clock: Arc<dyn Clock>) -> Self {
        let belief = BeliefCell::new(config, clock);
        let unknown = LeaseStatus::unknown(belief.clone(), config.given.max_lease_duration);
        Self {
            sender: watch::Sender::new(unknown),
            belief,
            config: config.clone(),
        }
    }

    pub(crate) const fn belief(&self) -> &BeliefCell {
        &self.belief
    }

    pub(crate) fn reader(&self) -> StatusReader {
        StatusReader {
            belief: self.belief.clone(),
            known: self.sender.subscribe(),
        }
    }

    /// The API server has told what the Lease says, be it the same as before.
    pub(crate) fn note_heard(&self, now: Instant) {
        let until = now.after(self.config.timing.lease_duration);
        self.sender.send_if_modified(|known| {
            let before = known.fresh_until.replace(until);
            // Staleness that ends is a change; a freshness that lasts longer is not.
            before.is_none_or(|before| before <= now)
        });
    }

    /// Passes on what the machine of the session believes now, why it has the work stop if it does so now, and what it
    /// knows of the Lease; and the wait of this process, which is reported as an event and no status is woken for.
    pub(crate) fn publish(
        &self,
        now: Instant,
        belief: Option<Belief>,
        stop: Option<&StopReason>,
        snapshot: Option<&LeaseSnapshot>,
        wait: Option<Wait>,
    ) {
        let config = &self.config;
        let mut held_back = Vec::new();
        self.sender.send_if_modified(|known| {
            let changed = {
                let state = &mut *self.belief.state();
                held_back = mem::take(&mut state.held_back);
                let term = &mut state.term;
                let before = term.clone();
                TermState::note_belief(term, belief, config.given.stop_budget());
                if let (Some(term), Some(reason)) = (&mut *term, stop)
                    && !term.is_over()
                {
                    term.tell(reason.clone(), config.stop_by(reason, term.limits, now));
                }
                known.number = term.as_ref().map(|term| term.number);
                *term != before
            };
            known.wait = wait;
            let same_snapshot = known.lease.lease().map(|it| &it.snapshot) == snapshot;
            if !same_snapshot {
                known.observe(now, snapshot);
            }
            changed || !same_snapshot
        });
        // Outside of the locks: a waker may be the last that is left of the work.
        held_back.into_iter().for_each(Waker::wake);
    }

    /// Wakes those who follow the status where the clock alone has changed it since `before`, and says when it does next.
    pub(crate) fn note_time(&self, before: Option<Instant>, now: Instant) -> Option<Instant> {
        let due = before.is_some_and(|before| before <= now);
        self.sender.send_if_modified(|_| due);
        self.sender.borrow().next_change(now)
    }

    /// Changes the term, if there is one.
    pub(crate) fn change_term(&self, change: impl FnOnce(&mut TermState)) {
        self.sender.send_modify(|_| {
            if let Some(term) = &mut self.belief.state().term {
                change(term);
            }
        });
    }

    /// The process is unwell for this reason, or well again.
    pub(crate) fn note_health(&self, unwell: Option<&str>) {
        self.belief.state().unwell = unwell.map(str::to_owned);
    }

    /// True while the process is reported to be unwell.
    pub(crate) fn is_unwell(&self) -> bool {
        self.belief.state().unwell.is_some()
    }

    /// A session has ended. Nothing is followed any more: what was known of others may stand until it expires, and is
    /// stale.
    pub(crate) fn forget(&self) {
        let mut held_back = Vec::new();
        self.sender.send_modify(|known| {
            let tasks = {
                let mut state = self.belief.state();
                held_back = mem::take(&mut state.held_back);
                if let Some(term) = &mut state.term {
                    term.end();
                }
                state.tasks.take()
            };
            drop(tasks);
            known.wait = None;
            known.fresh_until = None;
        });
    }
}

impl fmt::Debug for StatusPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sender.borrow().fmt(f)
    }
}

impl Drop for StatusPublisher {
    fn drop(&mut self) {
        self.forget();
        self.note_health(None);
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::Timestamp;
    use elector_protocol::holder::WaitReason;
    use elector_runtime::TokioClock;

    use super::*;
    use crate::config::Config;

    /// A session that stands still does not come round to say that the time is over.
    #[tokio::test(start_paused = true)]
    async fn a_wait_is_shown_until_its_end_and_one_without_an_end_all_the_time() {
        let seconds = Duration::from_secs;
        let clock = Arc::new(TokioClock::start(Timestamp::MIN));
        let config = ResolvedConfig::new(Config::plain("web"), "ns", Duration::MAX).unwrap();
        let publisher = StatusPublisher::new(&config, clock.clone());
        let reader = publisher.reader();
        let wait = |until| {
            let wait = Wait {
                reason: WaitReason::Elector,
                until,
            };
            publisher.publish(clock.holder(), None, None, None, Some(wait));
        };
        let shown = || {
            let waiting = reader.status().waiting();
            waiting.map(|waiting| waiting.at_most().map(|left| left.as_secs()))
        };
        wait(Some(clock.holder().after(seconds(20))));
        tokio::time::advance(seconds(5)).await;
        assert_eq!(shown(), Some(Some(15)));
        tokio::time::advance(seconds(15)).await;
        assert_eq!(shown(), None);
        wait(None);
        tokio::time::advance(seconds(1_000_000)).await;
        assert_eq!(shown(), Some(None));
    }
}
