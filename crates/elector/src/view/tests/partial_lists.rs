//! A list as kept while its pages come in.

use elector_api::LeaseCandidate;
use serde_json::{Value, json};

use super::ViewScene;
use crate::view::limits::{NAMESPACE_BYTES, bytes_of};
use crate::view::{CandidateList, LeaseList, LimitHit, ParsedCandidate};

fn object(name: &str, second: usize, spec: &Value) -> LeaseCandidate {
    let (minute, second) = (second / 60, second % 60);
    LeaseCandidate::from_value(json!({
        "apiVersion": "coordination.k8s.io/v1alpha1",
        "metadata": {
            "namespace": "ns", "name": name, "uid": name, "resourceVersion": "7",
            "creationTimestamp": format!("2026-01-02T{:02}:{:02}:{second:02}Z", minute / 60, minute % 60),
        },
        "spec": spec,
    }))
}

/// A candidate that lists about 10 KiB of strategies.
fn broad(name: &str, second: usize) -> LeaseCandidate {
    let strategies: Vec<_> = (0..250)
        .map(|index| format!("example.com/strategy-{index}"))
        .collect();
    let spec = json!({
        "leaseName": name, "renewTime": "2026-01-02T03:04:05.000000Z", "preferredStrategies": strategies,
    });
    object(name, second, &spec)
}

fn names(list: CandidateList) -> Vec<String> {
    let names = list
        .into_candidates()
        .map(|parsed| parsed.object().name.to_string());
    names.collect()
}

#[test]
fn texts_that_no_decision_needs_are_gone_with_their_page() {
    let megabyte = "x".repeat(1 << 20);
    let mut candidates = CandidateList::default();
    for (name, lease) in [
        ("a", "l".to_owned()),
        ("b", megabyte.clone()),
        ("c", String::new()),
    ] {
        let spec = json!({"leaseName": lease, "unknown": megabyte});
        let mut object = object(name, 0, &spec);
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert("elector.dev/lease-duration".to_owned(), megabyte.clone());
        candidates.extend([object]);
    }
    let text = format!("{candidates:?}");
    assert!(text.len() < 3000, "{} bytes", text.len());
    assert_eq!(names(candidates), ["a", "b", "c"]);

    let mut lease = elector_api::Lease::default();
    lease.metadata.annotations = Some([("a".to_owned(), megabyte)].into());
    let mut leases = LeaseList::default();
    leases.extend([lease]);
    let text = format!("{leases:?}");
    assert!(text.len() < 3000, "{} bytes", text.len());
    assert_eq!(leases.into_leases().count(), 1);
}

#[test]
fn a_list_keeps_the_oldest_of_a_namespace_whichever_page_they_come_with() {
    let bytes = |name: &str| match ParsedCandidate::of(&broad(name, 0)) {
        Some(ParsedCandidate::Seen(seen)) => bytes_of(&seen.candidate),
        other => panic!("{other:?}"),
    };
    let size = bytes("c00000");
    let fits = NAMESPACE_BYTES / size;
    let objects: Vec<_> = (0..4 * fits)
        .map(|second| broad(&format!("c{second:05}"), second))
        .collect();
    let expected: Vec<_> = (0..=fits).map(|second| format!("c{second:05}")).collect();
    let mixed = (0..objects.len()).map(|index| index * 1009 % objects.len());
    let orders: [Vec<usize>; 3] = [
        (0..objects.len()).collect(),
        (0..objects.len()).rev().collect(),
        mixed.collect(),
    ];
    for order in orders {
        let mut list = CandidateList::default();
        for index in order {
            list.extend([objects[index].clone()]);
            // They are all of one size.
            assert!(list.count() * size <= 2 * NAMESPACE_BYTES);
        }
        // One more than there is room for: that one tells the view.
        let mut scene = ViewScene::synced();
        let seen = list.into_candidates().filter_map(|parsed| match parsed {
            ParsedCandidate::Seen(seen) => Some(seen),
            ParsedCandidate::Malformed(..) => None,
        });
        let seen: Vec<_> = seen.collect();
        let listed = seen.iter().map(|seen| seen.candidate.name.to_string());
        assert_eq!(listed.collect::<Vec<_>>(), expected);
        scene.list_candidates(seen);
        assert_eq!(scene.view.candidate_index.len(), fits);
        assert!(matches!(
            scene.view.next_limit_hit(),
            Some(LimitHit::Namespace { candidates, .. }) if candidates == fits
        ));
    }
}

#[test]
fn no_more_malformed_candidates_are_kept_than_are_reported() {
    let mut list = CandidateList::default();
    let malformed = |index: usize| object(&format!("c{index:05}"), 0, &json!({"leaseName": ""}));
    list.extend((0..3000).map(malformed));
    list.extend([broad("good", 1)]);
    let names = names(list);
    assert_eq!(names.len(), 1001);
    assert!(names.contains(&"good".to_owned()));
}
