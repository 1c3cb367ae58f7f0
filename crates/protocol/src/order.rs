//! The one total order of candidates (R16): the strategy's keys, the incumbent, the older object, the name.

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

/// Sorts contenders, the best one first. The result does not depend on the order that they come in.
pub fn best_first<'a>(
    strategy: &dyn Strategy,
    incumbent: Option<&Identity>,
    contenders: impl IntoIterator<Item = Contender<'a>>,
) -> Vec<Contender<'a>> {
    let mut sorted: Vec<_> = contenders.into_iter().collect();
    sorted.sort_by(|left, right| compare(strategy, incumbent, left, right));
    sorted
}

/// Says why `better` precedes `other`, as a fragment that follows the candidate's name.
pub(crate) fn because(
    strategy: &dyn Strategy,
    incumbent: Option<&Identity>,
    better: &Contender<'_>,
    other: &Contender<'_>,
) -> String {
    if strategy.compare(better.spec, other.spec) != Ordering::Equal {
        return strategy.because(better.spec, other.spec);
    }
    if Some(&better.candidate.name) == incumbent {
        return "is the incumbent among equals".to_owned();
    }
    if better.candidate.created == other.candidate.created {
        return "has the lower name among equals".to_owned();
    }
    "is the older candidate among equals".to_owned()
}

fn compare(
    strategy: &dyn Strategy,
    incumbent: Option<&Identity>,
    left: &Contender<'_>,
    right: &Contender<'_>,
) -> Ordering {
    let outsider = |contender: &Contender<'_>| Some(&contender.candidate.name) != incumbent;
    strategy
        .compare(left.spec, right.spec)
        .then_with(|| outsider(left).cmp(&outsider(right)))
        .then_with(|| left.candidate.created.cmp(&right.candidate.created))
        .then_with(|| left.candidate.name.cmp(&right.candidate.name))
}
