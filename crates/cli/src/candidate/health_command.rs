//! The command that says whether this process is well, as an exec probe of a kubelet does.

use std::io;
use std::num::NonZeroU32;
use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use elector_api::parse_duration;
use elector_candidate::{Candidate, CandidateHandle, Config, GroupCandidate};
use rustix::process::{Pid, Signal, getpid, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::exec_child;
use super::own_program::own_program;

/// Whether this process is well.
#[derive(Args, Debug)]
pub(super) struct HealthArgs {
    /// A command that exits with 0 while this process is well: a line for sh -c, or a JSON array of the program and its
    /// arguments. A leader that is unwell stops its command and gives the lease up, a standby withdraws; it is a
    /// candidate again after a pause, from 1s doubling up to 1m, and when this passes. It is asked all the time, on a
    /// standby too: ELECTOR_TERM and ELECTOR_TOKEN are set while this process leads, and only then
    #[arg(long, value_name = "COMMAND", env = "ELECTOR_HEALTH_COMMAND")]
    health_command: Option<HealthCommand>,

    /// The time from one start of the health command to the next; from 100ms to 1h
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, requires = "health_command", env = "ELECTOR_HEALTH_PERIOD")]
    health_period: Duration,

    /// How long the health command may take; it is killed then, and has failed. From 10ms to 1h
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration, requires = "health_command", env = "ELECTOR_HEALTH_TIMEOUT")]
    health_timeout: Duration,

    /// How many failures of the health command, one after the other, make a process unwell that was well
    #[arg(
        long,
        value_name = "N",
        default_value = "3",
        requires = "health_command",
        env = "ELECTOR_HEALTH_FAILURE_THRESHOLD"
    )]
    health_failure_threshold: NonZeroU32,
}

/// A command and its arguments; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HealthCommand(Vec<String>);

/// A health command that runs, with all that it has started in its group. Dropping it kills them.
#[derive(Debug)]
struct RunningProbe {
    child: Child,
    output: pipe::Receiver,
    group: Option<Pid>,
}

/// Variables of the environment.
type Variables = Vec<(&'static str, String)>;

/// The bytes of its output that are kept. The report on it is shorter.
const KEPT_OUTPUT: usize = 4096;

/// The reads from its pipe once it has ended; something that it has started may go on writing.
const LAST_READS: usize = 16;

// === impl HealthArgs ===

impl HealthArgs {
    /// The configuration with what was typed.
    pub(super) fn apply(&self, config: Config) -> Config {
        config
            .health_period(self.health_period)
            .health_timeout(self.health_timeout)
            .health_failures(self.health_failure_threshold.get())
    }

    /// The candidate with that command as its probe, where there is one.
    pub(super) fn probe(&self, candidate: Candidate) -> Candidate {
        let Some(command) = self.health_command.clone() else {
            return candidate;
        };
        let handle = candidate.handle();
        candidate.with_health(move || run(command.clone(), variables(&handle)))
    }

    /// The member of the group of that name with that command as its probe, where there is one.
    pub(super) fn probe_group(
        &self,
        candidate: GroupCandidate,
        group: Option<&str>,
    ) -> GroupCandidate {
        let Some(command) = self.health_command.clone() else {
            return candidate;
        };
        let group = group.map(|group| ("ELECTOR_GROUP", group.to_owned()));
        let variables: Vec<_> = group.into_iter().collect();
        candidate.with_health(move || run(command.clone(), variables.clone()))
    }
}

/// Runs the command to its end. Its time is limited by dropping this.
async fn run(command: HealthCommand, variables: Variables) -> anyhow::Result<()> {
    let (status, output) = async { RunningProbe::start(&command, variables)?.end().await }
        .await
        .context("run the health command")?;
    match output.trim() {
        _ if status.success() => Ok(()),
        "" => bail!("{status}"),
        output => bail!("{status}: {output}"),
    }
}

/// The variables that say which candidate the command is asked about.
fn variables(handle: &CandidateHandle) -> Variables {
    let status = handle.status();
    let mut variables = vec![
        ("ELECTOR_LEASE", handle.lease().to_string()),
        ("ELECTOR_HOLDER", handle.identity().to_string()),
    ];
    if let (true, Some(term), Some(token)) = (status.is_leader(), status.term(), status.token()) {
        variables.push(("ELECTOR_TERM", term.to_string()));
        variables.push(("ELECTOR_TOKEN", token.to_string()));
    }
    variables
}

// === impl HealthCommand ===

impl HealthCommand {
    /// The command, which dies with this process, in a group of its own.
    fn tied(&self, variables: Variables) -> Command {
        let parent = getpid().as_raw_nonzero().to_string();
        let mut command = Command::new(own_program());
        command
            .args([exec_child::NAME, &parent, "--"])
            .args(&self.0)
            .env_remove("ELECTOR_TERM")
            .env_remove("ELECTOR_TOKEN")
            .envs(variables)
            .stdin(Stdio::null())
            .process_group(0);
        command
    }
}

impl FromStr for HealthCommand {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const RULE: &str = "must be a line for sh -c, or a JSON array of the program and its arguments such as [\"cat\", \
                            \"/run/well\"]";
        let words: Vec<String> = match text.trim() {
            "" => return Err(RULE),
            array if array.starts_with('[') => serde_json::from_str(array).map_err(|_| RULE)?,
            line => vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()],
        };
        let has_program = words.first().is_some_and(|word| !word.is_empty());
        has_program.then_some(Self(words)).ok_or(RULE)
    }
}

// === impl RunningProbe ===

impl RunningProbe {
    fn start(command: &HealthCommand, variables: Variables) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let child = command
            .tied(variables)
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Ok(Self {
            child,
            output: pipe::Receiver::from_owned_fd(reader.into())?,
            group: id.and_then(Pid::from_raw),
        })
    }

    /// Waits for its end: how it exited, and the beginning of what it wrote.
    async fn end(mut self) -> io::Result<(std::process::ExitStatus, String)> {
        let (mut kept, mut is_open) = (Vec::new(), true);
        let mut buffer = [0; 1024];
        let status = loop {
            tokio::select! {
                biased;
                status = self.child.wait() => break status?,
                read = self.output.read(&mut buffer), if is_open => {
                    let read = read.unwrap_or_default();
                    is_open = read > 0;
                    kept.extend_from_slice(&buffer[..read]);
                    kept.truncate(KEPT_OUTPUT);
                }
            }
        };
        // The processes that it left behind go on.
        self.group = None;
        for _ in 0..LAST_READS {
            let read = self.output.try_read(&mut buffer).unwrap_or_default();
            kept.extend_from_slice(&buffer[..read]);
        }
        kept.truncate(KEPT_OUTPUT);
        Ok((status, String::from_utf8_lossy(&kept).into_owned()))
    }
}

impl Drop for RunningProbe {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // It fails where the group is already gone, which is as good.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_health_command_is_a_line_or_an_array() {
        let words = |text: &str| text.parse::<HealthCommand>().map(|command| command.0);
        let expected = Ok(vec!["sh".into(), "-c".into(), "test -e x".into()]);
        assert_eq!(words("test -e x"), expected);
        let expected = Ok(vec!["cat".into(), "/run/well".into()]);
        assert_eq!(words(r#" ["cat", "/run/well"]"#), expected);
        for text in ["", "  ", "[]", r#"[""]"#, "[1]", "[ -e x ]"] {
            assert!(words(text).is_err(), "{text:?}");
        }
    }
}
