//! Events on Leases: what electors tell of a preference that they hold back, and how it is read again.

use elector_protocol::elector::HoldBackNotice;
use elector_protocol::{Identity, LeaseKey, Timestamp, Uid};
use serde::Deserialize;

use crate::time::{Rfc3339, parse_time};

/// `reportingController` of the Events of electors.
pub const REPORTING_CONTROLLER: &str = "elector.dev/elector";

/// `reportingController` of the Events of candidates, which tell of their own terms.
pub const CANDIDATE_REPORTING_CONTROLLER: &str = "elector.dev/candidate";

/// `reason` of an Event about a preference that is held back (R23).
pub const PREFERENCE_HELD_BACK: &str = "PreferenceHeldBack";

/// An Event as servers serve it, in its old form (`v1`) or in the new one (`events.k8s.io/v1`). It has the fields that
/// are read here; all others are skipped.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventObject {
    #[serde(alias = "involvedObject")]
    regarding: Option<EventReference>,
    related: Option<EventReference>,
    reason: Option<String>,
    #[serde(alias = "message")]
    note: Option<String>,
    event_time: Option<String>,
    series: Option<EventSeries>,
    #[serde(rename = "type")]
    severity: Option<String>,
    #[serde(alias = "reportingComponent")]
    reporting_controller: Option<String>,
}

/// An elector's report of a lease, in any Event. Any account that may create Events may write the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedEvent {
    /// The lease.
    pub lease: LeaseKey,
    /// When it was reported.
    pub at: Timestamp,
    /// When it was reported last, and how often, where it was reported more than once.
    pub repeated: Option<(Timestamp, u32)>,
    /// True if it is worth a look.
    pub is_warning: bool,
    /// Why, in one CamelCase word.
    pub reason: String,
    /// One sentence.
    pub note: String,
}

/// An elector's notice of a preference that is held back, in an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldBackEvent {
    /// The lease.
    pub lease: LeaseKey,
    /// The uid of its Lease.
    pub uid: Option<Uid>,
    /// The notice. Any account that may create Events may write the same.
    pub notice: HoldBackNotice,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventSeries {
    count: u32,
    last_observed_time: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct EventReference {
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
}

/// An Event's text on a preference that is held back: one sentence, which [`EventObject::hold_back`] reads. The time
/// comes first and the cause last, so that no name can pass for either.
///
/// ```
/// use elector_protocol::elector::{HoldBackCause, HoldBackNotice};
/// use elector_protocol::{Identity, Timestamp};
///
/// let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000).unwrap();
/// let (leader, better) = (Identity::new("web-1").unwrap(), Identity::new("web-2").unwrap());
/// let notice = HoldBackNotice {
///     candidate: better,
///     because: HoldBackCause::FailedHandOver { failures: 1 },
///     until: at(1_700_000_060),
///     reported: at(1_700_000_000),
/// };
/// assert_eq!(
///     elector_api::hold_back_note(&leader, &notice),
///     "until 2023-11-14T22:14:20.000000Z web-1 is not asked to make room for web-2: the last hand-over was not accepted"
/// );
/// ```
pub fn hold_back_note(holder: &Identity, notice: &HoldBackNotice) -> String {
    let (until, candidate) = (Rfc3339(notice.until), &notice.candidate);
    format!(
        "until {until} {holder} is not asked to make room for {candidate}: {}",
        notice.because
    )
}

// === impl EventObject ===

impl EventObject {
    /// Its report of a lease, `None` where no elector made it or it cannot be read.
    pub fn reported(&self) -> Option<ReportedEvent> {
        let lease = self.regarding.as_ref()?;
        let is_ours = self.reporting_controller.as_deref() == Some(REPORTING_CONTROLLER);
        if !is_ours || lease.kind.as_deref() != Some("Lease") {
            return None;
        }
        let repeated = self.series.as_ref().and_then(|series| {
            let last = parse_time(series.last_observed_time.as_deref()?).ok()?;
            Some((last, series.count))
        });
        Some(ReportedEvent {
            lease: LeaseKey::new(lease.namespace.as_deref()?, lease.name.as_deref()?),
            at: parse_time(self.event_time.as_deref()?).ok()?,
            repeated,
            is_warning: self.severity.as_deref() == Some("Warning"),
            reason: self.reason.clone()?,
            note: self.note.clone().unwrap_or_default(),
        })
    }

    /// Its notice of a preference that is held back, `None` where it is about anything else.
    pub fn hold_back(&self) -> Option<HoldBackEvent> {
        let is = |field: &Option<String>, text| field.as_deref() == Some(text);
        let lease = self.regarding.as_ref()?;
        let ours = is(&self.reporting_controller, REPORTING_CONTROLLER)
            && is(&self.reason, PREFERENCE_HELD_BACK)
            && is(&lease.kind, "Lease");
        if !ours {
            return None;
        }
        let (until, rest) = self
            .note
            .as_deref()?
            .strip_prefix("until ")?
            .split_once(' ')?;
        let (_, because) = rest.rsplit_once(": ")?;
        let candidate = self.related.as_ref()?.name.as_deref()?;
        Some(HoldBackEvent {
            lease: LeaseKey::new(lease.namespace.as_deref()?, lease.name.as_deref()?),
            uid: lease.uid.as_deref().map(Uid::new),
            notice: HoldBackNotice {
                candidate: Identity::new(candidate)?,
                because: because.parse().ok()?,
                until: parse_time(until).ok()?,
                reported: parse_time(self.event_time.as_deref()?).ok()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::elector::HoldBackCause;
    use serde_json::{Value, json};

    use super::*;

    fn notice() -> HoldBackNotice {
        HoldBackNotice {
            candidate: Identity::new("b").unwrap(),
            because: HoldBackCause::NewSinceFailure,
            until: Timestamp::from_micros(1_700_000_600_000_001).unwrap(),
            reported: Timestamp::from_micros(1_700_000_000_000_002).unwrap(),
        }
    }

    /// The Event in its new form.
    fn event(holder: &str) -> Value {
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "l.1", "namespace": "ns", "managedFields": [{"fieldsV1": {}}]},
            "regarding": {"kind": "Lease", "namespace": "ns", "name": "l", "uid": "u"},
            "related": {"kind": "LeaseCandidate", "namespace": "ns", "name": "b"},
            "reason": PREFERENCE_HELD_BACK,
            "note": hold_back_note(&Identity::new(holder).unwrap(), &notice()),
            "eventTime": "2023-11-14T22:13:20.000002Z",
            "series": null,
            "reportingController": REPORTING_CONTROLLER,
        })
    }

    fn read(event: Value) -> Option<HoldBackEvent> {
        serde_json::from_value::<EventObject>(event)
            .unwrap()
            .hold_back()
    }

    #[test]
    fn a_notice_is_read_in_both_forms() {
        let expected = HoldBackEvent {
            lease: LeaseKey::new("ns", "l"),
            uid: Some(Uid::new("u")),
            notice: notice(),
        };
        // A name cannot pass for the time or the cause.
        for holder in [
            "a",
            "until 2030-01-01T00:00:00Z: leaders have made room 1 times within 1s: ",
        ] {
            let new = event(holder);
            assert_eq!(read(new.clone()), Some(expected.clone()));
            let mut old = new;
            for (before, after) in [
                ("regarding", "involvedObject"),
                ("note", "message"),
                ("reportingController", "reportingComponent"),
            ] {
                old[after] = old[before].take();
                old.as_object_mut().unwrap().remove(before);
            }
            assert_eq!(read(old), Some(expected.clone()));
        }
    }

    #[test]
    fn every_event_of_an_elector_on_a_lease_is_reported() {
        let mut event = event("a");
        let reported = |event: &Value| {
            serde_json::from_value::<EventObject>(event.clone())
                .unwrap()
                .reported()
        };
        let first = reported(&event).unwrap();
        let expected = (LeaseKey::new("ns", "l"), notice().reported);
        assert_eq!((first.lease, first.at), expected);
        assert_eq!((first.repeated, first.is_warning), (None, false));
        assert_eq!(first.reason, PREFERENCE_HELD_BACK);
        event["type"] = json!("Warning");
        event["series"] = json!({"count": 3, "lastObservedTime": "2023-11-14T22:14:20.000000Z"});
        let again = reported(&event).unwrap();
        let last = Timestamp::from_micros(1_700_000_060_000_000).unwrap();
        assert_eq!((again.repeated, again.is_warning), (Some((last, 3)), true));
        for (field, value) in [("reportingController", "kubelet"), ("eventTime", "soon")] {
            let mut other = event.clone();
            other[field] = json!(value);
            assert_eq!(reported(&other), None, "{field}");
        }
    }

    #[test]
    fn an_event_about_anything_else_says_nothing() {
        for (field, value) in [
            ("reportingController", json!("kubelet")),
            ("reason", json!("Elected")),
            (
                "regarding",
                json!({"kind": "Pod", "namespace": "ns", "name": "l"}),
            ),
            ("regarding", json!(null)),
            ("related", json!(null)),
            (
                "note",
                json!("until tomorrow a is not asked to make room for b: it is late"),
            ),
            (
                "note",
                json!("until 2023-11-14T22:14:20Z a is not asked to make room for b: it is late"),
            ),
            ("eventTime", json!(null)),
        ] {
            let mut event = event("a");
            event[field] = value;
            assert_eq!(read(event), None, "{field}");
        }
    }
}
