//! Strategies: how the best candidate of a lease is chosen.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::spec::{CandidateSpec, Rejection};
use crate::version::{Version, VersionError};

/// The name of a strategy, valid under the API's syntax.
///
/// Either the built-in `OldestEmulationVersion` or a qualified name `domain/name` that belongs to somebody else.
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

/// A way to choose among candidates; one value for each strategy that Elector decides itself.
pub trait Strategy: fmt::Debug + Sync {
    /// The strategy's name.
    fn name(&self) -> &StrategyName;

    /// Whether a valid candidate can be chosen under this strategy.
    ///
    /// # Errors
    ///
    /// Names what the candidate lacks.
    fn eligible(&self, candidate: &CandidateSpec) -> Result<(), Rejection>;

    /// Compares two eligible candidates by the strategy's own keys, the better one first.
    fn compare(&self, left: &CandidateSpec, right: &CandidateSpec) -> Ordering;

    /// Says by which key `better` precedes `other`, as a fragment that follows the candidate's name.
    fn because(&self, better: &CandidateSpec, other: &CandidateSpec) -> String;
}

/// The built-in strategy: lower emulation version first, then lower binary version (KEP-4355).
#[derive(Debug)]
pub struct OldestEmulationVersion {
    strategy: StrategyName,
}

// === impl StrategyName ===

impl StrategyName {
    /// The name of the built-in strategy.
    pub const OLDEST_EMULATION_VERSION: &'static str = "OldestEmulationVersion";

    /// The built-in strategy.
    pub fn oldest_emulation_version() -> Self {
        Self(Self::OLDEST_EMULATION_VERSION.into())
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
            return Ok(Self(text.into()));
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

    /// How to choose under this strategy, `None` where that is somebody else's affair.
    pub fn strategy(&self) -> Option<&'static dyn Strategy> {
        static OLDEST: std::sync::LazyLock<OldestEmulationVersion> =
            std::sync::LazyLock::new(OldestEmulationVersion::default);
        let known: [&'static dyn Strategy; 1] = [&*OLDEST];
        known.into_iter().find(|strategy| strategy.name() == self)
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl OldestEmulationVersion ===

impl Default for OldestEmulationVersion {
    fn default() -> Self {
        Self {
            strategy: StrategyName::oldest_emulation_version(),
        }
    }
}

impl Strategy for OldestEmulationVersion {
    fn name(&self) -> &StrategyName {
        &self.strategy
    }

    fn eligible(&self, candidate: &CandidateSpec) -> Result<(), Rejection> {
        if candidate.binary.is_none() {
            return Err(Rejection::BinaryVersion(VersionError::Empty));
        }
        match &candidate.emulation {
            Some(version) if !version.is_zero() => Ok(()),
            _ => Err(Rejection::NoEmulationVersion),
        }
    }

    fn compare(&self, left: &CandidateSpec, right: &CandidateSpec) -> Ordering {
        left.emulation
            .cmp(&right.emulation)
            .then_with(|| left.binary.cmp(&right.binary))
    }

    fn because(&self, better: &CandidateSpec, other: &CandidateSpec) -> String {
        let show = |version: &Option<Version>| {
            version
                .as_ref()
                .map_or_else(|| "none".into(), ToString::to_string)
        };
        if better.emulation == other.emulation {
            return format!(
                "has the older binary version {} (not {})",
                show(&better.binary),
                show(&other.binary)
            );
        }
        format!(
            "has the older emulation version {} (not {})",
            show(&better.emulation),
            show(&other.emulation)
        )
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
    }

    #[test]
    fn the_oldest_emulation_version_cannot_be_told_without_versions() {
        let ranking = OldestEmulationVersion::default();
        let wish = ["OldestEmulationVersion"];
        for (binary, emulation, text) in [
            ("", "1.0.0", "spec.binaryVersion is empty"),
            (
                "1.0.0",
                "",
                "spec.emulationVersion is missing, OldestEmulationVersion needs it",
            ),
        ] {
            let spec = CandidateSpec::parse_list(binary, emulation, &wish).unwrap();
            assert_eq!(ranking.eligible(&spec).unwrap_err().to_string(), text);
        }
    }
}
