//! kubectl on the embedded server, command by command.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::process::Dev;

/// The time that a recording listens to a command in the background.
const RECORDING: Duration = Duration::from_secs(5);

/// The program to test with: `ELECTOR_KUBECTL`, or that of `KUBEBUILDER_ASSETS`.
fn kubectl() -> PathBuf {
    let named = env::var_os("ELECTOR_KUBECTL").map(PathBuf::from);
    let assets = env::var_os("KUBEBUILDER_ASSETS").map(|folder| Path::new(&folder).join("kubectl"));
    let kubectl = named.or(assets.filter(|path| path.exists()));
    kubectl.expect("ELECTOR_KUBECTL or KUBEBUILDER_ASSETS leads to a kubectl")
}

fn is_recording() -> bool {
    env::var_os("ELECTOR_RECORD").is_some_and(|value| value == "1")
}

/// The transcript with what its commands say now. Remarks come after `# `, commands after `$ `, what they say on both
/// outputs below them, and their exit code after `? ` where that is not 0. A command before ` &` goes on until `fg`, which
/// shows what it has said by then.
fn play(transcript: &str, output: &Path, shell: impl Fn(&str) -> Command) -> String {
    let said = |least: usize| {
        elector_testing::wait_until("a command says more", || {
            let said = fs::read_to_string(output).unwrap_or_default();
            (said.lines().count() >= least).then_some(said)
        })
    };
    let mut text = String::new();
    let mut background = None;
    for line in transcript.lines() {
        if line.starts_with("# ") {
            text += &format!("{line}\n");
        }
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        text += &format!("{line}\n");
        if let Some(command) = command.strip_suffix(" &") {
            let script = format!("exec {command} >{} 2>&1", output.display());
            background = Some(shell(&script).spawn().unwrap());
            said(1);
        } else if command == "fg" {
            let (_, expected) = transcript.split_once("$ fg\n").unwrap();
            let lines = expected.lines().take_while(|line| !line.is_empty());
            if is_recording() {
                std::thread::sleep(RECORDING);
            }
            text += &said(if is_recording() { 1 } else { lines.count() });
            let mut ended = background.take().unwrap();
            ended.kill().and_then(|()| ended.wait()).unwrap();
        } else {
            let ended = shell(&format!("({command}) 2>&1")).output().unwrap();
            let said = String::from_utf8(ended.stdout).unwrap();
            let said = said.trim_end();
            text += &if said.is_empty() {
                String::new()
            } else {
                format!("{said}\n")
            };
            if !ended.status.success() {
                text += &format!("? {}\n", ended.status.code().unwrap_or(-1));
            }
        }
        text += "\n";
    }
    let said = normal(text.trim_end());
    format!("{}\n", said.trim_end())
}

/// The text without what differs from run to run and from one release of kubectl to another.
fn normal(text: &str) -> String {
    let mut sed = Command::new("sed");
    sed.arg("-E").args([
        "-es/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/[UID]/",
        "-es/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/[TIME]/",
        "-es/((resourceVersion|Resource Version|elector.dev.token): *\"?)[0-9]+/\\1[REVISION]/",
        // Tables have no colons.
        "-e/:/!s/ ([0-9]+[smhd])+ *$/ [AGE]/",
        "-es/ +$//",
        // Later releases of kubectl say where it was.
        "-es/(\" deleted) from .* namespace$/\\1/",
    ]);
    let mut sed = sed
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It fits into a pipe.
    sed.stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    String::from_utf8(sed.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
#[ignore = "it needs kubectl: `cargo xtask test`"]
fn kubectl_is_answered_as_the_transcript_says() {
    let kubectl = kubectl();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dev");
    let file = folder.join("kubectl.txt");
    let expected = fs::read_to_string(&file).unwrap();

    let mut dev = Dev::start(&[]);
    let kubeconfig = dev.kubeconfig();
    dev.wait_for("the cluster is yours");
    let scratch = tempfile::tempdir().unwrap();
    // Transcripts call it by this name.
    std::os::unix::fs::symlink(&kubectl, scratch.path().join("kubectl")).unwrap();
    let path = env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", scratch.path().display());
    let said = play(&expected, &scratch.path().join("watch"), |command| {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).current_dir(&folder);
        shell.env("PATH", &path).env("HOME", scratch.path());
        shell.env("KUBECONFIG", &kubeconfig).env_remove("EDITOR");
        shell.env_remove("VISUAL").stdin(Stdio::null());
        shell
    });
    if is_recording() {
        fs::write(&file, &said).unwrap();
    } else {
        assert_eq!(said, expected);
    }

    // The last commands interfered with the participants, whose answer is reported.
    dev.wait_for("nobody leads default/demo: the lease was deleted");
    dev.wait_for("leads, term 1");
    dev.signal(Signal::INT);
    assert_eq!(dev.end(), Some(0));
    assert!(!kubeconfig.exists());
    // The candidate that the transcript made has no renewTime.
    let complaint = "no leader can be elected for play/web: no eligible candidate: web-0: spec.renewTime is missing, so \
                     it never answered";
    let stderr = dev.stderr();
    assert!(stderr.contains(complaint), "{stderr}");
    let holds = stderr.lines().all(|line| line.ends_with(complaint));
    assert!(holds, "{stderr}");
}
