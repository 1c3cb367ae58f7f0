//! The matrix of faults.

fn main() {}
