//! Lists in several pages: until the last one is there, and all are of one revision, nothing is known.

use elector::Config;
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_testing::{CANDIDATES, CapturedLog, EmbeddedCluster, millis, pass, seconds};

use crate::RunningElector;

/// More candidates than a first page has, each for a lease of its own.
const MANY: usize = 300;

/// The second page's delay.
const LATE: u64 = 10;

/// A cluster with many candidates, whose second page of them is late once.
fn crowded() -> EmbeddedCluster {
    let cluster = EmbeddedCluster::new();
    for index in 0..MANY {
        let name = format!("c{index:03}");
        cluster.register("ns", &name, &format!("l{index:03}"), "1.0.0");
    }
    let list = |fault| {
        let rule = Rule::new(fault).verb(RequestVerb::List);
        rule.resource(CANDIDATES).times(1)
    };
    // The first page comes as it is.
    cluster.inject(list(Fault::Delay(millis(1))));
    cluster.inject(list(Fault::Delay(seconds(LATE))));
    cluster
}

/// An elector that creates the Lease of a candidate as soon as it knows of one.
fn prompt() -> Config {
    let mut config = Config::default();
    config.timing.absent_lease_grace = Some(seconds(0));
    config
}

fn created(cluster: &EmbeddedCluster) -> usize {
    (0..MANY)
        .filter(|index| {
            cluster
                .lease("ns", &format!("l{index:03}"))
                .object()
                .is_some()
        })
        .count()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_decided_before_the_last_page() {
    let cluster = crowded();
    let elector = RunningElector::start(&cluster, prompt());
    pass(seconds(LATE - 1)).await;
    assert_eq!(cluster.requests_with(&["limit=", CANDIDATES]).len(), 2);
    assert_eq!((cluster.writes().len(), elector.lives()), (0, 0));
    pass(seconds(20)).await;
    assert_eq!((created(&cluster), elector.lives()), (MANY, 1));
    assert_eq!(cluster.requests_with(&["limit=", CANDIDATES]).len(), 2);
}

/// Pages of two revisions would not say what is missing: one candidate goes and another one comes after the first page,
/// and the history in between is forgotten.
#[tokio::test(start_paused = true)]
async fn a_list_whose_revision_is_forgotten_begins_again() {
    let cluster = crowded();
    let log = CapturedLog::capture();
    let elector = RunningElector::start(&cluster, prompt());
    pass(seconds(LATE - 1)).await;
    cluster.delete(CANDIDATES, "ns", "c000");
    cluster.register("ns", "a", "late", "1.0.0");
    cluster.compact();
    pass(seconds(20)).await;
    assert_eq!((created(&cluster), elector.lives()), (MANY - 1, 1));
    assert!(cluster.lease("ns", "l000").object().is_none());
    assert!(cluster.lease("ns", "late").object().is_some());
    let lists = cluster.requests_with(&["limit=", CANDIDATES]);
    let continued = lists.iter().map(|list| list.what.contains("continue="));
    assert_eq!(
        continued.collect::<Vec<_>>(),
        [false, true, false, true],
        "{lists:?}"
    );
    assert_eq!(log.lines("410 Expired").len(), 1);
}

/// (R4) The first page was of a store that is no more.
#[tokio::test(start_paused = true)]
async fn a_list_during_which_the_store_is_restored_begins_again() {
    let cluster = crowded();
    let backup = cluster.backup();
    for index in 0..9 {
        cluster.register("ns", &format!("a{index}"), &format!("lost{index}"), "1.0.0");
    }
    let elector = RunningElector::start(&cluster, prompt());
    pass(seconds(LATE - 1)).await;
    cluster.restore(&backup);
    pass(seconds(60)).await;
    assert_eq!((created(&cluster), elector.lives()), (MANY, 1));
    for index in 0..9 {
        assert!(
            cluster
                .lease("ns", &format!("lost{index}"))
                .object()
                .is_none()
        );
    }
}
