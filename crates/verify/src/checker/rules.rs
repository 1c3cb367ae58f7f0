//! One change of a Lease against the rules: which move is it, or which invariant does it break?

use std::time::Duration;

use elector_api::Lease;
use elector_protocol::elector::{Actor, Move, Violation, audit};
use elector_protocol::{Identity, LeaseKey, LeaseRecord, LeaseSnapshot, Timestamp};

use super::acks::Acks;
use super::acquisition::AcquisitionCheck;
use super::broken_rule::BrokenRule;
use super::memory::{LastRevision, Memory};
use super::term_start::TermStart;
use crate::participants::{Implementation, LeasePurpose, Participants};
use crate::placeholder::is_reservation;
use crate::verdict::{Invariant, LeaseChangeKind};

/// The context of a revision that is held against the rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub(super) lease: &'a LeaseKey,
    pub(super) participants: &'a Participants,
    pub(super) memory: &'a Memory<'a>,
    pub(super) acks: &'a Acks,
}

// === impl Rules ===

impl Rules<'_> {
    /// S3–S7, S10 and S11 for one change of a Lease.
    pub(super) fn change(
        &self,
        last: &LastRevision<'_>,
        lease: &Lease,
        snapshot: &LeaseSnapshot,
        at: i64,
    ) -> Result<LeaseChangeKind, BrokenRule> {
        let (before, after) = (&last.snapshot.record, &snapshot.record);
        if before == after {
            return Ok(LeaseChangeKind::Signal); // labels or unknown fields
        }
        self.terms(before, after)?;
        if self.takes(before, after) {
            return match self.expired(last, before, after, at, TermStart::Taken) {
                Ok(()) => Ok(LeaseChangeKind::Take),
                Err(broken_rule) => Err(broken_rule.of_client_go()),
            };
        }
        self.one_holder(before, after)?;
        if is_reservation(before, after) {
            return Ok(LeaseChangeKind::Reserve);
        }
        if let Some(acquisition) = AcquisitionCheck::of(last.snapshot.version, before, after) {
            acquisition.form(lease)?;
            acquisition.carries_over(last.lease, lease)?;
            return self.acquired(last, &acquisition, at);
        }
        let actor = actor(before, after);
        if let Actor::Candidate(holder) = &actor
            && self.implementation(holder) == Some(Implementation::ClientGo)
        {
            self.shrinks(before, after)
                .map_err(BrokenRule::of_client_go)?;
            return Ok(match after.holder {
                Some(_) => LeaseChangeKind::OfClientGo,
                None => LeaseChangeKind::Release,
            });
        }
        let made = audit(before, after, &actor).map_err(|violation| {
            let writer = match &actor {
                Actor::Elector => "an elector's write".to_owned(),
                Actor::Candidate(name) => format!("a write of {name}"),
            };
            let shrunk = self.shrinks(before, after).err();
            let message = format!("{violation}; {writer}");
            shrunk.unwrap_or_else(|| BrokenRule::promised(broken(&violation), message))
        })?;
        match made {
            Move::GrantExpired | Move::GrantUnheld => {
                self.expired(last, before, after, at, TermStart::Granted)?;
                self.answered(last, after, at)?;
            }
            // A candidate that a stranger preferred is not the holder's choice.
            Move::HandOff if last.written_over.is_some() => {}
            Move::HandOff => self.stands(after.holder.as_ref())?,
            Move::Signal => self.left_alone(before, after)?,
            Move::Accept => {
                let token = after.token.map(|token| token.0);
                if token != Some(last.snapshot.version) {
                    let message = format!(
                        "the accept replaced @{} and wrote another token (R14); or a revision is missing here",
                        last.snapshot.version
                    );
                    return Err(BrokenRule::promised(Invariant::S5, message));
                }
            }
            // An acquisition is judged before, with the version that it replaced.
            Move::AcquireUnheld | Move::AcquireExpired => {}
            Move::Release | Move::Renew => {}
        }
        Ok(kind(made))
    }

    /// R2: a Lease that is created for candidates names no holder. Plain client-go holders create their own.
    pub(super) fn born(
        &self,
        lease: &Lease,
        record: &LeaseRecord,
    ) -> Result<LeaseChangeKind, BrokenRule> {
        let broken_rule = |message: String| Err(BrokenRule::promised(Invariant::S3, message));
        if let Some(holder) = &record.holder {
            return match self.implementation(holder) {
                Some(Implementation::ClientGo) => Ok(LeaseChangeKind::Create),
                _ => broken_rule(format!("created with the holder {holder} (R2)")),
            };
        }
        if lease.spec.holder_identity.is_none() {
            return broken_rule(
                "created without holderIdentity, which must be an empty text".to_owned(),
            );
        }
        if *record == LeaseRecord::born(record.strategy.clone()) {
            Ok(LeaseChangeKind::Create)
        } else {
            broken_rule(
                "created with a duration, times or a token, although a new Lease says nothing (R2)"
                    .to_owned(),
            )
        }
    }

    /// Terms never fall while the Lease exists.
    fn terms(&self, before: &LeaseRecord, after: &LeaseRecord) -> Result<(), BrokenRule> {
        // After the largest number that the API holds, counting starts over.
        if after.term >= before.term || before.term.next().0 == 0 {
            return Ok(());
        }
        let message = format!("the term fell from {} to {}", before.term, after.term);
        Err(BrokenRule::promised(Invariant::S5, message))
    }

    /// S3: each holder has a term of its own, since every move of R3 begins one.
    fn one_holder(&self, before: &LeaseRecord, after: &LeaseRecord) -> Result<(), BrokenRule> {
        let (Some(old), Some(new)) = (&before.holder, &after.holder) else {
            return Ok(());
        };
        if old == new || before.term != after.term {
            return Ok(());
        }
        let message =
            format!("{new} was written over {old} without a new term, which is no move of R3");
        let broken_rule = BrokenRule::promised(Invariant::S3, message);
        let of_client_go =
            [old, new].map(|name| self.implementation(name)) == [Some(Implementation::ClientGo); 2];
        Err(if of_client_go {
            broken_rule.of_client_go()
        } else {
            broken_rule
        })
    }

    /// S10: the duration of a term that was accepted.
    fn shrinks(&self, before: &LeaseRecord, after: &LeaseRecord) -> Result<(), BrokenRule> {
        let accepted = before.holder.is_some() && !before.is_unaccepted_grant();
        let same = before.holder == after.holder && before.term == after.term;
        match (before.duration(), after.duration()) {
            (Some(old), new) if accepted && same && new.is_none_or(|new| new < old) => {
                let message = format!(
                    "the duration shrank from {} s to {} s within term {}",
                    old.as_secs(),
                    new.unwrap_or_default().as_secs(),
                    before.term
                );
                Err(BrokenRule::promised(Invariant::S10, message))
            }
            _ => Ok(()),
        }
    }

    /// True where a plain client-go holder, which is no candidate, took the record by itself. Where no candidate was
    /// recorded, a lease without a strategy is taken for one that no elector serves.
    fn takes(&self, before: &LeaseRecord, after: &LeaseRecord) -> bool {
        let Some(taker) = &after.holder else {
            return false;
        };
        let unserved = || !self.acks.are_complete() && after.strategy.is_none();
        before.holder.as_ref() != Some(taker)
            && self.implementation(taker) == Some(Implementation::ClientGo)
            && (self.acks.is_no_candidate(taker) || unserved())
    }

    /// R18: who acquires a lease, and when.
    fn acquired(
        &self,
        last: &LastRevision<'_>,
        acquisition: &AcquisitionCheck<'_>,
        at: i64,
    ) -> Result<LeaseChangeKind, BrokenRule> {
        let (before, after) = acquisition.records();
        let holder = acquisition.holder;
        if self.implementation(holder) != Some(Implementation::Elector) {
            let message = format!("acquired by {holder}, which is no participant of ours (R18)");
            return Err(BrokenRule::promised(Invariant::S3, message));
        }
        let unheld = before.holder.is_none();
        match self.expired(last, before, after, at, TermStart::Acquired) {
            Ok(()) if unheld => Ok(LeaseChangeKind::AcquireUnheld),
            Ok(()) => Ok(LeaseChangeKind::AcquireExpired),
            // Electors do no harm to each other (R17), so they need not wait as work does.
            Err(early) => match self.participants.purpose(self.lease) {
                LeasePurpose::ElectorLock if unheld => Ok(LeaseChangeKind::Displace),
                LeasePurpose::BuiltinLock => Ok(LeaseChangeKind::Displace),
                LeasePurpose::Work | LeasePurpose::ElectorLock => Err(early),
            },
        }
    }

    /// R15: by what the electee wrote.
    fn answered(
        &self,
        last: &LastRevision<'_>,
        after: &LeaseRecord,
        at: i64,
    ) -> Result<(), BrokenRule> {
        if !self.acks.are_complete() {
            return Ok(());
        }
        let limits = &self.participants.limits;
        let granted = match (limits.clock_difference, after.acquire_time) {
            (Some(_), Some(granted)) => granted.as_micros().min(at),
            _ => at,
        };
        let since = last.since.map_or(i64::MIN, Timestamp::as_micros);
        let oldest = since
            .min(granted.saturating_sub(micros(limits.ack_validity.mul_f64(limits.drift))))
            .saturating_sub(micros(limits.recording_delay));
        let Some(electee) = &after.holder else {
            return Ok(());
        };
        let unfounded = match self.acks.newest(electee) {
            // The watch of one kind of objects may be later than that of the other; versions tell what came first.
            Some((version, _)) if last.first < version => return Ok(()),
            Some((_, acked)) if acked.as_micros() >= oldest => return Ok(()),
            Some((_, acked)) => format!(
                "granted to {electee}, which last answered {:.1} s before (R15)",
                micros_between(acked.as_micros(), granted).as_secs_f64()
            ),
            None => format!("granted to {electee}, which is no candidate (R15)"),
        };
        Err(BrokenRule::promised(Invariant::S7, unfounded))
    }

    /// R15 for a hand-over: the successor was preferred before, and a preferred candidate has answered.
    fn stands(&self, successor: Option<&Identity>) -> Result<(), BrokenRule> {
        match successor {
            Some(successor) if self.acks.is_no_candidate(successor) => {
                let message = format!("handed over to {successor}, which is no candidate (R15)");
                Err(BrokenRule::promised(Invariant::S7, message))
            }
            _ => Ok(()),
        }
    }

    /// S11: a holder that never was a candidate is not asked to make room.
    fn left_alone(&self, before: &LeaseRecord, after: &LeaseRecord) -> Result<(), BrokenRule> {
        let Some(holder) = &before.holder else {
            return Ok(());
        };
        let asked =
            after.preferred_holder.is_some() && after.preferred_holder != before.preferred_holder;
        let is_ours = self.implementation(holder) == Some(Implementation::Elector);
        if asked && !is_ours && self.acks.is_no_candidate(holder) {
            let message = format!("{holder}, which is no candidate, was asked to make room");
            return Err(BrokenRule::promised(Invariant::S11, message));
        }
        Ok(())
    }

    pub(super) fn implementation(&self, holder: &Identity) -> Option<Implementation> {
        self.participants
            .implementation(self.lease, holder.as_str())
    }
}

/// The writer of a change, told from what changed.
fn actor<'r>(before: &'r LeaseRecord, after: &LeaseRecord) -> Actor<'r> {
    let Some(holder) = &before.holder else {
        return Actor::Elector;
    };
    let let_go = after.holder.is_none();
    let renewed = after.term == before.term && after.renew_time != before.renew_time;
    let handed_off = after.term != before.term
        && before.has_token()
        && before.preferred_holder.is_some()
        && after.holder == before.preferred_holder;
    if let_go || renewed || handed_off {
        Actor::Candidate(holder)
    } else {
        Actor::Elector
    }
}

/// The invariant that a violation of the rules of writing breaks.
fn broken(violation: &Violation) -> Invariant {
    match violation {
        Violation::MalformedGrant | Violation::MalformedAcquisition => Invariant::S3,
        Violation::TouchedTerm | Violation::MalformedRenewal => Invariant::S4,
        Violation::MalformedAccept => Invariant::S5,
        Violation::NotItsOwn | Violation::MalformedRelease => Invariant::S6,
    }
}

fn kind(made: Move) -> LeaseChangeKind {
    match made {
        Move::GrantUnheld => LeaseChangeKind::GrantUnheld,
        Move::GrantExpired => LeaseChangeKind::GrantExpired,
        Move::HandOff => LeaseChangeKind::HandOff,
        Move::Release => LeaseChangeKind::Release,
        Move::AcquireUnheld => LeaseChangeKind::AcquireUnheld,
        Move::AcquireExpired => LeaseChangeKind::AcquireExpired,
        Move::Accept => LeaseChangeKind::Accept,
        Move::Renew => LeaseChangeKind::Renew,
        Move::Signal => LeaseChangeKind::Signal,
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn micros_between(earlier: i64, later: i64) -> Duration {
    Duration::from_micros(u64::try_from(later.saturating_sub(earlier)).unwrap_or(0))
}
