//! Every decision of Elector, sans-IO.
//!
//! This crate holds what must be right: when a Lease may change hands, who is asked, who is chosen, how long a holder
//! may believe that it leads. It performs no I/O, reads no clock, draws no random number and keeps no hash map; the
//! model checker, the simulation, `elector explain` and production run these same functions.
//!
//! ```text
//!   Lease, LeaseCandidate revisions ──> elector::Election ──step(now)──> Decision { effects, wake, reason }
//!   Lease revisions, replies, work  ──> holder::Holder    ──step(now)──> effects
//!   LeaseCandidate revisions        ──> registration::…   ──step(now)──> effects
//! ```
//!
//! Rule ids (R1–R17) are those of ARCHITECTURE.md, which states each rule and its source.

mod backoff;
pub mod elector;
pub mod holder;
mod lease;
mod names;
mod order;
pub mod registration;
mod rejection;
mod renumber;
mod reservation;
mod resolution;
mod spec;
mod strategy;
mod time;
mod timing;
mod version;

pub use lease::{LeaseRecord, LeaseSnapshot, LeaseWrite, Occupancy};
pub use names::{Identity, LeaseKey, ResourceVersion, Term, Token, Uid};
pub use order::{Contender, best_first};
pub use rejection::Rejection;
pub use renumber::{Renumber, Renumbering};
pub use resolution::{Conflict, Resolution};
pub use spec::{CandidateRecord, CandidateSpec};
pub use strategy::{OldestEmulationVersion, Strategy, StrategyName, StrategyNameError};
pub use time::{Instant, Timestamp};
pub use timing::{CandidateTiming, ElectorTiming, LONGEST_LEASE, TimingError};
pub use version::{Version, VersionError};
