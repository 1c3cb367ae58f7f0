//! Faults of fields, in the words of the API server.

use std::fmt;

/// One field of an object, and what is wrong with it. Shown as the API server shows it:
/// `spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// The path of the field, such as `spec.renewTime`.
    pub field: String,
    /// Its fault.
    pub problem: Problem,
}

/// The kinds of field errors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Problem {
    /// A value is needed; the text says when, or is empty.
    Required(String),
    /// The value breaks a rule.
    Invalid {
        /// The value as JSON.
        value: String,
        /// The rule.
        rule: String,
    },
    /// The value is none of those that are known.
    NotSupported {
        /// The value as JSON.
        value: String,
        /// The known values as JSON, joined by commas.
        supported: String,
    },
    /// The field must not be set now; the text says why.
    Forbidden(String),
    /// The text or map is larger than this number of bytes.
    TooLong(usize),
}

/// An object that could not be read, though it could be decoded: which one, which field, which rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{kind} {}/{}: {error}", cut(.namespace, LONGEST_NAME), cut(.name, LONGEST_NAME))]
pub struct Malformed {
    /// The kind of the object.
    pub kind: &'static str,
    /// Its namespace, as far as it could be read.
    pub namespace: String,
    /// Its name, as far as it could be read.
    pub name: String,
    /// The first of its errors.
    pub error: Box<FieldError>,
}

/// The length repeated of an unreadable value, in characters.
const LONGEST_VALUE: usize = 64;
/// The same for the name of the object, which no server serves longer.
const LONGEST_NAME: usize = 253;

// === impl FieldError ===

impl FieldError {
    /// A missing value. `when` says under which condition it is needed, empty for always.
    pub fn required(field: impl Into<String>, when: &str) -> Self {
        Self::new(field, Problem::Required(when.to_owned()))
    }

    /// A value that breaks a rule.
    pub fn invalid(
        field: impl Into<String>,
        value: impl Into<serde_json::Value>,
        rule: impl Into<String>,
    ) -> Self {
        let problem = Problem::Invalid {
            value: value.into().to_string(),
            rule: rule.into(),
        };
        Self::new(field, problem)
    }

    /// A value that may only differ in a new object.
    pub(crate) fn immutable(field: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        Self::invalid(field, value, "field is immutable")
    }

    /// A value that could not be read. It is for logs, so a long value is cut.
    pub(crate) fn unreadable(
        field: impl Into<String>,
        value: impl Into<serde_json::Value>,
        rule: impl Into<String>,
    ) -> Self {
        let problem = Problem::Invalid {
            value: cut(&value.into().to_string(), LONGEST_VALUE),
            rule: rule.into(),
        };
        Self::new(field, problem)
    }

    /// A value that is none of the known ones.
    pub fn not_supported(field: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<_> = supported.iter().map(|one| format!("{one:?}")).collect();
        let problem = Problem::NotSupported {
            value: format!("{value:?}"),
            supported: supported.join(", "),
        };
        Self::new(field, problem)
    }

    /// A field that must not be set.
    pub fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self::new(field, Problem::Forbidden(why.to_owned()))
    }

    /// A value of more than `most` bytes.
    pub fn too_long(field: impl Into<String>, most: usize) -> Self {
        Self::new(field, Problem::TooLong(most))
    }

    /// The `reason` of this error in the causes of a `Status`.
    pub const fn reason(&self) -> &'static str {
        match self.problem {
            Problem::Required(_) => "FieldValueRequired",
            Problem::Invalid { .. } => "FieldValueInvalid",
            Problem::NotSupported { .. } => "FieldValueNotSupported",
            Problem::Forbidden(_) => "FieldValueForbidden",
            Problem::TooLong(_) => "FieldValueTooLong",
        }
    }

    fn new(field: impl Into<String>, problem: Problem) -> Self {
        Self {
            field: field.into(),
            problem,
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl std::error::Error for FieldError {}

// === impl Problem ===

impl fmt::Display for Problem {
    /// The message of a cause in a `Status`, which names the field beside it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required(when) if when.is_empty() => f.write_str("Required value"),
            Self::Required(when) => write!(f, "Required value: {when}"),
            Self::Invalid { value, rule } => write!(f, "Invalid value: {value}: {rule}"),
            Self::NotSupported { value, supported } => {
                write!(
                    f,
                    "Unsupported value: {value}: supported values: {supported}"
                )
            }
            Self::Forbidden(why) => write!(f, "Forbidden: {why}"),
            Self::TooLong(most) => write!(f, "Too long: may not be more than {most} bytes"),
        }
    }
}

/// A text short enough for one line of a log.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_like_those_of_the_api_server() {
        for (error, reason, text) in [
            (
                FieldError::required("a.b", ""),
                "FieldValueRequired",
                "a.b: Required value",
            ),
            (
                FieldError::required("a", "when c"),
                "FieldValueRequired",
                "a: Required value: when c",
            ),
            (
                FieldError::invalid("a", 0, "must be 1"),
                "FieldValueInvalid",
                "a: Invalid value: 0: must be 1",
            ),
            (
                FieldError::not_supported("a", "x", &["y", "z"]),
                "FieldValueNotSupported",
                r#"a: Unsupported value: "x": supported values: "y", "z""#,
            ),
            (
                FieldError::forbidden("a", "not now"),
                "FieldValueForbidden",
                "a: Forbidden: not now",
            ),
            (
                FieldError::too_long("a", 9),
                "FieldValueTooLong",
                "a: Too long: may not be more than 9 bytes",
            ),
        ] {
            assert_eq!((error.to_string().as_str(), error.reason()), (text, reason));
        }
    }

    #[test]
    fn a_huge_value_does_not_fill_the_log() {
        let error = FieldError::unreadable("a", "ä".repeat(1000), "must be short");
        let expected = format!("a: Invalid value: \"{}…: must be short", "ä".repeat(63));
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_megabyte_in_an_object_is_no_megabyte_in_a_log() {
        let megabyte = "x".repeat(1 << 20);
        let malformed = Malformed {
            kind: "Lease",
            namespace: megabyte.clone(),
            name: megabyte.clone(),
            error: Box::new(FieldError::unreadable("a", megabyte, "must be short")),
        };
        assert!(malformed.to_string().len() < 1000);
    }
}
