//! A root folder with one program in it and nothing else, and the program running there as in a Pod.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

use super::identity::{POD, PodIdentity};
use crate::child_guard::ChildGuard;

/// The user that the image and the manifests run it as.
pub(super) const USER: u32 = 65532;
/// Where the image has it.
pub(super) const PROGRAM: &str = "/usr/local/bin/elector";

/// Where a Pod finds its service account.
const SERVICE_ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";
/// The variable that container runtimes set.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Makes the folder `$1` read-only in a mount namespace of its own, then becomes the command in there. Neither step forks,
/// so the process that is started is the one that the program becomes.
const ENTER: &str = r#"
set -e
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user:$user" "$root" "$@"
"#;
/// The time limit for something to be there; beyond it, that counts as never.
const PATIENCE: Duration = Duration::from_secs(90);

/// A folder whose `root` is the root folder of the program.
pub(super) struct EmptyRoot {
    folder: TempDir,
    identity: PodIdentity,
}

/// The elector in its empty root. Dropping it kills it.
pub(super) struct RootedElector {
    guard: ChildGuard,
    metrics: SocketAddr,
    /// From its start until it was ready.
    pub(super) took: Duration,
}

// === impl EmptyRoot ===

impl EmptyRoot {
    /// With that program, and that identity where a Pod has it.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub(super) fn with(program: &Path, identity: PodIdentity) -> Result<Self> {
        let folder = TempDir::new().context("failed to make a folder")?;
        let root = folder.path().join("root");
        let copy = root.join(PROGRAM.trim_start_matches('/'));
        let account = root.join(SERVICE_ACCOUNT);
        for folder in [
            copy.parent().context("the program has no folder")?,
            &account,
        ] {
            fs::create_dir_all(folder)?;
        }
        fs::copy(program, &copy).context("failed to copy the program")?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o555))?;
        fs::write(account.join("token"), &identity.token)?;
        fs::write(account.join("ca.crt"), &identity.authority)?;
        fs::write(account.join("namespace"), &identity.namespace)?;
        // Made for its owner alone.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        Ok(Self { folder, identity })
    }

    /// Starts the program with the command of the manifests, on ports of this machine that are free, and waits until it is
    /// ready.
    ///
    /// # Errors
    /// When it does not become ready.
    pub(super) fn start(&self) -> Result<RootedElector> {
        let (health, metrics) = (free_address()?, free_address()?);
        let log = self.folder.path().join("log");
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--", "/bin/sh", "-c", ENTER, "enter"])
            .arg(self.folder.path().join("root"))
            .arg(USER.to_string())
            .args(self.identity.command_on(health, metrics)?)
            .env_clear()
            .env("PATH", PATH)
            .env("POD_NAME", POD)
            .env("POD_NAMESPACE", &self.identity.namespace)
            .env(
                "KUBERNETES_SERVICE_HOST",
                self.identity.server.ip().to_string(),
            )
            .env(
                "KUBERNETES_SERVICE_PORT",
                self.identity.server.port().to_string(),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?);
        let start = Instant::now();
        let mut guard = ChildGuard::spawn(&mut command).context("failed to run unshare")?;
        while !get(health, "/readyz").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 ")) {
            if guard.try_wait()?.is_some() || start.elapsed() > PATIENCE {
                let said = fs::read_to_string(&log).unwrap_or_default();
                bail!("it does not become ready: {said}");
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(RootedElector {
            took: start.elapsed(),
            guard,
            metrics,
        })
    }
}

// === impl RootedElector ===

impl RootedElector {
    /// Waits until so many leases of the namespace `default` are led.
    ///
    /// # Errors
    /// When they are not in time.
    pub(super) fn has_elected(&self, leases: usize) -> Result<()> {
        let wanted = format!("elector_leases{{namespace=\"default\",state=\"led\"}} {leases}");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let figures = get(self.metrics, "/metrics")?;
            if figures.lines().any(|line| line == wanted) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "no line {wanted:?} in {figures}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Its resident memory, in KiB.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub(super) fn resident_kib(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.guard.id()))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|value| value.trim().strip_suffix(" kB"));
        Ok(resident
            .context("the kernel does not tell what is resident")?
            .parse()?)
    }

    /// Checks whose process it is and that it may write nothing, as the kernel has it.
    ///
    /// # Errors
    /// When that is not so.
    pub(super) fn is_confined(&self) -> Result<()> {
        let folder = format!("/proc/{}", self.guard.id());
        let status = fs::read_to_string(format!("{folder}/status"))?;
        let users = format!("Uid:\t{USER}\t{USER}\t{USER}\t{USER}");
        ensure!(
            status.lines().any(|line| line == users),
            "it has other users: {status}"
        );
        let mounts = fs::read_to_string(format!("{folder}/mountinfo"))?;
        // Of the mounts that it sees, that of its root: where, and the options of that mount.
        let mut root = mounts.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(4);
            (fields.next()? == "/").then(|| fields.next())?
        });
        let options = root.next_back().context("it has no root")?;
        ensure!(
            options.split(',').any(|option| option == "ro"),
            "its root is mounted {options}"
        );
        Ok(())
    }

    /// Asks it to end.
    ///
    /// # Errors
    /// When it does not end well.
    pub(super) fn end(mut self) -> Result<()> {
        let status = self.guard.terminate(PATIENCE)?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }
}

/// An address on which nobody listens.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}

fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(
        format!("GET {path} HTTP/1.1\r\nhost: elector\r\nconnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
