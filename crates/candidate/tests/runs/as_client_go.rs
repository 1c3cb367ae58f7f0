//! The preset that waits for nothing where a Lease is missing, and its price.

use elector_candidate::{Candidate, Config};
use elector_protocol::Identity;
use elector_testing::{OneLease, millis};

use crate::{V1BETA1, obedient, pass, start, start_candidate};

fn as_client_go(identity: &str) -> Config {
    let lease = OneLease::key();
    Config::as_client_go(&*lease.name)
        .in_namespace(&*lease.namespace)
        .identified_as(Identity::new(identity).unwrap())
}

#[tokio::test(start_paused = true)]
async fn where_no_lease_exists_it_leads_after_its_requests() {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.delete_lease();
    let begun = cluster.now();
    let running = start(&cluster, as_client_go("me"), obedient);
    running.leads(1).await;
    let waited = cluster.now().since(begun);
    assert!(waited < millis(200), "{waited:?}");
    assert_eq!(cluster.record().strategy, None);
}

/// The price, as its documentation tells it: the first leader learns of nothing.
#[tokio::test(start_paused = true)]
async fn after_a_deletion_two_believe_until_the_renew_deadline_of_the_first_has_passed() {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.delete_lease();
    let first = start(&cluster, as_client_go("first"), obedient);
    first.leads(1).await;
    cluster.faults().partition(true);
    cluster.delete_lease();
    let second = Candidate::new(as_client_go("second"), cluster.connect("second"));
    let second = start_candidate(&cluster, second.unwrap(), obedient);
    second.leads(1).await;
    pass(9_000).await;
    assert!(first.guard().is_leader() && second.guard().is_leader());
    pass(1_000).await;
    assert!(!first.guard().is_leader() && second.guard().is_leader());
}
