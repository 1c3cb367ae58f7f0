//! The search of small worlds without a reduction, beside the search with it: both must come to the same.

use std::collections::HashSet;

use super::catalogue::runs;
use super::clocks::{UNLIKE, WORST};
use super::run::{Run, Timing};
use super::search::{Search, SearchVerdict, TransitionSystem};
use super::state::StateKey;
use super::store::Property;
use super::system::ModelSystem;
use super::witness::Witnesses;

/// The findings of a search that goes on behind a violation.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reached {
    keys: HashSet<StateKey>,
    witnesses: Option<Witnesses>,
    broken: HashSet<Property>,
}

/// Every state that can be reached, those behind a violation left out.
fn reached(system: &mut ModelSystem) -> Reached {
    let mut reached = Reached::default();
    let mut witnesses = Witnesses::empty();
    let mut left = system.initial();
    while let Some(state) = left.pop() {
        let key = system.key(&state);
        if !reached.keys.insert(key) {
            continue;
        }
        if let Some(property) = system.violation(&state) {
            reached.broken.insert(property);
            continue;
        }
        let state = system.state(key);
        for successor in system.successors(&state) {
            witnesses |= successor.witnesses;
            left.push(successor.state);
        }
    }
    reached.witnesses = Some(witnesses);
    reached
}

/// A small world of that run, without late writes and lost replies.
fn small(id: &str) -> Run {
    let run = runs().into_iter().find(|run| run.id() == id);
    let mut run = Run {
        orphans: 0,
        lost_replies: false,
        ..run.expect("a run of the catalogue")
    };
    if !run.must_be_caught() {
        (run.timing.lease, run.timing.belief, run.mixes) = (3, 2, UNLIKE);
        (run.restarts, run.slow_posts, run.lagging) = (false, false, 0);
        if run.slow_stops || run.rejoins {
            // A process resumes and rejoins alone too.
            run.candidates = 1;
        }
    }
    run
}

/// The states with electors in either order, and what is made of them where the order makes no difference.
fn swapped(lagging: usize) -> (Reached, Reached) {
    let run = Run {
        lagging,
        candidates: 1,
        restarts: true,
        timing: Timing::USUAL,
        mixes: WORST,
        slow_posts: true,
        ..small("MC-L3")
    };
    let mut system = ModelSystem::new(run);
    system.swaps_electors = false;
    let mut apart = reached(&mut system);
    system.swaps_electors = true;
    let together = reached(&mut system);
    let states: Vec<_> = apart.keys.iter().map(|key| system.state(*key)).collect();
    assert!(states.len() > together.keys.len(), "nothing was reduced");
    apart.keys = states.iter().map(|state| system.key(state)).collect();
    (apart, together)
}

#[test]
fn like_electors_can_be_swapped_and_unlike_ones_cannot() {
    for lagging in [0, 2] {
        let (apart, together) = swapped(lagging);
        assert!(apart == together, "{lagging} electors lag");
    }
    let (apart, together) = swapped(1);
    assert!(apart != together, "this check would find nothing");
}

/// The effects and numbers of a part of a state are kept for the next state that has the part.
#[test]
fn what_is_remembered_of_a_part_holds_wherever_the_part_is() {
    for id in ["MC-L3", "MC-X2-off", "MC-P1"] {
        let run = small(id);
        let mut system = ModelSystem::new(run);
        let remembered = reached(&mut system);
        system.remembers = false;
        let anew = reached(&mut system);
        assert!(remembered == anew, "{id}");
    }
}

/// The verdict of a search; a safe world also shows its witnesses. The states come last.
fn verdict(run: Run) -> (Option<Property>, Option<Witnesses>, usize) {
    let found = Search::new(ModelSystem::new(run)).run(2_000_000, false);
    match found.verdict {
        SearchVerdict::Violated(property, _) => (Some(property), None, found.states),
        SearchVerdict::Holds => {
            // Without late writes, one that was set aside and cannot land is still there for a moment.
            let late = Witnesses::TWO_MESSAGES.when(run.orphans == 0);
            (None, Some(found.witnesses.difference(late)), found.states)
        }
        SearchVerdict::Trapped(..) | SearchVerdict::Unfinished => panic!("{}: too big", run.id()),
    }
}

/// Holds the search of a world against that of the same one without a reduction: fewer states, and the same verdict.
fn compare(run: Run, without: Run) {
    let (reduced, whole) = (verdict(run), verdict(without));
    assert!(reduced.2 < whole.2, "{}: nothing was reduced", run.id());
    assert_eq!((reduced.0, reduced.1), (whole.0, whole.1), "{}", run.id());
}

#[test]
fn writes_that_are_forgotten_change_no_verdict() {
    for id in [
        "MC-W-2-2",
        "MC-H2",
        "MC-M7",
        "MC-P-reply",
        "MC-U2",
        "MC-U1b",
        "MC-J2",
    ] {
        let run = Run {
            orphans: 1,
            lost_replies: true,
            ..small(id)
        };
        let without = Run {
            forgets: false,
            ..run
        };
        compare(run, without);
    }
}

#[test]
fn steps_at_once_and_idle_crashes_and_gaps_change_no_verdict() {
    let broken = [
        "MC-M3",
        "MC-M4b",
        "MC-M5",
        "MC-M10",
        "MC-M12",
        "MC-M16",
        "MC-P-reply",
        "MC-P-new",
        "MC-P4",
        "MC-M21",
        "MC-U2",
        "MC-J2",
        "MC-J3",
    ];
    let safe = ["MC-W-2-2", "MC-X7-off", "MC-P1", "MC-U1b", "MC-J1e"];
    for id in broken.into_iter().chain(safe) {
        let run = small(id);
        let without = Run {
            hurries: false,
            ..run
        };
        compare(run, without);
    }
}
