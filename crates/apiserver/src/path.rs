//! The meaning of a path.

use crate::kind::{Kind, is_custom_group};
use crate::query::percent_decode;

/// The subject of a request.
#[derive(Debug)]
pub(crate) enum Route {
    /// Objects of a kind.
    Resource(ResourcePath),
    /// A document about the server itself.
    Document(Document),
    /// Nothing, in a group that is served: a `Status`.
    NoResource,
    /// Nothing at all: plain text.
    NoPath,
}

/// A collection or one object.
#[derive(Debug)]
pub(crate) struct ResourcePath {
    pub(crate) kind: &'static Kind,
    /// The namespace in the path.
    pub(crate) namespace: Option<String>,
    /// The name in the path.
    pub(crate) name: Option<String>,
    /// The old form of a watch, `/watch/` in the path.
    pub(crate) watch: bool,
    /// True if it is about the status alone.
    pub(crate) status: bool,
}

/// A document about the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Document {
    Version,
    Healthy,
    CoreVersions,
    Groups,
    Group(String),
    Resources { group: String, version: String },
    OpenApi,
    OpenApiOf { group: String, version: String },
}

// === impl Route ===

impl Route {
    /// Reads a path, given what is served.
    pub(crate) fn of(segments: &[&str], served: &[&'static Kind]) -> Self {
        let group_is_served = |group: &str| served.iter().any(|kind| kind.group == group);
        match segments {
            ["version"] => Self::Document(Document::Version),
            ["healthz" | "livez" | "readyz"] => Self::Document(Document::Healthy),
            ["api"] => Self::Document(Document::CoreVersions),
            ["apis"] => Self::Document(Document::Groups),
            ["apis", group] if group_is_served(group) => {
                Self::Document(Document::Group((*group).to_owned()))
            }
            ["openapi", "v3"] => Self::Document(Document::OpenApi),
            ["openapi", "v3", "api", "v1"] => Self::Document(Document::OpenApiOf {
                group: String::new(),
                version: "v1".to_owned(),
            }),
            ["openapi", "v3", "apis", group, version] => Self::Document(Document::OpenApiOf {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
            }),
            ["api", version, rest @ ..] => Self::in_version("", version, rest, served),
            ["apis", group, version, rest @ ..] if group_is_served(group) => {
                Self::in_version(group, version, rest, served)
            }
            _ => Self::NoPath,
        }
    }

    fn in_version(group: &str, version: &str, rest: &[&str], served: &[&'static Kind]) -> Self {
        let kinds: Vec<_> = served
            .iter()
            .copied()
            .filter(|kind| kind.group == group && kind.version == version)
            .collect();
        if rest.is_empty() && !kinds.is_empty() {
            return Self::Document(Document::Resources {
                group: group.to_owned(),
                version: version.to_owned(),
            });
        }
        let (watch, rest) = match rest {
            ["watch", rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let kind = |plural: &str| kinds.iter().copied().find(|kind| kind.plural == plural);
        let (rest, status) = match rest {
            [rest @ .., "status"] if matches!(rest, [_, _] | ["namespaces", _, _, _]) => {
                (rest, true)
            }
            rest => (rest, false),
        };
        let (plural, namespace, name) = match *rest {
            [plural] => (plural, None, None),
            // Also `namespaces/x`: the Namespace itself.
            [plural, name] => (plural, None, Some(name)),
            ["namespaces", namespace, plural] => (plural, Some(namespace), None),
            ["namespaces", namespace, plural, name] => (plural, Some(namespace), Some(name)),
            _ => return Self::NoResource,
        };
        match kind(plural) {
            Some(kind)
                if (kind.namespaced || namespace.is_none())
                    && (!status || kind.status && kind.namespaced == namespace.is_some()) =>
            {
                Self::Resource(ResourcePath {
                    kind,
                    namespace: namespace.map(str::to_owned),
                    name: name.map(str::to_owned),
                    watch,
                    status,
                })
            }
            // The server of custom resources passes on what it has not, and nothing else is there.
            _ if is_custom_group(group) => Self::NoPath,
            _ => Self::NoResource,
        }
    }
}

/// The segments of a path, decoded.
pub(crate) fn segments(path: &str) -> Vec<String> {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    let decoded = segments.map(|segment| percent_decode(segment, false));
    decoded.collect()
}
