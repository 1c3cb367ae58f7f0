//! A checker that finds nothing is worse than none: each rule is broken once.

mod extent;
mod histories;
mod leadership;
mod moves;
mod others;
