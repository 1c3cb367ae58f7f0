//! Kubernetes releases, as far as the test cluster must tell them apart.

use std::fmt;
use std::str::FromStr;

/// A minor release of Kubernetes, such as 1.36.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(into = "String", try_from = "String")]
pub struct Release {
    minor: u16,
}

/// A text that names no Kubernetes release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseReleaseError(String);

// === impl Release ===

impl Release {
    /// The release that is started unless another is asked for.
    pub const DEFAULT: Self = Self { minor: 36 };

    /// The release after that one, whose kube-apiserver scenarios of an upgrade start beside it.
    pub const NEXT: Self = Self { minor: 37 };

    /// The minor number: 36 for 1.36.
    #[must_use]
    pub fn minor(self) -> u16 {
        self.minor
    }

    /// The newest version of `coordination.k8s.io` in which this release can serve LeaseCandidates; none before 1.31.
    #[must_use]
    pub fn candidate_api(self) -> Option<&'static str> {
        match self.minor {
            ..31 => None,
            31 => Some("v1alpha1"),
            32 => Some("v1alpha2"),
            33.. => Some("v1beta1"),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor)
    }
}

impl FromStr for Release {
    type Err = ParseReleaseError;

    /// Reads `1.36`, and also `v1.36.3`: everything after the minor number is of no interest here.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        match (parts.next(), parts.next().map(str::parse)) {
            (Some("1"), Some(Ok(minor))) => Ok(Self { minor }),
            _ => Err(ParseReleaseError(text.to_owned())),
        }
    }
}

impl From<Release> for String {
    fn from(release: Release) -> Self {
        release.to_string()
    }
}

impl TryFrom<String> for Release {
    type Error = ParseReleaseError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

// === impl ParseReleaseError ===

impl fmt::Display for ParseReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a Kubernetes release such as 1.36", self.0)
    }
}

impl std::error::Error for ParseReleaseError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_with_and_without_patch() {
        for text in ["1.36", "v1.36", "1.36.3", "v1.36.3-rc.1", "v1.36.3+k3s1"] {
            assert_eq!(text.parse(), Ok(Release { minor: 36 }), "{text}");
        }
        for text in ["", "1", "2.36", "36", "1.x", "1.-3", "1.36-rc"] {
            assert!(text.parse::<Release>().is_err(), "{text}");
        }
    }

    #[test]
    fn each_release_serves_its_own_version_of_lease_candidates() {
        let api = |text: &str| text.parse::<Release>().unwrap().candidate_api();
        assert_eq!(api("1.30"), None);
        assert_eq!(api("1.31"), Some("v1alpha1"));
        assert_eq!(api("1.32"), Some("v1alpha2"));
        assert_eq!(api("1.33"), Some("v1beta1"));
        assert_eq!(api("1.37"), Some("v1beta1"));
    }
}
