//! The decision of a step, as data: effects, the reason, and when to step again.

mod text;

use std::time::Duration;

use crate::elector::hold_back::HoldBackCause;
use crate::elector::wake::Wake;
use crate::lease::{LeaseRecord, LeaseWrite};
use crate::names::{Identity, ResourceVersion, Term, Uid};
use crate::rejection::Rejection;
use crate::renumber::{Renumber, Renumbering};
use crate::resolution::Conflict;
use crate::strategy::name::StrategyName;
use crate::time::{Instant, Timestamp};

/// The outcome of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Writes to perform now, in this order.
    pub effects: Vec<Effect>,
    /// When to step again if nothing is seen before.
    pub wake: Option<Wake>,
    /// Why.
    pub reason: Reason,
}

/// A write to perform. Each names the revision that was judged ([R2](crate::rules#r2)).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// POST a born record. It may land late, so it names no holder.
    Create(LeaseRecord),
    /// PUT a Lease: a grant, a preference, its withdrawal, or a stamp of the strategy.
    Write(LeaseWrite),
    /// PUT `pingTime` of a candidate: a ping, a re-ping, or the settlement of one ([R15](crate::rules#r15)).
    Ping {
        /// The candidate.
        name: Identity,
        /// Its uid.
        uid: Uid,
        /// Its revision that was judged.
        version: ResourceVersion,
        /// The pingTime to write.
        ping: Timestamp,
    },
    /// DELETE a candidate that has been silent for its validity and left a last ping without an ack.
    Collect {
        /// The candidate.
        name: Identity,
        /// Its uid.
        uid: Uid,
        /// Its revision that was judged.
        version: ResourceVersion,
    },
}

/// Why a lease is granted: the event that freed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantCause {
    /// Its holder released it.
    Released,
    /// It is unheld, and was provably absent or unchanged until no process can lead ([R6](crate::rules#r6)).
    Unheld,
    /// Its record has not changed for its whole duration ([R4](crate::rules#r4)).
    Expired {
        /// The holder whose term ended.
        holder: Identity,
        /// The duration of the record.
        after: Duration,
    },
    /// A grant was not accepted in time ([R5](crate::rules#r5)).
    NotAccepted {
        /// The electee that did not accept.
        holder: Identity,
        /// The accept window.
        after: Duration,
    },
}

/// Why a step decided as it did. `Display` is one line for the log and for `elector explain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No complete list has been seen.
    NotSynced,
    /// No candidate names this lease.
    NoCandidate,
    /// No candidate can be elected; the first by name and what it lacks.
    NoEligible {
        /// The candidate.
        name: Identity,
        /// Its defect.
        rejection: Rejection,
        /// The number of others.
        others: usize,
    },
    /// Candidates disagree on the strategy.
    StrategyConflict(Conflict),
    /// The strategy is decided by another elector.
    ForeignStrategy(StrategyName),
    /// The Lease does not exist.
    Missing,
    /// The Lease was created; the watch has not brought it yet.
    AwaitCreated,
    /// Unheld, but a former holder may still believe that it leads ([R6](crate::rules#r6)).
    AwaitProof {
        /// The time left.
        remaining: Duration,
    },
    /// A grant has not been accepted yet.
    AwaitAccept {
        /// The electee.
        holder: Identity,
    },
    /// The holder is late; standbys are pinged, so that the ack is in at expiry.
    HolderLate {
        /// The late holder.
        holder: Identity,
        /// The candidate that would be granted the lease.
        next: Option<Identity>,
    },
    /// Candidates have been pinged and have time to answer.
    AwaitAck(Vec<Identity>),
    /// No candidate answers its ping.
    NoAck(Vec<Identity>),
    /// The holder is the best.
    HolderIsBest(Identity),
    /// The holder is no candidate: a plain client, left alone while it renews.
    HolderIsNoCandidate(Identity),
    /// A better candidate exists, but this holder cannot be asked to yield: the server drops `spec.preferredHolder` and
    /// the holder reads nothing else.
    HolderCannotYield {
        /// The holder.
        holder: Identity,
        /// The better candidate.
        better: Identity,
    },
    /// Better candidates exist and do not answer.
    BetterIsSilent {
        /// The holder.
        holder: Identity,
        /// The better candidates.
        silent: Vec<Identity>,
    },
    /// A better candidate is not preferred yet, since hand-overs fail or are many ([R23](crate::rules#r23)), or
    /// preferences are withdrawn ([R16](crate::rules#r16)).
    HeldBack {
        /// The holder.
        holder: Identity,
        /// The best of the better candidates.
        better: Identity,
        /// Why.
        because: HoldBackCause,
        /// The time left.
        remaining: Duration,
    },
    /// A better candidate is not preferred, since an operator froze the lease ([R16](crate::rules#r16)).
    Frozen {
        /// The holder.
        holder: Identity,
        /// The best of the better candidates.
        better: Identity,
        /// The time left.
        remaining: Duration,
    },
    /// The holder has been asked to make room.
    AwaitYield {
        /// The holder.
        holder: Identity,
        /// The candidate that it is to make room for.
        preferred: Identity,
    },
    /// The lease is granted.
    Granted {
        /// The electee.
        to: Identity,
        /// The new term.
        term: Term,
        /// Why the lease was free.
        cause: GrantCause,
        /// Why this one, as a fragment that follows its name.
        because: String,
        /// Better candidates that did not answer.
        silent: Vec<Identity>,
    },
    /// The holder is asked to make room.
    Preferred {
        /// The better candidate.
        preferred: Identity,
        /// The holder.
        holder: Identity,
        /// Why, as a fragment that follows the candidate's name.
        because: String,
    },
    /// The holder is no longer asked to make room.
    Withdrawn {
        /// The candidate that it was to make room for.
        preferred: Identity,
        /// The holder.
        holder: Identity,
        /// Why, as a fragment that follows the candidate's name.
        because: &'static str,
    },
}

// === impl Decision ===

impl Decision {
    /// The instant of [`Self::wake`].
    pub fn wake_at(&self) -> Option<Instant> {
        self.wake.map(|wake| wake.at)
    }
}

// === impl Effect ===

impl Renumber for Effect {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Create(record) => record.renumber(by),
            Self::Write(write) => write.renumber(by),
            Self::Ping { version, ping, .. } => {
                version.renumber(by);
                by.candidate_time(ping);
            }
            Self::Collect { version, .. } => version.renumber(by),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Uid;

    /// The numbers that were visited.
    #[derive(Default)]
    struct VisitedNumbers(usize);

    impl Renumbering for VisitedNumbers {
        fn version(&mut self, _: &mut ResourceVersion) {
            self.0 += 1;
        }

        fn candidate_time(&mut self, _: &mut Timestamp) {
            self.0 += 1;
        }
    }

    #[test]
    fn each_number_of_an_effect_is_visited() {
        let (name, uid, version) = (
            Identity::new("a").unwrap(),
            Uid::new("1"),
            ResourceVersion(7),
        );
        let collect = Effect::Collect {
            name: name.clone(),
            uid: uid.clone(),
            version,
        };
        let ping = Effect::Ping {
            name,
            uid,
            version,
            ping: Timestamp::MIN,
        };
        for (mut effect, expected) in [(ping, 2), (collect, 1)] {
            let mut visited = VisitedNumbers::default();
            effect.renumber(&mut visited);
            assert_eq!(visited.0, expected, "{effect:?}");
        }
    }
}
