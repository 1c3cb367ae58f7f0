//! Starting and ending candidates, ours and client-go's, in the same words.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_protocol::Timestamp;
use elector_verify::{EntryContent, Event, EventKind, HistoryEntry, Implementation, between};
use rustix::process::Signal;

use crate::rig::account::TestAccount;
use crate::rig::journal::{Journal, JournalMark, events};
use crate::rig::process::TestProcess;
use crate::rig::site::command;
use crate::rig::testbed::{PROMPTLY, Testbed};

/// A candidate to be started.
#[derive(Clone)]
pub struct CandidateBuilder<'w> {
    testbed: &'w Testbed,
    implementation: Implementation,
    name: String,
    lease: String,
    /// The parts of the group that is called as the lease would be; none where it stands for the lease itself.
    parts: Vec<String>,
    binary: String,
    emulation: String,
    /// Its flag to take the lease by itself, if it does without an elector.
    plain: Option<&'static str>,
    flags: Vec<String>,
    work: Vec<String>,
    build: Option<PathBuf>,
    kubeconfig: Option<PathBuf>,
}

/// A running candidate.
#[derive(Debug)]
pub struct StartedCandidate {
    name: String,
    /// The names of its candidates: its own, or one for each part.
    candidates: Vec<String>,
    journal: Arc<Journal>,
    /// Its process.
    pub process: TestProcess,
}

// === impl Testbed ===

impl Testbed {
    /// A candidate of the scenario's implementation, to be started.
    pub fn candidate(&self, name: &str) -> CandidateBuilder<'_> {
        CandidateBuilder::new(self, self.implementation(), name)
    }

    /// Waits until a candidate begins to lead after that moment, and checks that it does so within `limit` of it.
    pub async fn leads_within(
        &self,
        candidate: &StartedCandidate,
        since: JournalMark,
        limit: Duration,
        figure: &str,
    ) -> Result<Timestamp> {
        let led = candidate.leads_since(since, limit + PROMPTLY).await?;
        let took = between(since.at, led);
        self.figure(figure, took);
        let name = candidate.name();
        ensure!(took <= limit, "{figure}: {name} led after {took:?}");
        Ok(led)
    }

    /// A candidate of this implementation, to be started.
    pub fn candidate_of(&self, implementation: Implementation, name: &str) -> CandidateBuilder<'_> {
        CandidateBuilder::new(self, implementation, name)
    }
}

// === impl CandidateBuilder ===

impl<'w> CandidateBuilder<'w> {
    pub(super) fn new(testbed: &'w Testbed, implementation: Implementation, name: &str) -> Self {
        Self {
            testbed,
            implementation,
            name: name.to_owned(),
            lease: testbed.lease_name().to_owned(),
            parts: Vec::new(),
            binary: "1.0.0".to_owned(),
            emulation: "1.0.0".to_owned(),
            plain: None,
            flags: Vec::new(),
            work: vec!["sleep".to_owned(), "100000".to_owned()],
            build: None,
            kubeconfig: None,
        }
    }

    /// For another lease than the scenario's.
    #[must_use]
    pub fn lease(mut self, lease: &str) -> Self {
        lease.clone_into(&mut self.lease);
        self
    }

    /// Standing for these parts of the group that is called as its lease would be; ours only.
    #[must_use]
    pub fn parts(mut self, parts: &[&str]) -> Self {
        self.parts = parts.iter().map(|part| (*part).to_owned()).collect();
        self
    }

    /// Of this binary version, which it also emulates.
    #[must_use]
    pub fn version(self, version: &str) -> Self {
        self.versions(version, version)
    }

    /// Of these versions.
    #[must_use]
    pub fn versions(mut self, binary: &str, emulation: &str) -> Self {
        binary.clone_into(&mut self.binary);
        emulation.clone_into(&mut self.emulation);
        self
    }

    /// Taking the lease by itself, without an elector.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.plain = Some("--mode=plain");
        self
    }

    /// The same, and a missing Lease at once.
    #[must_use]
    pub fn as_client_go(mut self) -> Self {
        self.plain = Some("--mode=as-client-go");
        self
    }

    /// Under this account rather than that of all candidates of the testbed.
    #[must_use]
    pub fn account(mut self, account: &TestAccount) -> Self {
        self.kubeconfig = Some(account.kubeconfig().to_owned());
        self
    }

    /// By that kubeconfig.
    #[must_use]
    pub fn kubeconfig(mut self, path: &Path) -> Self {
        self.kubeconfig = Some(path.to_owned());
        self
    }

    /// With a further flag.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// With a lease of 4 s, and a deadline of 3 s.
    #[must_use]
    pub fn short(self) -> Self {
        self.flag("--lease-duration=4s")
            .flag("--renew-deadline=3s")
            .flag_for(Implementation::ClientGo, "--retry-period=1s")
    }

    /// With a further flag, if it is of this implementation.
    #[must_use]
    pub fn flag_for(self, implementation: Implementation, flag: &str) -> Self {
        if self.implementation == implementation {
            self.flag(flag)
        } else {
            self
        }
    }

    /// With other work than sleeping; ours only.
    #[must_use]
    pub fn work(mut self, command: &[&str]) -> Self {
        self.work = command.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// As a sidecar of another program, which asks it at that address and with the token of that file; ours only.
    pub fn sidecar(self) -> Result<(Self, SocketAddr, PathBuf)> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let token = self.testbed.folder().join(format!("{}.token", self.name));
        let token_flag = format!("--http-token-file={}", token.display());
        let sidecar = self.work(&[]).flag(&format!("--http={address}"));
        Ok((sidecar.flag(&token_flag), address, token))
    }

    /// Of that build of elector; ours only.
    #[must_use]
    pub fn build(mut self, program: &Path) -> Self {
        self.build = Some(program.to_owned());
        self
    }

    /// Starts it, and does not wait for anything.
    pub fn start(self) -> Result<StartedCandidate> {
        let testbed = self.testbed;
        let candidates = self.candidates();
        for (name, lease) in &candidates {
            testbed.add_participant(name, self.implementation, lease);
        }
        let command = self.command()?;
        let journal = Arc::clone(testbed.journal());
        let book = Arc::clone(&journal);
        journal.note(format!(
            "start {} ({:?}, binary {})",
            self.name, self.implementation, self.binary
        ));
        let process = TestProcess::spawn(&self.name, command, testbed.folder(), move |line| {
            if let Some((at, event)) = Event::parse(line) {
                book.record(at, EntryContent::Event(event));
            }
        })?;
        Ok(StartedCandidate {
            name: self.name,
            candidates: candidates.into_iter().map(|(name, _)| name).collect(),
            journal,
            process,
        })
    }

    /// Its candidates, by their names, and the lease of each.
    fn candidates(&self) -> Vec<(String, String)> {
        if self.parts.is_empty() {
            return vec![(self.name.clone(), self.lease.clone())];
        }
        let parts = self.parts.iter().map(|part| {
            let lease = format!("{}-{part}", self.lease);
            (format!("{}.{lease}", self.name), lease)
        });
        parts.collect()
    }

    fn command(&self) -> Result<Command> {
        let site = self.testbed.site();
        let namespace = self.testbed.namespace();
        let kubeconfig = self.kubeconfig.clone();
        let kubeconfig = kubeconfig.unwrap_or_else(|| self.testbed.candidate_kubeconfig());
        let mut command = match self.implementation {
            Implementation::Elector => {
                let build = self.build.as_ref();
                let mut command = command(build.unwrap_or(&site.programs().elector), &kubeconfig);
                command.arg("candidate").arg("--events");
                command
            }
            Implementation::ClientGo => command(&site.programs().interop()?.client_go, &kubeconfig),
        };
        let (lease, name) = (&self.lease, &self.name);
        let flag = if self.parts.is_empty() {
            "--lease"
        } else {
            "--group"
        };
        command.args(["--namespace", namespace, flag, lease, "--name", name]);
        for part in &self.parts {
            command.args(["--part", part]);
        }
        match (self.plain, self.implementation) {
            (Some(mode), Implementation::Elector) => {
                command.arg(mode);
            }
            (Some(_), Implementation::ClientGo) => {
                command.arg("--coordinated=false");
            }
            (None, _) => {
                let (binary, emulation) = (&self.binary, &self.emulation);
                command.args(["--binary-version", binary]);
                command.args(["--emulation-version", emulation]);
            }
        }
        command.args(&self.flags);
        if self.implementation == Implementation::Elector && !self.work.is_empty() {
            command.arg("--").args(&self.work);
        }
        Ok(command)
    }
}

// === impl StartedCandidate ===

impl StartedCandidate {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until it leads for the first time; since when it does.
    pub async fn leads(&self, patience: Duration) -> Result<Timestamp> {
        self.leads_since(JournalMark::BEGINNING, patience).await
    }

    /// Waits until it begins to lead after that mark; since when it does.
    pub async fn leads_since(&self, mark: JournalMark, patience: Duration) -> Result<Timestamp> {
        self.says(EventKind::Leading, mark, patience).await
    }

    /// Waits until its process runs; since when it does.
    pub async fn begins(&self) -> Result<Timestamp> {
        let beginning = JournalMark::BEGINNING;
        self.says(EventKind::Start, beginning, PROMPTLY).await
    }

    /// Waits until its work has stopped after that mark; since when it has.
    pub async fn stops(&self, mark: JournalMark) -> Result<Timestamp> {
        self.says(EventKind::WorkStopped, mark, PROMPTLY).await
    }

    /// Waits until its process says this after that mark; when it did.
    pub async fn says(
        &self,
        kind: EventKind,
        mark: JournalMark,
        patience: Duration,
    ) -> Result<Timestamp> {
        let what = format!("{} says {kind:?}", self.name);
        let look = |entries: &[HistoryEntry]| {
            let mut said = events(mark.since(entries), kind);
            said.find_map(|(event, at)| self.candidates.contains(&event.name).then_some(at))
        };
        self.journal.until(&what, patience, look).await
    }

    /// Kills it; returns the moment just before.
    pub fn kill(&mut self) -> Result<JournalMark> {
        let mut mark = self.journal.mark();
        self.journal.note(format!("kill {}", self.name));
        let at = self.process.kill()?;
        for name in &self.candidates {
            let event = Event::new(name.as_str(), EventKind::Killed);
            self.journal.record(at, EntryContent::Event(event));
        }
        mark.at = at;
        Ok(mark)
    }

    /// Asks it to end with SIGTERM, and does not wait; returns the moment just before.
    pub fn terminate(&mut self) -> Result<JournalMark> {
        let mark = self.journal.mark();
        self.journal.note(format!("terminate {}", self.name));
        self.process.signal(Signal::TERM)?;
        Ok(mark)
    }

    /// Waits for its end.
    pub async fn ends_well(&mut self) -> Result<()> {
        let status = self.process.exit(PROMPTLY).await?;
        let (name, output) = (&self.name, self.process.output()?);
        let holds = status.success();
        ensure!(holds, "{name} ended with {status}; it wrote:\n{output}");
        Ok(())
    }

    /// Ends it as a kubelet does; returns the moment just before.
    pub async fn ends(&mut self) -> Result<JournalMark> {
        let mark = self.terminate()?;
        self.ends_well().await?;
        Ok(mark)
    }
}
