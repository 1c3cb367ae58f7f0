//! The modes: who takes a free lease without an elector, when, and when not (R18).

use std::time::Duration;

use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_candidate::{Config, Event, TermEnd, TermOrigin};
use elector_protocol::{Identity, Instant, Token};
use elector_testing::{CANDIDATES, CapturedLog, LEASES, OneLease, eventually, millis, seconds};
use serde_json::{Value, json};

use crate::{
    CUSTOM, RunOutcome, RunningCandidate, V1BETA1, config, elected, obedient, pass, start,
};

pub(crate) fn plain(identity: &str) -> Config {
    let lease = OneLease::key();
    Config::plain(&*lease.name)
        .namespace(&*lease.namespace)
        .identity(identity)
}

/// A cluster whose Lease was released a moment ago.
fn released(cluster: &OneLease) {
    cluster.write(|record| record.released(elector_testing::TestCluster::start_time()));
}

/// The time for which the lease had been free when it was acquired for the first time.
fn free(running: &RunningCandidate) -> Option<Duration> {
    let events = running.events.lock().unwrap();
    events.iter().find_map(|(event, _)| match event {
        Event::Leading {
            by: TermOrigin::Acquired { free, .. },
            ..
        } => Some(*free),
        _ => None,
    })
}

#[track_caller]
fn has_waited(cluster: &OneLease, since: Instant, expected: Duration) {
    let waited = cluster.now().since(since);
    assert!(is_about(waited, expected), "{waited:?}");
}

pub(crate) fn is_about(duration: Duration, expected: Duration) -> bool {
    (expected..expected + millis(50)).contains(&duration)
}

#[tokio::test(start_paused = true)]
async fn a_plain_candidate_takes_a_released_lease_at_once_and_registers_nowhere() {
    let log = CapturedLog::capture();
    let cluster = OneLease::new(&[V1BETA1]);
    released(&cluster);
    let begun = cluster.now();
    let version = cluster.lease().unwrap().snapshot().unwrap().version;
    let running = start(&cluster, plain("Host 1"), obedient);
    running.leads(1).await;
    assert!(cluster.now().since(begun) < millis(20));
    let record = cluster.record();
    assert_eq!(record.holder, Identity::new("Host 1"));
    assert_eq!(record.token, Some(Token(version)));
    assert_eq!(record.token_term, Some(record.term));
    assert_eq!(record.acquire_time, record.renew_time);
    pass(60_000).await;
    assert!(running.guard().is_leader() && !running.is_disturbed());
    // Nothing but the Lease matters.
    let asked = cluster.requests().into_iter().map(|request| request.what);
    let others = asked.filter(|what| !what.contains("/leases"));
    assert_eq!(others.collect::<Vec<_>>(), [""; 0]);
    assert_eq!(running.count(|event| *event == Event::Registered), 0);
    assert_eq!(log.lines("acquired the lease").len(), 1);
    assert_eq!(log.lines("no elector is active").len(), 0);
}

/// The Lease says nothing of its last holder: that one may believe for as long as any client does.
#[tokio::test(start_paused = true)]
async fn an_unproven_lease_is_waited_for_as_long_as_any_client_may_believe() {
    for (longest, grace, expected) in [(15, None, 15), (40, None, 40), (15, Some(3), 3)] {
        let cluster = OneLease::new(&[V1BETA1]);
        let config = plain("me").max_lease_duration(seconds(longest));
        let config = match grace {
            Some(grace) => config.absent_lease_grace(seconds(grace)),
            None => config,
        };
        let begun = cluster.now();
        let running = start(&cluster, config, obedient);
        running.leads(1).await;
        has_waited(&cluster, begun, seconds(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn an_auto_candidate_takes_a_lease_that_no_elector_grants_and_says_how_long_it_was_free() {
    let log = CapturedLog::capture();
    let cluster = OneLease::new(&[V1BETA1]);
    released(&cluster);
    let begun = cluster.now();
    let running = start(&cluster, config(), obedient);
    running.registered().await;
    running.leads(1).await;
    has_waited(&cluster, begun, seconds(5));
    assert!(is_about(free(&running).unwrap(), seconds(5)));
    let lines = log.lines("acquired the lease: no elector is active");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].ends_with("free=5s"), "{lines:?}");
    // It makes room for a better one as an elected leader does.
    cluster.prefer("better");
    eventually(|| cluster.record().holder == Identity::new("better")).await;
    assert!(cluster.record().is_unaccepted_grant());
}

/// (R16) An operator annotates its object, and may take that back. Otherwise it lasts for a day, and no ack prolongs it.
#[tokio::test(start_paused = true)]
async fn an_auto_candidate_that_is_to_stand_down_acquires_nothing() {
    for (lasts, taken_back) in [(120_000, true), (86_399_000, false)] {
        let cluster = OneLease::new(&[V1BETA1]);
        released(&cluster);
        let running = start(&cluster, config(), obedient);
        running.registered().await;
        let begun = cluster.now();
        let annotate = |change: fn(&mut Value)| {
            cluster.edit(CANDIDATES, "default", "me", |fields| {
                change(&mut fields["metadata"]["annotations"]);
            });
        };
        annotate(|annotations| annotations["elector.dev/stand-down"] = json!("true"));
        pass(lasts / 2).await;
        cluster.ping(V1BETA1, "me");
        pass(lasts / 2).await;
        assert!(running.guards.lock().unwrap().is_empty());
        if taken_back {
            annotate(|annotations| {
                let annotations = annotations.as_object_mut().unwrap();
                annotations.remove("elector.dev/stand-down").unwrap();
            });
        }
        running.leads(1).await;
        let waited = cluster.now().since(begun);
        let holds = taken_back || is_about(waited, seconds(86_400));
        assert!(holds, "{waited:?}");
    }
}

/// An acquisition that failed says nothing of the grant that came instead.
#[tokio::test(start_paused = true)]
async fn a_grant_after_an_acquisition_that_failed_is_not_called_acquired() {
    let cluster = OneLease::new(&[V1BETA1]);
    released(&cluster);
    let refusal = Rule::new(Fault::Refuse(500));
    cluster.inject(refusal.verb(RequestVerb::Update).resource(LEASES));
    let running = start(&cluster, config(), obedient);
    running.registered().await;
    pass(6_000).await;
    let holds = cluster.last("PUT leases/web") > Instant::default();
    assert!(holds, "it tried");
    cluster.grant("me");
    cluster.heal();
    running.leads(1).await;
    assert_eq!(free(&running), None);
}

/// An elector that pings acts: it is given the time again.
#[tokio::test(start_paused = true)]
async fn a_ping_restarts_the_wait_for_the_elector() {
    let cluster = OneLease::new(&[V1BETA1]);
    released(&cluster);
    let begun = cluster.now();
    let running = start(&cluster, config(), obedient);
    running.registered().await;
    pass(3_000).await;
    cluster.ping(V1BETA1, "me");
    running.leads(1).await;
    has_waited(&cluster, begun, seconds(8));
}

/// No LeaseCandidate can be registered: no elector ever acts.
#[tokio::test(start_paused = true)]
async fn without_an_api_of_lease_candidates_auto_leads_all_the_same_and_registers_when_one_comes() {
    let cluster = OneLease::new(&[]);
    released(&cluster);
    let begun = cluster.now();
    let running = start(&cluster, config(), obedient);
    running.leads(1).await;
    has_waited(&cluster, begun, seconds(5));
    pass(60_000).await;
    assert_eq!(running.count(|event| *event == Event::Registered), 0);
    cluster.serve(&[CUSTOM]);
    let served = cluster.now();
    running.registered().await;
    assert!(cluster.now().since(served) <= seconds(3));
    assert!(running.guard().is_leader() && !running.is_disturbed());
    cluster.ping(CUSTOM, "me");
    eventually(|| cluster.history().last().unwrap() == "acknowledge").await;
}

/// The API that comes takes fewer names than others: a leader goes on, and says so.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_name_cannot_be_registered_where_candidates_come_to_be_served_goes_on() {
    let log = CapturedLog::capture();
    let cluster = OneLease::new(&[]);
    released(&cluster);
    let running = start(&cluster, config().identity("Me_1"), obedient);
    running.leads(1).await;
    cluster.serve(&[CUSTOM]);
    pass(60_000).await;
    assert!(running.guard().is_leader() && !running.is_disturbed());
    assert_eq!(log.lines("failed to register in").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn where_lease_candidates_may_not_be_written_auto_leads_all_the_same() {
    for code in [403, 401] {
        let cluster = OneLease::new(&[V1BETA1]);
        released(&cluster);
        let refusal = Rule::new(Fault::Refuse(code))
            .verb(RequestVerb::Create)
            .resource("leasecandidates");
        cluster.inject(refusal);
        let begun = cluster.now();
        let running = start(&cluster, config(), obedient);
        running.leads(1).await;
        has_waited(&cluster, begun, seconds(5));
        pass(60_000).await;
        assert!(running.guard().is_leader() && !running.is_disturbed());
        // A registration that cannot be withdrawn does not delay the release.
        let told = cluster.now();
        running.releases().await;
        assert!(cluster.now().since(told) < millis(100));
    }
}

/// A policy that comes later: what would end a candidate that waits is no reason to end a leader.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_registration_is_called_invalid_goes_on() {
    let cluster = OneLease::new(&[]);
    released(&cluster);
    let running = start(&cluster, config(), obedient);
    running.leads(1).await;
    let refusal = Rule::new(Fault::Refuse(422))
        .verb(RequestVerb::Create)
        .resource("leasecandidates");
    cluster.inject(refusal);
    cluster.serve(&[V1BETA1]);
    pass(60_000).await;
    assert!(running.guard().is_leader() && !running.is_disturbed());
    cluster.grant("other");
    // It leads no more, and could not be elected either.
    assert!(running.result().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn two_plain_candidates_hand_over_on_a_release_within_milliseconds() {
    let cluster = OneLease::new(&[]);
    released(&cluster);
    let mut first = start(&cluster, plain("a"), obedient);
    first.leads(1).await;
    let second = start(&cluster, plain("b"), obedient);
    pass(30_000).await;
    assert!(second.guards.lock().unwrap().is_empty());
    let told = cluster.now();
    first.shut_down();
    second.leads(1).await;
    let gap = cluster.now().since(told);
    assert!(gap < millis(20), "{gap:?}");
    let released = RunOutcome::ShutDown(Some(TermEnd::Released));
    assert_eq!(first.outcome().await, released);
    assert!(free(&second).unwrap() < millis(20));
}

/// The successor waits for the lease duration from the last renewal that it saw, and no longer.
#[tokio::test(start_paused = true)]
async fn a_plain_candidate_replaces_a_leader_that_was_killed_when_its_lease_is_over() {
    let cluster = OneLease::new(&[]);
    released(&cluster);
    let first = start(&cluster, plain("a"), obedient);
    first.leads(1).await;
    let second = start(&cluster, plain("b"), obedient);
    pass(31_000).await;
    first.run.abort();
    let renewed = cluster.last("PUT leases/web");
    second.leads(1).await;
    has_waited(&cluster, renewed, seconds(15));
}

/// Labels and annotations of strangers belong to the Lease, not to a term.
#[tokio::test(start_paused = true)]
async fn what_others_wrote_into_the_lease_outlives_an_acquisition() {
    let cluster = OneLease::new(&[]);
    released(&cluster);
    cluster.label();
    cluster.edit(LEASES, "default", "web", |fields| {
        fields["metadata"]["annotations"]["example.com/note"] = "kept".into();
    });
    let running = start(&cluster, plain("me"), obedient);
    running.leads(1).await;
    pass(10_000).await;
    let fields = serde_json::to_value(cluster.lease().unwrap()).unwrap();
    assert_eq!(fields["metadata"]["labels"]["seen"], "yes");
    assert_eq!(
        fields["metadata"]["annotations"]["example.com/note"],
        "kept"
    );
}

/// The watch is dead: a read finds the release, after two renewals of silence.
#[tokio::test(start_paused = true)]
async fn a_release_that_a_dead_watch_does_not_show_is_found_by_a_read() {
    for (config, fallback) in [(plain("me"), 0), (config(), 5)] {
        let cluster = OneLease::new(&[V1BETA1]);
        cluster.grant("other");
        cluster.renew("default", "web", "other");
        let running = start(&cluster, config, obedient);
        pass(1_000).await;
        cluster.faults().freeze_watches(true);
        released(&cluster);
        let begun = cluster.now();
        running.leads(1).await;
        let (waited, longest) = (cluster.now().since(begun), millis(6_700));
        assert!(waited <= longest + seconds(fallback), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_is_one_line_with_the_time_after_which_the_lease_is_taken_without_an_elector() {
    for (config, falls_back) in [(config(), true), (elected(), false), (plain("me"), false)] {
        let (log, cluster) = (CapturedLog::capture(), OneLease::new(&[V1BETA1]));
        let _running = start(&cluster, config, obedient);
        pass(10).await;
        let lines = log.lines("candidate starts");
        let told = lines.iter().filter(|it| it.contains("fallback_after"));
        assert_eq!((lines.len(), told.count()), (1, usize::from(falls_back)));
    }
}

/// Ignored, so that nothing is overwritten that may be somebody's; a line names it, and nothing more until it changes.
#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_read_is_left_alone_and_named() {
    let (log, cluster) = (CapturedLog::capture(), OneLease::new(&[V1BETA1]));
    cluster.write(Clone::clone);
    cluster.edit(LEASES, "default", "web", |fields| {
        fields["spec"]["leaseTransitions"] = json!("many");
    });
    let writes = cluster.history().len();
    let running = start(&cluster, plain("me"), obedient);
    pass(60_000).await;
    assert_eq!(cluster.history().len(), writes);
    let lines = log.lines("ignored the Lease, which cannot be read");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(!running.handle.is_leader());
}
