//! Running other programs.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Shows and runs a command; its output goes where ours goes.
pub fn show_and_run(command: &mut Command) -> Result<()> {
    let line = line(command);
    eprintln!("$ {line}");
    let status = command
        .status()
        .with_context(|| format!("failed to run {line}"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// The output of a command that succeeded.
pub struct Output {
    /// The text that it wrote.
    pub stdout: String,
    /// The errors and warnings that it wrote.
    pub stderr: String,
}

/// Runs a command and keeps what it says.
pub fn read(command: &mut Command) -> Result<Output> {
    let line = line(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to run {line}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        bail!(
            "`{line}` failed ({}): {}",
            output.status,
            text(&output.stderr).trim()
        );
    }
    Ok(Output {
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    })
}

/// The cargo that runs this program, in the root of the workspace.
#[must_use]
pub fn cargo() -> Command {
    // Set by cargo for what it runs: the same toolchain, whatever is on the PATH.
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::paths::workspace());
    // Variables of cargo about this very package; build scripts that look at them would run again each time.
    let own = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    for (name, _) in env::vars_os().filter(|(name, _)| own(name)) {
        command.env_remove(name);
    }
    command
}

/// The `elector` that was built beside this program.
pub fn elector() -> Result<PathBuf> {
    let path = env::current_exe()
        .context("failed to find this program")?
        .with_file_name("elector");
    if !path.is_file() {
        bail!("{} is missing, though it was just built", path.display());
    }
    Ok(path)
}

/// The command as one would type it; only for people to read.
pub fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_outputs_are_kept_and_a_failure_repeats_what_was_said() {
        let output = read(&mut shell("echo out; echo err >&2")).unwrap();
        let expected = ("out\n", "err\n");
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), expected);
        let error = read(&mut shell("echo alas >&2; exit 3"))
            .err()
            .unwrap()
            .to_string();
        let holds = error.contains("exit status: 3") && error.ends_with(": alas");
        assert!(holds, "{error}");
        assert!(show_and_run(&mut shell("exit 3")).is_err());
    }
}
