//! The candidates considered of many, and those kept of a namespace.

use std::sync::Arc;

use elector_protocol::{
    CandidateSpec, Identity, LeaseKey, LeaseRecord, OperatorPreference, Rejection, StrategyName,
    Timestamp,
};

use super::{LISTED, ViewScene, candidate, held, id, lease, time};
use crate::view::limits::bytes_of;
use crate::view::{
    CandidateSeen, LEASE_CANDIDATES, LimitHit, NAMESPACE_CANDIDATES, ResourceVersion,
};

/// A candidate that was created in this second.
fn created(name: &str, second: i64) -> CandidateSeen {
    let mut seen = candidate(name, "l", u64::try_from(second).unwrap() + 1000);
    seen.candidate.created = Timestamp::from_micros(second * 1_000_000).unwrap();
    seen
}

/// A later revision of a candidate, which lists this number of strategies.
fn grown(mut seen: CandidateSeen, strategies: usize) -> CandidateSeen {
    let list = vec![StrategyName::oldest_emulation_version(); strategies];
    let spec = CandidateSpec {
        supersedes: Some(list),
        ..seen.candidate.offer().unwrap().clone()
    };
    seen.candidate.spec = Arc::new(Ok(spec));
    seen.candidate.version = ResourceVersion(seen.candidate.version.0 + 1_000_000);
    seen
}

fn named(range: std::ops::Range<i64>) -> Vec<String> {
    range.map(|second| format!("c{second:05}")).collect()
}

/// A lease for which 100 candidates stand, each older than the next.
fn crowded() -> ViewScene {
    let mut world = ViewScene::synced();
    for second in 0..100 {
        world.candidate(created(&format!("c{second:05}"), second));
    }
    world
}

impl ViewScene {
    fn hits(&mut self) -> Vec<LimitHit> {
        std::iter::from_fn(|| self.view.next_limit_hit()).collect()
    }
}

#[test]
fn the_oldest_are_considered_and_a_flood_pushes_none_of_them_out() {
    let mut world = crowded();
    assert_eq!(world.names("l"), named(0..64));
    let hit = LimitHit::Lease {
        lease: super::key("l"),
        considered: LEASE_CANDIDATES,
    };
    assert_eq!(world.hits(), [hit]);
    world.dirty();
    for second in 100..1000 {
        world.candidate(created(&format!("a{second:05}"), second));
    }
    assert_eq!(world.names("l"), named(0..64));
    assert_eq!(world.dirty(), [""; 0], "none of it costs a step");
    assert_eq!(world.hits(), [], "it was reported");
}

#[test]
fn that_candidates_wait_is_reported_again_only_after_a_quarter_of_the_places_was_free() {
    for (left, reports) in [(48, 0), (47, 1)] {
        let mut world = crowded();
        world.hits();
        (left..100).for_each(|second| world.candidate_gone(&format!("c{second:05}"), None));
        for second in left..100 {
            let seen = created(&format!("again-{second:05}"), second);
            world.candidate(seen);
        }
        assert_eq!(world.hits().len(), reports, "{left}");
    }
}

#[test]
fn the_next_oldest_takes_a_place_that_becomes_free() {
    let mut world = crowded();
    world.dirty();
    world.candidate_gone("c00080", None);
    assert_eq!(world.dirty(), [""; 0]);
    world.candidate_gone("c00003", None);
    assert_eq!(world.dirty(), ["l"]);
    let expected = [named(0..3), named(4..65)].concat();
    assert_eq!(world.names("l"), expected);
    // One that is being deleted gives its place away, whatever finalizers keep it.
    let mut deleting = created("c00005", 5);
    (deleting.candidate.deleting, deleting.candidate.version) = (true, ResourceVersion(5000));
    world.candidate(deleting);
    assert!(!world.names("l").contains(&"c00005".to_owned()));
    assert!(world.names("l").contains(&"c00065".to_owned()));
    for second in 6..100 {
        world.candidate_gone(&format!("c{second:05}"), None);
    }
    let expected = ["c00000", "c00001", "c00002", "c00004", "c00005"];
    assert_eq!(world.names("l"), expected);
}

#[test]
fn holder_and_preferred_are_considered_however_young_they_are() {
    let mut world = crowded();
    let record = LeaseRecord {
        preferred_holder: Identity::new("c00091"),
        ..held("c00090", 1)
    };
    world.lease(lease("l", 2000, record));
    let named_by_lease = ["c00090", "c00091"].map(str::to_owned).to_vec();
    assert_eq!(world.names("l"), [named(0..62), named_by_lease].concat());
    // A candidate that took the lease before it registered is considered too.
    world.lease(lease("l", 2001, held("late", 2)));
    assert_eq!(world.names("l"), named(0..64));
    world.dirty();
    world.candidate(created("late", 500));
    assert_eq!(world.dirty(), ["l"]);
    let expected = [named(0..63), vec!["late".to_owned()]].concat();
    assert_eq!(world.names("l"), expected);
    world.lease(lease("l", 2002, held("c00001", 3)));
    assert_eq!(world.names("l"), named(0..64));
}

/// (R16) An operator means that one, however many came before it.
#[test]
fn the_candidate_that_an_operator_prefers_is_considered() {
    let mut world = crowded();
    let mut preferring = lease("l", 2000, held("c00000", 1));
    preferring.snapshot.as_mut().unwrap().overrides.prefer = Some(Box::new(OperatorPreference {
        candidate: id("c00099"),
        until: Timestamp::MAX,
    }));
    world.lease(preferring);
    let expected = [named(0..63), vec!["c00099".to_owned()]].concat();
    assert_eq!(world.names("l"), expected);
}

/// (R15) Those that crashed without a word must not keep the others from an election for half an hour.
#[test]
fn where_none_answers_the_youngest_give_their_places_to_those_that_wait_until_they_write() {
    let replace = |world: &mut ViewScene, silent: &[String]| {
        let silent: Vec<_> = silent.iter().map(|name| id(name)).collect();
        let at = world.at();
        world.view.replace_silent(&super::key("l"), at, &silent)
    };
    let mut world = crowded();
    // The last holder stays, whatever it answers.
    world.lease(lease("l", 2000, held("c00063", 1)));
    // Three wait, so three give their places away.
    (67..100).for_each(|second| world.candidate_gone(&format!("c{second:05}"), None));
    assert!(!replace(&mut world, &named(63..64)));
    assert!(replace(&mut world, &named(0..64)));
    let expected = [named(0..60), named(63..67)].concat();
    assert_eq!(world.names("l"), expected);
    assert!(
        !replace(&mut world, &named(0..67)),
        "all that wait are silent"
    );
    let mut annotated = created("c00061", 61);
    annotated.candidate.version = ResourceVersion(200_000);
    world.candidate(annotated);
    assert_eq!(world.names("l"), expected, "it says nothing");
    let mut alive = created("c00061", 61);
    alive.candidate.renew = Timestamp::from_micros(2);
    alive.candidate.version = ResourceVersion(300_000);
    world.candidate(alive);
    let expected = [named(0..60), named(61..62), named(63..66)].concat();
    assert_eq!(world.names("l"), expected, "it is older than the last");
    // A place that becomes free is for those first that may answer.
    world.candidate_gone("c00000", None);
    assert_eq!(
        world.names("l"),
        [&named(1..2), &expected[2..], &named(66..67)].concat()
    );
    world.candidate_gone("c00002", None);
    let expected = [named(1..2), named(3..62), named(63..67)].concat();
    assert_eq!(world.names("l"), expected);
}

/// Two electors that saw the same objects in another order must not disagree (R17).
#[test]
fn the_same_ones_are_considered_in_whatever_order_they_are_seen() {
    let mut seen: Vec<_> = (0..200)
        .map(|index| created(&format!("c{index:05}"), index / 50))
        .collect();
    let mut listed = ViewScene::synced();
    listed.list_candidates(seen.clone());
    let mut reversed = ViewScene::synced();
    seen.reverse();
    for one in seen {
        reversed.candidate(one);
    }
    assert_eq!(listed.names("l").len(), LEASE_CANDIDATES);
    assert_eq!(listed.names("l"), reversed.names("l"));
}

#[test]
fn a_full_namespace_leaves_out_what_comes_last_and_no_other_namespace() {
    let mut world = ViewScene::synced();
    let count = i64::try_from(NAMESPACE_CANDIDATES).unwrap();
    let one_each = |second: i64| {
        let mut seen = created(&format!("c{second:05}"), second);
        seen.lease = super::key(&format!("l{second:05}"));
        seen
    };
    // Listed with the youngest first.
    world.list_candidates((0..count + 5).rev().map(one_each).collect());
    let hits = world.hits();
    assert!(
        matches!(&hits[..], [LimitHit::Namespace { lease, .. }] if lease.namespace.as_ref() == "ns"),
        "reported once: {hits:?}"
    );
    let known = world.view.candidate_index.len();
    assert!(known > 20_000 && known <= NAMESPACE_CANDIDATES, "{known}");
    assert_eq!(world.names("l00000"), ["c00000"], "the oldest are kept");
    assert_eq!(world.names(&format!("l{:05}", count + 4)), [""; 0]);
    let mut elsewhere = one_each(count + 9);
    elsewhere.lease = LeaseKey::new("quiet", elsewhere.lease.name.clone());
    world.candidate(elsewhere);
    assert_eq!(world.view.candidate_index.len(), known + 1);
    // One that grows beyond what there is room for is left out itself, and those before it have grown.
    for second in 0..100 {
        world.candidate(grown(one_each(second), 400));
    }
    assert_eq!(world.names("l00000"), ["c00000"]);
    assert_eq!(world.names("l00099"), [""; 0]);
    // There is room again where candidates go.
    let area = Some("ns".into());
    world
        .view
        .handle_candidates(time(world.now), &area, LISTED, vec![]);
    assert_eq!(world.view.candidate_index.len(), 1);
    world.candidate(one_each(count + 4));
    assert_eq!(world.view.candidate_index.len(), 2);
}

#[test]
fn a_name_is_kept_twice() {
    let bytes = |name| bytes_of(&candidate(name, "l", 1).candidate);
    assert_eq!(bytes("abcdef") - bytes("ab"), 8);
    let listed = grown(candidate("ab", "l", 1), 2);
    let strategy = StrategyName::OLDEST_EMULATION_VERSION.len();
    let more = bytes_of(&listed.candidate) - bytes("ab");
    assert_eq!(more, 2 * (16 + strategy), "each strategy that it lists");
}

/// A list of a hundred thousand strategies may stand in one object of v1alpha1.
#[test]
fn a_candidate_that_lists_more_than_is_kept_cannot_be_elected() {
    let list = |count: usize| {
        let strategies: Vec<_> = (0..count)
            .map(|index| format!("example.com/s{index}"))
            .collect();
        let object = serde_json::json!({
            "apiVersion": "coordination.k8s.io/v1alpha1",
            "metadata": {"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "7"},
            "spec": {
                "leaseName": "l", "renewTime": "2026-01-02T03:04:05.000000Z", "preferredStrategies": strategies,
            },
        });
        let object = elector_api::LeaseCandidate::from_value(object);
        let seen = CandidateSeen::of(&object).unwrap();
        seen.candidate.offer().cloned().map_err(Rejection::clone)
    };
    let expected = StrategyName::parse("example.com/s0").unwrap();
    assert_eq!(list(3).unwrap().strategy, expected);
    let why = "spec.preferredStrategies: Too long: may not be more than 16384 bytes";
    assert_eq!(list(100_000), Err(Rejection::Malformed(why.to_owned())));
}
