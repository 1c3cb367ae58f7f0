//! The word of operators on a Lease, in the annotations that carry it (R16).

use elector_protocol::{Identity, OperatorOverrides, OperatorPreference, Timestamp};

use crate::annotation;
use crate::convert_lease::unreadable_annotation;
use crate::field::FieldError;
use crate::lease::Lease;
use crate::time::{Rfc3339, TimeError, parse_time};

/// Why a text is no preference of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PreferError {
    /// The text is not `CANDIDATE until TIME`.
    #[error("must be CANDIDATE until TIME")]
    Syntax,
    /// The text before `until` is longer than the longest name of an object. An elector keeps it.
    #[error("must name a candidate in at most {LONGEST_NAME} bytes")]
    TooLong,
    /// The text behind `until` is no time.
    #[error("{0}, behind \"until\"")]
    Time(TimeError),
}

/// The longest name of an object, in bytes.
const LONGEST_NAME: usize = 253;
/// The text between the candidate and the time.
const UNTIL: &str = " until ";

/// Writes the value of [`FREEZE`](annotation::FREEZE): a time, RFC 3339.
///
/// ```
/// use elector_api::{format_freeze, parse_freeze};
/// use elector_protocol::Timestamp;
///
/// let until = Timestamp::from_micros(1_700_000_000_000_000).unwrap();
/// let text = format_freeze(until);
/// assert_eq!(text, "2023-11-14T22:13:20.000000Z");
/// assert_eq!(parse_freeze(&text), Ok(until));
/// assert_eq!(parse_freeze("2023-11-14T22:13:20Z"), Ok(until));
/// ```
#[must_use]
pub fn format_freeze(until: Timestamp) -> String {
    Rfc3339(until).to_string()
}

/// Reads what [`format_freeze`] writes; any RFC 3339 time will do.
///
/// # Errors
///
/// As [`parse_time`].
pub fn parse_freeze(text: &str) -> Result<Timestamp, TimeError> {
    parse_time(text)
}

/// Writes the value of [`PREFER`](annotation::PREFER): `CANDIDATE until TIME`, the time in RFC 3339.
///
/// ```
/// use elector_api::{format_prefer, parse_prefer};
/// use elector_protocol::{Identity, OperatorPreference, Timestamp};
///
/// let preference = OperatorPreference {
///     candidate: Identity::new("web-1").unwrap(),
///     until: Timestamp::from_micros(1_700_000_000_000_000).unwrap(),
/// };
/// let text = format_prefer(&preference);
/// assert_eq!(text, "web-1 until 2023-11-14T22:13:20.000000Z");
/// assert_eq!(parse_prefer(&text), Ok(preference));
/// ```
#[must_use]
pub fn format_prefer(preference: &OperatorPreference) -> String {
    let OperatorPreference { candidate, until } = preference;
    format!("{}{UNTIL}{}", candidate.as_str(), Rfc3339(*until))
}

/// Reads what [`format_prefer`] writes.
///
/// # Errors
///
/// When a part is missing, the candidate is longer than a name can be, or the time is none.
pub fn parse_prefer(text: &str) -> Result<OperatorPreference, PreferError> {
    let (candidate, until) = text.rsplit_once(UNTIL).ok_or(PreferError::Syntax)?;
    if candidate.len() > LONGEST_NAME {
        return Err(PreferError::TooLong);
    }
    Ok(OperatorPreference {
        candidate: Identity::new(candidate).ok_or(PreferError::Syntax)?,
        until: parse_time(until).map_err(PreferError::Time)?,
    })
}

// === impl Lease ===

impl Lease {
    /// Operators' word on this Lease. Unreadable parts are ignored, see [`Self::notes`].
    pub fn operator_word(&self) -> OperatorOverrides {
        self.read_operator_word().0
    }

    /// The word of operators, and its unreadable parts.
    pub(crate) fn read_operator_word(&self) -> (OperatorOverrides, Vec<FieldError>) {
        let mut notes = Vec::new();
        let mut note = |name, text: &str, why: String| {
            notes.push(unreadable_annotation(name, text, why));
        };
        let value = |name| {
            let text = self.metadata.annotations.as_ref()?.get(name)?;
            Some(text.as_str()).filter(|text| !text.is_empty())
        };
        let freeze = value(annotation::FREEZE).and_then(|text| {
            let unreadable = |why: TimeError| note(annotation::FREEZE, text, why.to_string());
            parse_freeze(text).map_err(unreadable).ok()
        });
        let prefer = value(annotation::PREFER).and_then(|text| {
            let unreadable = |why: PreferError| note(annotation::PREFER, text, why.to_string());
            parse_prefer(text).map_err(unreadable).ok()
        });
        let prefer = prefer.map(Box::new);
        (OperatorOverrides { freeze, prefer }, notes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};
    use serde_json::json;

    use super::*;

    fn lease(annotations: &serde_json::Value) -> Lease {
        Lease::from_value(json!({"metadata": {"name": "l", "annotations": annotations}}))
    }

    #[test]
    fn both_words_are_read_as_people_write_them() {
        let lease = lease(&json!({
            "elector.dev/freeze": "2026-01-01T00:00:00+01:00",
            "elector.dev/prefer": "a until 2026-01-01T00:00:00Z",
        }));
        let (word, notes) = lease.read_operator_word();
        assert_eq!(notes, []);
        assert_eq!(lease.operator_word(), word);
        let text = word.freeze.map(format_freeze);
        assert_eq!(text.as_deref(), Some("2025-12-31T23:00:00.000000Z"));
        let text = word.prefer.as_deref().map(format_prefer);
        assert_eq!(text.as_deref(), Some("a until 2026-01-01T00:00:00.000000Z"));
    }

    #[test]
    fn what_cannot_be_read_is_ignored_and_says_why() {
        for (name, text, rule) in [
            ("freeze", "1h", "must be an RFC 3339 time"),
            ("freeze", "true", "must be an RFC 3339 time"),
            ("prefer", "a", "must be CANDIDATE until TIME"),
            (
                "prefer",
                " until 2026-01-01T00:00:00Z",
                "must be CANDIDATE until TIME",
            ),
            (
                "prefer",
                "a=2026-01-01T00:00:00Z",
                "must be CANDIDATE until TIME",
            ),
            (
                "prefer",
                "a until soon",
                "must be an RFC 3339 time, behind \"until\"",
            ),
        ] {
            let name = format!("elector.dev/{name}");
            let (word, notes) = lease(&json!({ &name: text })).read_operator_word();
            assert_eq!(word, OperatorOverrides::default(), "{text}");
            let notes: Vec<_> = notes.iter().map(ToString::to_string).collect();
            let note = format!("metadata.annotations[{name}]: Invalid value: {text:?}: {rule}");
            assert_eq!(notes, [note]);
        }
        let nothing = lease(&json!({"elector.dev/freeze": "", "elector.dev/prefer": ""}));
        let expected = (OperatorOverrides::default(), Vec::new());
        assert_eq!(nothing.read_operator_word(), expected);
    }

    /// An elector keeps the name, so a tenant does not choose how much that is.
    #[test]
    fn a_candidate_has_at_most_the_name_of_an_object() {
        let prefer =
            |bytes| parse_prefer(&format!("{} until 2026-01-01T00:00:00Z", "a".repeat(bytes)));
        assert!(prefer(253).is_ok());
        let error = prefer(254).unwrap_err();
        let expected = "must name a candidate in at most 253 bytes";
        assert_eq!(error.to_string(), expected);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(name in "\\PC{1,20}", micros in Timestamp::MIN.as_micros()..=Timestamp::MAX.as_micros()) {
            let preference = OperatorPreference {
                candidate: Identity::new(name).unwrap(),
                until: Timestamp::from_micros(micros).unwrap(),
            };
            assert_eq!(parse_prefer(&format_prefer(&preference)), Ok(preference));
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = (parse_freeze(&text), parse_prefer(&text));
        }
    }
}
