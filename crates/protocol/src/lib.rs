//! Every decision of Elector, sans-IO.
//!
//! This crate holds what must be right: when a Lease may change hands, which candidates are pinged and which of them is
//! granted the Lease, how long a holder may believe that it leads. It performs no I/O, reads no clock, draws no random
//! number and keeps no hash map; the model checker, the simulation, `elector explain` and production run these same
//! functions.
//!
//! ```text
//!            what was seen                                            what to do
//!
//!  Lease, LeaseCandidate revisions ─> elector::Election ───step(now)─> Decision { effects, wake, reason }
//!                                                                        Create, Write: POST, PUT of the Lease
//!                                                                        Ping, Collect: PUT, DELETE of a candidate
//!
//!  Lease revisions, replies, work ──> holder::Holder ──────step(now)─> Decision { effects, wake_at }
//!                                                                        Read, Create, Write: GET, POST, PUT of the Lease
//!                                                                        Start, Stop: the work of the process
//!
//!  LeaseCandidate revisions, replies ─> registration::Registration ─step(now)─> Read, Create, Replace, Delete
//! ```
//!
//! * [`elector`] is the elector's side: which candidate is granted a Lease, and when.
//! * [`holder`] is the side of a process that leads: accept or acquire, renew, hand over, release, and its belief
//!   meanwhile.
//! * [`registration`] keeps the LeaseCandidate of that process, and acks its pings.
//! * [`shard`] says which of a group's leases an object belongs to, where each has a range of objects.
//! * The values at the root are what they share: [`LeaseRecord`], [`CandidateRecord`], [`Strategy`], the
//!   [constants](ElectorTiming).
//!
//! # Contract
//!
//! * **Inputs** are `handle_*` methods. They take what was seen, with the `now` of the caller's clock, and return
//!   nothing.
//! * **Outputs** are decisions. `step` says what to do now, as data, and when to step again if nothing is seen before.
//!   A step too many is harmless.
//! * **Two kinds of time.** [`Instant`] is a reading of the process's own clock, for waiting. [`Timestamp`] is a time
//!   in an object, written by another machine; it is compared for equality and never with a clock ([R4]), save for the
//!   time until which an [`OperatorOverrides`] counts ([R16]).
//! * **Writes are compare-and-swap** on the very revision that was judged ([R2]). A decision that was made twice, or by
//!   two electors, ends in a conflict and never in a second leader ([R17]).
//! * **One sequence of inputs has one sequence of outputs.** Nothing depends on the order of a hash table, or on the
//!   order in which a list brings its objects.
//!
//! # Example
//!
//! A Lease was released, and an elector knows two candidates from a list, which proves the life of neither. It pings
//! the better one, and grants it the Lease when its ack is seen.
//!
//! ```
//! use std::time::Duration;
//!
//! use elector_protocol::elector::{Action, Effect, Election, NewsSource, Settings};
//! use elector_protocol::{
//!     CandidateRecord, CandidateSpec, Identity, Instant, LeaseRecord, LeaseSnapshot, OperatorOverrides, ResourceVersion,
//!     Timestamp, Uid,
//! };
//!
//! let settings = Settings::default();
//! let now = Instant::from_epoch(Duration::from_secs(3600)); // this elector has been up for an hour
//! let wall = Timestamp::from_micros(1_700_000_000_000_000).unwrap(); // only ever written, never compared
//!
//! let candidate = |name: &str, emulation: &str, version| CandidateRecord {
//!     name: Identity::new(name).unwrap(),
//!     uid: Uid::new(name),
//!     version: ResourceVersion(version),
//!     created: wall,
//!     ping: None,
//!     renew: Some(wall),
//!     marked: true,
//!     announced: None,
//!     deleting: false,
//!     spec: CandidateSpec::parse("1.31.0", emulation, "OldestEmulationVersion").into(),
//! };
//! let blue = candidate("blue", "1.31.0", 1);
//! let green = candidate("green", "1.30.0", 2);
//!
//! // Candidates and the Lease in.
//! let mut election = Election::absent(Instant::default());
//! election.handle_candidate(now, blue, NewsSource::List);
//! election.handle_candidate(now, green.clone(), NewsSource::List);
//! let released = LeaseSnapshot {
//!     uid: Uid::new("lease"),
//!     version: ResourceVersion(3),
//!     record: LeaseRecord::born(None).released(wall),
//!     overrides: OperatorOverrides::default(),
//! };
//! election.handle_lease(now, released, NewsSource::Watch);
//!
//! // Step, and a ping out: the lower emulation version is the better one.
//! let decision = election.step(now, wall, &settings);
//! assert_eq!(decision.action(), Action::Ping);
//! let [Effect::Ping { name, ping, .. }] = &decision.effects[..] else { unreachable!() };
//! assert_eq!(name, &green.name);
//!
//! // The watch brings the ping, and then the ack of the candidate.
//! let pinged = CandidateRecord { version: ResourceVersion(4), ping: Some(*ping), ..green };
//! election.handle_candidate(now, pinged.clone(), NewsSource::Watch);
//! let decision = election.step(now, wall, &settings);
//! assert_eq!(decision.reason.to_string(), "waiting for the ack of green");
//! assert_eq!(decision.wake.unwrap().after(now).to_string(), "in 2.0s, when an ack window ends");
//!
//! let now = now.after(Duration::from_millis(20));
//! let acked = CandidateRecord { version: ResourceVersion(5), renew: pinged.ping, ..pinged };
//! election.handle_candidate(now, acked, NewsSource::Watch);
//!
//! // Step, and the grant out.
//! let decision = election.step(now, wall, &settings);
//! let [Effect::Write(grant)] = &decision.effects[..] else { unreachable!() };
//! assert_eq!(grant.record.holder.as_ref().unwrap().as_str(), "green");
//! assert_eq!(grant.version, ResourceVersion(3)); // on the revision that was judged
//! assert_eq!(
//!     decision.reason.to_string(),
//!     "the lease is released; green has the older emulation version 1.30.0 (not 1.31.0)",
//! );
//! ```
//!
//! # What it does not do
//!
//! * It knows no Kubernetes object. `elector-api` turns a Lease or a LeaseCandidate into the values here, once.
//! * It watches, sleeps and writes nothing. The shells `elector` and `elector-candidate` do, and bound every request.
//! * It does not retry a write: the shell reports how it ended, or the watch shows it, and the next step decides anew.
//! * It queues nothing: one [`Election`](elector::Election) is one Lease. `elector-workqueue` says which is next.
//! * It does not fence. A term has a [`Token`] that only grows; resources that are written under it have to check it.
//!
//! Rule ids ([R1] to [R18], [R20] to [R23]) lead to the text of the rule in [`rules`], which states each with its source.
//!
//! [R1]: crate::rules#r1
//! [R2]: crate::rules#r2
//! [R4]: crate::rules#r4
//! [R16]: crate::rules#r16
//! [R17]: crate::rules#r17
//! [R18]: crate::rules#r18
//! [R20]: crate::rules#r20
//! [R23]: crate::rules#r23

mod assign;
mod backoff;
pub mod elector;
mod group;
pub mod holder;
mod invalid_text;
mod lease;
mod lease_watch;
mod names;
mod operator_overrides;
mod order;
pub mod registration;
mod rejection;
mod renumber;
mod resolution;
pub mod shard;
mod spec;
mod strategy;
mod time;
mod timing;
mod tracked;
mod transition;
mod version;

#[doc = include_str!("../rules.md")]
pub mod rules {}

pub use assign::{AssignablePart, PartMobility, assign};
pub use backoff::{MOST_WRITES_UNDER_WAY, RetryBackoff};
pub use group::{Assignment, GroupCounts, GroupPart, LeaseGroup, PartCandidate};
pub use invalid_text::InvalidText;
pub use lease::{LeaseRecord, LeaseSnapshot, LeaseWrite, Occupancy};
pub use lease_watch::{Freshness, LeasePresence, LeaseWatch, NewsSource, ObservedLease};
pub use names::{Identity, LeaseKey, LifeId, ResourceVersion, Term, Token, Uid};
pub use operator_overrides::{
    LONGEST_OVERRIDE, OperatorOverrides, OperatorPreference, OutOfTime, StandDown,
};
pub use order::{CandidateOrder, Contender};
pub use rejection::Rejection;
pub use renumber::{Renumber, Renumbering};
pub use resolution::{Conflict, Resolution};
pub use spec::{CandidateRecord, CandidateSpec, Membership};
pub use strategy::{Strategy, StrategyName, StrategyNameError};
pub use time::{Instant, Moment, Timestamp};
pub use timing::{CandidateTiming, ElectorTiming, LONGEST_LEASE, TimingError};
pub use transition::Transition;
pub use version::{Version, VersionError};
