//! The rights of candidates, by the accounts of their Pods.

use std::collections::{BTreeMap, BTreeSet};

use elector_api::{CandidateApi, LeaseCandidate};
use elector_protocol::LeaseKey;
use elector_runtime::RequestError;

use super::line::CheckLine;
use super::place::CheckedPlace;
use super::right::{Right, missing};
use crate::explain::cluster::ListedObjects;
use crate::kubectl::pods::{Pod, list_pods};

const CHECK: &str = "candidates";
const COORDINATION: &str = "coordination.k8s.io";

/// The most pairs of a lease and an account that are asked about: each takes several requests.
const MOST: usize = 50;

/// Asks for the rights of each account that candidates of these leases have.
pub(super) async fn check(
    place: &CheckedPlace,
    api: CandidateApi,
    listed: &ListedObjects,
    user: Option<&str>,
    lines: &mut Vec<CheckLine>,
) {
    let chosen = |candidate: &&LeaseCandidate| {
        let lease = place.lease.as_deref();
        lease.is_none_or(|lease| lease == candidate.spec.lease_name)
    };
    let candidates: Vec<_> = listed.candidates.iter().filter(chosen).collect();
    let mut asked = BTreeSet::new();
    let mut unknown = 0;
    if let (Some(user), Some(lease), Some(namespace)) = (user, &place.lease, &place.namespace) {
        let lease = LeaseKey::new(namespace.as_str(), lease.as_str());
        asked.insert((lease, user.to_owned()));
    } else if !candidates.is_empty() {
        let pods = match list_pods(&place.cluster, place.namespace.as_deref(), "").await {
            Ok(pods) => pods,
            Err(error) => {
                let fix = format!(
                    "use an account with this permission: {} get pods",
                    place.kubectl()
                );
                let text =
                    format!("failed to {error}, so that the accounts of candidates are not known");
                lines.push(CheckLine::warning(CHECK, text, fix));
                return;
            }
        };
        let accounts = accounts(&candidates, &pods);
        unknown = candidates.len() - accounts.len();
        asked.extend(accounts);
    }
    let before = lines.len();
    let left_out = left_out(asked.len());
    let mut well = 0;
    for (lease, user) in asked.into_iter().take(MOST) {
        match lacks(place, api, &lease, &user).await {
            Ok(lack) if lack.is_empty() => well += 1,
            Ok(lack) => lines.push(lacking(&lease, &user, &lack)),
            Err(error) => {
                let fix = format!("look as it: kubectl auth can-i --list --as={user}");
                lines.push(CheckLine::warning(CHECK, format!("failed to {error}"), fix));
                return;
            }
        }
    }
    lines.extend(left_out);
    if lines.len() == before && well + unknown > 0 {
        let mut text =
            format!("the accounts of candidates, {well}, have the permissions they need");
        if unknown > 0 {
            text = format!("{text}; of {unknown} candidates no Pod tells the account");
        }
        lines.push(CheckLine::ok(CHECK, text));
    }
}

/// The line about those of so many accounts that are not looked at, if there are any.
fn left_out(asked: usize) -> Option<CheckLine> {
    let left_out = asked.checked_sub(MOST).filter(|it| *it > 0)?;
    Some(CheckLine::warning(
        CHECK,
        format!("accounts of candidates that were not looked at: {left_out}"),
        "name a lease, with --lease, or a namespace",
    ))
}

/// For each candidate of a Pod the lease that it names and its account.
fn accounts(candidates: &[&LeaseCandidate], pods: &[Pod]) -> Vec<(LeaseKey, String)> {
    let mut by_namespace: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        let pods = by_namespace.entry(&pod.metadata.namespace).or_default();
        pods.push(pod);
    }
    let of = |candidate: &&LeaseCandidate| {
        let namespace = candidate.metadata.namespace.as_deref()?;
        let mut pods = by_namespace.get(namespace)?.iter();
        let pod = pods.find(|pod| pod.is_author(candidate))?;
        let account = &pod.spec.service_account_name;
        let user = format!("system:serviceaccount:{namespace}:{account}");
        Some((candidate.lease_key(), user))
    };
    candidates.iter().filter_map(of).collect()
}

/// The rights that a candidate for a lease needs and an account does not have, in words.
async fn lacks(
    place: &CheckedPlace,
    api: CandidateApi,
    lease: &LeaseKey,
    user: &str,
) -> Result<Vec<String>, RequestError> {
    let rights = |verbs: &[&'static str], group, resource, name: Option<&str>| -> Vec<Right> {
        let right = |verb: &&'static str| Right {
            verb,
            group,
            resource,
            namespace: Some(lease.namespace.to_string()),
            name: name.map(str::to_owned),
        };
        verbs.iter().map(right).collect()
    };
    let needed = [
        rights(
            &["get", "list", "watch", "update"],
            COORDINATION,
            "leases",
            Some(&lease.name),
        ),
        rights(&["create"], COORDINATION, "leases", None),
        rights(
            &["get", "list", "watch", "create", "update", "delete"],
            api.group(),
            "leasecandidates",
            None,
        ),
    ];
    missing(place, Some(user), &needed.concat()).await
}

fn lacking(lease: &LeaseKey, user: &str, lack: &[String]) -> CheckLine {
    let text = format!(
        "candidates for {lease} lack the permission to {}, as {user}",
        lack.join(", ")
    );
    let fix = "bind the Role for candidates, with the name of this Lease, to the account";
    // Only a candidate in auto or plain mode makes a Lease, and one that is not deleted is collected later.
    let is_spare = |right: &String| {
        right.starts_with("create leases.") || right.starts_with("delete leasecandidates.")
    };
    if lack.iter().all(is_spare) {
        return CheckLine::warning(CHECK, text, fix);
    }
    CheckLine::error(CHECK, text, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_that_are_not_looked_at_are_counted_from_the_first_beyond_the_most() {
        assert_eq!(left_out(0), None);
        assert_eq!(left_out(MOST), None);
        let line = left_out(MOST + 1).unwrap();
        assert_eq!(
            line.result,
            "accounts of candidates that were not looked at: 1"
        );
    }
}
