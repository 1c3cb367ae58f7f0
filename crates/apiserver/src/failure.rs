//! Refusals, in the words of the API server.

use std::collections::BTreeSet;

use elector_api::FieldError;
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::kind::Kind;

/// A refusal: what becomes a `Status` with `status: Failure`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) code: StatusCode,
    /// Empty where the API server gives none.
    reason: &'static str,
    message: String,
    /// Absent and empty are two things.
    details: Option<Map<String, Value>>,
    /// The token to continue a list that has become too old.
    resume: Option<String>,
}

// === impl Failure ===

impl Failure {
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// An error that has no reason: where the API server did not expect one.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::plain(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// The fault that a switch asked for.
    pub(crate) fn injected(code: StatusCode) -> Self {
        let (reason, message) = match code {
            StatusCode::FORBIDDEN => (
                "Forbidden",
                "forbidden: User cannot do this: injected fault",
            ),
            StatusCode::CONFLICT => (
                "Conflict",
                "Operation cannot be fulfilled: the object has been modified; please apply your changes to the \
                 latest version and try again",
            ),
            StatusCode::TOO_MANY_REQUESTS => (
                "TooManyRequests",
                "the server has received too many requests and has asked us to try again later",
            ),
            StatusCode::INTERNAL_SERVER_ERROR => {
                ("InternalError", "Internal error occurred: injected fault")
            }
            StatusCode::SERVICE_UNAVAILABLE => (
                "ServiceUnavailable",
                "the server is currently unable to handle the request",
            ),
            StatusCode::GONE => ("Expired", "too old resource version: injected fault"),
            _ => ("", "injected fault"),
        };
        let failure = Self::plain(code, reason, message);
        if code == StatusCode::TOO_MANY_REQUESTS {
            return failure.with_details([("retryAfterSeconds", json!(1))]);
        }
        failure
    }

    pub(crate) fn unauthorized() -> Self {
        Self::plain(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// No such resource, in a group that exists.
    pub(crate) fn no_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::plain(StatusCode::NOT_FOUND, "NotFound", message).with_details([])
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::plain(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).with_details([])
    }

    /// A method that the server of custom resources does not know for a status.
    pub(crate) fn not_supported(kind: &Kind, verb: &str) -> Self {
        if !kind.custom {
            return Self::method_not_allowed();
        }
        let resource = kind.resource();
        let message = format!("{verb} is not supported on resources of kind {resource:?}");
        let failure = Self::plain(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message);
        failure.naming(kind, kind.plural, "")
    }

    pub(crate) fn not_acceptable(streams: bool) -> Self {
        let mut message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                           application/vnd.kubernetes.protobuf"
            .to_owned();
        if streams {
            message +=
                ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        }
        Self::plain(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message).with_details([])
    }

    /// A body of protocol buffers that cannot be read.
    pub(crate) fn unreadable_protobuf() -> Self {
        Self::bad_request("failed to read the protocol buffers of the body")
    }

    pub(crate) fn unsupported_body() -> Self {
        let message = "the body of the request was in an unknown format - accepted media types include: \
                       application/json, application/yaml, application/vnd.kubernetes.protobuf";
        Self::plain(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            message,
        )
    }

    /// An apply that does not fit the schema of its kind.
    pub(crate) fn untyped_apply(kind: &Kind, (namespace, name): (&str, &str), why: &str) -> Self {
        let (version, kind) = (kind.api_version(), kind.kind);
        Self::internal(format!(
            "failed to create typed patch object ({namespace}/{name}; {version}, Kind={kind}): {why}"
        ))
    }

    pub(crate) fn unsupported_patch(kind: &Kind) -> Self {
        if kind.custom {
            let message = "the body of the request was in an unknown format - accepted media types include: \
                           application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
            return Self::plain(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "UnsupportedMediaType",
                message,
            );
        }
        let message = "415: Unsupported Media Type";
        Self::plain(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            message,
        )
        .with_details([])
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::plain(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            message,
        )
    }

    /// A JSON patch that cannot be applied.
    pub(crate) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::plain(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with_details([])
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} not found", kind.resource());
        Self::plain(StatusCode::NOT_FOUND, "NotFound", message).naming(kind, kind.plural, name)
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str, deleting: bool) -> Self {
        let prefix = if deleting {
            "object is being deleted: "
        } else {
            ""
        };
        let message = format!("{prefix}{} {name:?} already exists", kind.resource());
        Self::plain(StatusCode::CONFLICT, "AlreadyExists", message).naming(kind, kind.plural, name)
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", kind.resource());
        Self::plain(StatusCode::FORBIDDEN, "Forbidden", message).naming(kind, kind.plural, name)
    }

    /// A conflict with the revision or the uid that is stored.
    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            kind.resource()
        );
        Self::plain(StatusCode::CONFLICT, "Conflict", message).naming(kind, kind.plural, name)
    }

    /// The conflict of an update with a revision that has been replaced.
    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// A delete whose preconditions do not hold; it names the kind where others name the resource.
    pub(crate) fn delete_precondition(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            kind.group_kind()
        );
        Self::plain(StatusCode::CONFLICT, "Conflict", message).naming(kind, kind.kind, name)
    }

    /// An object that breaks rules.
    pub(crate) fn invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> Self {
        Self::breaks_rules(&kind.group_kind(), name, errors).naming_in(kind.home(), kind.kind, name)
    }

    /// An update that breaks a rule of the store, which names the resource where validation names the kind.
    pub(crate) fn invalid_resource(kind: &Kind, name: &str, errors: &[FieldError]) -> Self {
        Self::breaks_rules(&kind.resource(), name, errors).naming(kind, kind.plural, name)
    }

    /// Options that break rules, such as `ListOptions`.
    pub(crate) fn invalid_options(options: &str, errors: &[FieldError]) -> Self {
        let group = ("group", json!("meta.k8s.io"));
        Self::breaks_rules(&format!("{options}.meta.k8s.io"), "", errors)
            .with_details([group, ("kind", json!(options))])
    }

    /// A patch that makes something that cannot be decoded.
    pub(crate) fn invalid_patch(kind: &Kind, patched: &Value, why: &str) -> Self {
        let error = FieldError {
            field: "patch".to_owned(),
            problem: elector_api::Problem::Invalid {
                value: format!("{:?}", kind.schema.in_order(patched)),
                rule: why.to_owned(),
            },
        };
        Self::breaks_rules("", "", &[error])
    }

    /// A read at a revision that this server has not reached.
    pub(crate) fn future_revision(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let causes =
            json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]);
        Self::plain(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
            .with_details([("causes", causes), ("retryAfterSeconds", json!(1))])
    }

    /// A list at a revision that is no longer known.
    pub(crate) fn expired_list() -> Self {
        Self::expired("The resourceVersion for the provided list is too old.")
    }

    /// The next page of a list whose revision is no longer known; `resume` continues it at the present one.
    pub(crate) fn expired_continue(resume: String) -> Self {
        let mut failure = Self::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new \
             list without the continue parameter, or use the continue token in this response to retrieve the \
             remainder of the results. Continuing with the provided token results in an inconsistent list - objects \
             that were created, modified, or deleted between the time the first chunk was returned and now may show \
             up in the list.",
        );
        failure.resume = Some(resume);
        failure
    }

    /// A watch from a revision that is no longer known.
    pub(crate) fn expired_watch(asked: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {asked} ({oldest})"))
    }

    /// The `Status`.
    pub(crate) fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = Value::Object(details.clone());
        }
        if let Some(resume) = &self.resume {
            status["metadata"]["continue"] = resume.as_str().into();
        }
        status
    }

    /// After how many seconds to try again, if it says so.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }

    fn plain(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            resume: None,
        }
    }

    fn expired(message: impl Into<String>) -> Self {
        Self::plain(StatusCode::GONE, "Expired", message)
    }

    fn breaks_rules(what: &str, name: &str, errors: &[FieldError]) -> Self {
        // Causes may come twice; the message says each once.
        let mut said = BTreeSet::new();
        let texts: Vec<_> = errors
            .iter()
            .map(ToString::to_string)
            .filter(|text| said.insert(text.clone()))
            .collect();
        let list = match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let causes: Vec<_> = errors
            .iter()
            .map(|error| json!({"reason": error.reason(), "message": error.problem.to_string(), "field": error.field}))
            .collect();
        let message = format!("{what} {name:?} is invalid: {list}");
        Self::plain(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
            .with_details([("causes", json!(causes))])
    }

    fn naming(self, kind: &Kind, what: &str, name: &str) -> Self {
        self.naming_in(kind.group, what, name)
    }

    fn naming_in(self, group: &str, what: &str, name: &str) -> Self {
        let texts = [("name", name), ("group", group), ("kind", what)];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        self.with_details(texts.map(|(key, text)| (key, text.into())))
    }

    fn with_details(mut self, entries: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let details = self.details.get_or_insert_default();
        details.extend(
            entries
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value)),
        );
        self
    }
}

/// The error of a real server's scheme about a kind that it does not know.
pub(crate) fn not_registered(kind: &str, version: &str) -> String {
    format!(
        "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
    )
}
