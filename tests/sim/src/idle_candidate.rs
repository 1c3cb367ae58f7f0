//! A client that may only write LeaseCandidates: the best of all by its version, it answers every ping, accepts no
//! grant, and comes back under another name (R23).

use std::time::Duration;

use elector_api::{CandidateApi, LeaseCandidate};
use elector_protocol::{Identity, LeaseKey};
use elector_runtime::Clock as _;
use kube::api::{Api, DeleteParams, PostParams};
use tokio::time::{Instant, sleep};

use crate::clock::SimClock;
use crate::tamper::edit;

/// A candidate that accepts nothing.
pub(crate) struct IdleCandidate {
    pub(crate) candidates: Api<LeaseCandidate>,
    pub(crate) api: CandidateApi,
    pub(crate) key: LeaseKey,
    pub(crate) clock: SimClock,
    /// The time for which it keeps a name.
    pub(crate) keeps: Duration,
}

/// The interval at which it looks for pings.
const PERIOD: Duration = Duration::from_millis(500);

/// The time before its end at which it deletes its object.
const END: Duration = Duration::from_secs(2);

// === impl IdleCandidate ===

impl IdleCandidate {
    pub(crate) async fn run(self, lasts: Duration) {
        let end = Instant::now() + lasts.saturating_sub(END);
        let mut number = 0;
        while Instant::now() < end {
            number += 1;
            let name = format!("idle-{}-{number}", self.key.name);
            let until = end.min(Instant::now() + self.keeps);
            self.register(&name).await;
            while Instant::now() < until {
                sleep(PERIOD).await;
                self.answer(&name).await;
            }
            // It may be gone.
            let _ = self
                .candidates
                .delete(&name, &DeleteParams::default())
                .await;
        }
    }

    async fn register(&self, name: &str) {
        let Some(identity) = Identity::new(name) else {
            return;
        };
        let mut object = LeaseCandidate::named(self.api, &self.key, &identity);
        object.spec.emulation_version = "0.0.1".to_owned();
        object.spec.binary_version = "0.0.1".to_owned();
        object.spec.renew_time = Some(self.clock.wall());
        let object = object.with_strategy("OldestEmulationVersion");
        // Where it is refused, it stays away until its next name.
        let _ = self
            .candidates
            .create(&PostParams::default(), &object)
            .await;
    }

    async fn answer(&self, name: &str) {
        edit(&self.candidates, name, |object| {
            let (pinged, renewed) = (object.spec.ping_time, object.spec.renew_time);
            object.spec.renew_time = pinged.max(Some(self.clock.wall()));
            pinged > renewed
        })
        .await;
    }
}
