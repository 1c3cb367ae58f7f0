//! Thousands of leases whose candidates register at once: the time until all are led.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use elector_protocol::CandidateTiming;
use elector_runtime::{ClientArgs, Writer, connect};
use elector_tests::rig::TestSite;

use super::results::Figures;
use crate::scale::{Fleet, RunSize, create_namespaces};

/// The time that the elections have. It does not matter to those that never end.
const PATIENCE: Duration = Duration::from_secs(300);

/// Plays the candidates of that number of leases.
pub(super) async fn elect(site: &Arc<TestSite>, leases: u32) -> Result<Figures> {
    let cluster = connect(&ClientArgs::of_kubeconfig(site.kubeconfig())).await?;
    let writer = Writer::new(cluster, site.candidate_api());
    let size = RunSize {
        leases,
        candidates: 3,
        parts: None,
        namespaces: 1,
        electors: 1,
        connections: 32,
        rate: None,
        timing: CandidateTiming::of(Duration::from_secs(15), Duration::from_secs(10)),
    };
    create_namespaces(site.client(), size.namespaces(Fleet::PREFIX)).await?;
    let mut fleet = Fleet::new(size, writer).await;
    let times = fleet.elect(PATIENCE).await?;
    let mut figures = vec![("leases led", f64::from(times.leases_led))];
    if times.leases_led == leases {
        figures.push(("until all are led", times.led.as_secs_f64()));
    }
    Ok(figures)
}
