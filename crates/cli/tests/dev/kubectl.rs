//! kubectl on the embedded server, command by command.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::process::Dev;
use crate::transcript::{self, Shell};

/// The program to test with: `ELECTOR_KUBECTL`, or that of `KUBEBUILDER_ASSETS`.
fn kubectl() -> PathBuf {
    let named = env::var_os("ELECTOR_KUBECTL").map(PathBuf::from);
    let assets = env::var_os("KUBEBUILDER_ASSETS").map(|folder| Path::new(&folder).join("kubectl"));
    let kubectl = named.or(assets.filter(|path| path.exists()));
    kubectl.expect("ELECTOR_KUBECTL or KUBEBUILDER_ASSETS leads to a kubectl")
}

#[test]
#[ignore = "it needs kubectl: `cargo xtask test`"]
fn kubectl_is_answered_as_the_transcript_says() {
    let kubectl = kubectl();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dev");
    let file = folder.join("kubectl.txt");
    let expected = transcript::parse(&fs::read_to_string(&file).unwrap());

    let mut dev = Dev::start(&[]);
    let kubeconfig = dev.kubeconfig();
    dev.wait_for("the cluster is yours");
    let scratch = tempfile::tempdir().unwrap();
    let shell = Shell {
        programs: transcript::linked(&kubectl, "kubectl", scratch.path()),
        folder,
        kubeconfig: kubeconfig.clone(),
        scratch: scratch.path().to_owned(),
        recording: env::var_os("ELECTOR_RECORD").is_some_and(|value| value == "1"),
    };
    let said = shell.run(&expected);
    if shell.recording {
        fs::write(&file, transcript::print(&said)).unwrap();
    }
    for (step, said) in expected.iter().zip(&said) {
        assert!(
            shell.recording || step == said,
            "expected {step:#?}, but {said:#?}"
        );
    }

    // The last commands interfered with the participants, whose answer is told.
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
    assert!(
        stderr.lines().all(|line| line.ends_with(complaint)),
        "{stderr}"
    );
}
