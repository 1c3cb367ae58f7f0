//! Where in a recording something stands.

use std::fmt;

/// Where a document begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The number of the document, from 1; `None` for what is none.
    pub document: Option<usize>,
    /// The line, from 1.
    pub line: usize,
}

// === impl Position ===

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.document {
            Some(document) => write!(f, "document {document}, line {}", self.line),
            None => write!(f, "line {}", self.line),
        }
    }
}
