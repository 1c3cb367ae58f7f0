//! The cause of the end of a term: the outcome, the log and the figures name the same one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector_apiserver::Backup;
use elector_candidate::{Config, Leadership, Metrics, TermEnd};
use elector_protocol::{Identity, LeaseRecord, Timestamp};
use elector_testing::{CapturedLog, OneLease, Scrape};
use serde_json::json;

use crate::{RunOutcome, RunningCandidate, V1BETA1, config, obedient, pass, start_changed};

/// A candidate that has led since a moment, to whose term something is done, and what is said of that.
struct WatchedTerm {
    cluster: OneLease,
    /// The store as it was before.
    backup: Backup,
    running: RunningCandidate,
    metrics: Metrics,
    log: CapturedLog,
}

// === impl WatchedTerm ===

impl WatchedTerm {
    async fn begin<F>(
        change: impl FnOnce(Config) -> Config,
        work: impl FnMut(Leadership) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = crate::Result> + Send + 'static,
    {
        let log = CapturedLog::capture();
        let cluster = OneLease::new(&[V1BETA1]);
        let backup = cluster.backup();
        cluster.make_revisions(100);
        let metrics = Metrics::default();
        let config = change(config().one_term(true));
        let running = start_changed(&cluster, config, work, |candidate| {
            candidate.with_metrics(metrics.clone())
        });
        running.is_granted(&cluster).await;
        Self {
            cluster,
            backup,
            running,
            metrics,
            log,
        }
    }

    /// The end by which all of them agree that the term ended.
    async fn end(self) -> TermEnd {
        let end = match self.running.outcome().await {
            RunOutcome::ShutDown(end) => end.unwrap(),
            RunOutcome::TermEnded(end) => end,
            other => panic!("the work did not end by itself: {other:?}"),
        };
        let cause = end.cause();
        let told = self.log.lines("stopped leading");
        let [told] = &*told else {
            panic!("{cause}: {told:?}");
        };
        let named = format!("end={end} cause=\"{cause}\"");
        assert!(told.ends_with(&named), "{told}");
        let figures = Scrape::parse(&self.metrics.encode());
        let ended = figures.by("elector_candidate_terms_ended_total", "cause");
        let ended: Vec<_> = ended
            .into_iter()
            .filter(|(_, count)| *count > 0.0)
            .collect();
        assert_eq!(ended, [(cause.to_owned(), 1.0)]);
        if let TermEnd::Lost(loss) = &end {
            let told = self.log.lines("stopping the work");
            let named = format!("reason={loss} cause=\"{cause}\"");
            assert!(told.iter().any(|line| line.ends_with(&named)), "{told:?}");
        }
        end
    }
}

/// A change to a term that has begun.
type Deed = fn(&mut WatchedTerm);

#[tokio::test(start_paused = true)]
async fn outcome_log_and_figures_name_the_same_cause() {
    let deeds: [(&str, &str, Deed); 10] = [
        ("released", "released", |term| term.running.shut_down()),
        ("handed_over", "handed over to better", |term| {
            term.cluster.prefer("better");
        }),
        (
            "deadline_passed",
            "lost: no renewal succeeded within the renew deadline",
            |term| term.cluster.faults().partition(true),
        ),
        ("taken", "lost: other holds the lease", |term| {
            term.cluster.grant("other");
        }),
        (
            "removed",
            "lost: another process removed the holder from the lease",
            |term| term.cluster.overwrite_lease("holderIdentity", json!("")),
        ),
        ("deleted", "lost: the lease was deleted", |term| {
            term.cluster.delete_lease();
        }),
        (
            "new_term",
            "lost: a new term was granted to this identity",
            |term| term.cluster.grant("me"),
        ),
        (
            "name_shared",
            "lost: another process renews the lease under this identity",
            |term| {
                let renewed = |record: &LeaseRecord| LeaseRecord {
                    renew_time: record.renew_time.and_then(Timestamp::next),
                    ..record.clone()
                };
                term.cluster.write(renewed);
            },
        ),
        (
            "store_restored",
            "lost: the store was restored from an older state",
            |term| {
                term.cluster.restore_all_but_the_record(&term.backup);
                term.cluster.faults().break_watches();
            },
        ),
        (
            "unconfirmed",
            "given up, unconfirmed by the server",
            |term| {
                term.cluster.faults().partition(true);
                term.running.shut_down();
            },
        ),
    ];
    for (cause, text, deed) in deeds {
        let mut term = WatchedTerm::begin(|config| config, obedient).await;
        pass(4_000).await;
        deed(&mut term);
        let end = term.end().await;
        assert_eq!((end.cause(), &*end.to_string()), (cause, text));
    }
}

/// On this thread, which is the one whose log is looked at, and in real time: a thread that is blocked stops virtual time.
#[tokio::test]
async fn work_that_still_runs_is_the_cause_that_is_named() {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let block = move |leadership: Leadership| {
        let blocked = Arc::clone(&blocked);
        async move {
            let block = move || {
                let _ = blocked.lock().unwrap().recv();
            };
            let _ = leadership.spawn_blocking(block).await;
            Ok(0)
        }
    };
    let grace = |config: Config| config.grace(Duration::from_millis(10));
    let mut term = WatchedTerm::begin(grace, block).await;
    term.running.shut_down();
    let cluster = term.cluster.clone();
    assert_eq!(term.end().await, TermEnd::WorkStillRuns);
    assert_eq!(cluster.record().holder, Identity::new("me"));
    drop(release);
}
