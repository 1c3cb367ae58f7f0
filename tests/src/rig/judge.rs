//! Judges a journal: did two of our candidates believe at once, and was each change of a Lease a legal move?

use std::collections::BTreeMap;
use std::time::Duration;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::elector::{Actor, Move, audit};
use elector_protocol::{Identity, LeaseRecord, LeaseSnapshot, Term, Timestamp, Token, Uid};

use crate::rig::journal::{Entry, EventKind, What, between};

/// What a judge has to know besides the journal.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// Who stands or holds under which name.
    pub members: BTreeMap<String, Member>,
    /// Revisions that the test itself wrote: nobody is blamed for them.
    pub written_by_test: Vec<String>,
    /// How long a record without a duration must be left alone, and how long a Lease must be absent: `W_max`.
    pub longest_lease: Duration,
}

/// A candidate, or a plain holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Whose code it is.
    pub maker: Maker,
    /// The lease that it is about.
    pub lease: String,
}

/// Whose code a candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Maker {
    /// This repository's.
    Ours,
    /// Unmodified client-go, also inside Kubernetes' own components.
    ClientGo,
}

/// From one instant to another, one process believed that it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belief {
    /// Who.
    pub name: String,
    /// When its work began.
    pub from: Timestamp,
    /// When its work had ended, or it was killed; where neither is known, when it said that it lost. `None` while it
    /// leads.
    pub to: Option<Timestamp>,
}

/// The result of judging one Lease's revisions one after the other.
#[derive(Debug, Default)]
struct Trial<'a> {
    known: BTreeMap<&'a str, Known>,
    answers: BTreeMap<&'a str, Answer>,
    tokens: BTreeMap<&'a str, TokenOfTerm>,
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

/// Everything that is wrong with this journal, one line each.
pub fn judge(entries: &[Entry], roster: &Roster) -> Vec<String> {
    let mut faults = overlaps(&beliefs(entries), roster);
    let mut trial = Trial::default();
    // A lease that nobody here is about is somebody else's affair.
    let judged = |name: &String| roster.members.values().any(|member| member.lease == *name);
    for entry in entries {
        match &entry.what {
            What::Lease(name, _) if !judged(name) => {}
            What::Lease(name, lease) => trial.revision(name, lease, entry.at, roster),
            What::LeaseGone(name, _) => {
                trial.known.remove(name.as_str());
            }
            What::Candidate(name, candidate) => trial.answer(name, candidate, entry.at),
            What::CandidateGone(name) => {
                trial.answers.remove(name.as_str());
            }
            What::Event(_) | What::Note(_) => {}
        }
    }
    faults.append(&mut trial.faults);
    faults
}

/// Who believed when, in the order of the beginnings.
pub fn beliefs(entries: &[Entry]) -> Vec<Belief> {
    let mut beliefs: Vec<Belief> = Vec::new();
    for entry in entries {
        let What::Event(event) = &entry.what else {
            continue;
        };
        match event.kind {
            EventKind::Start => {}
            EventKind::Leading => {
                let name = event.name.clone();
                beliefs.push(Belief {
                    name,
                    from: entry.at,
                    to: None,
                });
            }
            kind @ (EventKind::WorkStopped | EventKind::Lost | EventKind::Killed) => {
                // After a loss by deadline the work may end later; it is the work that must not overlap.
                let named = |belief: &&mut Belief| belief.name == event.name;
                if let Some(belief) = beliefs.iter_mut().rfind(named)
                    && (belief.to.is_none() || kind == EventKind::WorkStopped)
                {
                    belief.to = Some(entry.at);
                }
            }
        }
    }
    beliefs.sort_by_key(|belief| belief.from);
    beliefs
}

fn overlaps(beliefs: &[Belief], roster: &Roster) -> Vec<String> {
    let lease = |belief: &Belief| {
        let member = roster.members.get(&belief.name)?;
        (member.maker == Maker::Ours).then_some(&member.lease)
    };
    let ours: Vec<_> = beliefs
        .iter()
        .filter_map(|belief| Some((belief, lease(belief)?)))
        .collect();
    let mut faults = Vec::new();
    for (index, (early, lease)) in ours.iter().enumerate() {
        for (late, _) in ours[index + 1..].iter().filter(|(_, other)| other == lease) {
            if early.to.is_none_or(|end| end > late.from) {
                let longer = early.to.map_or_else(
                    || "and leads on".to_owned(),
                    |end| format!("for {:.3} s longer", between(late.from, end).as_secs_f64()),
                );
                faults.push(format!(
                    "two believed at once in {lease}: {} led {longer} when {} began",
                    early.name, late.name
                ));
            }
        }
    }
    faults
}

// === impl Roster ===

impl Roster {
    fn maker(&self, holder: &Identity) -> Option<Maker> {
        Some(self.members.get(holder.as_str())?.maker)
    }
}

// === impl Trial ===

impl<'a> Trial<'a> {
    fn answer(&mut self, name: &'a str, candidate: &LeaseCandidate, at: Timestamp) {
        let (uid, renewed) = (candidate.metadata.uid.clone(), candidate.spec.renew_time);
        match self.answers.get(name) {
            Some(known) if known.uid == uid && known.renewed == renewed => {}
            _ => {
                self.answers.insert(name, Answer { uid, renewed, at });
            }
        }
    }

    fn revision(&mut self, name: &'a str, lease: &Lease, at: Timestamp, roster: &Roster) {
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
        if let Some(holder) = &before.holder {
            let duration = before.duration().unwrap_or(roster.longest_lease);
            let (start, tolerance) = match before.renew_time {
                Some(renewed) if roster.maker(holder).is_some() => (renewed, CLOCK_TOLERANCE),
                _ => (known.since, SIGHT_TOLERANCE),
            };
            let age = between(start, granted);
            if age + tolerance < duration {
                return Err(format!(
                    "granted {:.3} s after {holder} renewed, which is before the {} s are over (R4)",
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

#[cfg(test)]
mod tests;
