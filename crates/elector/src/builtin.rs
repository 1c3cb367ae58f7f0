//! Living with the elector that is built into kube-apiserver: its lock, watched or taken.
//!
//! Where the gate is on, one API server holds the Lease `kube-system/leader-election-controller` and elects. Two such
//! controllers would undo each other's work, so leases of the built-in strategy are ours only while that one is quiet:
//!
//! ```text
//!   the lock, as it was seen ──────────────────────────> BuiltinLock ── authority(now) ──> the controller that decides
//!   whether we hold it, by protocol::holder (with --replace-builtin) ──┘
//! ```
//!
//! Freshness is measured by our own stop-watch (R4). Overwriting the lock does not stop the built-in one at once: it
//! goes on electing up to its own deadline, which lies within the duration of the record that was overwritten. That is
//! how long we wait. Where the gate is off the lock does not exist, and there is nothing to wait for. That controller
//! sees no candidates that are custom resources, so with those its lock is not read.

use std::fmt;
use std::time::Duration;

use elector_protocol::{
    Freshness, Identity, Instant, LeasePresence, LeaseRecord, LeaseSnapshot, LeaseWatch,
    NewsSource, ObservedLease, ResourceVersion, Token,
};

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

/// The lock as this elector sees it.
#[derive(Clone, Debug)]
pub(crate) struct BuiltinLock {
    mode: LockMode,
    /// The validity of a record without a usable duration, and of one of unknown history.
    longest: Duration,
    lock: LeaseWatch,
    /// From when on no earlier holder of the lock can still decide.
    quiet_at: Instant,
}

#[derive(Clone, Debug)]
enum LockMode {
    Respect,
    /// Under this identity.
    Replace(Identity),
}

// === impl BuiltinLock ===

impl BuiltinLock {
    /// Leaves the lock alone. `longest` is the longest lease duration in use (`W_max`).
    pub(crate) fn respected(longest: Duration) -> Self {
        Self::new(LockMode::Respect, longest)
    }

    /// No built-in controller sees the candidates: there is nothing to ask about, and nothing to take.
    pub(crate) fn unconcerned(longest: Duration) -> Self {
        Self {
            lock: LeaseWatch::absent(Instant::default()),
            ..Self::respected(longest)
        }
    }

    /// The lock is taken and kept under that identity.
    pub(crate) fn replaced(me: Identity, longest: Duration) -> Self {
        Self::new(LockMode::Replace(me), longest)
    }

    fn new(mode: LockMode, longest: Duration) -> Self {
        Self {
            mode,
            longest,
            lock: LeaseWatch::unknown(),
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
        if self.lock.freshness(snapshot.version, source) == Freshness::Known {
            return;
        }
        let unknown_past = self.is_past_unknown(&snapshot, source);
        let overwritten = self
            .holder()
            .filter(|(holder, _)| is_builtin(holder))
            .map(|(_, lock)| self.duration_of(lock));
        self.lock.observe(now, snapshot, source);
        let Some((holder, lock)) = self.holder() else {
            return;
        };
        let quiet_at = if is_builtin(holder) {
            lock.expires_at(self.longest)
        } else if unknown_past {
            // The holder before this one, and when it was replaced, is not known.
            now.after(self.duration_of(lock).max(self.longest))
        } else {
            now.after(overwritten.unwrap_or_default())
        };
        self.quiet_at = self.quiet_at.max(quiet_at);
    }

    /// The lock was seen deleted, or is missing in a complete list.
    pub(crate) fn handle_gone(&mut self, now: Instant, version: Option<ResourceVersion>) {
        let known = self.version();
        if version.is_none_or(|version| known.is_none_or(|known| known <= version)) {
            self.lock.observe_absence(now, NewsSource::List);
        }
    }

    /// The newest revision of the lock that is known.
    pub(crate) fn version(&self) -> Option<ResourceVersion> {
        self.lock.lease().map(|lock| lock.snapshot.version)
    }

    /// The controller that decides at `now`. `holds` says whether this process believes that it holds the lock.
    pub(crate) fn authority(&self, now: Instant, holds: bool) -> Authority {
        if *self.lock.presence() == LeasePresence::Unknown {
            return Authority::Unknown;
        }
        let (holder, expires_at) = self.holder().map_or((None, now), |(holder, lock)| {
            (Some(holder), lock.expires_at(self.longest))
        });
        if let Some(holder) = holder
            && is_builtin(holder)
            && now < expires_at
        {
            return Authority::Builtin(holder.clone());
        }
        let held = match &self.mode {
            LockMode::Respect => true,
            LockMode::Replace(me) => match holder {
                Some(holder) if holder == me => holds,
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

    /// When [`Self::authority`] next says something else if nothing is seen before, and the belief lasts.
    pub(crate) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let lock = self.lock.lease();
        let expires_at = lock.map(|lock| lock.expires_at(self.longest));
        let wakes = [Some(self.quiet_at), expires_at];
        wakes.into_iter().flatten().filter(|at| *at > now).min()
    }

    /// The holder of the lock, and the lock.
    fn holder(&self) -> Option<(&Identity, &ObservedLease)> {
        let lock = self.lock.lease()?;
        Some((lock.snapshot.record.holder.as_ref()?, lock))
    }

    /// True if the built-in controller may have held the lock before this revision without being seen.
    fn is_past_unknown(&self, snapshot: &LeaseSnapshot, source: NewsSource) -> bool {
        match self.lock.presence() {
            LeasePresence::Unknown => true,
            // A gap of the watch may hide a term of the built-in controller, unless this is the term from before it or
            // a write of our own, which replaced just what we knew.
            LeasePresence::Absent { .. } => source == NewsSource::List,
            LeasePresence::Present(known) => {
                let known = &known.snapshot;
                let term =
                    |of: &LeaseSnapshot| (of.uid.clone(), of.record.holder.clone(), of.record.term);
                source == NewsSource::List
                    && term(known) != term(snapshot)
                    && !self.wrote_over(known, &snapshot.record)
            }
        }
    }

    /// True if this process wrote a record over just what was known, as its token says (R14).
    fn wrote_over(&self, known: &LeaseSnapshot, record: &LeaseRecord) -> bool {
        match &self.mode {
            LockMode::Respect => false,
            LockMode::Replace(me) => {
                record.holder.as_ref() == Some(me) && record.token == Some(Token(known.version))
            }
        }
    }

    fn duration_of(&self, lock: &ObservedLease) -> Duration {
        lock.snapshot.record.duration().unwrap_or(self.longest)
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
                write!(f, "left to the built-in controller {holder}")
            }
            Self::Standby => f.write_str("the built-in controller may not have stopped yet"),
        }
    }
}

/// True if a holder of the lock is a built-in controller rather than one of us.
fn is_builtin(holder: &Identity) -> bool {
    !holder.is_elector()
}

#[cfg(test)]
mod tests;
