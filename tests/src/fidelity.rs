//! Does the embedded API server answer as a real one does?
//!
//! The cases are text: requests with what they are to be sent. The same cases run on both servers, each in a namespace
//! of its own, and their answers, freed of what differs between any two servers (uids, times, the numbers of
//! revisions), must be equal. Answers of a real kube-apiserver are kept in `recorded.txt`, so that the comparison can be
//! made where there is none.

mod answer;
mod case;
mod kubectl;
mod recording;
mod server;

pub use answer::ComparableAnswer;
pub use case::{CaseStep, FidelityCase};
pub use kubectl::Kubectl;
pub use recording::Recording;
pub use server::FidelityServer;

use futures::StreamExt as _;
use futures::stream;

/// Every case there is.
///
/// # Panics
///
/// When the texts of the cases are malformed, which is a mistake in this repository.
#[must_use]
pub fn cases() -> Vec<FidelityCase> {
    const TEXTS: [&str; 8] = [
        include_str!("fidelity/cases/write.txt"),
        include_str!("fidelity/cases/validate.txt"),
        include_str!("fidelity/cases/patch.txt"),
        include_str!("fidelity/cases/read.txt"),
        include_str!("fidelity/cases/other.txt"),
        include_str!("fidelity/cases/kinds.txt"),
        include_str!("fidelity/cases/apply.txt"),
        include_str!("fidelity/cases/shard.txt"),
    ];
    let cases: Vec<_> = TEXTS
        .into_iter()
        .flat_map(FidelityCase::parse_all)
        .collect();
    let mut namespaces: Vec<_> = cases.iter().map(FidelityCase::namespace).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    assert_eq!(namespaces.len(), cases.len(), "two cases share a namespace");
    cases
}

/// Runs cases, several at a time, on a server without and one with the feature gate; the recording is in their order.
///
/// # Errors
///
/// When a server does not answer at all.
pub async fn run(
    cases: &[FidelityCase],
    plain: &FidelityServer,
    gated: &FidelityServer,
) -> anyhow::Result<Recording> {
    plain.define_kinds().await?;
    gated.define_kinds().await?;
    let runs = stream::iter(cases).map(|case| async move {
        let server = if case.gate { gated } else { plain };
        let answers = server.run(case).await?;
        anyhow::Ok((case.title.clone(), answers))
    });
    let answers: Vec<_> = runs.buffered(16).collect().await;
    Ok(Recording::new(
        answers.into_iter().collect::<anyhow::Result<_>>()?,
    ))
}
