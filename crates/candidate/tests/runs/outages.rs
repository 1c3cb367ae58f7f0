//! Servers that do not answer, answers that are lost, watches that show nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_candidate::{Event, Leadership, TermEnd};
use elector_protocol::holder::{Loss, StopReason};
use elector_testing::{CapturedLog, OneLease, eventually, seconds};
use tokio::time::Instant;

use crate::{V1BETA1, config, elected, leader, obedient, pass, start};

#[tokio::test(start_paused = true)]
async fn without_a_reply_the_work_is_told_at_the_deadline_and_goes_on_in_a_new_term_after_the_outage()
 {
    let log = CapturedLog::capture();
    let cluster = OneLease::new(&[V1BETA1]);
    let stopped = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&stopped);
    let running = leader(&cluster, elected(), move |leadership: Leadership| {
        let seen = Arc::clone(&seen);
        async move {
            let why = leadership.stopped().await;
            assert!(!leadership.is_leader());
            *seen.lock().unwrap() = Some((why, Instant::now()));
            Ok(0)
        }
    })
    .await;
    let accepted = Instant::now();
    cluster.faults().partition(true);
    eventually(|| stopped.lock().unwrap().is_some()).await;
    let (why, at) = stopped.lock().unwrap().take().unwrap();
    assert_eq!(why, StopReason::Lost(Loss::DeadlinePassed));
    let after = at.duration_since(accepted);
    let holds = (Duration::from_millis(9_950)..=Duration::from_millis(10_010)).contains(&after);
    assert!(holds, "{after:?}");
    pass(30_000).await;
    cluster.heal();
    let healed = Instant::now();
    running.leads(2).await;
    // The longest pause, and a request that was still under way (R20).
    assert!(healed.elapsed() <= seconds(4), "{:?}", healed.elapsed());
    let told = log.lines("ed the lease");
    assert!(
        told.len() == 1 && told[0].contains("resumed the lease"),
        "{told:?}"
    );
    assert!(told[0].contains("term=2"), "{told:?}");
    let expected = ["register", "grant me", "accept", "resume"];
    assert_eq!(cluster.history(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_grant_or_a_ping_that_a_dead_watch_does_not_show_is_found_by_a_read() {
    // Two renewals of silence; once a read has found what the watch did not show, a retry period.
    for (pinged, limit) in [(false, 6_700), (true, 2_000)] {
        let cluster = OneLease::new(&[V1BETA1]);
        let running = start(&cluster, config(), obedient);
        running.registered().await;
        cluster.faults().freeze_watches(true);
        if pinged {
            cluster.ping(V1BETA1, "me");
            eventually(|| cluster.history().last().unwrap() == "acknowledge").await;
        }
        let begun = Instant::now();
        cluster.grant("me");
        running.leads(1).await;
        let took = begun.elapsed();
        assert!(took <= Duration::from_millis(limit), "{took:?}");
    }
}

/// An elected candidate searches for LeaseCandidates first; the others watch the Lease and read it too.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_at_the_start_is_waited_for_and_is_one_line_for_each_way_to_it() {
    for (config, ways) in [(elected(), 1), (config(), 3)] {
        let (log, cluster) = (CapturedLog::capture(), OneLease::new(&[V1BETA1]));
        cluster.faults().partition(true);
        let running = start(&cluster, config, obedient);
        pass(45_000).await;
        let warnings = log.lines("WARN");
        assert_eq!(warnings.len(), ways, "{warnings:?}");
        cluster.heal();
        let back = Instant::now();
        running.registered().await;
        // The longest pause, and a request that was still under way.
        assert!(back.elapsed() <= seconds(8), "{:?}", back.elapsed());
    }
}

/// P-V5: it lists instead, as often as client-go reads, and says so once.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_may_not_watch_lists_and_says_so_once() {
    for plural in [&["leases"][..], &["leases", "leasecandidates"]] {
        let log = CapturedLog::capture();
        let cluster = OneLease::new(&[V1BETA1]);
        for plural in plural {
            let refused = Rule::new(Fault::Refuse(403));
            cluster.inject(refused.verb(RequestVerb::Watch).resource(plural));
        }
        let running = start(&cluster, elected(), obedient);
        running.registered().await;
        // The pauses between two tries grow up to their longest.
        pass(60_000).await;
        let begun = Instant::now();
        cluster.grant("me");
        running.leads(1).await;
        assert!(begun.elapsed() <= seconds(6), "{:?}", begun.elapsed());
        pass(600_000).await;
        assert!(!running.is_disturbed());
        let begun = Instant::now();
        cluster.prefer("better");
        running.end().await;
        assert!(begun.elapsed() <= seconds(6), "{:?}", begun.elapsed());
        pass(600_000).await;
        let warnings = log.lines("WARN");
        assert_eq!(warnings.len(), plural.len(), "{warnings:#?}");
        let line = "failed to watch leases.coordination.k8s.io default/web: RBAC does not grant the verb watch";
        let told = warnings.iter().filter(|it| it.contains(line)).count();
        assert_eq!(told, 1, "{warnings:#?}");
        // Besides each try to watch: those with a limit only ask whether the store went back.
        let lists = cluster.requests_with(&["GET", "leases?"]);
        let is_list = |what: &str| !what.contains("watch=") && !what.contains("limit=");
        let lists = lists.iter().filter(|it| is_list(&it.what)).count();
        assert!((250..700).contains(&lists), "{lists} in 21 minutes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_stops_the_work_at_once() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, elected(), obedient).await;
    let deleted = Instant::now();
    cluster.delete_lease();
    let lost = TermEnd::Lost(Loss::Deleted);
    let is_end = |event: &Event| matches!(event, Event::Ended { end, .. } if *end == lost);
    eventually(|| running.count(is_end) > 0).await;
    assert!(deleted.elapsed() < Duration::from_millis(20));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(cluster.history().last().unwrap(), "delete lease");
}

/// Found by the simulation: such a candidate stayed out of every election for good.
#[tokio::test(start_paused = true)]
async fn an_object_that_a_stranger_overwrote_is_written_anew() {
    let log = CapturedLog::capture();
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, elected(), obedient);
    running.registered().await;
    let own = cluster.candidate_fields(V1BETA1, "me").unwrap()["spec"].clone();
    for (field, value) in [
        ("binaryVersion", "0.0.1"),
        ("renewTime", "now"),
        ("renewTime", "9999-12-31T23:59:59.999999Z"),
        ("pingTime", "9999-12-31T23:59:59.999999Z"),
        ("strategy", "example.com/other"),
    ] {
        cluster.overwrite_candidate(field, value.into());
        let overwritten = Instant::now();
        eventually(|| {
            let spec = &cluster.candidate_fields(V1BETA1, "me").unwrap()["spec"];
            let same = |name: &str| spec[name] == own[name];
            same("binaryVersion") && same("strategy") && !spec.to_string().contains(value)
        })
        .await;
        assert!(overwritten.elapsed() <= Duration::from_secs(31), "{field}");
    }
    let changes = cluster.history().len();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(cluster.history().len(), changes, "and then left alone");
    assert!(
        !log.lines("another client changed the LeaseCandidate me")
            .is_empty()
    );
}
