//! Living with the elector that is built into kube-apiserver: its lock, watched or taken.
//!
//! Where the gate is on, one API server holds the Lease `kube-system/leader-election-controller` and elects. Two such
//! controllers would undo each other's work, so leases of the built-in strategy are ours only while that one is quiet:
//!
//! ```text
//!   the lock, as it was seen ──> Builtin ── charge(now) ──> who decides
//!                                   └────── poll(now)  ──> writes that take and keep the lock (with --replace-builtin)
//! ```
//!
//! Freshness is measured by our own stop-watch (R4). Overwriting the lock does not stop the built-in one at once: it
//! goes on electing up to its own deadline, which lies within the duration of the record that was overwritten. That is
//! how long we wait. Where the gate is off the lock does not exist, and nobody has to be waited for. Candidates that are
//! custom resources are none of that controller's business, so with those nobody asks for its lock.

use std::fmt;
use std::time::Duration;

use elector_protocol::elector::NewsSource;
use elector_protocol::{
    CandidateTiming, Identity, Instant, LeaseRecord, LeaseSnapshot, LeaseWrite, ResourceVersion,
    Timestamp,
};

/// Namespace of the lock.
pub(crate) const LOCK_NAMESPACE: &str = "kube-system";
/// Name of the lock.
pub(crate) const LOCK_NAME: &str = "leader-election-controller";

/// Who decides about leases of the built-in strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// The lock has not been seen yet, so nobody knows.
    Unknown,
    /// We do.
    Ours,
    /// The built-in controller, under this identity.
    Builtin(Identity),
    /// Nobody for now: the lock is being taken, or the former holder may not have noticed yet.
    Pending,
}

/// A write of the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// POST the lock, unheld (R2); taking it is the next write.
    Create(LeaseRecord),
    /// PUT the lock: taken, or renewed.
    Write(LeaseWrite),
}

/// The lock as this elector sees it.
#[derive(Clone, Debug)]
pub(crate) struct Builtin {
    mode: Mode,
    /// How long a record without a usable duration counts, and one whose history is unknown.
    longest: Duration,
    lock: Lock,
    /// From when on nobody who held the lock before can still decide.
    quiet_at: Instant,
}

#[derive(Clone, Debug)]
enum Mode {
    Respect,
    Replace(Campaign),
}

/// Our own attempts at the lock.
#[derive(Clone, Debug)]
struct Campaign {
    me: Identity,
    timing: CandidateTiming,
    /// Writes that were sent and not seen yet, told by their renewTime, each with the time of its send.
    sent: Vec<(Timestamp, Instant)>,
    in_flight: bool,
    failures: u32,
    retry_at: Instant,
    /// When the newest write was sent that is known to be applied, while the lock is ours (R8).
    applied: Option<Instant>,
}

#[derive(Clone, Debug)]
enum Lock {
    Unknown,
    Absent,
    Present {
        snapshot: LeaseSnapshot,
        since: Instant,
    },
}

/// Identities of electors begin with this; those of API servers have no second underscore.
const OUR_PREFIX: &str = "elector_";

// === impl Builtin ===

impl Builtin {
    /// Leaves the lock alone. `longest` is the longest lease duration in use (`W_max`).
    pub(crate) fn respected(longest: Duration) -> Self {
        Self::new(Mode::Respect, longest)
    }

    /// No built-in controller sees the candidates: there is nothing to ask about, and nothing to take.
    pub(crate) fn unconcerned(longest: Duration) -> Self {
        Self {
            lock: Lock::Absent,
            ..Self::respected(longest)
        }
    }

    /// Takes the lock under an identity from [`lock_identity`], and renews it.
    pub(crate) fn replaced(me: Identity, timing: CandidateTiming, longest: Duration) -> Self {
        let campaign = Campaign {
            me,
            timing,
            sent: Vec::new(),
            in_flight: false,
            failures: 0,
            retry_at: Instant::default(),
            applied: None,
        };
        Self::new(Mode::Replace(campaign), longest)
    }

    fn new(mode: Mode, longest: Duration) -> Self {
        Self {
            mode,
            longest,
            lock: Lock::Unknown,
            quiet_at: Instant::default(),
        }
    }

    /// A revision of the lock was seen.
    pub(crate) fn handle_lock(
        &mut self,
        now: Instant,
        snapshot: LeaseSnapshot,
        source: NewsSource,
    ) {
        let record = &snapshot.record;
        let holder = record.holder.as_ref();
        let duration = self.duration_of(record);
        let (since, replaced) = match &self.lock {
            Lock::Present {
                snapshot: known, ..
            } if snapshot.version <= known.version && source != NewsSource::List => return,
            Lock::Present {
                snapshot: known,
                since,
            } if known.uid == snapshot.uid && known.record.same_record(record) => {
                (*since, Some(known))
            }
            Lock::Present {
                snapshot: known, ..
            } => (now, Some(known)),
            Lock::Absent | Lock::Unknown => (now, None),
        };
        let unknown_past = match &self.lock {
            Lock::Unknown => true,
            // A gap of the watch may hide a term of the built-in controller, unless this is the term from before it or
            // a write of our own, which replaced just what we knew.
            Lock::Absent => source == NewsSource::List,
            Lock::Present {
                snapshot: known, ..
            } => {
                let term =
                    |of: &LeaseSnapshot| (of.uid.clone(), of.record.holder.clone(), of.record.term);
                source == NewsSource::List && term(known) != term(&snapshot) && !self.wrote(record)
            }
        };
        let overwrites = replaced
            .filter(|known| known.record.holder.as_ref().is_some_and(is_stranger))
            .map(|known| self.duration_of(&known.record));
        match holder {
            Some(holder) if is_stranger(holder) => {
                self.quiet_at = self.quiet_at.max(since.after(duration));
            }
            // Whom this one replaced, and when, is not known.
            Some(_) if unknown_past => {
                self.quiet_at = self.quiet_at.max(now.after(duration.max(self.longest)));
            }
            Some(_) => {
                if let Some(overwritten) = overwrites {
                    self.quiet_at = self.quiet_at.max(now.after(overwritten));
                }
            }
            None => {}
        }
        if let Mode::Replace(campaign) = &mut self.mode {
            campaign.note(record);
        }
        self.lock = Lock::Present { snapshot, since };
    }

    /// The lock was seen deleted, or is missing in a complete list.
    pub(crate) fn handle_gone(&mut self, version: Option<ResourceVersion>) {
        if let (Lock::Present { snapshot, .. }, Some(version)) = (&self.lock, version)
            && version < snapshot.version
        {
            return;
        }
        self.lock = Lock::Absent;
        if let Mode::Replace(campaign) = &mut self.mode {
            campaign.applied = None;
        }
    }

    /// The write that [`Self::poll`] asked for has been sent and answered, or not. What a success wrote is to be
    /// handed to [`Self::handle_lock`] first.
    pub(crate) fn handle_outcome(&mut self, now: Instant, applied: bool) {
        let Mode::Replace(campaign) = &mut self.mode else {
            return;
        };
        campaign.in_flight = false;
        if applied {
            campaign.failures = 0;
            return;
        }
        let factor = 1u32.checked_shl(campaign.failures).unwrap_or(u32::MAX);
        let pause = CandidateTiming::RETRY_MIN
            .saturating_mul(factor)
            .min(campaign.timing.retry_period);
        campaign.failures = campaign.failures.saturating_add(1);
        campaign.retry_at = now.after(pause);
    }

    /// The newest revision of the lock that is known.
    pub(crate) fn version(&self) -> Option<ResourceVersion> {
        match &self.lock {
            Lock::Present { snapshot, .. } => Some(snapshot.version),
            Lock::Absent | Lock::Unknown => None,
        }
    }

    /// Who decides at `now`.
    pub(crate) fn charge(&self, now: Instant) -> Charge {
        let (holder, expires_at) = match &self.lock {
            Lock::Unknown => return Charge::Unknown,
            Lock::Absent => (None, now),
            Lock::Present { snapshot, since } => (
                snapshot.record.holder.as_ref(),
                since.after(self.duration_of(&snapshot.record)),
            ),
        };
        if let Some(holder) = holder
            && is_stranger(holder)
            && now < expires_at
        {
            return Charge::Builtin(holder.clone());
        }
        let held = match &self.mode {
            Mode::Respect => true,
            Mode::Replace(campaign) => match holder {
                Some(holder) if holder == &campaign.me => campaign.holds(now),
                Some(holder) => !is_stranger(holder) && now < expires_at,
                None => false,
            },
        };
        if held && now >= self.quiet_at {
            Charge::Ours
        } else {
            Charge::Pending
        }
    }

    /// The write to perform now. After one, [`Self::handle_outcome`] is owed before the next.
    pub(crate) fn poll(&mut self, now: Instant, wall: Timestamp) -> Option<Act> {
        let Mode::Replace(campaign) = &mut self.mode else {
            return None;
        };
        if campaign.in_flight || now < campaign.retry_at {
            return None;
        }
        let (snapshot, since) = match &self.lock {
            Lock::Unknown => return None,
            Lock::Absent => {
                campaign.in_flight = true;
                return Some(Act::Create(LeaseRecord::born(None)));
            }
            Lock::Present { snapshot, since } => (snapshot, *since),
        };
        let record = &snapshot.record;
        let at = wall.differing_from(record.renew_time);
        let next = match &record.holder {
            Some(holder) if holder == &campaign.me => {
                if campaign.renew_at().is_some_and(|due| now < due) {
                    return None;
                }
                LeaseRecord {
                    renew_time: Some(at),
                    ..record.clone()
                }
            }
            // Another elector keeps the built-in one quiet just as well, while it lives.
            Some(holder) if !is_stranger(holder) && now < since.after(campaign.missed(record)) => {
                return None;
            }
            _ => record.granted(campaign.me.clone(), campaign.timing.lease_duration, at),
        };
        campaign.in_flight = true;
        let deadline = campaign.timing.renew_deadline;
        campaign.sent.retain(|(_, sent)| now < sent.after(deadline));
        campaign.sent.push((at, now));
        Some(Act::Write(snapshot.replace(next)))
    }

    /// When [`Self::charge`] or [`Self::poll`] next say something else if nothing is seen before.
    pub(crate) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let mut wakes = vec![self.quiet_at];
        if let Lock::Present { snapshot, since } = &self.lock {
            wakes.push(since.after(self.duration_of(&snapshot.record)));
        }
        if let Mode::Replace(campaign) = &self.mode {
            wakes.extend(campaign.deadline());
            if let Lock::Present { snapshot, since } = &self.lock {
                wakes.push(since.after(campaign.missed(&snapshot.record)));
            }
            if !campaign.in_flight {
                wakes.push(campaign.retry_at);
                wakes.extend(campaign.renew_at());
            }
        }
        wakes.into_iter().filter(|at| *at > now).min()
    }

    /// The write that lets go of the lock, if it is ours; once everything that it protects has stopped.
    pub(crate) fn release(&self, now: Instant, wall: Timestamp) -> Option<LeaseWrite> {
        let (Mode::Replace(campaign), Lock::Present { snapshot, .. }) = (&self.mode, &self.lock)
        else {
            return None;
        };
        let held = snapshot.record.holder.as_ref() == Some(&campaign.me) && campaign.holds(now);
        held.then(|| snapshot.replace(snapshot.record.released(wall)))
    }

    /// Whether a record of the lock is one that this process sent and has not seen before.
    fn wrote(&self, record: &LeaseRecord) -> bool {
        match &self.mode {
            Mode::Respect => false,
            Mode::Replace(campaign) => {
                record.holder.as_ref() == Some(&campaign.me)
                    && campaign
                        .sent
                        .iter()
                        .any(|(written, _)| record.renew_time == Some(*written))
            }
        }
    }

    fn duration_of(&self, record: &LeaseRecord) -> Duration {
        record.duration().unwrap_or(self.longest)
    }
}

// === impl Charge ===

impl fmt::Display for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => {
                f.write_str("the lock of the built-in controller has not been read yet")
            }
            Self::Ours => f.write_str("no built-in controller is electing"),
            Self::Builtin(holder) => {
                write!(f, "left to the built-in controller, which runs as {holder}")
            }
            Self::Pending => f.write_str("the built-in controller may not have stopped yet"),
        }
    }
}

// === impl Campaign ===

impl Campaign {
    /// Learns from a revision which write was applied, or that the lock was lost.
    fn note(&mut self, record: &LeaseRecord) {
        if record.holder.as_ref() != Some(&self.me) {
            self.applied = None;
            return;
        }
        let seen = |(written, _): &(Timestamp, Instant)| record.renew_time == Some(*written);
        if let Some(index) = self.sent.iter().position(seen) {
            self.applied = Some(self.sent[index].1);
            self.sent.drain(..=index);
        }
    }

    /// Whether the lock is ours at `now`.
    fn holds(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| now < deadline)
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.applied?.after(self.timing.renew_deadline))
    }

    /// How long the record of another elector may stay as it is before the lock is taken over from it: longer than a
    /// renewal takes to come, and much shorter than its duration. The built-in controller has been waiting for that
    /// since the renewal; whoever starts after a crash has seen the record later, and would always come second.
    fn missed(&self, record: &LeaseRecord) -> Duration {
        let missed = self.timing.renew_deadline / 2;
        record
            .duration()
            .map_or(missed, |duration| duration.min(missed))
    }

    fn renew_at(&self) -> Option<Instant> {
        Some(self.applied?.after(self.timing.renew_interval))
    }
}

/// The identity under which an elector holds the lock: recognisable by other electors, new in each life of a process.
pub(crate) fn lock_identity(host: &str, random: u64) -> Identity {
    let text = format!("{OUR_PREFIX}{host}_{random:016x}");
    Identity::new(text).expect("a text with a prefix is not empty")
}

/// Whether a holder of the lock is a built-in controller rather than one of us.
fn is_stranger(holder: &Identity) -> bool {
    let ours = holder.as_str().strip_prefix(OUR_PREFIX);
    !ours.is_some_and(|rest| rest.contains('_'))
}

#[cfg(test)]
mod tests;
