//! The elector's side: what one election remembers, and what it decides next.
//!
//! ```text
//!   handle_lease, handle_candidate, … ──> Election ──step(now, wall, settings)──> Decision
//!         (revisions, each with when *we* saw it)            { effects, wake, reason }
//! ```
//!
//! [`Election`] holds one lease and its candidates. Its inputs are the `handle_*` methods; time passed in must not go
//! backwards. [`Election::step`] changes nothing and may be called at any time: it says what to do now and when to step
//! again. Effects are compare-and-swap writes on the very revisions that were judged, so a step that is repeated, or
//! taken by a second elector, ends in a conflict and never in a second leader ([R2], [R17]).
//!
//! [R2]: crate::rules#r2
//! [R17]: crate::rules#r17

mod action;
mod contenders;
mod decision;
mod explain;
mod explain_group;
mod free_lease;
mod grant;
mod group_memory;
mod group_part;
mod hold_back;
mod ignored_override;
mod maintenance;
mod observation;
mod observed_candidates;
mod ping_round;
mod preference;
mod ranking;
mod seen_preference;
mod state;
mod step;
mod wake;

pub use crate::lease_watch::NewsSource;
pub use action::Action;
pub use decision::{Decision, Effect, GrantCause, Reason};
pub use explain::{Explanation, Objects};
pub use explain_group::assign_groups;
pub use hold_back::{HoldBackCause, HoldBackCauseError, HoldBackNotice};
pub use ignored_override::IgnoredOverride;
pub use ranking::{RankedCandidate, Ranking};
pub use state::{Election, PreferenceField, Settings};
pub use wake::{Wake, WakeAfter, WakeReason};
