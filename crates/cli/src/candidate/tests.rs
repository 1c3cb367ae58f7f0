//! The flags, and what becomes of a command.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct CandidateCli {
    #[command(flatten)]
    args: CandidateCommandArgs,
}

fn parse(flags: &[&str]) -> CandidateCommandArgs {
    let usual = ["elector", "--lease", "web", "--binary-version", "1.2.3"];
    let flags = usual.iter().chain(flags);
    CandidateCli::try_parse_from(flags).unwrap().args
}

fn config(flags: &[&str]) -> Config {
    parse(flags).config().unwrap()
}

#[test]
fn a_command_keeps_its_flags() {
    let program = parse(&["--events", "--", "sh", "-c", "true", "--lease", "x"]).program();
    let program = program.unwrap();
    assert_eq!(program.command, ["sh", "-c", "true", "--lease", "x"]);
    assert!(program.output_to_stderr);
}

#[test]
fn a_grace_that_a_loss_does_not_leave_is_said_in_words() {
    let line =
        |flags: &[&str]| grace_after_loss(parse(flags).candidate.grace_period(), &config(flags));
    assert_eq!(
        line(&["--grace-period", "30s"]).unwrap(),
        "grace-period 30s: after a loss at most 3.75s of it are left, because the command is killed before another \
         candidate can lead; after a pause, or once another holder is known, nothing is left"
    );
    assert_eq!(line(&["--grace-period", "3s"]), None);
    let long = ["--lease-duration", "60s", "--renew-deadline", "40s"];
    assert_eq!(line(&long), None);
}
