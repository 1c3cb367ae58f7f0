//! A LeaseCandidate as the protocol sees it: parsed once at the edge, never checked again.

use std::sync::Arc;
use std::time::Duration;

use crate::names::{Identity, ResourceVersion, Uid};
use crate::operator_overrides::StandDown;
use crate::rejection::Rejection;
use crate::renumber::renumber;
use crate::strategy::name::{StrategyName, StrategyNameError};
use crate::time::Timestamp;
use crate::version::Version;

/// One revision of a LeaseCandidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CandidateRecord {
    /// `metadata.name`, the identity that it would hold the Lease under ([R1](crate::rules#r1)).
    pub name: Identity,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`.
    pub version: ResourceVersion,
    /// `metadata.creationTimestamp`: the older object wins a tie ([R16](crate::rules#r16)). Written by the API server.
    pub created: Timestamp,
    /// `spec.pingTime`: the elector's ping, "are you alive?".
    pub ping: Option<Timestamp>,
    /// `spec.renewTime`: changes with every ack.
    pub renew: Option<Timestamp>,
    /// True if it carries `elector.dev/protocol: "1"`: it watches, yields at once and hands over.
    pub marked: bool,
    /// The lease duration that it announces, annotation `elector.dev/lease-duration` ([R6](crate::rules#r6)).
    pub announced: Option<Duration>,
    /// True if `metadata.deletionTimestamp` is set: it is gone as soon as its finalizers are. Until then it is a
    /// candidate like any other, save that it is not collected again.
    pub deleting: bool,
    /// Its offer, or why that cannot be used: see [`Self::offer`]. An election keeps one for all who offer the same.
    pub spec: Arc<Result<CandidateSpec, Rejection>>,
}

/// A valid candidate's offer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CandidateSpec {
    /// The version of its binary. `None` only under the API that does without (v1alpha1).
    pub binary: Option<Version>,
    /// The version that it behaves as; the built-in strategy needs it.
    pub emulation: Option<Version>,
    /// The strategy that it wishes the lease to be elected under.
    pub strategy: StrategyName,
    /// Strategies superseded by that one, the nearest first, where the API has a list of strategies (v1alpha1). `None`
    /// where it has one wish, and the highest binary version decides among several.
    pub supersedes: Option<Vec<StrategyName>>,
    /// Its priority, from 1 to 2147483647, annotation `elector.dev/priority`; 0 where it has none.
    pub priority: i32,
    /// That an operator wants it not to lead, annotation `elector.dev/stand-down` ([R16](crate::rules#r16)).
    pub stand_down: Option<StandDown>,
    /// The process that stands for this lease and others of a group, where it is one of several ([R16](crate::rules#r16)).
    pub membership: Option<Arc<Membership>>,
}

/// The process behind a candidate for one part of a group of leases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    /// The group, label `elector.dev/group`.
    pub group: Arc<str>,
    /// The process, annotation `elector.dev/member`.
    pub member: Identity,
}

// === impl CandidateRecord ===

impl CandidateRecord {
    /// Its offer.
    ///
    /// # Errors
    ///
    /// Why that cannot be used.
    pub fn offer(&self) -> Result<&CandidateSpec, &Rejection> {
        (*self.spec).as_ref()
    }

    /// Shares the spec of another candidate, or of an earlier revision, where that is the same to the letter.
    pub fn share_spec(&mut self, other: &Arc<Result<CandidateSpec, Rejection>>) {
        if let (Ok(own), Ok(spec)) = (self.offer(), &**other)
            && own.is_identical(spec)
        {
            self.spec = Arc::clone(other);
        }
    }

    /// True if a ping is open by the candidate's own clock: `renewTime` is below `pingTime`.
    ///
    /// Later Kubernetes keeps `pingTime` for ever, the first form cleared it; both read correctly here.
    pub fn is_pinged(&self) -> bool {
        match (self.ping, self.renew) {
            (Some(ping), Some(renew)) => renew < ping,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// The time of the next ping: the candidate's own time and one microsecond ([R15](crate::rules#r15)).
    ///
    /// `None` where it has no time of its own or cannot be pinged any more (year 9999).
    pub fn next_ping(&self) -> Option<Timestamp> {
        self.renew?.next()
    }
}

renumber!(CandidateRecord { version, ping => candidate_time, renew => candidate_time });

// === impl CandidateSpec ===

impl CandidateSpec {
    /// True if they are the same to the letter. Versions that differ in build metadata are equal, and not identical.
    fn is_identical(&self, other: &Self) -> bool {
        let identical = |own: &Option<Version>, other: &Option<Version>| match (own, other) {
            (Some(own), Some(other)) => own.is_identical(other),
            (own, other) => own.is_none() && other.is_none(),
        };
        identical(&self.binary, &other.binary)
            && identical(&self.emulation, &other.emulation)
            && (&self.strategy, &self.supersedes) == (&other.strategy, &other.supersedes)
            && (self.priority, self.stand_down) == (other.priority, other.stand_down)
            && self.membership == other.membership
    }

    /// Parses what the API holds, in the API's own order of checks. It has no priority, does not stand down, and is in no
    /// group.
    ///
    /// # Errors
    ///
    /// Names the first field that makes the candidate unfit.
    pub fn parse(binary: &str, emulation: &str, strategy: &str) -> Result<Self, Rejection> {
        let emulation = parse_emulation(emulation)?;
        let binary = Version::parse(binary).map_err(Rejection::BinaryVersion)?;
        ordered(&binary, emulation.as_ref())?;
        let strategy = StrategyName::parse(strategy).map_err(Rejection::StrategyName)?;
        Ok(Self {
            binary: Some(binary),
            emulation,
            strategy,
            supersedes: None,
            priority: 0,
            stand_down: None,
            membership: None,
        })
    }

    /// The same for the API with a list of strategies (v1alpha1), which may also do without a binary version.
    ///
    /// # Errors
    ///
    /// Names the first field that makes the candidate unfit. An empty list is one: it wishes for nothing.
    pub fn parse_list(
        binary: &str,
        emulation: &str,
        strategies: &[impl AsRef<str>],
    ) -> Result<Self, Rejection> {
        let emulation = parse_emulation(emulation)?;
        let binary = match binary {
            "" => None,
            text => Some(Version::parse(text).map_err(Rejection::BinaryVersion)?),
        };
        if let Some(binary) = &binary {
            ordered(binary, emulation.as_ref())?;
        }
        let strategies: Result<Vec<_>, _> = strategies
            .iter()
            .map(|text| StrategyName::parse(text.as_ref()))
            .collect();
        let mut strategies = strategies
            .map_err(Rejection::PreferredStrategies)?
            .into_iter();
        let strategy = strategies
            .next()
            .ok_or(Rejection::PreferredStrategies(StrategyNameError::Empty))?;
        Ok(Self {
            binary,
            emulation,
            strategy,
            supersedes: Some(strategies.collect()),
            priority: 0,
            stand_down: None,
            membership: None,
        })
    }
}

fn parse_emulation(text: &str) -> Result<Option<Version>, Rejection> {
    match text {
        "" => Ok(None),
        text => Version::parse(text)
            .map(Some)
            .map_err(Rejection::EmulationVersion),
    }
}

fn ordered(binary: &Version, emulation: Option<&Version>) -> Result<(), Rejection> {
    match emulation.filter(|emulation| *emulation > binary) {
        Some(emulation) => Err(Rejection::EmulationAboveBinary {
            emulation: emulation.clone(),
            binary: binary.clone(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_parsed_once() {
        let good = CandidateSpec::parse("1.2.0", "1.1.0", "OldestEmulationVersion").unwrap();
        assert_eq!(good.emulation, Some(Version::parse("1.1.0").unwrap()));
        for (binary, emulation, strategy, text) in [
            ("", "1.0.0", "a/b", "spec.binaryVersion is empty"),
            (
                "1.0",
                "",
                "a/b",
                "spec.binaryVersion is not a semantic version MAJOR.MINOR.PATCH",
            ),
            (
                "1.0.0",
                "x",
                "a/b",
                "spec.emulationVersion is not a semantic version MAJOR.MINOR.PATCH",
            ),
            (
                "1.30.0-alpha.1",
                "1.30.0",
                "a/b",
                "spec.emulationVersion 1.30.0 is above spec.binaryVersion 1.30.0-alpha.1",
            ),
            ("1.0.0", "", "", "spec.strategy is empty"),
        ] {
            assert_eq!(
                CandidateSpec::parse(binary, emulation, strategy)
                    .unwrap_err()
                    .to_string(),
                text
            );
        }
    }

    #[test]
    fn a_list_of_strategies_needs_no_binary_version() {
        let list =
            |binary, strategies: &[&str]| CandidateSpec::parse_list(binary, "1.1.0", strategies);
        let strategy = |text| StrategyName::parse(text).unwrap();
        let good = list("", &["a/b", "c/d", "OldestEmulationVersion"]).unwrap();
        assert_eq!((good.binary, good.strategy), (None, strategy("a/b")));
        assert_eq!(
            good.supersedes,
            Some(vec![
                strategy("c/d"),
                StrategyName::oldest_emulation_version()
            ])
        );
        for (binary, strategies, text) in [
            ("", &[] as &[&str], "spec.preferredStrategies is empty"),
            ("", &["a/b", ""], "spec.preferredStrategies is empty"),
            (
                "",
                &["a/b", "x"],
                "spec.preferredStrategies is neither OldestEmulationVersion nor a name of the form domain/name",
            ),
            (
                "1.0.0",
                &["a/b"],
                "spec.emulationVersion 1.1.0 is above spec.binaryVersion 1.0.0",
            ),
        ] {
            assert_eq!(list(binary, strategies).unwrap_err().to_string(), text);
        }
    }
}
