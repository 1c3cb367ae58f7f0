//! The names of the annotations that Elector reads and writes. There are no others but
//! [`MEMBER_ANNOTATION`](crate::MEMBER_ANNOTATION).

/// On a LeaseCandidate: the version of Elector's protocol that it speaks. [`PROTOCOL_VERSION`] marks it as ours.
///
/// On a Lease: the version of the first elector or candidate of ours that wrote it. Each write leaves it there, a release
/// too, so that the admission policies tell a Lease of ours from a plain one. No rule of the protocol reads it.
pub const PROTOCOL: &str = "elector.dev/protocol";

/// The value of [`PROTOCOL`] that this version of Elector writes, and the only one that counts as marked.
pub const PROTOCOL_VERSION: &str = "1";

/// On a LeaseCandidate: the lease duration that it will use, as a Go duration (`15s`) or in seconds (R6).
pub const LEASE_DURATION: &str = "elector.dev/lease-duration";

/// On a LeaseCandidate: until when an operator wants it not to lead, RFC 3339, or `true` for a day. It is not eligible
/// then, and a holder is asked to make room (R16). Written, as the words on a Lease are, by accounts that may `operate`.
pub const STAND_DOWN: &str = "elector.dev/stand-down";

/// On a LeaseCandidate: its priority, from 1 to 2147483647, for the strategy of the same name (KEP-4355). Written by
/// administrators; a candidate without it comes after all that have one.
pub const PRIORITY: &str = "elector.dev/priority";

/// On a Lease: until when an operator wants no live leader to make room, see [`format_freeze`](crate::format_freeze).
pub const FREEZE: &str = "elector.dev/freeze";

/// On a Lease: the candidate that an operator wants to lead, and until when, see
/// [`format_prefer`](crate::format_prefer).
pub const PREFER: &str = "elector.dev/prefer";

/// On a Lease: the fencing token of the term, written by the accept (R14). A resourceVersion. On any other object: the
/// token of the leader that wrote it, which the policies of `elector fence-policy` compare.
pub const TOKEN: &str = "elector.dev/token";

/// On a Lease: the term that [`TOKEN`] belongs to, `spec.leaseTransitions` at the accept (R14).
pub const TOKEN_TERM: &str = "elector.dev/token-term";

/// On a Lease: the holder that [`TOKEN`] belongs to, `spec.holderIdentity` at the accept (R14). Where it is another, a
/// client that leaves annotations alone has taken the lease, and its term may have the number of an older one.
pub const TOKEN_HOLDER: &str = "elector.dev/token-holder";

/// On a Lease: the life of the process that began the term, where it keeps an instance lock (R21).
pub const LIFE: &str = "elector.dev/life";

/// On a Lease: the strategy, where the server drops `spec.strategy`.
pub const STRATEGY: &str = "elector.dev/strategy";

/// On a Lease: the candidate that the holder is asked to make room for, where the server drops `spec.preferredHolder`.
pub const PREFERRED_HOLDER: &str = "elector.dev/preferred-holder";
