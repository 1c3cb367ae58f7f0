//! A checker that finds nothing is worse than none: each rule is broken once.

mod acquisition;
mod extent;
mod groups;
mod histories;
mod leadership;
mod locks;
mod moves;
mod others;
mod shared_leases;
mod writers;
