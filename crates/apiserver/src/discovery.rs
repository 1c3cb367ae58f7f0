//! Documents about the server: its version, its groups, its resources.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::call::Call;
use crate::config::Config;
use crate::failure::Failure;
use crate::kind::{Bucket, Kind};
use crate::openapi;
use crate::path::Document;
use crate::reply::{self, HttpReply, ReplyForm, headed};

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// The actions on a status.
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Serves a document.
pub(crate) fn document(
    config: &Config,
    kinds: &[&'static Kind],
    document: &Document,
    call: &Call,
) -> Result<HttpReply, Failure> {
    if call.method != Method::GET {
        return Err(Failure::method_not_allowed());
    }
    let aggregated = || Ok(ReplyForm::wanted(&call.headers, false)? == ReplyForm::Discovery);
    let value = match document {
        Document::Healthy => return Ok(reply::text(StatusCode::OK, "ok")),
        Document::Version => version(config.minor),
        Document::CoreVersions if aggregated()? => {
            group_list(kinds.iter().copied().filter(|kind| kind.group.is_empty()))
        }
        Document::Groups if aggregated()? => {
            group_list(kinds.iter().copied().filter(|kind| !kind.group.is_empty()))
        }
        Document::CoreVersions => json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
        }),
        Document::Groups => {
            let groups: Vec<_> = groups(kinds)
                .into_iter()
                .map(|group| group_of(kinds, group))
                .collect();
            headed("v1", "APIGroupList", [("groups", groups.into())])
        }
        Document::Group(group) => {
            let Value::Object(fields) = group_of(kinds, group) else {
                return Err(Failure::no_resource());
            };
            let mut group = headed("v1", "APIGroup", []);
            for (name, value) in fields {
                group[name] = value;
            }
            group
        }
        Document::Resources { group, version } => {
            let here = kinds
                .iter()
                .filter(|kind| kind.group == *group && kind.version == *version);
            let resources: Vec<_> = here.clone().flat_map(|kind| resources(kind)).collect();
            let version = here
                .map(|kind| kind.api_version())
                .next()
                .unwrap_or_default();
            headed(
                "v1",
                "APIResourceList",
                [
                    ("groupVersion", version.into()),
                    ("resources", resources.into()),
                ],
            )
        }
        Document::OpenApi => openapi::index(kinds),
        Document::OpenApiOf { group, version } => {
            openapi::document(kinds, group, version, config.minor)
                .ok_or_else(Failure::no_resource)?
        }
    };
    let mut reply = reply::json(StatusCode::OK, &value);
    if call.headers.contains_key(http::header::ACCEPT)
        && matches!(document, Document::CoreVersions | Document::Groups)
        && aggregated()?
    {
        let media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let media = http::HeaderValue::from_static(media);
        reply
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, media);
    }
    Ok(reply)
}

fn version(minor: u32) -> Value {
    json!({
        "major": "1", "minor": minor.to_string(), "emulationMajor": "1", "emulationMinor": minor.to_string(),
        "minCompatibilityMajor": "1", "minCompatibilityMinor": minor.saturating_sub(1).to_string(),
        "gitVersion": format!("v1.{minor}.0"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// The named groups in order, each once.
fn groups<'a>(kinds: &[&'a Kind]) -> Vec<&'a str> {
    let mut groups: Vec<&str> = Vec::new();
    for kind in kinds.iter().filter(|kind| !kind.group.is_empty()) {
        if !groups.contains(&kind.group) {
            groups.push(kind.group);
        }
    }
    groups
}

fn versions<'a>(kinds: &[&'a Kind], group: &str) -> Vec<&'a str> {
    let mut versions: Vec<&str> = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.group == group) {
        if !versions.contains(&kind.version) {
            versions.push(kind.version);
        }
    }
    versions
}

fn group_of(kinds: &[&'static Kind], group: &str) -> Value {
    let versions: Vec<_> = versions(kinds, group)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    let preferred = versions.first().cloned().unwrap_or_default();
    json!({"name": group, "versions": versions, "preferredVersion": preferred})
}

fn verbs(kind: &Kind) -> Vec<&'static str> {
    // Namespaces are deleted one by one.
    VERBS
        .into_iter()
        .filter(|verb| *verb != "deletecollection" || kind.bucket != Bucket::Namespaces)
        .collect()
}

/// A kind, and its status where that is a resource of its own.
fn resources(kind: &Kind) -> impl Iterator<Item = Value> {
    let status = kind.status.then(|| {
        json!({
            "name": format!("{}/status", kind.plural), "singularName": "", "namespaced": kind.namespaced,
            "kind": kind.kind, "verbs": STATUS_VERBS,
        })
    });
    [resource(kind)].into_iter().chain(status)
}

fn resource(kind: &Kind) -> Value {
    let mut resource = json!({
        "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind,
        "verbs": verbs(kind),
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.storage_hash.is_empty() {
        resource["storageVersionHash"] = kind.storage_hash.into();
    }
    resource
}

/// The newer form: all groups with all their resources in one document.
fn group_list<'a>(kinds: impl Iterator<Item = &'a Kind> + Clone) -> Value {
    let kinds: Vec<_> = kinds.collect();
    let mut names = groups(&kinds);
    if kinds.iter().any(|kind| kind.group.is_empty()) {
        names.insert(0, "");
    }
    let items: Vec<_> = names
        .into_iter()
        .map(|group| {
            let versions: Vec<_> = versions(&kinds, group)
                .into_iter()
                .map(|version| {
                    let here = kinds
                        .iter()
                        .filter(|kind| kind.group == group && kind.version == version);
                    let resources: Vec<_> = here.map(|kind| discovered(kind)).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.is_empty() {
                json!({})
            } else {
                json!({"name": group})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    headed(
        "apidiscovery.k8s.io/v2",
        "APIGroupDiscoveryList",
        [("metadata", json!({})), ("items", items.into())],
    )
}

fn discovered(kind: &Kind) -> Value {
    let mut resource = json!({
        "resource": kind.plural, "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular, "verbs": verbs(kind),
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if kind.status {
        resource["subresources"] = json!([{
            "subresource": "status", "responseKind": {"group": "", "version": "", "kind": kind.kind},
            "verbs": STATUS_VERBS,
        }]);
    }
    resource
}
