//! The candidates of a process in its group: their names, and the configuration of each.

use std::time::Duration;

use elector_api::names;
use elector_protocol::{Identity, LeaseKey};

use super::parts::{Parts, lease_name};
use crate::config::{Config, ConfigError, Setting};
use crate::identity::{LONGEST_NAME, pod_or_host_name, random_identity_within};
use crate::membership::PartMembership;
use crate::resolved_config::ResolvedConfig;

/// One process of a group, before its run.
#[derive(Clone, Debug)]
pub(super) struct GroupMember {
    /// The group, as a lease of its name would be called.
    pub(super) group: LeaseKey,
    /// The name of the process.
    pub(super) member: Identity,
    /// The configuration for each part, in the order of the parts.
    pub(super) configs: Vec<ResolvedConfig>,
}

// === impl GroupMember ===

impl GroupMember {
    /// Checks everything that can be checked without asking the cluster, whose own namespace is `namespace`.
    pub(super) fn new(
        given: &Config,
        parts: &Parts,
        namespace: &str,
        request_timeout: Duration,
    ) -> Result<Self, ConfigError> {
        let by_flags = given.by_flags;
        let member = Self::resolve(given, parts, namespace, request_timeout);
        member.map_err(|error| error.named_by_flag(by_flags))
    }

    fn resolve(
        given: &Config,
        parts: &Parts,
        namespace: &str,
        request_timeout: Duration,
    ) -> Result<Self, ConfigError> {
        if let Some(error) = names::dns_label(&given.lease).first() {
            let rule = format!("is refused: it is the name of a group: {error}");
            return Err(ConfigError::new(Setting::GROUP, rule));
        }
        parts.validate()?;
        if given.one_term {
            let rule = "is set, but a part that was lost is a candidate's again";
            return Err(ConfigError::new(Setting::ONE_TERM, rule));
        }
        let parts: Vec<(String, String)> = parts
            .names()
            .into_iter()
            .map(|part| (lease_name(&given.lease, &part), part))
            .collect();
        let longest = parts.iter().map(|(lease, _)| lease.len()).max();
        let member = member_name(given, LONGEST_NAME - 1 - longest.unwrap_or_default())?;
        let group = LeaseKey::new(
            given.namespace.as_deref().unwrap_or(namespace),
            &*given.lease,
        );
        let configs = parts.into_iter().map(|(lease, part)| {
            let identity = format!("{member}.{lease}");
            let membership = PartMembership {
                group: group.name.clone(),
                member: member.clone(),
                part: part.into(),
            };
            let config = Config {
                lease,
                identity: Some(identity),
                membership: Some(membership),
                // A part whose work failed is given back, and this process pauses for it alone.
                retry_work: true,
                ..given.clone()
            };
            ResolvedConfig::new(config, namespace, request_timeout)
        });
        Ok(Self {
            configs: configs.collect::<Result<_, _>>()?,
            group,
            member,
        })
    }
}

/// The name of the process, which leaves room for those of its leases.
fn member_name(given: &Config, longest: usize) -> Result<Identity, ConfigError> {
    let refused = |rule| Err(ConfigError::new(Setting::IDENTITY, rule));
    let Some(identity) = &given.identity else {
        let process = given.process_name.clone().unwrap_or_else(pod_or_host_name);
        return Ok(random_identity_within(&process, longest));
    };
    if identity.len() > longest {
        return refused(format!(
            "is refused: has {} characters, and the names of the parts leave room for {longest}",
            identity.len()
        ));
    }
    match Identity::new(identity.as_str()) {
        Some(identity) => Ok(identity),
        None => refused("is empty".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use elector_api::{CandidateApi, GROUP_LABEL, MEMBER_ANNOTATION};

    use super::*;

    fn member(config: &Config, parts: &Parts) -> Result<GroupMember, ConfigError> {
        GroupMember::new(config, parts, "ns", Duration::MAX)
    }

    #[test]
    fn each_candidate_bears_the_marks_of_its_group_and_of_its_process() {
        let parts = Parts::named(["certs", "routes"]);
        let config = Config::new("web", "1.2.3").process_name("web-7d4b9-x2x9z");
        let made = member(&config, &parts).unwrap();
        let digits = made.member.as_str().strip_prefix("web-7d4b9-x2x9z-");
        assert_eq!(digits.unwrap().len(), 16);
        for (config, part) in made.configs.iter().zip(["certs", "routes"]) {
            assert_eq!(config.lease, LeaseKey::new("ns", format!("web-{part}")));
            assert!(config.given.retry_work, "by itself, for each part");
            let name = format!("{}.web-{part}", made.member);
            let object = config.object(CandidateApi::V1Beta1);
            assert_eq!(object.metadata.name, Some(name));
            assert_eq!(object.metadata.labels.unwrap()[GROUP_LABEL], "web");
            let annotations = object.metadata.annotations.unwrap();
            assert_eq!(annotations[MEMBER_ANNOTATION], made.member.as_str());
        }
    }

    #[test]
    fn the_longest_names_of_all_leave_room_for_the_random_part() {
        let (group, part) = ("g".repeat(63), "p".repeat(63));
        let parts = Parts::named(["a", &part]);
        let config = Config::new(&group, "1.2.3").process_name("x".repeat(253));
        let made = member(&config, &parts).unwrap();
        assert_eq!(made.configs[1].identity.as_str().len(), LONGEST_NAME);
        let member_ends = made.member.as_str().rsplit_once('-').unwrap().1.len();
        assert_eq!(member_ends, 16);
    }

    #[test]
    fn what_no_group_can_have_is_refused_by_its_setting() {
        let config = || Config::new("web", "1.2.3");
        let parts = Parts::named(["a"]);
        for (config, setting, text) in [
            (
                Config::new("Web", "1.2.3"),
                "lease",
                "lease is refused: it is the name of a group: a ",
            ),
            (
                Config::new("w".repeat(64), "1.2.3"),
                "lease",
                "lease is refused: it is the name of a group: must be",
            ),
            (config().one_term(true), "one_term", "one_term is set, but"),
            (
                config().identity("x".repeat(248)),
                "identity",
                "identity is refused: has 248 characters, and the names of the parts leave room for 247",
            ),
            (config().identity(""), "identity", "identity is empty"),
            (config().strategy("oldest"), "strategy", "strategy is"),
        ] {
            let error = member(&config, &parts).unwrap_err();
            assert_eq!(error.setting(), setting);
            assert!(error.to_string().starts_with(text), "{error}");
        }
        assert!(member(&config(), &Parts::by_uid(0)).is_err());
        assert!(member(&config().identity("x".repeat(247)), &parts).is_ok());
    }
}
