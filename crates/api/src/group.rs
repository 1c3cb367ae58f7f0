//! Groups of leases on the wire: the label that names the group, and the annotation that names a member.

use std::sync::Arc;

use elector_protocol::{Identity, Membership};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::candidate::LeaseCandidate;
use crate::field::FieldError;
use crate::lease::Lease;
use crate::validate::names;

/// On a Lease and on the LeaseCandidates that name it, a label: the group that the Lease is a part of.
pub const GROUP_LABEL: &str = "elector.dev/group";

/// On a LeaseCandidate: the process that it belongs to, which has one candidate for each part of the group. The name of
/// the candidate is the member's, a dot, and the name of the Lease.
pub const MEMBER_ANNOTATION: &str = "elector.dev/member";

/// The rule for the name of a group.
const GROUP_RULE: &str = "must be the value of a label: at most 63 letters, digits, '-', '_' and '.', with a letter or a \
                          digit at each end";

/// True if a group can have this name.
fn is_group_name(name: &str) -> bool {
    let alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    bytes.len() <= 63
        && alphanumeric(bytes.first())
        && alphanumeric(bytes.last())
        && bytes.iter().all(inner)
}

/// The group that labels name.
fn group_of(metadata: &ObjectMeta) -> Result<Option<&str>, FieldError> {
    let labels = metadata.labels.as_ref();
    match labels.and_then(|labels| labels.get(GROUP_LABEL)) {
        None => Ok(None),
        Some(name) if is_group_name(name) => Ok(Some(name)),
        Some(name) => {
            let path = format!("metadata.labels[{GROUP_LABEL}]");
            Err(FieldError::unreadable(path, name.as_str(), GROUP_RULE))
        }
    }
}

// === impl Lease ===

impl Lease {
    /// The group that it is a part of, by its label [`GROUP_LABEL`].
    ///
    /// # Errors
    ///
    /// Where no group can have that name. The Lease then counts as one of no group.
    pub fn group(&self) -> Result<Option<&str>, FieldError> {
        group_of(&self.metadata)
    }

    /// The same Lease as a part of that group.
    #[must_use]
    pub fn in_group(mut self, group: Option<&str>) -> Self {
        if let Some(group) = group {
            let labels = self.metadata.labels.get_or_insert_default();
            labels.insert(GROUP_LABEL.to_owned(), group.to_owned());
        }
        self
    }
}

// === impl LeaseCandidate ===

impl LeaseCandidate {
    /// The group and the process that it stands for, by label [`GROUP_LABEL`] and annotation [`MEMBER_ANNOTATION`]; `None`
    /// where it has neither.
    ///
    /// # Errors
    ///
    /// Where one is missing, no group or process can have that name, or the name of the candidate is not the member's, a
    /// dot and the name of the Lease. The candidate then counts as one of no group.
    pub fn membership(&self) -> Result<Option<Membership>, FieldError> {
        let path = || format!("metadata.annotations[{MEMBER_ANNOTATION}]");
        let annotations = self.metadata.annotations.as_ref();
        let member = annotations.and_then(|all| all.get(MEMBER_ANNOTATION));
        let (group, member) = match (group_of(&self.metadata)?, member) {
            (None, None) => return Ok(None),
            (Some(_), None) => {
                let why = format!("a candidate with the label {GROUP_LABEL} names its process");
                return Err(FieldError::required(path(), &why));
            }
            (None, Some(_)) => {
                let label = format!("metadata.labels[{GROUP_LABEL}]");
                let why =
                    format!("a candidate with the annotation {MEMBER_ANNOTATION} names its group");
                return Err(FieldError::required(label, &why));
            }
            (Some(group), Some(member)) => (group, member),
        };
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let lease = &self.spec.lease_name;
        let belongs = name
            .strip_suffix(lease.as_str())
            .and_then(|rest| rest.strip_suffix('.'))
            == Some(member.as_str());
        match Identity::new(member.as_str())
            .filter(|_| belongs && names::dns_subdomain(member).is_empty())
        {
            Some(member) => Ok(Some(Membership {
                group: Arc::from(group),
                member,
            })),
            None => {
                let rule = "must be what the name of the candidate begins with, before a dot and the name of the Lease";
                Err(FieldError::unreadable(path(), member.as_str(), rule))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn candidate(name: &str, group: Option<&str>, member: Option<&str>) -> LeaseCandidate {
        LeaseCandidate::from_value(json!({
            "metadata": {
                "namespace": "ns", "name": name, "uid": "u", "resourceVersion": "9",
                "labels": group.map(|group| json!({GROUP_LABEL: group})),
                "annotations": member.map(|member| json!({MEMBER_ANNOTATION: member})),
            },
            "spec": {
                "leaseName": "web-certs", "binaryVersion": "1.2.0", "emulationVersion": "1.1.0", "strategy": "a/b",
                "renewTime": "1970-01-01T00:00:00Z",
            },
        }))
    }

    #[test]
    fn a_candidate_of_a_member_says_so_three_times() {
        let name = "web-0-0123456789abcdef.web-certs";
        let member = "web-0-0123456789abcdef";
        let good = candidate(name, Some("web"), Some(member));
        let membership = good.membership().unwrap().unwrap();
        let expected = ("web", member);
        assert_eq!((&*membership.group, membership.member.as_str()), expected);
        let read = good.candidate().unwrap();
        let expected = Some(&membership);
        assert_eq!(read.offer().unwrap().membership.as_deref(), expected);
        assert_eq!(candidate(name, None, None).membership(), Ok(None));
        for (name, group, member, text) in [
            (
                name,
                Some("web"),
                None,
                "metadata.annotations[elector.dev/member]: Required value: a candidate with the label elector.dev/group \
                 names its process",
            ),
            (
                name,
                None,
                Some(member),
                "metadata.labels[elector.dev/group]: Required value: a candidate with the annotation elector.dev/member \
                 names its group",
            ),
            (
                name,
                Some("we b"),
                Some(member),
                &format!(
                    "metadata.labels[elector.dev/group]: Invalid value: \"we b\": {GROUP_RULE}"
                ),
            ),
            (
                "web-1-0123456789abcdef.web-certs",
                Some("web"),
                Some(member),
                "metadata.annotations[elector.dev/member]: Invalid value: \"web-0-0123456789abcdef\": must be what the \
                 name of the candidate begins with, before a dot and the name of the Lease",
            ),
        ] {
            let bad = candidate(name, group, member);
            assert_eq!(bad.membership().unwrap_err().to_string(), text);
            // It is a candidate all the same, of no group, and the log says why.
            assert_eq!(bad.candidate().unwrap().offer().unwrap().membership, None);
            let notes: Vec<_> = bad.notes().iter().map(ToString::to_string).collect();
            assert_eq!(notes, [text]);
        }
    }

    #[test]
    fn a_group_has_the_name_of_a_label() {
        for (name, good) in [
            ("web", true),
            ("A.b_c-9", true),
            ("g".repeat(63).as_str(), true),
            ("g".repeat(64).as_str(), false),
            ("", false),
            ("-web", false),
            ("web.", false),
            ("we b", false),
            ("wéb", false),
        ] {
            let lease = Lease::default().in_group(Some(name));
            let group = lease.group().ok().flatten();
            assert_eq!(group, good.then_some(name), "{name}");
        }
    }
}
