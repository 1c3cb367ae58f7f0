//! A text that does not parse, with the rule that it breaks.

use std::error::Error;
use std::fmt;

/// The longest part of a text that a message repeats, in characters.
const SHOWN: usize = 64;

/// A text that is not what it was given for: what it should be, the text, and the rule that it breaks.
///
/// This is the error of `str::parse`, whose caller may not know which text was bad.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InvalidText<R> {
    what: &'static str,
    text: String,
    rule: R,
}

// === impl InvalidText ===

impl<R> InvalidText<R> {
    pub(crate) fn new(what: &'static str, text: &str, rule: R) -> Self {
        Self {
            what,
            text: text.to_owned(),
            rule,
        }
    }
}

impl<R: fmt::Display> fmt::Display for InvalidText<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, text, rule } = self;
        match text.char_indices().nth(SHOWN) {
            Some((end, _)) => write!(f, "the {what} {:?}… {rule}", &text[..end]),
            None => write!(f, "the {what} {text:?} {rule}"),
        }
    }
}

impl<R: fmt::Debug + fmt::Display> Error for InvalidText<R> {}
