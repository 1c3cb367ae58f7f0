//! All cells of the tables, and the bounds beside them.

use anyhow::Result;
use elector_api::CandidateApi;
use elector_tests::rig::Testbed;

use super::accounts::{Accounts, HOLDER};
use super::requests::Collection;
use super::{candidate_changes, durations, lease_changes, plain_changes, strategies, tables};

/// Plays those about LeaseCandidates of that API; how many there are.
pub(super) async fn of_candidates(
    testbed: &Testbed,
    accounts: &Accounts,
    api: CandidateApi,
) -> Result<usize> {
    let admin = testbed.site().client();
    let candidates = Collection::candidates(api, testbed.namespace());
    let (heading, rows) = ("change of a LeaseCandidate", candidate_changes::ROWS);
    let mut cells = tables::play(heading, rows, admin, accounts, &candidates).await?;
    candidates.remove(admin, HOLDER).await?;
    cells += durations::play(testbed, accounts, api).await?;
    cells += strategies::play(testbed, accounts, api).await?;
    Ok(cells)
}

/// The same of Leases.
pub(super) async fn of_leases(testbed: &Testbed, accounts: &Accounts) -> Result<usize> {
    let admin = testbed.site().client();
    let leases = Collection::leases(testbed.namespace());
    let mut cells = 0;
    for (heading, rows) in [
        ("change of a Lease", lease_changes::ROWS),
        ("change of a plain Lease", plain_changes::ROWS),
    ] {
        cells += tables::play(heading, rows, admin, accounts, &leases).await?;
    }
    leases.remove(admin, "work").await?;
    cells += durations::play_leases(testbed, accounts).await?;
    Ok(cells)
}
