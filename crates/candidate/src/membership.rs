//! A candidate's place in a group: what it leads there, and which process it belongs to.

use std::sync::Arc;

use elector_api::{GROUP_LABEL, LeaseCandidate, MEMBER_ANNOTATION};
use elector_protocol::Identity;

/// The place of one candidate in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartMembership {
    /// The name of the group.
    pub(crate) group: Arc<str>,
    /// The name of the process, which its candidates have in common.
    pub(crate) member: Identity,
    /// The name of the part.
    pub(crate) part: Arc<str>,
}

// === impl PartMembership ===

impl PartMembership {
    /// The candidate with the marks of its group and of its process.
    pub(crate) fn mark(&self, mut candidate: LeaseCandidate) -> LeaseCandidate {
        let metadata = &mut candidate.metadata;
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(GROUP_LABEL.to_owned(), self.group.to_string());
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(MEMBER_ANNOTATION.to_owned(), self.member.to_string());
        candidate
    }
}
