use elector_testing::{TestCluster, TestProgram, eventually, pass};

use super::*;

fn start(world: &TestCluster, name: &str) -> TestProgram<Result<(), Error>> {
    let client = Client::new(world.service(name), "default");
    let cluster = world.cluster(name);
    world.start(name, |shutdown| program(cluster, client, shutdown))
}

fn put_team(world: &TestCluster, name: &str) {
    world.put(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": name}},
    }));
}

/// The Lease as kube-leader-election 0.44 writes it.
fn put_old_lease(world: &TestCluster, holder: &str, lease_duration: u32) {
    let at = "2027-01-15T07:59:59.000000Z";
    world.put(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "controller", "namespace": "default"},
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": lease_duration, "leaseTransitions": 3,
            "acquireTime": at, "renewTime": at,
        },
    }));
}

/// The old replicas are gone: the last one without a word, or by `step_down`.
#[tokio::test(start_paused = true)]
async fn the_lease_of_the_old_program_is_waited_for_as_its_record_says() {
    // Where no elector acts, 5 s go to waiting for one.
    for (holder, lease_duration, expected) in [("old-7f", 15, 20), ("old-7f", 40, 45), ("", 1, 5)] {
        let world = TestCluster::new();
        put_old_lease(&world, holder, lease_duration);
        let program = start(&world, "controller-0");
        program.leads().await;
        assert_eq!(world.elapsed().as_secs(), expected, "{holder:?}");
        assert_eq!(program.handle().status().term(), Some(4));
    }
}

#[tokio::test(start_paused = true)]
async fn the_standby_reconciles_when_the_leader_is_cut_off() {
    let world = TestCluster::new();
    put_team(&world, "red");
    let team_of = |name: &str| Some(world.get("configmaps", name, "team")?["data"]["team"].clone());

    let mut first = start(&world, "controller-0");
    first.leads().await;
    let second = start(&world, "controller-1");
    eventually(|| team_of("red") == Some(json!("red"))).await;

    first.faults().partition(true);
    put_team(&world, "blue");
    pass(Duration::from_secs(5)).await;
    assert_eq!(team_of("blue"), None, "only a leader writes");
    second.leads().await;
    eventually(|| team_of("blue") == Some(json!("blue"))).await;

    let report = first.term_report().await;
    report.assert_nothing_late();
    report.assert_returned();
    assert_eq!(report.effects[0].1, "PATCH configmaps red/team");
}
