//! Kubernetes Events on the Lease: what a candidate tells of its own terms, how often, and that no term waits for it.

use std::time::Duration;

use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_candidate::{Config, TermEnd};
use elector_protocol::Identity;
use elector_testing::{CapturedLog, OneLease, eventually};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};

use crate::{RunningCandidate, V1BETA1, config, leader, obedient, pass};

/// A candidate that tells of its terms.
fn telling() -> Config {
    config().record_events(true)
}

/// The Events of the namespace, in the order in which they were created.
async fn events(cluster: &OneLease) -> Vec<Event> {
    let client = cluster.connect("reader").client().clone();
    let api: Api<Event> = Api::namespaced(client, "default");
    let mut events = api.list(&ListParams::default()).await.unwrap().items;
    events.sort_by_key(|event| event.metadata.name.clone());
    events
}

/// Type, reason and note of each.
async fn told(cluster: &OneLease) -> Vec<String> {
    let line = |event: &Event| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (kind, reason) = (text(&event.type_), text(&event.reason));
        format!("{kind} {reason}: {}", text(&event.note))
    };
    events(cluster).await.iter().map(line).collect()
}

fn about_events(fault: Fault) -> Rule {
    Rule::new(fault)
        .verb(RequestVerb::Create)
        .resource("events")
}

/// Grants a term, and returns its number and token as Events name them.
async fn granted(cluster: &OneLease, running: &RunningCandidate, terms: usize) -> String {
    cluster.grant("me");
    running.leads(terms).await;
    let guard = running.guard();
    format!("term {}, token {}", guard.term(), guard.token())
}

#[tokio::test(start_paused = true)]
async fn a_candidate_tells_how_it_came_to_lead_and_how_that_ended() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, telling(), obedient).await;
    let uid = cluster.lease().unwrap().metadata.uid;
    let guard = running.guard();
    let first = format!("term {}, token {}", guard.term(), guard.token());
    cluster.prefer("better");
    running.end().await;
    let second = granted(&cluster, &running, 2).await;
    cluster.grant("other");
    pass(1_000).await;
    let third = granted(&cluster, &running, 3).await;
    cluster.faults().freeze_watches(true);
    pass(1_000).await;
    cluster.faults().freeze_watches(false);
    running.releases().await;

    let number = |of: &str| of.split([' ', ',']).nth(1).unwrap().to_owned();
    assert_eq!(
        told(&cluster).await,
        [
            format!("Normal BecameLeader: me became leader in {first}: granted by an elector"),
            format!(
                "Normal LeadershipHandedOver: me handed the lease over to better after term {}",
                number(&first)
            ),
            format!("Normal BecameLeader: me became leader in {second}: granted by an elector"),
            format!(
                "Warning LeadershipLost: me lost the lease in term {}, taken: other holds the lease",
                number(&second)
            ),
            format!("Normal BecameLeader: me became leader in {third}: granted by an elector"),
            format!(
                "Normal LeadershipReleased: me released the lease after term {}",
                number(&third)
            ),
        ]
    );
    for event in events(&cluster).await {
        let regarding = event.regarding.unwrap();
        assert_eq!(regarding.kind.as_deref(), Some("Lease"));
        assert_eq!(regarding.name.as_deref(), Some("web"));
        assert_eq!(regarding.uid, uid);
        // Told apart from what electors tell of the same changes.
        let reporter = event.reporting_controller.as_deref();
        assert_eq!(reporter, Some("elector.dev/candidate"));
        assert_eq!(event.reporting_instance.as_deref(), Some("me"));
        assert!(event.series.is_none());
    }
}

/// A term lost with its Lease is reported on the Lease that there was.
#[tokio::test(start_paused = true)]
async fn the_loss_of_a_deleted_lease_is_told_on_the_one_that_there_was() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, telling(), obedient).await;
    let uid = cluster.lease().unwrap().metadata.uid;
    cluster.delete_lease();
    running.end().await;
    pass(100).await;
    let events = events(&cluster).await;
    let last = events.last().unwrap();
    assert_eq!(last.reason.as_deref(), Some("LeadershipLost"));
    assert_eq!(last.regarding.as_ref().unwrap().uid, uid);
}

#[tokio::test(start_paused = true)]
async fn without_the_wish_nothing_is_told() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, config(), obedient).await;
    pass(1_000).await;
    running.releases().await;
    assert_eq!(told(&cluster).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_account_that_may_not_write_events_leads_all_the_same_and_is_named_once() {
    let log = CapturedLog::capture();
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.inject(about_events(Fault::Refuse(403)));
    let running = leader(&cluster, telling(), obedient).await;
    pass(30_000).await;
    assert!(running.guard().is_leader() && !running.is_disturbed());
    running.releases().await;
    let lines = log.lines("failed to create events.events.k8s.io in namespace default");
    assert_eq!(lines.len(), 1, "{lines:?}");
}

/// Neither the hand-over nor the end of the run waits for a server that takes Leases and no Events.
#[tokio::test(start_paused = true)]
async fn events_that_hang_delay_no_term_and_the_end_of_the_run_by_a_moment() {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.inject(about_events(Fault::HangBefore));
    let running = leader(&cluster, telling(), obedient).await;
    let asked = cluster.now();
    cluster.prefer("better");
    let (end, at) = running.end().await;
    let to = Identity::new("better").unwrap();
    assert_eq!(end, TermEnd::HandedOver { to });
    assert!(at.since(asked) < Duration::from_millis(500));
    cluster.grant("me");
    running.leads(2).await;
    pass(20_000).await;
    assert!(running.guard().is_leader());
    let told = cluster.now();
    running.releases().await;
    let took = cluster.now().since(told);
    assert!(took < Duration::from_millis(1_500), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_changes_hands_all_the_time_has_few_events() {
    let log = CapturedLog::capture();
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, telling(), obedient).await;
    let began = cluster.now();
    for terms in 2..=60 {
        cluster.prefer("better");
        let is_over = || !running.handle.is_leader();
        eventually(is_over).await;
        cluster.grant("me");
        running.leads(terms).await;
    }
    pass(1_000).await;
    let took = cluster.now().since(began).as_secs() as usize;
    let told = events(&cluster).await.len();
    // A burst, and one in 30 s.
    let holds = (25..=25 + took / 30 + 1).contains(&told);
    assert!(holds, "{told} in {took} s");
    let left_out = log.lines("left out Events of the lease default/web: too many");
    assert_eq!(left_out.len(), 1, "{left_out:?}");
}
