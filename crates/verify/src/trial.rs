//! The trial of a Lease's revisions, one after the other: was each a move that the rules allow?

use std::collections::BTreeMap;
use std::time::Duration;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::elector::{Actor, Move, Violation, audit};
use elector_protocol::{
    Identity, LeaseKey, LeaseRecord, LeaseSnapshot, Occupancy, ResourceVersion, Term, Timestamp,
    Token, Uid,
};

use crate::entry::between;
use crate::history::Beginning;
use crate::roster::{Maker, Roster};
use crate::verdict::{Extent, Finding, Invariant, Level};

/// The result of judging one Lease's revisions one after the other.
#[derive(Debug)]
pub(crate) struct Trial<'r> {
    lease: &'r LeaseKey,
    roster: &'r Roster,
    beginning: Beginning,
    known: Option<Known>,
    answers: BTreeMap<String, Answer>,
    token: Option<TokenOfTerm>,
    /// The newest held record that was not released, also when the Lease is gone.
    owed: Option<LeaseRecord>,
    findings: Vec<Finding>,
    extent: Extent,
}

/// The newest revision of the Lease.
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

/// The newest token, and whose term it belongs to.
#[derive(Debug)]
struct TokenOfTerm {
    uid: Uid,
    term: Term,
    token: Token,
}

/// What is wrong with a revision.
struct Fault(Invariant, String);

// === impl Trial ===

impl<'r> Trial<'r> {
    /// The trial of a Lease of which nothing is known.
    pub(crate) fn new(lease: &'r LeaseKey, roster: &'r Roster, beginning: Beginning) -> Self {
        Self {
            lease,
            roster,
            beginning,
            known: None,
            answers: BTreeMap::new(),
            token: None,
            owed: None,
            findings: Vec::new(),
            extent: Extent::default(),
        }
    }

    /// A candidate object of the namespace changed.
    pub(crate) fn answer(&mut self, name: &str, candidate: &LeaseCandidate, at: Timestamp) {
        let (uid, renewed) = (candidate.metadata.uid.clone(), candidate.spec.renew_time);
        match self.answers.get(name) {
            Some(known) if known.uid == uid && known.renewed == renewed => {}
            _ => {
                let answer = Answer { uid, renewed, at };
                self.answers.insert(name.to_owned(), answer);
            }
        }
    }

    /// The Lease changed.
    pub(crate) fn revision(&mut self, lease: &Lease, version: ResourceVersion, at: Timestamp) {
        self.extent.revisions += 1;
        let foreign = self.roster.is_foreign(version);
        let snapshot = match lease.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => {
                // A stranger may write what nobody can read.
                if !foreign {
                    self.finding(at, version, Fault(Invariant::S3, error.to_string()));
                }
                self.known = None;
                self.beginning = Beginning::Nothing;
                return;
            }
        };
        let same = |known: &&Known| known.snapshot.uid == snapshot.uid;
        let verdict = match self.known.as_ref().filter(same) {
            _ if foreign => Ok(()),
            Some(known) => self.change(known, &snapshot),
            None if self.beginning == Beginning::Midst => Ok(()),
            None => self.born(lease, &snapshot.record),
        };
        self.beginning = Beginning::Nothing;
        if let Err(fault) = verdict {
            self.finding(at, version, fault);
        }
        self.token(&snapshot, version, at);
        match snapshot.record.occupancy() {
            Occupancy::Held(_) => self.owed = Some(snapshot.record.clone()),
            Occupancy::Released if !foreign => self.owed = None,
            // Deleted, or blanked by a stranger: the holder may still believe.
            Occupancy::Released | Occupancy::Unproven => {}
        }
        let since = match &self.known {
            Some(known)
                if known.snapshot.uid == snapshot.uid
                    && known.snapshot.record.same_record(&snapshot.record) =>
            {
                known.since
            }
            _ => at,
        };
        self.known = Some(Known { snapshot, since });
    }

    /// The Lease was deleted.
    pub(crate) fn gone(&mut self) {
        self.known = None;
        self.beginning = Beginning::Nothing;
    }

    /// What is wrong, and what was looked at.
    pub(crate) fn finish(self) -> (Vec<Finding>, Extent) {
        (self.findings, self.extent)
    }

    fn finding(&mut self, at: Timestamp, version: ResourceVersion, fault: Fault) {
        let Fault(invariant, sentence) = fault;
        self.findings.push(Finding {
            invariant,
            lease: self.lease.clone(),
            level: Level::Promised,
            at,
            before: self.known.as_ref().map(|known| known.snapshot.version),
            after: Some(version),
            sentence,
        });
    }

    fn maker(&self, holder: &Identity) -> Option<Maker> {
        self.roster.maker(self.lease, holder.as_str())
    }

    /// S3–S7 for one change of a Lease.
    fn change(&self, known: &Known, after: &LeaseSnapshot) -> Result<(), Fault> {
        let (before, after) = (&known.snapshot.record, &after.record);
        if before == after {
            return Ok(()); // labels or unknown fields
        }
        let actor = actor(before, after);
        if let Actor::Candidate(holder) = &actor
            && self.maker(holder) == Some(Maker::ClientGo)
        {
            return Ok(()); // client-go's own writes are its own affair
        }
        let made = audit(before, after, &actor).map_err(|violation| {
            let who = match &actor {
                Actor::Elector => "an elector's write".to_owned(),
                Actor::Candidate(name) => format!("a write of {name}"),
            };
            Fault(broken(&violation), format!("{violation}; {who}"))
        })?;
        if matches!(made, Move::GrantExpired | Move::GrantUnheld) {
            self.grant(known, before, after)?;
        }
        Ok(())
    }

    /// R4 by the times that both sides wrote where their clocks agree (a stranger's may say anything, so there it
    /// counts when the record was seen), and R15 by what the electee wrote.
    fn grant(&self, known: &Known, before: &LeaseRecord, after: &LeaseRecord) -> Result<(), Fault> {
        let limits = &self.roster.limits;
        let granted = after
            .acquire_time
            .ok_or_else(|| Fault(Invariant::S3, "a grant without a time".to_owned()))?;
        let held = Some(before)
            .filter(|record| record.holder.is_some())
            .or(self.owed.as_ref());
        if let Some(record) = held
            && let Some(holder) = &record.holder
        {
            let duration = record.duration().unwrap_or(limits.longest_lease);
            let (start, tolerance) = match (record.renew_time, limits.clocks) {
                (Some(renewed), Some(apart)) if self.maker(holder).is_some() => (renewed, apart),
                _ => (known.since, limits.sight),
            };
            let age = between(start, granted);
            if age + tolerance < duration {
                let early = format!(
                    "granted {:.3} s after {holder} renewed, which is before its {} s are over (R4, R6)",
                    age.as_secs_f64(),
                    duration.as_secs()
                );
                return Err(Fault(Invariant::S3, early));
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
            .min(granted.as_micros() - micros(limits.fresh))
            - micros(limits.sight);
        let unfounded = match answered {
            Some(answered) if answered.as_micros() >= oldest => return Ok(()),
            Some(answered) => format!(
                "granted to {electee}, who last answered {:.1} s before (R15)",
                between(answered, granted).as_secs_f64()
            ),
            None => format!("granted to {electee}, who is no candidate (R15)"),
        };
        Err(Fault(Invariant::S7, unfounded))
    }

    /// S5: tokens stay in a term and grow from term to term, also over deletion.
    fn token(&mut self, after: &LeaseSnapshot, version: ResourceVersion, at: Timestamp) {
        let (uid, term) = (after.uid.clone(), after.record.term);
        let Some(token) = after.record.token.filter(|_| after.record.has_token()) else {
            return;
        };
        if let Some(previous) = &self.token {
            let legal = if previous.uid == uid && previous.term == term {
                previous.token == token
            } else {
                previous.token < token
            };
            if !legal {
                let sentence = format!("token {token} after {}", previous.token);
                self.finding(at, version, Fault(Invariant::S5, sentence));
            }
        }
        self.token = Some(TokenOfTerm { uid, term, token });
    }

    /// R2: whoever creates a Lease for candidates names no holder. Plain client-go holders create their own.
    fn born(&self, lease: &Lease, record: &LeaseRecord) -> Result<(), Fault> {
        if let Some(holder) = &record.holder {
            return match self.maker(holder) {
                Some(Maker::ClientGo) => Ok(()),
                _ => Err(Fault(
                    Invariant::S3,
                    format!("created with the holder {holder} (R2)"),
                )),
            };
        }
        if lease.spec.holder_identity.is_none() {
            let absent = "created without holderIdentity, which must be an empty text";
            return Err(Fault(Invariant::S3, absent.to_owned()));
        }
        let empty = LeaseRecord::born(record.strategy.clone());
        if *record == empty {
            Ok(())
        } else {
            Err(Fault(Invariant::S3, format!("created as {record:?} (R2)")))
        }
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

/// The invariant that a violation of the rules of writing breaks.
fn broken(violation: &Violation) -> Invariant {
    match violation {
        Violation::TouchedTerm | Violation::MalformedRenewal => Invariant::S4,
        Violation::MalformedAccept => Invariant::S5,
        Violation::NotItsOwn | Violation::MalformedRelease => Invariant::S6,
        // A grant or a reservation that is none.
        _ => Invariant::S3,
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
