//! The shell of the holder: its machine, the object that it judges, and its request under way.

use std::sync::Arc;
use std::time::Duration;

use elector_api::Lease;
use elector_protocol::holder::{Effect, Holder, HolderConfig, LeaseEvent};
use elector_protocol::{Instant, ResourceVersion};
use elector_runtime::{RequestSlot, WatchEvent, Writer};

use crate::config::Config;
use crate::session::failures::{ServerPath, SessionFailures};
use crate::session::inputs::{lease_outcome, lease_snapshot, read_lease};
use crate::session::requests::{LeaseResponse, lease_request};

/// The machine that wins, keeps and ends terms, with its Lease.
pub(crate) struct HolderShell {
    pub(crate) machine: Holder,
    /// The newest revision of the Lease as an object, which a write carries over.
    object: Option<Lease>,
    pub(crate) request: RequestSlot<LeaseResponse>,
    /// When the Lease last changed, as far as this process knows.
    changed_at: Instant,
}

/// The least time that a request gets, even where the belief is nearly over.
const SHORTEST_REQUEST: Duration = Duration::from_millis(100);

// === impl HolderShell ===

impl HolderShell {
    pub(crate) fn new(config: &Config, now: Instant) -> Self {
        Self {
            machine: Holder::new(Arc::new(HolderConfig {
                identity: config.identity.clone(),
                timing: config.timing.clone(),
            })),
            object: None,
            request: RequestSlot::default(),
            changed_at: now,
        }
    }

    /// When the belief ends, `None` where there is none.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.machine.belief().map(|belief| belief.deadline)
    }

    /// Sends the request that an effect asks for. It takes no longer than the belief lasts.
    pub(crate) fn send(&mut self, effect: Effect, now: Instant, config: &Config, writer: &Writer) {
        let left = self
            .deadline()
            .map_or(Duration::MAX, |deadline| deadline.since(now));
        let timeout = left
            .max(SHORTEST_REQUEST)
            .min(config.timing.request_timeout);
        if let Effect::Write { kind, .. } = &effect {
            tracing::debug!(lease = %config.lease, %kind, "writing");
        }
        let object = self.object.as_ref();
        if let Some(request) = lease_request(effect, object, config, writer, timeout) {
            self.request.send(request);
        }
    }

    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        response: LeaseResponse,
        failures: &mut SessionFailures,
    ) {
        let path = ServerPath::LeaseRequests;
        match response {
            LeaseResponse::Read(response) => {
                failures.log_result(now, path, response.as_ref().err());
                if let Ok(Some(lease)) = &response {
                    log_fault(now, lease, failures);
                }
                self.machine.handle_read(now, read_lease(&response));
                self.keep(now, response.ok().flatten());
            }
            LeaseResponse::Wrote(outcome) => {
                failures.log_result(now, path, outcome.error());
                self.machine.handle_outcome(now, lease_outcome(&outcome));
                self.keep(now, outcome.done());
            }
        }
    }

    pub(crate) fn handle_event(
        &mut self,
        now: Instant,
        event: WatchEvent<Lease>,
        failures: &mut SessionFailures,
    ) {
        match event {
            WatchEvent::Applied(lease) => self.handle_seen(now, lease, failures),
            WatchEvent::Listed { version, items, .. } => match items.into_iter().next() {
                Some(lease) => self.handle_seen(now, lease, failures),
                None => self.handle_deleted(now, version),
            },
            WatchEvent::Deleted(lease) => match lease_snapshot(&lease) {
                Some(last) => self.handle_deleted(now, last.version),
                None => self.machine.request_read(),
            },
            WatchEvent::Rewound { .. } => self.machine.request_read(),
            WatchEvent::Failed(error) => {
                failures.log_result(now, ServerPath::LeaseWatch, Some(&error));
            }
            WatchEvent::Gap { .. } => {}
            WatchEvent::Synced => failures.log_result(now, ServerPath::LeaseWatch, None),
        }
    }

    /// The Lease need not change from now on until then: this process leads, or is about to end.
    pub(crate) fn expect_silence(&mut self, now: Instant) {
        self.changed_at = now;
    }

    /// Whether the Lease has not changed for so long, so that it has to be read: the watch may be dead, or its leader.
    /// Says when to look again too.
    pub(crate) fn check_silence(&mut self, now: Instant, silence: Duration) -> (bool, Instant) {
        let silent = self.changed_at.after(silence) <= now;
        if silent {
            self.changed_at = now;
            self.machine.request_read();
        }
        (silent, self.changed_at.after(silence))
    }

    fn handle_seen(&mut self, now: Instant, lease: Lease, failures: &mut SessionFailures) {
        log_fault(now, &lease, failures);
        match lease_snapshot(&lease) {
            Some(snapshot) => {
                self.machine.handle_event(now, LeaseEvent::Seen(snapshot));
                self.keep(now, Some(lease));
            }
            None => self.machine.request_read(),
        }
    }

    fn handle_deleted(&mut self, now: Instant, version: ResourceVersion) {
        self.machine.handle_event(now, LeaseEvent::Deleted(version));
        self.keep(now, None);
    }

    /// Keeps the object that belongs to what the machine knows.
    fn keep(&mut self, now: Instant, lease: Option<Lease>) {
        let known = self.machine.known().map(|known| known.version);
        let version = |lease: &Lease| lease.snapshot().ok().map(|snapshot| snapshot.version);
        if known.is_none() {
            self.object = None;
            return;
        }
        let Some(lease) = lease.filter(|lease| version(lease) == known) else {
            return;
        };
        if self.object.as_ref().and_then(version) != known {
            self.changed_at = now;
            self.object = Some(lease);
        }
    }
}

/// Logs a Lease that cannot be read, which is ignored.
fn log_fault(now: Instant, lease: &Lease, failures: &mut SessionFailures) {
    failures.log_fault(now, "the Lease", lease.snapshot().err().as_ref());
}
