//! The marks of the leases and candidates of a group: many leaders in one program are ordinary leases with one label.

/// The label of a Lease and of its LeaseCandidates that belong to a group: its name, at most 63 characters. No rule of the
/// protocol reads it.
pub const GROUP_LABEL: &str = "elector.dev/group";

/// The annotation of a LeaseCandidate that says which process of the group it belongs to: `<pod>-<16 hex>`, the same on
/// all candidates of that process. The name of the candidate is this, a dot, and the name of its Lease.
pub const MEMBER_ANNOTATION: &str = "elector.dev/member";
