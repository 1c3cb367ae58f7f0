//! Runs many cases at once on one cluster, those of a fault of the server on one of their own, and collects their results.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use elector_api::CandidateApi;
use elector_cluster::cluster::{Options, RealCluster};
use elector_cluster::release::Release;
use elector_tests::rig::Recorder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};

use crate::case::FaultCase;
use crate::case_result::CaseResult;
use crate::matrix_bed::{MatrixBed, STARTS_AT_ONCE};
use crate::recorded_runs::RecordedRuns;
use crate::register::Register;
use crate::run_case::run_case;
use crate::server_fault::{FaultTrigger, ServerFault};
use crate::subject::Binaries;

/// The results of all cases.
#[derive(Debug)]
pub struct MatrixResults {
    /// Of those that could be run, in the order of the matrix.
    pub outcomes: Vec<CaseResult>,
    /// The others, with the reason.
    pub not_run: Vec<(String, String)>,
    /// The time that it took in all.
    pub took: Duration,
}

/// The cases that share a cluster, each with its place, and the fault of its server.
#[derive(Debug, Default)]
struct CaseGroup {
    fault: Option<ServerFault>,
    cases: Vec<(usize, FaultCase)>,
}

/// The group of the process to which nothing is done.
const PULSE: &str = "pulse";

/// The time that it may take to start.
const STARTS: Duration = Duration::from_secs(60);

/// Runs the cases, `jobs` at once, holds them against those that are recorded, and leaves logs, operations and `results.jsonl` in
/// `folder`. With `record` each that has passed is recorded at once. They share a cluster, but for the faults of a server: each
/// run of those has a cluster of its own, on which all subjects are struck at once.
///
/// # Errors
/// When a cluster does not start, or does not come back.
pub async fn run_matrix(
    cases: &[FaultCase],
    programs: Binaries,
    folder: &Path,
    jobs: usize,
    seed: u64,
    (recorded, record): (&Arc<Mutex<RecordedRuns>>, bool),
) -> Result<MatrixResults> {
    let start = Instant::now();
    fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    let mut ended = Vec::new();
    for CaseGroup { fault, cases } in groups(cases) {
        let cluster = spawn_blocking(|| RealCluster::start(&Options::default())).await??;
        let cluster = Arc::new(cluster);
        let client = client(&cluster.kubeconfig()).await?;
        let register = Register::open().await?;
        let pulse = register.log(PULSE);
        let _pulse = programs.start_pulse(&register.url(PULSE, PULSE), folder)?;
        pulse.next(STARTS).await?;
        let bed = Arc::new(MatrixBed {
            recorder: Recorder::start(&client, candidates(cluster.release())?).await?,
            client,
            kubeconfig: cluster.kubeconfig(),
            register,
            programs: programs.clone(),
            pulse,
            folder: folder.to_owned(),
            starts: Arc::new(Semaphore::new(STARTS_AT_ONCE as usize)),
            seed,
            recorded: Arc::clone(recorded),
        });
        let kubernetes = cluster.release().to_string();
        let note = |done: (usize, FaultCase, Result<CaseResult>)| {
            let done = print_progress(done);
            if let (true, Ok(result)) = (record, &done.2) {
                recorded.lock().add(&kubernetes, result)?;
            }
            anyhow::Ok(done)
        };
        let jobs = fault.map_or(jobs.max(1), |_| cases.len());
        let slots = Arc::new(Semaphore::new(jobs));
        let trigger = FaultTrigger::new();
        let mut running = JoinSet::new();
        for (index, case) in cases {
            let slot = Arc::clone(&slots).acquire_owned().await?;
            let bed = Arc::clone(&bed);
            let shared = fault.map(|_| trigger.share());
            running.spawn(async move {
                let outcome = run_case(case, bed, shared).await;
                drop(slot);
                (index, case, outcome)
            });
            while let Some(done) = running.try_join_next() {
                ended.push(note(done?)?);
            }
        }
        if let Some(fault) = fault {
            trigger.strike(fault, &cluster).await?;
        }
        while let Some(done) = running.join_next().await {
            ended.push(note(done?)?);
        }
    }
    ended.sort_by_key(|(index, _, _)| *index);
    let mut results = MatrixResults {
        outcomes: Vec::new(),
        not_run: Vec::new(),
        took: start.elapsed(),
    };
    for (_, case, outcome) in ended {
        match outcome {
            Ok(outcome) => results.outcomes.push(outcome),
            Err(error) => results.not_run.push((case.name(), format!("{error:#}"))),
        }
    }
    save(&results.outcomes, &folder.join("results.jsonl"))?;
    Ok(results)
}

/// The cases that share a cluster: first those whose faults leave the server alone, the long ones first.
fn groups(cases: &[FaultCase]) -> Vec<CaseGroup> {
    let mut groups: BTreeMap<_, CaseGroup> = BTreeMap::new();
    for (index, &case) in cases.iter().enumerate() {
        let fault = case.fault.of_server();
        let of = fault.map(|_| (case.fault.name, case.run));
        let group = groups.entry(of).or_default();
        group.fault = fault;
        group.cases.push((index, case));
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    for group in &mut groups {
        let order = |(index, case): &(usize, FaultCase)| (Reverse(case.fault.window), *index);
        group.cases.sort_by_key(order);
    }
    groups
}

// === impl MatrixResults ===

impl MatrixResults {
    /// The numbers of cases that were as they must be, and of the others.
    pub fn counts(&self) -> (usize, usize) {
        let good = self.outcomes.iter().filter(|one| one.failures.is_empty());
        let good = good.count();
        (good, self.outcomes.len() - good + self.not_run.len())
    }
}

/// Says how a case ended, as soon as it has.
fn print_progress(
    done: (usize, FaultCase, Result<CaseResult>),
) -> (usize, FaultCase, Result<CaseResult>) {
    let (_, case, outcome) = &done;
    let name = case.name();
    match outcome {
        Ok(one) => {
            let state = match one.failures.as_slice() {
                [] => "ok".to_owned(),
                failures => format!("FAILED: {}", failures.join("; ")),
            };
            let seen = &one.analysis;
            let last = one.last_operation.map_or_else(String::new, |last| {
                format!(
                    "; last operation {:.2} s after the fault, {:.2} s after the last renewal",
                    last.after_fault, last.after_renewal
                )
            });
            println!(
                "test {name} ... {state} (two believers {:.2} s; stale {}, past the fence {}; worst gap {:.1} s; \
                 work {:.0} %; machine stalled {:.1} s{last})",
                seen.two_believers,
                seen.stale,
                seen.past_the_fence,
                seen.worst_gap,
                seen.work,
                one.stall
            );
        }
        Err(error) => println!("test {name} ... FAILED ({error:#})"),
    }
    done
}

fn save(outcomes: &[CaseResult], path: &Path) -> Result<()> {
    let mut text = Vec::new();
    for outcome in outcomes {
        serde_json::to_writer(&mut text, outcome)?;
        writeln!(text)?;
    }
    fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}

/// The LeaseCandidates of that release.
fn candidates(release: Release) -> Result<CandidateApi> {
    let version = release.candidate_api();
    let version =
        version.with_context(|| format!("Kubernetes {release} has no LeaseCandidates"))?;
    CandidateApi::of_api_version(&format!("coordination.k8s.io/{version}"))
        .with_context(|| format!("coordination.k8s.io/{version} is unknown"))
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).context("failed to read the kubeconfig")?;
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}
