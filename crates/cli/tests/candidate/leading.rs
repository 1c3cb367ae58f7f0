//! The command of a term of `elector candidate` has its token, and the lease for as long as it drains. A process that is
//! killed leads on as soon as it is started again.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use elector_api::Lease;
use elector_apiserver::{ApiServer, Config};
use elector_protocol::LeaseRecord;
use elector_testing::{listen, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::elector;

/// A candidate in plain mode with a command, on a server of its own.
struct LeadingCommand {
    child: Child,
    server: ApiServer,
    /// The revision of the Lease that the first term replaces.
    released: u64,
    folder: TempDir,
}

/// W of the candidate.
const LEASE_DURATION: Duration = Duration::from_secs(4);

// === impl LeadingCommand ===

impl LeadingCommand {
    /// Term 7 of its lease was released, so that it leads at once.
    fn start(script: &str) -> Self {
        let flags = [
            "--lease-duration=4s",
            "--renew-deadline=2s",
            "--grace-period=5m",
        ];
        Self::start_with(&flags, script)
    }

    fn start_with(flags: &[&str], script: &str) -> Self {
        let server = ApiServer::new(Config::default());
        server.put("leases", ("default", "web"), |lease| {
            lease["spec"] =
                json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 7});
        });
        let released = server.revision();
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("kubeconfig"),
            listen(&server).to_string(),
        )
        .unwrap();
        Self {
            child: Self::spawn(folder.path(), flags, script),
            server,
            released,
            folder,
        }
    }

    fn spawn(folder: &Path, flags: &[&str], script: &str) -> Child {
        elector()
            .args([
                "candidate",
                "--mode=plain",
                "--lease=web",
                "--namespace=default",
            ])
            .args(flags)
            .args(["--kubeconfig=kubeconfig"])
            .args(["--", "sh", "-c", script])
            .current_dir(folder)
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn record(&self) -> LeaseRecord {
        let lease = self.server.object("leases", ("default", "web")).unwrap();
        Lease::from_value(lease).record().unwrap()
    }

    /// A file that the command writes, once its last line is complete.
    fn written(&self, file: &str) -> String {
        let file = self.folder.path().join(file);
        wait_until("the command writes", || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            text.ends_with('\n').then_some(text)
        })
    }
}

impl Drop for LeadingCommand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_environment_of_a_command_tells_its_lease_its_term_and_the_token_of_that() {
    let script =
        "echo $ELECTOR_LEASE $ELECTOR_HOLDER $ELECTOR_TERM $ELECTOR_TOKEN > told; sleep 600";
    let leading = LeadingCommand::start(script);
    let told = leading.written("told");
    let holder = leading.record().holder.unwrap();
    // The token is the revision that the first write of the term replaced (R14).
    let expected = format!("default/web {holder} 8 {}\n", leading.released);
    assert_eq!(told, expected);
}

/// A command that drains for longer than its lease lasts is neither killed nor overtaken.
#[test]
fn the_lease_is_renewed_for_as_long_as_a_command_drains() {
    let script = "trap 'echo told > told' TERM; echo started > started
        until [ -e told ] && [ -e go ]; do sleep 0.02; done; echo drained > drained";
    let mut leading = LeadingCommand::start(script);
    leading.written("started");
    kill_process(Pid::from_child(&leading.child), Signal::TERM).unwrap();
    leading.written("told");
    let (told, now) = (leading.record(), Instant::now());
    wait_until("the lease is renewed", || {
        let record = leading.record();
        assert_eq!((&record.holder, record.token), (&told.holder, told.token));
        let lasted = now.elapsed() > 2 * LEASE_DURATION;
        (lasted && record.renew_time > told.renew_time).then_some(())
    });
    assert!(leading.child.try_wait().unwrap().is_none());
    fs::write(leading.folder.path().join("go"), "").unwrap();
    assert!(leading.child.wait().unwrap().success());
    leading.written("drained");
    assert_eq!(leading.record().holder, None);
}

/// Longer than other work that does not stop: 2 s after its grace period it is dropped, and the run ends a second later.
#[cfg(target_os = "linux")]
#[test]
fn the_lease_is_renewed_until_the_kernel_lets_go_of_a_command_that_was_killed() {
    let warm = ["--warm", "--http=127.0.0.1:0", "--http-token-file=token"];
    for flags in [&[][..], &warm] {
        let timing = [
            "--lease-duration=4s",
            "--renew-deadline=2s",
            "--grace-period=0s",
        ];
        let script = "trap '' TERM; echo $$ > command; while :; do sleep 0.02; done";
        let mut leading = LeadingCommand::start_with(&[&timing, flags].concat(), script);
        let command = leading.written("command").trim_end().parse().unwrap();
        let command = crate::trace(Pid::from_raw(command).unwrap());
        let told = wait_until("it leads", || {
            Some(leading.record()).filter(|it| it.holder.is_some())
        });
        kill_process(Pid::from_child(&leading.child), Signal::TERM).unwrap();
        let asked = Instant::now();
        wait_until("the lease is renewed", || {
            assert_eq!(leading.child.try_wait().unwrap(), None);
            let lasted = asked.elapsed() > LEASE_DURATION;
            (lasted && leading.record().renew_time > told.renew_time).then_some(())
        });
        nix::sys::wait::waitpid(command, None).unwrap();
        assert!(leading.child.wait().unwrap().success());
        assert_eq!(leading.record().holder, None);
    }
}

/// R21: the lease lasts for an hour. What the command has started is killed with it, and has the lock until then.
#[test]
fn a_process_that_is_killed_leads_on_when_it_is_started_again() {
    let flags = [
        "--lease-duration=1h",
        "--renew-deadline=40m",
        "--instance-lock=lock",
    ];
    let script = |file| format!("echo $ELECTOR_HOLDER $ELECTOR_TERM > {file}; sleep 600 & wait");
    let mut leading = LeadingCommand::start_with(&flags, &script("first"));
    leading.written("first");
    let first = leading.record();
    leading.child.kill().unwrap();
    leading.child.wait().unwrap();
    leading.child = LeadingCommand::spawn(leading.folder.path(), &flags, &script("second"));
    let told = leading.written("second");
    let second = leading.record();
    assert_eq!(told, format!("{} 9\n", second.holder.unwrap()));
    assert!(second.life.unwrap().replaces(first.life.unwrap()));
    assert!(second.token > first.token);
}
