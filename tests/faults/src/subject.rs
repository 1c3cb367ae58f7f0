//! The subjects of the matrix, and how their processes are started.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use elector_cluster::child_guard::ChildGuard;
use elector_tests::rig::signal_descendants;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::analysis::Order;
use crate::proxy::ProxyPort;

/// The kind of process that does the guarded operations; in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum TestSubject {
    /// Candidates of Elector, elected by Elector.
    Ours,
    /// The same with work that ignores its stop, and does everything in tasks that it has spawned.
    IgnoringTasks,
    /// The same as a command that `elector candidate` starts and stops.
    Command,
    /// The same with a command that traps SIGTERM, and goes on for 4 s.
    TrappingCommand,
    /// Candidates of Elector that take the lease by themselves (`--mode plain`).
    PlainOurs,
    /// The same, and a missing Lease is taken at once (`--mode as-client-go`).
    AsClientGo,
    /// Candidates of Elector in their usual mode, where there is no elector.
    AutoAlone,
    /// The first ones with the timing for a slow API server (`--timing slow-server`).
    SlowServer,
    /// Unmodified client-go candidates (`Coordinated: true`), elected by Elector.
    Coordinated,
    /// Unmodified client-go that takes the Lease by itself.
    Plain,
    /// The same, asked with `IsLeader()` before each operation, and told to release the Lease when it ends.
    PlainAsking,
    /// The crate kube-leader-election.
    KubeLeaderElection,
    /// The lease of the crate kubert.
    Kubert,
    /// One process without any election.
    Single,
}

/// The programs of the matrix.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// The binary `elector`.
    pub elector: PathBuf,
    /// The binary `guarded` of this package.
    pub guarded: PathBuf,
    /// The program of `tests/interop/client-go`; without it only our own candidates are looked at.
    pub client_go: Option<PathBuf>,
    /// The folder of the programs of `tests/interop/rivals`, where a subject needs them.
    pub rivals: Option<PathBuf>,
}

/// A running process. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct LoggedProcess {
    name: String,
    child: ChildGuard,
}

// === impl TestSubject ===

impl TestSubject {
    /// The number of its processes.
    pub(crate) fn replicas(self) -> usize {
        match self {
            Self::Single => 1,
            _ => 3,
        }
    }

    /// True if anything is judged of it: what it does itself, or what an elector of ours does for it.
    pub(crate) fn is_ours_to_elect(self) -> bool {
        self.is_judged() || self.is_elected()
    }

    /// True if an elector elects for it.
    pub(crate) fn is_elected(self) -> bool {
        matches!(
            self,
            Self::Ours
                | Self::IgnoringTasks
                | Self::Command
                | Self::TrappingCommand
                | Self::SlowServer
                | Self::Coordinated
        )
    }

    /// True if it is judged, and not only looked at.
    pub(crate) fn is_judged(self) -> bool {
        !self.is_foreign() && self != Self::Single
    }

    /// True if it asks its guard before each operation.
    pub(crate) fn asks(self) -> bool {
        matches!(
            self,
            Self::Ours | Self::PlainOurs | Self::AsClientGo | Self::AutoAlone | Self::SlowServer
        )
    }

    /// True if it is a command of `elector candidate`.
    pub(crate) fn is_command(self) -> bool {
        matches!(self, Self::Command | Self::TrappingCommand)
    }

    /// True if it writes a Lease at all.
    pub(crate) fn has_lease(self) -> bool {
        self != Self::Single
    }

    /// The order of its periods.
    pub(crate) fn order(self) -> Order {
        if self.is_judged() {
            return Order::ByToken;
        }
        // leaseTransitions begin anew when the Lease is deleted.
        Order::ByFirstOperation
    }

    /// True if it is a client of other people.
    pub fn is_foreign(self) -> bool {
        matches!(self, Self::Coordinated | Self::Plain | Self::PlainAsking) || self.is_rival()
    }

    /// True if it needs the programs of `tests/interop/rivals`.
    pub fn is_rival(self) -> bool {
        matches!(self, Self::KubeLeaderElection | Self::Kubert)
    }
}

impl fmt::Display for TestSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad` heeds the width that a table asks for.
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

// === impl Binaries ===

impl Binaries {
    /// A process of the subject that finds the API server through that port, and the register at that address.
    pub(crate) fn start(
        &self,
        subject: TestSubject,
        (name, namespace): (&str, &str),
        port: &ProxyPort,
        register: &str,
        folder: &Path,
    ) -> Result<LoggedProcess> {
        let mut command = match subject {
            TestSubject::Ours
            | TestSubject::IgnoringTasks
            | TestSubject::PlainOurs
            | TestSubject::AsClientGo
            | TestSubject::AutoAlone
            | TestSubject::SlowServer
            | TestSubject::Single => Command::new(&self.guarded),
            TestSubject::Command | TestSubject::TrappingCommand => Command::new(&self.elector),
            TestSubject::KubeLeaderElection | TestSubject::Kubert => {
                let folder = self.rivals.as_ref().context("there are no rivals")?;
                Command::new(folder.join(match subject {
                    TestSubject::Kubert => "kubert-lease",
                    _ => "kube-leader-election",
                }))
            }
            TestSubject::Coordinated | TestSubject::Plain | TestSubject::PlainAsking => {
                let program = self.client_go.as_ref();
                Command::new(program.context("there is no client-go program")?)
            }
        };
        if subject.is_command() {
            command.args(["candidate", "--binary-version", "1.0.0"]);
        }
        if subject.has_lease() {
            command.arg("--kubeconfig").arg(port.kubeconfig());
            command.env("KUBECONFIG", port.kubeconfig());
            command.args(["--namespace", namespace, "--lease", LEASE, "--name", name]);
            // One for a process and for that which is started in its place.
            let lock = format!("{}.lock", name.trim_end_matches("-again"));
            command.env("ELECTOR_INSTANCE_LOCK", folder.join(lock));
        }
        let its_own: &[&str] = match subject {
            TestSubject::Ours
            | TestSubject::AutoAlone
            | TestSubject::KubeLeaderElection
            | TestSubject::Kubert => &[],
            TestSubject::IgnoringTasks => &["--ignore-stop"],
            TestSubject::PlainOurs => &["--plain"],
            TestSubject::AsClientGo => &["--as-client-go"],
            TestSubject::SlowServer => &["--slow-server"],
            TestSubject::Single => &["--single"],
            TestSubject::Coordinated => &["--rejoin"],
            TestSubject::Plain => &["--rejoin", "--coordinated=false"],
            TestSubject::PlainAsking => &[
                "--rejoin",
                "--coordinated=false",
                "--ask",
                "--release-on-cancel",
            ],
            TestSubject::Command | TestSubject::TrappingCommand => &["--"],
        };
        command.args(its_own);
        if subject.is_command() {
            command.arg(&self.guarded).arg("--command");
        }
        if subject == TestSubject::TrappingCommand {
            command.arg("--trap-sigterm");
        }
        command.args(["--register", register]);
        LoggedProcess::spawn(name, command, folder)
    }

    /// A process to which nothing is done.
    pub(crate) fn start_pulse(&self, register: &str, folder: &Path) -> Result<LoggedProcess> {
        let mut command = Command::new(&self.guarded);
        command.args(["--single", "--register", register]);
        LoggedProcess::spawn("pulse", command, folder)
    }

    /// An elector for that namespace alone.
    pub(crate) fn start_elector(
        &self,
        (name, namespace): (&str, &str),
        port: &ProxyPort,
        folder: &Path,
    ) -> Result<LoggedProcess> {
        let mut command = Command::new(&self.elector);
        command
            .args(["run", "--namespace", namespace, "--v=4", "--kubeconfig"])
            .arg(port.kubeconfig());
        LoggedProcess::spawn(name, command, folder)
    }
}

/// The lease that all candidates compete for.
pub(crate) const LEASE: &str = "work";

// === impl LoggedProcess ===

impl LoggedProcess {
    fn spawn(name: &str, mut command: Command, folder: &Path) -> Result<Self> {
        let path = folder.join(format!("{name}.log"));
        let open = || -> std::io::Result<File> {
            OpenOptions::new().create(true).append(true).open(&path)
        };
        let log = open().with_context(|| format!("failed to write {}", path.display()))?;
        command
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let program = command.get_program().to_owned();
        let child = ChildGuard::spawn(&mut command)
            .with_context(|| format!("failed to start {}", program.display()))?;
        Ok(Self {
            name: name.to_owned(),
            child,
        })
    }

    /// Its name, which is that of its client in the register.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a signal.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<()> {
        let name = &self.name;
        self.child
            .signal(signal)
            .with_context(|| format!("failed to signal {name}"))
    }

    /// Sends a signal to it and to all that it has started, as the freezer of a container does; to the youngest first.
    pub(crate) fn signal_all(&mut self, signal: Signal) -> Result<()> {
        signal_descendants(self.child.id(), signal)?;
        self.signal(signal)
    }

    /// True once it has ended, be it by a signal.
    pub(crate) fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }
}
