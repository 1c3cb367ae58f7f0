//! Writes that fail stay queued with a pause until the desired state is reached (decision 2), and no other lease waits.

use elector_apiserver::{RequestVerb, Rule};
use elector_testing::{CANDIDATES, CapturedLog, LEASES, TestCluster, millis, pass, seconds};
use serde_json::json;

use crate::{RunningElector, refuse};

fn creations(rule: Rule) -> Rule {
    rule.verb(RequestVerb::Create)
}

fn pings(rule: Rule) -> Rule {
    rule.resource(CANDIDATES).named("a")
}

fn grants(rule: Rule) -> Rule {
    rule.verb(RequestVerb::Update).resource(LEASES).named("l")
}

/// The waits are 5 ms, doubling to 5 s; a conflict of a grant is waited for by the watch, for two seconds.
#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_is_repeated_until_it_succeeds() {
    let (creation, ping, grant) = (["POST", "leases"], ["PATCH", "candidates/a"], ["PUT", "/l"]);
    for (write, of, codes) in [
        (
            creation,
            creations as fn(Rule) -> Rule,
            &[403_u16, 429, 500] as &[_],
        ),
        (ping, pings, &[403, 409, 500]),
        (grant, grants, &[403, 404, 409, 422, 429, 500]),
    ] {
        for code in codes {
            let (log, cluster) = (CapturedLog::capture(), TestCluster::new());
            let (cluster, _elector) = RunningElector::settled(cluster).await;
            let released = || {
                let spec = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
                cluster.put_lease("default", "l", spec);
            };
            let mut _candidate = None;
            if write == ping {
                // It is not fresh any more, so it has to be pinged before it is granted the lease again.
                _candidate = Some(cluster.candidate("default", "a", "l", "1.0.0"));
                pass(seconds(10)).await;
            }
            cluster.inject(of(refuse(*code)));
            if write != creation {
                released();
            }
            _candidate.get_or_insert_with(|| cluster.candidate("default", "a", "l", "1.0.0"));
            let start = cluster.now();
            pass(seconds(60)).await;
            cluster.heal();
            let tries = cluster.requests_since(start, &write).len();
            assert!((5..=30).contains(&tries), "{write:?} {code}: {tries}");
            // The watch brings what came before a write.
            let failures = usize::from(![404, 409].contains(code));
            assert_eq!(log.lines("WARN").len(), failures, "{write:?} {code}");
            let late = cluster.held_by("default", "l", "a").await;
            assert!(late < millis(7_500), "{write:?} {code}: {late:?}");
            if write == grant && *code == 500 {
                // The pauses begin anew after a success.
                cluster.inject(of(refuse(*code)));
                let start = cluster.now();
                released();
                pass(seconds(2)).await;
                let tries = cluster.requests_since(start, &write).len();
                assert!(tries >= 5, "{tries}");
            }
        }
    }
}
