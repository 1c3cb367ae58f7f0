//! `kubectl elector status`: who leads, since when, and why.

mod follow;
mod printer;
mod proof_wait;
mod query;
pub(super) mod row;
mod table;

use std::process::ExitCode;

use clap::Args;
use elector_protocol::LeaseKey;
use elector_runtime::{ClientArgs, Cluster, connect};

use self::printer::{Printer, StatusFormat};
use self::query::StatusQuery;
use self::row::{LeaseState, StatusRow};
use super::history::past::LeasePast;
use crate::explain::{cluster, present};
use crate::namespace::NamespaceArgs;
use crate::output;

/// Says for each lease who leads it, since when, in which term, who is next, and why.
///
/// Shown are the leases that candidates name, and those that were elected before. The times of the objects stand for what
/// an elector would have observed, so that a holder counts as gone as soon as its record is older than its lease duration.
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// Only this lease, with its candidates
    lease: Option<String>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Print more columns and the candidates, or a list whose form is stable [default: a table]
    #[arg(short = 'o', long, value_enum)]
    output: Option<StatusFormat>,

    /// Go on, with a line for each change
    #[arg(short = 'w', long)]
    watch: bool,

    /// Leave out the names of the columns
    #[arg(long)]
    no_headers: bool,

    #[command(flatten)]
    client: ClientArgs,
}

/// Runs the sub-command. Malformed objects are named on standard error and the others shown all the same; the exit code
/// then is 1.
pub(super) async fn run(args: StatusArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.client).await?;
    let query = StatusQuery {
        namespace: args.namespace.in_cluster(&cluster).map(str::to_owned),
        lease: args.lease,
    };
    let mut printer = Printer::new(args.output, &query, args.no_headers);
    if args.watch {
        return follow::follow(&cluster, &query, &mut printer).await;
    }
    let namespace = query.namespace.as_deref();
    let mut objects = cluster::read(&cluster, namespace, query.choice()).await?;
    objects.assign_groups(present(), &row::settings(&objects));
    objects.keep(namespace, query.lease.as_deref());
    for fault in &objects.faults {
        output::print_error(fault);
    }
    let mut rows = row::rows(&objects, present());
    if query.lease.is_some() {
        tell_beginnings(&cluster, &mut rows).await;
    }
    printer.print_all(&rows, &query)?;
    printer.print_groups(&rows, &objects.groups, &query)?;
    if objects.faults.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// Adds to each lease that is led how its term began, where an Event tells that no elector chose. One line on standard error
/// where Events cannot be read.
async fn tell_beginnings(cluster: &Cluster, rows: &mut [StatusRow]) {
    for row in rows.iter_mut().filter(|row| row.state == LeaseState::Led) {
        let lease = LeaseKey::new(row.namespace.as_str(), row.lease.as_str());
        match LeasePast::with_lease(cluster, &lease, None).await {
            Ok(past) => {
                let began = past.own_beginning(&row.holder, row.term);
                row.why.extend(began.map(|began| format!("; {began}")));
            }
            Err(error) => output::print_error(format_args!(
                "failed to {error}; the beginning of its term is unknown"
            )),
        }
    }
}
