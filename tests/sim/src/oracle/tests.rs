//! Preferences that are too many, and a write of which no sender is known.

use super::*;
use crate::history::fixture::WrittenLease;
use crate::plan::{ClockBound, ProcessIndex, WatchClose};

/// The second in which all is written.
const NOW: Duration = Duration::from_secs(100);

#[test]
fn a_write_of_which_no_sender_is_known_is_a_violation() {
    for (by_a_person, expected) in [(true, &[][..]), (false, &["S3"])] {
        let mut fixture = WrittenLease::new("lease-0");
        fixture.write(NOW, "e0", &LeaseRecord::born(None));
        if by_a_person {
            fixture.history.intervene(NOW, "lease-0");
        }
        fixture.lease.metadata.resource_version = Some("9".to_owned());
        fixture.apply(NOW);
        let found = violations(
            &fixture.history,
            &RunPlan::draw(1, ClockBound::Within),
            &StrikeLog::default(),
        );
        let rules: Vec<_> = found.iter().map(|it| it.rule).collect();
        assert_eq!(rules, expected);
    }
}

/// The words about a lease that `a` leads in version 1.1.0, where `b` in that version is preferred this number of times,
/// and this fault takes effect.
fn preferred(
    by: (PlannedStrategy, &str),
    times: usize,
    fault: Option<&PlannedFault>,
) -> Vec<String> {
    preferred_after_restore(by, times, fault, None)
}

/// The same where a backup of this time was restored just before.
fn preferred_after_restore(
    (strategy, version): (PlannedStrategy, &str),
    times: usize,
    fault: Option<&PlannedFault>,
    kept_at: Option<Duration>,
) -> Vec<String> {
    let mut fixture = WrittenLease::new("lease-0");
    if let Some(kept_at) = kept_at {
        fixture.history.restore(NOW, kept_at, 0, 0);
    }
    let held = LeaseRecord {
        holder: Identity::new("a"),
        ..LeaseRecord::default()
    };
    fixture.write(NOW, "e0", &held);
    for (name, version) in [("a", "1.1.0"), ("b", version)] {
        let mut object = elector_api::LeaseCandidate::default();
        object.metadata.name = Some(name.to_owned());
        object.metadata.resource_version = Some(format!("{}", 900 + u32::from(name == "b")));
        object.spec.binary_version = version.to_owned();
        fixture.history.record_candidate(NOW, object, false);
    }
    for _ in 0..times {
        let preferring = held.preferring(Identity::new("b"), None);
        fixture.write(NOW, "e0", &preferring);
        fixture.write(NOW, "e0", &held);
    }
    let mut plan = RunPlan::draw(1, ClockBound::Within);
    plan.faults_end = Duration::ZERO;
    plan.setup.leases = 2;
    plan.setup.candidates.truncate(1);
    plan.setup.candidates[0].strategy = strategy;
    plan.setup.candidates.resize(4, plan.setup.candidates[0]);
    let mut effects = StrikeLog::default();
    if let Some(PlannedFault { at, kind }) = fault {
        effects.strike(0, *at, *at + kind.lasts());
    }
    // One more takes none.
    plan.faults = fault.into_iter().chain(fault).cloned().collect();
    let found = violations(&fixture.history, &plan, &effects);
    let found = found.into_iter().filter(|it| it.rule == "L3");
    found.map(|it| it.text).collect()
}

#[test]
fn a_preference_goes_to_a_better_candidate() {
    for (strategy, better) in [
        (PlannedStrategy::Oldest, &["1.0.0"][..]),
        (PlannedStrategy::Newest, &["1.2.0", "1.10.0"]),
        (PlannedStrategy::Priority, &["1.0.0"]),
        (PlannedStrategy::Sticky, &[]),
    ] {
        for version in ["1.0.0", "1.1.0", "1.2.0", "1.10.0"] {
            let found = preferred((strategy, version), 1, None);
            let said = found.iter().any(|it| it.contains("and not better"));
            let right = better.contains(&version);
            assert_ne!(said, right, "{strategy:?} {version}: {found:?}");
        }
    }
}

#[test]
fn an_order_to_stand_down_excuses_a_preference_and_a_sticky_lease_only_until_all_is_mended() {
    let stand_down = FaultKind::StandDown(ProcessIndex(0), None, Duration::from_secs(9));
    let fault = PlannedFault {
        at: NOW,
        kind: stand_down,
    };
    for (strategy, wrong) in [
        (PlannedStrategy::Newest, false),
        (PlannedStrategy::Sticky, true),
    ] {
        let found = preferred((strategy, "1.0.0"), 1, Some(&fault));
        assert_eq!(!found.is_empty(), wrong, "{strategy:?}: {found:?}");
    }
}

#[test]
fn a_word_excuses_a_preference_for_a_while_and_where_a_restore_brings_it_back() {
    let second = Duration::from_secs;
    let said = FaultKind::Say(0, PlannedWord::Prefer(ProcessIndex(0)), second(5));
    let fault = PlannedFault {
        at: second(20),
        kind: said,
    };
    for (at, kept_at, excused) in [
        (66, None, true),
        (64, None, false),
        (20, Some(22), true),
        (20, Some(19), false),
        (20, Some(26), false),
    ] {
        let fault = PlannedFault {
            at: second(at),
            ..fault.clone()
        };
        let by = (PlannedStrategy::Oldest, "1.1.0");
        let found = preferred_after_restore(by, 1, Some(&fault), kept_at.map(second));
        let no_better = found.iter().any(|it| it.contains("and not better"));
        assert_eq!(no_better, !excused, "{at} {kept_at:?}: {found:?}");
    }
}

#[test]
fn a_term_has_more_preferences_for_each_fault_that_struck_it() {
    let of_this_lease = FaultKind::Plain(0, Duration::from_secs(5));
    let elector = ProcessIndex(0);
    let of_another = FaultKind::Plain(1, Duration::from_secs(5));
    for (at, kind, most) in [
        (100, None, 1),
        (100, Some(of_this_lease.clone()), 3),
        (66, Some(of_this_lease.clone()), 3),
        (64, Some(of_this_lease.clone()), 1),
        (900, Some(of_this_lease), 1),
        (100, Some(of_another), 1),
        (100, Some(FaultKind::Compact), 3),
        (
            100,
            Some(FaultKind::EndWatches(elector, WatchClose::Closed)),
            3,
        ),
        (100, Some(FaultKind::StepClock(elector, 1)), 1),
    ] {
        let at = Duration::from_secs(at);
        let fault = kind.map(|kind| PlannedFault { at, kind });
        let wrong =
            |times| preferred((PlannedStrategy::Oldest, "1.0.0"), times, fault.as_ref()).len();
        assert_eq!([wrong(most), wrong(most + 1)], [0, 1], "{fault:?}");
    }
}
