//! A case of the matrix: one fault and one subject.

use crate::fault::Fault;
use crate::subject::Subject;

/// One run of one fault with one subject.
#[derive(Clone, Copy, Debug)]
pub struct FaultCase {
    /// The fault.
    pub fault: &'static Fault,
    /// The subject.
    pub subject: Subject,
    /// Counted from 0, over phases and repetitions.
    pub run: u32,
}

// === impl FaultCase ===

impl FaultCase {
    /// Its name, by which it can be chosen.
    pub fn name(&self) -> String {
        format!("{}::{}::{}", self.fault.name, self.subject, self.run)
    }
}
