use clap::CommandFactory as _;

use super::*;

#[test]
fn the_command_line_is_consistent() {
    XtaskArgs::command().debug_assert();
}

#[test]
fn a_demo_is_embedded_unless_it_is_to_be_real() {
    let kind = |line: &str| match XtaskArgs::try_parse_from(line.split(' ')).unwrap().task {
        DevelopmentTask::Demo(args) => args.kind(),
        task => panic!("not a demo: {task:?}"),
    };
    let (once, plain) = (false, false);
    assert_eq!(kind("xtask demo"), DemoKind::Embedded { once, plain });
    let (once, plain) = (true, true);
    assert_eq!(
        kind("xtask demo --plain --once"),
        DemoKind::Embedded { once, plain }
    );
    let options = Options {
        kubernetes: Some("1.34".parse().unwrap()),
        ..Options::default()
    };
    assert_eq!(
        kind("xtask demo --real --kubernetes 1.34"),
        DemoKind::Real(options)
    );
    XtaskArgs::try_parse_from(["xtask", "demo", "--kubernetes", "1.34"]).unwrap_err();
}

#[test]
fn a_test_program_has_half_an_hour_unless_told_otherwise() {
    let timeout = |line: &str| match XtaskArgs::try_parse_from(line.split(' ')).unwrap().task {
        DevelopmentTask::Test { timeout, .. } => timeout.as_secs(),
        task => panic!("not a test: {task:?}"),
    };
    assert_eq!(timeout("xtask test"), 1_800);
    assert_eq!(timeout("xtask test --timeout 90s"), 90);
    assert_eq!(timeout("xtask test --timeout 2h"), 7_200);
    for bad in ["0s", "-5m", "soon", "5"] {
        XtaskArgs::try_parse_from(["xtask", "test", "--timeout", bad]).unwrap_err();
    }
}

#[test]
fn another_build_is_a_program_and_is_found_from_everywhere() {
    let beside = |path: &str| {
        XtaskArgs::try_parse_from(["xtask", "test", "--long", "--beside", path]).map(|args| {
            match args.task {
                DevelopmentTask::Test { beside, long, .. } => (beside, long),
                task => panic!("not a test: {task:?}"),
            }
        })
    };
    let (found, long) = beside("Cargo.toml").unwrap();
    assert!(long && found.is_some_and(|path| path.is_absolute()));
    for bad in ["nowhere/to/be/found", "src"] {
        let error = beside(bad).unwrap_err().to_string();
        assert!(error.contains("there is no such program"), "{error}");
    }
}

#[test]
fn up_reads_every_option() {
    let line = "xtask cluster up --gate on --serve-v1beta1 false --kubernetes 1.34 --port 6443 --dir /c --fsync \
                --apiserver-flag=--v=4";
    let DevelopmentTask::Cluster(ClusterTask::Up(args)) =
        XtaskArgs::try_parse_from(line.split(' ').filter(|word| !word.is_empty()))
            .unwrap()
            .task
    else {
        panic!("not up");
    };
    let expected = Options {
        gate: true,
        serve_candidates: false,
        kubernetes: Some("1.34".parse().unwrap()),
        port: Some(6443),
        dir: Some("/c".into()),
        fsync: true,
        apiserver_flags: vec!["--v=4".to_owned()],
    };
    assert_eq!(args.options(), expected);
}
