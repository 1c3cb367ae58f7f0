//! The requests that are to be of ranges.

use elector_protocol::shard::ShardSelector;
use http::{Method, Request, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// A resource whose lists and watches are of ranges: `configmaps`, or `widgets.example.com`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShardedResource {
    plural: String,
    /// Any, where none is named.
    group: Option<String>,
}

/// A list or a watch of such a resource.
#[derive(Clone, Debug)]
pub(super) struct ShardedRead {
    pub(super) kind: ReadKind,
    uri: Uri,
    /// The path, and the selectors of the client: what tells one sequence of lists and watches from another.
    place: String,
    /// The token of a page that is not the first.
    pub(super) page: Option<String>,
    /// The version from which a watch goes on. `None` for one that begins with what is there.
    pub(super) version: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadKind {
    List,
    Watch,
}

/// The letters that an address may not have, or would have another sense with.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'(')
    .remove(b')');

// === impl ShardedResource ===

impl From<&str> for ShardedResource {
    fn from(text: &str) -> Self {
        match text.split_once('.') {
            Some((plural, group)) => Self {
                plural: plural.to_owned(),
                group: Some(group.to_owned()),
            },
            None => Self {
                plural: text.to_owned(),
                group: None,
            },
        }
    }
}

// === impl ShardedRead ===

impl ShardedRead {
    /// The read that a request is, `None` for any other request.
    ///
    /// A read of one object by its name is not one of ranges: a client that waits for the object would wait for ever.
    pub(super) fn of<B>(request: &Request<B>, resources: &[ShardedResource]) -> Option<Self> {
        if request.method() != Method::GET {
            return None;
        }
        let uri = request.uri();
        let (group, plural) = collection(uri.path())?;
        let is_wanted = |resource: &ShardedResource| {
            let of_group = resource.group.as_deref().is_none_or(|it| it == group);
            resource.plural == plural && of_group
        };
        if !resources.iter().any(is_wanted) {
            return None;
        }
        let query = uri.query().unwrap_or_default();
        let raw = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let value = pairs.find(|(key, _)| *key == name)?.1;
            (!value.is_empty()).then_some(value)
        };
        let (fields, labels) = (raw("fieldSelector"), raw("labelSelector"));
        let is_of_one = fields.is_some_and(|fields| {
            let fields = decoded(fields);
            let mut terms = fields.split(',').map(|term| term.split('=').next());
            terms.any(|field| field == Some("metadata.name"))
        });
        if is_of_one || raw("shardSelector").is_some() {
            return None;
        }
        let is_on = |value: Option<&str>| matches!(value, Some("true" | "1"));
        let kind = match is_on(raw("watch")) {
            true => ReadKind::Watch,
            false => ReadKind::List,
        };
        let version = raw("resourceVersion").filter(|version| *version != "0");
        let goes_on = kind == ReadKind::Watch && !is_on(raw("sendInitialEvents"));
        Some(Self {
            kind,
            place: format!(
                "{}?{}&{}",
                uri.path(),
                labels.unwrap_or_default(),
                fields.unwrap_or_default()
            ),
            page: raw("continue").map(decoded),
            version: version.filter(|_| goes_on).map(decoded),
            uri: uri.clone(),
        })
    }

    /// The address of the same read of these ranges alone.
    pub(super) fn selecting(&self, selector: &ShardSelector) -> Uri {
        let separator = match self.uri.query() {
            None => "?",
            Some("") => "",
            Some(_) => "&",
        };
        let selector = selector.to_string();
        let encoded = utf8_percent_encode(&selector, ESCAPED);
        let text = format!("{}{separator}shardSelector={encoded}", self.uri);
        // Letters that an address cannot have are escaped.
        text.parse().unwrap_or_else(|_| self.uri.clone())
    }

    /// A version or a token of this sequence of reads.
    pub(super) fn key(&self, text: &str) -> String {
        format!("{} {text}", self.place)
    }

    /// The path of the collection.
    pub(super) fn resource(&self) -> &str {
        self.uri.path()
    }
}

/// Group and plural of a path that names a collection.
fn collection(path: &str) -> Option<(&str, &str)> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let group = match parts.next()? {
        "api" => "",
        "apis" => parts.next()?,
        _ => return None,
    };
    let _version = parts.next()?;
    let parts: Vec<_> = parts.collect();
    match parts[..] {
        [plural] | ["namespaces", _, plural] => Some((group, plural)),
        _ => None,
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
