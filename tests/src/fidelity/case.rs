//! Cases as text.
//!
//! ```text
//! == a title, perhaps with [gate] for a server with CoordinatedLeaderElection and ShardedListAndWatch
//! POST leases {"metadata":{"name":"a"}} -> first
//! PUT leases/a +Content-Type:application/json {"metadata":{"name":"a","uid":"{first.metadata.uid}"}}
//! ```
//!
//! `leases`, `all-leases`, `candidates`, `old-candidates`, `maps`, `widgets` and `gadgets` stand for their paths, `{ns}`
//! for the namespace of the case. MERGE, JSON, STRATEGIC and APPLY are patches; TABLE, META and METALIST are GETs of another form.

use anyhow::{Context as _, Result};
use serde_json::Value;

/// A sequence of requests with a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FidelityCase {
    /// Its subject; unique.
    pub title: String,
    /// True if it wants a server with the feature gates on.
    pub gate: bool,
    /// Its requests.
    pub steps: Vec<CaseStep>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseStep {
    /// The line, without what its answer is called.
    pub line: String,
    /// The name of its answer in later lines.
    pub name: Option<String>,
}

/// A request that can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CaseRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<String>,
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// The longest name of a namespace, and what its beginning takes.
const LONGEST_NAMESPACE: usize = 63;

// === impl FidelityCase ===

impl FidelityCase {
    /// Reads all cases of a text.
    ///
    /// # Panics
    ///
    /// When a line stands before the first title.
    #[must_use]
    pub fn parse_all(text: &str) -> Vec<Self> {
        let mut cases: Vec<Self> = Vec::new();
        let lines = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with("# "));
        for line in lines {
            match line.strip_prefix("== ") {
                Some(title) => cases.push(Self {
                    title: title.to_owned(),
                    gate: title.ends_with("[gate]"),
                    steps: Vec::new(),
                }),
                None => {
                    let case = cases
                        .last_mut()
                        .expect("a title comes before the first request");
                    case.steps.push(CaseStep::parse(line));
                }
            }
        }
        cases
    }

    /// The namespace in which it runs, made of its title.
    #[must_use]
    pub fn namespace(&self) -> String {
        let words = self
            .title
            .split(|letter: char| !letter.is_ascii_alphanumeric());
        let words: Vec<_> = words
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let mut name = words.join("-");
        name.truncate(LONGEST_NAMESPACE - "missing-".len());
        name.trim_end_matches('-').to_owned()
    }
}

// === impl CaseStep ===

impl CaseStep {
    fn parse(line: &str) -> Self {
        match line.rsplit_once(" -> ") {
            Some((line, name)) if name.bytes().all(|byte| byte.is_ascii_lowercase()) => Self {
                line: line.trim_end().to_owned(),
                name: Some(name.to_owned()),
            },
            _ => Self {
                line: line.to_owned(),
                name: None,
            },
        }
    }

    /// The request, with earlier answers put in. `look_up` finds a value by the name of an answer.
    pub(super) fn request<'a>(
        &self,
        namespace: &str,
        look_up: impl Fn(&str) -> Option<&'a Value>,
    ) -> Result<CaseRequest> {
        let line = self.line.replace("{ns}", namespace);
        let line = substitute(&line, look_up)
            .with_context(|| format!("failed to fill in {:?}", self.line))?;
        let (verb, rest) = line
            .split_once(' ')
            .context("a line has a verb and a path")?;
        let (path, mut rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let mut headers = Vec::new();
        while let Some(header) = rest.strip_prefix('+') {
            let (header, after) = header.split_once(' ').unwrap_or((header, ""));
            let (name, value) = header
                .split_once(':')
                .context("a header has a name and a value")?;
            headers.push((name.to_owned(), value.to_owned()));
            rest = after;
        }
        let body = Some(rest.to_owned()).filter(|body| !body.is_empty());
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let patch = |format: &str| {
            (
                "PATCH",
                Some(header("Content-Type", &format!("application/{format}"))),
            )
        };
        let (method, implied) = match verb {
            "MERGE" => patch("merge-patch+json"),
            "JSON" => patch("json-patch+json"),
            "STRATEGIC" => patch("strategic-merge-patch+json"),
            "APPLY" => patch("apply-patch+yaml"),
            "TABLE" => ("GET", Some(header("Accept", TABLE))),
            "META" => ("GET", Some(header("Accept", METADATA))),
            "METALIST" => ("GET", Some(header("Accept", METADATA_LIST))),
            verb => (verb, None),
        };
        headers.extend(implied);
        let given = |name: &str| headers.iter().any(|(key, _)| key == name);
        if body.is_some() && !given("Content-Type") {
            headers.push(header("Content-Type", "application/json"));
        }
        Ok(CaseRequest {
            method: method.to_owned(),
            path: whole_path(path, namespace),
            headers,
            body,
        })
    }
}

/// Puts the prefix in the place of a path's first word.
fn whole_path(path: &str, namespace: &str) -> String {
    let end = path.find(['/', '?']).unwrap_or(path.len());
    let (word, rest) = path.split_at(end);
    let group = "/apis/coordination.k8s.io";
    let prefix = match word {
        "leases" => format!("{group}/v1/namespaces/{namespace}/leases"),
        "all-leases" => format!("{group}/v1/leases"),
        "candidates" => format!("{group}/v1beta1/namespaces/{namespace}/leasecandidates"),
        "old-candidates" => format!("{group}/v1alpha2/namespaces/{namespace}/leasecandidates"),
        "maps" => format!("/api/v1/namespaces/{namespace}/configmaps"),
        "widgets" => format!("/apis/example.com/v1/namespaces/{namespace}/widgets"),
        "gadgets" => "/apis/example.com/v1/gadgets".to_owned(),
        word => word.to_owned(),
    };
    format!("{prefix}{rest}")
}

/// Replaces each `{name.path.to.value}`. Braces of JSON are followed by a quote or a brace, never by a letter.
fn substitute<'a>(line: &str, look_up: impl Fn(&str) -> Option<&'a Value>) -> Result<String> {
    let mut filled = String::new();
    let mut rest = line;
    while let Some(start) = rest.find('{') {
        let (before, from) = rest.split_at(start);
        filled.push_str(before);
        let end = from
            .find(['}', '"', ' '])
            .filter(|end| from[*end..].starts_with('}') && *end > 1);
        let named = from[1..].starts_with(|letter: char| letter.is_ascii_lowercase());
        let Some(end) = end.filter(|_| named) else {
            filled.push('{');
            rest = &from[1..];
            continue;
        };
        let mut parts = from[1..end].split('.');
        let name = parts.next().unwrap_or_default();
        let value = look_up(name).with_context(|| format!("no answer is called {name}"))?;
        let value = parts.try_fold(value, |value, part| value.get(part));
        let text = value.and_then(Value::as_str);
        filled.push_str(
            text.with_context(|| format!("{} has no such value: {name}", &from[..=end]))?,
        );
        rest = &from[end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}
