//! Versions of candidates: strict semantic versions, ordered by precedence.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use crate::invalid_text::InvalidText;

/// The longest text that is looked at. The API sets no limit of its own.
const MAX_TEXT: usize = 256;

/// A semantic version 2.0 as the API validates it: `MAJOR.MINOR.PATCH[-pre][+build]`, no leading zeros, no `v`.
///
/// Equality and order are those of precedence: build metadata does not count.
///
/// ```
/// use elector_protocol::Version;
///
/// let version: Version = env!("CARGO_PKG_VERSION").parse()?;
/// assert!(version < "99.0.0".parse()?);
/// let error = "1.2".parse::<Version>().unwrap_err();
/// assert_eq!(error.to_string(), "the version \"1.2\" is not a semantic version MAJOR.MINOR.PATCH");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Version(semver::Version);

/// Why a text is not a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum VersionError {
    /// The text is empty.
    #[error("is empty")]
    Empty,
    /// The text is not `MAJOR.MINOR.PATCH` with an optional pre-release and build part.
    #[error("is not a semantic version MAJOR.MINOR.PATCH")]
    Syntax,
    /// The text is longer than 256 bytes.
    #[error("is longer than {MAX_TEXT} bytes")]
    TooLong,
}

// === impl Version ===

impl Version {
    /// Parses a strict semantic version.
    ///
    /// # Errors
    ///
    /// When the text is empty, too long or no semantic version.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        if text.is_empty() {
            return Err(VersionError::Empty);
        }
        if text.len() > MAX_TEXT {
            return Err(VersionError::TooLong);
        }
        semver::Version::parse(text)
            .map(Self)
            .map_err(|_| VersionError::Syntax)
    }

    /// True if both are the same to the letter, build metadata included.
    pub(crate) fn is_identical(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// True for 0.0.0, which the API reads as "no emulation version given".
    pub fn is_zero(&self) -> bool {
        (self.0.major, self.0.minor, self.0.patch) == (0, 0, 0) && self.0.pre.is_empty()
    }
}

impl FromStr for Version {
    type Err = InvalidText<VersionError>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).map_err(|rule| InvalidText::new("version", text, rule))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

impl Hash for Version {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.major, self.0.minor, self.0.patch, &self.0.pre).hash(state);
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn build_metadata_does_not_count() {
        assert_eq!(version("1.31.0+a"), version("1.31.0+b"));
    }

    #[test]
    fn a_pre_release_comes_before_its_release() {
        assert!(version("1.30.0-alpha.1") < version("1.30.0"));
        assert!(version("1.30.0-alpha.2") < version("1.30.0-alpha.10"));
    }

    #[test]
    fn only_strict_versions_parse() {
        for text in [
            "1.31",
            "v1.31.0",
            "01.1.1",
            " 1.1.1",
            "1.1.1.1",
            "18446744073709551616.0.0",
        ] {
            assert_eq!(Version::parse(text), Err(VersionError::Syntax), "{text}");
        }
        assert_eq!(Version::parse(""), Err(VersionError::Empty));
        let longest = format!("1.0.0+{}", "1".repeat(250));
        assert!(Version::parse(&longest).is_ok());
        assert_eq!(Version::parse(&(longest + "1")), Err(VersionError::TooLong));
        assert!(version("18446744073709551615.0.0") > version("1.0.0"));
    }

    #[test]
    fn the_error_of_a_parse_names_text_and_rule_and_stays_short() {
        let error = |text: &str| text.parse::<Version>().unwrap_err().to_string();
        assert_eq!(error(""), "the version \"\" is empty");
        let long = error(&"é".repeat(300));
        let shown = "é".repeat(64);
        let expected = format!("the version \"{shown}\"… is longer than 256 bytes");
        assert_eq!(long, expected);
    }

    #[test]
    fn zero_stands_for_absent() {
        assert!(version("0.0.0+x").is_zero());
        assert!(!version("0.0.0-a").is_zero() && !version("0.0.1").is_zero());
    }
}
