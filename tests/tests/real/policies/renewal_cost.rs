//! The price of a renewal: the policies look at it, and ask the authorizer for no right.

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{TestSite, Testbed};
use http::Request;
use serde_json::{Value, json};

use super::accounts::{Accounts, bind, role, subject};
use super::lease_changes::{led, note, plain, renewal};
use super::requests::{Collection, put, until};

const RENEWALS: u32 = 50;

/// The holder gets every right that a policy may ask for, since the server counts the rights that RBAC gives: then each
/// renewal of an elected and of a plain Lease is counted once, for the request itself.
pub(super) async fn is_no_right(testbed: &Testbed, accounts: &Accounts) -> Result<()> {
    let (site, namespace) = (testbed.site(), testbed.namespace());
    let admin = site.client();
    let verbs = json!({
        "apiGroups": ["elector.dev"], "resources": ["leases"],
        "verbs": ["elect", "impersonate", "operate", "administer"],
    });
    role(admin, namespace, "all-verbs", &[&verbs]).await?;
    let holders = [subject("ServiceAccount", "web", Some(namespace))];
    bind(
        admin,
        namespace,
        "all-verbs",
        ("Role", "all-verbs"),
        &holders,
    )
    .await?;
    let leases = Collection::leases(namespace);
    let holder = accounts.of("its holder")?;
    for lease in [led(), plain(holder.identity)] {
        let lease = lease.context("a Lease that is held")?;
        let before = Some(leases.reset(admin, &lease).await?);
        let freeze = put(before.clone(), |object| note(object, "freeze", "never"));
        until(&holder.client, &leases, &freeze, true).await?;
        let renewal = renewal(before, |_| {});
        let counted = decisions(site).await?;
        for _ in 0..RENEWALS {
            let answer = leases.send(&holder.client, &renewal, true).await?;
            ensure!(answer.is_accepted(), "a renewal: {answer:?}");
        }
        let asked = decisions(site).await? - counted;
        let renewals = f64::from(RENEWALS);
        let holds = asked >= renewals && asked < 1.5 * renewals;
        ensure!(holds, "{asked} rights are asked for in {RENEWALS} renewals");
    }
    leases.remove(admin, "work").await
}

/// Takes the rights back that this gave, where it has, and waits until they are gone.
pub(super) async fn taken_back(testbed: &Testbed, accounts: &Accounts) -> Result<()> {
    let (admin, namespace) = (testbed.site().client(), testbed.namespace());
    for kind in ["roles", "rolebindings"] {
        let rights = "/apis/rbac.authorization.k8s.io/v1/namespaces";
        let path = format!("{rights}/{namespace}/{kind}/all-verbs");
        match admin
            .request::<Value>(Request::delete(path).body(Vec::new())?)
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(deleted?),
        }
    }
    let leases = Collection::leases(namespace);
    let lease = led().context("a Lease that is held")?;
    let before = Some(leases.reset(admin, &lease).await?);
    let freeze = put(before, |object| note(object, "freeze", "never"));
    until(&accounts.of("its holder")?.client, &leases, &freeze, false).await
}

/// The number of rights that RBAC has given since the server started.
async fn decisions(site: &TestSite) -> Result<f64> {
    let request = Request::get("/metrics").body(Vec::new())?;
    let metrics = site.client().request_text(request).await?;
    let allowed = metrics.lines().filter(|line| {
        line.starts_with("apiserver_authorization_decisions_total{")
            && line.contains("decision=\"allowed\"")
    });
    let counts = allowed.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    Ok(counts.sum())
}
