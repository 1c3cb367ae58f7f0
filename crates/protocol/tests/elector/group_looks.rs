//! A group of leases by itself: what a look at a part changes, and what a lapse counts for.

use std::sync::Arc;
use std::time::Duration;

use elector_protocol::{GroupPart, Instant, LeaseGroup, PartCandidate, PartMobility};

use crate::fixture::id;

/// A part that is led by `y`, with candidates of these ranks.
fn movable(candidates: &[(&str, usize)]) -> GroupPart {
    let candidate = |(member, rank): &(&str, usize)| PartCandidate {
        member: id(member),
        name: id(member),
        rank: *rank,
        is_ready: true,
        unanswered: None,
        acked: None,
    };
    GroupPart {
        candidates: candidates.iter().map(candidate).collect(),
        holder: Some(id("y")),
        mobility: PartMobility::Movable,
        avoid: None,
        preferred: None,
        lapse: None,
        balanced: None,
        due: None,
    }
}

/// A group is assigned anew where a candidate has another rank, or is not ready, and at no other look.
#[test]
fn what_an_assignment_looks_at_has_it_done_anew() {
    let now = Instant::from_epoch(Duration::from_secs(100));
    let (mut group, name) = (LeaseGroup::default(), Arc::from("p"));
    let equal = movable(&[("x", 0), ("y", 0)]);
    let mut unready = equal.clone();
    unready.candidates[0].is_ready = false;
    let mut later = unready.clone();
    later.due = Some(now.after(Duration::from_secs(5)));
    let mut answered = unready.clone();
    answered.candidates[1].acked = Some(now);
    let worse = movable(&[("x", 0), ("y", 1)]);
    let alone = movable(&[("y", 1)]);
    for (part, changed, leads, members) in [
        (equal.clone(), true, "y", 2),
        (equal, false, "y", 2),
        (unready, true, "y", 2),
        (later, false, "y", 2),
        (answered, false, "y", 2),
        (worse, true, "x", 2),
        // Without a candidate for any part it is no member.
        (alone, true, "y", 1),
    ] {
        let due = part.due;
        group.handle_part(now, &name, part);
        assert_eq!(group.is_changed(now), changed);
        group.assign(now);
        assert_eq!(group.assigned("p"), Some(id(leads)));
        assert_eq!(group.members().count(), members);
        // A part is due at that moment, and not a moment later.
        let found = due.map(|due| group.take_due(due));
        assert_eq!(found.map(|parts| parts.len()), due.map(|_| 1));
    }
}

/// A member that let a vacant part go gets it again where no other can.
#[test]
fn a_member_that_let_a_part_go_gets_it_last() {
    let now = Instant::from_epoch(Duration::from_secs(100));
    for (candidates, leads) in [(&[("x", 0), ("y", 0)][..], "y"), (&[("x", 0)], "x")] {
        let mut group = LeaseGroup::default();
        let part = GroupPart {
            mobility: PartMobility::Vacant,
            avoid: Some(id("x")),
            ..movable(candidates)
        };
        group.handle_part(now, &"p".into(), part);
        group.assign(now);
        assert_eq!(group.assigned("p"), Some(id(leads)));
    }
}

/// Of several moves a member takes part in one at a time, and first in one that has begun.
#[test]
fn a_move_that_has_begun_goes_before_the_others() {
    let now = Instant::from_epoch(Duration::from_secs(100));
    for (asked, for_whom, first) in [("p0", "x", "p0"), ("p1", "x", "p1"), ("p1", "z", "p0")] {
        let mut group = LeaseGroup::default();
        assert!(group.is_empty());
        for name in ["p0", "p1", "p2", "p3"] {
            let mut part = movable(&[("x", 0), ("y", 0)]);
            part.preferred = (name == asked).then(|| id(for_whom));
            group.handle_part(now, &name.into(), part);
        }
        assert!(!group.is_empty());
        group.assign(now.after(LeaseGroup::SETTLING));
        let moves = group.parts().filter(|(.., to)| *to == Some(&id("x")));
        let moves: Vec<_> = moves.map(|(name, ..)| &**name).collect();
        assert_eq!(moves, [first]);
    }
}

/// A process that ends takes its candidates away one after the other, and nothing moves to it in between.
#[test]
fn a_member_that_lost_a_candidate_takes_parts_like_a_newcomer() {
    let start = Instant::from_epoch(Duration::from_secs(100));
    let (mut group, both) = (LeaseGroup::default(), movable(&[("x", 0), ("y", 0)]));
    for (name, holder) in [("p0", "y"), ("p1", "y"), ("p2", "x"), ("p3", "x")] {
        let holder = Some(id(holder));
        let part = GroupPart {
            holder,
            ..both.clone()
        };
        group.handle_part(start, &name.into(), part);
    }
    let gone = start.after(LeaseGroup::SETTLING * 2);
    let left = GroupPart {
        holder: Some(id("x")),
        ..movable(&[("y", 0)])
    };
    // Then `y` is to lead three parts, and `x` leads one.
    group.handle_part(gone, &"p3".into(), left);
    for (at, leads) in [(gone, "y"), (gone.after(LeaseGroup::SETTLING), "x")] {
        group.assign(at);
        assert_eq!(group.assigned("p0"), Some(id(leads)));
    }
}

/// A lease that a process let expire counts against its Pod, and for an hour.
#[test]
fn a_lapse_counts_for_an_hour_against_the_processes_of_its_pod() {
    let now = Instant::from_epoch(Duration::from_secs(100));
    let (next, other) = ("b-0-0000000000000001", "c-0-0000000000000001");
    for (seconds, wait) in [(3_599, 60), (3_600, 30)] {
        let mut group = LeaseGroup::default();
        let part = GroupPart {
            lapse: Some((id("b-0-0000000000000000"), now)),
            ..movable(&[(next, 0), (other, 0)])
        };
        group.handle_part(now, &"p".into(), part);
        group.assign(now.after(Duration::from_secs(seconds)));
        let waits = group.members().map(|(name, _, settles_at)| {
            let wait = settles_at.since(now).as_secs();
            (name.to_string(), wait)
        });
        let expected = [(next.to_owned(), wait), (other.to_owned(), 30)];
        assert_eq!(waits.collect::<Vec<_>>(), expected);
    }
}

/// Leases that expire within half a minute count once, and an hour without makes the next one the first.
#[test]
fn lapses_in_a_row_double_the_wait() {
    let at = |seconds: u64| Instant::from_epoch(Duration::from_secs(100 + seconds));
    let next = id("b-0-0000000000000001");
    for (second, wait) in [(29, 60), (30, 120), (3_599, 120), (3_600, 60)] {
        let mut group = LeaseGroup::default();
        for (name, lapsed) in [("p0", 0), ("p1", second)] {
            let part = GroupPart {
                lapse: Some((id("b-0-0000000000000000"), at(lapsed))),
                ..movable(&[(next.as_str(), 0)])
            };
            group.handle_part(at(lapsed), &name.into(), part);
        }
        let (.., settles_at) = group.members().next().unwrap();
        assert_eq!(settles_at.since(at(second)).as_secs(), wait, "{second}");
    }
}
