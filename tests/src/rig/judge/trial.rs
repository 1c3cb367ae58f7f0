//! The trial of Lease revisions, one after the other: was each a move that the rules allow?

use std::collections::BTreeMap;
use std::time::Duration;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::elector::{Actor, Move, audit};
use elector_protocol::{
    Identity, LeaseRecord, LeaseSnapshot, Occupancy, Term, Timestamp, Token, Uid,
};

use crate::rig::journal::between;
use crate::rig::judge::{Maker, Roster};

/// The result of judging one Lease's revisions one after the other.
#[derive(Debug, Default)]
pub(super) struct Trial<'a> {
    known: BTreeMap<&'a str, Known>,
    answers: BTreeMap<&'a str, Answer>,
    tokens: BTreeMap<&'a str, TokenOfTerm>,
    /// The newest held record of each Lease that was not released, also when the Lease is gone.
    owed: BTreeMap<&'a str, LeaseRecord>,
    faults: Vec<String>,
}

/// The newest revision of a Lease.
#[derive(Debug)]
struct Known {
    snapshot: LeaseSnapshot,
    /// When this record, not this revision, was first seen.
    since: Timestamp,
}

/// When a candidate was last heard of.
#[derive(Debug)]
struct Answer {
    uid: Option<String>,
    renewed: Option<Timestamp>,
    at: Timestamp,
}

/// The newest token of a Lease, and whose term it belongs to.
#[derive(Debug)]
struct TokenOfTerm {
    uid: Uid,
    term: Term,
    token: Token,
}

/// Clocks of one machine agree but for what the kernel slews, and times are cut to microseconds.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(20);

/// How much later than the elector the test may see an answer.
const SIGHT_TOLERANCE: Duration = Duration::from_secs(1);

/// How long an answer counts (R15).
const FRESH: Duration = Duration::from_secs(5);

// === impl Trial ===

impl<'a> Trial<'a> {
    /// A candidate object changed.
    pub(super) fn answer(&mut self, name: &'a str, candidate: &LeaseCandidate, at: Timestamp) {
        let (uid, renewed) = (candidate.metadata.uid.clone(), candidate.spec.renew_time);
        match self.answers.get(name) {
            Some(known) if known.uid == uid && known.renewed == renewed => {}
            _ => {
                self.answers.insert(name, Answer { uid, renewed, at });
            }
        }
    }

    /// A Lease changed.
    pub(super) fn revision(
        &mut self,
        name: &'a str,
        lease: &Lease,
        at: Timestamp,
        roster: &Roster,
    ) {
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        let by_test = roster.written_by_test.contains(&version);
        let snapshot = match lease.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => {
                // A test may write what nobody can read.
                if !by_test {
                    self.faults
                        .push(format!("lease {name} @{version}: {error}"));
                }
                self.known.remove(name);
                return;
            }
        };
        let verdict = match self
            .known
            .get(name)
            .filter(|known| known.snapshot.uid == snapshot.uid)
        {
            _ if by_test => Ok(()),
            Some(known) => self.change(name, known, &snapshot, roster),
            None => born(lease, &snapshot.record, roster),
        };
        if let Err(fault) = verdict {
            self.faults
                .push(format!("lease {name} @{version}: {fault}"));
        }
        self.token(name, &snapshot, &version);
        match snapshot.record.occupancy() {
            Occupancy::Held(_) => {
                self.owed.insert(name, snapshot.record.clone());
            }
            Occupancy::Released if !by_test => {
                self.owed.remove(name);
            }
            // Deleted, or blanked by a stranger: the holder may still believe.
            Occupancy::Released | Occupancy::Unproven => {}
        }
        let since = match self.known.get(name) {
            Some(known)
                if known.snapshot.uid == snapshot.uid
                    && known.snapshot.record.same_record(&snapshot.record) =>
            {
                known.since
            }
            _ => at,
        };
        self.known.insert(name, Known { snapshot, since });
    }

    /// A Lease was deleted.
    pub(super) fn gone(&mut self, name: &str) {
        self.known.remove(name);
    }

    /// What is wrong.
    pub(super) fn into_faults(self) -> Vec<String> {
        self.faults
    }

    /// S3–S7 for one change of a Lease.
    fn change(
        &self,
        name: &str,
        known: &Known,
        after: &LeaseSnapshot,
        roster: &Roster,
    ) -> Result<(), String> {
        let (before, after) = (&known.snapshot.record, &after.record);
        if before == after {
            return Ok(()); // labels or unknown fields
        }
        let actor = actor(before, after);
        if let Actor::Candidate(holder) = &actor
            && roster.maker(holder) == Some(Maker::ClientGo)
        {
            return Ok(()); // client-go's own writes are its own affair
        }
        let made =
            audit(before, after, &actor).map_err(|violation| format!("{violation}; {actor:?}"))?;
        if matches!(made, Move::GrantExpired | Move::GrantUnheld) {
            self.grant(name, known, before, after, roster)?;
        }
        Ok(())
    }

    /// R4 by the times that both sides wrote, which are of one clock here (a stranger's may say anything, so there it
    /// counts when the record was seen), and R15 by what the electee wrote.
    fn grant(
        &self,
        name: &str,
        known: &Known,
        before: &LeaseRecord,
        after: &LeaseRecord,
        roster: &Roster,
    ) -> Result<(), String> {
        let granted = after.acquire_time.ok_or("a grant without a time")?;
        let held = Some(before)
            .filter(|record| record.holder.is_some())
            .or_else(|| self.owed.get(name));
        if let Some(record) = held
            && let Some(holder) = &record.holder
        {
            let duration = record.duration().unwrap_or(roster.longest_lease);
            let (start, tolerance) = match record.renew_time {
                Some(renewed) if roster.maker(holder).is_some() => (renewed, CLOCK_TOLERANCE),
                _ => (known.since, SIGHT_TOLERANCE),
            };
            let age = between(start, granted);
            if age + tolerance < duration {
                return Err(format!(
                    "granted {:.3} s after {holder} renewed, which is before its {} s are over (R4, R6)",
                    age.as_secs_f64(),
                    duration.as_secs()
                ));
            }
        }
        let electee = after
            .holder
            .as_ref()
            .map(Identity::as_str)
            .unwrap_or_default();
        let answered = self.answers.get(electee).map(|answer| answer.at);
        let oldest = known
            .since
            .as_micros()
            .min(granted.as_micros() - micros(FRESH))
            - micros(SIGHT_TOLERANCE);
        match answered {
            Some(answered) if answered.as_micros() >= oldest => Ok(()),
            Some(answered) => Err(format!(
                "{name} granted to {electee}, who last answered {:.1} s before (R15)",
                between(answered, granted).as_secs_f64()
            )),
            None => Err(format!(
                "{name} granted to {electee}, who is no candidate (R15)"
            )),
        }
    }

    /// S5: tokens stay in a term and grow from term to term, also over deletion.
    fn token(&mut self, name: &'a str, after: &LeaseSnapshot, version: &str) {
        let (uid, term) = (after.uid.clone(), after.record.term);
        let Some(token) = after.record.token.filter(|_| after.record.has_token()) else {
            return;
        };
        if let Some(previous) = self.tokens.get(name) {
            let legal = if previous.uid == uid && previous.term == term {
                previous.token == token
            } else {
                previous.token < token
            };
            if !legal {
                let before = previous.token;
                self.faults.push(format!(
                    "lease {name} @{version}: token {token} after {before} (S5)"
                ));
            }
        }
        self.tokens.insert(name, TokenOfTerm { uid, term, token });
    }
}

/// Who made this change, judged from what changed.
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

/// R2: whoever creates a Lease for candidates names no holder. Plain client-go holders create their own.
fn born(lease: &Lease, record: &LeaseRecord, roster: &Roster) -> Result<(), String> {
    if let Some(holder) = &record.holder {
        return match roster.maker(holder) {
            Some(Maker::ClientGo) => Ok(()),
            _ => Err(format!("created with the holder {holder} (R2)")),
        };
    }
    if lease.spec.holder_identity.is_none() {
        return Err("created without holderIdentity, which must be an empty text".to_owned());
    }
    let empty = LeaseRecord::born(record.strategy.clone());
    if *record == empty {
        Ok(())
    } else {
        Err(format!("created as {record:?} (R2)"))
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
