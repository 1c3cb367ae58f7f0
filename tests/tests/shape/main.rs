//! The shape of the workspace: imports between files form no cycle, and a type name stands for one thing.
//!
//! The sources are parsed, not searched. What macros make is not seen, and neither are the arguments of macros.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod cycles;
mod imports;
mod made_up;
mod modules;
mod paths;
mod sources;
mod type_names;

use std::path::Path;

use sources::Sources;

/// Names that the shells and the machines share by design: each crate has its own.
const SHARED_NAMES: &[&str] = &[
    "Config",
    "ConfigError",
    "Decision",
    "Effect",
    "Event",
    "Scope",
];

#[test]
fn imports_between_files_form_no_cycle() {
    let sources = Sources::of_workspace(workspace());
    let roots = sources::crate_roots(workspace());
    assert!(roots.len() > 10, "only {roots:?}");
    let mut report = String::new();
    for root in &roots {
        let imports = imports::between_files(&modules::Modules::of_crate(&sources, root));
        for cycle in cycles::all(&imports) {
            report.push_str(&cycles::describe(&cycle, &imports));
        }
    }
    assert!(
        report.is_empty(),
        "imports form cycles; break each by moving one type to a file of its own:\n{report}"
    );
}

#[test]
fn a_type_name_stands_for_one_thing() {
    let sources = Sources::of_workspace(workspace());
    let mut report = String::new();
    for (name, places) in type_names::met_twice(&sources) {
        let name = name.as_str();
        if !SHARED_NAMES.contains(&name) {
            report.push_str(&format!("{name}: {}\n", places.join(", ")));
        }
    }
    assert!(
        report.is_empty(),
        "names stand for two types; give the later one a name that says more:\n{report}"
    );
}

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
