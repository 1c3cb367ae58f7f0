//! The flags, their variables, and what becomes of them.

use clap::{CommandFactory as _, Parser};

use super::*;
use crate::config::Mode;
use crate::timing::Timing;

#[derive(Debug, Parser)]
struct ProgramCli {
    #[command(flatten)]
    args: CandidateArgs,
}

fn parse(flags: &[&str]) -> CandidateArgs {
    let usual = ["program", "--lease", "web", "--binary-version", "1.2.3"];
    let flags = usual.iter().chain(flags);
    ProgramCli::try_parse_from(flags).unwrap().args
}

fn config(flags: &[&str]) -> Config {
    parse(flags).config("").unwrap()
}

#[cfg(feature = "connect")]
#[derive(Debug, Parser)]
struct ConnectedCli {
    #[command(flatten)]
    args: CandidateArgs,
    #[command(flatten)]
    client: crate::ClientArgs,
}

/// P-N10: each option by flag and by variable, with its default in the help.
#[test]
fn each_flag_has_its_variable_and_what_happens_without_it_in_the_help() {
    #[cfg(not(feature = "connect"))]
    let command = ProgramCli::command();
    #[cfg(feature = "connect")]
    let command = ConnectedCli::command();
    for arg in command.get_arguments() {
        let Some(flag) = arg.get_long().filter(|flag| *flag != "help") else {
            continue;
        };
        let name = match flag {
            "lease" => "LEASE_NAME".to_owned(),
            flag => flag.to_uppercase().replace('-', "_"),
        };
        let variable = arg.get_env().unwrap().to_str().unwrap();
        assert_eq!(variable, format!("ELECTOR_{name}"));
        let help = arg.get_help().unwrap().to_string();
        let has_default = !arg.get_default_values().is_empty() || help.contains("[default: ");
        let is_switch = !arg.get_action().takes_values();
        let holds = has_default || is_switch || arg.is_required_set();
        assert!(holds, "--{flag}");
    }
    let help = ProgramCli::command().render_long_help().to_string();
    let holds = help.contains("[env: ELECTOR_MODE=") && help.contains("[default: auto]");
    assert!(holds, "{help}");
}

#[test]
fn a_program_tells_its_own_version_and_a_flag_another() {
    let version = |flags: &[&str]| {
        let line = ["program", "--lease", "web"].iter().chain(flags);
        let args = ProgramCli::try_parse_from(line).unwrap().args;
        args.config("3.0.0").unwrap().version.unwrap()
    };
    assert_eq!(version(&[]), "3.0.0");
    assert_eq!(version(&["--binary-version", "2.0.0"]), "2.0.0");
    let typed = config(&["--emulation-version=1.1.0", "--instance-lock=/run/web"]);
    assert_eq!(typed.emulation_version.as_deref(), Some("1.1.0"));
    assert_eq!(typed.instance_lock.as_deref(), Some("/run/web".as_ref()));
}

#[test]
fn what_follows_a_term_and_a_failure_can_be_chosen() {
    let usual = config(&[]);
    assert!(!usual.one_term && !usual.retry_work);
    assert!(!usual.client_go_peers);
    let other = config(&[
        "--after-term",
        "return",
        "--after-failure",
        "retry",
        "--client-go-peers",
    ]);
    assert!(other.one_term && other.retry_work);
    assert!(other.client_go_peers);
}

#[test]
fn the_timing_can_be_chosen_by_name_or_by_its_durations() {
    let seconds = Duration::from_secs;
    for (flags, timing) in [
        ("--timing default", Timing::default()),
        ("--timing fast", Timing::fast()),
        (
            "--timing many-leases --retry-period 3s",
            Timing::many_leases().retry_period(seconds(3)),
        ),
        ("--timing outage-proof", Timing::outage_proof()),
        ("--timing slow-server", Timing::slow_server()),
        (
            "--lease-duration 20s --renew-deadline 9s",
            Timing::new(seconds(20), seconds(9)),
        ),
    ] {
        let flags: Vec<_> = flags.split(' ').collect();
        assert_eq!(config(&flags).timing, timing, "{flags:?}");
    }
    let both = [
        "program",
        "--lease=web",
        "--timing=fast",
        "--renew-deadline=3s",
    ];
    assert!(ProgramCli::try_parse_from(both).is_err());
}

#[cfg(feature = "events")]
#[test]
fn its_terms_are_reported_in_events_where_that_is_wished() {
    assert!(!config(&[]).record_events);
    assert!(config(&["--record-events"]).record_events);
}

#[test]
fn the_modes_are_as_documented() {
    let auto = config(&[]);
    assert_eq!(auto.timing, Timing::default());
    assert_eq!(auto.emulation_version, None);
    assert_eq!(auto.mode, Mode::Auto);
    assert_eq!(auto.fallback, Duration::from_secs(5));
    assert_eq!(auto.max_lease_duration, Duration::from_secs(15));
    assert_eq!(auto.absent_lease_grace, None);
    let flags = "--fallback-after 7s --max-lease-duration 40s --absent-lease-grace 0s";
    let flags: Vec<_> = flags.split(' ').collect();
    let slow = config(&flags);
    slow.validate().unwrap();
    assert_eq!(slow.fallback, Duration::from_secs(7));
    assert_eq!(slow.max_lease_duration, Duration::from_secs(40));
    assert_eq!(slow.absent_lease_grace, Some(Duration::ZERO));
    assert_eq!(config(&["--mode", "elected"]).mode, Mode::Elected);
    let program = ["program", "--lease", "web", "--mode"].into_iter();
    let at_once = ProgramCli::try_parse_from(program.chain(["as-client-go"])).unwrap();
    let at_once = at_once.args.config("").unwrap();
    let by_flags = Config {
        by_flags: true,
        ..Config::as_client_go("web")
    };
    assert_eq!(format!("{at_once:?}"), format!("{by_flags:?}"));
}

/// A flag without any effect would let its user believe that it has one.
#[test]
fn flags_that_a_mode_has_no_use_for_are_refused_with_the_reason() {
    let elected = "does not go with --mode elected: a candidate in this mode takes no lease itself";
    let as_soon = "does not go with --mode plain: a candidate in this mode takes the lease as soon";
    let at_once = "does not go with --mode as-client-go: a candidate in this mode takes";
    let unread = "does not go with --mode plain: a candidate in this mode registers no";
    let missing =
        "--binary-version is missing: electors choose by it, unless the mode is plain or disabled";
    for (flags, refusal) in [
        ("--mode plain", None),
        ("--mode disabled", None),
        ("--mode disabled --fallback-after 5s", None),
        ("--mode plain --max-lease-duration 20s", None),
        ("--mode plain --absent-lease-grace 20s", None),
        ("--mode elected --binary-version 1.0.0", None),
        ("--mode auto", Some(missing)),
        ("--mode elected", Some(missing)),
        ("--mode elected --fallback-after 5s", Some(elected)),
        ("--mode elected --max-lease-duration 15s", Some(elected)),
        ("--mode elected --absent-lease-grace 15s", Some(elected)),
        ("--mode plain --fallback-after 5s", Some(as_soon)),
        ("--mode as-client-go --max-lease-duration 20s", None),
        ("--mode as-client-go --fallback-after 5s", Some(at_once)),
        ("--mode as-client-go --absent-lease-grace 0s", Some(at_once)),
        ("--mode plain --binary-version 1.0.0", Some(unread)),
        ("--mode plain --emulation-version 1.0.0", Some(unread)),
        (
            "--mode as-client-go --binary-version 1.0.0",
            Some("registers no"),
        ),
        (
            "--mode plain --strategy OldestEmulationVersion",
            Some(unread),
        ),
    ] {
        let line = ["elector", "--lease", "web"].into_iter();
        let cli = ProgramCli::try_parse_from(line.chain(flags.split(' '))).unwrap();
        match (cli.args.config(""), refusal) {
            (Ok(_), None) => {}
            (Err(error), Some(refusal)) => {
                let text = error.to_string();
                assert!(text.contains(refusal), "{flags}: {text}");
                if refusal != missing {
                    let flag = flags.split(' ').nth(2).unwrap();
                    assert!(text.starts_with(flag), "{flags}: {text}");
                }
            }
            (checked, _) => panic!("{flags}: {checked:?}"),
        }
    }
}

#[test]
fn the_retry_period_follows_a_short_deadline_unless_it_is_given() {
    let short = ["--lease-duration", "5s", "--renew-deadline", "3s"];
    let config_of = |more: &[&str]| config(&[&short[..], more].concat());
    let timing = config_of(&[]).timing.resolved(Duration::MAX);
    assert_eq!(timing.retry_period, Duration::from_secs(1));
    let flags = [&short[..], &["--retry-period", "2s"]].concat();
    let expected = "--retry-period is 2s: must be from 250ms to 1s";
    assert_eq!(parse(&flags).config("").unwrap_err().to_string(), expected);
}

#[test]
fn an_absurd_flag_is_refused_in_one_clear_line_without_a_cluster() {
    let long = "x".repeat(254);
    for (flags, refusal) in [
        (["--name", ""], "--name is empty"),
        (["--name", "a/b"], "--name is refused: metadata.name: "),
        (["--name", &long], "--name is refused: metadata.name: "),
        (
            ["--lease", "Web"],
            "--lease is refused: no Lease can have this name: ",
        ),
        (["--lease", ""], "--lease is refused: spec.leaseName: "),
        (
            ["--namespace", ""],
            "--namespace is refused: metadata.namespace: ",
        ),
        (
            ["--namespace", "a b"],
            "--namespace is refused: metadata.namespace: ",
        ),
        (
            ["--lease-duration", "2562047h"],
            "--lease-duration is 9223369200s: must be from",
        ),
        (
            ["--renew-deadline", "0"],
            "a third of --renew-deadline is 0ns: must be from 100ms to 0ns",
        ),
    ] {
        let usual = ["elector", "--lease", "web", "--binary-version", "1.2.3"];
        let asked = |flag: &&str| *flag != flags[0];
        // Each flag once.
        let kept = usual[1..]
            .chunks(2)
            .filter(|pair| asked(&pair[0]))
            .flatten();
        let all = usual[..1].iter().chain(kept).chain(&flags);
        let Err(error) = ProgramCli::try_parse_from(all).unwrap().args.config("") else {
            panic!("{flags:?} is taken");
        };
        let text = format!("{error:#}");
        assert!(text.starts_with(refusal), "{flags:?}: {text}");
        assert!(!text.contains('\n') && text.len() < 600, "{text}");
    }
}

#[test]
fn a_malformed_version_or_strategy_is_named_with_its_flag_and_the_rule() {
    for (flag, text, rule) in [
        (
            "--emulation-version",
            "v1",
            "is not a semantic version MAJOR.MINOR.PATCH",
        ),
        ("--emulation-version", "", "is empty"),
        (
            "--strategy",
            "mine",
            "is neither OldestEmulationVersion nor a name of the form domain/name",
        ),
    ] {
        let flag = &format!("{flag}={text}");
        let line = ["elector", "--lease", "web", flag];
        let error = ProgramCli::try_parse_from(line).unwrap_err().to_string();
        let name = flag.split('=').next().unwrap();
        assert!(error.contains(name) && error.contains(rule), "{error}");
    }
}

#[test]
fn labels_and_an_owner_of_the_lease_are_typed_in_one_text_each() {
    let usual = config(&[]);
    assert!(usual.lease_labels.is_empty() && usual.lease_owner.is_none());
    let owner = "apps/v1/Deployment/web/5f1e";
    let flags = ["--lease-label=team=web,tier=", "--lease-label=a.b/c=d=e"];
    let refusal = parse(&flags).config("").unwrap_err().to_string();
    assert!(
        refusal.starts_with("--lease-label is refused: metadata.labels: Invalid value: \"d=e\""),
        "{refusal}"
    );
    let given = config(&[flags[0], "--lease-label=team=api", "--lease-owner", owner]);
    let labels = given
        .lease_labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    assert_eq!(labels.collect::<Vec<_>>(), ["team=api", "tier="]);
    let named = Owner::new("apps/v1", "Deployment", "web", "5f1e");
    assert_eq!(given.lease_owner, Some(named));
    let pod = config(&["--lease-owner", "v1/Pod/web-0/5f1e"]);
    assert_eq!(pod.lease_owner, Some(Owner::pod("web-0", "5f1e")));
    for (flag, rule) in [
        ("--lease-label=team", "must be KEY=VALUE"),
        ("--lease-label==web", "must be KEY=VALUE"),
        (
            "--lease-owner=Deployment/web/5f1e",
            "must be API_VERSION/KIND/NAME/UID",
        ),
        (
            "--lease-owner=apps/v1/Deployment//5f1e",
            "must be API_VERSION/KIND/NAME/UID",
        ),
    ] {
        let line = ["elector", "--lease", "web", flag];
        let error = ProgramCli::try_parse_from(line).unwrap_err().to_string();
        let name = flag.split('=').next().unwrap();
        assert!(error.contains(name) && error.contains(rule), "{error}");
    }
}

#[test]
fn a_pod_is_the_owner_by_its_uid_and_the_name_of_the_environment() {
    let args = parse(&["--pod-uid", "5f1e"]);
    let named = |name: &str| args.owner(Some(name.to_owned()));
    let owner = Owner::pod("web-0", "5f1e");
    assert_eq!(named("web-0"), Ok(Some(owner)));
    for nameless in [named(""), args.owner(None)] {
        let refusal = nameless.unwrap_err();
        assert!(refusal.to_string().contains("POD_NAME"), "{refusal}");
    }
    assert_eq!(parse(&[]).owner(Some("web-0".to_owned())), Ok(None));
    let config = args.unchecked("web", &"1.0.0");
    let owner = config.map(|config| config.candidate_owner);
    assert_eq!(owner, args.owner(env::var("POD_NAME").ok()));
    let plain = parse(&["--mode", "plain", "--pod-uid", "5f1e"]);
    let refusal = plain.config("").unwrap_err().to_string();
    let holds = refusal.contains("does not go with --mode plain");
    assert!(holds, "{refusal}");
}
