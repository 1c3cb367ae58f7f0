//! Answers: what is acceptable, and how it is written.

use axum::body::{Body, Bytes};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;

/// In which form a client wants objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyForm {
    /// As they are.
    Whole,
    /// As rows for people.
    Table,
    /// Their metadata alone.
    Metadata,
    /// The newer form of discovery documents.
    Discovery,
}

/// The warnings beside an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Warnings(pub(crate) Vec<String>);

/// An answer on its way out.
pub(crate) type HttpReply = Response<Body>;

// === impl ReplyForm ===

impl ReplyForm {
    /// The first form in `Accept` that this server has. JSON is the only encoding.
    pub(crate) fn wanted(headers: &HeaderMap, streams: bool) -> Result<Self, Failure> {
        let mut clauses = Vec::new();
        for header in headers.get_all(ACCEPT) {
            clauses.extend(
                header
                    .to_str()
                    .unwrap_or_default()
                    .split(',')
                    .map(str::trim),
            );
        }
        clauses.retain(|clause| !clause.is_empty());
        if clauses.is_empty() {
            return Ok(Self::Whole);
        }
        let mut forms: Vec<_> = clauses.into_iter().filter_map(Self::of_clause).collect();
        // Stable: what was named first goes first among equals.
        forms.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let first = forms.first().map(|(form, _)| *form);
        first.ok_or_else(|| Failure::not_acceptable(streams))
    }

    fn of_clause(clause: &str) -> Option<(Self, f32)> {
        let mut parts = clause.split(';').map(str::trim);
        let media = parts.next()?;
        let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
        let parameter = |name: &str| {
            parameters
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| *value)
        };
        let quality = parameter("q").map_or(1.0, |value| value.parse().unwrap_or(0.0));
        if !matches!(media, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let form = match (parameter("as"), parameter("g")) {
            (None, _) => Self::Whole,
            (Some("Table"), Some("meta.k8s.io")) => Self::Table,
            (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("meta.k8s.io")) => {
                Self::Metadata
            }
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"))
                if parameter("v") == Some("v2") =>
            {
                Self::Discovery
            }
            _ => return None,
        };
        (quality > 0.0).then_some((form, quality))
    }
}

// === impl Warnings ===

impl Warnings {
    /// Puts them on an answer.
    pub(crate) fn put_on(&self, reply: &mut HttpReply) {
        for warning in &self.0 {
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
                reply.headers_mut().append(WARNING, value);
            }
        }
    }
}

/// An answer in JSON.
pub(crate) fn json(code: StatusCode, body: &impl Serialize) -> HttpReply {
    raw(code, "application/json", encode(body))
}

/// An answer in plain text.
pub(crate) fn text(code: StatusCode, body: &'static str) -> HttpReply {
    raw(
        code,
        "text/plain; charset=utf-8",
        Bytes::from_static(body.as_bytes()),
    )
}

/// A refusal.
pub(crate) fn refusal(failure: &Failure) -> HttpReply {
    let mut reply = json(failure.code, &failure.to_value());
    if let Some(seconds) = failure.retry_after() {
        reply.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    reply
}

/// An answer of several parts, one after the other.
pub(crate) fn stream(body: Body) -> HttpReply {
    with_type(StatusCode::OK, "application/json", body)
}

/// A value as JSON text.
pub(crate) fn encode(value: &impl Serialize) -> Bytes {
    // Values that are encoded here have text keys and finite numbers, so this cannot fail.
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// An object with its kind put before its fields.
pub(crate) fn headed(
    api_version: &str,
    kind: &str,
    fields: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let head = [("kind", kind.into()), ("apiVersion", api_version.into())];
    let fields = head.into_iter().chain(fields);
    Value::Object(
        fields
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

fn raw(code: StatusCode, media: &'static str, body: Bytes) -> HttpReply {
    with_type(code, media, Body::from(body))
}

fn with_type(code: StatusCode, media: &'static str, body: Body) -> HttpReply {
    let mut reply = Response::new(body);
    *reply.status_mut() = code;
    reply
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_acceptable_form_is_taken() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        for (accept, expected) in [
            ("", Some(ReplyForm::Whole)),
            ("*/*", Some(ReplyForm::Whole)),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                Some(ReplyForm::Whole),
            ),
            ("text/plain, application/json;q=0.5", Some(ReplyForm::Whole)),
            ("text/plain", None),
            ("application/json;q=0", None),
            (table, Some(ReplyForm::Table)),
            (&format!("{table},application/json"), Some(ReplyForm::Table)),
            (
                &format!("{table};q=0.1,application/json"),
                Some(ReplyForm::Whole),
            ),
            (
                "application/json;as=Table;v=v1;g=other,application/json",
                Some(ReplyForm::Whole),
            ),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(
                ReplyForm::wanted(&headers, false).ok(),
                expected,
                "{accept}"
            );
        }
    }

    #[test]
    fn warnings_are_quoted() {
        let mut reply = text(StatusCode::OK, "ok");
        Warnings(vec!["unknown field \"x\"".to_owned()]).put_on(&mut reply);
        let expected = "299 - \"unknown field \\\"x\\\"\"";
        assert_eq!(reply.headers()[WARNING], expected);
    }
}
