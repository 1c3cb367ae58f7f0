//! From a LeaseCandidate on the wire to the protocol's candidate.

use std::sync::Arc;
use std::time::Duration;

use elector_protocol::{
    CandidateRecord, CandidateSpec, Identity, LONGEST_LEASE, Rejection, StandDown, Timestamp,
};

use crate::annotation;
use crate::candidate::LeaseCandidate;
use crate::convert_lease::{revision, unreadable_annotation};
use crate::duration::parse_duration_or_seconds;
use crate::field::{FieldError, Malformed};
use crate::time::{creation_time, parse_time};
use crate::validate::{LEASE_NAME_RULE, names};

// === impl LeaseCandidate ===

impl LeaseCandidate {
    /// This revision, for the protocol to judge. A candidate with an unreadable field is one, with the field as the
    /// reason why it cannot be elected.
    ///
    /// `spec.leaseName` must be a name that a Lease can have. The API of Kubernetes takes any text that is not empty,
    /// but for most texts no server ever takes the Lease: an election would try to create it for ever.
    ///
    /// # Errors
    ///
    /// Where it belongs to no election or could not be written: name, leaseName, uid or resourceVersion is missing,
    /// leaseName is the name of no Lease, or resourceVersion is no integer.
    pub fn candidate(&self) -> Result<CandidateRecord, Malformed> {
        let spec = &self.spec;
        let metadata = &self.metadata;
        let missing = |path: &str| {
            let fault = self.faults().iter().find(|fault| fault.field == path);
            self.malformed(
                fault
                    .cloned()
                    .unwrap_or_else(|| FieldError::required(path, "")),
            )
        };
        let name = metadata.name.as_deref().and_then(Identity::new);
        let name = name.ok_or_else(|| missing("metadata.name"))?;
        if spec.lease_name.is_empty() {
            return Err(missing("spec.leaseName"));
        }
        if !names::dns_subdomain(&spec.lease_name).is_empty() {
            let (path, text) = ("spec.leaseName", spec.lease_name.as_str());
            let error = FieldError::unreadable(path, text, LEASE_NAME_RULE);
            return Err(self.malformed(error));
        }
        let (uid, version) = revision(metadata).map_err(|error| self.malformed(error))?;
        Ok(CandidateRecord {
            name,
            uid,
            version,
            // Go's zero time, as the server has it for an object that says nothing.
            created: creation_time(metadata).unwrap_or(Timestamp::MIN),
            ping: spec.ping_time,
            renew: spec.renew_time,
            marked: self.annotation(annotation::PROTOCOL) == Some(annotation::PROTOCOL_VERSION),
            announced: self
                .announced()
                .ok()
                .flatten()
                .map(|duration| duration.min(LONGEST_LEASE)),
            deleting: metadata.deletion_timestamp.is_some(),
            spec: self.offer().into(),
        })
    }

    /// Nonsense in Elector's own annotations, for the log: it is ignored, or counts as the nearest bound.
    pub fn notes(&self) -> Vec<FieldError> {
        let announced = self.announced();
        let too_long = matches!(announced, Ok(Some(duration)) if duration > LONGEST_LEASE);
        let note = announced.err().or_else(|| {
            let text = self
                .annotation(annotation::LEASE_DURATION)
                .filter(|_| too_long)?;
            Some(unreadable_annotation(
                annotation::LEASE_DURATION,
                text,
                "is above one hour and counts as one hour",
            ))
        });
        note.into_iter()
            .chain(self.read_stand_down().err())
            .chain(self.priority().err())
            .chain(self.membership().err())
            .collect()
    }

    /// That an operator wants it not to lead (annotation [`STAND_DOWN`](annotation::STAND_DOWN)).
    pub fn stand_down(&self) -> Option<StandDown> {
        self.read_stand_down().ok().flatten()
    }

    /// Marks this candidate as one that speaks Elector's protocol, and announces the lease duration that it will use.
    #[must_use]
    pub fn marked(mut self, lease_duration: Duration) -> Self {
        let seconds = lease_duration.as_secs() + u64::from(lease_duration.subsec_nanos() > 0);
        let map = self.metadata.annotations.get_or_insert_default();
        map.insert(
            annotation::PROTOCOL.to_owned(),
            annotation::PROTOCOL_VERSION.to_owned(),
        );
        map.insert(annotation::LEASE_DURATION.to_owned(), format!("{seconds}s"));
        self
    }

    fn offer(&self) -> Result<CandidateSpec, Rejection> {
        if let Some(fault) = self.faults().first() {
            return Err(Rejection::Malformed(fault.to_string()));
        }
        let spec = &self.spec;
        let (binary, emulation) = (&spec.binary_version, &spec.emulation_version);
        let mut offer = if self.api.lists_strategies() {
            CandidateSpec::parse_list(binary, emulation, &spec.preferred_strategies)?
        } else {
            CandidateSpec::parse(binary, emulation, &spec.strategy)?
        };
        if spec.renew_time.is_none() {
            return Err(Rejection::NoRenewTime);
        }
        offer.priority = self.priority().unwrap_or_default();
        offer.stand_down = self.stand_down();
        offer.membership = self.membership().ok().flatten().map(Arc::new);
        Ok(offer)
    }

    /// The operator's word on whether it is to lead.
    fn read_stand_down(&self) -> Result<Option<StandDown>, FieldError> {
        let name = annotation::STAND_DOWN;
        match self.annotation(name) {
            None => Ok(None),
            Some("true") => Ok(Some(StandDown::Untimed)),
            Some(text) => parse_time(text)
                .map(|until| Some(StandDown::Until(until)))
                .map_err(|why| unreadable_annotation(name, text, format!("{why}, or \"true\""))),
        }
    }

    /// Its priority, 0 where it has none.
    fn priority(&self) -> Result<i32, FieldError> {
        let name = annotation::PRIORITY;
        let Some(text) = self.annotation(name) else {
            return Ok(0);
        };
        // A sign or a leading zero would be a second way to write the same.
        let canonical = |priority: &i32| *priority > 0 && priority.to_string() == text;
        text.parse().ok().filter(canonical).ok_or_else(|| {
            unreadable_annotation(name, text, "must be an integer from 1 to 2147483647")
        })
    }

    /// The announced lease duration as written, above the bound too.
    fn announced(&self) -> Result<Option<Duration>, FieldError> {
        let Some(text) = self.annotation(annotation::LEASE_DURATION) else {
            return Ok(None);
        };
        let name = annotation::LEASE_DURATION;
        match parse_duration_or_seconds(text) {
            Ok(Duration::ZERO) => Err(unreadable_annotation(name, text, "must be greater than 0")),
            Ok(duration) => Ok(Some(duration)),
            Err(why) => Err(unreadable_annotation(name, text, why)),
        }
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        let map = self.metadata.annotations.as_ref()?;
        map.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::{ResourceVersion, StrategyNameError, VersionError};
    use serde_json::{Value, json};

    use super::*;
    use crate::CandidateApi;

    fn good() -> Value {
        json!({
            "metadata": {
                "namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "9",
                "creationTimestamp": "1970-01-01T00:00:01Z",
            },
            "spec": {
                "leaseName": "l", "binaryVersion": "1.2.0", "emulationVersion": "1.1.0", "strategy": "a/b",
                "pingTime": "1970-01-01T00:00:00.000001Z", "renewTime": "1970-01-01T00:00:00Z",
            },
        })
    }

    fn with(pointer: &str, value: Value) -> LeaseCandidate {
        let mut wire = good();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        wire.pointer_mut(parent).unwrap()[name] = value;
        LeaseCandidate::from_value(wire)
    }

    #[test]
    fn a_candidate_is_read_whole() {
        let candidate = LeaseCandidate::from_value(good()).candidate().unwrap();
        assert_eq!(
            candidate,
            CandidateRecord {
                name: Identity::new("a").unwrap(),
                uid: elector_protocol::Uid::new("u"),
                version: ResourceVersion(9),
                created: Timestamp::from_micros(1_000_000).unwrap(),
                ping: Timestamp::from_micros(1),
                renew: Timestamp::from_micros(0),
                marked: false,
                announced: None,
                deleting: false,
                spec: CandidateSpec::parse("1.2.0", "1.1.0", "a/b").into(),
            }
        );
    }

    #[test]
    fn a_list_of_strategies_is_read_where_the_api_has_one() {
        let mut candidate = with("/spec/preferredStrategies", json!(["c/d", "a/b"]));
        candidate.spec.binary_version.clear();
        let read = |candidate: &LeaseCandidate| {
            let read = candidate.candidate().unwrap();
            read.offer().cloned().map_err(Rejection::clone)
        };
        let expected = Err(Rejection::BinaryVersion(VersionError::Empty));
        assert_eq!(read(&candidate), expected);
        candidate.api = CandidateApi::V1Alpha1;
        let expected = CandidateSpec::parse_list("", "1.1.0", &["c/d", "a/b"]);
        assert_eq!(read(&candidate), expected);
        candidate.spec.preferred_strategies.clear();
        let expected = Err(Rejection::PreferredStrategies(StrategyNameError::Empty));
        assert_eq!(read(&candidate), expected);
    }

    #[test]
    fn what_cannot_be_elected_says_why() {
        for (pointer, value, expected) in [
            ("/spec/binaryVersion", json!(null), Rejection::BinaryVersion(VersionError::Empty)),
            ("/spec/strategy", json!("x"), Rejection::StrategyName(StrategyNameError::Unknown)),
            ("/spec/renewTime", json!(null), Rejection::NoRenewTime),
            (
                "/spec/renewTime",
                json!("x"),
                Rejection::Malformed(
                    "spec.renewTime: Invalid value: \"x\": must be an RFC 3339 time of the years 1 to 9999".into(),
                ),
            ),
            (
                "/metadata/labels",
                json!([]),
                Rejection::Malformed("metadata.labels: Invalid value: []: must be a map of strings".into()),
            ),
        ] {
            assert_eq!(with(pointer, value).candidate().unwrap().offer(), Err(&expected), "{pointer}");
        }
    }

    #[test]
    fn what_belongs_to_no_election_is_an_error() {
        for (pointer, value, text) in [
            ("/metadata/name", json!(""), "metadata.name: Required value"),
            ("/metadata/uid", json!(null), "metadata.uid: Required value"),
            (
                "/spec/leaseName",
                json!(""),
                "spec.leaseName: Required value",
            ),
            (
                "/spec/leaseName",
                json!(3),
                "spec.leaseName: Invalid value: 3: must be a string",
            ),
            (
                "/spec/leaseName",
                json!("Not/A.Name "),
                "spec.leaseName: Invalid value: \"Not/A.Name \": must be the name of a Lease: a lowercase RFC 1123 \
                 subdomain of at most 253 characters",
            ),
            (
                "/metadata/resourceVersion",
                json!(null),
                "metadata.resourceVersion: Required value",
            ),
            (
                "/metadata/resourceVersion",
                json!("1x"),
                "metadata.resourceVersion: Invalid value: \"1x\": must be an integer",
            ),
        ] {
            let error = with(pointer, value).candidate().unwrap_err();
            assert_eq!(error.error.to_string(), text);
            let expected = ("LeaseCandidate", "ns");
            assert_eq!((error.kind, error.namespace.as_str()), expected);
        }
    }

    #[test]
    fn a_candidate_names_a_lease_that_can_exist() {
        let named = |name: &str| with("/spec/leaseName", json!(name)).candidate();
        for name in ["l", "0.a-b.c", &"a".repeat(253)] {
            assert!(named(name).is_ok(), "{name}");
        }
        let (longer, megabyte) = ("a".repeat(254), "a".repeat(1 << 20));
        for name in [
            "A", "a/b", "a b", "-a", "a.", "a..b", "ä", &longer, &megabyte,
        ] {
            let text = named(name).unwrap_err().to_string();
            assert!(text.contains("must be the name of a Lease"), "{text}");
            assert!(text.len() < 300, "{} bytes", text.len());
        }
    }

    #[test]
    fn a_candidate_with_a_deletion_timestamp_is_being_deleted() {
        let deleted = with("/metadata/deletionTimestamp", json!("2026-01-02T03:04:05Z"));
        assert!(deleted.candidate().unwrap().deleting);
    }

    #[test]
    fn only_this_protocol_version_is_marked() {
        for (version, marked) in [("1", true), ("2", false), ("", false), ("true", false)] {
            let candidate = with(
                "/metadata/annotations",
                json!({ "elector.dev/protocol": version }),
            );
            assert_eq!(candidate.candidate().unwrap().marked, marked, "{version}");
        }
    }

    #[test]
    fn an_announced_duration_is_bounded_and_nonsense_is_noted() {
        let seconds = Duration::from_secs;
        for (text, announced, note) in [
            ("15s", Some(seconds(15)), None),
            ("15", Some(seconds(15)), None),
            ("1h", Some(seconds(3600)), None),
            (
                "2h",
                Some(seconds(3600)),
                Some("is above one hour and counts as one hour"),
            ),
            ("0s", None, Some("must be greater than 0")),
            ("-5s", None, Some("must not be negative")),
            (
                "soon",
                None,
                Some("must be a duration such as 15s, 1m30s or 250ms"),
            ),
        ] {
            let candidate = with(
                "/metadata/annotations",
                json!({ "elector.dev/lease-duration": text }),
            );
            let expected = announced;
            assert_eq!(candidate.candidate().unwrap().announced, expected, "{text}");
            let notes: Vec<_> = candidate.notes().iter().map(ToString::to_string).collect();
            let expected = note.map(|rule| {
                format!("metadata.annotations[elector.dev/lease-duration]: Invalid value: {text:?}: {rule}")
            });
            assert_eq!(notes, Vec::from_iter(expected));
        }
    }

    /// (R16) Anything but a time and one other value is ignored and noted.
    #[test]
    fn an_operator_has_a_candidate_stand_down_by_a_time_or_one_value() {
        let told = |text: &str| {
            let wire = json!({ "elector.dev/stand-down": text });
            let candidate = with("/metadata/annotations", wire);
            let notes: Vec<_> = candidate.notes().iter().map(ToString::to_string).collect();
            let read = candidate.candidate().unwrap();
            (read.offer().unwrap().stand_down, notes)
        };
        assert_eq!(told("true"), (Some(StandDown::Untimed), vec![]));
        let until = Timestamp::from_micros(1_700_000_000_000_000).unwrap();
        let until = Some(StandDown::Until(until));
        assert_eq!(told("2023-11-14T22:13:20Z"), (until, vec![]));
        assert_eq!(told("2023-11-14T23:13:20.000+01:00"), (until, vec![]));
        for text in ["false", "", "True", "1h", "2023-11-14"] {
            let (said, notes) = told(text);
            assert_eq!(said, None, "{text}");
            let why = parse_time(text).unwrap_err();
            let note = format!(
                "metadata.annotations[elector.dev/stand-down]: Invalid value: {text:?}: {why}, or \"true\""
            );
            assert_eq!(notes, [note]);
        }
    }

    #[test]
    fn a_priority_is_a_positive_integer_and_anything_else_is_ignored_and_noted() {
        let told = |text: &str| {
            let wire = json!({ "elector.dev/priority": text });
            let candidate = with("/metadata/annotations", wire);
            let notes: Vec<_> = candidate.notes().iter().map(ToString::to_string).collect();
            let read = candidate.candidate().unwrap();
            (read.offer().unwrap().priority, notes)
        };
        for (text, priority) in [("1", 1), ("100", 100), ("2147483647", i32::MAX)] {
            assert_eq!(told(text), (priority, vec![]));
        }
        for text in ["0", "-1", "", "+1", "01", "1.5", "high", "2147483648"] {
            let note = format!(
                "metadata.annotations[elector.dev/priority]: Invalid value: {text:?}: must be an integer from 1 to \
                 2147483647"
            );
            assert_eq!(told(text), (0, vec![note]));
        }
    }

    #[test]
    fn marking_reads_back() {
        let wire = LeaseCandidate::from_value(good()).marked(Duration::from_millis(14_001));
        let candidate = wire.candidate().unwrap();
        let expected = (true, Some(Duration::from_secs(15)));
        assert_eq!((candidate.marked, candidate.announced), expected);
        let whole = wire.marked(Duration::from_secs(7)).candidate().unwrap();
        assert_eq!(whole.announced, Some(Duration::from_secs(7)));
    }
}
