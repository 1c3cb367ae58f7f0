//! The elector's side: objects to elections, steps and explanations.

mod checks;

use std::collections::BTreeMap;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::elector::{Effect, Election, NewsSource, PreferenceField, Settings};
use elector_protocol::{CandidateRecord, Identity, Instant, LeaseKey, ResourceVersion};

use crate::arbitrary::continuation;
use crate::arbitrary::script::{Notification, ScriptDocument, documents, duration};
use crate::arbitrary::time::wall;
use crate::arbitrary::wire;

/// Everything that one elector has seen.
struct ElectorDriver {
    elections: BTreeMap<LeaseKey, TrackedLease>,
    now: Instant,
    version: u64,
    settings: Settings,
}

/// One lease, and the objects behind it.
struct TrackedLease {
    election: Election,
    lease: Option<Lease>,
    candidates: BTreeMap<Identity, LeaseCandidate>,
}

/// Feeds a script to an elector.
///
/// Orders: `pass` (a duration), `apply` (the server carries out what the elector wants), `answer` (every candidate
/// answers what it was asked), `drops` (the server drops `spec.preferredHolder`).
///
/// # Panics
///
/// Where something that must hold does not.
pub fn drive_objects(script: &[u8]) {
    let mut driver = ElectorDriver {
        elections: BTreeMap::new(),
        now: Instant::from_epoch(std::time::Duration::from_secs(1_000)),
        version: 1_000,
        settings: Settings::default(),
    };
    for document in documents(script) {
        driver.handle_document(document);
        driver.check();
    }
    for tracked in driver.elections.values() {
        continuation::check(&tracked.election, driver.now, &driver.settings);
        tracked.explain(&driver.settings);
    }
}

// === impl ElectorDriver ===

impl ElectorDriver {
    fn handle_document(&mut self, document: ScriptDocument) {
        match document {
            ScriptDocument::Leases(Notification::Seen(lease, news)) => self.see_lease(lease, news),
            ScriptDocument::Leases(Notification::Deleted(lease)) => {
                let version = self.version_of(lease.metadata.resource_version.as_deref());
                let now = self.now;
                let tracked = self.tracked(lease.key());
                tracked
                    .election
                    .handle_lease_gone(now, version, NewsSource::Watch);
                if tracked.election.lease().is_none() {
                    tracked.lease = None;
                }
            }
            ScriptDocument::Leases(Notification::Listed(leases)) => self.list_leases(leases),
            ScriptDocument::Candidates(Notification::Seen(candidate, news)) => {
                self.see_candidate(candidate, news);
            }
            ScriptDocument::Candidates(Notification::Deleted(candidate)) => {
                let version = self.version_of(candidate.metadata.resource_version.as_deref());
                if let Some(name) = candidate.metadata.name.as_deref().and_then(Identity::new) {
                    self.tracked(candidate.lease_key())
                        .remove_candidate(&name, version);
                }
            }
            ScriptDocument::Candidates(Notification::Listed(candidates)) => {
                self.list_candidates(candidates);
            }
            ScriptDocument::Order(name, about) => match name.as_str() {
                "pass" => self.now = self.now.after(duration(&about)),
                "apply" => self.apply(),
                "answer" => self.ack(),
                "drops" => self.settings.preference_field = PreferenceField::Dropped,
                _ => {}
            },
            ScriptDocument::Other => {}
        }
    }

    /// Takes in a list: an object that it lacks is gone.
    fn list_leases(&mut self, leases: Vec<Lease>) {
        let listed: Vec<_> = leases.iter().map(Lease::key).collect();
        for (key, tracked) in &mut self.elections {
            if !listed.contains(key) {
                tracked
                    .election
                    .handle_lease_gone(self.now, None, NewsSource::List);
                tracked.lease = None;
            }
        }
        for lease in leases {
            self.see_lease(lease, NewsSource::List);
        }
    }

    fn list_candidates(&mut self, candidates: Vec<LeaseCandidate>) {
        let place =
            |candidate: &LeaseCandidate| (candidate.lease_key(), candidate.metadata.name.clone());
        let listed: Vec<_> = candidates.iter().map(place).collect();
        for (key, tracked) in &mut self.elections {
            let names: Vec<_> = tracked.candidates.keys().cloned().collect();
            for name in names {
                let place = (key.clone(), Some(name.as_str().to_owned()));
                if !listed.contains(&place) {
                    tracked.remove_candidate(&name, None);
                }
            }
        }
        for candidate in candidates {
            self.see_candidate(candidate, NewsSource::List);
        }
    }

    fn see_lease(&mut self, mut lease: Lease, news: NewsSource) {
        self.complete(&mut lease.metadata);
        wire::check_lease_messages(&lease);
        let now = self.now;
        let tracked = self.tracked(lease.key());
        match lease.snapshot() {
            Ok(snapshot) => {
                let version = snapshot.version;
                let before = tracked.election.lease().map(|known| known.version);
                tracked.election.handle_lease(now, snapshot, news);
                let after = tracked.election.lease().map(|known| known.version);
                if after == Some(version) && before != after {
                    tracked.lease = Some(lease);
                }
            }
            // As the elector's view does: nothing is decided until the next readable revision.
            Err(_) => {
                let mut election = Election::unknown();
                for candidate in tracked.election.candidates() {
                    election.handle_candidate(now, candidate.clone(), NewsSource::List);
                }
                tracked.election = election;
                tracked.lease = None;
            }
        }
    }

    fn see_candidate(&mut self, mut object: LeaseCandidate, news: NewsSource) {
        self.complete(&mut object.metadata);
        wire::check_candidate_messages(&object);
        let now = self.now;
        if let Ok(candidate) = object.candidate() {
            let tracked = self.tracked(object.lease_key());
            tracked.handle_candidate(now, &candidate, object, news);
        }
    }

    /// Gives an object what only a server assigns, as long as it does not say it itself.
    fn complete(
        &mut self,
        metadata: &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    ) {
        if metadata.resource_version.is_none() {
            metadata.resource_version = Some(self.version.to_string());
            self.version += 1;
        }
        let name = metadata.name.clone().unwrap_or_default();
        metadata.uid.get_or_insert_with(|| format!("uid of {name}"));
        metadata.namespace.get_or_insert_with(|| "ns".to_owned());
    }

    fn version_of(&mut self, text: Option<&str>) -> Option<ResourceVersion> {
        let Some(text) = text else {
            self.version += 1;
            return Some(ResourceVersion(self.version - 1));
        };
        text.parse().ok().map(ResourceVersion)
    }

    fn tracked(&mut self, key: LeaseKey) -> &mut TrackedLease {
        let now = self.now;
        self.elections.entry(key).or_insert_with(|| TrackedLease {
            election: Election::absent(now),
            lease: None,
            candidates: BTreeMap::new(),
        })
    }

    /// The server carries out what every election wants, and its replies arrive.
    fn apply(&mut self) {
        let decided: Vec<_> = self
            .elections
            .iter()
            .map(|(key, tracked)| {
                let decision = tracked.election.step(self.now, wall(), &self.settings);
                (key.clone(), decision.effects)
            })
            .collect();
        for (key, effect) in decided
            .into_iter()
            .flat_map(|(key, effects)| effects.into_iter().map(move |effect| (key.clone(), effect)))
        {
            let Some(tracked) = self.elections.get(&key) else {
                continue;
            };
            match effect {
                Effect::Create(record) => {
                    let born = Lease::born(
                        &key,
                        record.strategy.as_ref(),
                        elector_api::Carrier::Unknown,
                    );
                    self.see_lease(born, NewsSource::Watch);
                }
                Effect::Write(write) => {
                    let Some(base) = &tracked.lease else {
                        continue;
                    };
                    let mut next = base.with_record(&write.record, elector_api::Carrier::Unknown);
                    next.metadata.resource_version =
                        Some(write.version.0.saturating_add(1).to_string());
                    self.see_lease(next, NewsSource::OwnWrite);
                }
                Effect::Ping {
                    name,
                    ping,
                    version,
                    ..
                } => {
                    let Some(base) = tracked.candidates.get(&name) else {
                        continue;
                    };
                    let mut next = base.with_ping(ping);
                    next.metadata.resource_version = Some(version.0.saturating_add(1).to_string());
                    self.see_candidate(next, NewsSource::OwnWrite);
                }
                Effect::Collect { name, .. } => self.tracked(key).remove_candidate(&name, None),
            }
        }
    }

    /// Every candidate that was pinged acks.
    fn ack(&mut self) {
        let asked: Vec<_> = self
            .elections
            .values()
            .flat_map(|tracked| tracked.candidates.values())
            .filter(|object| object.spec.ping_time > object.spec.renew_time)
            .cloned()
            .collect();
        for object in asked {
            let Some(ping) = object.spec.ping_time else {
                continue;
            };
            let Ok(candidate) = object.candidate() else {
                continue;
            };
            let mut next = object.with_renewal(ping);
            next.metadata.resource_version =
                Some(candidate.version.0.saturating_add(1).to_string());
            self.see_candidate(next, NewsSource::Watch);
        }
    }
}

// === impl TrackedLease ===

impl TrackedLease {
    fn handle_candidate(
        &mut self,
        now: Instant,
        candidate: &CandidateRecord,
        object: LeaseCandidate,
        news: NewsSource,
    ) {
        let name = candidate.name.clone();
        let known = |tracked: &Self| {
            tracked
                .election
                .candidates()
                .find(|known| known.name == name)
                .cloned()
        };
        let before = known(self);
        self.election.handle_candidate(now, candidate.clone(), news);
        let after = known(self);
        if after.as_ref() != Some(candidate) || before == after {
            return;
        }
        self.candidates.insert(name, object);
    }

    fn remove_candidate(&mut self, name: &Identity, version: Option<ResourceVersion>) {
        self.election.handle_candidate_gone(name, version);
        if !self.election.candidates().any(|known| &known.name == name) {
            self.candidates.remove(name);
        }
    }
}
