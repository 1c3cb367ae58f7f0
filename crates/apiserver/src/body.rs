//! Objects in the bodies of requests.

use http::HeaderMap;
use serde_json::Value;

use crate::events;
use crate::failure::{Failure, not_registered};
use crate::json::Node;
use crate::kind::Kind;
use crate::media_type::media_type;
use crate::options::FieldValidation;
use crate::protobuf;
use crate::reply::Warnings;
use crate::store::ObjectFields;

/// The most that a body may hold, in bytes.
pub(crate) const LIMIT: usize = 3 * 1024 * 1024;

/// The part of an unreadable body that an error repeats, in bytes.
const SHOWN: usize = 30;

/// Reads the object of a create or an update, as it is to be stored.
pub(crate) fn object(
    kind: &Kind,
    headers: &HeaderMap,
    body: &[u8],
    validation: FieldValidation,
    warnings: &mut Warnings,
) -> Result<ObjectFields, Failure> {
    let node = match media_type(headers) {
        "" | "application/json" => parse(kind, body)?,
        protobuf::MEDIA_TYPE if !kind.custom && !kind.schema.open => {
            protobuf::object(kind.schema, body).map_err(|_| Failure::unreadable_protobuf())?
        }
        _ => return Err(Failure::unsupported_body()),
    };
    check_kind(kind, &node)?;
    let refused =
        |why: &str| Failure::bad_request(cannot_be_handled(kind, kind.kind, kind.version, why));
    let fields = fields(kind, &node, validation, warnings).map_err(|why| refused(&why))?;
    Ok(events::stored(kind, fields))
}

/// The kind that a body names.
pub(crate) fn named_kind(body: &[u8]) -> Option<String> {
    let node = Node::parse(body).ok().or_else(|| yaml(body).ok())?;
    Some(node.text("kind").to_owned()).filter(|kind| !kind.is_empty())
}

/// Reads YAML. The error is the parser's.
pub(crate) fn yaml(body: &[u8]) -> Result<Node, String> {
    serde_saphyr::from_slice(body).map_err(|error| error.to_string())
}

/// Reads what a patch has made of an object. The error is a reason, without the object.
pub(crate) fn patched(
    kind: &Kind,
    object: &Value,
    validation: FieldValidation,
    warnings: &mut Warnings,
) -> Result<ObjectFields, String> {
    let node = Node::from(object);
    let (version, name) = (node.text("apiVersion"), node.text("kind"));
    if name != kind.kind || version != kind.api_version() {
        return Err(not_registered(name, version));
    }
    fields(kind, &node, validation, warnings).map(|fields| events::stored(kind, fields))
}

fn fields(
    kind: &Kind,
    node: &Node,
    validation: FieldValidation,
    warnings: &mut Warnings,
) -> Result<ObjectFields, String> {
    let mut decoded = kind.schema.decode(node)?;
    if !decoded.objections.is_empty() {
        match validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => warnings.0.append(&mut decoded.objections),
            FieldValidation::Strict => {
                return Err(format!(
                    "strict decoding error: {}",
                    decoded.objections.join(", ")
                ));
            }
        }
    }
    decoded.fields.remove("apiVersion");
    decoded.fields.remove("kind");
    Ok(decoded.fields)
}

fn parse(kind: &Kind, body: &[u8]) -> Result<Node, Failure> {
    let unrecognized = |why: &str| {
        let (head, rest) = body.split_at(body.len().min(SHOWN));
        let head = match head {
            [] => "<empty>".to_owned(),
            [b'{', ..] => String::from_utf8_lossy(head).into_owned(),
            _ => head.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let more = if rest.is_empty() { "" } else { " ..." };
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: \
             {why} ({head}{more})",
            kind.kind
        ))
    };
    let node = Node::parse(body).map_err(|error| unrecognized(&error.0))?;
    if !matches!(node, Node::Map(_)) {
        return Err(unrecognized(&format!(
            "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            node.go_name()
        )));
    }
    Ok(node)
}

/// A body may leave out which kind it is of, but may not say another one.
fn check_kind(expected: &Kind, node: &Node) -> Result<(), Failure> {
    let version = Some(node.text("apiVersion")).filter(|text| !text.is_empty());
    let kind = Some(node.text("kind")).filter(|text| !text.is_empty());
    let version = version.map_or_else(|| expected.api_version(), str::to_owned);
    let kind = kind.unwrap_or(expected.kind);
    if version == expected.api_version() && kind == expected.kind {
        return Ok(());
    }
    let (group, short) = version.split_once('/').unwrap_or(("", &version));
    let message = match Kind::known(group, short, kind) {
        Some(known) if known.kind == expected.kind && known.group == expected.group => format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            expected.api_version()
        ),
        None if !is_known_elsewhere(group, short, kind) => {
            cannot_be_handled(expected, kind, short, &not_registered(kind, &version))
        }
        _ => {
            let internal = format!(
                "({}.{})",
                match expected.group.split('.').next() {
                    None | Some("") => "core",
                    Some(group) => group,
                },
                expected.kind
            );
            let why = format!("converting ({short}.{kind}) to {internal}: unknown conversion");
            cannot_be_handled(expected, kind, short, &why)
        }
    };
    Err(Failure::bad_request(message))
}

/// Kinds that this server does not serve and yet would be known to a real one; the commonest stand for all.
fn is_known_elsewhere(group: &str, version: &str, kind: &str) -> bool {
    matches!(
        (group, version, kind),
        (
            "",
            "v1",
            "Pod" | "ConfigMap" | "Secret" | "Service" | "Node"
        ) | ("apps", "v1", "Deployment" | "StatefulSet")
    )
}

fn cannot_be_handled(expected: &Kind, kind: &str, version: &str, why: &str) -> String {
    format!(
        "{kind} in version {version:?} cannot be handled as a {}: {why}",
        expected.kind
    )
}
