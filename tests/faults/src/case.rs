//! A case of the matrix: one fault and one subject.

use crate::fault::FaultScenario;
use crate::subject::TestSubject;

/// One run of one fault with one subject.
#[derive(Clone, Copy, Debug)]
pub struct FaultCase {
    /// The fault.
    pub fault: &'static FaultScenario,
    /// The subject.
    pub subject: TestSubject,
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
