//! The flags, and what becomes of a command.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use clap::Parser;
use elector_candidate::{Error, TermEnd};

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
fn a_command_that_a_signal_ended_has_the_exit_code_of_shells() {
    // As wait(2) has them: an exit code in the second byte, or a signal in the first one.
    let codes = [0, 3 << 8, 9, 15].map(|raw| child::exit_code(ExitStatus::from_raw(raw)));
    assert_eq!(codes, [0, 3, 137, 143]);
}

#[test]
fn a_run_that_failed_says_why_and_a_name_that_is_refused_is_wrong_usage() {
    let refused = Config::plain("Web").validate().unwrap_err();
    assert_eq!(exit_code(refused.into()).unwrap(), ExitCode::from(2));
    for (end, words) in [
        (TermEnd::WorkStillRuns, "stop the command: it still runs"),
        (TermEnd::Released, "keep running"),
    ] {
        let error = exit_code(Error::TermEnded(end)).unwrap_err();
        assert_eq!(error.to_string(), words);
    }
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
    assert_eq!(line(&["--grace-period", "3750ms"]), None);
    let long = ["--lease-duration", "60s", "--renew-deadline", "40s"];
    assert_eq!(line(&long), None);
}

/// A variable that we set, or that Kubernetes makes for a Service called `elector`, must not be read as a flag of a
/// candidate that a command starts.
#[test]
fn no_flag_is_read_from_a_variable_that_others_set() {
    use clap::CommandFactory as _;

    let command = CandidateCli::command();
    let read: Vec<_> = command
        .get_arguments()
        .filter_map(|flag| flag.get_env()?.to_str())
        .collect();
    assert!(read.contains(&"ELECTOR_HTTP") && read.contains(&"ELECTOR_LEASE_NAME"));
    let set_by_us = "LEASE HOLDER TERM TOKEN GET_URL SSE_URL PATH";
    let set_by_us = set_by_us.split(' ').map(|name| format!("ELECTOR_{name}"));
    let set_by_us: Vec<_> = set_by_us.collect();
    for name in &read {
        assert!(!set_by_us.iter().any(|it| it == name), "{name}");
        let of_service = ["ELECTOR_PORT", "ELECTOR_SERVICE_"];
        assert!(!of_service.iter().any(|it| name.starts_with(it)), "{name}");
    }
}

#[test]
fn the_flags_for_programs_beside_go_with_http_alone() {
    let refusal = |flags: &[&str]| {
        let usual = ["elector", "--lease", "web", "--binary-version", "1.2.3"];
        let parsed = CandidateCli::try_parse_from(usual.iter().chain(flags));
        parsed.map(drop).unwrap_err().to_string()
    };
    assert!(refusal(&["--native-sidecar"]).contains("--http"));
    assert!(refusal(&["--http-token-file", "x"]).contains("--http"));
    assert!(refusal(&["--http", "4040", "--warm", "--", "true"]).contains("--http-token-file"));
    assert!(refusal(&["--http", "localhost:4040"]).contains("127.0.0.1"));
    let both = ["--http", "4040", "--native-sidecar", "--", "true"];
    assert!(refusal(&both).contains("cannot be used with"));
    assert!(!parse(&["--http", "0"]).http.is_on());
    assert!(
        parse(&["--http", "4040", "--native-sidecar"])
            .http
            .ends_after_program()
    );
}
