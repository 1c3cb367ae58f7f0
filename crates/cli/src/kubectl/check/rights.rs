//! The rights of the caller and of the electors.

use elector_api::CandidateApi;
use elector_runtime::RequestError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::line::CheckLine;
use super::place::CheckedPlace;

/// Something that an account may do or not.
#[derive(Clone, Debug)]
struct Right {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    namespace: Option<String>,
    name: Option<&'static str>,
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

const CHECK: &str = "rights";
const COORDINATION: &str = "coordination.k8s.io";
/// The verbs of each elector for Leases, for candidates, and for Events on Leases.
const OF_ELECTORS: [&[&str]; 3] = [
    &["get", "list", "watch", "create", "update"],
    &["list", "watch", "patch", "delete"],
    &["create", "patch"],
];
/// The lock of the controller that is built into kube-apiserver.
const BUILTIN_LOCK: &str = "leader-election-controller";

/// Asks for the rights of the caller and of the electors.
pub(super) async fn check(
    place: &CheckedPlace,
    api: Option<CandidateApi>,
    policies: bool,
    lines: &mut Vec<CheckLine>,
) {
    let candidates = api.unwrap_or_default().group();
    let right = |verb, group, resource| Right {
        verb,
        group,
        resource,
        namespace: place.namespace.clone(),
        name: None,
    };
    let looks = [
        right("list", COORDINATION, "leases"),
        right("watch", COORDINATION, "leases"),
        right("list", candidates, "leasecandidates"),
        right("watch", candidates, "leasecandidates"),
        right("list", "events.k8s.io", "events"),
    ];
    // A candidate is written by those alone who may update its Lease.
    let words = [
        right("patch", COORDINATION, "leases"),
        right("patch", candidates, "leasecandidates"),
    ];
    let asked_for = policies.then(|| {
        [
            right("update", COORDINATION, "leases"),
            right("operate", "elector.dev", "leases"),
        ]
    });
    let words: Vec<_> = words
        .into_iter()
        .chain(asked_for.into_iter().flatten())
        .collect();
    match missing(place, None, &looks).await {
        Err(error) => {
            let fix = "have somebody look who may: kubectl auth can-i --list";
            lines.push(CheckLine::warning(CHECK, format!("failed to {error}"), fix));
            return;
        }
        Ok(lack) if lack.is_empty() => {
            lines.push(CheckLine::ok(
                CHECK,
                "you may look at leases and candidates",
            ));
        }
        Ok(lack) => lines.push(CheckLine::warning(
            CHECK,
            format!("you may not {}", lack.join(", ")),
            "have these granted to you, or look with --as",
        )),
    }
    if let Ok(lack) = missing(place, None, &words).await
        && !lack.is_empty()
    {
        lines.push(CheckLine::warning(
            CHECK,
            format!("you may not {}", lack.join(", ")),
            "freeze, prefer and stand-down need these: have the role admin or the ClusterRole elector-operate bound to you",
        ));
    }

    let [leases, of_candidates, events] = OF_ELECTORS;
    let leases = leases
        .iter()
        .map(|verb| right(verb, COORDINATION, "leases"));
    let of_candidates = of_candidates
        .iter()
        .map(|verb| right(verb, candidates, "leasecandidates"));
    let events = events
        .iter()
        .map(|verb| right(verb, "events.k8s.io", "events"));
    let elects = policies.then(|| right("elect", "elector.dev", "leases"));
    let needs: Vec<_> = leases.chain(of_candidates).chain(elects).collect();
    let user = &place.elector_user;
    match missing(place, Some(user), &needs).await {
        Err(error) => {
            let fix = format!("look as it: kubectl auth can-i --list --as={user}");
            lines.push(CheckLine::warning(CHECK, format!("failed to {error}"), fix));
            return;
        }
        Ok(lack) if lack.is_empty() => {
            lines.push(CheckLine::ok(CHECK, format!("electors may elect, as {user}")));
        }
        Ok(lack) => lines.push(CheckLine::error(
            CHECK,
            format!("electors may not {}, as {user}", lack.join(", ")),
            "apply the overlay for this cluster, such as kubectl apply -k manifests/overlays/native, or name their \
             account with --elector-user",
        )),
    }
    let events: Vec<_> = events.collect();
    if let Ok(lack) = missing(place, Some(user), &events).await
        && !lack.is_empty()
    {
        lines.push(CheckLine::warning(
            CHECK,
            format!("electors may not {}, as {user}", lack.join(", ")),
            "without it they tell nothing in Events, and history and explain know less; apply manifests/base",
        ));
    }
    if !api.is_some_and(CandidateApi::is_native) {
        return;
    }
    let lock = ["list", "watch"].map(|verb| Right {
        namespace: Some("kube-system".to_owned()),
        name: Some(BUILTIN_LOCK),
        ..right(verb, COORDINATION, "leases")
    });
    if let Ok(lack) = missing(place, Some(user), &lock).await
        && !lack.is_empty()
    {
        lines.push(CheckLine::error(
            CHECK,
            format!(
                "electors may not {}, as {user}, and elect nothing of the built-in strategy",
                lack.join(", ")
            ),
            "kubectl apply -k manifests/components/builtin-lock",
        ));
    }
}

/// Those of the rights that an account does not have, in words; `None` is the caller.
async fn missing(
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
        match (&self.namespace, self.name) {
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
