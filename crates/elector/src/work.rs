//! Performing what a step decided: the requests of one lease side by side, each with its report.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::{Identity, LeaseKey, LeaseRecord, ResourceVersion, StrategyName};
use elector_runtime::{RequestError, WriteOutcome, Writer, panic_text};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};

/// One request, with all that it takes.
#[derive(Debug)]
pub(crate) enum Task {
    /// POST a born Lease.
    Create(Option<StrategyName>),
    /// PUT a Lease.
    Write {
        judged: Arc<Lease>,
        version: ResourceVersion,
        record: LeaseRecord,
    },
    /// PUT a candidate with a question.
    Ping(Identity, Box<LeaseCandidate>),
    /// DELETE a candidate.
    Collect(Identity, Arc<LeaseCandidate>),
    /// GET the Lease, whose newest known revision is this.
    Read(ResourceVersion),
}

/// How a request ended.
#[derive(Debug)]
pub(crate) enum Report {
    Created(WriteOutcome<Lease>),
    Wrote {
        outcome: WriteOutcome<Lease>,
        /// What was read because the write was not applied, or perhaps not.
        read: Option<Box<Reading>>,
    },
    Pinged(Identity, WriteOutcome<LeaseCandidate>),
    Collected(Identity, WriteOutcome<()>),
    Read(Box<Reading>),
    /// The code failed; the text is the panic's.
    Panicked(String),
}

/// The answer to a GET of a Lease.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The newest revision that was known when it was sent.
    pub(crate) asked_at: ResourceVersion,
    pub(crate) answer: Result<Option<Lease>, RequestError>,
}

/// How the work on one lease goes on.
#[derive(Debug)]
pub(crate) enum Progress {
    Reported(Box<Report>),
    /// All requests have been reported; the last item.
    Finished,
}

/// The work on one lease. Dropping it gives up its requests; the server may carry them out all the same.
pub(crate) type Job = BoxStream<'static, (LeaseKey, Progress)>;

/// How many requests of one lease are under way at the same time; a lease may have thousands of candidates.
const SIDE_BY_SIDE: usize = 16;

/// Performs tasks, started in this order.
pub(crate) fn job(writer: &Writer, key: &LeaseKey, tasks: Vec<Task>) -> Job {
    let (writer, owned) = (writer.clone(), key.clone());
    let requests = tasks.into_iter().map(move |task| {
        let request = perform(writer.clone(), owned.clone(), task);
        AssertUnwindSafe(request).catch_unwind()
    });
    let reports = stream::iter(requests)
        .buffer_unordered(SIDE_BY_SIDE)
        .map(|report| {
            let report = report.unwrap_or_else(|panic| Report::Panicked(panic_text(&*panic)));
            Progress::Reported(Box::new(report))
        });
    let key = key.clone();
    reports
        .chain(stream::once(async { Progress::Finished }))
        .map(move |progress| (key.clone(), progress))
        .boxed()
}

fn perform(writer: Writer, key: LeaseKey, task: Task) -> BoxFuture<'static, Report> {
    async move {
        match task {
            Task::Create(strategy) => {
                Report::Created(writer.post_lease(&key, strategy.as_ref()).await)
            }
            Task::Write {
                judged,
                version,
                record,
            } => {
                let outcome = writer.put_lease(&judged, &record).await;
                // Judge again what is there now, not what the watch will bring some day.
                let read = match outcome {
                    WriteOutcome::Conflict | WriteOutcome::Unknown(_) => {
                        Some(read(&writer, &key, version).await)
                    }
                    _ => None,
                };
                Report::Wrote { outcome, read }
            }
            Task::Ping(name, candidate) => {
                Report::Pinged(name, writer.put_candidate(&candidate).await)
            }
            Task::Collect(name, candidate) => {
                Report::Collected(name, writer.delete_candidate(&candidate).await)
            }
            Task::Read(version) => Report::Read(read(&writer, &key, version).await),
        }
    }
    .boxed()
}

async fn read(writer: &Writer, key: &LeaseKey, asked_at: ResourceVersion) -> Box<Reading> {
    Box::new(Reading {
        asked_at,
        answer: writer.read_lease(key).await,
    })
}
