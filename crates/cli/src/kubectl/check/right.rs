//! One right, and the question whether an account has it.

use elector_runtime::RequestError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::place::CheckedPlace;

/// Something that an account may do or not.
#[derive(Clone, Debug)]
pub(super) struct Right {
    pub(super) verb: &'static str,
    pub(super) group: &'static str,
    pub(super) resource: &'static str,
    /// `None` for all, or for what is in none.
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
}

/// The answer of a review.
#[derive(Debug, Deserialize)]
struct Review {
    status: ReviewStatus,
}

#[derive(Debug, Deserialize)]
struct ReviewStatus {
    #[serde(default)]
    allowed: bool,
}

/// Those of the rights that an account does not have, in words; `None` is the caller.
pub(super) async fn missing(
    place: &CheckedPlace,
    user: Option<&str>,
    rights: &[Right],
) -> Result<Vec<String>, RequestError> {
    let mut lack = Vec::new();
    for right in rights {
        let (resource, path, question) = right.question(user);
        let review: Review = place.ask(resource, path, &question).await?;
        if !review.status.allowed {
            lack.push(right.to_string());
        }
    }
    Ok(lack)
}

// === impl Right ===

impl Right {
    /// The question, and its place.
    fn question(&self, user: Option<&str>) -> (&'static str, &'static str, Value) {
        let mut spec = json!({"resourceAttributes": {
            "verb": self.verb, "group": self.group, "resource": self.resource,
            "namespace": self.namespace, "name": self.name,
        }});
        let (kind, resource, path) = match user {
            None => (
                "SelfSubjectAccessReview",
                "selfsubjectaccessreviews.authorization.k8s.io",
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            ),
            Some(user) => {
                spec["user"] = user.into();
                spec["groups"] = groups(user);
                (
                    "SubjectAccessReview",
                    "subjectaccessreviews.authorization.k8s.io",
                    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                )
            }
        };
        let question = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
        (resource, path, question)
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}.{}", self.verb, self.resource, self.group)?;
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (Some(namespace), None) => write!(f, " in {namespace}"),
            (None, _) => f.write_str(" in all namespaces"),
        }
    }
}

/// The groups of a user, which for a service account follow from its name.
fn groups(user: &str) -> Value {
    let account = user.strip_prefix("system:serviceaccount:");
    match account.and_then(|account| account.split_once(':')) {
        Some((namespace, _)) => json!([
            "system:serviceaccounts",
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated",
        ]),
        None => json!(["system:authenticated"]),
    }
}
