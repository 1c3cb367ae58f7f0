//! Replays the kept corpus, what once failed and what leads deep, and histories of it that went wrong a little.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use elector_model::{drive_candidate, drive_history, drive_objects};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};
use serde_json::{Deserializer, Map, Value};

/// The scripts of one driver, by name.
fn scripts(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(folder);
    let entries = fs::read_dir(&folder).expect("the corpus is there");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let script = fs::read(&path).expect("readable");
        (path, script)
    };
    paths.into_iter().map(read).collect()
}

fn replay(folder: &str, drive: fn(&[u8])) {
    let scripts = scripts(folder);
    assert!(scripts.len() > 3, "an empty corpus proves nothing");
    for (path, script) in scripts {
        eprintln!("{}", path.display());
        drive(&script);
    }
}

#[test]
fn every_script_of_objects_holds() {
    replay("objects", drive_objects);
}

#[test]
fn every_script_of_a_candidate_holds() {
    replay("candidate", drive_candidate);
}

#[test]
fn every_recording_holds() {
    replay("history", drive_history);
}

/// A script; what fails is shown as it can be kept in the corpus.
#[derive(Clone)]
struct ChangedScript(String);

/// A change of the whole list of documents, or of one value somewhere in it.
#[derive(Clone, Debug)]
struct ScriptChange {
    place: Option<Index>,
    kind: u8,
    index: Index,
    name: String,
    value: Value,
}

/// Scripts of the corpus with some values added, taken away or replaced by others of the corpus, and now and then with
/// another letter.
fn changed_scripts(folder: &str) -> impl Strategy<Value = ChangedScript> + use<> {
    let read = |(_, script): (PathBuf, Vec<u8>)| {
        let text = String::from_utf8_lossy(&script);
        let documents = Deserializer::from_str(&text).into_iter();
        Value::Array(documents.map_while(Result::ok).collect())
    };
    let scripts: Vec<_> = scripts(folder).into_iter().map(read).collect();
    let documents: Vec<_> = scripts
        .iter()
        .filter_map(Value::as_array)
        .flatten()
        .cloned()
        .collect();
    let values: Vec<_> = scripts.iter().flat_map(parts).cloned().collect();
    let names: BTreeSet<_> = values
        .iter()
        .filter_map(Value::as_object)
        .flat_map(Map::keys)
        .cloned()
        .collect();
    let nested = |depth| (0..depth).fold(Value::Null, |inner, _| vec![inner].into());
    let value = prop_oneof![
        8 => select(documents),
        16 => select(values),
        2 => any::<i64>().prop_map(Value::from),
        2 => prop_oneof![".{0,8}", "[a-z]{0,2}[名é]{60,300}", "[a-z]{250,300}", "[a-z]{9000}"].prop_map(Value::from),
        1 => (100..140).prop_map(nested),
    ];
    let names = select(names.into_iter().collect::<Vec<_>>());
    let change = (
        option::of(any::<Index>()),
        0..4_u8,
        any::<Index>(),
        names,
        value,
    );
    let change = change.prop_map(|(place, kind, index, name, value)| ScriptChange {
        place,
        kind,
        index,
        name,
        value,
    });
    let letter = (
        any::<Index>(),
        select("019-./:Z\"{},aé名\0".chars().collect::<Vec<_>>()),
    );
    let letter = option::weighted(0.2, letter);
    (select(scripts), vec(change, 0..12), letter).prop_map(|(mut script, changes, letter)| {
        changes
            .into_iter()
            .for_each(|change| change.apply(&mut script));
        let documents = script.as_array().into_iter().flatten();
        let text: String = documents.map(|document| format!("{document}\n")).collect();
        let mut letters: Vec<_> = text.chars().collect();
        if let Some((index, letter)) = letter.filter(|_| !letters.is_empty()) {
            *index.get_mut(&mut letters) = letter;
        }
        ChangedScript(letters.into_iter().collect())
    })
}

/// A value and everything in it.
fn parts(value: &Value) -> Vec<&Value> {
    let inner: Vec<_> = match value {
        Value::Array(list) => list.iter().flat_map(parts).collect(),
        Value::Object(map) => map.values().flat_map(parts).collect(),
        _ => Vec::new(),
    };
    [vec![value], inner].concat()
}

/// The same part of a value, to be changed.
fn part_mut<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|inner| part_mut(inner, left)),
        Value::Object(map) => map.values_mut().find_map(|inner| part_mut(inner, left)),
        _ => None,
    }
}

// === impl ScriptChange ===

impl ScriptChange {
    fn apply(self, script: &mut Value) {
        let Self {
            place,
            kind,
            index,
            name,
            value,
        } = self;
        let place = place.map_or(0, |place| place.index(parts(script).len()));
        match (kind, part_mut(script, &mut { place })) {
            (0, Some(Value::Array(list))) => list.insert(index.index(list.len() + 1), value),
            (0, Some(Value::Object(map))) => drop(map.insert(name, value)),
            (1, Some(Value::Array(list))) if !list.is_empty() => {
                list.remove(index.index(list.len()));
            }
            (1, Some(Value::Object(map))) if !map.is_empty() => {
                let name = map.keys().nth(index.index(map.len())).cloned();
                map.remove(&name.unwrap_or_default());
            }
            (_, Some(part)) if place > 0 => *part = value,
            _ => {}
        }
    }
}

impl fmt::Debug for ChangedScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_object_breaks_an_elector(script in changed_scripts("objects")) {
        drive_objects(script.0.as_bytes());
    }

    #[test]
    fn no_object_breaks_a_candidate(script in changed_scripts("candidate")) {
        drive_candidate(script.0.as_bytes());
    }

    #[test]
    fn no_recording_breaks_the_checker(script in changed_scripts("history")) {
        drive_history(script.0.as_bytes());
    }

    #[test]
    fn no_bytes_break_a_driver(bytes in vec(any::<u8>(), 0..200), text in ".{0,80}") {
        for script in [bytes.as_slice(), text.as_bytes()] {
            drive_objects(script);
            drive_candidate(script);
            drive_history(script);
        }
    }
}
