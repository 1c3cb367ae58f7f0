//! One measurement: rounds of the elector and of the bare client, each on an empty server of its own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
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

/// Measures one size. The figures are those of the round in the middle, by the processor time for an event; where not all
/// leases came to be led, those of that round.
pub(crate) async fn measure(
    args: &ScaleArgs,
    size: &RunSize,
    program: &Path,
    folder: &Path,
) -> Result<ScaleFigures> {
    let (mut electors, mut clients) = (Vec::new(), Vec::new());
    for round in 0..args.rounds {
        // Neither is always the first one, when the machine has rested.
        for is_elector in [round % 2 == 0, round % 2 == 1] {
            if is_elector {
                let figures = run_elector(args, size, program, folder).await?;
                if !figures.is_complete() {
                    return Ok(figures);
                }
                electors.push(figures);
            } else {
                let (server, client, writer) = start_server(args, folder).await?;
                create_namespaces(&client, size.namespaces(bare_client::PREFIX)).await?;
                let path = server.kubeconfig();
                match run_bare_client(size, &path, &writer, args.patience).await {
                    Ok(times) => clients.push(times),
                    // The figures of the elector are kept.
                    Err(error) => eprintln!("bare client, {} leases: {error:#}", size.leases),
                }
            }
        }
    }
    ScaleFigures::median(electors, &clients).context("there was no round")
}

/// Starts an empty server, with a client that waits for it.
async fn start_server(args: &ScaleArgs, folder: &Path) -> Result<(BenchServer, Client, Writer)> {
    let server = BenchServer::start(args.server, folder, !args.no_fsync).await?;
    let mut client = ClientArgs::of_kubeconfig(server.kubeconfig());
    client.request_timeout = REQUEST_TIMEOUT;
    let cluster = connect(&client).await?;
    let (client, api) = (cluster.client().clone(), cluster.candidate_api().await?);
    Ok((server, client, Writer::new(cluster, api)))
}

/// One round of the elector.
async fn run_elector(
    args: &ScaleArgs,
    size: &RunSize,
    program: &Path,
    folder: &Path,
) -> Result<ScaleFigures> {
    let (server, client, writer) = start_server(args, folder).await?;
    for prefix in [Fleet::PREFIX, bare::PREFIX] {
        create_namespaces(&client, size.namespaces(prefix)).await?;
    }
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
    let bare = if args.server == ServerName::Real {
        let sockets = elected.usage.sockets.saturating_sub(idle.usage.sockets);
        let connections = (size.connections + sockets) as usize;
        Some(write_bare(size, connections, &writer).await?)
    } else {
        None
    };
    let states = [idle, elected, balanced, held];
    let mut figures = ScaleFigures::of(server.description(), size, times, &states, bare);
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
