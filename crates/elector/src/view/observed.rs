//! The news of a watch, a reply or a read: an object, and its content.

use std::fmt;
use std::sync::Arc;

use elector_api::{Lease, LeaseCandidate, Malformed, PackedLease};
use elector_protocol::{
    CandidateRecord, Identity, LeaseKey, LeaseSnapshot, Rejection, ResourceVersion,
};
use tracing::{Level, debug, enabled};

use crate::view::limits::{CANDIDATE_BYTES, strategies};

/// A revision of a Lease: what it says, and the object that says it where that is worth keeping.
#[derive(Clone, Debug)]
pub(crate) struct LeaseSeen {
    pub(crate) key: LeaseKey,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) snapshot: Result<LeaseSnapshot, Malformed>,
    /// The group that it is a part of.
    pub(crate) group: Option<Arc<str>>,
    /// The object for a PUT. `None` where it is large: it is read again when there is something to write.
    pub(crate) object: Option<PackedLease>,
}

/// Which revision of which Lease an object is.
#[derive(Clone, Debug)]
pub(crate) struct LeaseVersion {
    pub(crate) key: LeaseKey,
    pub(crate) version: Option<ResourceVersion>,
}

/// A revision of a LeaseCandidate, and the lease that it names.
#[derive(Clone, Debug)]
pub(crate) struct CandidateSeen {
    pub(crate) lease: LeaseKey,
    pub(crate) candidate: CandidateRecord,
}

/// All that is needed of the object of a LeaseCandidate, whatever else it holds.
#[derive(Clone, Debug)]
pub(crate) enum ParsedCandidate {
    /// It belongs to an election.
    Seen(CandidateSeen),
    /// It belongs to none, for this reason.
    Malformed(ObjectName, String),
}

/// The name of a candidate's object, read without judging the rest of it.
#[derive(Clone, Debug)]
pub(crate) struct ObjectName {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Identity,
    pub(crate) version: Option<ResourceVersion>,
}

/// The limit of bytes kept of a Lease, packed, for a write; one with more is read when it is to be written.
const KEPT_BYTES: usize = 4096;

/// True if an object is kept until its lease is written.
pub(super) fn is_kept(object: &PackedLease) -> bool {
    object.bytes() <= KEPT_BYTES
}

/// True if a watch of this namespace, or of all where it is `None`, covers that one.
pub(super) fn covers(watched: &Option<Arc<str>>, namespace: &str) -> bool {
    watched
        .as_deref()
        .is_none_or(|watched| watched == namespace)
}

// === impl LeaseSeen ===

impl LeaseSeen {
    /// Reads an object, and keeps it if it is small.
    pub(crate) fn of(object: Lease) -> Self {
        Self::kept(LeaseVersion::of(&object), object)
    }

    /// The same, of an object that is this revision.
    pub(crate) fn kept(revision: LeaseVersion, object: Lease) -> Self {
        let mut seen = Self::read(revision, object);
        seen.object = seen.object.filter(is_kept);
        seen
    }

    /// Reads an object, and keeps it.
    pub(crate) fn whole(object: Lease) -> Self {
        Self::read(LeaseVersion::of(&object), object)
    }

    fn read(LeaseVersion { key, version }: LeaseVersion, object: Lease) -> Self {
        let snapshot = object.snapshot();
        let group = object.group().ok().flatten().map(Arc::from);
        Self {
            group,
            key,
            version,
            object: snapshot
                .as_ref()
                .ok()
                .and_then(|snapshot| PackedLease::new(object, snapshot)),
            snapshot,
        }
    }
}

// === impl LeaseVersion ===

impl LeaseVersion {
    pub(crate) fn of(object: &Lease) -> Self {
        let version = object.metadata.resource_version.as_deref();
        Self {
            key: object.key(),
            version: version
                .and_then(|text| text.parse().ok())
                .map(ResourceVersion),
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
            .offer()
            .is_ok_and(|spec| strategies(spec) > CANDIDATE_BYTES)
        {
            let why = format!(
                "spec.preferredStrategies: Too long: may not be more than {CANDIDATE_BYTES} bytes"
            );
            candidate.spec = Arc::new(Err(Rejection::Malformed(why)));
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

// === impl ParsedCandidate ===

impl ParsedCandidate {
    /// Reads an object. `None` where it has no name, which no server serves.
    pub(crate) fn of(candidate: &LeaseCandidate) -> Option<Self> {
        if enabled!(Level::DEBUG) {
            let object = ObjectName::of(candidate)?;
            for note in candidate.notes() {
                debug!(candidate = %object, %note, "ignored an annotation");
            }
        }
        Some(match CandidateSeen::of(candidate) {
            Ok(seen) => Self::Seen(seen),
            Err(fault) => Self::Malformed(ObjectName::of(candidate)?, fault.to_string()),
        })
    }

    /// The name of the object.
    pub(crate) fn object(&self) -> ObjectName {
        match self {
            Self::Seen(seen) => ObjectName {
                namespace: seen.lease.namespace.clone(),
                name: seen.candidate.name.clone(),
                version: Some(seen.candidate.version),
            },
            Self::Malformed(object, _) => object.clone(),
        }
    }
}

// === impl ObjectName ===

impl ObjectName {
    /// `None` where the object has no name, which no server serves.
    pub(crate) fn of(candidate: &LeaseCandidate) -> Option<Self> {
        let metadata = &candidate.metadata;
        let version = metadata.resource_version.as_deref();
        Some(Self {
            namespace: metadata.namespace.as_deref().unwrap_or_default().into(),
            name: metadata.name.as_deref().and_then(Identity::new)?,
            version: version
                .and_then(|text| text.parse().ok())
                .map(ResourceVersion),
        })
    }

    /// The subject of its failures.
    pub(crate) fn subject(&self) -> String {
        format!("candidate {self}")
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        LeaseKey::new(self.namespace.clone(), self.name.as_str()).fmt(f)
    }
}
