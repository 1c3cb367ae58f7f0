//! A group of leases in three processes, and what befalls one of them.

mod recorded_group;

use std::time::Duration;

use elector_api::{GROUP_LABEL, MEMBER_ANNOTATION};
use elector_testing::{CANDIDATES, Fault, LEASES, Rule, eventually, pass, seconds};

use self::recorded_group::{GROUP, PARTS, RecordedGroup};
use crate::NAMESPACE;

/// A blow to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Killed,
    Ended,
    Paused,
    CutOff,
}

/// The time in which all parts are led again: a lease, the time of an elector, and the pace without one.
const PATIENCE: Duration = Duration::from_secs(25);

/// A group of three processes, all parts of which are led.
async fn three_members(has_elector: bool) -> RecordedGroup {
    let mut group = RecordedGroup::new(has_elector);
    // An elector acts when it has been up for a lease.
    pass(seconds(20)).await;
    for _ in 0..3 {
        group.start();
    }
    group.all_are_led_by_others_than("", seconds(30)).await;
    group
}

/// Without an elector, and with one: no part has ever two at work, each is led again in time, and what the others lead they
/// go on leading.
#[tokio::test(start_paused = true)]
async fn what_befalls_one_process_costs_its_own_parts_alone() {
    for has_elector in [false, true] {
        let mut group = three_members(has_elector).await;
        for blow in [Blow::Killed, Blow::Ended, Blow::Paused, Blow::CutOff] {
            // The parts that a newcomer gets have moved, one after the other: it settles first, which takes longer for one
            // that let leases expire.
            pass(seconds(300)).await;
            let (victim, before) = (group.busiest(), group.leaders());
            match blow {
                Blow::Killed => drop(group.members.remove(&victim)),
                Blow::Ended => group.members.get_mut(&victim).unwrap().program.shut_down(),
                Blow::Paused => group.stand_still(&victim, true),
                Blow::CutOff => group.cluster.faults(&victim).partition(true),
            }
            let what = format!("{blow:?}, elector: {has_elector}");
            group.all_are_led_by_others_than(&victim, PATIENCE).await;
            let after = group.leaders();
            let others = before.iter().filter(|(_, (leader, _))| *leader != victim);
            for (part, leader) in others {
                assert_eq!(after.get(part), Some(leader), "{part}, {what}");
            }
            match blow {
                Blow::Killed => {
                    group.start();
                }
                Blow::Ended => {
                    let ended = group.members.remove(&victim).unwrap();
                    ended.program.ended().await.unwrap();
                    group.start();
                }
                Blow::Paused => group.stand_still(&victim, false),
                Blow::CutOff => group.cluster.faults(&victim).partition(false),
            }
        }
        pass(seconds(60)).await;
        group.all_are_led_by_others_than("", seconds(5)).await;
        group.verify();
    }
}

/// Where no elector acts, the processes begin at parts of their own, and none takes all.
#[tokio::test(start_paused = true)]
async fn processes_that_start_together_share_the_parts() {
    let mut group = three_members(false).await;
    let leaders = group.leaders();
    for member in group.members.keys() {
        let led = leaders.values().filter(|(leader, _)| leader == member);
        assert!((1..=5).contains(&led.count()), "{leaders:?}");
    }
    group.verify();
    // One that comes later leaves them theirs.
    group.start();
    pass(seconds(60)).await;
    assert_eq!(group.leaders(), leaders);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_hangs_costs_its_own_part_alone() {
    let mut group = RecordedGroup::new(false);
    let name = group.start();
    group.all_are_led_by_others_than("", seconds(40)).await;
    let before = group.leaders();
    let hang = Rule::new(Fault::HangBefore).resource(LEASES);
    let hang = hang.verb("update").named("web-p3");
    group.cluster.faults(&name).inject(hang);
    let lost = eventually(|| !group.leaders().contains_key("p3"));
    lost.await;
    pass(seconds(20)).await;
    let mut kept = before.clone();
    kept.remove("p3");
    assert_eq!(group.leaders(), kept);
    group.cluster.faults(&name).clear();
    group.all_are_led_by_others_than("", seconds(40)).await;
    let after = group.leaders();
    assert!(after["p3"].1 > before["p3"].1, "another term, {after:?}");
    group.verify();
}

/// The part goes elsewhere for a while, and the process goes on.
#[tokio::test(start_paused = true)]
async fn work_that_fails_gives_its_own_part_back() {
    let mut group = RecordedGroup::new(false);
    let unlucky = group.start_working(|leadership| async move {
        match leadership.part() {
            Some("p2") => return Err("disk full"),
            Some("p5") => return Ok(()),
            _ => {}
        }
        leadership.stopped().await;
        Ok(())
    });
    let lucky = ["p0", "p1", "p3", "p4", "p6", "p7"];
    eventually(|| group.leaders().into_keys().eq(lucky)).await;
    let before = group.leaders();
    let other = group.start();
    let taken = eventually(|| {
        let leaders = group.leaders();
        let is_others = |part| {
            leaders
                .get(part)
                .is_some_and(|(leader, _)| *leader == other)
        };
        is_others("p2") && is_others("p5")
    });
    let taken = tokio::time::timeout(seconds(120), taken).await;
    assert!(taken.is_ok(), "{:?}", group.leaders());
    let after = group.leaders();
    assert!(before.iter().all(|(part, leader)| after[part] == *leader));
    let mut member = group.members.remove(&unlucky).unwrap();
    member.program.shut_down();
    member.program.ended().await.unwrap();
}

/// Nothing but renewals, and two watches, of which that of the Leases has no selector: under one, a label that is removed
/// looks like a deletion.
#[tokio::test(start_paused = true)]
async fn a_process_costs_the_renewals_of_its_parts_and_two_watches() {
    let mut group = RecordedGroup::new(false);
    let name = group.start();
    group.all_are_led_by_others_than("", seconds(40)).await;
    let of = |part: &str| {
        let requests = group.cluster.requests_of(&name).into_iter();
        let reads = requests.filter(|sent| sent.what.starts_with("GET "));
        reads.filter(|sent| sent.what.contains(part)).count()
    };
    assert_eq!(of("watch="), 2, "{:#?}", group.cluster.requests_of(&name));
    let selector = format!(
        "labelSelector={}%3D{GROUP}",
        GROUP_LABEL.replace('/', "%2F")
    );
    let lists = |plural: &str| of(&format!("/{plural}?"));
    let labelled = of(&selector);
    assert_eq!(labelled, lists("leasecandidates"), "{labelled}");
    assert!(labelled >= 2 && lists("leases") >= 2);
    let before = group.leaders();
    // A stranger takes the labels of the group away, which the next renewals bring back, and a repair.
    let label = |part: &str| {
        let lease = group
            .cluster
            .get(LEASES, NAMESPACE, &format!("{GROUP}-{part}"));
        lease.unwrap()["metadata"]["labels"][GROUP_LABEL].clone()
    };
    for part in PARTS {
        let lease = format!("{GROUP}-{part}");
        assert_eq!(label(part), GROUP);
        for (resource, object) in [
            (LEASES, lease.clone()),
            (CANDIDATES, format!("{name}.{lease}")),
        ] {
            group.cluster.edit(resource, NAMESPACE, &object, |fields| {
                fields["metadata"]["labels"] = serde_json::json!({});
            });
        }
    }
    pass(seconds(5)).await;
    group.cluster.forget_requests();
    pass(seconds(100)).await;
    let requests = group.cluster.requests_of(&name);
    let renewals = requests.iter().filter(|it| it.what.starts_with("PUT "));
    // Each part is renewed every 3.3 s.
    let renewals = renewals.count();
    assert!((232..=248).contains(&renewals), "{renewals}");
    let rest = requests.len() - renewals;
    assert!(rest <= 2, "the search for a better API at most: {rest}");
    assert_eq!(group.leaders(), before);
    for part in PARTS {
        assert_eq!(label(part), GROUP);
        let candidate = format!("{name}.{GROUP}-{part}");
        let candidate = group
            .cluster
            .get(CANDIDATES, NAMESPACE, &candidate)
            .unwrap();
        let metadata = &candidate["metadata"];
        assert_eq!(metadata["labels"][GROUP_LABEL], GROUP);
        assert_eq!(metadata["annotations"][MEMBER_ANNOTATION], name.as_str());
    }
}
