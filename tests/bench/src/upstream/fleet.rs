//! Thousands of leases whose candidates register at once: the time until all are led.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use elector_protocol::CandidateTiming;
use elector_runtime::{ClientArgs, Writer, connect};
use elector_tests::rig::TestSite;

use super::args::Subject;
use super::plain_fleet;
use super::results::{Figures, LEASES_LED, UNTIL_ALL_LED};
use crate::scale::{Fleet, RunSize, create_namespaces};

/// The time that the elections have. It does not matter to those that never end.
const PATIENCE: Duration = Duration::from_secs(300);

/// Plays the candidates of that number of leases.
pub(super) async fn elect(site: &Arc<TestSite>, leases: u32, subject: Subject) -> Result<Figures> {
    let cluster = connect(&ClientArgs::of_kubeconfig(site.kubeconfig())).await?;
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
    let (led, last) = if subject == Subject::Plain {
        plain_fleet::elect(cluster.client(), &size, PATIENCE).await
    } else {
        let writer = Writer::new(cluster, site.candidate_api());
        let times = Fleet::new(size, writer).await.elect(PATIENCE).await?;
        (times.leases_led, times.led)
    };
    let mut figures = vec![(LEASES_LED, f64::from(led))];
    if led == leases {
        figures.push((UNTIL_ALL_LED, last.as_secs_f64()));
    }
    Ok(figures)
}
