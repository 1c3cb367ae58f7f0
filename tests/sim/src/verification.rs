//! The recorded history before the checker of `elector verify`, which is given more than a client could have recorded: the
//! writer of each revision, its clock, and what it had heard by then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use elector_api::annotation::PROTOCOL;
use elector_protocol::{LeaseKey, ResourceVersion, Timestamp};
use elector_verify::{
    Breach, CandidateAnswers, ElectorSight, EntryContent, History, Implementation, Invariant,
    LeasePurpose, Limits, Participants, RecordedWriter, TermSource, TraceCoverage, WriterRole,
    verify,
};

use crate::clock::TRUE_RATE;
use crate::context::RuleViolation;
use crate::effect::StrikeLog;
use crate::history::{
    Author, CandidateRevision, LeaseHistory, LeaseRevision, LostHistory, RequestAttempt, Role,
    StoredHistory,
};
use crate::names::{BUILTIN_LOCK, ELECTOR_LOCK, EPOCH, FALLBACK, NAMESPACE, lease_name};
use crate::plan::{ElectorFlags, FaultKind, LeaseTampering, PlannedMode, Requests, RunPlan};

/// The longest time from a commit to its record, as far as the checker is to know. It is longer than any run, so that belief
/// is not judged by the times of the Lease: the guards tell it.
const RECORDING_DELAY: Duration = Duration::from_secs(3600);

/// The longest time of an elector to list and to see what is new, and to watch again after a fault.
const CATCH_UP: Duration = Duration::from_secs(40);

/// The longest time for which an elector holds back for what it has seen (R23), by the slowest clock.
const HOLDS_BACK: Duration = Duration::from_secs(17 * 60);

/// A run, with all revisions of its candidates by their versions.
struct RecordedRun<'a> {
    history: &'a LeaseHistory,
    /// One of those that its store has told.
    stored: &'a StoredHistory,
    plan: &'a RunPlan,
    effects: &'a StrikeLog,
    candidates: BTreeMap<u64, &'a CandidateRevision>,
}

/// The violations that the history checker finds, in each history that the store has told.
pub(crate) fn violations(
    history: &LeaseHistory,
    plan: &RunPlan,
    effects: &StrikeLog,
) -> Vec<RuleViolation> {
    let told = history.told();
    told.flat_map(|stored| violations_of(history, stored, plan, effects))
        .collect()
}

fn violations_of(
    history: &LeaseHistory,
    stored: &StoredHistory,
    plan: &RunPlan,
    effects: &StrikeLog,
) -> Vec<RuleViolation> {
    // An elector has heard what was lost in a restore, too.
    let candidates = history.told().flat_map(|it| &it.candidates);
    let run = RecordedRun {
        history,
        stored,
        plan,
        effects,
        candidates: candidates.map(|it| (it.version(), it)).collect(),
    };
    let (recorded, participants) = run.record();
    let verdict = verify(&recorded, &participants);
    // A holder that is asked to make room for a candidate that does not exist does so, and a term whose number a stranger
    // wrote may begin twice: those are the stranger's acts. The guards check that tokens grow.
    let follows_nonsense = |breach: &Breach| {
        plan.faults.iter().enumerate().any(|(index, fault)| {
            let mut struck = effects.of(index).iter();
            matches!(fault.kind, FaultKind::TamperWithLease(of, LeaseTampering::Nonsense)
                if *breach.lease.name == *lease_name(of) && struck.any(|it| time(*it.start()) <= breach.at))
        })
    };
    // An elector that sees the store restored starts over (R4), and has forgotten whom it had asked to make room.
    let starts_over = |breach: &Breach| {
        let mut restores = history.lost.iter();
        let forgot =
            |lost: &LostHistory| (time(lost.at)..=time(lost.at + HOLDS_BACK)).contains(&breach.at);
        breach.invariant == Invariant::R23 && restores.any(forgot)
    };
    let breaches = verdict.promised_breaches().filter(|breach| {
        let of_others = breach.message.starts_with("handed over");
        let excusable = breach.invariant == Invariant::S5 || of_others;
        !(starts_over(breach) || (excusable && follows_nonsense(breach)))
    });
    let breaches = breaches.map(|breach| RuleViolation {
        at: Duration::from_micros(u64::try_from(breach.at.as_micros() - EPOCH).unwrap_or(0)),
        rule: breach.invariant.id(),
        text: format!("in the recorded history: {breach}"),
    });
    breaches.collect()
}

// === impl RecordedRun ===

impl RecordedRun<'_> {
    /// All that happened, for the checker.
    fn record(&self) -> (History, Participants) {
        let setup = &self.plan.setup;
        let mut participants = Participants::new(Limits {
            // A candidate allows for 15 s, and no lease is longer.
            longest_lease: Duration::from_secs(setup.longest().max(15)),
            clock_difference: None,
            recording_delay: RECORDING_DELAY,
            drift: 2.0,
            ..Limits::default()
        });
        let mut recorded = History::default().with_trace_coverage(TraceCoverage::Partial);
        let builtin = LeaseKey::new("kube-system", BUILTIN_LOCK);
        let names = self.plan.setup.lease_names();
        let keys = names.map(|name| LeaseKey::new(NAMESPACE, name));
        participants.add_lock(
            LeaseKey::new(NAMESPACE, ELECTOR_LOCK),
            LeasePurpose::ElectorLock,
        );
        participants.add_lock(builtin.clone(), LeasePurpose::BuiltinLock);
        for key in keys.chain([builtin]) {
            for revision in self.stored.leases.get(&*key.name).into_iter().flatten() {
                self.add_writer(&mut participants, &key, revision);
                let name = key.name.to_string();
                let content = match (&revision.lease, &revision.last) {
                    (Some(lease), _) => EntryContent::Lease(name, Arc::new(lease.clone())),
                    (None, Some(last)) => EntryContent::LeaseGone(name, Arc::new(last.clone())),
                    (None, None) => continue,
                };
                recorded.record(time(revision.at), content);
            }
        }
        for registered in &self.stored.candidates {
            let object = &registered.object;
            if let Some(name) = &object.metadata.name {
                let annotations = object.metadata.annotations.as_ref();
                let ours = annotations.is_some_and(|all| all.contains_key(PROTOCOL));
                let implementation = match ours {
                    true => Implementation::Elector,
                    false => Implementation::ClientGo,
                };
                participants.add(object.lease_key(), name.as_str(), implementation);
            }
            let content = EntryContent::candidate(object.clone(), registered.deleted);
            recorded.record(time(registered.at), content);
        }
        (recorded, participants)
    }

    fn add_writer(
        &self,
        participants: &mut Participants,
        lease: &LeaseKey,
        revision: &LeaseRevision,
    ) {
        let version = ResourceVersion(revision.version);
        let attempt = revision
            .attempt
            .and_then(|it| self.history.attempts.get(it));
        // It is judged by its objects, as any client-go's is.
        if attempt.is_some_and(|it| it.author.role == Role::ClientGo) {
            return;
        }
        let Some(attempt) = attempt.filter(|it| it.author.is_ours()) else {
            return participants.add_foreign(version);
        };
        let author = &attempt.author;
        let lock = [ELECTOR_LOCK, BUILTIN_LOCK].contains(&&*lease.name);
        let (rate, terms) = match author.role {
            // A lock has a holder as any plain lease has.
            Role::Elector { rate } => (rate, lock.then_some(TermSource::Acquired)),
            Role::Candidate { rate, mode, .. } => {
                let terms = match mode {
                    PlannedMode::Elected => TermSource::Granted,
                    PlannedMode::Auto => TermSource::GrantedOrAcquired(FALLBACK),
                    PlannedMode::Plain => TermSource::Acquired,
                };
                (rate, Some(terms))
            }
            Role::Plain | Role::ClientGo | Role::Builtin | Role::Kubectl => return,
        };
        let role = match (terms, &author.identity) {
            (Some(terms), Some(identity)) => {
                // A plain process registers nothing, and neither does an elector.
                let ours = Implementation::Elector;
                participants.add(lease.clone(), identity.as_str(), ours);
                let identity = identity.clone();
                WriterRole::Holder { identity, terms }
            }
            _ => WriterRole::Elector(self.sight(attempt)),
        };
        let writer = RecordedWriter {
            role,
            born: time(author.born),
            sent: time(attempt.at),
            #[expect(clippy::cast_precision_loss, reason = "rates are in the millions")]
            rate: rate as f64 / TRUE_RATE as f64,
            longest_lease: self.longest_lease(attempt),
        };
        participants.add_writer(version, writer);
    }

    /// `W_max` of the author of an attempt, as far as it certainly knew: what an elector allows for, and what the candidates
    /// that it had been shown announce.
    fn longest_lease(&self, attempt: &RequestAttempt) -> Option<Duration> {
        let allows = Duration::from_secs(self.flags(&attempt.author)?.max_lease_duration);
        let announced = |before| {
            let shown = &self.history.deliveries;
            let shown = shown.shown(&attempt.author, before, &self.candidates);
            let of_lease = shown.filter(|it| *it.object.lease_key().name == *attempt.lease);
            let announced = of_lease.filter_map(|it| it.object.candidate().ok()?.announced);
            announced.chain([allows]).max()
        };
        // Of what came at that very moment it may have taken in a part when it acted.
        announced(attempt.at).min(announced(attempt.at + Duration::from_nanos(1)))
    }

    /// The flags of an author that is an elector.
    fn flags(&self, author: &Author) -> Option<ElectorFlags> {
        let elector = author.name.strip_prefix('e')?.parse().ok()?;
        Some(self.plan.setup.flags(elector))
    }

    /// The news that the author of an attempt had by then.
    fn sight(&self, attempt: &RequestAttempt) -> ElectorSight {
        let author = &attempt.author;
        let record = attempt.record.as_ref();
        let chosen = record.and_then(|it| it.preferred_holder.as_ref().or(it.holder.as_ref()));
        let heard = chosen.map(|name| {
            let deliveries = &self.history.deliveries;
            deliveries.heard(author, attempt.at, name.as_str(), &self.candidates)
        });
        let answers = heard.unwrap_or_default().into_iter().map(|heard| {
            let pings = heard.pings.into_iter();
            CandidateAnswers {
                ack: heard
                    .ack
                    .map(|(ack, seen)| (ResourceVersion(ack), attempt.monotonic.since(seen))),
                pings: pings
                    .map(|(ping, at)| (ResourceVersion(ping), time(self.ends(author, at))))
                    .collect(),
            }
        });
        let before_it_ran = (Timestamp::MIN, time(author.born + CATCH_UP));
        let faults = self.plan.faults.iter().enumerate().filter(|(_, fault)| {
            let blinds = match &fault.kind {
                FaultKind::Refuse(_, requests, ..)
                | FaultKind::Lose(_, requests, ..)
                | FaultKind::Delay(_, requests, ..) => {
                    matches!(requests, Requests::All | Requests::Reads)
                }
                kind => matches!(
                    kind,
                    FaultKind::Pause(..)
                        | FaultKind::Partition(..)
                        | FaultKind::Slow(..)
                        | FaultKind::Freeze(..)
                        | FaultKind::OldCache(..)
                        | FaultKind::HideCandidates(_)
                        | FaultKind::DowngradeCandidates(_)
                        | FaultKind::Compact
                        | FaultKind::EndWatches(..)
                ),
            };
            let who = fault.kind.who();
            blinds && who.is_none_or(|who| format!("e{}", who.0) == author.name)
        });
        let struck = faults.flat_map(|(index, _)| self.effects.of(index));
        let struck = struck.map(|it| (*it.start(), *it.end()));
        // Over another version it begins anew, and has forgotten all that it saw.
        let anew = self.history.deliveries.other_version(author, attempt.at);
        let anew = anew.map(|at| (Duration::ZERO, at));
        let restored = self.history.lost.iter().map(|lost| (lost.at, lost.at));
        let blinding = struck.chain(restored).chain(anew);
        let blinding = blinding.map(|(from, to)| (time(from), time(to + CATCH_UP)));
        ElectorSight {
            preemptions: self.flags(author).and_then(|it| it.preemptions),
            answers: answers.collect(),
            blind: [before_it_ran].into_iter().chain(blinding).collect(),
        }
    }

    /// When a moment ends for an elector: while its clock stands, all that comes is one moment.
    fn ends(&self, author: &Author, at: Duration) -> Duration {
        let stood = self
            .plan
            .faults
            .iter()
            .filter_map(|fault| match &fault.kind {
                FaultKind::StopClock(who, lasts) if format!("e{}", who.0) == author.name => {
                    let stands = fault.at..=fault.at + *lasts;
                    stands.contains(&at).then_some(*stands.end())
                }
                _ => None,
            });
        stood.max().unwrap_or(at)
    }
}

fn time(at: Duration) -> Timestamp {
    let micros = i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(EPOCH.saturating_add(micros)).unwrap_or(Timestamp::MAX)
}
