//! The recorded history before the checker of `elector verify`: legal moves, tokens and terms, one life for one name.
//!
//! The checker gets what any client could have recorded, and the names of the strangers. Times that two processes wrote
//! are never compared, since each clock is off by minutes here; the [`oracle`](crate::oracle) knows better when what
//! happened.

use std::sync::Arc;
use std::time::Duration;

use elector_protocol::{LeaseKey, ResourceVersion, Timestamp};
use elector_verify::{
    Breach, EntryContent, History, Implementation, Invariant, Limits, Participants, TraceCoverage,
    verify,
};

use crate::context::RuleViolation;
use crate::history::{LeaseHistory, Role};
use crate::names::{ELECTOR_LOCK, EPOCH, NAMESPACE, lease_name};
use crate::plan::{FaultKind, LeaseTampering, RunPlan};

/// The longest time from a commit to its sight by an elector, as far as is known: it may have slept.
const RECORDING_DELAY: Duration = Duration::from_secs(3600);

/// The violations that the history checker finds.
pub(crate) fn violations(history: &LeaseHistory, plan: &RunPlan) -> Vec<RuleViolation> {
    let mut participants = Participants::new(Limits {
        longest_lease: Duration::from_secs(plan.setup.longest()),
        clock_difference: None,
        recording_delay: RECORDING_DELAY,
        drift: 2.0,
        ..Limits::default()
    });
    let mut recorded = History::default().with_trace_coverage(TraceCoverage::Partial);
    for name in plan.setup.lease_names() {
        let key = LeaseKey::new(NAMESPACE, name.clone());
        for revision in history.leases.get(&name).into_iter().flatten() {
            let attempt = revision.attempt.and_then(|it| history.attempts.get(it));
            if attempt.is_none_or(|it| !it.author.is_ours()) {
                participants.add_foreign(ResourceVersion(revision.version));
            }
            // A plain process registers nothing, and neither does an elector.
            if let Some(author) = attempt.map(|it| &it.author)
                && let (true, Some(identity)) = (holds(&author.role, &name), &author.identity)
            {
                participants.add(key.clone(), identity.as_str(), Implementation::Elector);
            }
            let what = match (&revision.lease, &revision.last) {
                (Some(lease), _) => EntryContent::Lease(name.clone(), Arc::new(lease.clone())),
                (None, Some(last)) => EntryContent::LeaseGone(name.clone(), Arc::new(last.clone())),
                (None, None) => continue,
            };
            recorded.record(time(revision.at), what);
        }
        for registered in &history.candidates {
            let object = &registered.object;
            if *object.spec.lease_name == *name
                && let Some(name) = &object.metadata.name
            {
                participants.add(key.clone(), name.as_str(), Implementation::Elector);
            }
        }
    }
    for registered in &history.candidates {
        let object = &registered.object;
        let what = EntryContent::candidate(object.clone(), registered.deleted);
        recorded.record(time(registered.at), what);
    }
    let verdict = verify(&recorded, &participants);
    // A holder that is asked to make room for a candidate that does not exist does so, and a term whose number a stranger
    // wrote may begin twice: those are the stranger's acts. The guards check without exception that tokens grow.
    let follows_nonsense = |breach: &Breach| {
        plan.faults.iter().any(|fault| {
            matches!(fault.kind, FaultKind::TamperWithLease(of, LeaseTampering::Nonsense)
                if *breach.lease.name == *lease_name(of) && time(fault.at) <= breach.at)
        })
    };
    let breaches = verdict.promised_breaches().filter(|breach| {
        !(matches!(breach.invariant, Invariant::S5 | Invariant::S7) && follows_nonsense(breach))
    });
    let breaches = breaches.map(|breach| RuleViolation {
        at: Duration::from_micros(u64::try_from(breach.at.as_micros() - EPOCH).unwrap_or(0)),
        rule: breach.invariant.id(),
        text: format!("in the recorded history: {breach}"),
    });
    breaches.collect()
}

/// True if a process of ours holds that lease, rather than granting it to others.
fn holds(role: &Role, lease: &str) -> bool {
    match role {
        Role::Candidate { .. } => true,
        Role::Elector { .. } => lease == ELECTOR_LOCK,
        Role::Plain | Role::Builtin | Role::Kubectl => false,
    }
}

fn time(at: Duration) -> Timestamp {
    let micros = i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(EPOCH.saturating_add(micros)).unwrap_or(Timestamp::MAX)
}
