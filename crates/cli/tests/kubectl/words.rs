//! `kubectl elector words`.

use elector_apiserver::Config;
use serde_json::{Value, json};

use crate::server::{TestServer, ago, text, words};

fn annotate(server: &TestServer, resource: &str, key: (&str, &str), name: &str, value: &str) {
    server.api.put(resource, key, |fields| {
        fields["metadata"]["annotations"][name] = value.into();
    });
}

/// Two namespaces with words of each kind: one that counts, ones that are over, too far ahead, or unreadable.
fn server() -> TestServer {
    let server = TestServer::start(Config::default());
    for (namespace, lease) in [("default", "web"), ("default", "till"), ("shop", "web")] {
        server.lease((namespace, lease), &json!({}));
        server.candidate((namespace, lease), lease, "1.1.0");
    }
    let word = |key, name, value: &str| annotate(&server, "leases", key, name, value);
    word(("default", "web"), "elector.dev/freeze", &ago(-3600));
    let prefers = format!("gone until {}", ago(-1800));
    word(("default", "web"), "elector.dev/prefer", &prefers);
    word(("default", "till"), "elector.dev/freeze", &ago(60));
    word(("shop", "web"), "elector.dev/freeze", &ago(-48 * 3600));
    word(("shop", "web"), "elector.dev/prefer", "web for ever");
    let name = "elector.dev/stand-down";
    let stands_down = |key, value: &str| annotate(&server, "leasecandidates", key, name, value);
    stands_down(("default", "web"), "true");
    stands_down(("shop", "web"), &ago(-600));
    server
}

/// Each word in the order of the list: namespace, lease, word, candidate, state, why.
fn said(server: &TestServer, arguments: &[&str]) -> Vec<String> {
    let rows = server.says(&[&["words", "-o", "json"], arguments].concat());
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let line = |row: &Value| {
        let fields = ["namespace", "lease", "word", "candidate", "state", "why"];
        let fields = fields.map(|name| row[name].as_str().unwrap_or("-").to_owned());
        fields.join(" ")
    };
    rows.iter().map(line).collect()
}

#[test]
fn each_word_is_listed_with_its_effect() {
    let server = server();
    let expected = [
        "default till freeze - over -",
        "default web freeze - counts -",
        "default web prefer gone counts there is no such candidate",
        "default web stand-down web counts -",
        "shop web freeze - ignored is more than a day ahead",
        "shop web prefer - ignored \"web for ever\" must be CANDIDATE until TIME",
        "shop web stand-down web counts -",
    ];
    assert_eq!(said(&server, &["-A"]), expected);
    assert_eq!(said(&server, &["-n", "shop"]), expected[4..]);
}

#[test]
fn the_command_beside_a_word_undoes_it() {
    let server = server();
    let rows = server.says(&["words", "-A", "-o", "json"]);
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    for row in &rows {
        let undo = row["undo"].as_str().unwrap();
        let words: Vec<_> = undo.split(' ').collect();
        assert_eq!(words[..2], ["kubectl", "elector"]);
        server.says(&words[2..]);
    }
    let nothing = server.run(&["words", "-A"]);
    assert_eq!(text(&nothing.stdout), "");
    assert_eq!(text(&nothing.stderr), "No resources found\n");
    assert_eq!(nothing.status.code(), Some(0));
}

#[test]
fn the_table_says_how_long_is_left() {
    let table = server().says(&["words"]);
    let lines = words(&table);
    let head = "LEASE WORD CANDIDATE STATE UNTIL LEFT UNDO";
    assert_eq!(lines[0].join(" "), head);
    let frozen = &lines[2];
    assert_eq!(frozen[..4], ["web", "freeze", "<none>", "counts"]);
    let left = frozen[5];
    assert!(left.starts_with("59m") || left.starts_with("60m"), "{left}");
    let undo = "kubectl elector unfreeze web -n default";
    assert_eq!(frozen[6..].join(" "), undo);
}

#[test]
fn check_names_the_words_that_are_left() {
    let server = server();
    let report = server.run(&["check", "-A", "-o", "json"]);
    let lines: Vec<Value> = serde_json::from_slice(&report.stdout).unwrap();
    let words = lines.iter().filter(|line| line["check"] == "words");
    let words: Vec<_> = words.collect();
    assert_eq!(words.len(), 6, "not those that are over: {words:#?}");
    let start = "default/web is frozen until ";
    assert!(words[0]["result"].as_str().unwrap().starts_with(start));
    let fix = "to end it: kubectl elector unfreeze web -n default";
    assert_eq!(words[0]["fix"], fix);
    let link = words[0]["link"].as_str().unwrap();
    assert!(link.ends_with("operate.md#forgotten-words"), "{link}");
}
