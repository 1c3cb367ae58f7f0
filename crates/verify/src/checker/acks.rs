//! When each candidate for a Lease last gave a sign of life.

use std::collections::BTreeMap;

use elector_api::LeaseCandidate;
use elector_protocol::{Identity, ResourceVersion, Timestamp};

/// The acks of the candidates for one Lease.
#[derive(Debug)]
pub(super) struct Acks {
    by_name: BTreeMap<String, Ack>,
    /// True where the history begins before there were candidates, so that a process without an ack is none.
    from_the_beginning: bool,
}

/// A candidate's last write about itself, and when that was first seen.
#[derive(Debug)]
struct Ack {
    uid: Option<String>,
    renewed: Option<Timestamp>,
    version: ResourceVersion,
    at: Timestamp,
}

// === impl Acks ===

impl Acks {
    pub(super) fn new(from_the_beginning: bool) -> Self {
        Self {
            by_name: BTreeMap::new(),
            from_the_beginning,
        }
    }

    /// A candidate changed; it is an ack if it says another time than before.
    pub(super) fn record(
        &mut self,
        name: &str,
        candidate: &LeaseCandidate,
        version: ResourceVersion,
        at: Timestamp,
    ) {
        let (uid, renewed) = (candidate.metadata.uid.clone(), candidate.spec.renew_time);
        match self.by_name.get(name) {
            Some(known) if known.uid == uid && known.renewed == renewed => {}
            _ => {
                let ack = Ack {
                    uid,
                    renewed,
                    version,
                    at,
                };
                self.by_name.insert(name.to_owned(), ack);
            }
        }
    }

    /// When this candidate last gave a sign of life, and with which version.
    pub(super) fn newest(&self, name: &Identity) -> Option<(ResourceVersion, Timestamp)> {
        let ack = self.by_name.get(name.as_str())?;
        Some((ack.version, ack.at))
    }

    /// True where this process is known to be no candidate.
    pub(super) fn is_no_candidate(&self, name: &Identity) -> bool {
        self.are_complete() && !self.by_name.contains_key(name.as_str())
    }

    /// True where candidates were recorded, so that a process that is not among them is none.
    pub(super) fn are_complete(&self) -> bool {
        !self.by_name.is_empty() || self.from_the_beginning
    }
}
