//! The check of what the plan of a run tells and its history does not: who may have written at all, and how many
//! preferences there may be (L3). All else is for the [checker](crate::verification).

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use elector_api::annotation::PRIORITY;
use elector_protocol::{Identity, LeaseRecord};

use crate::context::RuleViolation;
use crate::effect::StrikeLog;
use crate::history::{LeaseHistory, LeaseRevision, RequestAttempt, Role};
use crate::names::{BUILTIN_LOCK, ELECTOR_LOCK, SYSTEM, lease_name};
use crate::plan::{FaultKind, PlannedFault, PlannedStrategy, PlannedWord, RunPlan};

/// The check of the writes of a run.
struct WriteCheck<'a> {
    history: &'a LeaseHistory,
    plan: &'a RunPlan,
    effects: &'a StrikeLog,
}

/// For how long after a fault electors may still judge by what it hid from them.
const AFTERMATH: Duration = Duration::from_secs(30);

/// The violations by the writes of a run.
pub(crate) fn violations(
    history: &LeaseHistory,
    plan: &RunPlan,
    effects: &StrikeLog,
) -> Vec<RuleViolation> {
    let check = WriteCheck {
        history,
        plan,
        effects,
    };
    let mut found = check.strays();
    for (lease, revisions) in history.told().flat_map(|it| &it.leases) {
        check.lease(lease, revisions, &mut found);
    }
    found.sort_by_key(|violation| violation.at);
    found
}

// === impl WriteCheck ===

impl WriteCheck<'_> {
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
                let lock = [ELECTOR_LOCK, BUILTIN_LOCK].contains(&&*attempt.lease);
                let system = attempt.lease == SYSTEM && !locks.builtin;
                let wanted = attempt.base.is_none() && !lock && !system;
                !names.contains(&attempt.lease) && !wanted
            })
            .map(|attempt| RuleViolation {
                at: attempt.at,
                rule: "S11",
                text: format!("{} wrote to {}", attempt.author.name, attempt.lease),
            })
            .collect()
    }

    /// The senders of all revisions are known, and L3.
    fn lease(&self, lease: &str, revisions: &[LeaseRevision], found: &mut Vec<RuleViolation>) {
        let mut before: Option<&LeaseRecord> = None;
        let (mut term_since, mut preferences) = (Duration::ZERO, 0);
        for revision in revisions {
            let mut report = |rule, text| {
                let text = format!("{lease} @{}: {text}", revision.version);
                let at = revision.at;
                found.push(RuleViolation { at, rule, text });
            };
            let attempt = revision.attempt;
            let attempt = attempt.and_then(|it| self.history.attempts.get(it));
            if attempt.is_none() && revision.lease.is_some() && !revision.intervention {
                report("S3", "no process is known to have written it".to_owned());
            }
            let Some(after) = &revision.record else {
                before = before.filter(|_| revision.lease.is_some());
                continue;
            };
            let Some(last) = before.replace(after).filter(|it| it.term == after.term) else {
                (term_since, preferences) = (revision.at, 0);
                continue;
            };
            let Some(preferred) = &after.preferred_holder else {
                continue;
            };
            if last.preferred_holder.as_ref() == Some(preferred) {
                continue;
            }
            preferences += 1;
            let elector = attempt.filter(|it| matches!(it.author.role, Role::Elector { .. }));
            let (Some(attempt), Some(holder)) = (elector, &last.holder) else {
                continue;
            };
            if self.is_no_better((preferred, holder), lease, revision.at) {
                let text = format!("{preferred} is preferred to {holder} and not better");
                report("L3", text);
            }
            let most = self.most_preferences(attempt, term_since);
            if preferences > most && !self.plan.setup.is_group() {
                let text = format!("more than {most} preferences in one term");
                report("L3", text);
            }
        }
    }

    /// True if the first candidate registered with no better rank than the other, and nothing of this lease had
    /// changed it or the order just before.
    /// Under a strategy by which leaders stay, no version matters once all is mended.
    fn is_no_better(&self, pair: (&Identity, &Identity), lease: &str, at: Duration) -> bool {
        let setup = &self.plan.setup;
        let number = (0..setup.leases).find(|number| lease_name(*number) == lease);
        let Some(strategy) = number.and_then(|number| setup.common_strategy(number)) else {
            return false;
        };
        let mended = at > self.plan.faults_end + 2 * AFTERMATH;
        let stays = mended && strategy == PlannedStrategy::Sticky;
        let changed = |(index, fault): (usize, &PlannedFault)| {
            let changes = matches!(
                fault.kind,
                FaultKind::TamperWithCandidate(..)
                    | FaultKind::Say(_, PlannedWord::Prefer(_), _)
                    | FaultKind::StandDown(..)
            );
            // A restore of the store brings back what stood when the backup was made; a candidate mends its object in a while.
            let mends = match fault.kind {
                FaultKind::TamperWithCandidate(..) => AFTERMATH,
                _ => Duration::ZERO,
            };
            let restored = |it: &RangeInclusive<Duration>| {
                let mut lost = self.history.lost.iter();
                let stood = *it.start()..=*it.end() + mends;
                lost.any(|lost| lost.at <= at && stood.contains(&lost.kept_at))
            };
            let mut struck = self.effects.of(index).iter();
            let then = struck
                .any(|it| (*it.start()..=*it.end() + AFTERMATH).contains(&at) || restored(it));
            changes && then && self.concerns(&fault.kind, lease)
        };
        let ranks = self.rank(strategy, pair.0).zip(self.rank(strategy, pair.1));
        // Members of one version share the parts of a group; which of these preferences is needless is for the checker (L9).
        let share = setup.is_group();
        let no_better = |(one, other)| one > other || (one == other && !share);
        let mut faults = self.plan.faults.iter().enumerate();
        (stays || !faults.any(changed)) && ranks.is_some_and(no_better)
    }

    /// The most preferences of a term. One for a candidate that stops answering is withdrawn, so each fault may cost one
    /// more.
    fn most_preferences(&self, attempt: &RequestAttempt, term_since: Duration) -> usize {
        let count = self.plan.setup.candidates.len() / self.plan.setup.leases;
        let (since, until) = (term_since.saturating_sub(AFTERMATH), attempt.at);
        let faults = self.plan.faults.iter().enumerate();
        let faults = faults.filter(|(_, it)| self.concerns(&it.kind, &attempt.lease));
        let others = faults.map(|(index, fault)| {
            let struck = self.effects.of(index).iter();
            let within = struck.map(|it| (since.max(*it.start()), until.min(*it.end())));
            let within = within.filter(|(from, to)| from <= to);
            within
                .map(|(from, to)| names_of(&fault.kind, to - from))
                .max()
        });
        count.saturating_sub(1) + 2 * others.flatten().sum::<usize>()
    }

    /// True if a fault is for a candidate of this lease, for the Lease itself, or for the watches of an elector.
    fn concerns(&self, fault: &FaultKind, lease: &str) -> bool {
        let electors = self.plan.setup.electors.len();
        let of = match fault {
            FaultKind::TamperWithLease(of, _)
            | FaultKind::Plain(of, _)
            | FaultKind::ClientGoCandidate(of, _)
            | FaultKind::Builtin(of, _)
            | FaultKind::IdleCandidate(of, ..)
            | FaultKind::Say(of, ..)
            | FaultKind::SpoilWork(of, ..) => Some(*of),
            FaultKind::FloodNamespace(_)
            | FaultKind::TamperWithLock(_)
            | FaultKind::HoldLock(_) => return false,
            kind => match kind.who().map(|who| who.0.checked_sub(electors)) {
                Some(Some(candidate)) => {
                    let candidate = self.plan.setup.candidates.get(candidate);
                    candidate.map(|it| it.lease)
                }
                Some(None) if !kind.blinds() => return false,
                _ => None,
            },
        };
        of.is_none_or(|of| lease_name(of) == lease)
    }

    /// The rank that a candidate registered first with.
    fn rank(&self, strategy: PlannedStrategy, name: &Identity) -> Option<[u64; 3]> {
        let mut all = self.history.told().flat_map(|it| &it.candidates);
        let found = all.find(|it| it.object.metadata.name.as_deref() == Some(name.as_str()))?;
        let (spec, annotations) = (&found.object.spec, &found.object.metadata.annotations);
        let priority = annotations.as_ref().and_then(|all| all.get(PRIORITY));
        let priority = priority.map_or(0, |text| text.parse().unwrap_or_default());
        let versions = (
            number(&spec.emulation_version),
            number(&spec.binary_version),
        );
        Some(strategy.rank(versions, priority))
    }
}

/// A version as a number, the newer one the higher.
fn number(version: &str) -> u64 {
    let parts = version.split('.');
    parts.fold(0, |number, part| 1000 * number + part.parse().unwrap_or(0))
}

/// The number of candidates that a fault may add or remove in so long: one, or one for each name that a client registers in
/// turn.
fn names_of(fault: &FaultKind, lasts: Duration) -> usize {
    let names = match fault {
        FaultKind::IdleCandidate(_, keeps, _) => lasts.as_millis() / keeps.as_millis().max(1),
        _ => 0,
    };
    usize::try_from(names).unwrap_or(usize::MAX / 4) + 1
}
