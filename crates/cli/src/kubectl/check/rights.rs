//! The rights of the caller and of the electors.

use elector_api::CandidateApi;

use super::line::{CheckLevel, CheckLine, apply_overlay};
use super::place::CheckedPlace;
use super::right::{Right, missing};

/// Rights that an account needs for something.
struct Need<'a> {
    /// `None` is the caller.
    user: Option<&'a str>,
    rights: Vec<Right>,
    /// The line where it has them. Without one, nothing is said where they cannot be asked for either.
    ok: Option<String>,
    level: CheckLevel,
    /// The consequence of a lack, where it is not clear.
    so: &'static str,
    fix: String,
}

const CHECK: &str = "rights";
const COORDINATION: &str = "coordination.k8s.io";

/// Asks for the rights of the caller and of the electors.
pub(super) async fn check(
    place: &CheckedPlace,
    api: Option<CandidateApi>,
    policies: bool,
    lines: &mut Vec<CheckLine>,
) {
    for need in needs(place, api, policies) {
        match missing(place, need.user, &need.rights).await {
            Ok(lack) if lack.is_empty() => {
                lines.extend(need.ok.map(|text| CheckLine::ok(CHECK, text)));
            }
            Ok(lack) => lines.push(need.line(&lack.join(", "))),
            Err(_) if need.ok.is_none() => {}
            Err(error) => {
                let fix = match need.user {
                    None => {
                        "use an account with this permission: kubectl auth can-i --list".to_owned()
                    }
                    Some(user) => format!("look as it: kubectl auth can-i --list --as={user}"),
                };
                lines.push(CheckLine::warning(CHECK, format!("failed to {error}"), fix));
                return;
            }
        }
    }
}

fn needs(place: &CheckedPlace, api: Option<CandidateApi>, policies: bool) -> Vec<Need<'_>> {
    let candidates = api.unwrap_or_default().group();
    let rights = |verbs: &[&'static str], group, resource| -> Vec<Right> {
        let right = |verb: &&'static str| Right {
            verb,
            group,
            resource,
            namespace: place.namespace.clone(),
            name: None,
        };
        verbs.iter().map(right).collect()
    };
    let enforced = |right: Vec<Right>| if policies { right } else { Vec::new() };
    let user = place.elector_user.as_str();
    let mut needs = vec![
        Need {
            user: None,
            rights: [
                rights(&["list", "watch"], COORDINATION, "leases"),
                rights(&["list", "watch"], candidates, "leasecandidates"),
                rights(&["list"], "events.k8s.io", "events"),
            ]
            .concat(),
            ok: Some("you have permission to read leases and candidates".to_owned()),
            level: CheckLevel::Warning,
            so: "",
            fix: "ask for these permissions, or use --as".to_owned(),
        },
        Need {
            user: None,
            rights: [
                rights(&["patch"], COORDINATION, "leases"),
                rights(&["patch"], candidates, "leasecandidates"),
                // A candidate is written by those alone who may update its Lease.
                enforced(rights(&["update"], COORDINATION, "leases")),
                enforced(rights(&["operate"], "elector.dev", "leases")),
            ]
            .concat(),
            ok: None,
            level: CheckLevel::Warning,
            so: "",
            fix: "freeze, prefer and stand-down need these: have the role admin or the ClusterRole elector-operate bound \
                  to you"
                .to_owned(),
        },
        Need {
            user: Some(user),
            rights: [
                rights(
                    &["get", "list", "watch", "create", "update"],
                    COORDINATION,
                    "leases",
                ),
                rights(
                    &["list", "watch", "patch", "delete"],
                    candidates,
                    "leasecandidates",
                ),
                enforced(rights(&["elect"], "elector.dev", "leases")),
            ]
            .concat(),
            ok: Some(format!(
                "electors have the permissions they need, as {user}"
            )),
            level: CheckLevel::Error,
            so: "",
            fix: format!("{}, or name their account with --elector-user", apply_overlay(api)),
        },
        Need {
            user: Some(user),
            rights: rights(&["create", "patch"], "events.k8s.io", "events"),
            ok: None,
            level: CheckLevel::Warning,
            so: "",
            fix: format!(
                "without it they record no Events, and history and explain have less to show; {}",
                apply_overlay(api)
            ),
        },
    ];
    if api.is_some_and(CandidateApi::is_native) {
        let lock = rights(&["list", "watch"], COORDINATION, "leases").into_iter();
        let lock = lock.map(|right| Right {
            namespace: Some("kube-system".to_owned()),
            name: Some("leader-election-controller".to_owned()),
            ..right
        });
        needs.push(Need {
            user: Some(user),
            rights: lock.collect(),
            ok: None,
            level: CheckLevel::Error,
            so: ", and elect nothing of the built-in strategy",
            fix: "the ClusterRole elector has these, and in the overlay namespaced the Role elector-builtin-lock: apply yours"
                .to_owned(),
        });
    }
    needs
}

// === impl Need ===

impl Need<'_> {
    /// The line where the account lacks some of the rights.
    fn line(&self, lack: &str) -> CheckLine {
        let text = match self.user {
            None => format!("you lack the permission to {lack}"),
            Some(user) => format!(
                "electors lack the permission to {lack}, as {user}{}",
                self.so
            ),
        };
        CheckLine {
            level: self.level,
            ..CheckLine::warning(CHECK, text, self.fix.as_str())
        }
    }
}
