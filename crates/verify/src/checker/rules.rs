//! One change of a Lease against the rules: which move is it, or which invariant does it break?

use std::time::Duration;

use elector_api::Lease;
use elector_protocol::{Identity, LeaseKey, LeaseRecord, LeaseSnapshot, Timestamp};

use super::acks::Acks;
use super::acquisition::{is_acquisition, signed};
use super::memory::{LastRevision, Memory};
use super::term_start::TermStart;
use crate::actor::Actor;
use crate::audit::audit;
use crate::broken_rule::BrokenRule;
use crate::participants::{Implementation, LeasePurpose, Participants};
use crate::placeholder::is_reservation;
use crate::reading::{duration, has_token, is_born, is_released, is_same, is_unaccepted_grant};
use crate::recorded_writer::{ElectorSight, RecordedWriter, TermSource, WriterRole};
use crate::verdict::{Invariant, LeaseChangeKind};

/// The context of a revision that is held against the rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub(super) lease: &'a LeaseKey,
    pub(super) participants: &'a Participants,
    pub(super) memory: &'a Memory<'a>,
    pub(super) acks: &'a Acks,
    /// The writer of the revision, where it is known.
    pub(super) writer: Option<&'a RecordedWriter>,
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
        self.terms(before, after)?;
        if self.takes(before, after) {
            return match self.expired(last, after, at, TermStart::Taken) {
                Ok(()) => Ok(LeaseChangeKind::Take),
                Err(broken_rule) => Err(broken_rule.of_client_go()),
            };
        }
        self.one_holder(before, after)?;
        if is_reservation(before, after) {
            return Ok(LeaseChangeKind::Reserve);
        }
        let actor = match self.writer {
            Some(writer) => writer.actor(),
            None => actor(before, after),
        };
        if let Actor::Candidate(holder) = actor
            && self.implementation(holder) == Some(Implementation::ClientGo)
            && !is_acquisition(before, after)
        {
            self.shrinks(before, after)
                .map_err(BrokenRule::of_client_go)?;
            return Ok(match after.holder {
                Some(_) => LeaseChangeKind::OfClientGo,
                None => LeaseChangeKind::Release,
            });
        }
        let kind = audit(before, after, actor).map_err(|broken_rule| {
            let shrunk = self.shrinks(before, after).err();
            shrunk.unwrap_or(broken_rule)
        })?;
        match (kind, &after.holder) {
            (LeaseChangeKind::GrantExpired | LeaseChangeKind::GrantUnheld, Some(electee)) => {
                self.expired(last, after, at, TermStart::Granted)?;
                self.answered(last, electee, after, at)?;
            }
            // A candidate that a stranger preferred is not the holder's choice.
            (LeaseChangeKind::HandOff, _) if last.preferred_by_stranger => {}
            (LeaseChangeKind::HandOff, Some(successor)) => self.stands(successor)?,
            (LeaseChangeKind::Signal, _) => self.left_alone(before, after)?,
            (LeaseChangeKind::Accept, _) => {
                let token = after.token.map(|token| token.0);
                if token != Some(last.snapshot.version) {
                    let message = format!(
                        "the accept replaced @{} and wrote another token (R14); or a revision is missing here",
                        last.snapshot.version
                    );
                    return Err(BrokenRule::promised(Invariant::S5, message));
                }
                if self.terms_of_writer() == Some(TermSource::Acquired) {
                    let message = "a plain process accepted a grant (R18)";
                    return Err(BrokenRule::promised(Invariant::S3, message));
                }
            }
            (LeaseChangeKind::AcquireUnheld | LeaseChangeKind::AcquireExpired, Some(holder)) => {
                signed(last.lease, lease, holder, last.snapshot.version)?;
                if self.rejoins(last, after, holder) {
                    return Ok(LeaseChangeKind::Rejoin);
                }
                if self.resumes(last, holder) {
                    return Ok(LeaseChangeKind::Resume);
                }
                return self.acquired(kind, last, holder, after, at);
            }
            _ => {}
        }
        Ok(kind)
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
        if is_born(record) {
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
        let message = format!("{new} was written over {old} without a new term (R3)");
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
        let accepted = before.holder.is_some() && !is_unaccepted_grant(before);
        let same = before.holder == after.holder && before.term == after.term;
        match (duration(before), duration(after)) {
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

    /// R20: a term of ours that lapsed may be followed by the next of the same process, on the record that it wrote. Where
    /// processes share a name, the recorder has to know which of them wrote.
    fn resumes(&self, last: &LastRevision<'_>, holder: &Identity) -> bool {
        let before = &last.snapshot.record;
        let earlier_life =
            |writer: &RecordedWriter| last.since.is_some_and(|since| since < writer.born);
        before.holder.as_ref() == Some(holder)
            && has_token(before)
            && last
                .written_over
                .as_ref()
                .is_none_or(|own| is_same(own, before))
            && before
                .preferred_holder
                .as_ref()
                .is_none_or(|it| it == holder)
            && self.implementation(holder) == Some(Implementation::Elector)
            && !self.writer.is_some_and(earlier_life)
    }

    /// R21: a term of ours may be followed by that of a later life of its instance. The record says which life began it; that
    /// this one is dead is the word of the lock, which two processes cannot have.
    fn rejoins(&self, last: &LastRevision<'_>, after: &LeaseRecord, holder: &Identity) -> bool {
        let before = &last.snapshot.record;
        let lives = before.life.zip(after.life);
        has_token(before)
            && lives.is_some_and(|(dead, life)| {
                dead.instance == life.instance && dead.life != life.life
            })
            && self.implementation(holder) == Some(Implementation::Elector)
    }

    /// R18: who acquires a lease, and when.
    fn acquired(
        &self,
        kind: LeaseChangeKind,
        last: &LastRevision<'_>,
        holder: &Identity,
        after: &LeaseRecord,
        at: i64,
    ) -> Result<LeaseChangeKind, BrokenRule> {
        let stranger = self.implementation(holder) != Some(Implementation::Elector);
        let elected = self.terms_of_writer() == Some(TermSource::Granted);
        if stranger || elected {
            let which = if elected {
                "is to be elected"
            } else {
                "is no participant of ours"
            };
            let message = format!("acquired by {holder}, which {which} (R18)");
            return Err(BrokenRule::promised(Invariant::S3, message));
        }
        let before = &last.snapshot.record;
        // Electors do no harm to each other (R17), so they need not wait as work does.
        let displaces = match self.participants.purpose(self.lease) {
            LeasePurpose::BuiltinLock => true,
            LeasePurpose::ElectorLock => before.holder.is_none() && !is_released(before),
            LeasePurpose::Work => false,
        };
        match (
            self.expired(last, after, at, TermStart::Acquired),
            self.writer,
        ) {
            // The writer's own clock tells for how long it left the lock to others.
            (Ok(()), Some(_)) | (Err(_), None) if displaces => Ok(LeaseChangeKind::Displace),
            (expired, _) => expired.map(|()| kind),
        }
    }

    /// The way of the writer to its terms, where it is known.
    pub(super) fn terms_of_writer(&self) -> Option<TermSource> {
        match &self.writer?.role {
            WriterRole::Holder { terms, .. } => Some(*terms),
            WriterRole::Elector(_) => None,
        }
    }

    /// R15: by what the electee wrote.
    fn answered(
        &self,
        last: &LastRevision<'_>,
        electee: &Identity,
        after: &LeaseRecord,
        at: i64,
    ) -> Result<(), BrokenRule> {
        if let Some(sight) = self.writer.and_then(RecordedWriter::sight) {
            return self.heard(electee, sight, self.late_from(last));
        }
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

    /// R15 by what the elector had heard: an ack that is fresh by its clock, or one after a ping that it saw since
    /// `round` began.
    fn heard(
        &self,
        chosen: &Identity,
        sight: &ElectorSight,
        round: Option<Timestamp>,
    ) -> Result<(), BrokenRule> {
        let answered = sight.answers.iter().any(|heard| {
            heard.ack.is_some_and(|(ack, age)| {
                let asked = |at| round.is_some_and(|round| round <= at);
                let mut pings = heard.pings.iter();
                age < self.participants.limits.ack_validity
                    || pings.any(|(ping, at)| *ping < ack && asked(*at))
            })
        });
        if answered {
            return Ok(());
        }
        let acks: Vec<_> = sight.answers.iter().map(|heard| heard.ack).collect();
        let message = format!("chose {chosen}, which had not answered: {acks:?} (R15)");
        Err(BrokenRule::promised(Invariant::S7, message))
    }

    /// `W_max` of the writer.
    pub(super) fn longest_lease(&self) -> Duration {
        let known = self.writer.and_then(|writer| writer.longest_lease);
        known.unwrap_or(self.participants.limits.longest_lease)
    }

    /// When a round of pings begins for the writer: once the record is late, or unheld. Where it is not recorded since when the
    /// record stands, as after one that cannot be read, it may have begun at any time.
    fn late_from(&self, last: &LastRevision<'_>) -> Option<Timestamp> {
        let writer = self.writer?;
        let Some(since) = last.since else {
            return Some(Timestamp::MIN);
        };
        let record = &last.snapshot.record;
        let lasts = duration(record).unwrap_or(self.longest_lease());
        let late = match &record.holder {
            Some(_) => (lasts * 2 / 3).div_f64(writer.rate),
            None => Duration::ZERO,
        };
        Timestamp::from_micros(since.as_micros().saturating_add(micros(late)))
    }

    /// R15 for a hand-over: the successor was preferred before, and a preferred candidate has answered.
    fn stands(&self, successor: &Identity) -> Result<(), BrokenRule> {
        if !self.acks.is_no_candidate(successor) {
            return Ok(());
        }
        let message = format!("handed over to {successor}, which is no candidate (R15)");
        Err(BrokenRule::promised(Invariant::S7, message))
    }

    /// S11 and R15: a holder that never was a candidate is not asked to make room, and no other for a candidate that has
    /// not just answered.
    fn left_alone(&self, before: &LeaseRecord, after: &LeaseRecord) -> Result<(), BrokenRule> {
        let (Some(holder), Some(preferred)) = (&before.holder, &after.preferred_holder) else {
            return Ok(());
        };
        if before.preferred_holder.as_ref() == Some(preferred) {
            return Ok(());
        }
        let is_ours = self.implementation(holder) == Some(Implementation::Elector);
        if (self.writer.is_some() || !is_ours) && self.acks.is_no_candidate(holder) {
            let message = format!("{holder}, which is no candidate, was asked to make room");
            return Err(BrokenRule::promised(Invariant::S11, message));
        }
        match self.writer.and_then(RecordedWriter::sight) {
            Some(sight) => self.heard(preferred, sight, None),
            None => Ok(()),
        }
    }

    pub(super) fn implementation(&self, holder: &Identity) -> Option<Implementation> {
        self.participants
            .implementation(self.lease, holder.as_str())
    }
}

/// The writer of a change, deduced from what changed.
fn actor<'r>(before: &'r LeaseRecord, after: &'r LeaseRecord) -> Actor<'r> {
    if let Some(holder) = after
        .holder
        .as_ref()
        .filter(|_| is_acquisition(before, after))
    {
        return Actor::Candidate(holder);
    }
    let Some(holder) = &before.holder else {
        return Actor::Elector;
    };
    let let_go = after.holder.is_none();
    let renewed = after.term == before.term && after.renew_time != before.renew_time;
    let handed_off =
        after.term != before.term && has_token(before) && after.holder == before.preferred_holder;
    if let_go || renewed || handed_off {
        Actor::Candidate(holder)
    } else {
        Actor::Elector
    }
}

pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn micros_between(earlier: i64, later: i64) -> Duration {
    Duration::from_micros(u64::try_from(later.saturating_sub(earlier)).unwrap_or(0))
}
