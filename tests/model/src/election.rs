//! A system with candidates of ours: the production holder and registration.

mod apply;
mod candidate;
mod candidate_variation;
mod possible;
mod registration;
mod search;
mod system;
mod transition;

pub(super) use self::system::ElectionSystem;
