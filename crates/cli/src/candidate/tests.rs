//! The flags, and what becomes of a command.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct CandidateCli {
    #[command(flatten)]
    args: CandidateArgs,
}

fn parse(flags: &[&str]) -> CandidateArgs {
    let usual = ["elector", "--lease", "web", "--binary-version", "1.2.3"];
    let flags = usual.iter().chain(flags);
    CandidateCli::try_parse_from(flags).unwrap().args
}

fn config(flags: &[&str]) -> Config {
    let identity = Identity::new("me").unwrap();
    parse(flags).config(LeaseKey::new("ns", "web"), identity)
}

#[test]
fn the_defaults_are_valid_and_as_documented() {
    let config = config(&[]);
    config.validate().unwrap();
    assert_eq!(config.timing, CandidateTiming::default());
    assert_eq!(config.emulation_version, "1.2.3");
    assert!(parse(&[]).program().is_none());
}

#[test]
fn the_retry_period_follows_a_short_deadline_unless_it_is_given() {
    let short = ["--lease-duration", "5s", "--renew-deadline", "3s"];
    let config_of = |more: &[&str]| config(&[&short[..], more].concat());
    assert_eq!(config_of(&[]).timing.retry_period, Duration::from_secs(1));
    config_of(&[]).validate().unwrap();
    let error = config_of(&["--retry-period", "2s"]).validate();
    assert_eq!(
        error.unwrap_err().to_string(),
        "retry-period is 2s: must be from 250ms to 1s"
    );
}

#[test]
fn a_command_keeps_its_flags() {
    let program = parse(&["--events", "--", "sh", "-c", "true", "--lease", "x"]).program();
    let program = program.unwrap();
    assert_eq!(program.command, ["sh", "-c", "true", "--lease", "x"]);
    assert!(program.output_to_stderr);
}

#[test]
fn after_a_loss_the_command_is_gone_before_anybody_else_can_lead() {
    let timeouts = StopTimeouts::of(&CandidateTiming::default(), Duration::from_secs(10));
    assert_eq!(timeouts.holding, Duration::from_secs(10));
    assert_eq!(timeouts.lost, Duration::from_millis(3_750));
    let shorter = StopTimeouts::of(&CandidateTiming::default(), Duration::from_secs(1));
    assert_eq!(shorter.lost, Duration::from_secs(1));
}

#[test]
fn an_absurd_flag_is_refused_in_one_clear_line_without_a_cluster() {
    let long = "x".repeat(254);
    for (flags, refusal) in [
        (["--name", ""], "--name is empty"),
        (["--name", "a/b"], "metadata.name: "),
        (["--name", &long], "metadata.name: "),
        (["--lease", "Web"], "the lease \"Web\" cannot exist: "),
        (["--lease", ""], "spec.leaseName: "),
        (["--namespace", ""], "metadata.namespace: "),
        (["--namespace", "a b"], "metadata.namespace: "),
        (["--binary-version", "v1"], "spec.binaryVersion: "),
        (["--binary-version", ""], "spec.binaryVersion: "),
        (["--emulation-version", "2.0.0"], "spec.binaryVersion: "),
        (["--strategy", "mine"], "spec.strategy"),
        (
            ["--lease-duration", "0"],
            "lease-duration is 0ns: must be from 2s to 3600s",
        ),
        (
            ["--lease-duration", "15.5s"],
            "lease-duration is 15.5s: must be whole seconds",
        ),
        (
            ["--lease-duration", "2562047h"],
            "lease-duration is 9223369200s: must be from",
        ),
        (
            ["--renew-deadline", "2562047h"],
            "renew-deadline is 9223369200s: must be at most",
        ),
        (
            ["--renew-deadline", "0"],
            "renew-interval is 0ns: must be from 100ms to 0ns",
        ),
        (
            ["--retry-period", "1ns"],
            "retry-period is 1ns: must be from 250ms",
        ),
        (["--grace-period", "2562047h"], "grace-period is"),
    ] {
        let usual = ["elector", "--lease", "web", "--binary-version", "1.2.3"];
        let asked = |flag: &&str| *flag != flags[0];
        // Each flag once.
        let kept = usual[1..]
            .chunks(2)
            .filter(|pair| asked(&pair[0]))
            .flatten();
        let all = usual[..1].iter().chain(kept).chain(&flags);
        let Err(error) = CandidateCli::try_parse_from(all).unwrap().args.check() else {
            panic!("{flags:?} is taken");
        };
        let text = format!("{error:#}");
        assert!(text.starts_with(refusal), "{flags:?}: {text}");
        assert!(!text.contains('\n') && text.len() < 600, "{text}");
    }
}
