//! The name of a strategy, and the syntax that the API gives it.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use crate::invalid_text::InvalidText;

/// The name of a strategy, valid under the API's syntax.
///
/// Either the built-in `OldestEmulationVersion` or a qualified name `domain/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StrategyName(Arc<str>);

/// Why a text is not a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum StrategyNameError {
    /// The text is empty.
    #[error("is empty")]
    Empty,
    /// The text has no `/` and is not the built-in strategy.
    #[error("is neither OldestEmulationVersion nor a name of the form domain/name")]
    Unknown,
    /// The part before the `/` is not a DNS subdomain.
    #[error("has a prefix that is not a lower-case DNS subdomain of at most 253 characters")]
    Prefix,
    /// The part after the `/` is not a qualified name.
    #[error(
        "has a name part that is not 1 to 63 of A-Z a-z 0-9 - _ . beginning and ending alphanumeric"
    )]
    Name,
}

/// The name of the built-in strategy, one text for all candidates.
static BUILTIN: LazyLock<Arc<str>> =
    LazyLock::new(|| StrategyName::OLDEST_EMULATION_VERSION.into());

// === impl StrategyName ===

impl StrategyName {
    /// The built-in strategy.
    pub fn oldest_emulation_version() -> Self {
        Self(Arc::clone(&BUILTIN))
    }

    /// Parses a strategy as the API validates it.
    ///
    /// # Errors
    ///
    /// Says which part breaks the syntax.
    pub fn parse(text: &str) -> Result<Self, StrategyNameError> {
        if text.is_empty() {
            return Err(StrategyNameError::Empty);
        }
        let Some((prefix, name)) = text.split_once('/') else {
            if text != Self::OLDEST_EMULATION_VERSION {
                return Err(StrategyNameError::Unknown);
            }
            return Ok(Self::oldest_emulation_version());
        };
        if !is_dns_subdomain(prefix) {
            return Err(StrategyNameError::Prefix);
        }
        if !is_qualified_name(name) {
            return Err(StrategyNameError::Name);
        }
        Ok(Self(text.into()))
    }

    /// The strategy as it stands in the API.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for StrategyName {
    type Err = InvalidText<StrategyNameError>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).map_err(|rule| InvalidText::new("strategy", text, rule))
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// DNS-1123 subdomain: labels of lower-case letters, digits and inner dashes, joined by dots, at most 253 characters.
fn is_dns_subdomain(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = label.as_bytes();
        !bytes.is_empty()
            && inner(bytes[0])
            && inner(bytes[bytes.len() - 1])
            && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

fn is_qualified_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= 63
        && bytes[0].is_ascii_alphanumeric()
        && bytes[bytes.len() - 1].is_ascii_alphanumeric()
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_is_that_of_the_api() {
        for good in [
            "OldestEmulationVersion",
            "example.com/x",
            "a/B_c.d",
            "a-b.c/1",
        ] {
            assert_eq!(StrategyName::parse(good).unwrap().as_str(), good);
        }
        let long = format!("a/{}", "x".repeat(64));
        for (bad, error) in [
            ("", StrategyNameError::Empty),
            ("oldestEmulationVersion", StrategyNameError::Unknown),
            ("/x", StrategyNameError::Prefix),
            ("A.com/x", StrategyNameError::Prefix),
            ("a..b/x", StrategyNameError::Prefix),
            ("-a/x", StrategyNameError::Prefix),
            ("a/", StrategyNameError::Name),
            ("a/b/c", StrategyNameError::Name),
            ("a/-b", StrategyNameError::Name),
            (long.as_str(), StrategyNameError::Name),
        ] {
            assert_eq!(StrategyName::parse(bad), Err(error), "{bad}");
        }
        assert_eq!(
            "mine".parse::<StrategyName>().unwrap_err().to_string(),
            "the strategy \"mine\" is neither OldestEmulationVersion nor a name of the form domain/name"
        );
    }
}
