//! Starting and ending candidates, ours and client-go's, in the same words.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use elector_protocol::Timestamp;
use elector_verify::{EntryContent, Event, EventKind, HistoryEntry, Implementation};
use rustix::process::Signal;

use crate::rig::account::TestAccount;
use crate::rig::journal::{Journal, now};
use crate::rig::process::TestProcess;
use crate::rig::site::command;
use crate::rig::testbed::Testbed;

/// A candidate to be started.
#[derive(Clone, Debug)]
pub struct CandidateBuilder<'w> {
    testbed: &'w Testbed,
    implementation: Implementation,
    name: String,
    lease: String,
    binary: String,
    emulation: String,
    strategy: Option<String>,
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
            binary: "1.0.0".to_owned(),
            emulation: "1.0.0".to_owned(),
            strategy: None,
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

    /// Wishing for this strategy.
    #[must_use]
    pub fn strategy(mut self, strategy: &str) -> Self {
        self.strategy = Some(strategy.to_owned());
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

    /// With a further flag.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
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

    /// Of that build of elector; ours only.
    #[must_use]
    pub fn build(mut self, program: &Path) -> Self {
        self.build = Some(program.to_owned());
        self
    }

    /// Starts it, and does not wait for anything.
    ///
    /// # Errors
    /// When its program cannot be started.
    pub fn start(self) -> Result<StartedCandidate> {
        let testbed = self.testbed;
        testbed.add_participant(&self.name, self.implementation, &self.lease);
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
            journal,
            process,
        })
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
        command.args([
            "--namespace",
            namespace,
            "--lease",
            &self.lease,
            "--name",
            &self.name,
        ]);
        match (self.plain, self.implementation) {
            (Some(mode), Implementation::Elector) => {
                command.arg(mode);
            }
            (Some(_), Implementation::ClientGo) => {
                command.arg("--coordinated=false");
            }
            (None, _) => {
                command.args([
                    "--binary-version",
                    &self.binary,
                    "--emulation-version",
                    &self.emulation,
                ]);
            }
        }
        if let Some(strategy) = &self.strategy {
            command.args(["--strategy", strategy]);
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

    /// Waits until it leads; since when it does.
    ///
    /// # Errors
    /// When it does not within `patience`.
    pub async fn leads(&self, patience: Duration) -> Result<Timestamp> {
        self.says(EventKind::Leading, 0, patience).await
    }

    /// Waits until it leads once more, in an entry of the journal after the first `from`.
    ///
    /// # Errors
    /// When it does not within `patience`.
    pub async fn leads_again(&self, from: usize, patience: Duration) -> Result<Timestamp> {
        self.says(EventKind::Leading, from, patience).await
    }

    /// Waits until its process says this in an entry after the first `from`; when it did.
    ///
    /// # Errors
    /// When it does not within `patience`.
    pub async fn says(
        &self,
        kind: EventKind,
        from: usize,
        patience: Duration,
    ) -> Result<Timestamp> {
        let what = format!("{} says {kind:?}", self.name);
        let look = |entries: &[HistoryEntry]| {
            entries[from..]
                .iter()
                .find_map(|entry| match &entry.content {
                    EntryContent::Event(event) if event.name == self.name && event.kind == kind => {
                        Some(entry.at)
                    }
                    _ => None,
                })
        };
        self.journal.until(&what, patience, look).await
    }

    /// Kills it; returns the time just before.
    ///
    /// # Errors
    /// When it has ended before.
    pub fn kill(&mut self) -> Result<Timestamp> {
        self.journal.note(format!("kill {}", self.name));
        let at = self.process.kill()?;
        let event = Event::new(self.name.as_str(), EventKind::Killed);
        self.journal.record(at, EntryContent::Event(event));
        Ok(at)
    }

    /// Asks it to end with SIGTERM, and does not wait; returns the time just before.
    ///
    /// # Errors
    /// When it has ended before.
    pub fn terminate(&mut self) -> Result<Timestamp> {
        self.journal.note(format!("terminate {}", self.name));
        let at = now();
        self.process.signal(Signal::TERM)?;
        Ok(at)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it still runs after `patience`, or did not end well.
    pub async fn ends_well(&mut self, patience: Duration) -> Result<ExitStatus> {
        let status = self.process.exit(patience).await?;
        if !status.success() {
            bail!(
                "{} ended with {status}; it wrote:\n{}",
                self.name,
                self.process.output()?
            );
        }
        Ok(status)
    }
}
