//! One measurement: rounds of the elector and of the bare client, each on an empty server of its own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_runtime::{ClientArgs, Writer, connect};
use k8s_openapi::api::events::v1::Event;
use kube::Client;
use kube::api::{Api, ListParams};
use tokio::time::Instant;

use crate::scale::args::{RunSize, ScaleArgs, ServerName};
use crate::scale::bare::{self, write_bare};
use crate::scale::bare_client::{self, BareClientTimes};
use crate::scale::benchmarked_elector::{BenchmarkedElectors, ResourceUsage};
use crate::scale::figures::{GroupMoves, PhaseBorder, ScaleFigures};
use crate::scale::fleet::Fleet;
use crate::scale::programs::BenchPrograms;
use crate::scale::server::{BenchServer, create_namespaces};

/// The time limit of a request of a candidate: a server that is busy is waited for.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Measures one size. The figures are those of the round in the middle, by the processor time for an event; where not all
/// leases came to be led, those of that round; and where a round fails, those of the rounds before it.
pub(crate) async fn measure(
    args: &ScaleArgs,
    size: &RunSize,
    programs: &BenchPrograms,
    folder: &Path,
) -> (Option<ScaleFigures>, Result<()>) {
    let (mut electors, mut clients) = (Vec::new(), Vec::new());
    let mut ended = Ok(());
    'rounds: for round in 0..args.rounds {
        // Neither is always the first one, when the machine has rested.
        for is_elector in [round % 2 == 0, round % 2 == 1] {
            if is_elector {
                match run_elector(args, size, &programs.elector, folder).await {
                    Ok(figures) if figures.is_complete() => electors.push(figures),
                    Ok(figures) => return (Some(figures), Ok(())),
                    Err(error) => {
                        let (number, all) = (round + 1, args.rounds);
                        let text = format!("round {number} of {all} with {} failed", size.name());
                        ended = Err(error.context(text));
                        break 'rounds;
                    }
                }
            } else {
                let times = run_client(args, size, &programs.client, folder).await;
                // The figures of the elector are kept.
                clients.push(
                    times.map_err(|error| eprintln!("bare client, {}: {error:#}", size.name())),
                );
            }
        }
    }
    // The client may have run in a round that the elector has not finished.
    clients.truncate(electors.len());
    let clients: Vec<_> = clients.into_iter().flatten().collect();
    (ScaleFigures::median(electors, &clients), ended)
}

/// One round of the bare client, with candidates in no groups.
async fn run_client(
    args: &ScaleArgs,
    size: &RunSize,
    program: &Path,
    folder: &Path,
) -> Result<BareClientTimes> {
    let (server, client, writer) = start_server(args, folder).await?;
    let size = RunSize {
        parts: None,
        ..size.clone()
    };
    create_namespaces(&client, size.namespaces(Fleet::PREFIX)).await?;
    let bare = bare_client::start(program, &server.kubeconfig(), &size, folder).await?;
    let leases = size.leases;
    let mut fleet = Fleet::new(size, writer).await;
    let idle = ResourceUsage::of(&bare.process)?;
    let times = fleet.elect(args.patience).await?;
    let output = bare.process.output()?;
    let usage = ResourceUsage::of(&bare.process).with_context(|| output.clone())?;
    let led = times.leases_led;
    ensure!(led == leases, "{led} leases are led; {output}");
    // Each Lease is created and granted by two requests.
    let responses = 2 * u64::from(leases);
    let received = fleet.counts.lease_events + fleet.counts.candidate_events + responses;
    Ok(BareClientTimes {
        per_event: (usage.processor - idle.processor) * 1e6 / received as f64,
        further_lists: bare.further_lists(),
    })
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
