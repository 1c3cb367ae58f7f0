//! A candidate's own object: created, kept, acked for, and deleted at a clean end.

use std::sync::Arc;
use std::time::Duration;

use crate::holder::ReadFailed;
use crate::names::{ResourceVersion, Uid};
use crate::renumber::renumber;
use crate::time::{Instant, Timestamp};
use crate::tracked::TrackedObject;

/// One process's own LeaseCandidate.
///
/// It is created with the versions and the strategy of this process, or taken over from an earlier life of the same
/// name; every ping (`pingTime` later than `renewTime`) is acked by a write of renewTime; an object that disappears is
/// created again, one that another client overwrote is written anew. It is not refreshed without a ping: electors ping
/// before they collect.
///
/// Nothing here bears on safety. A stale view costs a conflict.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Registration {
    lease: Arc<str>,
    tracked: TrackedObject,
    seen: Option<CandidateSnapshot>,
    ownership: Ownership,
    write: Option<RegistrationWrite>,
    acks: bool,
    goal: RegistrationGoal,
    /// The revision that another client made say what this process does not offer.
    overwritten: Option<ResourceVersion>,
    repaired: Option<Instant>,
}

/// The facts of one object revision that a registration needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CandidateSnapshot {
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`.
    pub version: ResourceVersion,
    /// `spec.leaseName`, which the API server does not let change.
    pub lease: Arc<str>,
    /// `spec.pingTime`.
    pub ping: Option<Timestamp>,
    /// `spec.renewTime`.
    pub renew: Option<Timestamp>,
}

/// News from a watch of the own LeaseCandidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CandidateEvent {
    /// A revision, from an event.
    Seen(CandidateSnapshot),
    /// A revision, from a list.
    Listed(CandidateSnapshot),
    /// It was deleted, at this version.
    Deleted(ResourceVersion),
    /// A list of this version did not contain it.
    Absent(ResourceVersion),
}

/// The outcome of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegistrationDecision {
    /// The request to send now.
    pub effect: Option<RegistrationEffect>,
    /// When to step again if nothing happens before.
    pub wake_at: Option<Instant>,
}

/// A request for the own LeaseCandidate. The caller knows the spec: versions, strategy, annotations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RegistrationEffect {
    /// GET it, and report by [`Registration::handle_read`].
    Read,
    /// POST it, and report by [`Registration::handle_outcome`].
    Create {
        /// `spec.renewTime`.
        renew: Timestamp,
    },
    /// PUT it with our spec on this revision, and report by [`Registration::handle_outcome`].
    Replace {
        /// The uid of the revision.
        uid: Uid,
        /// The revision.
        version: ResourceVersion,
        /// `spec.pingTime`, carried over; `None` where no later ping could follow it.
        ping: Option<Timestamp>,
        /// `spec.renewTime`: the ack.
        renew: Timestamp,
    },
    /// DELETE it under this uid, and report by [`Registration::handle_outcome`].
    Delete {
        /// The uid.
        uid: Uid,
    },
}

/// The end of a write of the own LeaseCandidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrationOutcome {
    /// It was applied; the reply of a create or a replace.
    Done(Option<CandidateSnapshot>),
    /// An object of the name exists, or has another version or uid.
    Conflict,
    /// There is no such object.
    Gone,
    /// The server refused it for another reason.
    Refused,
    /// Its outcome is unknown.
    Unknown,
}

/// The relation of this process to the object that bears its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ownership {
    /// This process has sent nothing yet.
    Stranger,
    /// A write of this process may have been applied.
    Tried,
    /// This process wrote the object seen.
    Registered,
}

/// A write under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RegistrationWrite {
    Write,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RegistrationGoal {
    Registered,
    Withdrawn,
    Done,
}

// === impl Registration ===

impl Registration {
    /// The longest pause between failed attempts. 5 s.
    pub const RETRY_MAX: Duration = Duration::from_secs(5);
    /// The first pause after a failed attempt. 250 ms.
    pub const RETRY_MIN: Duration = Duration::from_millis(250);
    /// The least time between two repairs: another life of this name may offer something else and repair it too. 30 s.
    pub const REPAIR_PAUSE: Duration = Duration::from_secs(30);

    const PAUSES: (Duration, Duration) = (Self::RETRY_MIN, Self::RETRY_MAX);

    /// A registration for the Lease of this name, in the candidate's own namespace.
    pub fn new(lease: impl Into<Arc<str>>) -> Self {
        Self {
            lease: lease.into(),
            tracked: TrackedObject::unknown(),
            seen: None,
            ownership: Ownership::Stranger,
            write: None,
            acks: true,
            goal: RegistrationGoal::Registered,
            overwritten: None,
            repaired: None,
        }
    }

    /// True if this process wrote the object that was seen last.
    pub fn is_registered(&self) -> bool {
        self.ownership == Ownership::Registered && self.seen.is_some()
    }

    /// True once a withdrawal that was asked for is over: the object is gone, or may not be deleted.
    pub fn is_withdrawn(&self) -> bool {
        self.goal == RegistrationGoal::Done
    }

    /// The name of another Lease that the object of our name is bound to. While there is one, nothing can be done:
    /// `spec.leaseName` does not change, and the object may belong to a process that lives.
    pub fn bound_elsewhere(&self) -> Option<&str> {
        let seen = self.seen.as_ref()?;
        (seen.lease != self.lease).then(|| &*seen.lease)
    }

    /// The newest revision known, `None` where there is none.
    pub fn seen(&self) -> Option<ResourceVersion> {
        self.seen.as_ref().map(|seen| seen.version)
    }

    /// Asks for a read of the object: for callers that have heard nothing for longer than they should.
    pub fn request_read(&mut self) {
        self.want_read();
    }

    /// Turns acks of pings on (the default) or off. A candidate that could not accept a grant keeps silent, so that it
    /// is not elected.
    pub fn ack_pings(&mut self, acks: bool) {
        self.acks = acks;
    }

    /// This revision, which another client wrote, does not say what this process offers, or cannot be read: unless
    /// there is a newer one by then, it is written anew.
    pub fn handle_overwritten(&mut self, version: ResourceVersion) {
        self.overwritten = Some(version);
    }

    /// Deletes the object, once and for all.
    pub fn withdraw(&mut self) {
        if self.goal == RegistrationGoal::Registered {
            self.goal = RegistrationGoal::Withdrawn;
            // A pause was for the sake of another request.
            self.tracked.backoff.reset();
        }
    }

    /// News from a watch of the own object. Revisions older than the newest one known are ignored; where a list shows one,
    /// or no object at such a version, the next step reads the object.
    pub fn handle_event(&mut self, event: CandidateEvent) {
        match event {
            CandidateEvent::Seen(snapshot) => self.see(snapshot),
            CandidateEvent::Listed(snapshot) => {
                // The list was overtaken, or the store was restored (R4).
                if self.tracked.newest > Some(snapshot.version) {
                    self.want_read();
                }
                self.see(snapshot);
            }
            CandidateEvent::Deleted(version) | CandidateEvent::Absent(version)
                if self.tracked.is_news(version) =>
            {
                self.tracked.newest = Some(version);
                self.seen = None;
                self.tracked.overtake();
            }
            CandidateEvent::Deleted(_) => {}
            CandidateEvent::Absent(_) => {
                if self.seen.is_some() {
                    self.want_read();
                }
            }
        }
    }

    /// The reply to [`RegistrationEffect::Read`]; `Ok(None)` says that there is no such object.
    pub fn handle_read(
        &mut self,
        now: Instant,
        reply: Result<Option<CandidateSnapshot>, ReadFailed>,
    ) {
        let newest_there_is = self.tracked.end_read();
        match reply {
            Ok(Some(snapshot)) => {
                if newest_there_is {
                    // It is believed even where it is older than what was seen: the store may have been restored.
                    self.tracked.newest = None;
                }
                self.see(snapshot);
            }
            Ok(None) if newest_there_is => self.seen = None,
            // Which of the two came first is open.
            Ok(None) => self.want_read(),
            Err(ReadFailed) => {
                self.fail(now);
                self.want_read();
            }
        }
    }

    /// The end of the write under way.
    pub fn handle_outcome(&mut self, now: Instant, outcome: RegistrationOutcome) {
        let Some(write) = self.write.take() else {
            return;
        };
        let deleting = write == RegistrationWrite::Delete;
        match outcome {
            RegistrationOutcome::Done(_) | RegistrationOutcome::Refused if deleting => {
                self.goal = RegistrationGoal::Done;
            }
            RegistrationOutcome::Done(snapshot) => {
                self.tracked.backoff.reset();
                if let Some(snapshot) = snapshot {
                    self.see(snapshot);
                }
                self.overwritten = None;
                self.ownership = Ownership::Registered;
            }
            RegistrationOutcome::Gone => self.seen = None,
            RegistrationOutcome::Conflict => {
                self.tracked.conflict(now, Self::PAUSES);
                self.want_read();
            }
            RegistrationOutcome::Refused => self.fail(now),
            RegistrationOutcome::Unknown => {
                self.fail(now);
                self.want_read();
            }
        }
    }

    /// The effect due now, and when to step again.
    pub fn step(&mut self, now: Instant, wall: Timestamp) -> RegistrationDecision {
        let busy = self.write.is_some() || self.tracked.is_reading();
        if busy || self.goal == RegistrationGoal::Done {
            return RegistrationDecision::default();
        }
        let (write, effect) = if self.tracked.wants_read() {
            (None, RegistrationEffect::Read)
        } else {
            match self.wanted(now, wall) {
                Some((write, effect)) => (Some(write), effect),
                None => {
                    return RegistrationDecision {
                        effect: None,
                        wake_at: self.repair_due().filter(|due| now < *due),
                    };
                }
            }
        };
        if let Some(pause) = self.tracked.backoff.pause(now) {
            return RegistrationDecision {
                effect: None,
                wake_at: Some(pause),
            };
        }
        match write {
            None => self.tracked.begin_read(),
            Some(RegistrationWrite::Write) if self.ownership == Ownership::Stranger => {
                self.ownership = Ownership::Tried;
            }
            Some(_) => {}
        }
        self.write = write;
        RegistrationDecision {
            effect: Some(effect),
            wake_at: None,
        }
    }

    fn wanted(
        &mut self,
        now: Instant,
        wall: Timestamp,
    ) -> Option<(RegistrationWrite, RegistrationEffect)> {
        if self.goal == RegistrationGoal::Withdrawn {
            let seen = self.seen.as_ref();
            let Some(ours) = seen.filter(|_| self.ownership != Ownership::Stranger) else {
                self.goal = RegistrationGoal::Done;
                return None;
            };
            let uid = ours.uid.clone();
            return Some((
                RegistrationWrite::Delete,
                RegistrationEffect::Delete { uid },
            ));
        }
        let Some(seen) = &self.seen else {
            return Some((
                RegistrationWrite::Write,
                RegistrationEffect::Create { renew: wall },
            ));
        };
        // At the end of time no later ping is possible (R15).
        let last = |time: Option<Timestamp>| time.is_some_and(|time| time.next().is_none());
        let ping = seen.ping.filter(|_| !last(seen.ping));
        let pinged = seen.ping.is_some() && seen.ping > seen.renew;
        let broken = self.overwritten == Some(seen.version) || last(seen.renew) || last(seen.ping);
        let repair = broken && self.repair_due().is_none_or(|due| due <= now);
        let due = self.ownership != Ownership::Registered
            || ((pinged && ping.is_some() || repair) && self.acks);
        if !due || seen.lease != self.lease {
            return None;
        }
        let ack = ping.map_or(wall, |ping| ping.max(wall));
        let effect = RegistrationEffect::Replace {
            uid: seen.uid.clone(),
            version: seen.version,
            ping,
            renew: ack.differing_from(seen.renew),
        };
        if repair {
            self.repaired = Some(now);
        }
        Some((RegistrationWrite::Write, effect))
    }

    /// When the next repair may be made, if one was.
    fn repair_due(&self) -> Option<Instant> {
        Some(self.repaired?.after(Self::REPAIR_PAUSE))
    }

    /// Takes in a revision, unless it is older than the newest one known.
    fn see(&mut self, snapshot: CandidateSnapshot) {
        if !self.tracked.is_news(snapshot.version) {
            return;
        }
        let same = self.seen.as_ref().map(|seen| &seen.uid) == Some(&snapshot.uid);
        if !same && self.ownership == Ownership::Registered {
            self.ownership = Ownership::Tried;
        }
        self.tracked.newest = Some(snapshot.version);
        self.seen = Some(snapshot);
        self.tracked.overtake();
    }

    fn want_read(&mut self) {
        if self.write.is_none() {
            self.tracked.want_read();
        }
    }

    fn fail(&mut self, now: Instant) {
        self.tracked.fail(now, Self::PAUSES);
    }
}

renumber!(Registration {
    tracked,
    seen,
    overwritten,
    repaired
});

// === impl CandidateSnapshot ===

renumber!(CandidateSnapshot { version, ping => candidate_time, renew => candidate_time });

#[cfg(test)]
mod tests;
