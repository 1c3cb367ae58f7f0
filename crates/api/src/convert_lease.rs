//! From a Lease on the wire to the protocol's record, and back onto the very object that was judged.

use std::fmt::Display;

use elector_protocol::{
    Identity, LeaseKey, LeaseRecord, LeaseSnapshot, LifeId, ResourceVersion, StrategyName, Term,
    Token, Uid,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::annotation;
use crate::carrier::{Carrier, given, put};
use crate::field::{FieldError, Malformed};
use crate::lease::Lease;

/// The value of an annotation that cannot be read: no holder accepts it, and it never equals a real one.
///
/// A record with an unreadable token is still a record with a token, so it counts as unproven rather than released
/// and not taken for a grant (R6, R8). The next grant clears it.
const UNREADABLE_TOKEN: Token = Token(ResourceVersion(0));

// === impl Lease ===

impl Lease {
    /// The election record of this Lease.
    ///
    /// # Errors
    ///
    /// Names the first field that cannot be read. Nonsense in Elector's own annotations is no error, see
    /// [`Self::notes`].
    pub fn record(&self) -> Result<LeaseRecord, Malformed> {
        if let Some(fault) = self.faults().first() {
            return Err(self.malformed(fault.clone()));
        }
        let spec = &self.spec;
        let (annotations, _) = Annotations::read(self);
        let strategy = match given(&spec.strategy) {
            Some(text) => {
                let parsed = StrategyName::parse(text);
                let error = |why| FieldError::unreadable("spec.strategy", text, format!("{why}"));
                Some(parsed.map_err(|why| self.malformed(error(why)))?)
            }
            None => annotations.strategy,
        };
        Ok(LeaseRecord {
            holder: spec.holder_identity.as_deref().and_then(Identity::new),
            duration_seconds: spec.lease_duration_seconds,
            acquire_time: spec.acquire_time,
            renew_time: spec.renew_time,
            term: Term(spec.lease_transitions.unwrap_or(0)),
            strategy,
            preferred_holder: given(&spec.preferred_holder)
                .and_then(Identity::new)
                .or(annotations.preferred_holder),
            token: annotations.token,
            token_term: annotations.token_term,
            life: annotations.life,
        })
    }

    /// This revision, for the protocol to judge.
    ///
    /// # Errors
    ///
    /// Names the first field that cannot be read, or a missing uid, or a resourceVersion that is missing or no integer.
    pub fn snapshot(&self) -> Result<LeaseSnapshot, Malformed> {
        let (uid, version) = revision(&self.metadata).map_err(|error| self.malformed(error))?;
        Ok(LeaseSnapshot {
            uid,
            version,
            record: self.record()?,
            overrides: self.operator_word(),
        })
    }

    /// Nonsense in Elector's own annotations, for the log: it is ignored, the Lease stays usable.
    pub fn notes(&self) -> Vec<FieldError> {
        let mut notes = Annotations::read(self).1;
        notes.extend(self.read_operator_word().1);
        notes.extend(self.group().err());
        notes
    }

    /// This object with another record, for a PUT. uid, resourceVersion and everything unknown stay as they were
    /// judged; `holderIdentity` is always written, as an empty text for no holder, and so is the annotation
    /// [`PROTOCOL`](annotation::PROTOCOL), unless one is there.
    #[must_use]
    pub fn with_record(&self, record: &LeaseRecord, carrier: Carrier) -> Self {
        let mut next = self.clone();
        let judged = Annotations::read(self).0;
        let spec = &mut next.spec;
        let holder = record.holder.as_ref().map_or("", Identity::as_str);
        spec.holder_identity = Some(holder.to_owned());
        spec.lease_duration_seconds = record.duration_seconds;
        spec.acquire_time = record.acquire_time;
        spec.renew_time = record.renew_time;
        if spec.lease_transitions.is_some() || record.term != Term::default() {
            spec.lease_transitions = Some(record.term.0);
        }
        let map = next.metadata.annotations.get_or_insert_default();
        map.entry(annotation::PROTOCOL.to_owned())
            .or_insert_with(|| annotation::PROTOCOL_VERSION.to_owned());
        // An unchanged one is carried over letter by letter, readable or not (R7).
        if record.token.is_none() || record.token != judged.token {
            put(map, annotation::TOKEN, text(record.token).as_deref());
        }
        let same_term = (record.token, record.token_term) == (judged.token, judged.token_term);
        // The token of another holder is left alone until a term of ours replaces it.
        if record.token.is_none() || !(same_term && judged.of_another) {
            if record.token_term.is_none() || !same_term {
                put(
                    map,
                    annotation::TOKEN_TERM,
                    text(record.token_term).as_deref(),
                );
            }
            let signed = record.token.and(record.token_term).is_some();
            if !signed || !same_term {
                let holder = record.holder.as_ref().filter(|_| signed);
                put(map, annotation::TOKEN_HOLDER, holder.map(Identity::as_str));
            }
        }
        if record.token.is_none() || record.life != judged.life {
            put(map, annotation::LIFE, text(record.life).as_deref());
        }
        carrier.write(
            &mut next,
            record.strategy.as_ref(),
            record.preferred_holder.as_ref(),
        );
        next
    }

    /// The Lease that a POST may create, the only one: unheld, without duration and times (R2).
    pub fn born(key: &LeaseKey, strategy: Option<&StrategyName>, carrier: Carrier) -> Self {
        Self::named(key).with_record(&LeaseRecord::born(strategy.cloned()), carrier)
    }
}

/// uid and resourceVersion, which every compare-and-swap needs.
pub(crate) fn revision(metadata: &ObjectMeta) -> Result<(Uid, ResourceVersion), FieldError> {
    let uid = given(&metadata.uid).ok_or_else(|| FieldError::required("metadata.uid", ""))?;
    let path = "metadata.resourceVersion";
    let version =
        given(&metadata.resource_version).ok_or_else(|| FieldError::required(path, ""))?;
    let version = version
        .parse()
        .map_err(|_| FieldError::unreadable(path, version, "must be an integer"))?;
    Ok((Uid::new(uid), ResourceVersion(version)))
}

/// Elector's own annotations on a Lease.
struct Annotations {
    strategy: Option<StrategyName>,
    preferred_holder: Option<Identity>,
    token: Option<Token>,
    /// The term that the token belongs to, unless it belongs to another holder.
    token_term: Option<Term>,
    /// True if the token belongs to another holder.
    of_another: bool,
    life: Option<LifeId>,
}

// === impl Annotations ===

impl Annotations {
    /// The content of the annotations, and their faults.
    fn read(lease: &Lease) -> (Self, Vec<FieldError>) {
        let mut notes = Vec::new();
        let value = |name: &str| {
            let map = lease.metadata.annotations.as_ref()?;
            map.get(name)
                .map(String::as_str)
                .filter(|text| !text.is_empty())
        };
        let strategy = value(annotation::STRATEGY).and_then(|text| {
            let note = |why| notes.push(unreadable_annotation(annotation::STRATEGY, text, why));
            StrategyName::parse(text).map_err(note).ok()
        });
        let token = value(annotation::TOKEN).map(|text| {
            text.parse().map_or_else(
                |_| {
                    notes.push(unreadable_annotation(
                        annotation::TOKEN,
                        text,
                        "must be an integer",
                    ));
                    UNREADABLE_TOKEN
                },
                |number| Token(ResourceVersion(number)),
            )
        });
        let token_term = value(annotation::TOKEN_TERM).and_then(|text| {
            let rule = "must be a 32-bit integer";
            let note = |_| notes.push(unreadable_annotation(annotation::TOKEN_TERM, text, rule));
            text.parse().map(Term).map_err(note).ok()
        });
        let life = value(annotation::LIFE).and_then(|text| {
            let rule = "must be two numbers of 16 hexadecimal digits, joined by a dash";
            let life = LifeId::parse(text);
            if life.is_none() {
                notes.push(unreadable_annotation(annotation::LIFE, text, rule));
            }
            life
        });
        let holder = lease.spec.holder_identity.as_deref().unwrap_or_default();
        // An elector of before this annotation leaves it out.
        let of_another = value(annotation::TOKEN_HOLDER).is_some_and(|named| named != holder);
        let annotations = Self {
            strategy,
            preferred_holder: value(annotation::PREFERRED_HOLDER).and_then(Identity::new),
            token,
            token_term: token_term.filter(|_| !of_another),
            of_another,
            life,
        };
        (annotations, notes)
    }
}

/// An annotation that says nothing usable.
pub(crate) fn unreadable_annotation(name: &str, text: &str, rule: impl Display) -> FieldError {
    FieldError::unreadable(
        format!("metadata.annotations[{name}]"),
        text,
        rule.to_string(),
    )
}

fn text(value: Option<impl Display>) -> Option<String> {
    value.map(|value| value.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use elector_protocol::{Occupancy, Timestamp};
    use serde_json::{Value, json};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "json! literals read better")]
    fn lease(spec: Value, annotations: Value) -> Lease {
        Lease::from_value(json!({
            "metadata": {
                "namespace": "ns", "name": "l", "uid": "u", "resourceVersion": "9",
                "labels": {"keep": "me"}, "annotations": annotations,
            },
            "spec": spec,
        }))
    }

    fn texts(annotations: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Some(annotations.iter().map(text).collect())
    }

    #[test]
    fn a_record_travels_there_and_back_by_every_carrier() {
        let record = LeaseRecord {
            holder: Identity::new("a"),
            duration_seconds: Some(15),
            acquire_time: Some(Timestamp::MIN),
            renew_time: Some(Timestamp::MAX),
            term: Term(7),
            strategy: Some(StrategyName::parse("a/b").unwrap()),
            preferred_holder: Identity::new("b"),
            token: Some(Token(ResourceVersion(u64::MAX))),
            token_term: Some(Term(7)),
            life: LifeId::parse("0000000000000001-0000000000000002"),
        };
        let judged = lease(json!({"unknown": true}), json!({"keep": "me"}));
        for carrier in [Carrier::Unknown, Carrier::Fields, Carrier::Annotations] {
            let wire = serde_json::to_value(judged.with_record(&record, carrier)).unwrap();
            let read = Lease::from_value(wire);
            assert_eq!(read.snapshot().unwrap().record, record, "{carrier:?}");
            assert_eq!(read.metadata.resource_version.as_deref(), Some("9"));
            assert_eq!(read.metadata.uid.as_deref(), Some("u"));
            assert_eq!(
                read.spec.other,
                *json!({"unknown": true}).as_object().unwrap()
            );
            assert_eq!(read.metadata.labels, judged.metadata.labels);
            assert_eq!(read.metadata.annotations.as_ref().unwrap()["keep"], "me");
            // And cleared again, both ways at once.
            let mut cleared = LeaseRecord::born(None);
            cleared.term = Term(8);
            let read = read.with_record(&cleared, carrier);
            assert_eq!(read.record().unwrap(), cleared);
            // The mark stays, whatever is written.
            let kept = [("elector.dev/protocol", "1"), ("keep", "me")];
            assert_eq!(read.metadata.annotations, texts(&kept));
            assert_eq!(read.spec.holder_identity.as_deref(), Some(""));
        }
    }

    #[test]
    fn a_token_of_another_holder_belongs_to_no_term_and_is_left_alone_by_a_preference() {
        let leads = |holder: &str, annotations| {
            let spec = json!({"holderIdentity": holder, "leaseTransitions": 7, "acquireTime": "2026-01-01T00:00:00Z"});
            lease(spec, annotations)
        };
        let tokens = json!({
            "elector.dev/token": "5", "elector.dev/token-term": "7", "elector.dev/token-holder": "a",
        });
        assert!(leads("a", tokens.clone()).record().unwrap().has_token());
        let unnamed = json!({"elector.dev/token": "5", "elector.dev/token-term": "7"});
        let unnamed = leads("a", unnamed);
        let record = unnamed.record().unwrap();
        assert!(record.has_token());
        let renewed = unnamed.with_record(&record, Carrier::Fields);
        let map = renewed.metadata.annotations.unwrap();
        assert!(!map.contains_key(annotation::TOKEN_HOLDER));
        // Its spec was emptied and client-go counted to seven again.
        let taken = leads("b", tokens);
        let record = taken.record().unwrap();
        assert!(!record.has_token() && record.token.is_some());
        let preferring = record.preferring(Identity::new("c"), None);
        let preferred = taken.with_record(&preferring, Carrier::Annotations);
        let mut kept = preferred.metadata.annotations.unwrap();
        assert_eq!(
            kept.remove("elector.dev/preferred-holder").as_deref(),
            Some("c")
        );
        assert_eq!(kept.remove("elector.dev/protocol").as_deref(), Some("1"));
        assert_eq!(Some(kept), taken.metadata.annotations);
        let accepted = LeaseRecord {
            token: Some(Token(ResourceVersion(9))),
            token_term: Some(Term(7)),
            ..record.clone()
        };
        let accepted = taken.with_record(&accepted, Carrier::Fields);
        assert_eq!(
            accepted.metadata.annotations.as_ref().unwrap()["elector.dev/token-holder"],
            "b"
        );
        assert!(accepted.record().unwrap().has_token());
        let granted = record.granted(
            Identity::new("c").unwrap(),
            std::time::Duration::from_secs(5),
            Timestamp::MIN,
        );
        let granted = taken.with_record(&granted, Carrier::Fields);
        let marked = [("elector.dev/protocol", "1")];
        assert_eq!(granted.metadata.annotations, texts(&marked));
        // That of a later version is left as it is.
        let later = leads("a", json!({"elector.dev/protocol": "2"}));
        let later = later.with_record(&record, Carrier::Fields);
        assert_eq!(
            later.metadata.annotations.unwrap()["elector.dev/protocol"],
            "2"
        );
    }

    #[test]
    fn term_zero_is_a_zero_or_nothing_and_stays_what_it_was_until_a_grant() {
        let granted = |judged: &Lease| {
            let window = std::time::Duration::from_secs(5);
            let holder = Identity::new("a").unwrap();
            let record = judged.record().unwrap();
            let granted = record.granted(holder, window, Timestamp::MIN);
            let written = judged.with_record(&granted, Carrier::Fields);
            written.spec.lease_transitions
        };
        for (spec, said) in [
            (json!({}), None),
            (json!({"leaseTransitions": null}), None),
            (json!({"leaseTransitions": 0}), Some(0)),
        ] {
            let judged = lease(spec, json!({}));
            let record = judged.record().unwrap();
            assert_eq!(record.term, Term(0));
            let same = judged.with_record(&record, Carrier::Fields);
            assert_eq!(same.spec.lease_transitions, said);
            assert_eq!(granted(&judged), Some(1));
        }
        let last = lease(json!({"leaseTransitions": i32::MAX}), json!({}));
        assert_eq!(granted(&last), Some(0));
        // client-go leaves it out of the first term of a Lease that it creates.
        let led = lease(
            json!({"holderIdentity": "a", "acquireTime": "2026-01-01T00:00:00Z"}),
            json!({"elector.dev/token": "5", "elector.dev/token-term": "0"}),
        );
        assert!(led.record().unwrap().has_token());
    }

    #[test]
    fn the_born_lease_holds_nothing() {
        let key = LeaseKey::new("ns", "l");
        let strategy = StrategyName::parse("a/b").unwrap();
        let born = Lease::born(&key, Some(&strategy), Carrier::Fields);
        assert_eq!(
            serde_json::to_value(&born).unwrap(),
            json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {
                    "namespace": "ns", "name": "l", "annotations": {"elector.dev/protocol": "1"},
                },
                "spec": {"holderIdentity": "", "strategy": "a/b"},
            })
        );
        assert_eq!(born.record().unwrap().occupancy(), Occupancy::Unproven);
    }

    #[test]
    fn the_field_wins_over_the_annotation_where_both_say_something() {
        let annotations = json!({"elector.dev/strategy": "an/notation", "elector.dev/preferred-holder": "annotation"});
        let strategy = |text| Some(StrategyName::parse(text).unwrap());
        for (spec, wish, preferred) in [
            (
                json!({"strategy": "f/ield", "preferredHolder": "field"}),
                "f/ield",
                "field",
            ),
            (
                json!({"strategy": "f/ield", "preferredHolder": ""}),
                "f/ield",
                "annotation",
            ),
            (
                json!({"strategy": "", "preferredHolder": ""}),
                "an/notation",
                "annotation",
            ),
            (json!({}), "an/notation", "annotation"),
        ] {
            let record = lease(spec, annotations.clone()).record().unwrap();
            assert_eq!(record.strategy, strategy(wish));
            assert_eq!(record.preferred_holder, Identity::new(preferred));
        }
    }

    #[test]
    fn empty_and_absent_both_mean_nobody() {
        for spec in [
            json!({}),
            json!({"holderIdentity": ""}),
            json!({"holderIdentity": null}),
        ] {
            let expected = LeaseRecord::default();
            assert_eq!(lease(spec, json!({})).record().unwrap(), expected);
        }
    }

    #[test]
    fn a_malformed_lease_names_itself_the_path_and_the_rule() {
        let mut unnamed = lease(json!({}), json!({}));
        unnamed.metadata.resource_version = Some("abc".into());
        let mut without_uid = lease(json!({}), json!({}));
        without_uid.metadata.uid = None;
        for (lease, text) in [
            (
                lease(json!({"renewTime": "x"}), json!({})),
                "Lease ns/l: spec.renewTime: Invalid value: \"x\": must be an RFC 3339 time of the years 1 to 9999",
            ),
            (
                lease(json!({"strategy": "x"}), json!({})),
                "Lease ns/l: spec.strategy: Invalid value: \"x\": \
                 is neither OldestEmulationVersion nor a name of the form domain/name",
            ),
            (
                unnamed,
                "Lease ns/l: metadata.resourceVersion: Invalid value: \"abc\": must be an integer",
            ),
            (without_uid, "Lease ns/l: metadata.uid: Required value"),
        ] {
            assert_eq!(lease.snapshot().unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn nonsense_in_annotations_is_noted_and_errs_to_the_safe_side() {
        let unreadable = json!({
            "elector.dev/strategy": "x", "elector.dev/token": "-1", "elector.dev/token-term": "99999999999",
            "elector.dev/life": "1-2",
        });
        let lease = lease(
            json!({"holderIdentity": "", "leaseDurationSeconds": 1}),
            unreadable,
        );
        let notes: Vec<_> = lease.notes().into_iter().map(|note| note.field).collect();
        assert_eq!(
            notes,
            [
                "metadata.annotations[elector.dev/strategy]",
                "metadata.annotations[elector.dev/token]",
                "metadata.annotations[elector.dev/token-term]",
                "metadata.annotations[elector.dev/life]",
            ]
        );
        let record = lease.record().unwrap();
        assert_eq!(record.strategy, None);
        assert_eq!(record.occupancy(), Occupancy::Unproven);
        let annotations = |lease: &Lease| lease.metadata.annotations.clone().unwrap_or_default();
        // A preference carries the token over as it is, a grant clears it.
        let kept = lease.with_record(
            &record.preferring(Identity::new("b"), None),
            Carrier::Fields,
        );
        assert_eq!(annotations(&kept)["elector.dev/token"], "-1");
        let granted = record.granted(
            Identity::new("b").unwrap(),
            std::time::Duration::from_secs(5),
            Timestamp::MIN,
        );
        let granted = lease.with_record(&granted, Carrier::Fields);
        let marked = [("elector.dev/protocol", "1")];
        assert_eq!(granted.metadata.annotations, texts(&marked));
    }
}
