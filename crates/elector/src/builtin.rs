//! Living with the elector that is built into kube-apiserver: its lock, watched or taken.
//!
//! Where the gate is on, one API server holds the Lease `kube-system/leader-election-controller` and elects. Two such
//! controllers would undo each other's work, so leases of the built-in strategy are ours only while that one is quiet:
//!
//! ```text
//!   the lock, as it was seen ──> BuiltinLock ──┬─ authority(now) ──> the controller that decides
//!                                              └─ due_write(now) ──> writes that take and keep the lock (with --replace-builtin)
//! ```
//!
//! Freshness is measured by our own stop-watch (R4). Overwriting the lock does not stop the built-in one at once: it
//! goes on electing up to its own deadline, which lies within the duration of the record that was overwritten. That is
//! how long we wait. Where the gate is off the lock does not exist, and there is nothing to wait for. That controller
//! sees no candidates that are custom resources, so with those its lock is not read.

mod lock_holder;

use std::fmt;
use std::time::Duration;

use elector_protocol::elector::NewsSource;
use elector_protocol::{
    CandidateTiming, Identity, Instant, LeaseRecord, LeaseSnapshot, LeaseWrite, ResourceVersion,
    Timestamp,
};

use self::lock_holder::LockHolder;

/// Namespace of the lock.
pub(crate) const LOCK_NAMESPACE: &str = "kube-system";
/// Name of the lock.
pub(crate) const LOCK_NAME: &str = "leader-election-controller";

/// The controller that decides about leases of the built-in strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Authority {
    /// The lock has not been seen yet, so that is not known.
    Unknown,
    /// This elector decides.
    Ours,
    /// The built-in controller, under this identity.
    Builtin(Identity),
    /// Neither for now: the lock is being taken, or the former holder may not have noticed yet.
    Standby,
}

/// A write of the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LockWrite {
    /// POST the lock, unheld (R2); taking it is the next write.
    Create(LeaseRecord),
    /// PUT the lock: taken, or renewed.
    Replace(LeaseWrite),
}

/// The lock as this elector sees it.
#[derive(Clone, Debug)]
pub(crate) struct BuiltinLock {
    mode: LockMode,
    /// How long a record without a usable duration counts, and one whose history is unknown.
    longest: Duration,
    lock: LockState,
    /// From when on no earlier holder of the lock can still decide.
    quiet_at: Instant,
}

#[derive(Clone, Debug)]
enum LockMode {
    Respect,
    Replace(LockHolder),
}

#[derive(Clone, Debug)]
enum LockState {
    Unknown,
    Absent,
    Present {
        snapshot: LeaseSnapshot,
        since: Instant,
    },
}

/// Identities of electors begin with this; those of API servers have no second underscore.
const OUR_PREFIX: &str = "elector_";

// === impl BuiltinLock ===

impl BuiltinLock {
    /// Leaves the lock alone. `longest` is the longest lease duration in use (`W_max`).
    pub(crate) fn respected(longest: Duration) -> Self {
        Self::new(LockMode::Respect, longest)
    }

    /// No built-in controller sees the candidates: there is nothing to ask about, and nothing to take.
    pub(crate) fn unconcerned(longest: Duration) -> Self {
        Self {
            lock: LockState::Absent,
            ..Self::respected(longest)
        }
    }

    /// Takes the lock under an identity from [`lock_identity`], and renews it.
    pub(crate) fn replaced(me: Identity, timing: CandidateTiming, longest: Duration) -> Self {
        let own = LockHolder::new(me, timing);
        Self::new(LockMode::Replace(own), longest)
    }

    fn new(mode: LockMode, longest: Duration) -> Self {
        Self {
            mode,
            longest,
            lock: LockState::Unknown,
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
            LockState::Present {
                snapshot: known, ..
            } if snapshot.version <= known.version && source != NewsSource::List => return,
            LockState::Present {
                snapshot: known,
                since,
            } if known.uid == snapshot.uid && known.record.same_record(record) => {
                (*since, Some(known))
            }
            LockState::Present {
                snapshot: known, ..
            } => (now, Some(known)),
            LockState::Absent | LockState::Unknown => (now, None),
        };
        let unknown_past = match &self.lock {
            LockState::Unknown => true,
            // A gap of the watch may hide a term of the built-in controller, unless this is the term from before it or
            // a write of our own, which replaced just what we knew.
            LockState::Absent => source == NewsSource::List,
            LockState::Present {
                snapshot: known, ..
            } => {
                let term =
                    |of: &LeaseSnapshot| (of.uid.clone(), of.record.holder.clone(), of.record.term);
                source == NewsSource::List && term(known) != term(&snapshot) && !self.wrote(record)
            }
        };
        let overwrites = replaced
            .filter(|known| known.record.holder.as_ref().is_some_and(is_builtin))
            .map(|known| self.duration_of(&known.record));
        match holder {
            Some(holder) if is_builtin(holder) => {
                self.quiet_at = self.quiet_at.max(since.after(duration));
            }
            // The holder before this one, and when it was replaced, is not known.
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
        if let LockMode::Replace(own) = &mut self.mode {
            own.note(record);
        }
        self.lock = LockState::Present { snapshot, since };
    }

    /// The lock was seen deleted, or is missing in a complete list.
    pub(crate) fn handle_gone(&mut self, version: Option<ResourceVersion>) {
        if let (LockState::Present { snapshot, .. }, Some(version)) = (&self.lock, version)
            && version < snapshot.version
        {
            return;
        }
        self.lock = LockState::Absent;
        if let LockMode::Replace(own) = &mut self.mode {
            own.applied = None;
        }
    }

    /// The write that [`Self::due_write`] asked for has been sent and answered, or not. What a success wrote is to be
    /// handed to [`Self::handle_lock`] first.
    pub(crate) fn handle_outcome(&mut self, now: Instant, applied: bool) {
        let LockMode::Replace(own) = &mut self.mode else {
            return;
        };
        own.in_flight = false;
        if applied {
            own.failures = 0;
            return;
        }
        let factor = 1u32.checked_shl(own.failures).unwrap_or(u32::MAX);
        let pause = CandidateTiming::RETRY_MIN
            .saturating_mul(factor)
            .min(own.timing.retry_period);
        own.failures = own.failures.saturating_add(1);
        own.retry_at = now.after(pause);
    }

    /// The newest revision of the lock that is known.
    pub(crate) fn version(&self) -> Option<ResourceVersion> {
        match &self.lock {
            LockState::Present { snapshot, .. } => Some(snapshot.version),
            LockState::Absent | LockState::Unknown => None,
        }
    }

    /// The controller that decides at `now`.
    pub(crate) fn authority(&self, now: Instant) -> Authority {
        let (holder, expires_at) = match &self.lock {
            LockState::Unknown => return Authority::Unknown,
            LockState::Absent => (None, now),
            LockState::Present { snapshot, since } => (
                snapshot.record.holder.as_ref(),
                since.after(self.duration_of(&snapshot.record)),
            ),
        };
        if let Some(holder) = holder
            && is_builtin(holder)
            && now < expires_at
        {
            return Authority::Builtin(holder.clone());
        }
        let held = match &self.mode {
            LockMode::Respect => true,
            LockMode::Replace(own) => match holder {
                Some(holder) if holder == &own.me => own.holds(now),
                Some(holder) => !is_builtin(holder) && now < expires_at,
                None => false,
            },
        };
        if held && now >= self.quiet_at {
            Authority::Ours
        } else {
            Authority::Standby
        }
    }

    /// The write to perform now. After one, [`Self::handle_outcome`] is owed before the next.
    pub(crate) fn due_write(&mut self, now: Instant, wall: Timestamp) -> Option<LockWrite> {
        let LockMode::Replace(own) = &mut self.mode else {
            return None;
        };
        if own.in_flight || now < own.retry_at {
            return None;
        }
        let (snapshot, since) = match &self.lock {
            LockState::Unknown => return None,
            LockState::Absent => {
                own.in_flight = true;
                return Some(LockWrite::Create(LeaseRecord::born(None)));
            }
            LockState::Present { snapshot, since } => (snapshot, *since),
        };
        let record = &snapshot.record;
        let at = wall.differing_from(record.renew_time);
        let next = match &record.holder {
            Some(holder) if holder == &own.me => {
                if own.renew_at().is_some_and(|due| now < due) {
                    return None;
                }
                LeaseRecord {
                    renew_time: Some(at),
                    ..record.clone()
                }
            }
            // Another elector keeps the built-in one quiet just as well, while it lives.
            Some(holder) if !is_builtin(holder) && now < since.after(own.missed(record)) => {
                return None;
            }
            _ => record.granted(own.me.clone(), own.timing.lease_duration, at),
        };
        own.in_flight = true;
        let deadline = own.timing.renew_deadline;
        own.sent.retain(|(_, sent)| now < sent.after(deadline));
        own.sent.push((at, now));
        Some(LockWrite::Replace(snapshot.replace(next)))
    }

    /// When [`Self::authority`] or [`Self::due_write`] next say something else if nothing is seen before.
    pub(crate) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let mut wakes = vec![self.quiet_at];
        if let LockState::Present { snapshot, since } = &self.lock {
            wakes.push(since.after(self.duration_of(&snapshot.record)));
        }
        if let LockMode::Replace(own) = &self.mode {
            wakes.extend(own.deadline());
            if let LockState::Present { snapshot, since } = &self.lock {
                wakes.push(since.after(own.missed(&snapshot.record)));
            }
            if !own.in_flight {
                wakes.push(own.retry_at);
                wakes.extend(own.renew_at());
            }
        }
        wakes.into_iter().filter(|at| *at > now).min()
    }

    /// The write that lets go of the lock, if it is ours; once everything that it protects has stopped.
    pub(crate) fn release(&self, now: Instant, wall: Timestamp) -> Option<LeaseWrite> {
        let (LockMode::Replace(own), LockState::Present { snapshot, .. }) =
            (&self.mode, &self.lock)
        else {
            return None;
        };
        let held = snapshot.record.holder.as_ref() == Some(&own.me) && own.holds(now);
        held.then(|| snapshot.replace(snapshot.record.released(wall)))
    }

    /// Whether a record of the lock is one that this process sent and has not seen before.
    fn wrote(&self, record: &LeaseRecord) -> bool {
        match &self.mode {
            LockMode::Respect => false,
            LockMode::Replace(own) => {
                record.holder.as_ref() == Some(&own.me)
                    && own
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

// === impl Authority ===

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => {
                f.write_str("the lock of the built-in controller has not been read yet")
            }
            Self::Ours => f.write_str("no built-in controller is electing"),
            Self::Builtin(holder) => {
                write!(f, "left to the built-in controller, which runs as {holder}")
            }
            Self::Standby => f.write_str("the built-in controller may not have stopped yet"),
        }
    }
}

/// The identity under which an elector holds the lock: recognisable by other electors, new in each life of a process.
pub(crate) fn lock_identity(host: &str, random: u64) -> Identity {
    let text = format!("{OUR_PREFIX}{host}_{random:016x}");
    Identity::new(text).expect("a text with a prefix is not empty")
}

/// Whether a holder of the lock is a built-in controller rather than one of us.
fn is_builtin(holder: &Identity) -> bool {
    let ours = holder.as_str().strip_prefix(OUR_PREFIX);
    !ours.is_some_and(|rest| rest.contains('_'))
}

#[cfg(test)]
mod tests;
