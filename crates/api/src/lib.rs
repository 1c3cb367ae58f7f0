//! Wire types of coordinated leader election: what stands in the API, and how it becomes what the protocol judges.
//!
//! ```text
//!   JSON ──decode (never fails)──> Lease, LeaseCandidate ──> LeaseSnapshot, CandidateRecord ──> elector_protocol
//!                                     │ validate_*                                            │
//!                                     v                                                       v
//!                             [FieldError, …]          JSON <── Lease::with_record <── LeaseRecord
//! ```
//!
//! * [`Lease`] and [`LeaseCandidate`] carry everything that a PUT must not lose. A bad field makes one bad object,
//!   described by a [`FieldError`], and never an unreadable list.
//! * [`CandidateApi`] says which LeaseCandidate a cluster serves, [`Carrier`] how a strategy and a preferred holder
//!   travel there.
//! * [`CANDIDATE_CRD`] is the LeaseCandidate of clusters that have none.
//! * [`EventObject`] reads what electors tell in Events.
//! * [`validate_lease`] and its relatives are the API server's own rules, for programs that play one.
//!
//! It performs no I/O; [`kube::Resource`] is implemented so that others can. Like every library it chooses no version
//! of k8s-openapi, which is the affair of the binary.
//!
//! ```
//! use elector_api::{Carrier, Lease};
//! use elector_protocol::{Identity, LeaseKey, Timestamp};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut stored = Lease::born(&LeaseKey::new("default", "app"), None, Carrier::Unknown);
//! stored.metadata.uid = Some("u".into());
//! stored.metadata.resource_version = Some("1".into());
//!
//! let judged = stored.snapshot()?;
//! let electee = Identity::new("app-1").ok_or("empty")?;
//! let now = Timestamp::from_micros(1).ok_or("too far")?;
//! let grant = judged.record.granted(electee, std::time::Duration::from_secs(5), now);
//! let put = stored.with_record(&grant, Carrier::Unknown);
//! assert_eq!(put.spec.holder_identity.as_deref(), Some("app-1"));
//! assert_eq!(put.metadata.resource_version, stored.metadata.resource_version);
//! # Ok(())
//! # }
//! ```

mod age;
pub mod annotation;
pub mod calendar;
mod candidate;
mod candidate_api;
mod carrier;
mod convert_candidate;
mod convert_lease;
mod crd;
mod duration;
mod event;
mod field;
mod group;
mod lease;
mod lease_metadata;
mod object;
mod operator_word;
mod packed_lease;
mod time;
mod validate;

pub use age::age;
pub use candidate::{LeaseCandidate, LeaseCandidateSpec};
pub use candidate_api::{CandidateApi, NotServed};
pub use carrier::Carrier;
pub use crd::CANDIDATE_CRD;
pub use duration::{DurationError, parse_duration, parse_duration_or_seconds};
pub use event::{
    CANDIDATE_REPORTING_CONTROLLER, EventObject, HoldBackEvent, PREFERENCE_HELD_BACK,
    REPORTING_CONTROLLER, ToldEvent, hold_back_note,
};
pub use field::{FieldError, Malformed, Problem};
pub use group::{GROUP_LABEL, MEMBER_ANNOTATION};
pub use lease::{Lease, LeaseSpec};
pub use lease_metadata::LeaseMetadata;
pub use operator_word::{PreferError, format_freeze, format_prefer, parse_freeze, parse_prefer};
pub use packed_lease::PackedLease;
pub use time::{Rfc3339, TimeError, creation_time, parse_time};
pub use validate::names;
pub use validate::{
    validate_candidate, validate_candidate_update, validate_lease, validate_lease_update,
};
