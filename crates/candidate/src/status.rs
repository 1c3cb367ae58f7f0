//! The status of a candidate, of its lease and its term: the one value that its session publishes to all that ask.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::holder::{Belief, StopReason, Wait};
use elector_protocol::{
    Identity, Instant, LeaseKey, LeaseSnapshot, LeaseWatch, NewsSource, Term, Token,
};
#[cfg(feature = "events")]
use elector_protocol::{ResourceVersion, Uid};
use elector_runtime::Clock;
use tokio::sync::watch;

use crate::resolved_config::ResolvedConfig;
use crate::term_state::TermState;
use crate::waiting::Waiting;

/// The state of a lease as a candidate knows it, at one instant of the holder's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeadershipStatus {
    /// The identity that the Lease names, this process or another. `None` where it names none, where there is no
    /// Lease, and where the same record has been known for its whole lease duration, so that its holder may be gone.
    pub holder: Option<Identity>,
    /// The number of the term that the Lease is in, for people. `None` while no Lease is known.
    pub term: Option<Term>,
    /// The fencing token of that term. `None` where the holder has written none, as client-go does not.
    pub token: Option<Token>,
    /// When the belief of this process that it leads ends unless a renewal succeeds, on the holder's clock. `None`
    /// where it does not lead.
    pub deadline: Option<Instant>,
    /// The time until then. Zero where this process does not lead.
    pub remaining: Duration,
    /// True if the API server has reported nothing of the Lease for a whole lease duration, or has not yet: another
    /// process may lead that is not known here. True before the run, and after it.
    pub stale: bool,
    /// The wait of this process before it leads. `None` where it leads, and where it waits for nothing but the API
    /// server.
    pub waiting: Option<Waiting>,
}

/// The part of a status that is worth waking for: all but how far the deadline has moved, and what is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusView {
    holder: Option<Identity>,
    term: Option<Term>,
    token: Option<Token>,
    leads: bool,
    stale: bool,
}

/// The knowledge of the session, from which a status is computed at each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownStatus {
    /// The term of this process, or the last one.
    pub(crate) term: Option<TermState>,
    lease: LeaseWatch,
    /// For records that name no duration.
    max_lease_duration: Duration,
    /// The wait for the next term, which the clock may have ended.
    wait: Option<Wait>,
    /// Until when what is known counts as fresh.
    fresh_until: Option<Instant>,
    /// Why this process is unwell, while it is.
    pub(crate) unwell: Option<String>,
}

/// The end of the session. When it is dropped, this process leads no more, and is no candidate.
pub(crate) struct StatusPublisher {
    sender: watch::Sender<KnownStatus>,
    config: ResolvedConfig,
    clock: Arc<dyn Clock>,
}

/// An end of those who ask. The guard of a term and the handle of a candidate are views of it.
#[derive(Clone)]
pub(crate) struct StatusReader {
    pub(crate) lease: LeaseKey,
    pub(crate) identity: Identity,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) known: watch::Receiver<KnownStatus>,
}

// === impl LeadershipStatus ===

impl LeadershipStatus {
    /// True if this process led at the instant of the status.
    /// [`CandidateHandle::is_leader`](crate::CandidateHandle::is_leader) asks the clock anew.
    pub const fn is_leader(&self) -> bool {
        self.deadline.is_some()
    }

    pub(crate) fn view(&self) -> StatusView {
        StatusView {
            holder: self.holder.clone(),
            term: self.term,
            token: self.token,
            leads: self.is_leader(),
            stale: self.stale,
        }
    }
}

// === impl KnownStatus ===

impl KnownStatus {
    /// Before the first session.
    const fn unknown(max_lease_duration: Duration) -> Self {
        Self {
            term: None,
            lease: LeaseWatch::unknown(),
            max_lease_duration,
            wait: None,
            fresh_until: None,
            unwell: None,
        }
    }

    /// When the belief of this process ends, which the clock may have ended.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.term.as_ref()?.deadline()
    }

    /// The status at that instant, for the process of that identity.
    pub(crate) fn at(&self, now: Instant, identity: &Identity) -> LeadershipStatus {
        let stale = self.fresh_until.is_none_or(|until| until <= now);
        if let (Some(term), Some(deadline)) = (&self.term, self.deadline())
            && now < deadline
        {
            return LeadershipStatus {
                holder: Some(identity.clone()),
                term: Some(term.term),
                token: Some(term.token),
                deadline: Some(deadline),
                remaining: deadline.since(now),
                stale,
                waiting: None,
            };
        }
        let lease = self.lease.lease();
        let standing = lease.filter(|lease| now < lease.expires_at(self.max_lease_duration));
        let lasts = |wait: &&Wait| wait.until.is_none_or(|until| now < until);
        let wait = self.wait.as_ref().filter(lasts);
        let record = lease.map(|lease| &lease.snapshot.record);
        let current = record.filter(|record| record.has_token());
        LeadershipStatus {
            holder: standing.and_then(|lease| lease.snapshot.record.holder.clone()),
            term: record.map(|record| record.term),
            token: current.and_then(|record| record.token),
            deadline: None,
            remaining: Duration::ZERO,
            stale,
            waiting: wait.map(|wait| Waiting::at(now, wait)),
        }
    }

    /// The newest revision of the Lease that is known.
    #[cfg(feature = "events")]
    pub(crate) fn revision(&self) -> Option<(Uid, ResourceVersion)> {
        let snapshot = &self.lease.lease()?.snapshot;
        Some((snapshot.uid.clone(), snapshot.version))
    }

    /// Takes in what a session knows of the Lease. A gap may lie between two sessions, and a record that stands as it
    /// stood expires when it would have.
    fn observe(&mut self, now: Instant, snapshot: Option<&LeaseSnapshot>) {
        match snapshot {
            Some(snapshot) => self.lease.observe(now, snapshot.clone(), NewsSource::List),
            None => self.lease = LeaseWatch::unknown(),
        }
    }

    /// When the clock alone changes the status next.
    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        let lease = self.lease.lease();
        let expires_at = lease.map(|lease| lease.expires_at(self.max_lease_duration));
        let changes = [self.deadline(), expires_at, self.fresh_until];
        let changes = changes.into_iter().flatten();
        changes.filter(|at| now < *at).min()
    }
}

// === impl StatusReader ===

impl StatusReader {
    /// The status now, by the clock.
    pub(crate) fn status(&self) -> LeadershipStatus {
        let known = self.known.borrow();
        known.at(self.clock.holder(), &self.identity)
    }
}

// === impl StatusPublisher ===

impl StatusPublisher {
    pub(crate) fn new(config: &ResolvedConfig, clock: Arc<dyn Clock>) -> Self {
        Self {
            sender: watch::Sender::new(KnownStatus::unknown(config.given.max_lease_duration)),
            config: config.clone(),
            clock,
        }
    }

    pub(crate) fn reader(&self) -> StatusReader {
        StatusReader {
            lease: self.config.lease.clone(),
            identity: self.config.identity.clone(),
            clock: Arc::clone(&self.clock),
            known: self.sender.subscribe(),
        }
    }

    /// The API server has told what the Lease says, be it the same as before.
    pub(crate) fn note_heard(&self, now: Instant) {
        let until = now.after(self.config.given.timing.lease_duration);
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
        self.sender.send_if_modified(|known| {
            let before = known.term.clone();
            TermState::note_belief(&mut known.term, belief, config.given.stop_budget());
            if let (Some(term), Some(reason)) = (&mut known.term, stop)
                && !term.is_over()
            {
                term.tell(reason.clone(), config.stop_by(reason, term.limits, now));
            }
            known.wait = wait;
            let same_snapshot = known.lease.lease().map(|it| &it.snapshot) == snapshot;
            if !same_snapshot {
                known.observe(now, snapshot);
            }
            known.term != before || !same_snapshot
        });
    }

    /// Changes the term, if there is one.
    pub(crate) fn change_term(&self, change: impl FnOnce(&mut TermState)) {
        self.sender.send_modify(|known| {
            if let Some(term) = &mut known.term {
                change(term);
            }
        });
    }

    /// The process is unwell for this reason, or well again.
    pub(crate) fn note_health(&self, unwell: Option<&str>) {
        self.sender.send_if_modified(|known| {
            known.unwell = unwell.map(str::to_owned);
            false
        });
    }

    /// True while the process is reported to be unwell.
    pub(crate) fn is_unwell(&self) -> bool {
        self.sender.borrow().unwell.is_some()
    }

    /// A session has ended. Nothing is followed any more: what was known of others may stand until it expires, and is
    /// stale.
    pub(crate) fn forget(&self) {
        self.sender.send_modify(|known| {
            if let Some(term) = &mut known.term {
                term.end();
            }
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
    use elector_protocol::holder::WaitReason;

    use super::*;

    /// A session that stands still does not come round to say that the time is over.
    #[test]
    fn a_wait_is_shown_until_its_end_and_one_without_an_end_all_the_time() {
        let at = |seconds| Instant::from_epoch(Duration::from_secs(seconds));
        let me = Identity::new("me").unwrap();
        let shown = |until: Option<u64>, now| {
            let known = KnownStatus {
                wait: Some(Wait {
                    reason: WaitReason::Elector,
                    until: until.map(at),
                }),
                ..KnownStatus::unknown(Duration::ZERO)
            };
            let waiting = known.at(at(now), &me).waiting;
            waiting.map(|waiting| waiting.at_most().map(|left| left.as_secs()))
        };
        assert_eq!(shown(Some(20), 5), Some(Some(15)));
        assert_eq!(shown(Some(20), 20), None);
        assert_eq!(shown(None, 1_000_000), Some(None));
    }
}
