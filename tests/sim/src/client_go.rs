//! A candidate as client-go's coordinated leader election is one, in a few lines: it registers, answers pings, renews the
//! grants of others, lets a lease run out whose preferred holder is another, and believes by when its renewals end.

use std::time::Duration;

use elector_api::LeaseCandidate;
use elector_protocol::{Identity, Instant as Reading, LeaseRecord, ResourceVersion, Token};
use elector_runtime::Clock as _;
use kube::api::PostParams;
use tokio::time::{Instant, sleep};

use crate::foreign::{DURATION, ForeignProcess, PERIOD};
use crate::guards::UnguardedTerm;
use crate::history::version;
use crate::plan::PlannedStrategy;
use crate::tamper::useless_candidate;

/// The time for which it tries to renew before it gives up: client-go's default.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// One incarnation of it.
struct ClientGoCandidate {
    identity: Identity,
    /// The record that was seen last, and since when by its monotonic clock.
    seen: Option<(LeaseRecord, Reading)>,
    /// Its term, once it has written.
    term: Option<UnguardedTerm>,
}

// === impl ForeignProcess ===

impl ForeignProcess {
    /// Takes part for this time. An incarnation that loses the lease ends, and comes back under another name, as a process
    /// does that is started again.
    pub(crate) async fn run_client_go(
        self,
        strategy: PlannedStrategy,
        lasts: Duration,
        releases: bool,
    ) {
        let end = Instant::now() + lasts;
        let mut number = 0;
        while Instant::now() < end {
            number += 1;
            let name = format!("client-go-{}-{number}", self.key.name);
            let Some(identity) = self.register(&name, strategy).await else {
                sleep(PERIOD).await;
                continue;
            };
            let mut candidate = ClientGoCandidate {
                identity,
                seen: None,
                term: None,
            };
            while Instant::now() < end && !self.is_over(&candidate) {
                self.answer(&name).await;
                self.renew(&mut candidate).await;
                sleep(PERIOD).await;
            }
            self.context.state().guards.end_unguarded(&self.key.name);
            if releases {
                self.release(&candidate.identity).await;
            }
        }
    }

    async fn register(&self, name: &str, strategy: PlannedStrategy) -> Option<Identity> {
        let renewed = Some(self.clock.wall());
        let object = useless_candidate(self.api, &self.key, name, renewed, strategy);
        let params = PostParams::default();
        let created: Option<LeaseCandidate> = self.candidates.create(&params, &object).await.ok();
        Identity::new(created?.metadata.name?)
    }

    /// True once the renewals of a term have failed for too long.
    fn is_over(&self, candidate: &ClientGoCandidate) -> bool {
        let now = self.context.log().now();
        candidate
            .term
            .as_ref()
            .is_some_and(|term| term.until <= now)
    }

    /// `tryCoordinatedRenew`: who is named renews, unless the record has run out or another holder is preferred.
    async fn renew(&self, candidate: &mut ClientGoCandidate) {
        let Ok(Some(mut lease)) = self.leases.get_opt(&self.key.name).await else {
            return;
        };
        let Ok(record) = lease.record() else {
            return;
        };
        let now = self.clock.monotonic();
        let since = match &candidate.seen {
            Some((last, since)) if *last == record => *since,
            _ => now,
        };
        let over = now.since(since) > record.duration().unwrap_or(Duration::ZERO);
        let mine = record.holder.as_ref() == Some(&candidate.identity);
        let preferred = record.preferred_holder.is_some();
        candidate.seen = Some((record, since));
        if over || !mine || preferred {
            return;
        }
        lease.spec.lease_duration_seconds = Some(DURATION);
        lease.spec.renew_time = Some(self.clock.wall());
        let Some(written) = self.write(&lease).await else {
            return;
        };
        candidate.seen = written.record().ok().map(|it| (it, self.clock.monotonic()));
        let version = version(written.metadata.resource_version.as_deref());
        let term = candidate.term.get_or_insert_with(|| UnguardedTerm {
            name: candidate.identity.to_string(),
            token: Token(ResourceVersion(version)),
            until: Duration::ZERO,
        });
        // The next try begins after a period, and ends by its deadline.
        term.until = self.context.log().now() + self.clock.real(PERIOD + RENEW_DEADLINE);
        let believed = term.clone();
        let lease = &self.key.name;
        self.context.state().guards.believe(lease, believed);
        self.context.check_now();
    }
}
