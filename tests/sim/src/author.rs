//! The clients of a run, and the revisions of their LeaseCandidates.

use std::time::Duration;

use elector_api::LeaseCandidate;
use elector_protocol::Identity;

use crate::plan::PlannedMode;

/// The role of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// An elector of ours, by the rate of its clock.
    Elector { rate: u64 },
    /// A candidate of ours, by its lease, the rate of its clock, and how it comes by its terms.
    Candidate {
        lease: usize,
        /// True if it is a member of a group, and has a name of its own for each lease.
        member: bool,
        rate: u64,
        mode: PlannedMode,
    },
    /// A client that knows nothing of candidates.
    Plain,
    /// A candidate as client-go's coordinated leader election is one. It writes no Lease of another holder.
    ClientGo,
    /// An elector as it is built into Kubernetes.
    Builtin,
    /// A person with kubectl.
    Kubectl,
}

/// A client in one incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Its name in objects, where it is a candidate.
    pub(crate) identity: Option<Identity>,
    pub(crate) incarnation: u32,
    /// When this incarnation began.
    pub(crate) born: Duration,
}

// === impl Author ===

impl Author {
    /// The same as it writes to a lease of this name.
    pub(crate) fn as_writer_of(&self, lease: &str) -> Self {
        let mut writer = self.clone();
        if let (Role::Candidate { member: true, .. }, Some(member)) = (&self.role, &self.identity) {
            writer.identity = Identity::new(format!("{member}.{lease}"));
        }
        writer
    }
}

/// A revision of a LeaseCandidate, or its deletion.
#[derive(Clone, Debug)]
pub(crate) struct CandidateRevision {
    pub(crate) at: Duration,
    pub(crate) object: LeaseCandidate,
    pub(crate) deleted: bool,
}

// === impl CandidateRevision ===

impl CandidateRevision {
    pub(crate) fn version(&self) -> u64 {
        version(self.object.metadata.resource_version.as_deref())
    }
}

pub(crate) fn version(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}
