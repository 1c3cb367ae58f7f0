//! The leader stays: no candidate is better than another.

use std::cmp::Ordering;

use super::Strategy;
use crate::rejection::Rejection;
use crate::spec::CandidateSpec;

/// The leader stays for as long as it can be elected, whatever versions there are; a lease that is free goes to its last
/// holder, or to the candidate that has been there for longest.
///
/// No candidate is better than another by this strategy, so that the rest of the order decides
/// ([R16](crate::rules#r16)): the incumbent, in a group the member that a vacant part is assigned to, the older object,
/// the name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sticky;

// === impl Sticky ===

impl Strategy for Sticky {
    fn eligible(&self, _: &CandidateSpec) -> Result<(), Rejection> {
        Ok(())
    }

    fn compare(&self, _: &CandidateSpec, _: &CandidateSpec) -> Ordering {
        Ordering::Equal
    }

    /// The leader stays, and a group spreads its vacant parts alone.
    fn moves_for_balance(&self) -> bool {
        false
    }

    fn because(&self, _: &CandidateSpec, _: &CandidateSpec) -> String {
        "is as good as any".to_owned()
    }
}
