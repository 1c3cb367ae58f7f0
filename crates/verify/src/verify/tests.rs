//! A judge that finds nothing is worse than none: each fault is committed once.

mod extent;
mod histories;
mod leadership;
mod moves;
mod others;
