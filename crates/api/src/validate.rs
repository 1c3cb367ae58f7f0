//! The API server's validation of Leases and LeaseCandidates: every error at once, with its paths and words.
//!
//! It runs on create and on update, with the feature gate on or off, and changes nothing. What it does not check is as
//! deliberate: a holder may be any text, times may stand in any relation, transitions may go down.
//!
//! `spec.leaseName` of a candidate differs on purpose. Kubernetes checks that it is not empty, and so does the
//! validation of its kinds here. The custom resource takes only the name of a Lease that can exist, and no candidate of
//! either kind with another name is admitted to an election ([`LeaseCandidate::candidate`]).

mod metadata;
pub mod names;

use elector_protocol::StrategyName;
use semver::Version;

use crate::candidate::{LeaseCandidate, LeaseCandidateSpec};
use crate::candidate_api::CandidateApi;
use crate::field::FieldError;
use crate::lease::{Lease, LeaseSpec};
use metadata::{validate_metadata, validate_metadata_update};
use names::{config_key, dns_subdomain, qualified_name};

/// Checks a Lease that is to be created. Empty where the API server would take it.
///
/// ```
/// use elector_api::{Lease, validate_lease};
///
/// let lease: Lease = serde_json::from_str(
///     r#"{"metadata": {"namespace": "ns", "name": "l"}, "spec": {"leaseDurationSeconds": 0}}"#,
/// )
/// .unwrap();
/// assert_eq!(
///     validate_lease(&lease)[0].to_string(),
///     "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"
/// );
/// ```
pub fn validate_lease(lease: &Lease) -> Vec<FieldError> {
    let mut errors = lease.faults().to_vec();
    validate_metadata(&lease.metadata, dns_subdomain, &mut errors);
    lease_spec(&lease.spec, &mut errors);
    errors
}

/// Checks a Lease that is to replace `old`. Empty where the API server would take it.
pub fn validate_lease_update(lease: &Lease, old: &Lease) -> Vec<FieldError> {
    let mut errors = lease.faults().to_vec();
    validate_metadata_update(&lease.metadata, &old.metadata, &mut errors);
    lease_spec(&lease.spec, &mut errors);
    errors
}

/// Checks a LeaseCandidate that is to be created. Empty where the API server would take it.
pub fn validate_candidate(candidate: &LeaseCandidate) -> Vec<FieldError> {
    let mut errors = candidate.faults().to_vec();
    let name = match candidate.api {
        // So that identities of the form hostname_uuid fit.
        CandidateApi::V1Beta1 | CandidateApi::V1Alpha2 | CandidateApi::V1Alpha1 => config_key,
        // A custom resource has no say in this.
        CandidateApi::Elector => dns_subdomain,
    };
    validate_metadata(&candidate.metadata, name, &mut errors);
    candidate_spec(candidate.api, &candidate.spec, &mut errors);
    errors
}

/// Checks a LeaseCandidate that is to replace `old`. Empty where the API server would take it.
pub fn validate_candidate_update(
    candidate: &LeaseCandidate,
    old: &LeaseCandidate,
) -> Vec<FieldError> {
    let mut errors = candidate.faults().to_vec();
    validate_metadata_update(&candidate.metadata, &old.metadata, &mut errors);
    candidate_spec(candidate.api, &candidate.spec, &mut errors);
    let name = &candidate.spec.lease_name;
    if *name != old.spec.lease_name {
        errors.push(FieldError::immutable("spec.leaseName", name.as_str()));
    }
    errors
}

/// The rule of [`LeaseCandidate::candidate`] and the custom resource on `spec.leaseName`.
pub(crate) const LEASE_NAME_RULE: &str =
    "must be the name of a Lease: a lowercase RFC 1123 subdomain of at most 253 characters";

/// The longest name of a Lease, in characters.
const LONGEST_LEASE_NAME: usize = 253;

/// The longest version of a custom resource, in characters: what its rules cost must have a bound.
const LONGEST_VERSION: usize = 256;

fn lease_spec(spec: &LeaseSpec, errors: &mut Vec<FieldError>) {
    if let Some(seconds) = spec.lease_duration_seconds.filter(|seconds| *seconds <= 0) {
        let rule = "must be greater than 0";
        errors.push(FieldError::invalid(
            "spec.leaseDurationSeconds",
            seconds,
            rule,
        ));
    }
    if let Some(transitions) = spec
        .lease_transitions
        .filter(|transitions| *transitions < 0)
    {
        let rule = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(
            "spec.leaseTransitions",
            transitions,
            rule,
        ));
    }
    if let Some(text) = &spec.strategy {
        strategy("spec.strategy", text, errors);
    }
    let preferred = spec
        .preferred_holder
        .as_ref()
        .is_some_and(|text| !text.is_empty());
    if preferred && spec.strategy.as_ref().is_none_or(String::is_empty) {
        let why = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden("spec.preferredHolder", why));
    }
}

fn candidate_spec(api: CandidateApi, spec: &LeaseCandidateSpec, errors: &mut Vec<FieldError>) {
    // A field that is there but unreadable has had its error.
    let missing = |name: &str, text: &str| text.is_empty() && !spec.other.contains_key(name);
    if missing("leaseName", &spec.lease_name) {
        errors.push(FieldError::required("spec.leaseName", ""));
    } else if api == CandidateApi::Elector && !spec.lease_name.is_empty() {
        errors.extend(lease_name(&spec.lease_name));
    }
    let emulation = version("spec.emulationVersion", &spec.emulation_version, errors);
    if missing("binaryVersion", &spec.binary_version) && !api.lists_strategies() {
        errors.push(FieldError::required("spec.binaryVersion", ""));
    }
    let binary = version("spec.binaryVersion", &spec.binary_version, errors);
    if api == CandidateApi::Elector {
        let long = |(_, text): &(&str, &String)| text.chars().count() > LONGEST_VERSION;
        let versions = [
            ("spec.binaryVersion", &spec.binary_version),
            ("spec.emulationVersion", &spec.emulation_version),
        ];
        errors.extend(
            versions
                .into_iter()
                .filter(long)
                .map(|(path, _)| FieldError::too_long(path, LONGEST_VERSION)),
        );
    }
    let both = !spec.binary_version.is_empty() && !spec.emulation_version.is_empty();
    if both && binary.cmp_precedence(&emulation).is_lt() {
        let rule = "must be greater than or equal to `emulationVersion`";
        errors.push(FieldError::invalid(
            "spec.binaryVersion",
            spec.binary_version.as_str(),
            rule,
        ));
    }
    if api.lists_strategies() {
        strategy_list(&spec.preferred_strategies, &binary, &emulation, errors);
    } else if missing("strategy", &spec.strategy) {
        errors.push(FieldError::required("spec.strategy", ""));
    } else if !spec.strategy.is_empty() {
        needs_version(&spec.strategy, "spec.emulationVersion", &emulation, errors);
        strategy("spec.strategy", &spec.strategy, errors);
    }
}

/// The custom resource's own rule. What is too long is not looked at any further.
fn lease_name(text: &str) -> Option<FieldError> {
    let path = "spec.leaseName";
    if text.chars().count() > LONGEST_LEASE_NAME {
        return Some(FieldError::too_long(path, LONGEST_LEASE_NAME));
    }
    let illegal = !dns_subdomain(text).is_empty();
    illegal.then(|| FieldError::invalid(path, text, LEASE_NAME_RULE))
}

/// An empty list is taken, and so is one that repeats itself.
fn strategy_list(
    list: &[String],
    binary: &Version,
    emulation: &Version,
    errors: &mut Vec<FieldError>,
) {
    for (index, text) in list.iter().enumerate() {
        // Each lack of a version is said once.
        if !list[..index].contains(text) {
            needs_version(text, "spec.binaryVersion", binary, errors);
            needs_version(text, "spec.emulationVersion", emulation, errors);
        }
        strategy(&format!("spec.preferredStrategies[{index}]"), text, errors);
    }
}

/// The built-in strategy cannot do without versions, and 0.0.0 is none.
fn needs_version(strategy: &str, path: &str, version: &Version, errors: &mut Vec<FieldError>) {
    let zero = version.cmp_precedence(&Version::new(0, 0, 0)).is_eq();
    if strategy == StrategyName::OLDEST_EMULATION_VERSION && zero {
        let when = "must be specified when `strategy` is 'OldestEmulationVersion'";
        errors.push(FieldError::required(path, when));
    }
}

/// A version where the text is one; an unreadable one counts as 0.0.0 in the rules that follow, as an absent one does.
fn version(path: &str, text: &str, errors: &mut Vec<FieldError>) -> Version {
    // The server's parser takes numbers of 64 bits everywhere, also in the parts of a pre-release.
    let fits = |version: &Version| {
        let parts = version.pre.split('.');
        let mut numbers =
            parts.filter(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
        numbers.all(|part| part.parse::<u64>().is_ok())
    };
    let parsed = Version::parse(text).ok().filter(fits);
    if parsed.is_none() && !text.is_empty() {
        let rule = "must be a valid semantic version";
        errors.push(FieldError::invalid(path, text, rule));
    }
    parsed.unwrap_or(Version::new(0, 0, 0))
}

/// The path ends in the same word twice; that is how the API server reports it.
fn strategy(path: &str, text: &str, errors: &mut Vec<FieldError>) {
    let path = format!("{path}.strategy");
    if text.contains('/') {
        let rules = qualified_name(text);
        errors.extend(
            rules
                .into_iter()
                .map(|rule| FieldError::invalid(path.as_str(), text, rule)),
        );
    } else if text != StrategyName::OLDEST_EMULATION_VERSION {
        let supported = [StrategyName::OLDEST_EMULATION_VERSION];
        errors.push(FieldError::not_supported(path, text, &supported));
    }
}

#[cfg(test)]
mod tests;
