//! A system with holders as client-go makes them, on a server that drops `preferredHolder`, and electors that may
//! reserve (R3 d).
//!
//! Such a holder renews for as long as it is named, makes room for no other, and stops by its own deadline alone: that
//! it may stop sooner, when it reads another name, only leaves out some of what is searched here. The electors are the
//! production ones, and so is all that happens to them.

mod apply;
mod holder;
mod possible;
mod search;
mod setup;
mod system;
mod transition;

pub(super) use self::setup::{Counts, Reservation};
pub(super) use self::system::ReservationSystem;
