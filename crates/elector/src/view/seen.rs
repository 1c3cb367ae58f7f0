//! What a watch, a reply or a read shows: an object, and what it says.

use std::sync::Arc;

use elector_api::{Lease, LeaseCandidate, Malformed};
use elector_protocol::{
    CandidateRecord, Identity, LeaseKey, LeaseSnapshot, Rejection, ResourceVersion,
};

use crate::view::limits::{CANDIDATE_BYTES, strategies};

/// The namespaces that one watch covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Area {
    /// All of them.
    Everywhere,
    /// This one.
    Namespace(Arc<str>),
}

/// A revision of a Lease: what it says, and the object that says it where that is worth keeping.
#[derive(Clone, Debug)]
pub(crate) struct LeaseSeen {
    pub(crate) key: LeaseKey,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) snapshot: Result<LeaseSnapshot, Malformed>,
    /// What a PUT carries over. `None` where it is large: it is read again when there is something to write.
    pub(crate) object: Option<Arc<Lease>>,
}

/// A revision of a LeaseCandidate, and the lease that it names.
#[derive(Clone, Debug)]
pub(crate) struct CandidateSeen {
    pub(crate) lease: LeaseKey,
    pub(crate) candidate: CandidateRecord,
}

/// How many bytes of a Lease are kept that no decision needs; an object with more is read when it is to be written.
const KEPT_BYTES: usize = 4096;

/// Whether an object is kept until its lease is written.
pub(super) fn is_kept(object: &Lease) -> bool {
    object.carried_bytes() <= KEPT_BYTES
}

// === impl Area ===

impl Area {
    /// As a watch names it.
    pub(crate) fn of(namespace: Option<Arc<str>>) -> Self {
        namespace.map_or(Self::Everywhere, Self::Namespace)
    }

    pub(super) fn covers(&self, namespace: &str) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Namespace(own) => own.as_ref() == namespace,
        }
    }
}

// === impl LeaseSeen ===

impl LeaseSeen {
    /// Reads an object, and keeps it if it is small.
    pub(crate) fn of(object: Lease) -> Self {
        let mut seen = Self::whole(object);
        seen.object = seen.object.filter(|object| is_kept(object));
        seen
    }

    /// Reads an object, and keeps it.
    pub(crate) fn whole(object: Lease) -> Self {
        let snapshot = object.snapshot();
        let version = object.metadata.resource_version.as_deref();
        Self {
            key: object.key(),
            version: version
                .and_then(|text| text.parse().ok())
                .map(ResourceVersion),
            snapshot,
            object: Some(Arc::new(object)),
        }
    }
}

// === impl CandidateSeen ===

impl CandidateSeen {
    /// Reads an object. One that lists more strategies than are kept cannot be elected.
    ///
    /// # Errors
    ///
    /// When it belongs to no election.
    pub(crate) fn of(object: &LeaseCandidate) -> Result<Self, Malformed> {
        let mut candidate = object.candidate()?;
        if candidate
            .spec
            .as_ref()
            .is_ok_and(|spec| strategies(spec) > CANDIDATE_BYTES)
        {
            let why = format!(
                "spec.preferredStrategies: Too long: may not be more than {CANDIDATE_BYTES} bytes"
            );
            candidate.spec = Err(Rejection::Malformed(why));
        }
        Ok(Self {
            lease: object.lease_key(),
            candidate,
        })
    }

    pub(super) fn name(&self) -> (Arc<str>, Identity) {
        (self.lease.namespace.clone(), self.candidate.name.clone())
    }
}
