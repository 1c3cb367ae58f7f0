//! The binary elector.

fn main() {}
