//! The same kubectl commands on both servers, and what they print.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

/// A kubectl and the cluster that it talks to.
#[derive(Clone, Debug)]
pub struct Kubectl {
    /// The program.
    pub program: PathBuf,
    /// Its kubeconfig.
    pub kubeconfig: PathBuf,
    /// A folder for its caches, so that nothing is remembered of another cluster.
    pub home: PathBuf,
}

/// The commands, one per line; `< X` takes its standard input from the text X.
const COMMANDS: &str = r#"
create namespace story
apply -f - < both
apply -f - < both
get leases,leasecandidates
get lease demo -o yaml
get lease demo -o name
get lease demo -o jsonpath={.spec.holderIdentity}
get leasecandidate demo-1 -o wide
get leases --no-headers -l app=demo
get leases -l app=other
get leases --field-selector metadata.name=demo -o custom-columns=NAME:.metadata.name,HOLDER:.spec.holderIdentity
get leases --field-selector spec.holderIdentity=demo-1
get leases --chunk-size=1 --sort-by=.metadata.name
describe lease demo
describe leasecandidate demo-1
patch lease demo --type=merge -p {"spec":{"leaseTransitions":1}}
patch lease demo -p {"metadata":{"labels":{"tier":"front"}}}
patch lease demo --type=json -p [{"op":"replace","path":"/spec/holderIdentity","value":"demo-2"}]
patch lease demo --type=json -p [{"op":"test","path":"/spec/holderIdentity","value":"nobody"}]
patch lease demo --type=merge -p {"spec":{"leaseTransitions":1}}
label lease demo app=other --overwrite
annotate lease demo note=x
annotate lease demo note-
edit lease demo
get lease demo -o jsonpath={.spec.holderIdentity}
wait --for=jsonpath={.spec.holderIdentity}=demo-3 lease/demo --timeout=5s
diff -f - < both
apply --dry-run=server -f - < both
apply -f - < both
replace -f - < lone
create -f - < lone
create --dry-run=server -f - < fresh
create -f - < strange
create --validate=false -f - < strange
create -f - < invalid
get lease missing
get nothings
get leases -A -l story=none
get events
get namespace story
get leases --watch --output-watch-events --request-timeout=1s
delete lease missing
delete lease demo --dry-run=server
delete lease demo
delete leasecandidates --all
get leases,leasecandidates
api-resources --api-group=coordination.k8s.io --no-headers
"#;

/// A lease and a candidate.
const BOTH: &str = "\
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: demo, labels: {app: demo}, annotations: {text: \"two\\nlines\"}}
spec: {holderIdentity: demo-1, leaseDurationSeconds: 15, renewTime: \"2026-01-02T03:04:05.000006Z\"}
---
apiVersion: coordination.k8s.io/v1beta1
kind: LeaseCandidate
metadata: {name: demo-1}
spec: {leaseName: demo, binaryVersion: 1.2.0, emulationVersion: 1.1.0, strategy: OldestEmulationVersion}
";

/// The standard input of that name.
fn input(name: &str) -> String {
    let lease = |name: &str, spec: &str| {
        format!(
            "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
        )
    };
    match name {
        "both" => BOTH.to_owned(),
        "lone" => lease("demo", "holderIdentity: lone"),
        "fresh" => lease("fresh", "holderIdentity: x"),
        "strange" => lease("strange", "holderIdentiti: x"),
        "invalid" => lease("Invalid", "leaseDurationSeconds: 0, leaseTransitions: -1"),
        name => format!("no input is called {name}"),
    }
}

// === impl Kubectl ===

impl Kubectl {
    /// Runs all commands, and returns each with what it printed, freed of what differs between any two clusters.
    ///
    /// # Errors
    ///
    /// When kubectl cannot be run.
    pub fn transcript(&self) -> Result<Vec<String>> {
        COMMANDS
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| self.run(line))
            .collect()
    }

    fn run(&self, line: &str) -> Result<String> {
        let (arguments, name) = line.split_once(" < ").unwrap_or((line, ""));
        let mut child = Command::new(&self.program)
            .args(arguments.split(' '))
            .args(["--namespace", "story"])
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            .env("KUBE_EDITOR", "sed -i s/demo-2/demo-3/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("failed to run {}", self.program.display()))?;
        if let Some(mut stdin) = child.stdin.take()
            && !name.is_empty()
        {
            stdin.write_all(input(name).as_bytes())?;
        }
        let output = child.wait_with_output()?;
        let text = |bytes: &[u8]| comparable(&String::from_utf8_lossy(bytes), &self.home);
        let status = output.status.code().unwrap_or(-1);
        Ok(format!(
            "$ kubectl {line}\n{}{}[{status}]",
            text(&output.stdout),
            text(&output.stderr)
        ))
    }
}

/// The output of kubectl, word by word, without what two clusters never share.
fn comparable(text: &str, home: &Path) -> String {
    let text = text.replace(&*home.to_string_lossy(), "<home>");
    let mut lines = String::new();
    let mut revision = false;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        // Tables are as wide as their ages: words count, not the blanks between them.
        let words: Vec<_> = line
            .split_whitespace()
            .map(|word| {
                let shown = if std::mem::replace(&mut revision, false) {
                    "<revision>"
                } else {
                    known(word)
                };
                revision = matches!(word, "resourceVersion:" | "Version:")
                    && line.trim_start().starts_with(['r', 'R']);
                shown
            })
            .collect();
        // The names of temporary files.
        if !line.starts_with("diff ")
            && !line.starts_with("--- ")
            && !line.starts_with("+++ ")
            && !line.starts_with("@@ ")
        {
            lines.push_str(&" ".repeat(indent));
            lines.push_str(&words.join(" "));
            lines.push('\n');
        }
    }
    lines
}

fn known(word: &str) -> &str {
    let bare = word.trim_matches('"');
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if bare.len() == 36 && bare.bytes().filter(|byte| *byte == b'-').count() == 4 {
        "<uid>"
    } else if bare.len() == 20 && bare.ends_with('Z') && digits(&bare[..4]) {
        "<time>"
    } else if word.len() > 1 && word.ends_with(['s', 'm']) && digits(&word[..word.len() - 1]) {
        "<age>"
    } else {
        word
    }
}
