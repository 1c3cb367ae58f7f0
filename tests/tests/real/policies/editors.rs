//! The stock role `edit`: its users are refused what the tables say, and can be any Pod of their namespace all the same.

use anyhow::{Result, bail, ensure};
use elector_tests::rig::Testbed;

use super::accounts::Accounts;
use super::lease_changes::{led, release};
use super::requests::{Collection, PolicyAnswer};

/// An editor releases the Lease of a living leader: not under its own token, and by one that it requests for the
/// leader's Pod.
pub(super) async fn can_be_a_pod(testbed: &Testbed, accounts: &Accounts) -> Result<()> {
    let (site, namespace) = (testbed.site(), testbed.namespace());
    let leases = Collection::leases(namespace);
    let Some(led) = led() else {
        bail!("no Lease is led")
    };
    let before = leases.reset(site.client(), &led).await?;
    let release = release(Some(before), |_| {});
    let editor = &accounts.of("editor")?.client;
    let own = leases.send(editor, &release, true).await?;
    let holds = matches!(own, PolicyAnswer::Refused(_));
    ensure!(holds, "the editor's own token releases a Lease");
    let pod = site.borrowed_pod(editor, namespace, "web", "web-0").await?;
    let bound = leases.send(pod.client(), &release, true).await?;
    ensure!(
        bound.is_accepted(),
        "SECURITY.md says that an editor can be a Pod, and it cannot: {bound:?}"
    );
    leases.remove(site.client(), "work").await
}
