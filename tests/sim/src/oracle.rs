//! The trial of the whole history: was each write of ours a legal move of whoever made it, at a time that its own clock
//! allowed?
//!
//! The recorded history alone cannot tell that here, since every process writes by a clock that is off. The simulation
//! knows who wrote what, when in real time, and how fast each clock runs.

use std::collections::BTreeSet;
use std::time::Duration;

use elector_protocol::elector::{Actor, Violation, audit};
use elector_protocol::{Identity, LeaseRecord, Occupancy, Uid};

use crate::clock::TRUE_RATE;
use crate::context::RuleViolation;
use crate::history::{CandidateRevision, LeaseHistory, LeaseRevision, Role, WriteAttempt};
use crate::plan::{Plan, What};
use crate::process::lease_name;
use crate::tamper::SYSTEM;

/// What is known of a Lease before a revision.
struct Past {
    /// The revision before, `None` where there is no Lease.
    before: Option<LeaseRevision>,
    uid: Option<Uid>,
    /// Since when the record before has been there.
    since: Duration,
    /// When this Lease was created, and since when there had been none, if there ever was one.
    created: Duration,
    gone: Option<Duration>,
    /// Whether any revision of this Lease was held.
    held: bool,
    /// Whether a stranger wrote the revision before.
    foreign: bool,
    /// How many preferences were written in this term.
    preferences: usize,
}

/// The trial of one Lease.
struct Trial<'a> {
    history: &'a LeaseHistory,
    plan: &'a Plan,
    /// `W_max`.
    longest: Duration,
    /// Everybody who ever registered.
    registered: BTreeSet<&'a str>,
}

type Finding = (&'static str, String);

/// Everything that is wrong with the writes of a run.
pub(crate) fn judge(history: &LeaseHistory, plan: &Plan) -> Vec<RuleViolation> {
    let registered = history.candidates.iter();
    let trial = Trial {
        history,
        plan,
        longest: Duration::from_secs(plan.setup.longest()),
        registered: registered
            .filter_map(|it| it.object.metadata.name.as_deref())
            .collect(),
    };
    let mut violations = trial.strays();
    for (lease, revisions) in &history.leases {
        let mut past = Past::nothing();
        for revision in revisions {
            if let Err((rule, text)) = trial.revision(&past, revision) {
                violations.push(RuleViolation {
                    at: revision.at,
                    rule,
                    text: format!("{lease} @{}: {text}", revision.version),
                });
            }
            let attempt = revision.attempt.and_then(|it| history.attempts.get(it));
            past.take(revision, attempt.is_none_or(|it| !it.author.is_ours()));
        }
    }
    violations.sort_by_key(|violation| violation.at);
    violations
}

// === impl Trial ===

impl Trial<'_> {
    /// S11: a Lease that no candidate of the plan names is nobody's affair.
    fn strays(&self) -> Vec<RuleViolation> {
        let names: BTreeSet<String> = (0..self.plan.setup.leases).map(lease_name).collect();
        let all = self.history.attempts.iter();
        let strays = all.filter(|attempt| attempt.author.is_ours());
        strays
            .filter(|attempt| {
                // A candidate that names a lease asks for it to be created.
                let wanted = attempt.base.is_none() && attempt.lease != SYSTEM;
                !names.contains(&attempt.lease) && !wanted
            })
            .map(|attempt| RuleViolation {
                at: attempt.at,
                rule: "S11",
                text: format!("{} wrote to {}", attempt.author.name, attempt.lease),
            })
            .collect()
    }

    fn revision(&self, past: &Past, revision: &LeaseRevision) -> Result<(), Finding> {
        let attempt = revision
            .attempt
            .and_then(|it| self.history.attempts.get(it));
        let (Some(attempt), Some(after)) = (attempt, &revision.record) else {
            return Ok(()); // deleted, or a stranger's
        };
        let actor = match (&attempt.author.role, &attempt.author.identity) {
            (Role::Elector { .. }, _) => Actor::Elector,
            (Role::Candidate { .. }, Some(me)) => Actor::Candidate(me),
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
            Ok(_) => {}
        }
        let Role::Elector { rate } = attempt.author.role else {
            return Ok(());
        };
        if after.term == before.term {
            return self.signal(past, before, after);
        }
        self.time(past, before, attempt, rate)?;
        self.answered(after, attempt)
    }

    /// R4 and R6, by the elector's own clock.
    fn time(
        &self,
        past: &Past,
        before: &LeaseRecord,
        attempt: &WriteAttempt,
        rate: u64,
    ) -> Result<(), Finding> {
        let local = |from: Duration, to: Duration| {
            to.saturating_sub(from).as_nanos() * u128::from(rate) / u128::from(TRUE_RATE)
        };
        let age = local(past.since, attempt.at);
        let (rule, needed) = match before.occupancy() {
            Occupancy::Released => return Ok(()),
            Occupancy::Held(_) => ("R4", before.duration().unwrap_or(self.longest)),
            Occupancy::Unproven => {
                // Whoever held an earlier Lease of this name sent its last renewal before that one was gone, and
                // before the elector saw that there was none.
                let absent = past.gone.unwrap_or_default().max(attempt.author.born);
                let proven = local(absent, attempt.at) >= self.longest.as_nanos();
                if proven && !past.held {
                    return Ok(());
                }
                ("R6", self.longest)
            }
        };
        if age >= needed.as_nanos() {
            return Ok(());
        }
        let text = format!(
            "{} granted after {:.3} s of its clock what it had to leave alone for {needed:?}",
            attempt.author.name,
            Duration::from_nanos(u64::try_from(age).unwrap_or(u64::MAX)).as_secs_f64(),
        );
        Err((rule, text))
    }

    /// S7: the electee answered in the lifetime of the elector that granted.
    fn answered(&self, after: &LeaseRecord, attempt: &WriteAttempt) -> Result<(), Finding> {
        let Some(electee) = &after.holder else {
            return Ok(());
        };
        let mut last: Option<&CandidateRevision> = None;
        let mut answered = false;
        for registered in &self.history.candidates {
            if registered.object.metadata.name.as_deref() != Some(electee.as_str()) {
                continue;
            }
            let (object, known) = (&registered.object, last.map(|it| &it.object));
            let news = known.is_none_or(|known| {
                known.metadata.uid != object.metadata.uid
                    || known.spec.renew_time != object.spec.renew_time
            });
            let heard = (attempt.author.born..=attempt.at).contains(&registered.at);
            answered |= news && heard && !registered.deleted;
            last = Some(registered);
        }
        if answered {
            return Ok(());
        }
        let who = &attempt.author.name;
        Err((
            "S7",
            format!("{who} granted to {electee}, who had not answered it"),
        ))
    }

    /// S11, L3 and R16: what an elector may say to a holder.
    fn signal(
        &self,
        past: &Past,
        before: &LeaseRecord,
        after: &LeaseRecord,
    ) -> Result<(), Finding> {
        let Some(holder) = &before.holder else {
            return Ok(());
        };
        if !self.registered.contains(holder.as_str()) {
            return Err(("S11", format!("{holder}, who is no candidate, was touched")));
        }
        let preferred = after.preferred_holder.as_ref();
        let Some(preferred) = preferred.filter(|it| before.preferred_holder.as_ref() != Some(*it))
        else {
            return Ok(());
        };
        let changed =
            |fault: &crate::plan::Fault| matches!(fault.what, What::TamperWithCandidate(..));
        if !self.plan.faults.iter().any(changed)
            && let Some((one, other)) = self.version(preferred).zip(self.version(holder))
            && one >= other
        {
            return Err((
                "L3",
                format!("{preferred} is preferred to {holder} and not better"),
            ));
        }
        // Whoever stops answering is withdrawn, so each fault may cost one more.
        let count = self.plan.setup.candidates.len() / self.plan.setup.leases;
        let most = count.saturating_sub(1) + 2 * self.plan.faults.len();
        if past.preferences + 1 > most {
            return Err(("L3", format!("more than {most} preferences in one term")));
        }
        Ok(())
    }

    /// What a candidate registered first as its emulation and binary version.
    fn version(&self, name: &Identity) -> Option<(&str, &str)> {
        let mut all = self.history.candidates.iter();
        let found = all.find(|it| it.object.metadata.name.as_deref() == Some(name.as_str()))?;
        let spec = &found.object.spec;
        Some((&spec.emulation_version, &spec.binary_version))
    }
}

// === impl Past ===

impl Past {
    fn nothing() -> Self {
        Self {
            before: None,
            uid: None,
            since: Duration::ZERO,
            created: Duration::ZERO,
            gone: None,
            held: false,
            foreign: false,
            preferences: 0,
        }
    }

    fn take(&mut self, revision: &LeaseRevision, foreign: bool) {
        self.foreign = foreign;
        let Some(lease) = &revision.lease else {
            self.before = None;
            self.uid = None;
            self.gone = Some(revision.at);
            return;
        };
        let uid = lease.metadata.uid.as_deref().map(Uid::new);
        let before = self
            .before
            .as_ref()
            .and_then(|before| before.record.clone());
        if self.before.is_none() || uid != self.uid {
            self.created = revision.at;
            self.since = revision.at;
            self.held = false;
            self.preferences = 0;
        }
        self.uid = uid;
        if let Some(after) = &revision.record {
            self.held |= matches!(after.occupancy(), Occupancy::Held(_));
            match &before {
                Some(before) if before.same_record(after) => {}
                _ => self.since = revision.at,
            }
            match &before {
                Some(before) if before.term == after.term => {
                    let preferred = &after.preferred_holder;
                    let new = preferred.is_some() && *preferred != before.preferred_holder;
                    self.preferences += usize::from(new);
                }
                _ => self.preferences = 0,
            }
        }
        self.before = Some(revision.clone());
    }
}

/// R2: whoever creates a Lease for candidates names no holder.
fn born(record: &LeaseRecord) -> Result<(), Finding> {
    let empty = LeaseRecord::born(record.strategy.clone());
    if *record == empty {
        Ok(())
    } else {
        Err(("S3", format!("created as {record:?} (R2)")))
    }
}

#[cfg(test)]
mod tests {
    use elector_api::{Carrier, Lease};
    use elector_protocol::{Instant, LeaseKey, Timestamp, Token};

    use super::*;
    use crate::history::Author;
    use crate::plan::Reach;

    /// A lease of 15 s, held by one who registered and answered, and written in this order.
    struct Story {
        history: LeaseHistory,
        lease: Lease,
        version: u64,
    }

    impl Story {
        fn new() -> Self {
            let key = LeaseKey::new("default", "lease-0");
            Self {
                history: LeaseHistory::new(Duration::from_secs(15)),
                lease: Lease::named(&key),
                version: 0,
            }
        }

        fn author(role: Role, name: &str) -> Author {
            Author {
                name: name.to_owned(),
                role,
                identity: Identity::new(name),
                life: 1,
                born: Duration::ZERO,
            }
        }

        fn write(&mut self, second: u64, author: Author, record: &LeaseRecord) {
            let at = Duration::from_secs(second);
            let base = (self.version > 0).then_some(self.version);
            self.version += 1;
            self.lease = self.lease.with_record(record, Carrier::Annotations);
            self.lease.metadata.uid = Some("u".to_owned());
            self.lease.metadata.resource_version = Some(self.version.to_string());
            self.history.attempts.push(WriteAttempt {
                author,
                at,
                clock: Instant::from_epoch(at),
                lease: "lease-0".to_owned(),
                base,
                record: self.lease.record().ok(),
                applied: false,
            });
            self.history.record_lease(at, self.lease.clone());
        }

        fn answer(&mut self, second: u64, name: &str) {
            let mut object = elector_api::LeaseCandidate::default();
            object.metadata.name = Some(name.to_owned());
            object.spec.renew_time = at(second);
            let at = Duration::from_secs(second);
            self.history.record_candidate(at, object, false);
        }
    }

    fn at(second: u64) -> Option<Timestamp> {
        Timestamp::from_micros(i64::try_from(second).unwrap() * 1_000_000)
    }

    /// What is said of a second grant so many seconds after the first one was accepted.
    fn granted_after(seconds: u64, answered: bool) -> Vec<&'static str> {
        let elector = |name| Story::author(Role::Elector { rate: TRUE_RATE }, name);
        let mut story = Story::new();
        let born = LeaseRecord::born(None);
        story.write(1, elector("e"), &born);
        story.answer(15, "a");
        let window = Duration::from_secs(5);
        let grant = born.granted(Identity::new("a").unwrap(), window, at(16).unwrap());
        story.write(16, elector("e"), &grant);
        let accept = LeaseRecord {
            duration_seconds: Some(15),
            renew_time: at(17),
            token: Some(Token(elector_protocol::ResourceVersion(2))),
            token_term: Some(grant.term),
            ..grant
        };
        story.write(
            17,
            Story::author(Role::Candidate { lease: 0 }, "a"),
            &accept,
        );
        if answered {
            story.answer(18, "b");
        }
        let next = accept.granted(Identity::new("b").unwrap(), window, at(99).unwrap());
        story.write(17 + seconds, elector("e"), &next);
        let mut plan = Plan::draw(1, Reach::Within);
        plan.setup.leases = 1;
        for candidate in &mut plan.setup.candidates {
            candidate.timing = (15, 10);
        }
        let found = judge(&story.history, &plan);
        found.into_iter().map(|violation| violation.rule).collect()
    }

    #[test]
    fn a_grant_is_held_against_the_clock_of_its_author_and_the_answers_it_can_have_seen() {
        assert_eq!(granted_after(15, true), [""; 0]);
        assert_eq!(granted_after(14, true), ["R4"]);
        assert_eq!(granted_after(15, false), ["S7"]);
    }
}
