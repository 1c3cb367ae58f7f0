//! Whose wish counts where candidates of one lease wish for different strategies.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::candidacy::CandidateSpec;
use crate::names::Identity;
use crate::strategy::Strategy;
use crate::version::Version;

/// Which strategy a lease is elected under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// No candidate has a valid wish.
    NoWish,
    /// The wish that counts.
    One(Strategy),
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
        wishes: BTreeMap<Strategy, Identity>,
    },
    /// Of several strategies that candidates list first, none supersedes the others (v1alpha1).
    Unrelated {
        /// Each of those strategies, with the first candidate by name that lists it first.
        firsts: BTreeMap<Strategy, Identity>,
    },
    /// What candidates say supersedes what goes round in a circle (v1alpha1).
    Circle {
        /// A strategy, what it supersedes, and the first candidate by name that says so; each superseded strategy
        /// begins the next step, and that of the last step the first.
        steps: Vec<(Strategy, Strategy, Identity)>,
    },
}

/// Which strategy supersedes which, and the first candidate by name that says so.
type Edges<'a> = BTreeMap<&'a Strategy, BTreeMap<&'a Strategy, &'a Identity>>;

// === impl Resolution ===

impl Resolution {
    /// Resolves the candidates' wishes, in whatever order they come.
    ///
    /// Where each has one wish, that of the highest binary version counts. Where any has a list, the one strategy
    /// counts that nobody's list supersedes, whatever the versions.
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
    // What nobody supersedes stands at the head of every list that has it.
    firsts.retain(|strategy, _| !superseded.contains(strategy));
    one_of(firsts, |firsts| Conflict::Unrelated { firsts })
}

/// The only one, if there is only one.
fn one_of(
    wishes: BTreeMap<&Strategy, &Identity>,
    conflict: impl FnOnce(BTreeMap<Strategy, Identity>) -> Conflict,
) -> Resolution {
    let mut wishes: BTreeMap<_, _> = wishes
        .into_iter()
        .map(|(strategy, name)| (strategy.clone(), name.clone()))
        .collect();
    if wishes.len() > 1 {
        return Resolution::Conflict(conflict(wishes));
    }
    wishes
        .pop_first()
        .map_or(Resolution::NoWish, |(strategy, _)| {
            Resolution::One(strategy)
        })
}

/// Enters a strategy with the first name that stands for it.
fn note_first<'a>(
    names: &mut BTreeMap<&'a Strategy, &'a Identity>,
    strategy: &'a Strategy,
    name: &'a Identity,
) {
    let first = names.entry(strategy).or_insert(name);
    *first = name.min(first);
}

/// A circle, if there is one; always the same one, whatever the order of the candidates.
fn circle(edges: &Edges<'_>) -> Option<Vec<(Strategy, Strategy, Identity)>> {
    // Whatever is superseded only by what is gone is no part of a circle, and goes too.
    let mut left: BTreeSet<&Strategy> = edges.keys().copied().collect();
    loop {
        let held: BTreeSet<_> = left
            .iter()
            .filter_map(|above| edges.get(above))
            .flat_map(BTreeMap::keys)
            .copied()
            .collect();
        let before = left.len();
        left.retain(|strategy| held.contains(strategy));
        if left.len() == before {
            break;
        }
    }
    // Each that is left is superseded by another that is left: going up, one is met twice.
    let mut path = vec![*left.first()?];
    let start = loop {
        let below = *path.last()?;
        let above = *left.iter().find(|above| {
            edges
                .get(*above)
                .is_some_and(|edges| edges.contains_key(below))
        })?;
        if let Some(start) = path.iter().position(|met| *met == above) {
            break start;
        }
        path.push(above);
    };
    let mut round: Vec<&Strategy> = path.split_off(start);
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

// === impl Conflict ===

impl Conflict {
    /// Whether this candidate takes part in it: without those that do, it would be over.
    pub fn concerns(&self, candidate: &CandidateSpec) -> bool {
        let lists = |strategy: &Strategy| {
            let rest = candidate.supersedes.iter().flatten();
            [&candidate.strategy]
                .into_iter()
                .chain(rest)
                .any(|listed| listed == strategy)
        };
        match self {
            Self::Wishes { binary, .. } => candidate.binary == *binary,
            Self::Unrelated { firsts } => firsts.keys().any(lists),
            Self::Circle { steps } => steps
                .iter()
                .any(|(above, below, _)| lists(above) && lists(below)),
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma = |index| if index > 0 { "," } else { "" };
        match self {
            Self::Wishes { binary, wishes } => {
                match binary {
                    Some(binary) => write!(f, "candidates of binary version {binary}")?,
                    None => f.write_str("candidates without a binary version")?,
                }
                f.write_str(" disagree on the strategy:")?;
                for (index, (strategy, name)) in wishes.iter().enumerate() {
                    write!(f, "{} {name} wants {strategy}", comma(index))?;
                }
            }
            Self::Unrelated { firsts } => {
                f.write_str(
                    "candidates list different strategies first and none supersedes the others:",
                )?;
                for (index, (strategy, name)) in firsts.iter().enumerate() {
                    write!(f, "{} {name} wants {strategy}", comma(index))?;
                }
            }
            Self::Circle { steps } => {
                f.write_str(
                    "candidates contradict one another on which strategy supersedes which:",
                )?;
                for (index, (above, below, name)) in steps.iter().enumerate() {
                    write!(f, "{} {name} lists {above} before {below}", comma(index))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Just, any, proptest};
    use proptest::{prop_assert, prop_assert_eq, prop_oneof};

    use super::*;

    fn name(text: &str) -> Identity {
        Identity::new(text).unwrap()
    }

    fn wish(binary: &str, strategy: &str) -> CandidateSpec {
        CandidateSpec::parse(binary, "1.0.0", strategy).unwrap()
    }

    /// Candidates `a`, `b`, … with these lists, forwards and backwards.
    fn merged(lists: &[&[&str]]) -> String {
        let specs: Vec<_> = lists
            .iter()
            .map(|list| CandidateSpec::parse_list("", "", list).unwrap())
            .collect();
        let names: Vec<_> = ('a'..)
            .take(specs.len())
            .map(|c| name(&c.to_string()))
            .collect();
        let forwards = Resolution::of(names.iter().zip(&specs));
        let backwards = Resolution::of(names.iter().zip(&specs).rev());
        assert_eq!(forwards, backwards);
        match forwards {
            Resolution::NoWish => "nothing".to_owned(),
            Resolution::One(strategy) => strategy.to_string(),
            Resolution::Conflict(conflict) => conflict.to_string(),
        }
    }

    #[test]
    fn the_highest_binary_version_decides() {
        let (low, high) = (wish("1.1.0", "a/low"), wish("1.2.0", "a/high"));
        let (first, second) = (name("a"), name("b"));
        for list in [
            [(&first, &low), (&second, &high)],
            [(&second, &high), (&first, &low)],
        ] {
            assert_eq!(
                Resolution::of(list),
                Resolution::One(Strategy::parse("a/high").unwrap())
            );
        }
        assert_eq!(Resolution::of([]), Resolution::NoWish);
    }

    #[test]
    fn a_conflict_at_the_top_is_named_whatever_the_order() {
        let names = ["a", "b", "c", "d"].map(name);
        let specs = [
            wish("1.1.0", "a/low"),
            wish("1.2.0+x", "a/one"),
            wish("1.2.0", "a/two"),
            wish("1.2.0", "a/one"),
        ];
        let text = "candidates of binary version 1.2.0 disagree on the strategy: b wants a/one, c wants a/two";
        for start in 0..4 {
            let list = (0..4)
                .map(|i| (i + start) % 4)
                .map(|i| (&names[i], &specs[i]));
            let Resolution::Conflict(conflict) = Resolution::of(list) else {
                panic!("no conflict");
            };
            assert_eq!(conflict.to_string().replace("+x", ""), text);
            assert_eq!(
                specs.each_ref().map(|spec| conflict.concerns(spec)),
                [false, true, true, true]
            );
        }
    }

    #[test]
    fn the_one_strategy_counts_that_no_list_supersedes() {
        for (lists, expected) in [
            (&[&["x/a"] as &[&str]] as &[&[&str]], "x/a"),
            (&[&["x/a"], &["x/a"]], "x/a"),
            (&[&["x/b", "x/a"], &["x/a"]], "x/b"),
            (&[&["x/c", "x/b"], &["x/b", "x/a"], &["x/a"]], "x/c"),
            // A superseded strategy may be a wish of its own, and may be superseded twice.
            (&[&["x/c", "x/a"], &["x/c", "x/b", "x/a"], &["x/b"]], "x/c"),
            // The version of who wishes does not matter: these have none.
            (
                &[
                    &["x/new", "OldestEmulationVersion"],
                    &["OldestEmulationVersion"],
                ],
                "x/new",
            ),
        ] {
            assert_eq!(merged(lists), expected, "{lists:?}");
        }
    }

    #[test]
    fn lists_that_cannot_be_merged_are_named() {
        let unrelated =
            "candidates list different strategies first and none supersedes the others: ";
        let circle = "candidates contradict one another on which strategy supersedes which: ";
        for (lists, start, expected) in [
            (
                &[&["x/b"] as &[&str], &["x/a"], &["x/b"]] as &[&[&str]],
                unrelated,
                "b wants x/a, a wants x/b",
            ),
            (
                &[&["x/b", "x/c"], &["x/a", "x/c"]],
                unrelated,
                "b wants x/a, a wants x/b",
            ),
            (
                &[&["x/b", "x/a"], &["x/a", "x/b"]],
                circle,
                "b lists x/a before x/b, a lists x/b before x/a",
            ),
            // A repeated entry, alone or around others.
            (&[&["x/a", "x/a"]], circle, "a lists x/a before x/a"),
            (
                &[&["x/a", "x/b", "x/a"]],
                circle,
                "a lists x/a before x/b, a lists x/b before x/a",
            ),
            // A circle below a head that would be the only one.
            (
                &[&["x/z", "x/c", "x/b"], &["x/b", "x/a"], &["x/a", "x/c"]],
                circle,
                "c lists x/a before x/c, b lists x/b before x/a, a lists x/c before x/b",
            ),
        ] {
            let text = merged(lists);
            let mut parts: Vec<_> = text
                .strip_prefix(start)
                .unwrap_or(&text)
                .split(", ")
                .collect();
            let mut expected: Vec<_> = expected.split(", ").collect();
            parts.sort_unstable();
            expected.sort_unstable();
            assert_eq!(parts, expected, "{lists:?}");
        }
    }

    #[test]
    fn a_conflict_of_lists_concerns_those_that_list_it() {
        let spec = |list: &[&str]| CandidateSpec::parse_list("", "", list).unwrap();
        let specs = [
            spec(&["x/b", "x/a"]),
            spec(&["x/a", "x/b"]),
            spec(&["x/c", "x/b"]),
        ];
        let names = ["a", "b", "c"].map(name);
        let Resolution::Conflict(conflict) = Resolution::of(names.iter().zip(&specs)) else {
            panic!("no conflict");
        };
        assert_eq!(
            specs.each_ref().map(|spec| conflict.concerns(spec)),
            [true, true, false]
        );
    }

    proptest! {
        /// Order does not matter, and what counts is superseded by nobody and supersedes, in the end, all the rest.
        #[test]
        fn merging_is_a_function_of_the_set(
            lists in vec(vec(prop_oneof![Just("x/a"), Just("x/b"), Just("x/c"), Just("x/d")], 1..4), 1..5),
            turn in any::<usize>(),
        ) {
            let specs: Vec<_> = lists
                .iter()
                .map(|list| CandidateSpec::parse_list("", "", list).unwrap())
                .collect();
            let names: Vec<_> = (0..specs.len()).map(|i| name(&format!("c{i}"))).collect();
            let mut all: Vec<_> = names.iter().zip(&specs).collect();
            let resolution = Resolution::of(all.iter().copied());
            let turn = turn % all.len();
            all.rotate_left(turn);
            prop_assert_eq!(&Resolution::of(all.iter().copied()), &resolution);
            let pairs: Vec<_> = lists.iter().flat_map(|list| list.windows(2)).collect();
            let mut reach: BTreeSet<(&str, &str)> = pairs.iter().map(|pair| (pair[0], pair[1])).collect();
            for _ in 0..3 {
                let more: Vec<_> = reach
                    .iter()
                    .flat_map(|(a, b)| reach.iter().filter(move |(c, _)| b == c).map(move |(_, d)| (*a, *d)))
                    .collect();
                reach.extend(more);
            }
            let all: BTreeSet<&str> = lists.iter().flatten().copied().collect();
            let circular = reach.iter().any(|(a, b)| a == b);
            let heads: Vec<_> = all
                .iter()
                .filter(|one| !reach.iter().any(|(_, below)| below == *one))
                .collect();
            match resolution {
                Resolution::NoWish => prop_assert!(false, "there are wishes"),
                Resolution::One(strategy) => {
                    prop_assert!(!circular);
                    prop_assert_eq!(heads, [&strategy.as_str()]);
                }
                Resolution::Conflict(Conflict::Circle { steps }) => {
                    prop_assert!(circular);
                    for (index, (above, below, who)) in steps.iter().enumerate() {
                        prop_assert_eq!(below, &steps[(index + 1) % steps.len()].0);
                        let list = &lists[names.iter().position(|name| name == who).unwrap()];
                        let said = list.windows(2).any(|pair| pair == [above.as_str(), below.as_str()]);
                        prop_assert!(said);
                    }
                }
                Resolution::Conflict(Conflict::Unrelated { firsts }) => {
                    prop_assert!(!circular && firsts.len() == heads.len() && heads.len() > 1);
                }
                Resolution::Conflict(Conflict::Wishes { .. }) => prop_assert!(false, "these are lists"),
            }
        }
    }
}
