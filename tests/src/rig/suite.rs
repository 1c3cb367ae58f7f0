//! Runs scenarios side by side on shared clusters, and reports as `cargo test` does.

use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Parser as _;
use elector_verify::Implementation;
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::rig::programs::{ElectorVersion, TestedPrograms};
use crate::rig::record::{record, record_table};
use crate::rig::results::{ScenarioResult, summary};
use crate::rig::scenario::{ClusterChoice, RequiredFlag, Scenario, ScenarioBody};
use crate::rig::selection::ScenarioSelection;
use crate::rig::shared_clusters::{OWN_CLUSTERS, SharedClusters};
use crate::rig::site::{ClusterMode, SitePurpose};
use crate::rig::testbed::Testbed;

/// The scenarios, and which of them to run.
#[derive(Default)]
pub struct Suite {
    scenarios: Vec<Scenario>,
    /// The columns of the table that `--record-table` writes.
    columns: &'static [&'static str],
}

/// Scenarios that run in the same places, to be added one by one.
pub struct ScenarioGroup<'s> {
    suite: &'s mut Suite,
    cluster_choice: ClusterChoice,
    places: Vec<(Implementation, &'static [ClusterMode])>,
    every_change: Option<&'static [ClusterMode]>,
    alone: bool,
}

/// The number of scenarios at once: their processes wait for most of the time.
const JOBS: usize = 20;

/// Set to `1`, it keeps the logs of a run in which nothing failed too.
const KEEP_LOGS: &str = "ELECTOR_KEEP_LOGS";

/// The most by which a scenario may overrun, before it counts as hung.
const HANG: Duration = Duration::from_secs(180);

// === impl ScenarioGroup ===

impl ScenarioGroup<'_> {
    /// With that implementation on those kinds of clusters too.
    #[must_use]
    pub fn and(mut self, implementation: Implementation, modes: &'static [ClusterMode]) -> Self {
        self.places.push((implementation, modes));
        self
    }

    /// For every change on those kinds of clusters alone, where the others decide nothing. Processes and a cluster of its own
    /// take both processors for half a minute; the embedded server takes next to nothing, so that what can run on it always
    /// does.
    #[must_use]
    pub fn every_change_on(mut self, modes: &'static [ClusterMode]) -> Self {
        self.every_change = Some(modes);
        self
    }

    /// Beside no other: it takes all that the machine has, and its own process works late where others take a part of that.
    #[must_use]
    pub const fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Adds a scenario. The seconds are how long it takes, so that the long ones start first.
    pub fn add<F, R>(&mut self, name: &'static str, seconds: u64, run: F)
    where
        F: Fn(Arc<Testbed>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<()>> + Send + 'static,
    {
        self.add_with(RequiredFlag::Nothing, name, seconds, run);
    }

    /// Adds one that is left out without `--long`.
    pub fn add_long<F, R>(&mut self, name: &'static str, seconds: u64, run: F)
    where
        F: Fn(Arc<Testbed>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<()>> + Send + 'static,
    {
        self.add_with(RequiredFlag::Long, name, seconds, run);
    }

    /// Adds one that is left out without that flag.
    pub fn add_with<F, R>(&mut self, flag: RequiredFlag, name: &'static str, seconds: u64, run: F)
    where
        F: Fn(Arc<Testbed>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<()>> + Send + 'static,
    {
        let run: ScenarioBody = Arc::new(move |testbed| Box::pin(run(testbed)));
        for (implementation, modes) in &self.places {
            for mode in *modes {
                let listed = self.every_change.is_none_or(|modes| modes.contains(mode));
                self.suite.scenarios.push(Scenario {
                    name,
                    mode: *mode,
                    implementation: *implementation,
                    cluster_choice: self.cluster_choice,
                    flag,
                    every_change: mode.is_embedded() || listed,
                    alone: self.alone,
                    lasts: Duration::from_secs(seconds),
                    run: Arc::clone(&run),
                });
            }
        }
    }
}

// === impl Suite ===

impl Suite {
    /// Has a table with these columns, into which scenarios put [cells](Testbed::cell) of several rows.
    #[must_use]
    pub fn with_table(mut self, columns: &'static [&'static str]) -> Self {
        self.columns = columns;
        self
    }

    /// Scenarios on clusters that others use too, with an elector that has been up for long enough.
    pub fn shared(
        &mut self,
        implementation: Implementation,
        modes: &'static [ClusterMode],
    ) -> ScenarioGroup<'_> {
        self.group(ClusterChoice::Shared, implementation, modes)
    }

    /// Scenarios on clusters of their own, without an elector.
    pub fn own(
        &mut self,
        implementation: Implementation,
        modes: &'static [ClusterMode],
    ) -> ScenarioGroup<'_> {
        self.group(ClusterChoice::Own, implementation, modes)
    }

    fn group(
        &mut self,
        cluster_choice: ClusterChoice,
        implementation: Implementation,
        modes: &'static [ClusterMode],
    ) -> ScenarioGroup<'_> {
        ScenarioGroup {
            suite: self,
            cluster_choice,
            places: vec![(implementation, modes)],
            every_change: None,
            alone: false,
        }
    }

    /// Runs what the command line asks for. True if all went well.
    pub fn run(self, arguments: impl Iterator<Item = String>) -> Result<bool> {
        let selection = ScenarioSelection::try_parse_from(arguments)?;
        let all = self.scenarios.len();
        let mut chosen = self.scenarios;
        chosen.retain(|scenario| selection.wants(&scenario.full_name()));
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
        let mut programs = TestedPrograms::build("dev")?;
        let earlier = selection.upgrade_from.as_deref();
        programs.earlier_version = earlier.map(ElectorVersion::in_folder);
        let programs = Arc::new(programs);
        let before = chosen.len();
        leave_out(&mut chosen, &selection, &programs);
        let ignored = before - chosen.len();
        // The long ones first, and those for which a cluster has to be started.
        chosen.sort_by_key(|scenario| (std::cmp::Reverse(scenario.lasts), scenario.full_name()));
        let folder = tempfile::Builder::new().prefix("elector-real-").tempdir()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let start = Instant::now();
        let expected = chosen.len();
        let jobs = selection.jobs.unwrap_or(JOBS);
        let run = |scenarios| run_all(scenarios, Arc::clone(&programs), folder.path(), jobs);
        let (alone, others): (Vec<_>, Vec<_>) =
            chosen.into_iter().partition(|scenario| scenario.alone);
        let mut results = runtime.block_on(run(others));
        for scenario in alone {
            results.extend(runtime.block_on(run(vec![scenario])));
        }
        let count = results.len();
        ensure!(count == expected, "{count} of {expected} scenarios ended");
        let good = results.iter().all(|result| result.error.is_none());
        if !good || env::var_os(KEEP_LOGS).is_some_and(|value| value == "1") {
            println!("\nlogs: {}", folder.keep().display());
        }
        summary(&results, filtered_out, ignored, start.elapsed());
        if let Some(document) = selection.record.as_ref().filter(|_| good) {
            record(document, &results)?;
        }
        if let Some(document) = selection.record_table.as_ref().filter(|_| good) {
            let earlier = programs.earlier_version.as_ref();
            let earlier = earlier.and_then(|earlier| earlier.commit.as_deref());
            record_table(document, self.columns, earlier, &results)?;
        }
        Ok(good)
    }
}

/// Leaves out what the command line does not ask for, or these programs cannot play.
fn leave_out(chosen: &mut Vec<Scenario>, selection: &ScenarioSelection, programs: &TestedPrograms) {
    let all_modes = selection.all_modes || selection.names_some();
    let has = |flag| match flag {
        RequiredFlag::Nothing => true,
        RequiredFlag::Long => selection.long,
        RequiredFlag::UpgradeFrom => programs.earlier_version.is_some(),
    };
    let before = chosen.len();
    chosen.retain(|scenario| all_modes || scenario.every_change);
    let other_modes = before - chosen.len();
    chosen.retain(|scenario| has(scenario.flag));
    let others = before - other_modes - chosen.len();
    println!(
        "left out: {other_modes} scenarios that run in other modes (--all-modes), and {others} that take minutes \
         (--long) or need an earlier version (--upgrade-from FOLDER)"
    );
    chosen.retain(|scenario| {
        scenario.implementation == Implementation::Elector || programs.interop.is_some()
    });
    // The embedded server is of no release, and client-go of another one may not know it.
    chosen.retain(|scenario| !scenario.mode.is_embedded() || programs.release.is_none());
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
    // None waits, with its cluster up, for others to end.
    let permits = Semaphore::new(OWN_CLUSTERS.min(jobs.max(1)));
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
            let mut start = Instant::now();
            let ended = run_one(&scenario, &clusters, &slots, &mut start).await;
            let (figures, cells, error) = match ended {
                Ok(testbed) => (testbed.all_figures(), testbed.cells(), None),
                Err(error) => (Vec::new(), Vec::new(), Some(format!("{error:#}"))),
            };
            ScenarioResult {
                scenario,
                took: start.elapsed(),
                figures,
                cells,
                error,
            }
        });
    }
    let mut results = Vec::new();
    while let Some(joined) = running.join_next().await {
        match joined {
            Ok(result) => {
                println!("{}", result.line());
                results.push(result);
            }
            // The count of the results says so too.
            Err(error) => println!("a scenario could not be joined: {error}"),
        }
    }
    results
}

/// Plays a scenario; `start` becomes the instant at which it had its cluster and its slot.
async fn run_one(
    scenario: &Scenario,
    clusters: &SharedClusters,
    slots: &Semaphore,
    start: &mut Instant,
) -> Result<Arc<Testbed>> {
    let namespace = scenario.namespace();
    let (_own, site) = match scenario.cluster_choice {
        ClusterChoice::Shared => (None, clusters.shared(scenario.mode).await?),
        ClusterChoice::Own => {
            // The embedded server is a part of this process and needs next to nothing.
            let permit = match scenario.mode.is_embedded() {
                true => None,
                false => Some(clusters.permits.acquire().await?),
            };
            let purpose = SitePurpose::OneScenario;
            let site = clusters.start(scenario.mode, &namespace, purpose).await?;
            (permit, site)
        }
    };
    let _slot = slots.acquire().await?;
    *start = Instant::now();
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
    result.map_err(|error| {
        let figures = testbed.all_figures();
        anyhow!("{error:#}\n\nmeasured: {figures:?}\n\n{text}")
    })?;
    Ok(testbed)
}
