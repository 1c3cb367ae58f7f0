//! `kubectl elector status`.

use elector_api::parse_time;
use elector_apiserver::Config;
use serde_json::{Value, json};

use crate::server::{TestServer, ago, assert_has, failure, text, words};

/// A namespace with a lease of each kind.
fn server() -> TestServer {
    let server = TestServer::start(Config::default());
    server.lease(("default", "led"), &json!({}));
    server.candidate(("default", "a"), "led", "1.1.0");
    server.candidate(("default", "b"), "led", "1.2.0");
    // Its holder died a minute ago.
    let dead = json!({"holderIdentity": "gone", "leaseDurationSeconds": 15, "renewTime": ago(60)});
    server.lease(("default", "expired"), &dead);
    server.candidate(("default", "c"), "expired", "1.1.0");
    let preferred = json!({"holderIdentity": "e", "preferredHolder": "d", "strategy": "OldestEmulationVersion"});
    server.lease(("default", "moving"), &preferred);
    server.candidate(("default", "d"), "moving", "1.1.0");
    server.candidate(("default", "e"), "moving", "1.2.0");
    server.candidate(("default", "f"), "missing", "1.1.0");
    // Its candidates are gone, and nobody else has to do with the plain lease.
    let left = json!({"holderIdentity": "", "strategy": "OldestEmulationVersion"});
    server.lease(("default", "left"), &left);
    server.lease(("default", "plain"), &json!({"holderIdentity": "x"}));
    server.candidate(("shop", "g"), "till", "1.1.0");
    server.lease(("shop", "till"), &json!({"holderIdentity": "g"}));
    server
}

#[test]
fn a_table_says_of_each_lease_who_leads_since_when_who_is_next_and_why() {
    let server = server();
    assert_eq!(
        server.says(&["status"]),
        "\
LEASE     STATE        HOLDER   SINCE    TERM     NEXT     CANDIDATES   WHY
expired   Leaderless   gone     3h       3        c        1/1          gone has not renewed for 15s; c is the only candidate
led       Led          a        3h       3        <none>   2/2          a has the older emulation version 1.1.0 (not 1.2.0)
left      Leaderless   <none>   <none>   3        <none>   0/0          no candidate names this lease
missing   Leaderless   <none>   <none>   <none>   f        1/1          no Lease exists, and one that was deleted may have \
a leader for another 15s; f is the only candidate
moving    Led          e        3h       3        d        2/2          e has been asked to make room for d
"
    );
    // The namespace of the context, one that is named, and all of them.
    let till = "till   Led   g   3h   3   <none>   1/1   g is the only eligible candidate";
    for arguments in [&["--context=shop"][..], &["-n", "shop"]] {
        let said = server.says(&[&["status", "--no-headers"], arguments].concat());
        assert_eq!(said.trim_end(), till);
    }
    let all = server.says(&["status", "-A", "-n", "ignored"]);
    assert_eq!(all.lines().count(), 7, "{all}");
    assert!(all.starts_with("NAMESPACE   LEASE     STATE "), "{all}");
    assert!(all.contains("\nshop        till      Led   "), "{all}");
}

/// (R16) An operator who wrote it past the plugin waits in vain.
#[test]
fn a_word_that_ends_more_than_a_day_ahead_is_told_and_one_that_is_over_is_not() {
    let server = server();
    server.api.put("leases", ("default", "led"), |fields| {
        fields["metadata"]["annotations"] = json!({
            "elector.dev/prefer": "b until 2999-01-01T00:00:00Z", "elector.dev/freeze": ago(60),
        });
    });
    let said = server.says(&["status", "led", "--no-headers"]);
    let end = "a has the older emulation version 1.1.0 (not 1.2.0); elector.dev/prefer of b until \
               2999-01-01T00:00:00.000000Z is more than a day ahead";
    assert!(said.lines().next().unwrap().ends_with(end), "{said}");
}

#[test]
fn one_lease_is_shown_with_its_candidates_even_if_it_has_none() {
    let server = server();
    let said = server.says(&["status", "led"]);
    let words = words(&said);
    let led = ["led", "Led", "a", "3h", "3", "<none>", "2/2"];
    assert_eq!(words[1][..7], led);
    assert_eq!(words[2][..4], ["a", "rank", "1", "1.1.0"]);
    assert_eq!(words[3][..4], ["b", "rank", "2", "1.2.0"]);
    let plain = server.says(&["status", "plain"]);
    assert!(plain.contains("no candidate names this lease"), "{plain}");
    let wide = server.says(&["status", "-o", "wide"]);
    let header = "CANDIDATES   RENEWED   DURATION   STRATEGY                 WHY";
    assert!(wide.lines().next().unwrap().ends_with(header), "{wide}");
    assert!(wide.contains("  rank 2       1.2.0"), "{wide}");
}

#[test]
fn the_json_form_is_stable_and_yaml_is_the_same() {
    let server = server();
    let rows: Value = serde_json::from_str(&server.says(&["status", "led", "-o", "json"])).unwrap();
    let lease = server.api.object("leases", ("default", "led")).unwrap();
    let candidate = |name: &str, rank, version: &str, why: &str| {
        let object = server.api.object("leasecandidates", ("default", name));
        let object = object.unwrap();
        json!({
            "name": name, "eligible": true, "rank": rank, "binaryVersion": version, "emulationVersion": version,
            "renewed": object["spec"]["renewTime"], "why": why,
        })
    };
    let expected = json!([{
        "namespace": "default", "lease": "led", "state": "led", "holder": "a",
        "since": lease["spec"]["acquireTime"], "renewed": lease["spec"]["renewTime"],
        "leaseDurationSeconds": 600, "leaderlessSince": null, "freeAt": null, "term": 3, "next": "", "strategy": "OldestEmulationVersion", "action": "none",
        "why": "a has the older emulation version 1.1.0 (not 1.2.0)",
        "candidates": [
            candidate("a", 1, "1.1.0", "has the older emulation version 1.1.0 (not 1.2.0)"),
            candidate("b", 2, "1.2.0", "a has the older emulation version 1.1.0 (not 1.2.0)"),
        ],
    }]);
    assert_eq!(rows, expected);
    let yaml = server.says(&["status", "led", "-o", "yaml"]);
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), expected);
    let empty = server.says(&["status", "-n", "empty", "-o", "json"]);
    assert_eq!(empty, "[]\n");
}

/// A first start (R6): the wait is that of the longest duration that is announced, from what is known of its beginning.
#[test]
fn a_lease_that_was_never_led_is_shown_with_the_end_of_its_wait() {
    let server = TestServer::start(Config::default());
    for (lease, candidate) in [("missing", "a"), ("born", "b"), ("free", "c")] {
        server.candidate(("default", candidate), lease, "1.1.0");
        let key = ("default", candidate);
        server.api.put("leasecandidates", key, |fields| {
            fields["metadata"]["annotations"]["elector.dev/lease-duration"] = "40s".into();
        });
    }
    let unheld = json!({"holderIdentity": "", "strategy": "OldestEmulationVersion"});
    for (lease, age) in [("born", 10), ("free", 60)] {
        server.api.put("leases", ("default", lease), |fields| {
            fields["metadata"]["creationTimestamp"] = ago(age).into();
            fields.insert("spec".to_owned(), unheld.clone());
        });
    }
    let seconds_from_now = |time: &Value| {
        let time = parse_time(time.as_str().unwrap()).unwrap();
        let now = parse_time(&ago(0)).unwrap();
        (time.as_micros() - now.as_micros()) / 1_000_000
    };
    let rows: Value = serde_json::from_str(&server.says(&["status", "-o", "json"])).unwrap();
    let row = |lease: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["lease"] == lease).unwrap()
    };
    let (missing, born, free) = (row("missing"), row("born"), row("free"));
    let waits = seconds_from_now(&missing["freeAt"]);
    assert!((20..=40).contains(&waits), "{waits}");
    let why = "no Lease exists, and one that was deleted may have a leader for another 40s; a is the only candidate";
    assert_eq!(missing["why"], why);
    let waits = seconds_from_now(&born["freeAt"]);
    assert!((10..=30).contains(&waits), "{waits}");
    let why = born["why"].as_str().unwrap();
    assert_has(why, "a former holder may lead for another");
    assert_eq!(free["freeAt"], Value::Null);
}

#[test]
fn nothing_found_is_no_error_and_a_lease_that_does_not_exist_is_one() {
    let server = server();
    for namespace in ["empty", "other"] {
        let output = server.run(&["status", "-n", namespace]);
        let said = format!("No resources found in {namespace} namespace.\n");
        assert_eq!(text(&output.stderr), said);
        assert_eq!(text(&output.stdout), "");
        assert_eq!(output.status.code(), Some(0));
    }
    for command in ["status", "explain"] {
        let output = server.run(&[command, "nope"]);
        let line = "error: failed to find lease default/nope: there is no such Lease, and no candidate names it\n";
        assert_eq!(failure(&output), line);
        assert_eq!(text(&output.stdout), "");
    }
    let nowhere = failure(&server.run(&["status", "--kubeconfig=/nowhere"]));
    assert!(nowhere.starts_with("error: failed to read kubeconfig /nowhere: "));
}

#[test]
fn a_lease_that_cannot_be_read_is_shown_and_named() {
    let server = server();
    server.lease(("default", "led"), &json!({"leaseDurationSeconds": "x"}));
    let output = server.run(&["status", "led"]);
    let fault = "Lease default/led: spec.leaseDurationSeconds: Invalid value: \"x\": must be a 32-bit integer";
    assert_eq!(failure(&output), format!("error: {fault}\n"));
    let table = text(&output.stdout);
    let unreadable = ["led", "Unreadable", "<none>", "<none>", "<none>", "<none>"];
    assert_eq!(words(&table)[1][..6], unreadable);
    assert_has(&table, fault);
}

#[test]
fn what_tenants_write_comes_out_escaped_and_cut() {
    let server = TestServer::start(Config::default());
    let long = "y".repeat(100_000);
    let hostile = format!("\u{1b}]0;owned\u{7}\u{9b}2J\nLEASE  \u{202e}x\u{2028}{long}");
    let spec = json!({"holderIdentity": &hostile, "preferredHolder": &hostile});
    server.lease(("default", "web"), &spec);
    server.candidate(("default", "a"), "web", &hostile);
    server.candidate(("default", "b"), "web", "1.0.0");
    let key = ("default", "b");
    server.api.put("leasecandidates", key, |fields| {
        fields["spec"]["strategy"] = hostile.clone().into();
    });
    let is_printable = |c: char| c == '\n' || c == '…' || (' '..='~').contains(&c);
    for arguments in ["status", "status web", "status -o wide", "explain"] {
        let output = server.run(&arguments.split(' ').collect::<Vec<_>>());
        for said in [text(&output.stdout), text(&output.stderr)] {
            assert!(said.chars().all(is_printable), "{arguments:?}: {said:?}");
            let longest = said.lines().map(str::len).max().unwrap_or(0);
            assert!(longest < 3000, "{arguments:?}: {longest} characters");
        }
        let table = text(&output.stdout);
        assert_has(&table, r"\u{1b}]0;owned\u{7}\u{9b}2J\nLEASE");
        assert!(table.lines().count() <= 4, "{table}");
    }
    for format in ["json", "yaml"] {
        let document = server.says(&["status", "-o", format]);
        assert!(document.chars().all(is_printable), "{document:?}");
        let rows: Value = serde_saphyr::from_str(&document).unwrap();
        // Documents keep exact values.
        assert_eq!(rows[0]["holder"], hostile.as_str(), "{format}");
    }
}

#[test]
fn a_watch_prints_a_line_for_each_change_and_none_for_a_renewal() {
    let server = TestServer::start(Config::default());
    server.lease(("default", "web"), &json!({}));
    server.candidate(("default", "a"), "web", "1.1.0");
    let mut plugin = server.start_plugin(&["status", "-w"]);
    assert!(plugin.line().starts_with("LEASE   STATE"));
    assert!(plugin.line().starts_with("web     Led     a"));
    server.lease(("default", "web"), &json!({"renewTime": ago(0)}));
    let next = json!({"holderIdentity": "b", "leaseTransitions": 4});
    server.lease(("default", "web"), &next);
    let line = plugin.line();
    assert!(line.starts_with("web     Led     b"), "{line}");
    // Nothing is written when a holder dies; that it is late shows all the same.
    let dying = json!({"leaseDurationSeconds": 2, "renewTime": ago(0)});
    server.lease(("default", "web"), &dying);
    while !plugin.line().contains("Leaderless") {}
}

#[test]
fn groups_are_shown_below_the_leases_with_the_parts_of_each_member() {
    let server = TestServer::start(Config::default());
    for part in ["web-0", "web-1"] {
        let holder = json!({"holderIdentity": format!("a.{part}")});
        server.lease(("default", part), &holder);
        for member in ["a", "b"] {
            let key = ("default", &*format!("{member}.{part}"));
            server.candidate(key, part, "1.1.0");
            server.api.put("leasecandidates", key, |fields| {
                fields["metadata"]["labels"] = json!({"elector.dev/group": "web"});
                fields["metadata"]["annotations"] = json!({"elector.dev/member": member});
            });
        }
    }
    let said = server.says(&["status"]);
    let groups =
        "GROUP   PARTS   LED   TO MOVE   MEMBERS\nweb     2       2     0         a=2 b=0\n";
    assert_eq!(said.split_once("\n\n").unwrap().1, groups);
    let one = server.says(&["status", "web-1", "-A", "--no-headers"]);
    assert!(one.contains("\n\nNAMESPACE   GROUP "), "{one}");
    let rows: Value = serde_json::from_str(&server.says(&["status", "-o", "json"])).unwrap();
    let group = json!({"name": "web", "assigned": "a.web-1"});
    assert_eq!(rows[1]["group"], group);
}
