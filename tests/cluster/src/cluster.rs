//! A real etcd and kube-apiserver on loopback.
//!
//! ```no_run
//! use elector_cluster::cluster::{RealCluster, Options};
//!
//! # fn main() -> anyhow::Result<()> {
//! let cluster = RealCluster::start(&Options { gate: true, ..Options::default() })?;
//! println!("KUBECONFIG={}", cluster.kubeconfig().display());
//! cluster.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! There is no kubelet and no controller manager: Pods stay pending, owner references are not collected, and
//! namespaces do not finish deleting.

mod detached;
mod flags;
mod layout;
mod options;
mod probe;

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use parking_lot::Mutex;
use rustix::process::Signal;

use crate::binaries::{Binary, Toolbox};
use crate::child_guard::ChildGuard;
use crate::commands;
use crate::release::Release;

pub use detached::{down, hold, status, up};

pub use options::Options;

use flags::Ports;
use layout::ClusterLayout;
use probe::Probe;

/// A running cluster that ends with its owner: when it is dropped, and also when the process is killed.
#[derive(Debug)]
pub struct RealCluster {
    // Dropped in this order: the API server goes before its store.
    apiserver: Mutex<ChildGuard>,
    etcd: Mutex<ChildGuard>,
    servers: Servers,
    temporary: Option<tempfile::TempDir>,
}

/// An API server beside the first one of a cluster, with the same store. It is killed when this is dropped.
#[derive(Debug)]
pub struct ApiserverBeside {
    _process: ChildGuard,
    address: SocketAddr,
}

/// The names of the servers, and of their logs.
const ETCD: &str = "etcd";
const APISERVER: &str = "kube-apiserver";

/// The time that a cluster may take to become ready; it takes 3 s on an idle machine.
const READY_DEADLINE: Duration = Duration::from_secs(120);

/// The time that a server may take to end after SIGTERM, before SIGKILL.
const STOP_DEADLINE: Duration = Duration::from_secs(20);

/// The number of starts in all, with other ports when another process took one in between.
const PORT_ATTEMPTS: u32 = 3;

// === impl RealCluster ===

impl RealCluster {
    /// Starts the servers and waits until they are ready; blocks for about 3 s, and for minutes when the programs
    /// have to be built first.
    ///
    /// # Errors
    /// When a program is not to be had, or a server ends or does not become ready; the end of its log is in the
    /// message.
    pub fn start(options: &Options) -> Result<Self> {
        let temporary = match options.dir {
            Some(_) => None,
            None => Some(tempfile::tempdir().context("failed to create a temporary folder")?),
        };
        let folder = match (&options.dir, &temporary) {
            (Some(dir), _) => dir.as_path(),
            (None, Some(temporary)) => temporary.path(),
            (None, None) => unreachable!("a temporary folder is made when no other is given"),
        };
        let toolbox = Toolbox::new(options.kubernetes)?;
        for attempt in 1.. {
            let servers = Servers::prepare(ClusterLayout::at(folder)?, &toolbox, options)?;
            let removable = temporary.as_ref().map(tempfile::TempDir::path);
            let mut etcd = ChildGuard::spawn_with_folder(&mut servers.etcd.command()?, removable)
                .context("failed to start etcd")?;
            let mut apiserver = ChildGuard::spawn(&mut servers.apiserver.command()?)
                .context("failed to start kube-apiserver")?;
            let ready = servers.wait_until_ready(|| {
                Ok((etcd.try_wait()?.is_none(), apiserver.try_wait()?.is_none()))
            });
            match ready {
                Ok(()) => {
                    return Ok(Self {
                        apiserver: Mutex::new(apiserver),
                        etcd: Mutex::new(etcd),
                        servers,
                        temporary,
                    });
                }
                Err(_)
                    if attempt < PORT_ATTEMPTS
                        && options.port.is_none()
                        && servers.port_was_taken() =>
                {
                    drop((apiserver, etcd));
                    servers.layout.remove()?;
                }
                Err(error) => return Err(error),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Kills the API server; its store stays. [`start_apiserver`](Self::start_apiserver) brings it back.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub fn kill_apiserver(&self) -> Result<()> {
        // It keeps nothing, and asked politely it waits for every watch to end.
        self.apiserver
            .lock()
            .kill()
            .context("failed to stop kube-apiserver")?;
        Ok(())
    }

    /// Sends a signal to etcd: stopped, it answers nothing, as a cluster of several without a quorum does.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal_etcd(&self, signal: Signal) -> Result<()> {
        let signalled = self.etcd.lock().signal(signal);
        signalled.context("failed to signal etcd")
    }

    /// Starts the API server again on the same port and store after it was killed, with the gate, the candidates and
    /// the flags of these options; what else they say does not matter. Blocks until it is ready, for about 4 s.
    ///
    /// # Errors
    /// When the options are impossible, or the server does not become ready.
    pub fn start_apiserver(&self, options: &Options) -> Result<()> {
        let servers = &self.servers;
        flags::check(servers.release, options)?;
        let program = ServerProgram {
            path: servers.apiserver.path.clone(),
            flags: flags::apiserver(&servers.layout, servers.ports, servers.release, options),
            log: servers.layout.log(APISERVER),
        };
        let mut apiserver = self.apiserver.lock();
        *apiserver =
            ChildGuard::spawn(&mut program.command()?).context("failed to start kube-apiserver")?;
        // Another guard ends etcd; without it the API server ends too.
        servers.wait_until_ready(|| Ok((true, apiserver.try_wait()?.is_none())))
    }

    /// Starts another API server on the same store and with the same credentials, on a port of its own: that of these
    /// options' release, with their gate, candidates and flags; what else they say does not matter. Blocks until it is
    /// ready, for about 4 s, and for minutes when it has to be built first.
    ///
    /// # Errors
    /// When the options are impossible, the program is not to be had, or the server does not become ready.
    pub fn start_beside(&self, options: &Options) -> Result<ApiserverBeside> {
        let (servers, toolbox) = (&self.servers, Toolbox::new(options.kubernetes)?);
        let release = toolbox.release();
        flags::check(release, options)?;
        let path = toolbox.path(Binary::KubeApiserver)?;
        let ports = Ports {
            apiserver: Ports::free(None)?.apiserver,
            ..servers.ports
        };
        let name = format!("{APISERVER}-{release}-{}", ports.apiserver);
        let program = ServerProgram {
            path,
            flags: flags::apiserver(&servers.layout, ports, release, options),
            log: servers.layout.log(&name),
        };
        let mut process =
            ChildGuard::spawn(&mut program.command()?).context("failed to start kube-apiserver")?;
        let probe = servers.probe.of_port(ports.apiserver);
        servers.wait_for(&probe, &name, || Ok((true, process.try_wait()?.is_none())))?;
        Ok(ApiserverBeside {
            _process: process,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, ports.apiserver)),
        })
    }

    /// Writes a backup of the store into that folder, which does not exist yet. Both servers are away meanwhile; the API
    /// server comes back as with [`start_apiserver`](Self::start_apiserver).
    ///
    /// # Errors
    /// When a server does not end or come back, or the data cannot be copied.
    pub fn back_up(&self, backup: &Path, options: &Options) -> Result<()> {
        self.at_rest(options, |data| copy(data, backup))
    }

    /// Takes the store back to that backup, likewise.
    ///
    /// # Errors
    /// When a server does not end or come back, or the data cannot be copied.
    pub fn restore(&self, backup: &Path, options: &Options) -> Result<()> {
        self.at_rest(options, |data| {
            fs::remove_dir_all(data).context("failed to remove the data of etcd")?;
            copy(backup, data)
        })
    }

    /// Ends both servers, does this with the data of etcd, and starts both again.
    fn at_rest(&self, options: &Options, act: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        self.kill_apiserver()?;
        let mut etcd = self.etcd.lock();
        etcd.terminate(STOP_DEADLINE)
            .context("failed to stop etcd")?;
        act(&self.servers.layout.etcd_data())?;
        let removable = self.temporary.as_ref().map(tempfile::TempDir::path);
        *etcd = ChildGuard::spawn_with_folder(&mut self.servers.etcd.command()?, removable)
            .context("failed to start etcd")?;
        drop(etcd);
        self.start_apiserver(options)
    }

    /// True while both servers run.
    fn runs(&mut self) -> bool {
        [&mut self.apiserver, &mut self.etcd]
            .into_iter()
            .all(|server| {
                let server = server.get_mut();
                matches!(server.try_wait(), Ok(None))
            })
    }

    /// The administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.servers.layout.kubeconfig()
    }

    /// The kubeconfig of a user who may do nothing but look at what is served.
    #[must_use]
    pub fn user_kubeconfig(&self) -> PathBuf {
        self.servers.layout.user_kubeconfig()
    }

    /// A kubeconfig in that folder for a user, in that group if any, with a client certificate that the API server believes.
    /// The server adds the group `system:authenticated`, as it does for everybody.
    ///
    /// # Errors
    /// When the certificate cannot be signed or a file not be written.
    pub fn client_kubeconfig(
        &self,
        user: &str,
        group: Option<&str>,
        folder: &Path,
    ) -> Result<PathBuf> {
        let servers = &self.servers;
        servers
            .layout
            .write_client(&servers.url, (user, group), folder)
    }

    /// The address of the API server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.servers.url
    }

    /// The release that runs.
    #[must_use]
    pub fn release(&self) -> Release {
        self.servers.release
    }

    /// The folder of the servers' log files.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.servers.layout.logs()
    }

    /// Ends both servers in good order and removes the data; takes a second or two. Dropping the cluster is quicker
    /// and loses nothing but the servers' farewell.
    ///
    /// # Errors
    /// When a server cannot be signalled or the data cannot be removed.
    pub fn stop(mut self) -> Result<()> {
        // Stopped together with its store, the API server hangs for more than a minute.
        self.apiserver
            .get_mut()
            .terminate(STOP_DEADLINE)
            .context("failed to stop kube-apiserver")?;
        self.etcd
            .get_mut()
            .terminate(STOP_DEADLINE)
            .context("failed to stop etcd")?;
        self.servers.layout.remove()?;
        // Everything in it is gone; so is the folder, and an error about that is none.
        drop(self.temporary.take());
        Ok(())
    }
}

// === impl ApiserverBeside ===

impl ApiserverBeside {
    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The parts to start the two servers with, and to know that they are ready.
#[derive(Debug)]
struct Servers {
    layout: ClusterLayout,
    release: Release,
    version: String,
    url: String,
    ports: Ports,
    etcd: ServerProgram,
    apiserver: ServerProgram,
    probe: Probe,
}

/// A server that can be started.
#[derive(Debug)]
struct ServerProgram {
    path: PathBuf,
    flags: Vec<String>,
    log: PathBuf,
}

// === impl Servers ===

impl Servers {
    fn prepare(layout: ClusterLayout, toolbox: &Toolbox, options: &Options) -> Result<Self> {
        let release = toolbox.release();
        flags::check(release, options)?;
        // May take minutes; the ports that are free now need not be free then.
        let (etcd, apiserver) = (
            toolbox.path(Binary::Etcd)?,
            toolbox.path(Binary::KubeApiserver)?,
        );
        let ports = Ports::free(options.port)?;
        let url = format!("https://127.0.0.1:{}", ports.apiserver);
        layout.create()?;
        let credentials = layout.write_credentials(&url)?;
        Ok(Self {
            etcd: ServerProgram {
                path: etcd,
                flags: flags::etcd(&layout, ports, options.fsync),
                log: layout.log(ETCD),
            },
            apiserver: ServerProgram {
                path: apiserver,
                flags: flags::apiserver(&layout, ports, release, options),
                log: layout.log(APISERVER),
            },
            probe: Probe::new(ports.apiserver, &credentials)?,
            layout,
            release,
            version: toolbox.version().to_owned(),
            url,
            ports,
        })
    }

    /// Waits for the servers; `alive` says whether etcd and kube-apiserver still run.
    fn wait_until_ready(&self, alive: impl FnMut() -> Result<(bool, bool)>) -> Result<()> {
        self.wait_for(&self.probe, APISERVER, alive)
    }

    /// The same for an API server of this name, which the probe asks.
    fn wait_for(
        &self,
        probe: &Probe,
        apiserver_name: &str,
        mut alive: impl FnMut() -> Result<(bool, bool)>,
    ) -> Result<()> {
        let deadline = Instant::now() + READY_DEADLINE;
        // The system namespaces come a moment after readiness, and clients count on them.
        let mut checks = [
            "/readyz",
            "/api/v1/namespaces/kube-system",
            "/api/v1/namespaces/default",
        ]
        .iter();
        let mut check = checks.next();
        while let Some(path) = check {
            // Looked at before the answer, so that no other server on a stolen port is taken for ours.
            let (etcd, apiserver) = alive()?;
            for (name, lives) in [(ETCD, etcd), (apiserver_name, apiserver)] {
                if !lives {
                    bail!(
                        "{name} ended while starting; its last words:\n{}",
                        self.last_words(name)
                    );
                }
            }
            match probe.get(path) {
                Ok(200) => check = checks.next(),
                _ if Instant::now() < deadline => thread::sleep(Duration::from_millis(50)),
                answer => bail!(
                    "kube-apiserver was not ready after {} s ({path}: {}); its last words:\n{}",
                    READY_DEADLINE.as_secs(),
                    answer.map_or_else(|error| error.to_string(), |status| status.to_string()),
                    self.last_words(apiserver_name)
                ),
            }
        }
        Ok(())
    }

    fn port_was_taken(&self) -> bool {
        [ETCD, APISERVER]
            .iter()
            .any(|name| self.last_words(name).contains("address already in use"))
    }

    fn last_words(&self, program: &str) -> String {
        let path = self.layout.log(program);
        let text = fs::read(&path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        tail(&text, 12).map_or_else(|| format!("(nothing in {})", path.display()), str::to_owned)
    }
}

// === impl ServerProgram ===

impl ServerProgram {
    fn command(&self) -> Result<Command> {
        let mut command = Command::new(&self.path);
        command.args(&self.flags);
        // Most of these servers live for a minute: kube-apiserver starts in 1.2 seconds of a processor instead of 2.1 when
        // Go collects garbage near the memory limit alone, and takes 420 MB instead of 260.
        command.envs([("GOGC", "off"), ("GOMEMLIMIT", "512MiB")]);
        let log = File::create(&self.log)
            .with_context(|| format!("failed to create {}", self.log.display()))?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command)
    }
}

/// Copies a folder, with all that is in it, to where nothing is.
fn copy(from: &Path, to: &Path) -> Result<()> {
    commands::read(Command::new("cp").arg("-a").arg(from).arg(to))
        .map(drop)
        .with_context(|| format!("failed to copy {}", from.display()))
}

/// The last lines of a text, none if it is empty.
fn tail(text: &str, lines: usize) -> Option<&str> {
    let text = text.trim_end();
    let start = text
        .rmatch_indices('\n')
        .nth(lines - 1)
        .map_or(0, |(index, _)| index + 1);
    Some(&text[start..]).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_at_most_so_many_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), Some("b\nc"));
        assert_eq!(tail("a\nb\nc\n", 9), Some("a\nb\nc"));
        assert_eq!(tail("\n", 2), None);
    }
}
