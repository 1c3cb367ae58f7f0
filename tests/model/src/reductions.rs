//! The search of small worlds without a reduction, beside the search with it: both must come to the same.

use std::collections::HashSet;

use super::catalogue::runs;
use super::clocks::UNLIKE;
use super::run::Run;
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

/// The states with electors in either order, and what is made of them where the order makes no difference.
fn swapped(lagging: usize) -> (Reached, Reached) {
    let run = runs().into_iter().find(|run| run.id() == "MC-L3");
    let run = Run {
        lagging,
        candidates: 1,
        orphans: 0,
        lost_replies: false,
        ..run.expect("a run of the catalogue")
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

/// The verdict of a search, in which the steps that can begin no term happen at once or one by one; a safe world also
/// shows its witnesses. The states come last.
fn verdict(run: Run, hurries: bool) -> (Option<Property>, Option<Witnesses>, usize) {
    let found = Search::new(ModelSystem::new(Run { hurries, ..run })).run(2_000_000, false);
    match found.verdict {
        SearchVerdict::Violated(property, _) => (Some(property), None, found.states),
        SearchVerdict::Holds => (None, Some(found.witnesses), found.states),
        SearchVerdict::Trapped(..) | SearchVerdict::Unfinished => panic!("{}: too big", run.id()),
    }
}

#[test]
fn steps_at_once_change_no_verdict() {
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
    ];
    let safe = ["MC-W-2-2", "MC-P1"];
    let chosen = |run: &Run| safe.contains(&run.id()) || broken.contains(&run.id());
    for mut run in runs().into_iter().filter(chosen) {
        run.orphans = 0;
        if safe.contains(&run.id()) {
            (run.timing.lease, run.timing.belief, run.mixes) = (3, 2, UNLIKE);
            (run.restarts, run.lost_replies, run.slow_posts, run.lagging) =
                (false, false, false, 0);
        }
        let at_once = verdict(run, true);
        let one_by_one = verdict(run, false);
        assert!(
            at_once.2 < one_by_one.2,
            "{}: nothing was reduced",
            run.id()
        );
        assert_eq!(
            (at_once.0, at_once.1),
            (one_by_one.0, one_by_one.1),
            "{}",
            run.id()
        );
    }
}
