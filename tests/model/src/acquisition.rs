//! A system whose processes acquire leases themselves, in plain and in auto mode (R18): the production holder, without a
//! registration, and no, one or two production electors.
//!
//! A process's news of the Lease come as its watch reports them: in order, late, and by a list where it fell too far
//! behind, since its stop-watch hangs on that. Where a run lets strangers delete the Lease, a POST that was given up may
//! land at any time after.

mod apply;
mod possible;
mod process;
mod process_variation;
mod search;
mod setup;
mod system;
mod transition;

pub(super) use self::setup::{AcquisitionSetup, ModelLock};
pub(super) use self::system::AcquisitionSystem;
