//! Strategies: how the best candidate of a lease is chosen.
//!
//! Each strategy is a unit value in a file of its own, declared here, that implements [`Strategy`], and a line in
//! `strategy/registry.rs` that gives it its name: three files in all. The rest follows: candidates wish for it by that
//! name, electors and `elector explain` decide by it. A name without a line there belongs to another elector, which
//! decides such leases.

pub(crate) mod name;
mod newest_version;
mod oldest_emulation_version;
mod priority;
mod registry;
mod sticky;

use std::cmp::Ordering;
use std::fmt;

use crate::rejection::Rejection;
use crate::spec::CandidateSpec;

pub use name::{StrategyName, StrategyNameError};

/// A way to choose among candidates; one value for each strategy that Elector decides itself.
pub trait Strategy: fmt::Debug + Sync {
    /// Checks that a valid candidate can be chosen under this strategy.
    ///
    /// # Errors
    ///
    /// Names what the candidate lacks.
    fn eligible(&self, candidate: &CandidateSpec) -> Result<(), Rejection>;

    /// Compares two eligible candidates by the strategy's own keys, the better one first.
    fn compare(&self, left: &CandidateSpec, right: &CandidateSpec) -> Ordering;

    /// True if a leader makes room for another candidate that is as good by these keys, where that balances a group of
    /// leases.
    fn moves_for_balance(&self) -> bool {
        true
    }

    /// Says by which key `better` precedes `other`, as a fragment that follows the candidate's name.
    fn because(&self, better: &CandidateSpec, other: &CandidateSpec) -> String;
}
