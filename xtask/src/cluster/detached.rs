//! A cluster that outlives the command that started it: `cargo xtask cluster up`, `status` and `down`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::layout::ClusterLayout;
use super::{
    APISERVER, ETCD, Options, PORT_ATTEMPTS, STOP_DEADLINE, ServerProgram, Servers, absolute,
};
use crate::binaries::Toolbox;
use crate::paths;
use crate::release::Release;

/// The record of a running cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    options: Options,
    release: Release,
    version: String,
    url: String,
    etcd: DetachedProcess,
    apiserver: DetachedProcess,
}

/// A process, and how to recognise it after its number may have gone to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DetachedProcess {
    pid: i32,
    program: PathBuf,
}

/// The name of the hidden verb that [`exec_detached`] answers to.
pub(crate) const EXEC_DETACHED: &str = "exec-detached";

/// The folder of a cluster that is given no other.
pub(crate) fn default_dir() -> Result<PathBuf> {
    Ok(paths::cache()?.join("cluster"))
}

/// Starts a cluster that runs until [`down`]; an equal one that runs already is left as it is.
pub(crate) fn up(dir: &Path, options: &Options) -> Result<()> {
    let layout = ClusterLayout::at(dir)?;
    let options = Options {
        dir: Some(absolute(dir)?),
        ..options.clone()
    };
    if let Some(record) = Record::read(&layout)? {
        if record.apiserver.runs(&layout) && record.etcd.runs(&layout) {
            if record.options != options {
                bail!(
                    "another cluster runs in {}: end it with `cargo xtask cluster down` first",
                    dir.display()
                );
            }
            println!("already running");
            record.print(&layout);
            return Ok(());
        }
        eprintln!(
            "a cluster in {} has died: its data is removed",
            dir.display()
        );
        record.end(&layout)?;
    }
    let toolbox = Toolbox::new(options.kubernetes)?;
    let started = Instant::now();
    for attempt in 1.. {
        let servers = Servers::prepare(layout.clone(), &toolbox, &options)?;
        let etcd = spawn_detached(&servers.etcd)?;
        let apiserver = spawn_detached(&servers.apiserver)?;
        let record = Record {
            options: options.clone(),
            release: servers.release,
            version: servers.version.clone(),
            url: servers.url.clone(),
            etcd,
            apiserver,
        };
        // Before the wait: whatever happens now, `down` finds them.
        record.write(&layout)?;
        let ready = servers
            .wait_until_ready(|| Ok((record.etcd.runs(&layout), record.apiserver.runs(&layout))));
        match ready {
            Ok(()) => {
                println!("ready after {:.1} s", started.elapsed().as_secs_f64());
                record.print(&layout);
                return Ok(());
            }
            Err(error) => {
                let retry =
                    attempt < PORT_ATTEMPTS && options.port.is_none() && servers.port_was_taken();
                record.end(&layout)?;
                if !retry {
                    return Err(error);
                }
            }
        }
    }
    unreachable!("the last attempt returns")
}

/// Ends the cluster, the API server first, and removes its data.
pub(crate) fn down(dir: &Path) -> Result<()> {
    let layout = ClusterLayout::at(dir)?;
    let Some(record) = Record::read(&layout)? else {
        println!("no cluster in {}", dir.display());
        return Ok(());
    };
    record.end(&layout)?;
    println!("stopped, data removed");
    Ok(())
}

/// Prints what runs; false when nothing, or not everything, does.
pub(crate) fn status(dir: &Path) -> Result<bool> {
    let layout = ClusterLayout::at(dir)?;
    let Some(record) = Record::read(&layout)? else {
        println!("no cluster in {}", dir.display());
        return Ok(false);
    };
    record.print(&layout);
    Ok(record.etcd.runs(&layout) && record.apiserver.runs(&layout))
}

/// Starts the program in a session of its own: nothing that happens to this terminal reaches it.
fn spawn_detached(program: &ServerProgram) -> Result<DetachedProcess> {
    let this = env::current_exe().context("failed to find this program")?;
    let mut shim = Command::new(this);
    shim.args([EXEC_DETACHED, "--"])
        .arg(&program.path)
        .args(&program.flags);
    program.redirect(&mut shim)?;
    let child = shim
        .spawn()
        .with_context(|| format!("failed to start {}", program.path.display()))?;
    let pid = i32::try_from(child.id()).context("a process id is out of range")?;
    Ok(DetachedProcess {
        pid,
        program: program.path.clone(),
    })
}

/// The hidden verb behind [`spawn_detached`]: becomes the command, as the leader of a new session.
pub(crate) fn exec_detached(command: &[OsString]) -> Result<()> {
    let (program, arguments) = command
        .split_first()
        .context("there is no command to run")?;
    rustix::process::setsid().context("failed to start a session")?;
    Err(Command::new(program).args(arguments).exec())
        .with_context(|| format!("failed to run {}", program.display()))
}

// === impl Record ===

impl Record {
    fn read(layout: &ClusterLayout) -> Result<Option<Self>> {
        let path = layout.record();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("failed to read {}", path.display()));
            }
        };
        let record = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged", path.display()))?;
        Ok(Some(record))
    }

    fn write(&self, layout: &ClusterLayout) -> Result<()> {
        let path = layout.record();
        let text =
            serde_json::to_string_pretty(self).context("failed to write down the cluster")?;
        fs::write(&path, text + "\n").with_context(|| format!("failed to write {}", path.display()))
    }

    fn print(&self, layout: &ClusterLayout) {
        let state = |process: &DetachedProcess| match process.runs(layout) {
            true => format!("running, pid {}", process.pid),
            false => "not running".to_owned(),
        };
        let candidates = match self
            .release
            .candidate_api()
            .filter(|_| self.options.serve_candidates)
        {
            Some(version) => format!("coordination.k8s.io/{version}"),
            None => "not served".to_owned(),
        };
        let lines = [
            format!(
                "kube-apiserver   {} on {} ({})",
                self.version,
                self.url,
                state(&self.apiserver)
            ),
            format!(
                "etcd             {} ({})",
                if self.options.fsync {
                    "fsync"
                } else {
                    "no fsync"
                },
                state(&self.etcd)
            ),
            format!(
                "gate             CoordinatedLeaderElection={}",
                self.options.gate
            ),
            format!("leasecandidates  {candidates}"),
            format!("logs             {}", layout.logs().display()),
            format!(
                "user             export KUBECONFIG={}",
                layout.user_kubeconfig().display()
            ),
            format!(
                "administrator    export KUBECONFIG={}",
                layout.kubeconfig().display()
            ),
        ];
        for line in lines {
            // A reader who has seen enough is no reason to fail.
            let _ = writeln!(io::stdout(), "{line}");
        }
    }

    fn end(&self, layout: &ClusterLayout) -> Result<()> {
        // Stopped together with its store, the API server hangs for more than a minute.
        for (name, process) in [(APISERVER, &self.apiserver), (ETCD, &self.etcd)] {
            process
                .end(layout)
                .with_context(|| format!("failed to stop {name}"))?;
        }
        layout.remove()
    }
}

// === impl DetachedProcess ===

impl DetachedProcess {
    /// True if the process still runs, and is the one that was started: its command line names our program and our
    /// folder. A process that has ended but was not reaped has no command line.
    fn runs(&self, layout: &ClusterLayout) -> bool {
        let names = |text: &str, path: &Path| path.to_str().is_some_and(|path| text.contains(path));
        command_line(self.pid)
            .is_some_and(|text| names(&text, &self.program) && names(&text, layout.folder()))
    }

    fn end(&self, layout: &ClusterLayout) -> Result<()> {
        for signal in [Signal::TERM, Signal::KILL] {
            if !self.runs(layout) {
                return Ok(());
            }
            let pid = Pid::from_raw(self.pid).context("0 is no process id")?;
            match kill_process(pid, signal) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("failed to signal {}", self.pid));
                }
            }
            let deadline = Instant::now() + STOP_DEADLINE;
            while self.runs(layout) && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(20));
            }
        }
        if self.runs(layout) {
            bail!("process {} does not end", self.pid);
        }
        Ok(())
    }
}

/// The command line of a process; none if there is no such process, or it has ended and waits to be reaped.
fn command_line(pid: i32) -> Option<String> {
    if !cfg!(target_os = "linux") {
        let pid = pid.to_string();
        let output = Command::new("ps")
            .args(["-ww", "-o", "command=", "-p", &pid])
            .output()
            .ok()?;
        return Some(String::from_utf8_lossy(&output.stdout).into_owned())
            .filter(|text| !text.trim().is_empty());
    }
    // In the midst of an exec a process shows an empty command line for a moment, as a zombie does for good.
    for _ in 0..100 {
        let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        if !bytes.is_empty() {
            return Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The state follows the name, which is in parentheses and may hold anything.
        let (_, state) = stat.rsplit_once(") ")?;
        if state.starts_with(['Z', 'X']) {
            return None;
        }
        thread::sleep(Duration::from_millis(1));
    }
    None // a kernel thread
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_process_is_ours_only_if_it_names_our_program_and_folder() {
        let folder = tempfile::tempdir().unwrap();
        let layout = ClusterLayout::at(folder.path()).unwrap();
        let mut child = Command::new("/bin/sh")
            .args(["-c", "read -r line", "name"])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let process = |program: &str| DetachedProcess {
            pid,
            program: program.into(),
        };

        assert!(process("/bin/sh").runs(&layout));
        assert!(!process("/bin/other").runs(&layout));
        assert!(!process("/bin/sh").runs(&ClusterLayout::at("/elsewhere".as_ref()).unwrap()));

        // A process that is not ours is left alone.
        process("/bin/other").end(&layout).unwrap();
        assert_eq!(child.try_wait().unwrap(), None);

        // Ended but not yet reaped counts as ended, or `end` would wait for ever.
        process("/bin/sh").end(&layout).unwrap();
        assert!(!process("/bin/sh").runs(&layout));
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_damaged_record_is_named_and_a_missing_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let layout = ClusterLayout::at(folder.path()).unwrap();
        assert!(Record::read(&layout).unwrap().is_none());
        fs::write(layout.record(), "{").unwrap();
        let error = Record::read(&layout).unwrap_err().to_string();
        assert!(error.ends_with("cluster.json is damaged"), "{error}");
    }
}
