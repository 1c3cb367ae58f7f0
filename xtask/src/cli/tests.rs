use clap::CommandFactory as _;

use super::*;

#[test]
fn the_command_line_is_consistent() {
    XtaskArgs::command().debug_assert();
    XtaskArgs::try_parse_from(["xtask", "demo", "--kubernetes", "1.34"]).unwrap_err();
}

#[test]
fn up_reads_every_option() {
    let line = "xtask cluster up --gate on --serve-v1beta1 false --kubernetes 1.34 --port 6443 --dir /c --fsync \
                --apiserver-flag=--v=4";
    let DevelopmentTask::Cluster(ClusterTask::Up(options)) =
        XtaskArgs::try_parse_from(line.split_whitespace())
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
    assert_eq!(options, expected);
    let line = XtaskArgs::try_parse_from(["xtask", "cluster", "up"]).unwrap();
    assert!(
        matches!(line.task, DevelopmentTask::Cluster(ClusterTask::Up(options)) if options == Options::default())
    );
}
