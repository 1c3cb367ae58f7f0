//! Runs scenarios side by side on shared clusters, and reports as `cargo test` does.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use elector_verify::Implementation;
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::rig::every_change::EveryChange;
use crate::rig::process::TestProcess;
use crate::rig::programs::TestedPrograms;
use crate::rig::selection::ScenarioSelection;
use crate::rig::site::{ClusterMode, TestSite};
use crate::rig::testbed::Testbed;

/// What a scenario does. The record of the testbed is judged after it has ended.
pub type ScenarioBody = fn(Arc<Testbed>) -> Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// A scenario on one kind of cluster with one kind of candidates.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: &'static str,
    mode: ClusterMode,
    implementation: Implementation,
    cluster_choice: ClusterChoice,
    lasts: Duration,
    run: ScenarioBody,
}

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterChoice {
    /// A cluster that others use too, with an elector that has been up for long enough.
    Shared,
    /// A cluster of its own, without an elector.
    Own,
}

/// The scenarios, and which of them to run.
#[derive(Debug)]
pub struct Suite {
    scenarios: Vec<Scenario>,
    every_change: &'static [EveryChange],
}

/// The shared clusters, each started by the first scenario that needs it.
#[derive(Debug)]
struct SharedClusters {
    programs: Arc<TestedPrograms>,
    folder: PathBuf,
    shared: BTreeMap<ClusterMode, OnceCell<SharedCluster>>,
    /// Starting a cluster takes both cores for seconds, and each that runs takes memory.
    permits: Semaphore,
}

/// A shared cluster and its elector.
#[derive(Debug)]
struct SharedCluster {
    site: Arc<TestSite>,
    _elector: TestProcess,
}

/// The end of a scenario.
struct ScenarioResult {
    scenario: Scenario,
    took: Duration,
    figures: Vec<(String, Duration)>,
    error: Option<String>,
}

/// How many scenarios run at once: their processes wait for most of the time.
const JOBS: usize = 20;

/// How many clusters there may be beside the shared ones.
const OWN_CLUSTERS: usize = 5;

/// Set to `1`, it keeps the logs of a run in which nothing failed too.
const KEEP_LOGS: &str = "ELECTOR_KEEP_LOGS";

/// How long an elector may take until it elects: `W_max`, twice where it replaces the built-in controller, and the
/// start of everything on a busy machine.
const WARM_UP: Duration = Duration::from_secs(90);

/// How much longer than it should a scenario may take, before it counts as hung.
const HANG: Duration = Duration::from_secs(180);

// === impl Scenario ===

impl Scenario {
    fn full_name(&self) -> String {
        let mode = self.mode.to_string().replace(' ', "_");
        match self.implementation {
            Implementation::Elector => format!("{}::{mode}", self.name),
            Implementation::ClientGo => format!("{}::{mode}::client_go", self.name),
        }
    }

    /// Its namespace, and the folder of its logs.
    fn namespace(&self) -> String {
        self.full_name().replace("::", "-").replace('_', "-")
    }
}

// === impl Suite ===

impl Suite {
    /// A suite without scenarios yet.
    pub fn new(every_change: &'static [EveryChange]) -> Self {
        Self {
            scenarios: Vec::new(),
            every_change,
        }
    }

    /// Adds a scenario once for each mode and each implementation. `lasts` is how long it takes, so that the long ones start
    /// first.
    pub fn add(
        &mut self,
        name: &'static str,
        cluster_choice: ClusterChoice,
        implementations: &[Implementation],
        modes: &[ClusterMode],
        lasts: Duration,
        run: ScenarioBody,
    ) {
        for &mode in modes {
            for &implementation in implementations {
                self.scenarios.push(Scenario {
                    name,
                    mode,
                    implementation,
                    cluster_choice,
                    lasts,
                    run,
                });
            }
        }
    }

    /// Runs what the command line asks for. Whether all went well.
    ///
    /// # Errors
    /// When the command line cannot be understood or nothing can be run at all.
    pub fn run(self, arguments: impl Iterator<Item = String>) -> Result<bool> {
        let selection = ScenarioSelection::parse(arguments)?;
        let all = self.scenarios.len();
        let own: Vec<(&str, ClusterMode)> = self
            .scenarios
            .iter()
            .filter(|scenario| scenario.cluster_choice == ClusterChoice::Own)
            .map(|scenario| (scenario.name, scenario.mode))
            .collect();
        EveryChange::check(self.every_change, &own)?;
        let mut chosen: Vec<Scenario> = self
            .scenarios
            .into_iter()
            .filter(|scenario| selection.wants(&scenario.full_name()))
            .collect();
        if selection.list {
            for scenario in &chosen {
                println!("{}: test", scenario.full_name());
            }
            println!("\n{} tests, 0 benchmarks", chosen.len());
            return Ok(true);
        }
        let filtered_out = all - chosen.len();
        println!("\nrunning {} tests", chosen.len());
        if chosen.is_empty() || !selection.real {
            if !selection.real {
                println!(
                    "left out: the scenarios on a real kube-apiserver, which `cargo xtask test` runs (--ignored)"
                );
            }
            summary(&[], filtered_out, chosen.len(), Duration::ZERO);
            return Ok(true);
        }
        let programs = TestedPrograms::build("dev")?;
        let before = chosen.len();
        if !selection.all_modes && !selection.names_some() {
            chosen.retain(|scenario| {
                scenario.cluster_choice == ClusterChoice::Shared
                    || EveryChange::has(self.every_change, scenario.name, scenario.mode)
            });
            println!(
                "left out: {} scenarios that run in other modes (--all-modes)",
                before - chosen.len()
            );
        }
        chosen.retain(|scenario| {
            scenario.implementation == Implementation::Elector || programs.interop.is_some()
        });
        // The embedded server is of no release, and client-go of another one may not know it.
        chosen.retain(|scenario| !scenario.mode.is_embedded() || programs.release.is_none());
        let ignored = before - chosen.len();
        // The long ones first, and those for which a cluster has to be started.
        chosen.sort_by_key(|scenario| (std::cmp::Reverse(scenario.lasts), scenario.full_name()));
        let folder = tempfile::Builder::new().prefix("elector-real-").tempdir()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let start = Instant::now();
        let results = runtime.block_on(run_all(
            chosen,
            Arc::new(programs),
            folder.path(),
            selection.jobs.unwrap_or(JOBS),
        ));
        let good = results.iter().all(|result| result.error.is_none());
        if !good || env::var_os(KEEP_LOGS).is_some_and(|value| value == "1") {
            println!("\nlogs: {}", folder.keep().display());
        }
        summary(&results, filtered_out, ignored, start.elapsed());
        Ok(good)
    }
}

// === impl SharedClusters ===

impl SharedClusters {
    /// The shared cluster; waits until its elector elects a new deployment at once.
    async fn shared(&self, mode: ClusterMode) -> Result<Arc<TestSite>> {
        let cell = self.shared.get(&mode).context("no such ground")?;
        let cluster_choice = cell.get_or_try_init(|| async {
            let site = self
                .start(mode, &mode.to_string().replace(' ', "-"))
                .await?;
            let elector = site.elector("elector", mode.elector_flags().iter().copied())?;
            warm_up(&site)
                .await
                .context("the elector of a shared cluster elects nobody")?;
            Ok::<_, anyhow::Error>(SharedCluster {
                site,
                _elector: elector,
            })
        });
        Ok(Arc::clone(&cluster_choice.await?.site))
    }

    async fn start(&self, mode: ClusterMode, folder: &str) -> Result<Arc<TestSite>> {
        let folder = self.folder.join(folder);
        let site = TestSite::start(mode, Arc::clone(&self.programs), folder, false);
        Ok(Arc::new(site.await?))
    }

    /// A cluster for one scenario.
    async fn own(&self, mode: ClusterMode, folder: &str) -> Result<Arc<TestSite>> {
        let folder = self.folder.join(folder);
        let site = TestSite::start_own(mode, Arc::clone(&self.programs), folder);
        Ok(Arc::new(site.await?))
    }
}

/// Waits until the elector of a cluster grants a lease to a candidate: a new one does so only after `W_max` (R6), and
/// one that replaces the built-in controller not before that one has stopped. Until then the built-in controller may
/// elect; it does not count terms.
///
/// # Errors
/// When it does not.
pub async fn warm_up(site: &Arc<TestSite>) -> Result<()> {
    let deadline = Instant::now() + WARM_UP;
    for attempt in 1.. {
        let name = format!("canary-{attempt}");
        let testbed =
            Testbed::open_for(Arc::clone(site), "warm-up", &name, Implementation::Elector).await?;
        let canary = testbed.candidate(&name).start()?;
        let patience = deadline.saturating_duration_since(Instant::now());
        let leads = canary.leads(patience).await;
        leads.with_context(|| testbed.journal().text())?;
        let term = testbed.lease_until("the canary's lease is seen", patience, |lease| {
            let record = lease.record().ok()?;
            record.has_token().then_some(record.term)
        });
        if term.await?.0 > 0 {
            break;
        }
    }
    Ok(())
}

async fn run_all(
    scenarios: Vec<Scenario>,
    programs: Arc<TestedPrograms>,
    folder: &Path,
    jobs: usize,
) -> Vec<ScenarioResult> {
    let shared = [
        ClusterMode::GateOn,
        ClusterMode::GateOff,
        ClusterMode::Custom,
        ClusterMode::Embedded,
    ]
    .map(|mode| (mode, OnceCell::new()));
    let permits = Semaphore::new(OWN_CLUSTERS);
    let clusters = Arc::new(SharedClusters {
        programs,
        folder: folder.to_owned(),
        shared: shared.into(),
        permits,
    });
    let slots = Arc::new(Semaphore::new(jobs.max(1)));
    let mut running = JoinSet::new();
    for scenario in scenarios {
        let (clusters, slots) = (Arc::clone(&clusters), Arc::clone(&slots));
        running.spawn(async move {
            let start = Instant::now();
            let (figures, error, took) = match run_one(&scenario, &clusters, &slots).await {
                Ok((figures, took)) => (figures, None, took),
                Err(error) => (Vec::new(), Some(format!("{error:#}")), start.elapsed()),
            };
            ScenarioResult {
                scenario,
                took,
                figures,
                error,
            }
        });
    }
    let mut results = Vec::new();
    while let Some(result) = running.join_next().await {
        match result {
            Ok(result) => {
                println!("{}", result.line());
                results.push(result);
            }
            Err(error) => println!("a scenario could not be joined: {error}"),
        }
    }
    results
}

async fn run_one(
    scenario: &Scenario,
    clusters: &SharedClusters,
    slots: &Semaphore,
) -> Result<(Vec<(String, Duration)>, Duration)> {
    let namespace = scenario.namespace();
    let (_own, site) = match scenario.cluster_choice {
        ClusterChoice::Shared => (None, clusters.shared(scenario.mode).await?),
        ClusterChoice::Own => {
            let permit = match scenario.mode {
                // It is a part of this process and needs next to nothing.
                ClusterMode::Embedded | ClusterMode::EmbeddedOff => None,
                ClusterMode::GateOn | ClusterMode::GateOff | ClusterMode::Custom => {
                    Some(clusters.permits.acquire().await?)
                }
            };
            (permit, clusters.own(scenario.mode, &namespace).await?)
        }
    };
    let _slot = slots.acquire().await?;
    let start = Instant::now();
    let testbed = Arc::new(Testbed::open(site, &namespace, scenario.implementation).await?);
    testbed.journal().note(scenario.full_name());
    // A task of its own, so that a panic is this scenario's alone.
    let mut task = JoinSet::new();
    task.spawn((scenario.run)(Arc::clone(&testbed)));
    let ended = match timeout(scenario.lasts + HANG, task.join_next()).await {
        Ok(Some(Ok(result))) => result,
        Ok(Some(Err(error))) => Err(anyhow!("panicked: {error}")),
        Ok(None) | Err(_) => Err(anyhow!("hung")),
    };
    let result = match (ended, testbed.verdict().await) {
        (Ok(()), verdict) => verdict.context("the record of what happened breaks the rules"),
        (Err(error), Ok(())) => Err(error),
        (Err(error), Err(faults)) => Err(anyhow!("{error:#}\nand {faults}")),
    };
    let text = testbed.journal().text();
    fs::write(testbed.folder().join("journal.txt"), &text)?;
    let recording = testbed.journal().history().recording();
    fs::write(testbed.folder().join("history.json"), recording)?;
    result.map_err(|error| anyhow!("{error:#}\n\n{text}"))?;
    Ok((testbed.figures(), start.elapsed()))
}

// === impl ScenarioResult ===

impl ScenarioResult {
    fn line(&self) -> String {
        let state = if self.error.is_none() { "ok" } else { "FAILED" };
        let mut line = format!(
            "test {} ... {state} ({:.1} s",
            self.scenario.full_name(),
            self.took.as_secs_f64()
        );
        for (name, value) in &self.figures {
            // Writing to a String does not fail.
            let _ = write!(line, "; {name} {:.3} s", value.as_secs_f64());
        }
        line.push(')');
        line
    }
}

fn summary(results: &[ScenarioResult], filtered_out: usize, ignored: usize, took: Duration) {
    let failures: Vec<&ScenarioResult> = results
        .iter()
        .filter(|result| result.error.is_some())
        .collect();
    if !failures.is_empty() {
        println!("\nfailures:");
    }
    for result in &failures {
        let error = result.error.as_deref().unwrap_or_default();
        println!("\n---- {} ----\n{error}", result.scenario.full_name());
    }
    let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {} passed; {} failed; {ignored} ignored; 0 measured; {filtered_out} filtered out; \
         finished in {:.2}s\n",
        results.len() - failures.len(),
        failures.len(),
        took.as_secs_f64()
    );
}
