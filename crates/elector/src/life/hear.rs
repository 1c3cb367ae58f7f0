//! What the watches tell, taken into the view.

use std::fmt;
use std::sync::Arc;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::{Identity, LeaseKey, ResourceVersion};
use elector_runtime::{RequestError, WatchEvent};
use tracing::debug;

use crate::builtin::{LOCK_NAME, LOCK_NAMESPACE};
use crate::config::{NODE_LEASE_NAMESPACE, SYSTEM_NAMESPACE};
use crate::life::Life;
use crate::view::{Area, CandidateSeen, LeaseSeen, Restored};

/// Where a candidate stands, read without judging the rest of it.
struct Place {
    namespace: Arc<str>,
    name: Identity,
    version: Option<ResourceVersion>,
}

// === impl Life ===

impl Life<'_> {
    /// Hears of leases.
    pub(super) fn hear_leases(&mut self, event: WatchEvent<Lease>) -> Result<(), Restored> {
        let now = self.clock.monotonic();
        match event {
            WatchEvent::Gap { namespace } => self.view.handle_lease_gap(&Area::of(namespace)),
            WatchEvent::Rewound { .. } => return Err(Restored),
            WatchEvent::Listed {
                namespace, items, ..
            } => {
                let items = items.into_iter().map(LeaseSeen::of);
                let ours = items
                    .filter(|seen| self.serves(&seen.key.namespace))
                    .collect();
                self.view.handle_leases(now, &Area::of(namespace), ours)?;
            }
            WatchEvent::Synced => self.recover("leases"),
            WatchEvent::Applied(lease) => {
                let seen = LeaseSeen::of(lease);
                if self.serves(&seen.key.namespace) {
                    self.view.handle_lease(now, seen);
                }
            }
            WatchEvent::Deleted(lease) => {
                let seen = LeaseSeen::of(lease);
                self.view.handle_lease_gone(now, &seen.key, seen.version);
            }
            WatchEvent::Failed(error) => self.mourn("leases", &error),
        }
        Ok(())
    }

    /// Hears of candidates.
    pub(super) fn hear_candidates(
        &mut self,
        event: WatchEvent<LeaseCandidate>,
    ) -> Result<(), Restored> {
        let now = self.clock.monotonic();
        match event {
            WatchEvent::Gap { namespace } => self.view.handle_candidate_gap(&Area::of(namespace)),
            WatchEvent::Rewound { .. } => return Err(Restored),
            WatchEvent::Listed {
                namespace, items, ..
            } => {
                let items: Vec<_> = items
                    .into_iter()
                    .filter_map(|item| self.admit(item))
                    .collect();
                self.view
                    .handle_candidates(now, &Area::of(namespace), items);
            }
            WatchEvent::Synced => {
                self.api_discovery.trust();
                self.recover("candidates");
            }
            WatchEvent::Applied(candidate) => {
                let place = Place::of(&candidate);
                match (self.admit(candidate), place) {
                    (Some(seen), _) => self.view.handle_candidate(now, seen),
                    // One that cannot be read any more stands nowhere.
                    (None, Some(place)) => self.bury(&place),
                    (None, None) => {}
                }
            }
            WatchEvent::Deleted(candidate) => {
                if let Some(place) = Place::of(&candidate) {
                    self.settle_complaint(&place.subject());
                    self.bury(&place);
                }
            }
            WatchEvent::Failed(error) => {
                self.api_discovery.suspect(&error);
                self.mourn("candidates", &error);
            }
        }
        Ok(())
    }

    /// Reads a candidate, if it is in scope and belongs to an election of ours.
    pub(super) fn admit(&mut self, candidate: LeaseCandidate) -> Option<CandidateSeen> {
        let place = Place::of(&candidate)?;
        if !self.serves(&place.namespace) {
            return None;
        }
        let key = candidate.lease_key();
        if (key.namespace.as_ref(), key.name.as_ref()) == (LOCK_NAMESPACE, LOCK_NAME) {
            let text = format!(
                "failed to admit LeaseCandidate {place}: {key} is the lock of the built-in controller"
            );
            self.complain(&place.subject(), &text);
            return None;
        }
        for note in candidate.notes() {
            debug!(candidate = %place, %note, "ignored an annotation");
        }
        match CandidateSeen::of(candidate) {
            Ok(seen) => {
                self.settle_complaint(&place.subject());
                Some(seen)
            }
            Err(fault) => {
                self.complain(
                    &place.subject(),
                    &format!("failed to read a LeaseCandidate: {fault}"),
                );
                None
            }
        }
    }

    /// Whether leases of that namespace are ours to touch.
    fn serves(&self, namespace: &str) -> bool {
        match namespace {
            NODE_LEASE_NAMESPACE => false,
            SYSTEM_NAMESPACE => self.config.serves_system(),
            _ => true,
        }
    }

    fn bury(&mut self, place: &Place) {
        self.view
            .handle_candidate_gone(&place.namespace, &place.name, place.version);
    }

    fn mourn(&mut self, watch: &str, error: &RequestError) {
        self.complain(watch, &format!("failed to {error}"));
    }

    fn recover(&mut self, watch: &str) {
        let text = format!("{watch} are watched again");
        self.failures
            .end(self.clock.monotonic(), watch, Some(&text));
    }
}

// === impl Place ===

impl Place {
    /// `None` where the object has no name, which no server serves.
    fn of(candidate: &LeaseCandidate) -> Option<Self> {
        let metadata = &candidate.metadata;
        let version = metadata.resource_version.as_deref();
        Some(Self {
            namespace: candidate.lease_key().namespace,
            name: metadata.name.as_deref().and_then(Identity::new)?,
            version: version
                .and_then(|text| text.parse().ok())
                .map(ResourceVersion),
        })
    }

    /// What complaints about it are filed under.
    fn subject(&self) -> String {
        format!("candidate {self}")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        LeaseKey::new(self.namespace.clone(), self.name.as_str()).fmt(f)
    }
}
