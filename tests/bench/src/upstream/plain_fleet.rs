//! Thousands of leases for which plain candidates race, each by the requests of client-go's `leaderelection`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::scale::{Fleet, RunSize, lease_key};

/// The pause between two tries, of which one that does not lead waits up to 2.2 times as long: client-go's `JitterFactor`.
const RETRY: Duration = Duration::from_secs(2);
const JITTER: f64 = 1.2;

/// A candidate, and what it has observed.
struct PlainCandidate {
    api: Api<Lease>,
    lease: String,
    identity: String,
    duration: Duration,
    /// The last revision of the Lease, and when it was new.
    observed: Option<(Lease, Instant)>,
}

/// Has all candidates try at once, through as many connections as others have, and tells how many leases came to be led, and
/// the time until the last of these was.
pub(super) async fn elect(client: &Client, size: &RunSize, patience: Duration) -> (u32, Duration) {
    let room = Arc::new(Semaphore::new(size.connections as usize));
    let (led, mut leaders) = mpsc::channel(size.all_candidates() as usize);
    let mut candidates = JoinSet::new();
    let began = Instant::now();
    for number in 0..size.all_candidates() {
        let lease = number / size.candidates;
        let key = lease_key(Fleet::PREFIX, size, lease);
        let mut candidate = PlainCandidate {
            api: Api::namespaced(client.clone(), &key.namespace),
            lease: key.name.to_string(),
            identity: format!("{}-{}", key.name, number % size.candidates),
            duration: size.timing.lease_duration,
            observed: None,
        };
        let (room, led) = (Arc::clone(&room), led.clone());
        candidates.spawn(async move {
            let mut spread = f64::from(number);
            while let Ok(turn) = room.acquire().await {
                let leads = candidate.acquire_or_renew().await.unwrap_or_default();
                drop(turn);
                if leads {
                    // A channel that is full has this lease in it, or ends.
                    let _ = led.try_send(lease);
                    sleep(RETRY).await;
                } else {
                    // Multiples of the golden ratio lie as evenly as chance would have them.
                    spread = (spread * 1.618_034).fract();
                    sleep(RETRY.mul_f64(1.0 + JITTER * spread)).await;
                }
            }
        });
    }
    let (mut all, mut last) = (BTreeSet::new(), Duration::ZERO);
    while all.len() < size.leases as usize
        && let Ok(Some(lease)) = timeout_at(began + patience, leaders.recv()).await
    {
        if all.insert(lease) {
            last = began.elapsed();
        }
    }
    (all.len() as u32, last)
}

// === impl PlainCandidate ===

impl PlainCandidate {
    /// The steps of client-go's `tryAcquireOrRenew`: true if it leads.
    async fn acquire_or_renew(&mut self) -> kube::Result<bool> {
        if let Some((held, _)) = self
            .observed
            .take_if(|(lease, _)| self.identity == holder(lease))
            && self.write(held).await.is_ok()
        {
            return Ok(true);
        }
        let Some(found) = self.api.get_opt(&self.lease).await? else {
            let name = Some(self.lease.clone());
            let metadata = ObjectMeta {
                name,
                ..ObjectMeta::default()
            };
            let born = Lease {
                metadata,
                spec: None,
            };
            return self.write(born).await.map(|()| true);
        };
        let version = |lease: &Lease| lease.metadata.resource_version.clone();
        let known = self
            .observed
            .take_if(|(lease, _)| version(lease) == version(&found));
        let (_, since) = self
            .observed
            .insert(known.unwrap_or_else(|| (found.clone(), Instant::now())));
        if since.elapsed() < self.duration && !["", &self.identity].contains(&holder(&found)) {
            return Ok(false);
        }
        self.write(found).await.map(|()| true)
    }

    /// Creates the Lease, or updates that revision of it, with itself for the holder.
    async fn write(&mut self, mut lease: Lease) -> kube::Result<()> {
        let now = MicroTime(Timestamp::now());
        let renews = holder(&lease) == self.identity;
        let spec = lease.spec.take().unwrap_or_default();
        let acquired = spec.acquire_time.filter(|_| renews);
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.duration.as_secs()).ok(),
            acquire_time: acquired.or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(
                spec.lease_transitions
                    .map_or(0, |it| it + i32::from(!renews)),
            ),
            ..spec
        });
        let parameters = PostParams::default();
        let written = match lease.metadata.resource_version {
            Some(_) => self.api.replace(&self.lease, &parameters, &lease).await?,
            None => self.api.create(&parameters, &lease).await?,
        };
        self.observed = Some((written, Instant::now()));
        Ok(())
    }
}

fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}
