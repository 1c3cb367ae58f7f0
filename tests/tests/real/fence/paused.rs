//! A leader that stands still with all its processes, and whose work wakes up first.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_api::annotation;
use elector_tests::rig::{StartedCandidate, Testbed, eventually, signal_descendants};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Attempt, OBJECT, create_object, fence, object, until_answered};
use crate::{PROMPTLY, SHORT_LEASE};

pub(super) async fn writes_with_its_old_token(testbed: Arc<Testbed>) -> Result<()> {
    let testbed = &*testbed;
    create_object(testbed).await?;
    fence(testbed, testbed.lease_name(), "web").await?;
    let account = testbed.candidate_account().context("no account")?.client();
    let missing = Attempt::update(None);
    until_answered(testbed, account, missing, Some("is missing")).await?;

    let mut first = start(testbed, "first")?;
    first.leads(PROMPTLY * 2).await?;
    fs::write(file(testbed, "first", "go"), "")?;
    until_written_by(testbed, "first").await?;
    let token = token_of(&object(testbed).await?)?;
    let second = start(testbed, "second")?;
    second.begins().await?;

    // Candidate, supervisor and work stand still, as in a container that is frozen.
    testbed.judge_by_lease("first");
    let work: i32 = fs::read_to_string(file(testbed, "first", "pid"))?
        .trim()
        .parse()?;
    let work = Pid::from_raw(work).context("no process")?;
    first.process.signal(Signal::STOP)?;
    let below = signal_descendants(first.process.id(), Signal::STOP)?;
    ensure!(below.contains(&work) && below.len() >= 2, "{below:?}");
    testbed.note("first stands still");
    second.leads(SHORT_LEASE * 2 + PROMPTLY).await?;

    // The new leader has written nothing yet; the server has seen that it leads.
    let old = Attempt::update(Some(&token));
    until_answered(testbed, account, old, Some("is not that of a leader")).await?;
    let before = object(testbed).await?;
    testbed.note("the work of first wakes up");
    signal_descendants(work.as_raw_nonzero().get().unsigned_abs(), Signal::CONT)?;
    kill_process(work, Signal::CONT)?;
    refusals(testbed, "first").await?;
    let after = object(testbed).await?;
    ensure!(before == after, "a stale write is stored: {after}");

    fs::write(file(testbed, "second", "go"), "")?;
    until_written_by(testbed, "second").await?;
    // It is refused again and again, until the processes that watch over it wake up too.
    refusals(testbed, "first").await?;
    testbed.note("all of first wakes up");
    signal_descendants(first.process.id(), Signal::CONT)?;
    first.process.signal(Signal::CONT)?;
    testbed.stays("second", 2).await?;
    until_gone(work).await?;
    let object = object(testbed).await?;
    ensure!(
        object["data"]["writer"] == "second"
            && token_of(&object)?.parse::<u64>()? > token.parse()?,
        "{object}"
    );
    Ok(())
}

/// A candidate whose work writes the object again and again once the file `go` is there, whether it still leads or not.
fn start(testbed: &Testbed, name: &str) -> Result<StartedCandidate> {
    let [pid, go, said] = ["pid", "go", "said"].map(|what| file(testbed, name, what));
    let (pid, go, said) = (pid.display(), go.display(), said.display());
    let kubectl = testbed.site().programs().kubectl.display();
    let patch = format!(
        r#"{{"metadata":{{"annotations":{{"{}":"'$ELECTOR_TOKEN'"}}}},"data":{{"writer":"'$ELECTOR_HOLDER'"}}}}"#,
        annotation::TOKEN
    );
    let script = format!(
        "echo $$ > {pid}; while :; do if [ -e {go} ]; then \
         {kubectl} patch configmap {OBJECT} -n {} --type=merge -p '{patch}' >> {said} 2>&1; fi; sleep 0.2; done",
        testbed.namespace(),
    );
    testbed
        .candidate(name)
        .short()
        .work(&["sh", "-c", &script])
        .start()
}

fn file(testbed: &Testbed, name: &str, what: &str) -> PathBuf {
    testbed.folder().join(format!("{name}.{what}"))
}

fn token_of(object: &Value) -> Result<String> {
    let token = object["metadata"]["annotations"][annotation::TOKEN].as_str();
    Ok(token.context("no token on the object")?.to_owned())
}

async fn until_written_by(testbed: &Testbed, name: &str) -> Result<()> {
    let ask = || async {
        let object = object(testbed).await?;
        let said = fs::read_to_string(file(testbed, name, "said")).unwrap_or_default();
        let holds = object["data"]["writer"] == name;
        ensure!(holds, "{name} has written nothing: {object}\n{said}");
        Ok(())
    };
    eventually(PROMPTLY, ask).await
}

/// Waits until two more writes of the work are refused.
async fn refusals(testbed: &Testbed, name: &str) -> Result<()> {
    let said = || fs::read_to_string(file(testbed, name, "said")).unwrap_or_default();
    let count = |said: &str| said.matches("ValidatingAdmissionPolicy").count();
    let before = count(&said());
    let ask = || async {
        let said = said();
        let holds = count(&said) >= before + 2;
        ensure!(holds, "{name} is not refused; its writes:\n{said}");
        Ok(())
    };
    eventually(PROMPTLY, ask).await
}

async fn until_gone(pid: Pid) -> Result<()> {
    let state = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let ask = || async {
        let stat = fs::read_to_string(&state).unwrap_or_default();
        let rest = stat.rsplit_once(") ").map(|(_, rest)| rest);
        let runs = rest.is_some_and(|rest| !rest.starts_with('Z'));
        ensure!(!runs, "the old work runs");
        Ok(())
    };
    eventually(PROMPTLY, ask).await
}
