//! What a candidate knows of its lease, passed from its session to those who ask outside of a term.

use std::time::Duration;

use elector_protocol::holder::{Belief, Wait};
use elector_protocol::{
    Identity, Instant, LeaseSnapshot, LeaseWatch, NewsSource, ResourceVersion, Term, Token, Uid,
};
use tokio::sync::watch;

use crate::resolved_config::ResolvedConfig;
use crate::waiting::Waiting;

/// What a candidate knows of its lease, at one instant of the holder's clock.
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
    /// How long that is from now. Zero where this process does not lead.
    pub remaining: Duration,
    /// Whether the API server has told nothing of the Lease for a whole lease duration, or has not yet: another
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

/// What the session knows, from which a status is computed at each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownStatus {
    /// The belief of this process, which the clock may have ended.
    pub(crate) belief: Option<Belief>,
    lease: LeaseWatch,
    /// For records that name no duration.
    max_lease_duration: Duration,
    /// The wait for the next term, which the clock may have ended.
    wait: Option<Wait>,
    /// Until when what is known counts as fresh.
    fresh_until: Option<Instant>,
    /// Until when the work of a term may act, as long as anything of it runs.
    pub(crate) acts_until: Option<Instant>,
    /// Whether that work was left behind because it does not stop.
    work_is_left: bool,
    /// Why this process is unwell, while it is.
    pub(crate) unwell: Option<String>,
}

/// The end of the session. When it is dropped, this process leads no more, and is no candidate.
#[derive(Debug)]
pub(crate) struct StatusPublisher {
    sender: watch::Sender<KnownStatus>,
    identity: Identity,
    lease_duration: Duration,
}

// === impl LeadershipStatus ===

impl LeadershipStatus {
    /// Whether this process led at the instant of the status.
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
            belief: None,
            lease: LeaseWatch::unknown(),
            max_lease_duration,
            wait: None,
            fresh_until: None,
            acts_until: None,
            work_is_left: false,
            unwell: None,
        }
    }

    /// The term and the token under which this process leads at that instant.
    pub(crate) fn leads(&self, now: Instant) -> Option<Belief> {
        self.belief.filter(|belief| now < belief.deadline)
    }

    /// What is known at that instant, by the process of that identity.
    pub(crate) fn at(&self, now: Instant, identity: &Identity) -> LeadershipStatus {
        let stale = self.fresh_until.is_none_or(|until| until <= now);
        if let Some(belief) = self.leads(now) {
            return LeadershipStatus {
                holder: Some(identity.clone()),
                term: Some(belief.term),
                token: Some(belief.token),
                deadline: Some(belief.deadline),
                remaining: belief.deadline.since(now),
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
        let belief = self.belief.map(|belief| belief.deadline);
        let lease = self.lease.lease();
        let expires_at = lease.map(|lease| lease.expires_at(self.max_lease_duration));
        let changes = [belief, expires_at, self.fresh_until].into_iter().flatten();
        changes.filter(|at| now < *at).min()
    }
}

// === impl StatusPublisher ===

impl StatusPublisher {
    pub(crate) fn new(config: &ResolvedConfig) -> Self {
        Self {
            sender: watch::Sender::new(KnownStatus::unknown(config.given.max_lease_duration)),
            identity: config.identity.clone(),
            lease_duration: config.given.timing.lease_duration,
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<KnownStatus> {
        self.sender.subscribe()
    }

    /// The API server has told what the Lease says, be it the same as before.
    pub(crate) fn note_heard(&self, now: Instant) {
        let until = now.after(self.lease_duration);
        self.sender.send_if_modified(|known| {
            let before = known.fresh_until.replace(until);
            // Staleness that ends is a change; a freshness that lasts longer is not.
            before.is_none_or(|before| before <= now)
        });
    }

    /// Passes on what the machine of the session knows now.
    pub(crate) fn publish(
        &self,
        now: Instant,
        belief: Option<Belief>,
        snapshot: Option<&LeaseSnapshot>,
    ) {
        self.sender.send_if_modified(|known| {
            let same_snapshot = known.lease.lease().map(|it| &it.snapshot) == snapshot;
            if known.belief == belief && same_snapshot {
                return false;
            }
            let before = known.at(now, &self.identity).view();
            let next_before = known.next_change(now);
            known.belief = belief;
            if !same_snapshot {
                known.observe(now, snapshot);
            }
            // A waiter sleeps until the next change by the clock, and looks again then.
            before != known.at(now, &self.identity).view() || known.next_change(now) < next_before
        });
    }

    /// The wait of this process before it leads. It is told as an event, and no status is woken for.
    pub(crate) fn note_wait(&self, wait: Option<Wait>) {
        self.sender.send_if_modified(|known| {
            known.wait = wait;
            false
        });
    }

    /// The work of a term runs, and may act until then unless a renewal succeeds; or nothing of it runs.
    pub(crate) fn note_work(&self, acts_until: Option<Instant>) {
        self.sender.send_if_modified(|known| {
            known.acts_until = acts_until;
            false
        });
    }

    /// The work does not stop, and is left behind.
    pub(crate) fn note_work_left(&self) {
        self.sender.send_if_modified(|known| {
            known.work_is_left = true;
            false
        });
    }

    /// The process is unwell for this reason, or well again.
    pub(crate) fn note_health(&self, unwell: Option<&str>) {
        self.sender.send_if_modified(|known| {
            known.unwell = unwell.map(str::to_owned);
            false
        });
    }

    /// Whether the process was said to be unwell.
    pub(crate) fn is_unwell(&self) -> bool {
        self.sender.borrow().unwell.is_some()
    }

    /// A session has ended. Nothing is followed any more: what was known of others may stand until it expires, and is
    /// stale.
    pub(crate) fn forget(&self) {
        self.sender.send_modify(|known| {
            known.belief = None;
            known.wait = None;
            known.fresh_until = None;
            if !known.work_is_left {
                known.acts_until = None;
            }
        });
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
