//! The one total order of candidates (R16): the operator's preference, the strategy's keys, in a group the assignment,
//! the incumbent, the older object, the name.

use std::cmp::Ordering;

use crate::names::Identity;
use crate::spec::{CandidateRecord, CandidateSpec};
use crate::strategy::Strategy;

/// An eligible candidate, with what the order compares.
#[derive(Clone, Copy, Debug)]
pub struct Contender<'a> {
    /// The candidate.
    pub candidate: &'a CandidateRecord,
    /// Its valid spec.
    pub spec: &'a CandidateSpec,
}

/// The inputs to the order of the candidates of one lease, besides themselves.
#[derive(Clone, Copy, Debug)]
pub struct CandidateOrder<'a> {
    /// The candidate that an operator prefers now, if one does.
    pub preferred: Option<&'a Identity>,
    /// The strategy of the lease.
    pub strategy: &'a dyn Strategy,
    /// The candidate that the part is assigned to, where the lease is one of a group.
    pub assigned: Option<&'a Identity>,
    /// The holder of the record.
    pub incumbent: Option<&'a Identity>,
}

/// Why the candidate goes first that a part of a group is assigned to.
const BALANCES: &str = "is assigned this part of its group";

// === impl CandidateOrder ===

impl CandidateOrder<'_> {
    /// Sorts contenders, the best one first. The result does not depend on the order that they come in.
    pub fn best_first<'c>(
        &self,
        contenders: impl IntoIterator<Item = Contender<'c>>,
    ) -> Vec<Contender<'c>> {
        let mut sorted: Vec<_> = contenders.into_iter().collect();
        sorted.sort_by(|left, right| self.compare(left, right));
        sorted
    }

    /// True if `left` is strictly better than `right`, by what a holder makes room for: the operator's preference, the
    /// strategy's keys and, unless the strategy has leaders stay, the assignment.
    pub fn is_better(&self, left: &Contender<'_>, right: &Contender<'_>) -> bool {
        self.compare_moving(left, right) == Ordering::Less
    }

    /// Says why `better` precedes `other`, as a fragment that follows the candidate's name.
    pub(crate) fn because(&self, better: &Contender<'_>, other: &Contender<'_>) -> String {
        if self.prefers(better) {
            return "is preferred by an operator".to_owned();
        }
        if self.strategy.compare(better.spec, other.spec) != Ordering::Equal {
            return self.strategy.because(better.spec, other.spec);
        }
        let assigned = self.is_assigned(better);
        if assigned && self.strategy.moves_for_balance() {
            return BALANCES.to_owned();
        }
        if Some(&better.candidate.name) == self.incumbent {
            return "is the incumbent among equals".to_owned();
        }
        if assigned {
            return BALANCES.to_owned();
        }
        if better.candidate.created == other.candidate.created {
            return "has the lower name among equals".to_owned();
        }
        "is the older candidate among equals".to_owned()
    }

    fn prefers(&self, contender: &Contender<'_>) -> bool {
        Some(&contender.candidate.name) == self.preferred
    }

    fn is_assigned(&self, contender: &Contender<'_>) -> bool {
        Some(&contender.candidate.name) == self.assigned
    }

    /// By the operator's preference and the strategy's keys: those that are equal by these share the parts of a group.
    pub(crate) fn compare_keys(&self, left: &Contender<'_>, right: &Contender<'_>) -> Ordering {
        let operators = self.prefers(right).cmp(&self.prefers(left));
        operators.then_with(|| self.strategy.compare(left.spec, right.spec))
    }

    fn compare_assigned(&self, left: &Contender<'_>, right: &Contender<'_>) -> Ordering {
        self.is_assigned(right).cmp(&self.is_assigned(left))
    }

    fn compare_moving(&self, left: &Contender<'_>, right: &Contender<'_>) -> Ordering {
        let keys = self.compare_keys(left, right);
        match self.strategy.moves_for_balance() {
            true => keys.then_with(|| self.compare_assigned(left, right)),
            false => keys,
        }
    }

    fn compare(&self, left: &Contender<'_>, right: &Contender<'_>) -> Ordering {
        let outsider =
            |contender: &Contender<'_>| Some(&contender.candidate.name) != self.incumbent;
        self.compare_moving(left, right)
            .then_with(|| outsider(left).cmp(&outsider(right)))
            .then_with(|| self.compare_assigned(left, right))
            .then_with(|| left.candidate.created.cmp(&right.candidate.created))
            .then_with(|| left.candidate.name.cmp(&right.candidate.name))
    }
}
