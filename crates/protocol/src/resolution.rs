//! Which wish counts where candidates of one lease wish for different strategies.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::names::Identity;
use crate::spec::CandidateSpec;
use crate::strategy::name::StrategyName;
use crate::version::Version;

/// Which strategy a lease is elected under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// No candidate has a valid wish.
    NoWish,
    /// The wish that counts.
    One(StrategyName),
    /// No wish counts more than the others.
    Conflict(Conflict),
}

/// A disagreement on the strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Candidates of the same, highest binary version wish for different things.
    Wishes {
        /// The binary version that they share.
        binary: Option<Version>,
        /// Each strategy wished for, with the first candidate by name that wishes for it.
        wishes: BTreeMap<StrategyName, Identity>,
    },
    /// Of several strategies that candidates list first, none supersedes the others (v1alpha1).
    Unrelated {
        /// Each of those strategies, with the first candidate by name that lists it first.
        firsts: BTreeMap<StrategyName, Identity>,
    },
    /// Candidates' lists of superseded strategies form a circle (v1alpha1).
    Circle {
        /// A strategy, what it supersedes, and the first candidate by name that says so; each superseded strategy
        /// begins the next step, and that of the last step the first.
        steps: Vec<(StrategyName, StrategyName, Identity)>,
    },
}

/// The disputed point of a conflict.
pub(crate) enum Disputed<'a> {
    /// The wish of this binary version.
    Version(Option<&'a Version>),
    /// Which of these strategies supersedes the others.
    Firsts(&'a BTreeMap<StrategyName, Identity>),
    /// The strategy below each one of a circle.
    Circle(BTreeMap<&'a StrategyName, &'a StrategyName>),
}

/// Which strategy supersedes which, and the first candidate by name that says so.
type Edges<'a> = BTreeMap<&'a StrategyName, BTreeMap<&'a StrategyName, &'a Identity>>;

/// The most wishes of a conflict named one by one.
const NAMED: usize = 8;

// === impl Resolution ===

impl Resolution {
    /// The wish of all of these, where they have the same and no lists: it counts, whichever of them are left out.
    pub(crate) fn agreed<'a>(
        mut candidates: impl Iterator<Item = &'a CandidateSpec>,
    ) -> Option<&'a StrategyName> {
        let first = candidates.next()?;
        let agrees =
            |spec: &CandidateSpec| spec.supersedes.is_none() && spec.strategy == first.strategy;
        (agrees(first) && candidates.all(agrees)).then_some(&first.strategy)
    }

    /// Resolves the candidates' wishes, in any order.
    ///
    /// Where each has one wish, that of the highest binary version counts. Where any has a list, the one strategy
    /// counts that no list supersedes, in any versions.
    pub fn of<'a>(candidates: impl IntoIterator<Item = (&'a Identity, &'a CandidateSpec)>) -> Self {
        let candidates: Vec<_> = candidates.into_iter().collect();
        if candidates.iter().any(|(_, spec)| spec.supersedes.is_some()) {
            by_lists(&candidates)
        } else {
            by_version(&candidates)
        }
    }
}

fn by_version(candidates: &[(&Identity, &CandidateSpec)]) -> Resolution {
    let Some(binary) = candidates.iter().map(|(_, spec)| &spec.binary).max() else {
        return Resolution::NoWish;
    };
    let mut wishes = BTreeMap::new();
    for (name, spec) in candidates.iter().filter(|(_, spec)| spec.binary == *binary) {
        note_first(&mut wishes, &spec.strategy, name);
    }
    one_of(wishes, |wishes| Conflict::Wishes {
        binary: binary.clone(),
        wishes,
    })
}

fn by_lists(candidates: &[(&Identity, &CandidateSpec)]) -> Resolution {
    let mut edges = Edges::new();
    let mut firsts = BTreeMap::new();
    for (name, spec) in candidates {
        note_first(&mut firsts, &spec.strategy, name);
        let mut above = &spec.strategy;
        for below in spec.supersedes.iter().flatten() {
            note_first(edges.entry(above).or_default(), below, name);
            above = below;
        }
    }
    if let Some(steps) = circle(&edges) {
        return Resolution::Conflict(Conflict::Circle { steps });
    }
    let superseded: BTreeSet<_> = edges.values().flat_map(BTreeMap::keys).copied().collect();
    // A strategy that no list supersedes stands at the head of every list that has it.
    firsts.retain(|strategy, _| !superseded.contains(strategy));
    one_of(firsts, |firsts| Conflict::Unrelated { firsts })
}

/// The only one, if there is only one.
fn one_of(
    wishes: BTreeMap<&StrategyName, &Identity>,
    conflict: impl FnOnce(BTreeMap<StrategyName, Identity>) -> Conflict,
) -> Resolution {
    if wishes.len() > 1 {
        let wishes = wishes.into_iter();
        let wishes = wishes.map(|(strategy, name)| (strategy.clone(), name.clone()));
        return Resolution::Conflict(conflict(wishes.collect()));
    }
    let only = wishes.into_keys().next();
    only.cloned().map_or(Resolution::NoWish, Resolution::One)
}

/// Enters a strategy with the first name that stands for it.
fn note_first<'a>(
    names: &mut BTreeMap<&'a StrategyName, &'a Identity>,
    strategy: &'a StrategyName,
    name: &'a Identity,
) {
    let first = names.entry(strategy).or_insert(name);
    *first = name.min(first);
}

/// A circle, if there is one; always the same one, in any order of the candidates.
///
/// One object may list a hundred thousand strategies, so nothing here looks at each pair of them.
fn circle(edges: &Edges<'_>) -> Option<Vec<(StrategyName, StrategyName, Identity)>> {
    let left = entangled(edges);
    // The first of those that supersede it.
    let mut above: BTreeMap<&StrategyName, &StrategyName> = BTreeMap::new();
    for strategy in &left {
        for below in edges.get(strategy).into_iter().flat_map(BTreeMap::keys) {
            above.entry(below).or_insert(strategy);
        }
    }
    // Each that is left is superseded by another that is left: going up, one is met twice.
    let mut path = vec![*left.first()?];
    let mut met = BTreeMap::from([(*left.first()?, 0)]);
    let start = loop {
        let next = *above.get(path.last()?)?;
        if let Some(start) = met.insert(next, path.len()) {
            break start;
        }
        path.push(next);
    };
    let mut round: Vec<&StrategyName> = path.split_off(start);
    round.reverse();
    let least = round
        .iter()
        .enumerate()
        .min_by_key(|(_, strategy)| **strategy)?
        .0;
    round.rotate_left(least);
    let next = round.iter().cycle().skip(1);
    round
        .iter()
        .zip(next)
        .map(|(above, below)| {
            let name = *edges.get(above)?.get(below)?;
            Some(((*above).clone(), (*below).clone(), name.clone()))
        })
        .collect()
}

/// The strategies that supersede something and are superseded, in the end, by a circle. What is superseded only by
/// what is gone is no part of one, and goes too.
fn entangled<'a>(edges: &Edges<'a>) -> BTreeSet<&'a StrategyName> {
    let mut holders: BTreeMap<&StrategyName, usize> = BTreeMap::new();
    for below in edges.values().flat_map(BTreeMap::keys) {
        *holders.entry(below).or_default() += 1;
    }
    let mut left: BTreeSet<&StrategyName> = edges.keys().copied().collect();
    let mut free: Vec<&StrategyName> = left.iter().copied().collect();
    free.retain(|strategy| !holders.contains_key(strategy));
    while let Some(gone) = free.pop() {
        left.remove(gone);
        for below in edges.get(gone).into_iter().flat_map(BTreeMap::keys) {
            let Some(count) = holders.get_mut(below) else {
                continue;
            };
            *count -= 1;
            if *count == 0 && edges.contains_key(below) {
                free.push(below);
            }
        }
    }
    left
}

// === impl Conflict ===

impl Conflict {
    /// The disputed point, to be asked for each candidate.
    pub(crate) fn disputed(&self) -> Disputed<'_> {
        match self {
            Self::Wishes { binary, .. } => Disputed::Version(binary.as_ref()),
            Self::Unrelated { firsts } => Disputed::Firsts(firsts),
            Self::Circle { steps } => Disputed::Circle(
                steps
                    .iter()
                    .map(|(above, below, _)| (above, below))
                    .collect(),
            ),
        }
    }
}

// === impl Disputed ===

impl Disputed<'_> {
    /// True if this candidate takes part in the conflict: without those that do, it would be over.
    ///
    /// Looks at what the candidate lists and not at what the conflict is made of: each candidate may bring a strategy
    /// of its own.
    pub(crate) fn concerns(&self, candidate: &CandidateSpec) -> bool {
        let rest = candidate.supersedes.iter().flatten();
        let mut listed = [&candidate.strategy].into_iter().chain(rest);
        match self {
            Self::Version(binary) => candidate.binary.as_ref() == *binary,
            Self::Firsts(firsts) => listed.any(|strategy| firsts.contains_key(strategy)),
            Self::Circle(below) => {
                let all: BTreeSet<&StrategyName> = listed.collect();
                all.iter()
                    .any(|above| below.get(above).is_some_and(|below| all.contains(below)))
            }
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma = |index| if index > 0 { "," } else { "" };
        // The names that fit into a line: each candidate may bring a strategy of its own.
        let more = |f: &mut fmt::Formatter<'_>, count: usize| match count.saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        };
        match self {
            Self::Wishes { binary, wishes } => {
                match binary {
                    Some(binary) => write!(f, "candidates of binary version {binary}")?,
                    None => f.write_str("candidates without a binary version")?,
                }
                f.write_str(" disagree on the strategy:")?;
                for (index, (strategy, name)) in wishes.iter().take(NAMED).enumerate() {
                    write!(f, "{} {name} wants {strategy}", comma(index))?;
                }
                more(f, wishes.len())
            }
            Self::Unrelated { firsts } => {
                f.write_str(
                    "candidates list different strategies first and none supersedes the others:",
                )?;
                for (index, (strategy, name)) in firsts.iter().take(NAMED).enumerate() {
                    write!(f, "{} {name} wants {strategy}", comma(index))?;
                }
                more(f, firsts.len())
            }
            Self::Circle { steps } => {
                f.write_str(
                    "candidates contradict one another on which strategy supersedes which:",
                )?;
                for (index, (above, below, name)) in steps.iter().take(NAMED).enumerate() {
                    write!(f, "{} {name} lists {above} before {below}", comma(index))?;
                }
                more(f, steps.len())
            }
        }
    }
}

#[cfg(test)]
mod tests;
