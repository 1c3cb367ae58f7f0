//! The table of all worlds: those that must be safe, and one for each mutant.

mod base;
mod worlds;

pub use worlds::runs;

#[cfg(test)]
mod operands;
#[cfg(test)]
mod tests;
