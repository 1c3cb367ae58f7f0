//! Elector's development tasks.

fn main() {}
