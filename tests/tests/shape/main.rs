//! The shape of the workspace: imports between the files of a crate form no circle, and a type name stands for one
//! thing. The sources are searched line by line, as rustfmt leaves them; what macros make is not seen.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, iter, mem};

/// Texts of files by their path from the root of the workspace.
type Sources = BTreeMap<String, String>;
/// The segments of a path of Rust. That of a module begins with the folder of its crate.
type RustPath = Vec<String>;
/// Each path in a file by the name that it has there, and whether it is a public import.
type Paths = BTreeMap<String, (RustPath, bool)>;
/// The files of crates that are no tests.
type Modules = BTreeMap<RustPath, Paths>;

/// Names that the shells and the machines share by design: each crate has its own.
const SHARED_NAMES: &str = "Cluster Config ConfigError Decision Effect Event Metrics Scope Timing";

#[test]
fn imports_between_files_form_no_circle() {
    let message = "imports form circles; break each by moving one type to a file of its own";
    assert_eq!(circles(&sources()), BTreeMap::new(), "{message}");
}

#[test]
fn a_type_name_stands_for_one_thing() {
    let message = "names stand for two types; give the later one a name that says more";
    assert_eq!(declared_twice(&sources()), BTreeMap::new(), "{message}");
}

#[test]
fn no_comment_opens_with_a_question_word() {
    let opens = |line: &&str| {
        let comment = line.trim_start().strip_prefix("//").unwrap_or_default();
        let text = comment.trim_start_matches(['/', '!']).trim_start();
        let words = ["What ", "Who ", "Whether ", "How "];
        words.iter().any(|word| text.starts_with(word))
    };
    for (file, text) in sources() {
        // Comments on flags are help texts.
        let found = text.lines().find(opens).filter(|_| !text.contains("clap"));
        assert_eq!(
            found, None,
            "{file}: a plain sentence has a noun for a subject"
        );
    }
}

/// The measured tables that need not say where they were made, until a task signs them, and why not.
const UNSIGNED: &[(&str, &str)] = &[
    ("upstream", "the README names the page that says it"),
    ("builds", "it names its commit, and takes an hour"),
    ("overlays", "it names its processors, and takes an hour"),
    ("transcript of the first start", "it has no figures"),
    ("leadership", OLD),
    ("several electors", OLD),
    ("a_node_is_drained::gate_off", OLD),
    ("etcd_is_restored_from_a_backup::gate_off", OLD),
    ("leaders_rejoin_after_a_kill_each_second::gate_off", OLD),
    ("former_leaders_lead_after_a_minute::gate_off", OLD),
    ("former_leaders_lead_without_an_elector::gate_off", OLD),
    ("former_leaders_lead_after_ten_minutes::gate_off", OLD),
    ("first_start_without_an_elector::gate_off", OLD),
];
const OLD: &str = "recorded before tables were signed; the next record signs it";

#[test]
fn a_measured_table_says_where_it_was_made() {
    let mut unsigned = BTreeSet::new();
    for (_, text) in files(".md") {
        let tables = text.split("<!-- measured: ").skip(1);
        let tables = tables.filter_map(|it| it.split_once("<!-- end -->")?.0.split_once(" -->\n"));
        let is_made = |table: &str| table.lines().any(|line| line.starts_with("Made on "));
        let of_file = tables.filter(|(_, table)| !is_made(table));
        unsigned.extend(of_file.map(|(name, _)| name.to_owned()));
    }
    unsigned.retain(|table| UNSIGNED.iter().all(|(name, _)| name != table));
    assert_eq!(unsigned, BTreeSet::new(), "record them anew");
}

/// The type names that are declared more than once, each with its places.
fn declared_twice(sources: &Sources) -> BTreeMap<String, Vec<String>> {
    let mut places = BTreeMap::<_, Vec<_>>::new();
    for (file, text) in sources {
        for (at, line) in text.lines().enumerate() {
            let mut words = declaration(line).split(|c: char| !c.is_alphanumeric());
            let is_type = match words.next() {
                // Further in, a `type` belongs to its trait.
                Some("type") => !line.starts_with(' '),
                kind => matches!(kind, Some("struct" | "enum" | "trait" | "union")),
            };
            let name = words.next().unwrap_or_default();
            if is_type && name.starts_with(|c: char| c.is_uppercase()) {
                let place = format!("{file}:{}", at + 1);
                places.entry(name.to_owned()).or_default().push(place);
            }
        }
    }
    let is_shared = |name: &String| SHARED_NAMES.split(' ').any(|shared| shared == name);
    places.retain(|name, places| places.len() > 1 && !is_shared(name));
    places
}

/// The files that are in a circle of imports, or between two, each with those of them that it needs.
fn circles(sources: &Sources) -> BTreeMap<String, BTreeSet<String>> {
    let modules = modules(sources);
    let mut needs = BTreeMap::<_, BTreeSet<_>>::new();
    for (own, paths) in &modules {
        for (path, is_public) in paths.values() {
            // To name a module is not to need it, and neither is to hand on what a child has.
            if let Some((of, true)) = resolve(&modules, own, path)
                && of != *own
                && !(*is_public && of.starts_with(own))
            {
                needs.entry(own.join("/")).or_default().insert(of.join("/"));
            }
        }
    }
    loop {
        let before = needs.clone();
        let needed: BTreeSet<_> = before.values().flatten().collect();
        needs.retain(|file, others| {
            others.retain(|other| before.contains_key(other));
            !others.is_empty() && needed.contains(file)
        });
        if needs == before {
            return needs;
        }
    }
}

/// The module to which a path in `own` leads, and whether it goes on to something in there; none of another crate.
fn resolve(modules: &Modules, own: &[String], path: &RustPath) -> Option<(RustPath, bool)> {
    let mut at = own.to_vec();
    for (index, segment) in path.iter().enumerate() {
        let mut child = at.clone();
        child.push(segment.clone());
        match segment.as_str() {
            "crate" => at.truncate(1),
            "super" => drop(at.pop()),
            _ if modules.contains_key(&child) => at = child,
            _ => {
                let import = modules.get(&at)?.get(segment);
                let import = import.filter(|(path, _)| path[0] != *segment);
                match import.and_then(|(path, _)| resolve(modules, &at, path)) {
                    Some((of, false)) => at = of,
                    None if index > 0 => return Some((at, true)),
                    found => return found,
                }
            }
        }
    }
    Some((at, false))
}

fn modules(sources: &Sources) -> Modules {
    let (mut modules, mut tests) = (Modules::new(), Vec::new());
    for (file, text) in sources {
        if let Some((folder, names)) = file.rsplit_once("src/") {
            let names = names.trim_end_matches(".rs").split('/');
            let names = names.filter(|name| !["lib", "main"].contains(name));
            let folder = format!("{folder}src");
            let path: RustPath = iter::once(&*folder).chain(names).map(Into::into).collect();
            let paths = paths(text, &path, &mut tests);
            modules.entry(path).or_insert(paths);
        }
    }
    modules.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
    modules
}

/// The paths in a file, without comments and without what exists in tests only, to which its modules of that kind go.
fn paths(text: &str, own: &RustPath, tests: &mut Vec<RustPath>) -> Paths {
    let (mut paths, mut import, mut test) = (Paths::new(), String::new(), None);
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim_end();
        let indent = line.len() - line.trim_start().len();
        if ["#[test]", "#[cfg(test", "#[cfg(all(test"]
            .iter()
            .any(|it| line.contains(it))
        {
            test = test.or(Some(indent));
        } else if let Some(at) = test {
            if indent == at && line.ends_with([';', '}', ',']) {
                if let Some(module) = declaration(line).strip_prefix("mod ") {
                    tests.push([&own[..], &[module.replace(';', "")]].concat());
                }
                test = None;
            }
        } else if !import.is_empty() || declaration(line).starts_with("use ") {
            import.push_str(line.trim_start());
            if line.ends_with(';') {
                add_import(&mem::take(&mut import), &mut paths);
            }
        } else {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            let named = words.map(|word| (word.to_owned(), (segments(word), false)));
            paths.extend(named.filter(|(_, (path, _))| path.len() > 1));
        }
    }
    paths
}

/// Each name of a `use` declaration.
fn add_import(import: &str, paths: &mut Paths) {
    let (mut groups, mut path) = (vec![String::new()], String::new());
    for c in declaration(import).trim_start_matches("use ").chars() {
        if c == '{' {
            groups.push(groups[groups.len() - 1].clone() + &mem::take(&mut path));
        } else if [',', '}', ';'].contains(&c) {
            let last = mem::take(&mut path);
            let (last, alias) = last.trim().split_once(" as ").unwrap_or((last.trim(), ""));
            let full = segments(&format!("{}{last}", groups[groups.len() - 1]));
            if let Some(name) = full.last().filter(|_| !last.is_empty()) {
                let name = if alias.is_empty() { name } else { alias };
                paths.insert(name.to_owned(), (full, import.starts_with("pub")));
            }
            if c == '}' {
                groups.pop();
            }
        } else {
            path.push(c);
        }
    }
}

fn segments(path: &str) -> RustPath {
    let segments = path
        .split("::")
        .filter(|segment| !["", "self"].contains(segment));
    segments.map(str::to_owned).collect()
}

/// A line without its indentation and without `pub` or `pub(…)`.
fn declaration(line: &str) -> &str {
    let line = line.trim_start();
    let public = line.strip_prefix("pub ");
    let within = || line.strip_prefix("pub(")?.split_once(") ");
    public.or_else(|| Some(within()?.1)).unwrap_or(line)
}

fn sources() -> Sources {
    let sources = files(".rs");
    assert!(sources.len() > 200, "only {} files", sources.len());
    sources
}

/// The files of the workspace with that end.
fn files(end: &str) -> Sources {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../");
    let (mut found, mut folders) = (Sources::new(), vec![String::new()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.to_owned() + &folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = format!("{folder}{name}");
            if name.ends_with(end) {
                found.insert(path, fs::read_to_string(entry.path()).unwrap());
            } else if entry.path().is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(format!("{path}/"));
            }
        }
    }
    found
}

#[test]
fn a_circle_of_two_files_and_one_of_three_are_found() {
    let root = ("src/lib.rs", "mod a;\nmod b;\npub use a::A;");
    let a = (
        "src/a.rs",
        "use crate::{\n    b::{self, B as D},\n};\nmod c;",
    );
    let b = ("src/b.rs", "pub struct B(crate::A);");
    assert_eq!(in_circles([root, a, b]), ["src/a", "src/b"]);
    let b = ("src/b.rs", "use super::a::c;\nfn f() {\n    c::g()\n}");
    let c = ("src/a/c.rs", "fn g(_: super::A) {}");
    assert_eq!(in_circles([root, a, b, c]), ["src/a", "src/a/c", "src/b"]);
}

#[test]
fn tests_modules_and_names_that_a_parent_hands_on_make_no_circle() {
    let a = "mod b;\n#[cfg(test)]\nmod tests;\npub(crate) use b::B;\nuse self::b as c;\n\
             #[cfg(test)]\nmod inline {\n    use super::b::B;\n}";
    let b = ("src/a/b.rs", "use super::A; // crate::main::A");
    let tests = ("src/a/tests.rs", "use super::b::B;");
    assert_eq!(in_circles([("src/a.rs", a), b, tests]), [""; 0]);
}

#[test]
fn a_name_that_is_declared_twice_is_found() {
    let a = "pub struct A;\nimpl I for A {\n    type B = A;\n}\npub(crate) trait I<T> {}";
    let b = "fn f() {\n    enum A {}\n}\npub type B = u8;\nunion B {}\nstruct C(u8);";
    let found = declared_twice(&made_up([("a", a), ("b", b)])).into_values();
    assert_eq!(found.flatten().collect::<String>(), "a:1b:2b:4b:5");
}

fn made_up<const N: usize>(files: [(&str, &str); N]) -> Sources {
    files.map(|(file, text)| (file.into(), text.into())).into()
}

fn in_circles<const N: usize>(files: [(&str, &str); N]) -> Vec<String> {
    circles(&made_up(files)).into_keys().collect()
}
