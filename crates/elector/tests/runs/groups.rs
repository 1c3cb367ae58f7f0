//! Leases that are parts of a group: each goes where it is assigned, and its Lease says so.

use std::collections::BTreeMap;

use elector_api::GROUP_LABEL;
use elector_testing::{CANDIDATES, LEASES, ScriptedCandidate, TestCluster, pass, seconds};
use serde_json::Value;

use crate::RunningElector;
use crate::leader_election::electing;

const PARTS: [&str; 4] = ["web-0", "web-1", "web-2", "web-3"];

/// A process that stands for all parts; dropping it is a crash.
fn start(cluster: &TestCluster, member: &str) -> Vec<ScriptedCandidate> {
    let part = |part| ScriptedCandidate::start_member(cluster, "ns", "web", member, part, "1.0.0");
    PARTS.into_iter().map(part).collect()
}

/// The number of parts that each member leads.
fn loads(cluster: &TestCluster) -> BTreeMap<String, usize> {
    let mut loads = BTreeMap::new();
    for part in PARTS {
        let holder = cluster.holder("ns", part).unwrap();
        let member = holder.split_once('.').map(|(member, _)| member.to_owned());
        *loads.entry(member.unwrap_or_default()).or_default() += 1;
    }
    loads
}

fn expected(loads: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let own = |(member, load): &(&str, usize)| ((*member).to_owned(), *load);
    loads.iter().map(own).collect()
}

#[tokio::test(start_paused = true)]
async fn a_group_is_spread_over_its_members_as_they_come_and_go() {
    let (cluster, elector) = RunningElector::settled(TestCluster::with_gate()).await;
    let a = start(&cluster, "a");
    let _b = start(&cluster, "b");
    pass(seconds(5)).await;
    assert_eq!(loads(&cluster), expected(&[("a", 2), ("b", 2)]));
    for part in PARTS {
        let lease = cluster.read(LEASES, "ns", part).unwrap();
        let label = &lease["metadata"]["labels"][GROUP_LABEL];
        let expected = Value::from("web");
        assert_eq!(*label, expected, "it is taken from the candidates");
    }
    // A newcomer gets its share once it has settled.
    let _c = start(&cluster, "c");
    pass(seconds(29)).await;
    assert_eq!(loads(&cluster), expected(&[("a", 2), ("b", 2)]));
    let holders = || PARTS.map(|part| cluster.holder("ns", part).unwrap());
    let before = holders();
    pass(seconds(3)).await;
    // Among parts that may all move the first one does, and no other.
    let mut moved = before;
    moved[0] = format!("c.{}", PARTS[0]);
    assert_eq!(holders(), moved);
    let figures = elector.metrics.encode();
    for line in [
        "elector_group_parts{namespace=\"ns\",state=\"settled\"} 4",
        "elector_group_parts{namespace=\"ns\",state=\"to_move\"} 0",
        "elector_group_parts{namespace=\"ns\",state=\"vacant\"} 0",
        "elector_group_moves_total{namespace=\"ns\"} 1",
    ] {
        let holds = figures.lines().any(|it| it == line);
        assert!(holds, "no {line} in\n{figures}");
    }
    // The parts of one that crashed go to the others, and no other part moves.
    drop(a);
    pass(seconds(20)).await;
    assert_eq!(loads(&cluster), expected(&[("b", 2), ("c", 2)]));
}

/// The last one takes the figures of its namespace with it.
#[tokio::test(start_paused = true)]
async fn a_part_that_is_given_up_is_none_of_its_group() {
    let (cluster, elector) = RunningElector::settled(TestCluster::with_gate()).await;
    let mut member = start(&cluster, "a");
    pass(seconds(5)).await;
    // One that its Lease gives to another group is a part of that one alone.
    cluster.edit(LEASES, "ns", PARTS[3], |lease| {
        lease["metadata"]["labels"][GROUP_LABEL] = "db".into();
    });
    pass(seconds(1)).await;
    let parts = || elector.scrape().by("elector_group_parts", "state");
    for left in (1..=4).rev() {
        let states = [
            ("settled", f64::from(left)),
            ("to_move", 0.0),
            ("vacant", 0.0),
        ];
        assert_eq!(
            parts(),
            states.map(|(state, parts)| (state.to_owned(), parts))
        );
        drop(member.pop());
        let part = PARTS[member.len()];
        cluster.delete(CANDIDATES, "ns", &format!("a.{part}"));
        cluster.delete(LEASES, "ns", part);
        pass(seconds(1)).await;
    }
    assert!(!elector.metrics.encode().contains("\"ns\""));
}

/// An elector that stands by counts the groups that another one assigns, and moves nothing among equals when it acts.
#[tokio::test(start_paused = true)]
async fn another_elector_assigns_the_same() {
    let cluster = TestCluster::with_gate();
    let first = RunningElector::start(&cluster, electing("one"));
    pass(seconds(20)).await;
    let second = RunningElector::start(&cluster, electing("two"));
    let _members = [start(&cluster, "a"), start(&cluster, "b")];
    pass(seconds(5)).await;
    let terms = || PARTS.map(|part| cluster.term("ns", part));
    let before = (loads(&cluster), terms());
    assert_eq!(before.0, expected(&[("a", 2), ("b", 2)]));
    let parts = second.scrape().by("elector_group_parts", "state");
    assert!(parts.contains(&("settled".to_owned(), 4.0)), "{parts:?}");
    drop(first);
    pass(seconds(120)).await;
    assert_eq!((loads(&cluster), terms()), before);
}
