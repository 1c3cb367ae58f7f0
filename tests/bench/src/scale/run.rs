//! One measurement, from an empty server to the figures.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use elector_runtime::{ClientArgs, Writer, connect};
use k8s_openapi::api::events::v1::Event;
use kube::Client;
use kube::api::{Api, ListParams};
use tokio::time::Instant;

use crate::scale::args::{RunSize, ScaleArgs, ServerName};
use crate::scale::bare::{self, write_bare};
use crate::scale::bare_client::{self, run_bare_client};
use crate::scale::benchmarked_elector::BenchmarkedElectors;
use crate::scale::figures::{GroupMoves, PhaseBorder, ScaleFigures};
use crate::scale::fleet::Fleet;
use crate::scale::server::{BenchServer, create_namespaces};

/// The time limit of a request of a candidate: a server that is busy is waited for.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Measures one size.
pub(crate) async fn measure(
    args: &ScaleArgs,
    size: &RunSize,
    program: &Path,
    folder: &Path,
) -> Result<ScaleFigures> {
    let server = BenchServer::start(args.server, folder, !args.no_fsync).await?;
    let mut client = ClientArgs::of_kubeconfig(server.kubeconfig());
    client.request_timeout = REQUEST_TIMEOUT;
    let cluster = connect(&client).await?;
    let client = cluster.client().clone();
    let prefixes = [Fleet::PREFIX, bare::PREFIX];
    for prefix in prefixes.into_iter().chain(bare_client::PREFIXES) {
        create_namespaces(&client, size.namespaces(prefix)).await?;
    }
    let api = cluster.candidate_api().await?;
    let writer = Writer::new(cluster, api);
    let flags = |share: u32| {
        let own = size.namespaces(Fleet::PREFIX).into_iter().zip(0..);
        let own =
            own.filter(move |(_, number)| size.electors > 1 && number % size.electors == share);
        let own = own.map(|(namespace, _)| format!("--namespace={namespace}"));
        args.elector_flags.iter().cloned().chain(own).collect()
    };
    let mut elector = BenchmarkedElectors::default();
    for share in 0..size.electors {
        elector
            .start(program, &server.kubeconfig(), flags(share), folder)
            .await?;
    }
    let mut fleet = Fleet::new(size.clone(), writer.clone()).await;
    let idle = border(&elector, &fleet, &client).await?;
    eprintln!(
        "{} leases with {} candidates each on {}: electors are the processes {:?}",
        size.leases,
        size.candidates,
        server.description(),
        elector.ids()
    );
    let times = fleet.elect(args.patience).await?;
    let elected = border(&elector, &fleet, &client).await?;
    let moves = match size.parts {
        Some(_) => Some(fleet.balance(args.patience).await?),
        None => None,
    };
    let balanced = border(&elector, &fleet, &client).await?;
    fleet.hold(args.hold).await?;
    let held = border(&elector, &fleet, &client).await?;
    let joined = match size.parts {
        Some(parts) => {
            let times = fleet.join(parts, args.patience).await?;
            Some((times, border(&elector, &fleet, &client).await?))
        }
        None => None,
    };
    drop((elector, fleet));
    // The elector has been measured by now: its figures do not depend on those of the client.
    let client = run_bare_client(size, &server.kubeconfig(), &writer, args.patience).await;
    let client = client.unwrap_or_else(|error| {
        eprintln!("bare client, {} leases: {error:#}", size.leases);
        Vec::new()
    });
    let bare = if args.server == ServerName::Real {
        let sockets = elected.usage.sockets.saturating_sub(idle.usage.sockets);
        let connections = (size.connections + sockets) as usize;
        Some(write_bare(size, connections, &writer).await?)
    } else {
        None
    };
    let states = [idle, elected, balanced, held];
    let mut figures = ScaleFigures::of(server.description(), size, times, &states, (&client, bare));
    let [_, elected, balanced, held] = &states;
    figures.balance = moves.map(|moves| GroupMoves::of(moves, elected, balanced));
    figures.join = joined.map(|(moves, joined)| GroupMoves::of(moves, held, &joined));
    Ok(figures)
}

async fn border(
    elector: &BenchmarkedElectors,
    fleet: &Fleet,
    client: &Client,
) -> Result<PhaseBorder> {
    let events: Api<Event> = Api::all(client.clone());
    let recorded = events.list_metadata(&ListParams::default()).await?;
    let usage = elector.usage()?;
    Ok(PhaseBorder {
        at: Instant::now(),
        usage,
        scrape: elector.scrape().await?,
        fleet: fleet.counts,
        recorded: recorded.items.len() as u64,
    })
}
