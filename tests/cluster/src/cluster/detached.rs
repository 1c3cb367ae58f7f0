//! A cluster that outlives the command that started it: `cargo xtask cluster up`, `status` and `down`. A process in a
//! session of its own owns it, and answers on a socket in the cluster's folder.

use std::env;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::layout::ClusterLayout;
use super::{Options, RealCluster};
use crate::binaries::{Binary, Toolbox};
use crate::paths;
use crate::release::Release;

/// The answer of the owner about its cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OwnedCluster {
    options: Options,
    release: Release,
    version: String,
    url: String,
    /// False once one of its servers has ended.
    runs: bool,
}

/// The requests to the owner, each a line.
const STATUS: &str = "status\n";
const DOWN: &str = "down\n";

/// Starts a cluster that runs until [`down`]; an equal one that runs already is left as it is.
pub fn up(options: Options) -> Result<()> {
    let layout = layout(options.dir.clone())?;
    let options = Options {
        dir: Some(layout.folder().to_owned()),
        ..options
    };
    let folder = layout.folder().display();
    if let Some(cluster) = status_of(&layout)?.filter(|cluster| cluster.runs) {
        ensure!(
            cluster.options == options,
            "another cluster runs in {folder}: end it with `cargo xtask cluster down` first"
        );
        println!("already running");
        cluster.print(&layout);
        return Ok(());
    }
    if layout.owner().exists() {
        eprintln!("a cluster in {folder} has died: its data is removed");
        ask(&layout, DOWN)?;
        layout.remove()?;
    }
    // A build shows its progress here, where it is seen.
    let toolbox = Toolbox::new(options.kubernetes)?;
    for binary in [Binary::Etcd, Binary::KubeApiserver] {
        toolbox.path(binary)?;
    }
    let started = Instant::now();
    let this = env::current_exe().context("failed to find this program")?;
    let mut owner = Command::new(this)
        .args(["cluster", "hold", &serde_json::to_string(&options)?])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("failed to start the owner of the cluster")?;
    loop {
        if let Some(cluster) = status_of(&layout)? {
            println!("ready after {:.1} s", started.elapsed().as_secs_f64());
            cluster.print(&layout);
            return Ok(());
        }
        if owner.try_wait()?.is_some() {
            let said = owner.wait_with_output()?.stderr;
            bail!("{}", String::from_utf8_lossy(&said).trim());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Ends the cluster and removes its data.
pub fn down(dir: Option<PathBuf>) -> Result<()> {
    let layout = layout(dir)?;
    match ask(&layout, DOWN)? {
        Some(error) if !error.is_empty() => bail!("{error}"),
        Some(_) => println!("stopped, data removed"),
        None if layout.owner().exists() => {
            layout.remove()?;
            println!("it had died; data removed");
        }
        None => println!("no cluster in {}", layout.folder().display()),
    }
    Ok(())
}

/// Prints what runs; false when nothing, or not everything, does.
pub fn status(dir: Option<PathBuf>) -> Result<bool> {
    let layout = layout(dir)?;
    let Some(cluster) = status_of(&layout)? else {
        println!("no cluster in {}", layout.folder().display());
        return Ok(false);
    };
    cluster.print(&layout);
    Ok(cluster.runs)
}

/// The hidden verb behind [`up`]: owns the cluster of these options, as JSON, until it is asked to end it. Nothing that
/// happens to the terminal of `up` reaches it.
pub fn hold(options: &str) -> Result<()> {
    let options: Options = serde_json::from_str(options).context("failed to read the options")?;
    rustix::process::setsid().context("failed to start a session")?;
    let layout = layout(options.dir.clone())?;
    let mut cluster = RealCluster::start(&options)?;
    let socket = UnixListener::bind(layout.owner()).context("failed to open the socket")?;
    loop {
        let (mut client, _) = socket.accept()?;
        let mut request = String::new();
        BufReader::new(&client).read_line(&mut request)?;
        if request == DOWN {
            let stopped = cluster.stop();
            // The client waits for the end of the answer.
            return stopped.inspect_err(|error| {
                let _ = write!(client, "{error:#}");
            });
        }
        let answer = OwnedCluster {
            options: options.clone(),
            release: cluster.release(),
            version: cluster.servers.version.clone(),
            url: cluster.url().to_owned(),
            runs: cluster.runs(),
        };
        // A client that has gone needs no answer.
        let _ = client.write_all(serde_json::to_string(&answer)?.as_bytes());
    }
}

/// The cluster in that folder, or where one lies that is given no other.
fn layout(dir: Option<PathBuf>) -> Result<ClusterLayout> {
    match dir {
        Some(dir) => ClusterLayout::at(&dir),
        None => ClusterLayout::at(&paths::cache()?.join("cluster")),
    }
}

fn status_of(layout: &ClusterLayout) -> Result<Option<OwnedCluster>> {
    let answer = ask(layout, STATUS)?;
    let answer = answer.map(|answer| serde_json::from_str(&answer));
    answer
        .transpose()
        .context("the answer of its owner is damaged")
}

/// The answer of the owner; none if there is no owner.
fn ask(layout: &ClusterLayout, request: &str) -> Result<Option<String>> {
    let mut owner = match UnixStream::connect(layout.owner()) {
        Ok(owner) => owner,
        Err(error)
            if [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused]
                .contains(&error.kind()) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error).context("failed to reach the owner of the cluster"),
    };
    owner.write_all(request.as_bytes())?;
    let mut answer = String::new();
    owner.read_to_string(&mut answer)?;
    Ok(Some(answer))
}

// === impl OwnedCluster ===

impl OwnedCluster {
    fn print(&self, layout: &ClusterLayout) {
        let api = self.release.candidate_api();
        let candidates = match api.filter(|_| self.options.serve_candidates) {
            Some(version) => format!("coordination.k8s.io/{version}"),
            None => "not served".to_owned(),
        };
        let state = if self.runs { "running" } else { "not running" };
        let etcd = if self.options.fsync {
            "fsync"
        } else {
            "no fsync"
        };
        let text = format!(
            "kube-apiserver   {} on {} ({state})\netcd             {etcd}\n\
             gate             CoordinatedLeaderElection={}\nleasecandidates  {candidates}\nlogs             {}\n\
             user             export KUBECONFIG={}\nadministrator    export KUBECONFIG={}\n",
            self.version,
            self.url,
            self.options.gate,
            layout.logs().display(),
            layout.user_kubeconfig().display(),
            layout.kubeconfig().display(),
        );
        // A reader who has seen enough is no reason to fail.
        let _ = io::stdout().write_all(text.as_bytes());
    }
}
