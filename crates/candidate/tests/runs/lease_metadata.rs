//! Labels and an owner that a program wants on its Lease: they come with the writes of the holder, and with no others.

use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_candidate::{Config, Owner};
use elector_testing::{LEASES, OneLease, eventually, seconds};
use serde_json::{Value, json};

use crate::modes::plain;
use crate::{V1BETA1, elected, leader, obedient, pass, start};

fn labelled(config: Config) -> Config {
    let owner = Owner::new("apps/v1", "Deployment", "web", "u-web");
    config.lease_label("team", "web").lease_owner(owner)
}

/// A cluster whose Lease has a label and an owner of others, and another team.
fn cluster() -> OneLease {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.edit(LEASES, "default", "web", |fields| {
        fields["metadata"]["labels"] = json!({"team": "other", "chart": "web-1"});
        fields["metadata"]["ownerReferences"] = json!([chart()]);
    });
    cluster
}

fn chart() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "chart", "uid": "u-chart"})
}

/// The labels of the Lease, and the names of its owners.
fn metadata(cluster: &OneLease) -> (Value, Vec<String>) {
    let metadata = cluster.lease().unwrap().metadata;
    let owners = metadata.owner_references.into_iter().flatten();
    (json!(metadata.labels), owners.map(|it| it.name).collect())
}

fn of_both() -> (Value, Vec<String>) {
    let names = ["chart", "web"].map(str::to_owned);
    (json!({"team": "web", "chart": "web-1"}), names.into())
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_created_with_them() {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.delete_lease();
    let running = start(&cluster, labelled(plain("me")), obedient);
    eventually(|| cluster.lease().is_some()).await;
    let expected = (json!({"team": "web"}), vec!["web".to_owned()]);
    assert_eq!(cluster.record().holder, None);
    assert_eq!(metadata(&cluster), expected);
    running.leads(1).await;
    assert_eq!(metadata(&cluster), expected);
}

#[tokio::test(start_paused = true)]
async fn an_elected_leader_adds_them_to_those_of_others_and_writes_no_more_often_for_it() {
    let mut writes = Vec::new();
    for wants in [false, true] {
        let cluster = cluster();
        let before = metadata(&cluster);
        let config = if wants {
            labelled(elected())
        } else {
            elected()
        };
        let begun = cluster.now();
        let running = leader(&cluster, config, obedient).await;
        let expected = if wants { of_both() } else { before };
        assert_eq!(metadata(&cluster), expected, "with the accept");
        pass(30_000).await;
        running.releases().await;
        assert_eq!(metadata(&cluster), expected);
        let requests = cluster.object_requests_since(begun).into_iter();
        let is_write = |what: &String| what.ends_with(" leases/web") && !what.starts_with("GET");
        writes.push(
            requests
                .map(|it| it.what)
                .filter(is_write)
                .collect::<Vec<_>>(),
        );
    }
    assert!(writes[0].len() > 8, "{writes:?}");
    assert_eq!(writes[0], writes[1]);
}

#[tokio::test(start_paused = true)]
async fn a_standby_adds_nothing_and_a_leader_puts_back_what_was_taken_off() {
    let cluster = cluster();
    let before = metadata(&cluster);
    let standby = start(&cluster, labelled(elected()), obedient);
    standby.registered().await;
    cluster.grant("other");
    pass(60_000).await;
    assert_eq!(metadata(&cluster), before);
    cluster.grant("me");
    standby.leads(1).await;
    cluster.edit(LEASES, "default", "web", |fields| {
        fields["metadata"]["labels"] = json!({"chart": "web-1"});
    });
    let begun = cluster.now();
    eventually(|| metadata(&cluster) == of_both()).await;
    assert!(cluster.now().since(begun) < seconds(4), "a renewal");
}

/// No term hangs on a label: the write after the refused one goes without it, and the next one has it again.
#[tokio::test(start_paused = true)]
async fn a_refused_write_is_sent_again_without_them() {
    let cluster = cluster();
    let before = metadata(&cluster);
    let refusal = Rule::new(Fault::Refuse(403)).verb(RequestVerb::Update);
    cluster.faults().inject(refusal.resource(LEASES).times(1));
    let begun = cluster.now();
    let running = leader(&cluster, labelled(elected()), obedient).await;
    assert!(cluster.now().since(begun) < seconds(4));
    assert_eq!(metadata(&cluster), before);
    eventually(|| metadata(&cluster) == of_both()).await;
    assert!(running.guard().is_leader() && !running.is_disturbed());
}
