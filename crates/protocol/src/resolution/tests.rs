//! Tests of the wish that counts.

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
        let expected = Resolution::One(StrategyName::parse("a/high").unwrap());
        assert_eq!(Resolution::of(list), expected);
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
    let text =
        "candidates of binary version 1.2.0 disagree on the strategy: b wants a/one, c wants a/two";
    for start in 0..4 {
        let list = (0..4)
            .map(|i| (i + start) % 4)
            .map(|i| (&names[i], &specs[i]));
        let Resolution::Conflict(conflict) = Resolution::of(list) else {
            panic!("no conflict");
        };
        assert_eq!(conflict.to_string().replace("+x", ""), text);
        assert_eq!(
            specs
                .each_ref()
                .map(|spec| conflict.disputed().concerns(spec)),
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
        // The version of a candidate does not matter: these have none.
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
    let unrelated = "candidates list different strategies first and none supersedes the others: ";
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
        specs
            .each_ref()
            .map(|spec| conflict.disputed().concerns(spec)),
        [true, true, false]
    );
}

proptest! {
    /// Order does not matter, and the strategy that counts is superseded by none and supersedes, in the end, all the
    /// rest.
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

proptest! {
    /// Where all have one wish and no list, any of them alone are resolved to it.
    #[test]
    fn an_agreement_is_the_resolution_of_all_that_are_left(
        wishes in vec((0..2_u8, 0..3_u8, 0..9_u8), 0..5),
        left_out in any::<u8>(),
    ) {
        let spec = |(strategy, binary, kind): &(u8, u8, u8)| match kind {
            0 => CandidateSpec::parse_list("", "", &[format!("x/s{strategy}")]).unwrap(),
            _ => wish(&format!("1.{}.0", binary + 1), &format!("x/s{strategy}")),
        };
        let specs: Vec<_> = wishes.iter().map(spec).collect();
        let agreed = Resolution::agreed(specs.iter()).cloned();
        let first = wishes.first().map(|(strategy, ..)| strategy);
        let is_one = wishes.iter().all(|(strategy, _, kind)| Some(strategy) == first && *kind > 0);
        prop_assert_eq!(agreed.is_some(), is_one && first.is_some());
        let of = name("a");
        let left = specs.iter().enumerate().filter(|(index, _)| left_out >> index & 1 == 0);
        let resolution = Resolution::of(left.map(|(_, spec)| (&of, spec)));
        if let Some(agreed) = agreed && resolution != Resolution::NoWish {
            prop_assert_eq!(resolution, Resolution::One(agreed));
        }
    }
}

#[test]
fn a_conflict_of_thousands_fits_into_a_line() {
    let name = |index: usize| Identity::new(format!("c-{index:04}")).unwrap();
    let spec = |index: usize| CandidateSpec::parse("1.0.0", "1.0.0", &format!("a/s{index:04}"));
    let specs: Vec<_> = (0..5000)
        .map(|index| (name(index), spec(index).unwrap()))
        .collect();
    let resolution = Resolution::of(specs.iter().map(|(name, spec)| (name, spec)));
    let Resolution::Conflict(conflict) = resolution else {
        panic!("{resolution:?}");
    };
    let text = conflict.to_string();
    let holds = text.ends_with(" c-0007 wants a/s0007 and 4992 more");
    assert!(holds, "{text}");
}

/// An object of a megabyte lists a hundred thousand strategies. Looking at each pair of them stopped every election.
#[test]
fn a_list_as_long_as_an_object_can_hold_is_resolved_at_once() {
    let strategies: Vec<_> = (0..100_000).map(|index| format!("a/s{index:06}")).collect();
    let chain = CandidateSpec::parse_list("", "", &strategies).unwrap();
    let turned = [strategies[99_999].clone(), strategies[0].clone()];
    let turned = CandidateSpec::parse_list("", "", &turned).unwrap();
    let (first, second) = (name("a"), name("b"));
    let resolution = Resolution::of([(&first, &chain)]);
    assert_eq!(resolution, Resolution::One(chain.strategy.clone()));
    let resolution = Resolution::of([(&first, &chain), (&second, &turned)]);
    let Resolution::Conflict(conflict) = resolution else {
        panic!("{resolution:?}");
    };
    assert!(conflict.disputed().concerns(&chain) && conflict.disputed().concerns(&turned));
    assert!(conflict.to_string().ends_with(" and 99992 more"));
}
