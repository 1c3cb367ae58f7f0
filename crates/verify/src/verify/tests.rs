//! A judge that finds nothing is worse than none: each fault is committed once.

mod beliefs;
mod extent;
mod moves;
mod others;
mod story;
