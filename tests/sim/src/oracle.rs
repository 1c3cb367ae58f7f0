//! The check of every write of ours: was it a legal move of its author, at a time that the author's own clock allowed?
//!
//! The recorded history alone cannot tell that here, since every process writes by a clock that is off. The simulation
//! knows the author of each write, its real time, and the rate of each clock.

mod past;
mod preemption;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use elector_protocol::elector::{Actor, Move, Violation, audit};
use elector_protocol::{Identity, LeaseRecord, Occupancy};

use self::past::PastRevisions;
use crate::clock::TRUE_RATE;
use crate::context::RuleViolation;
use crate::history::{
    Author, CandidateRevision, LeaseHistory, LeaseRevision, RequestAttempt, Role, version,
};
use crate::names::{BUILTIN_LOCK, ELECTOR_LOCK, FALLBACK, SYSTEM, lease_name};
use crate::plan::{FaultKind, PlannedFault, PlannedMode, PlannedWord, RunPlan};

/// The check of every Lease against the rules.
struct HistoryCheck<'a> {
    history: &'a LeaseHistory,
    plan: &'a RunPlan,
    /// `W_max`.
    longest: Duration,
    /// The names of all candidates that ever registered.
    registered: BTreeSet<&'a str>,
    /// Every revision of a candidate, by its version.
    revisions: BTreeMap<u64, &'a CandidateRevision>,
}

/// The age, since its sighting, of an ack that counts without a ping (R15).
const FRESH: Duration = Duration::from_secs(5);

/// The time without renewals after which the lock of the built-in controller is taken over from another elector.
const MISSED_RENEWAL: Duration = Duration::from_secs(5);

/// For how long after a fault electors may still judge by what it hid from them.
const AFTERMATH: Duration = Duration::from_secs(30);

type OracleViolation = (&'static str, String);

/// The violations of the rules by the writes of a run.
pub(crate) fn violations(history: &LeaseHistory, plan: &RunPlan) -> Vec<RuleViolation> {
    let registered = history.candidates.iter();
    let check = HistoryCheck {
        history,
        plan,
        longest: Duration::from_secs(plan.setup.longest()),
        registered: registered
            .filter_map(|it| it.object.metadata.name.as_deref())
            .collect(),
        revisions: history
            .candidates
            .iter()
            .map(|it| (version(it.object.metadata.resource_version.as_deref()), it))
            .collect(),
    };
    let mut found = check.strays();
    for (lease, revisions) in &history.leases {
        let mut past = PastRevisions::default();
        for revision in revisions {
            if let Err((rule, text)) = check.revision(&past, revision) {
                found.push(RuleViolation {
                    at: revision.at,
                    rule,
                    text: format!("{lease} @{}: {text}", revision.version),
                });
            }
            let attempt = revision.attempt.and_then(|it| history.attempts.get(it));
            past.add(revision, attempt.is_none_or(|it| !it.author.is_ours()));
        }
    }
    for (lease, revisions) in &history.leases {
        let wrong = preemption::violations(history, plan, (lease, revisions));
        found.extend(wrong.into_iter().map(|(at, text)| RuleViolation {
            at,
            rule: "R23",
            text: format!("{lease}: {text}"),
        }));
    }
    found.sort_by_key(|violation| violation.at);
    found
}

// === impl HistoryCheck ===

impl HistoryCheck<'_> {
    /// S11: no process of ours writes a Lease that no candidate of the plan names.
    fn strays(&self) -> Vec<RuleViolation> {
        let locks = self.plan.setup.locks;
        let builtin = locks.builtin.then(|| BUILTIN_LOCK.to_owned());
        let names = self.plan.setup.lease_names().chain(builtin);
        let names: BTreeSet<String> = names.collect();
        let all = self.history.attempts.iter();
        let strays = all.filter(|attempt| attempt.author.is_ours());
        strays
            .filter(|attempt| {
                // A candidate that names a lease asks for it to be created. That of the control plane is served where
                // the built-in controller is replaced.
                let system = attempt.lease == SYSTEM && !locks.builtin;
                let wanted = attempt.base.is_none() && !is_lock(&attempt.lease) && !system;
                !names.contains(&attempt.lease) && !wanted
            })
            .map(|attempt| RuleViolation {
                at: attempt.at,
                rule: "S11",
                text: format!("{} wrote to {}", attempt.author.name, attempt.lease),
            })
            .collect()
    }

    fn revision(
        &self,
        past: &PastRevisions,
        revision: &LeaseRevision,
    ) -> Result<(), OracleViolation> {
        let attempt = revision
            .attempt
            .and_then(|it| self.history.attempts.get(it));
        let Some(attempt) = attempt else {
            if revision.lease.is_none() || revision.intervention {
                return Ok(());
            }
            return Err(("S3", "no process is known to have written it".to_owned()));
        };
        let Some(after) = &revision.record else {
            return Ok(()); // a stranger's: those of ours are records when they are sent
        };
        // Each times other holders by a clock of its own, an elector and a candidate that may acquire. A lock has a
        // holder as any plain lease has.
        let lock = is_lock(&attempt.lease);
        let (actor, rate, mode) = match (&attempt.author.role, &attempt.author.identity) {
            (Role::Elector { rate }, Some(me)) if lock => {
                (Actor::Candidate(me), *rate, Some(PlannedMode::Plain))
            }
            (Role::Elector { rate }, _) => (Actor::Elector, *rate, None),
            (Role::Candidate { rate, mode, .. }, Some(me)) => {
                (Actor::Candidate(me), *rate, Some(*mode))
            }
            _ => return Ok(()),
        };
        let Some(before) = &past.before else {
            return born(after);
        };
        let Some(before) = &before.record else {
            return Err(("S3", "a record that cannot be read was replaced".to_owned()));
        };
        // A holder puts right what a stranger wrote into its record.
        let repairs = past.foreign && matches!(actor, Actor::Candidate(_));
        match audit(before, after, &actor) {
            Err(Violation::MalformedRenewal | Violation::MalformedAccept) if repairs => {}
            Err(wrong) => return Err(("S3", format!("{wrong}; by {}", attempt.author.name))),
            Ok(Move::AcquireUnheld | Move::AcquireExpired) => {
                return self.acquired(past, before, attempt, (rate, mode));
            }
            Ok(Move::Accept) if mode == Some(PlannedMode::Plain) => {
                return Err(("R18", format!("{} accepted a grant", attempt.author.name)));
            }
            Ok(_) => {}
        }
        if mode.is_some() {
            return Ok(());
        }
        if after.term == before.term {
            return self.signal(past, before, after, attempt);
        }
        self.time(past, before, attempt, (rate, Duration::ZERO))?;
        // A round of pings begins when the record is late, or unheld.
        let late = match before.occupancy() {
            Occupancy::Held(_) => before.duration().unwrap_or(self.longest) * 2 / 3,
            Occupancy::Released | Occupancy::Unproven => Duration::ZERO,
        };
        let late = late.mul_f64(TRUE_RATE as f64 / rate as f64);
        match &after.holder {
            Some(electee) => {
                let round = self.began(&attempt.author, past.since + late);
                self.answered(electee, attempt, Some(round))
            }
            None => Ok(()),
        }
    }

    /// R18: an acquisition waits as an elector does, and in auto mode also for the elector. It needs no ack (S7).
    fn acquired(
        &self,
        past: &PastRevisions,
        before: &LeaseRecord,
        attempt: &RequestAttempt,
        (rate, mode): (u64, Option<PlannedMode>),
    ) -> Result<(), OracleViolation> {
        let name = &attempt.author.name;
        let fallback = match mode {
            Some(PlannedMode::Auto) => FALLBACK,
            Some(PlannedMode::Plain) => Duration::ZERO,
            Some(PlannedMode::Elected) | None => {
                return Err(("R18", format!("{name} acquired, which is to be elected")));
            }
        };
        if before
            .strategy
            .as_ref()
            .is_some_and(|it| it.strategy().is_none())
        {
            return Err(("R18", format!("{name} acquired a lease of another elector")));
        }
        self.time(past, before, attempt, (rate, fallback))
    }

    /// R4 and R6, by the author's own clock, and how much longer it had to wait.
    fn time(
        &self,
        past: &PastRevisions,
        before: &LeaseRecord,
        attempt: &RequestAttempt,
        (rate, more): (u64, Duration),
    ) -> Result<(), OracleViolation> {
        let local = |from: Duration, to: Duration| {
            to.saturating_sub(from).as_nanos() * u128::from(rate) / u128::from(TRUE_RATE)
        };
        let age = local(past.since, attempt.at);
        let (rule, needed) = match before.occupancy() {
            Occupancy::Released => ("R18", Duration::ZERO),
            // Two electors that act at the same time are harmless (R17), so they wait for no proof, and what the
            // built-in controller holds is taken at once and waited out afterwards.
            Occupancy::Unproven if is_lock(&attempt.lease) => ("R6", Duration::ZERO),
            Occupancy::Held(holder) if attempt.lease == BUILTIN_LOCK => {
                ("R4", builtin_wait(holder, before.duration()))
            }
            Occupancy::Held(_) => ("R4", before.duration().unwrap_or(self.longest)),
            Occupancy::Unproven => {
                // The holder of an earlier Lease of this name sent its last renewal before that one was gone, and
                // before the elector saw that there was none.
                let absent = past.gone.unwrap_or_default().max(attempt.author.born);
                let proven = local(absent, attempt.at) >= self.longest.as_nanos();
                if proven && !past.held {
                    ("R18", Duration::ZERO)
                } else {
                    ("R6", self.longest)
                }
            }
        };
        let needed = needed + more;
        if age >= needed.as_nanos() {
            return Ok(());
        }
        let text = format!(
            "{} took or granted after {:.3} s of its clock what it had to leave alone for {needed:?}",
            attempt.author.name,
            Duration::from_nanos(u64::try_from(age).unwrap_or(u64::MAX)).as_secs_f64(),
        );
        Err((rule, text))
    }

    /// When a moment began for an elector: while its clock stands, all that comes is one moment.
    fn began(&self, author: &Author, at: Duration) -> Duration {
        let stood = self.plan.faults.iter().filter(|fault| match &fault.kind {
            FaultKind::StopClock(who, lasts) => {
                let stands = fault.at..=fault.at + *lasts;
                format!("e{}", who.0) == author.name && stands.contains(&at)
            }
            _ => false,
        });
        stood.map(|fault| fault.at).min().unwrap_or(at)
    }

    /// S7 and R15: the elector saw an ack less than 5 s ago by its own clock, or after a ping that it saw since `round`.
    fn answered(
        &self,
        name: &Identity,
        attempt: &RequestAttempt,
        round: Option<Duration>,
    ) -> Result<(), OracleViolation> {
        let author = &attempt.author;
        let deliveries = &self.history.deliveries;
        let states = deliveries.heard(author, attempt.at, name.as_str(), &self.revisions);
        let mut wrong = None;
        for heard in states {
            let Some((ack, seen)) = heard.ack else {
                wrong.get_or_insert("had not answered it".to_owned());
                continue;
            };
            let age = attempt.monotonic.since(seen);
            let mut pings = heard.pings.iter();
            let asked =
                pings.any(|(ping, at)| *ping < ack && round.is_some_and(|round| *at >= round));
            if age < FRESH || asked {
                return Ok(());
            }
            wrong.get_or_insert_with(|| format!("last answered {age:?} ago"));
        }
        match wrong {
            Some(wrong) => Err(("S7", format!("{} chose {name}, which {wrong}", author.name))),
            None => Ok(()),
        }
    }

    /// S11, L3 and R16: what an elector may say to a holder.
    fn signal(
        &self,
        past: &PastRevisions,
        before: &LeaseRecord,
        after: &LeaseRecord,
        attempt: &RequestAttempt,
    ) -> Result<(), OracleViolation> {
        let Some(holder) = &before.holder else {
            return Ok(());
        };
        if !self.registered.contains(holder.as_str()) {
            return Err((
                "S11",
                format!("{holder}, which is no candidate, was touched"),
            ));
        }
        let preferred = after.preferred_holder.as_ref();
        let Some(preferred) = preferred.filter(|it| before.preferred_holder.as_ref() != Some(*it))
        else {
            return Ok(());
        };
        self.answered(preferred, attempt, None)?;
        let changed = |fault: &PlannedFault| {
            matches!(
                fault.kind,
                FaultKind::TamperWithCandidate(..) | FaultKind::Say(_, PlannedWord::Prefer(_), _)
            )
        };
        if !self.plan.faults.iter().any(changed)
            && let Some((one, other)) = self.version(preferred).zip(self.version(holder))
            && one >= other
        {
            return Err((
                "L3",
                format!("{preferred} is preferred to {holder} and not better"),
            ));
        }
        // A preference for a candidate that stops answering is withdrawn, so each fault may cost one more.
        let count = self.plan.setup.candidates.len() / self.plan.setup.leases;
        let term = past.term_since.saturating_sub(AFTERMATH)..=attempt.at;
        let faults = self.plan.faults.iter().filter(|fault| {
            let ends = fault.at + fault.kind.lasts();
            fault.at <= *term.end() && *term.start() <= ends && self.concerns(fault, &attempt.lease)
        });
        let others: usize = faults.map(|fault| 2 * names_of(&fault.kind)).sum();
        let most = count.saturating_sub(1) + others;
        if past.preferences + 1 > most {
            return Err(("L3", format!("more than {most} preferences in one term")));
        }
        Ok(())
    }

    /// True if a fault hits the candidates of a lease, an elector or the Lease itself.
    fn concerns(&self, fault: &PlannedFault, lease: &str) -> bool {
        let electors = self.plan.setup.electors.len();
        let of = match &fault.kind {
            FaultKind::TamperWithLease(of, _)
            | FaultKind::Plain(of, _)
            | FaultKind::Builtin(of, _)
            | FaultKind::IdleCandidate(of, ..)
            | FaultKind::Say(of, ..) => Some(*of),
            kind => kind.who().and_then(|who| {
                let candidate = self.plan.setup.candidates.get(who.0.checked_sub(electors)?);
                candidate.map(|it| it.lease)
            }),
        };
        of.is_none_or(|of| lease_name(of) == lease)
    }

    /// The emulation and binary version that a candidate registered first.
    fn version(&self, name: &Identity) -> Option<(&str, &str)> {
        let mut all = self.history.candidates.iter();
        let found = all.find(|it| it.object.metadata.name.as_deref() == Some(name.as_str()))?;
        let spec = &found.object.spec;
        Some((&spec.emulation_version, &spec.binary_version))
    }
}

/// True if a Lease is a lock, which electors hold.
fn is_lock(lease: &str) -> bool {
    [ELECTOR_LOCK, BUILTIN_LOCK].contains(&lease)
}

/// The time for which an elector leaves the lock of the built-in controller to that holder.
fn builtin_wait(holder: &Identity, duration: Option<Duration>) -> Duration {
    let missed = match holder.is_elector() {
        true => MISSED_RENEWAL,
        false => Duration::ZERO,
    };
    duration.map_or(missed, |duration| missed.min(duration))
}

/// R2: a Lease that is created for candidates names no holder.
fn born(record: &LeaseRecord) -> Result<(), OracleViolation> {
    let empty = LeaseRecord::born(record.strategy.clone());
    if *record == empty {
        Ok(())
    } else {
        Err(("S3", format!("created as {record:?} (R2)")))
    }
}

/// The number of candidates that a fault may add or remove: one, or one for each name that a client registers in turn.
fn names_of(fault: &FaultKind) -> usize {
    let names = match fault {
        FaultKind::IdleCandidate(_, keeps, lasts) => lasts.as_millis() / keeps.as_millis().max(1),
        _ => 0,
    };
    usize::try_from(names).unwrap_or(usize::MAX / 4) + 1
}
