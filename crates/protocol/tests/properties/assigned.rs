//! Properties of [`assign`]: it spreads as far as it may, moves no more than it must, and ends.

use std::collections::BTreeSet;

use elector_protocol::{AssignablePart, PartMobility, assign};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

/// The most members of these groups.
const MEMBERS: usize = 6;

/// A part of any kind: it may have no eligible member, and a holder that is none of them.
fn part() -> impl Strategy<Value = AssignablePart> {
    let mobility = prop_oneof![
        Just(PartMobility::Vacant),
        Just(PartMobility::Movable),
        Just(PartMobility::Movable),
        Just(PartMobility::Fixed),
    ];
    let eligible = prop_oneof![
        Just((0..MEMBERS).collect::<BTreeSet<_>>()),
        Just(BTreeSet::from([0, 1, 2])),
        proptest::collection::btree_set(0..MEMBERS, 0..MEMBERS),
    ];
    (eligible, option::of(0..MEMBERS), mobility).prop_map(|(eligible, holder, mobility)| {
        AssignablePart {
            eligible: eligible.into_iter().collect(),
            holder,
            mobility,
        }
    })
}

/// Parts that any of `members` members may lead and that may move, with their holders.
fn even(members: usize, holders: &[usize]) -> Vec<AssignablePart> {
    let part = |holder: &usize| AssignablePart {
        eligible: (0..members).collect(),
        holder: Some(holder % members),
        mobility: PartMobility::Movable,
    };
    holders.iter().map(part).collect()
}

/// The parts once each leads that the assignment names; a vacant part is led then, and may move.
fn settled(parts: &[AssignablePart], placed: &[Option<usize>]) -> Vec<AssignablePart> {
    let both = parts.iter().zip(placed);
    both.map(|(part, to)| match part.mobility {
        PartMobility::Fixed => part.clone(),
        PartMobility::Vacant | PartMobility::Movable => AssignablePart {
            eligible: part.eligible.clone(),
            holder: *to,
            mobility: PartMobility::Movable,
        },
    })
    .collect()
}

fn loads(placed: &[Option<usize>]) -> [usize; MEMBERS + 1] {
    let mut loads = [0; MEMBERS + 1];
    for member in placed.iter().flatten() {
        loads[*member] += 1;
    }
    loads
}

/// The number of parts whose holder makes room.
fn moves(parts: &[AssignablePart], placed: &[Option<usize>]) -> usize {
    let both = parts.iter().zip(placed);
    both.filter(|(part, to)| part.mobility == PartMobility::Movable && part.holder != **to)
        .count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Every part goes to a member that may lead it, or stays where it must.
    #[test]
    fn each_part_goes_where_it_may(parts in vec(part(), 0..40), takes in vec(any::<bool>(), MEMBERS)) {
        let placed = assign(&parts, &takes);
        prop_assert_eq!(placed.len(), parts.len());
        for (part, to) in parts.iter().zip(&placed) {
            let eligible = |member: usize| part.eligible.contains(&member);
            match part.mobility {
                PartMobility::Fixed => prop_assert_eq!(*to, part.holder),
                _ if part.eligible.is_empty() => prop_assert_eq!(*to, None),
                _ => prop_assert!(to.is_some_and(eligible)),
            }
            // A part that is led, and may stay, goes to none that takes no such parts.
            let stays = part.mobility == PartMobility::Movable && part.holder.is_some_and(eligible);
            if let Some(to) = to && stays && part.holder != Some(*to) {
                prop_assert!(takes[*to]);
            }
        }
    }

    /// No member has two parts more than another one that may lead one of its parts and takes it.
    #[test]
    fn no_move_that_is_called_for_is_left(parts in vec(part(), 0..40), takes in vec(any::<bool>(), MEMBERS)) {
        let placed = assign(&parts, &takes);
        let loads = loads(&placed);
        for (part, from) in parts.iter().zip(&placed) {
            let Some(from) = from else { continue };
            if part.mobility == PartMobility::Fixed {
                continue;
            }
            let vacant = part.mobility == PartMobility::Vacant;
            for to in part.eligible.iter().filter(|to| vacant || takes[**to]) {
                prop_assert!(loads[*from] <= loads[*to] + 1, "{loads:?}: from {from} to {to}");
            }
        }
    }

    /// It ends: what was assigned is assigned again, and moves nothing.
    #[test]
    fn what_is_assigned_stays(parts in vec(part(), 0..40), takes in vec(any::<bool>(), MEMBERS)) {
        let placed = assign(&parts, &takes);
        let next = settled(&parts, &placed);
        let again = assign(&next, &takes);
        prop_assert_eq!(&again, &placed);
    }

    /// Where any member may lead any part, loads differ by one at most, and no assignment like that moves fewer parts.
    #[test]
    fn equals_get_equal_numbers_by_the_fewest_moves(holders in vec(0..MEMBERS, 0..40), members in 1..=MEMBERS) {
        let parts = even(members, &holders);
        let placed = assign(&parts, &[true; MEMBERS][..members]);
        let after = loads(&placed);
        let (most, least) = (after[..members].iter().max(), after[..members].iter().min());
        prop_assert!(most.unwrap() - least.unwrap() <= 1);
        let mut before = loads(&parts.iter().map(|part| part.holder).collect::<Vec<_>>());
        before[..members].sort_unstable_by(|left, right| right.cmp(left));
        // The members with the most parts keep the larger shares.
        let (share, larger) = (holders.len() / members, holders.len() % members);
        let surplus = |(place, load): (usize, &usize)| load.saturating_sub(share + usize::from(place < larger));
        let needed: usize = before[..members].iter().enumerate().map(surplus).sum();
        prop_assert_eq!(moves(&parts, &placed), needed);
    }

    /// A member that joins gets parts, and no other part moves; when it leaves again, its parts alone do.
    #[test]
    fn a_join_and_a_leave_move_no_more_than_they_must(holders in vec(0..MEMBERS, 0..40), members in 1..=MEMBERS) {
        let parts = even(members, &holders);
        let placed = assign(&parts, &[true; MEMBERS][..members]);
        let mut joined = settled(&parts, &placed);
        for part in &mut joined {
            part.eligible.push(members);
        }
        let after_join = assign(&joined, &[true; MEMBERS + 1][..=members]);
        prop_assert_eq!(moves(&joined, &after_join), holders.len() / (members + 1));
        for (part, to) in joined.iter().zip(&after_join) {
            prop_assert!(*to == part.holder || *to == Some(members));
        }
        let mut left = settled(&joined, &after_join);
        for part in &mut left {
            part.eligible.retain(|member| *member != members);
        }
        let after_leave = assign(&left, &[true; MEMBERS][..members]);
        for (part, to) in left.iter().zip(&after_leave) {
            prop_assert!(*to == part.holder || part.holder == Some(members));
        }
    }
}
