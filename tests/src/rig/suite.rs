//! Runs scenarios side by side on shared clusters, and reports as `cargo test` does.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use elector_verify::Implementation;
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::{Id, JoinSet};
use tokio::time::timeout;

use crate::rig::every_change::EveryChange;
use crate::rig::programs::{ElectorVersion, TestedPrograms};
use crate::rig::record::{record, record_table};
use crate::rig::results::{ScenarioResult, summary};
use crate::rig::scenario::{ClusterChoice, RequiredFlag, Scenario, ScenarioBody};
use crate::rig::selection::ScenarioSelection;
use crate::rig::shared_clusters::{OWN_CLUSTERS, SharedClusters};
use crate::rig::site::ClusterMode;
use crate::rig::testbed::Testbed;

/// The scenarios, and which of them to run.
#[derive(Debug)]
pub struct Suite {
    scenarios: Vec<Scenario>,
    every_change: &'static [EveryChange],
    /// The columns of the table that `--record-table` writes.
    columns: &'static [&'static str],
}

/// The number of scenarios at once: their processes wait for most of the time.
const JOBS: usize = 20;

/// Set to `1`, it keeps the logs of a run in which nothing failed too.
const KEEP_LOGS: &str = "ELECTOR_KEEP_LOGS";

/// The most by which a scenario may overrun, before it counts as hung.
const HANG: Duration = Duration::from_secs(180);

// === impl Suite ===

impl Suite {
    /// A suite without scenarios yet.
    pub fn new(every_change: &'static [EveryChange]) -> Self {
        Self {
            scenarios: Vec::new(),
            every_change,
            columns: &[],
        }
    }

    /// Has a table with these columns, into which scenarios put [cells](Testbed::cell) of several rows.
    #[must_use]
    pub fn with_table(mut self, columns: &'static [&'static str]) -> Self {
        self.columns = columns;
        self
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
        let flag = RequiredFlag::Nothing;
        self.add_with_flag(
            flag,
            name,
            cluster_choice,
            implementations,
            modes,
            lasts,
            run,
        );
    }

    /// The same for a scenario that is left out without that flag.
    #[expect(
        clippy::too_many_arguments,
        reason = "each names a property of the scenario, and each call has them in one list"
    )]
    pub fn add_with_flag(
        &mut self,
        flag: RequiredFlag,
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
                    flag,
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
        let mut programs = TestedPrograms::build("dev")?;
        programs.other_build.clone_from(&selection.beside);
        let earlier = selection.upgrade_from.as_deref();
        programs.earlier_version = earlier.map(ElectorVersion::in_folder);
        let programs = Arc::new(programs);
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
        for (flag, given, what) in [
            (RequiredFlag::Long, selection.long, "take minutes (--long)"),
            (
                RequiredFlag::Beside,
                programs.other_build.is_some(),
                "need another build of elector (--beside PATH)",
            ),
            (
                RequiredFlag::UpgradeFrom,
                programs.earlier_version.is_some(),
                "need an earlier version of Elector (--upgrade-from FOLDER)",
            ),
        ] {
            let all = chosen.len();
            chosen.retain(|scenario| given || scenario.flag != flag);
            if chosen.len() < all {
                println!("left out: {} scenarios that {what}", all - chosen.len());
            }
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
        let expected = chosen.len();
        let results = runtime.block_on(run_all(
            chosen,
            Arc::clone(&programs),
            folder.path(),
            selection.jobs.unwrap_or(JOBS),
        ));
        ensure!(
            results.len() == expected,
            "{} of {expected} scenarios have a result",
            results.len()
        );
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
    let (mut running, mut started) = (JoinSet::new(), BTreeMap::new());
    for scenario in scenarios {
        let (clusters, slots) = (Arc::clone(&clusters), Arc::clone(&slots));
        let known = scenario.clone();
        let task = running.spawn(async move {
            let start = Instant::now();
            match run_one(&scenario, &clusters, &slots).await {
                Ok((testbed, took)) => ScenarioResult {
                    scenario,
                    took,
                    figures: testbed.all_figures(),
                    cells: testbed.cells(),
                    error: None,
                },
                Err(error) => {
                    ScenarioResult::failed(scenario, start.elapsed(), format!("{error:#}"))
                }
            }
        });
        started.insert(task.id(), (known, Instant::now()));
    }
    join_all(running, started).await
}

/// The results of all scenarios. One whose task panicked, in its verdict for instance, has failed.
async fn join_all(
    mut running: JoinSet<ScenarioResult>,
    mut started: BTreeMap<Id, (Scenario, Instant)>,
) -> Vec<ScenarioResult> {
    let mut results = Vec::new();
    while let Some(joined) = running.join_next().await {
        let result = match joined {
            Ok(result) => Some(result),
            Err(error) => started.remove(&error.id()).map(|(scenario, start)| {
                let error = format!("could not be joined: {error}");
                ScenarioResult::failed(scenario, start.elapsed(), error)
            }),
        };
        if let Some(result) = result {
            println!("{}", result.line());
            results.push(result);
        }
    }
    results
}

async fn run_one(
    scenario: &Scenario,
    clusters: &SharedClusters,
    slots: &Semaphore,
) -> Result<(Arc<Testbed>, Duration)> {
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
    let took = start.elapsed();
    result.map_err(|error| {
        let figures = testbed.all_figures();
        anyhow!("{error:#}\n\nmeasured: {figures:?}\n\n{text}")
    })?;
    Ok((testbed, took))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_scenario_that_cannot_be_joined_has_failed() {
        let scenario = |name| Scenario {
            name,
            mode: ClusterMode::GateOn,
            implementation: Implementation::Elector,
            cluster_choice: ClusterChoice::Shared,
            flag: RequiredFlag::Nothing,
            lasts: Duration::ZERO,
            run: |_| Box::pin(async { Ok(()) }),
        };
        let (mut running, mut started) = (JoinSet::new(), BTreeMap::new());
        for name in ["panics", "ends"] {
            let known = scenario(name);
            let task = running.spawn(async move {
                assert_ne!(name, "panics", "its verdict");
                ScenarioResult {
                    scenario: scenario(name),
                    took: Duration::ZERO,
                    figures: Vec::new(),
                    cells: Vec::new(),
                    error: None,
                }
            });
            started.insert(task.id(), (known, Instant::now()));
        }
        let mut results = join_all(running, started).await;
        results.sort_by_key(|result| result.scenario.name);
        let [ends, panics] = results.as_slice() else {
            panic!("{} results", results.len());
        };
        assert_eq!((ends.scenario.name, &ends.error), ("ends", &None));
        let error = panics.error.as_deref().unwrap_or_default();
        assert!(error.contains("its verdict"), "{error}");
    }
}
