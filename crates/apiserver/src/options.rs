//! The options that requests carry, checked as the API server checks them.

mod list;

use elector_api::{FieldError, Problem};
use http::HeaderMap;

use crate::failure::{Failure, not_registered};
use crate::fields::DELETE_OPTIONS;
use crate::json::Node;
use crate::media_type::media_type;
use crate::protobuf;
use crate::query::Query;

pub(crate) use list::ListOptions;

/// The treatment of unknown fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The options of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) validation: FieldValidation,
}

/// The options of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    /// The uid that the object must have.
    pub(crate) uid: Option<String>,
    /// The revision that the object must have.
    pub(crate) resource_version: Option<String>,
}

/// At which revision to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// The present one.
    Latest,
    /// The one that the cache has, at least this.
    NotOlderThan(u64),
    Exact(u64),
}

/// The longest name of a field manager, in bytes.
const LONGEST_MANAGER: usize = 128;

// === impl WriteOptions ===

impl WriteOptions {
    /// Those of a create, an update or a patch; `name` is the Go type, `CreateOptions` and so on.
    pub(crate) fn read(query: &Query, name: &str) -> Result<Self, Failure> {
        Self::checked(query, name, false)
    }

    /// Those of a server-side apply.
    pub(crate) fn of_apply(query: &Query) -> Result<Self, Failure> {
        Self::checked(query, "PatchOptions", true)
    }

    fn checked(query: &Query, name: &str, applies: bool) -> Result<Self, Failure> {
        let mut errors = Vec::new();
        if applies && query.text("fieldManager").is_none() {
            let rule = "is required for apply patch";
            errors.push(FieldError::required("fieldManager", rule));
        }
        if name == "PatchOptions" && !applies && query.present("force").is_some() {
            errors.push(FieldError::forbidden(
                "force",
                "may not be specified for non-apply patch",
            ));
        }
        if query
            .text("fieldManager")
            .is_some_and(|manager| manager.len() > LONGEST_MANAGER)
        {
            errors.push(FieldError::too_long("fieldManager", LONGEST_MANAGER));
        }
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        let validation = match query.text("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(
                    "fieldValidation",
                    other,
                    &supported,
                ));
                FieldValidation::Warn
            }
        };
        if errors.is_empty() {
            return Ok(Self {
                dry_run,
                validation,
            });
        }
        Err(Failure::invalid_options(name, &errors))
    }
}

// === impl DeleteOptions ===

impl DeleteOptions {
    /// From the body where there is one, otherwise from the query.
    pub(crate) fn read(query: &Query, headers: &HeaderMap, body: &[u8]) -> Result<Self, Failure> {
        let mut errors = Vec::new();
        let (options, policy) = if body.iter().all(u8::is_ascii_whitespace) {
            let options = Self {
                dry_run: dry_run(query.all("dryRun"), &mut errors),
                ..Self::default()
            };
            (options, query.text("propagationPolicy").map(str::to_owned))
        } else {
            let body = if media_type(headers) == protobuf::MEDIA_TYPE {
                protobuf::object(&DELETE_OPTIONS, body)
                    .map_err(|_| Failure::unreadable_protobuf())?
            } else {
                Node::parse(body).map_err(|error| {
                    Failure::bad_request(format!(
                        "couldn't get version/kind; json parse error: {}",
                        error.0
                    ))
                })?
            };
            let kind = body.text("kind");
            if !matches!(kind, "" | "DeleteOptions") {
                let version = body.text("apiVersion");
                return Err(Failure::bad_request(not_registered(kind, version)));
            }
            let texts = |name: &str| match body.field(name) {
                Some(Node::List(items)) => items.as_slice(),
                _ => &[],
            };
            let values = texts("dryRun").iter().filter_map(|node| match node {
                Node::Text(text) => Some(text.as_str()),
                _ => None,
            });
            let precondition = |name: &str| {
                let value = body
                    .field("preconditions")
                    .map(|fields| fields.text(name).to_owned());
                value.filter(|value| !value.is_empty())
            };
            let options = Self {
                dry_run: dry_run(values, &mut errors),
                uid: precondition("uid"),
                resource_version: precondition("resourceVersion"),
            };
            let policy =
                Some(body.text("propagationPolicy").to_owned()).filter(|policy| !policy.is_empty());
            (options, policy)
        };
        if let Some(policy) = policy
            .filter(|policy| !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan"))
        {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(FieldError::not_supported(
                "propagationPolicy",
                &policy,
                &supported,
            ));
        }
        if errors.is_empty() {
            return Ok(options);
        }
        Err(Failure::invalid_options("DeleteOptions", &errors))
    }
}

/// A revision of a request; the error is the API server's.
pub(crate) fn revision(text: &str) -> Result<u64, String> {
    let syntax = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
    text.parse()
        .map_err(|_| format!("resourceVersion: Invalid value: {text:?}: {syntax}"))
}

/// True if a dry run is asked for.
fn dry_run<'a>(values: impl Iterator<Item = &'a str>, errors: &mut Vec<FieldError>) -> bool {
    let values: Vec<_> = values.filter(|value| !value.is_empty()).collect();
    if values.iter().any(|value| *value != "All") {
        let problem = Problem::NotSupported {
            value: format!("{values:?}"),
            supported: "\"All\"".to_owned(),
        };
        errors.push(FieldError {
            field: "dryRun".to_owned(),
            problem,
        });
    }
    !values.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delete_takes_its_options_from_the_body_first() {
        let query = Query::parse(Some("dryRun=All"));
        assert!(
            DeleteOptions::read(&query, &HeaderMap::new(), b" ")
                .unwrap()
                .dry_run
        );
        let body = br#"{"preconditions": {"uid": "u", "resourceVersion": "7"}}"#;
        let options = DeleteOptions::read(&query, &HeaderMap::new(), body).unwrap();
        let expected = DeleteOptions {
            dry_run: false,
            uid: Some("u".into()),
            resource_version: Some("7".into()),
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let query = Query::parse(Some("dryRun=Some&fieldValidation=Maybe"));
        let failure = WriteOptions::read(&query, "CreateOptions")
            .unwrap_err()
            .to_value();
        assert_eq!(
            failure["details"]["causes"].as_array().map(Vec::len),
            Some(2)
        );
        assert_eq!(failure["code"], 422);
    }
}
