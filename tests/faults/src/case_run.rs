//! A case's share of the cluster: its processes behind their ports, and what is done to them.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_protocol::ResourceVersion;
use elector_tests::rig::Implementation;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ObjectMeta, PostParams};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};

use crate::case::FaultCase;
use crate::fault::{AWAY, FaultScript, LeaderCondition, LeaseEdit};
use crate::forward::Traffic;
use crate::last_operation::{FaultEnd, LastOperation};
use crate::lease_edit;
use crate::lease_history;
use crate::matrix_bed::MatrixBed;
use crate::network::NetworkCondition;
use crate::proxy::{Proxy, ProxyPort};
use crate::register::{GuardedOperation, OperationLog};
use crate::server_fault::SharedFault;
use crate::subject::{LoggedProcess, TestSubject};

/// A process with its port.
#[derive(Debug)]
struct ProxiedProcess {
    // Dropped in this order: it is killed before it can be confused by a closed port.
    process: LoggedProcess,
    port: ProxyPort,
}

/// A case in progress.
pub(crate) struct CaseRun {
    pub(crate) bed: Arc<MatrixBed>,
    case: FaultCase,
    namespace: String,
    folder: PathBuf,
    proxy: Proxy,
    pub(crate) log: Arc<OperationLog>,
    candidates: Vec<ProxiedProcess>,
    electors: Vec<ProxiedProcess>,
    /// Held until its first processes have started.
    turn: Option<OwnedSemaphorePermit>,
    /// Revisions that a stranger wrote.
    foreign: Vec<ResourceVersion>,
    /// The names of the processes that were killed, or asked to end.
    killed: Vec<String>,
    /// When the leader was let go, or killed.
    fault_end: Option<FaultEnd>,
    /// The fault that all cases share, if the server is what it strikes.
    pub(crate) shared: Option<SharedFault>,
    /// The time of the pulse at which it was opened.
    opened: Duration,
}

/// The time that a process may take to send its first request.
const STARTS: Duration = Duration::from_secs(30);

/// The time that a leader may take to renew.
const RENEWS: Duration = Duration::from_secs(20);

/// The pause between two annotations of a stranger.
const ANNOTATION: Duration = Duration::from_millis(100);

/// The time from the start of the fault until the leader is killed.
const KILL_AFTER: Duration = Duration::from_secs(2);

// === impl ProxiedProcess ===

impl ProxiedProcess {
    /// Kills it; its name.
    fn kill(&mut self) -> Result<String> {
        self.process.signal(Signal::KILL)?;
        Ok(self.process.name().to_owned())
    }
}

// === impl CaseRun ===

impl CaseRun {
    /// One in the namespace of its case, whose name ends in `suffix`.
    pub(crate) async fn open(
        case: FaultCase,
        suffix: &str,
        bed: Arc<MatrixBed>,
        shared: Option<SharedFault>,
    ) -> Result<Self> {
        let opened = bed.pulse.now();
        let namespace = case.name().replace("::", "-") + suffix;
        let namespaces: Api<Namespace> = Api::all(bed.client.clone());
        let object = Namespace {
            metadata: ObjectMeta {
                name: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        namespaces
            .create(&PostParams::default(), &object)
            .await
            .context("failed to create a namespace")?;
        let turn = Some(bed.turn(case.fault).await?);
        let folder = bed.folder.join(&namespace);
        let proxy = Proxy::before(&bed.kubeconfig, &folder).await?;
        let mut case_run = Self {
            log: bed.register.log(&namespace),
            bed,
            case,
            namespace,
            folder,
            proxy,
            candidates: Vec::new(),
            electors: Vec::new(),
            turn,
            foreign: Vec::new(),
            killed: Vec::new(),
            fault_end: None,
            shared,
            opened,
        };
        if case.subject.is_elected() {
            for number in 1..=case.fault.electors() {
                case_run.start_elector(&format!("elector-{number}")).await?;
            }
        }
        Ok(case_run)
    }

    /// Has other cases start their processes for that time.
    pub(crate) async fn leave_electors_alone(&mut self, time: Duration) -> Result<()> {
        self.turn = None;
        sleep(time).await;
        self.turn = Some(self.bed.turn(self.case.fault).await?);
        Ok(())
    }

    /// Starts all candidates; returns when each of them, and each elector, has sent a request.
    pub(crate) async fn start_candidates(&mut self) -> Result<()> {
        let subject = self.case.subject;
        for number in 1..=subject.replicas() {
            self.start_candidate(&format!("{subject}-{number}")).await?;
        }
        let candidates = self.candidates.iter().filter(|_| subject.has_lease());
        for member in candidates.chain(&self.electors) {
            let mut traffic = member.port.traffic();
            let begun = timeout(STARTS, traffic.wait_for(|traffic| traffic.begun)).await;
            begun.with_context(|| format!("{} sends no request", member.process.name()))??;
        }
        self.turn = None;
        Ok(())
    }

    async fn start_candidate(&mut self, name: &str) -> Result<()> {
        let port = self.proxy.open(name).await?;
        let register = self.bed.register.url(&self.namespace, name);
        let process = self.bed.programs.start(
            self.case.subject,
            (name, &self.namespace),
            &port,
            &register,
            &self.folder,
        )?;
        self.candidates.push(ProxiedProcess { process, port });
        Ok(())
    }

    async fn start_elector(&mut self, name: &str) -> Result<()> {
        let port = self.proxy.open(name).await?;
        let whose = (name, self.namespace.as_str());
        let process = self
            .bed
            .programs
            .start_elector(whose, &port, &self.folder)?;
        self.electors.push(ProxiedProcess { process, port });
        Ok(())
    }

    /// The least work that is to be done.
    pub(crate) fn floor(&self) -> Option<f64> {
        let FaultCase { fault, subject, .. } = self.case;
        let recorded = self.bed.recorded.lock().floor(fault.name, subject)?;
        let explained = fault.least_work(subject).unwrap_or(recorded);
        Some(recorded.min(explained))
    }

    /// The index of the candidate that worked last, and its last operation.
    pub(crate) fn leader(&self) -> Result<(usize, GuardedOperation)> {
        let newest = self.log.newest().context("no client has worked")?;
        let leader = self
            .candidates
            .iter()
            .position(|member| member.process.name() == newest.client)
            .with_context(|| format!("{} is not known", newest.client))?;
        Ok((leader, newest))
    }

    /// The last operation of the leader that was let go, if another candidate has followed it.
    pub(crate) fn last_operation(
        &self,
        operations: &[GuardedOperation],
        struck: &GuardedOperation,
    ) -> Option<LastOperation> {
        LastOperation::read(operations, struck, self.fault_end?)
    }

    fn kill_leader(&mut self, leader: usize) -> Result<()> {
        self.killed.push(self.candidates[leader].kill()?);
        self.note_fault_end(leader);
        Ok(())
    }

    /// Notes that the fault of that leader is over now.
    fn note_fault_end(&mut self, leader: usize) {
        let renewed = self.candidates[leader].port.traffic().borrow().last;
        let now = self.log.now();
        self.fault_end = Some(FaultEnd {
            at: now,
            renewed: renewed.map(|renewed| now.saturating_sub(renewed.elapsed())),
        });
    }

    /// Where in the renewal interval the fault is to strike: each run has a part of it, and a place in its part that
    /// follows from the seed.
    pub(crate) fn phase(&self) -> f64 {
        let FaultCase {
            fault,
            subject,
            run,
        } = self.case;
        let name = format!("{}{subject}{run}", fault.name);
        let name = name.bytes().fold(self.bed.seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let jitter: f64 = StdRng::seed_from_u64(name).random();
        (f64::from(run % fault.runs) + jitter) / f64::from(fault.runs)
    }

    /// Where in its renewal interval that candidate is now.
    pub(crate) fn present_phase(&self, leader: usize) -> f64 {
        let traffic = *self.candidates[leader].port.traffic().borrow();
        let (last, interval) = (traffic.last, traffic.interval.unwrap_or(Duration::MAX));
        let age = last.map_or(Duration::ZERO, |last| last.elapsed());
        age.div_duration_f64(interval).min(1.0)
    }

    pub(crate) async fn wait_for_phase(&self, leader: usize, phase: f64) -> Result<()> {
        if !self.case.subject.has_lease() {
            return Ok(());
        }
        let traffic = self.renewal(leader).await?;
        let interval = traffic.interval.unwrap_or_default();
        sleep(interval.mul_f64(phase)).await;
        Ok(())
    }

    /// Waits until the server has taken another renewal of that candidate.
    async fn renewal(&self, candidate: usize) -> Result<Traffic> {
        let mut traffic = self.candidates[candidate].port.traffic();
        let taken = traffic.borrow_and_update().taken;
        let next = traffic.wait_for(|traffic| traffic.taken > taken);
        let next = timeout(RENEWS, next)
            .await
            .context("the leader does not renew")?;
        Ok(*next.context("the proxy is gone")?)
    }

    /// Does to it what the fault says; returns when it is over.
    pub(crate) async fn strike(&mut self, leader: usize) -> Result<()> {
        match self.case.fault.script {
            FaultScript::Nothing | FaultScript::FirstStart(_) => {}
            FaultScript::Kill { back_after } => {
                self.kill_leader(leader)?;
                if let Some(away) = back_after {
                    sleep(away).await;
                    let name = format!("{}-again", self.candidates[leader].process.name());
                    self.start_candidate(&name).await?;
                }
            }
            FaultScript::Stop(lasts) => self.stop(leader, lasts).await?,
            FaultScript::StopInFlight(lasts) => {
                self.candidates[leader]
                    .port
                    .set(NetworkCondition::HeldRenewals);
                self.renewal(leader).await?;
                self.stop(leader, lasts).await?;
            }
            FaultScript::StopHolder(lasts) => {
                self.candidates[leader].process.signal(Signal::STOP)?;
                sleep(lasts).await;
                self.note_fault_end(leader);
                self.candidates[leader].process.signal(Signal::CONT)?;
            }
            FaultScript::AtLeader(network, lasts) => {
                self.candidates[leader].port.set(network);
                self.heal(leader, lasts).await;
            }
            FaultScript::CutOff(lasts) => {
                let member = &self.candidates[leader];
                self.log.cut_off(Some(member.process.name()));
                member.port.set(NetworkCondition::Partition);
                self.heal(leader, lasts).await;
                self.log.cut_off(None);
            }
            FaultScript::AtAllAndEnd(network, lasts, signal) => {
                self.set_all(network);
                sleep(KILL_AFTER).await;
                match signal {
                    Signal::TERM => self.terminate(leader)?,
                    _ => self.kill_leader(leader)?,
                }
                sleep(lasts - KILL_AFTER).await;
                self.set_all(NetworkCondition::Normal);
            }
            FaultScript::Roll => {
                for old in 0..self.candidates.len() {
                    let name = format!("{}-new", self.candidates[old].process.name());
                    self.start_candidate(&name).await?;
                    sleep(AWAY).await;
                    self.terminate(old)?;
                    sleep(AWAY).await;
                }
            }
            FaultScript::AtServer(_) => {
                let shared = self.shared.as_mut();
                let shared = shared.context("the fault of the server is nobody's")?;
                shared.over().await?;
                self.note_fault_end(leader);
            }
            FaultScript::Annotate(lasts) => {
                let end = self.bed.pulse.now() + lasts;
                while self.bed.pulse.now() < end {
                    self.edit_lease(LeaseEdit::Annotate).await?;
                    sleep(ANNOTATION).await;
                }
            }
            FaultScript::Stranger(edit, condition) => {
                let ProxiedProcess { process, port } = &mut self.candidates[leader];
                match condition {
                    LeaderCondition::Undisturbed => {}
                    LeaderCondition::Partitioned(_) => port.set(NetworkCondition::Partition),
                    LeaderCondition::Stopped(_) => process.signal_all(Signal::STOP)?,
                }
                self.edit_lease(edit).await?;
                match condition {
                    LeaderCondition::Undisturbed => self.note_fault_end(leader),
                    LeaderCondition::Partitioned(lasts) => self.heal(leader, lasts).await,
                    LeaderCondition::Stopped(lasts) => self.wake(leader, lasts).await?,
                }
            }
            FaultScript::KillElector { electors } => {
                self.killed.push(self.electors[0].kill()?);
                self.kill_leader(leader)?;
                if electors == 1 {
                    sleep(AWAY).await;
                    self.start_elector("elector-again").await?;
                }
            }
            FaultScript::AtElector {
                network,
                lasts,
                kill,
            } => {
                self.electors[0].port.set(network);
                sleep(KILL_AFTER).await;
                if kill {
                    self.kill_leader(leader)?;
                }
                sleep(lasts - KILL_AFTER).await;
                self.electors[0].port.set(NetworkCondition::Normal);
            }
        }
        Ok(())
    }

    /// Asks it to end.
    fn terminate(&mut self, candidate: usize) -> Result<()> {
        let process = &mut self.candidates[candidate].process;
        self.killed.push(process.name().to_owned());
        process.signal(Signal::TERM)
    }

    /// Stops it, lets arrive what is held back from it, and wakes it when the time is over.
    async fn stop(&mut self, candidate: usize, lasts: Duration) -> Result<()> {
        let ProxiedProcess { process, port } = &mut self.candidates[candidate];
        process.signal_all(Signal::STOP)?;
        port.set(NetworkCondition::Normal);
        self.wake(candidate, lasts).await
    }

    /// Wakes it when the time is over.
    async fn wake(&mut self, candidate: usize, lasts: Duration) -> Result<()> {
        sleep(lasts).await;
        self.note_fault_end(candidate);
        self.candidates[candidate].process.signal_all(Signal::CONT)
    }

    /// Has its network be well when the time is over.
    async fn heal(&mut self, candidate: usize, lasts: Duration) {
        sleep(lasts).await;
        self.note_fault_end(candidate);
        self.candidates[candidate]
            .port
            .set(NetworkCondition::Normal);
    }

    fn set_all(&self, network: NetworkCondition) {
        let ports = self.candidates.iter().map(|member| &member.port);
        ports.for_each(|port| port.set(network));
    }

    /// A stranger's edit, through no proxy.
    async fn edit_lease(&mut self, edit: LeaseEdit) -> Result<()> {
        if self.case.subject.has_lease() {
            let leases = Api::namespaced(self.bed.client.clone(), &self.namespace);
            self.foreign.extend(lease_edit::make(&leases, edit).await?);
        }
        Ok(())
    }

    /// The violations of the rules in the history of the Lease.
    pub(crate) async fn broken(&self) -> Result<Vec<String>> {
        let implementation = match self.case.subject {
            TestSubject::Coordinated => Implementation::ClientGo,
            TestSubject::AsClientGo => return Ok(Vec::new()),
            subject if subject.is_judged() => Implementation::Elector,
            _ => return Ok(Vec::new()),
        };
        let names = self.candidates.iter().map(|member| member.process.name());
        let journal = self.bed.recorder.journal(&self.namespace);
        let mut broken = lease_history::violations(
            &self.bed.client,
            &journal,
            &self.namespace,
            names.map(|name| (name.to_owned(), implementation)),
            &self.foreign,
            Duration::from_secs_f64(self.bed.stall(self.opened)),
        )
        .await?;
        let path = self.folder.join("history.jsonl");
        fs::write(&path, journal.history().recording())
            .with_context(|| format!("failed to write {}", path.display()))?;
        if !broken.is_empty() {
            broken.push(journal.text());
        }
        Ok(broken)
    }

    /// The processes that ended without having been killed, and those that live on though they were.
    pub(crate) fn unexpected_ends(&mut self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for member in self.candidates.iter_mut().chain(&mut self.electors) {
            let name = member.process.name().to_owned();
            match (member.process.has_ended()?, self.killed.contains(&name)) {
                (true, false) => found.push(format!("{name} ended")),
                (false, true) => found.push(format!("{name} was ended and lives")),
                (true, true) | (false, false) => {}
            }
        }
        Ok(found)
    }

    pub(crate) fn save(&self, operations: &[GuardedOperation]) -> Result<()> {
        let path = self.folder.join("operations.jsonl");
        let mut text = Vec::new();
        for operation in operations {
            serde_json::to_writer(&mut text, operation)?;
            writeln!(text)?;
        }
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
    }
}
