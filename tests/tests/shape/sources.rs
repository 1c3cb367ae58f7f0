//! The sources of the workspace, parsed, and the files at which its crates begin.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Parsed files by their path from the workspace's root.
pub(crate) struct Sources {
    files: BTreeMap<String, syn::File>,
}

// === impl Sources ===

impl Sources {
    /// Every Rust file below `root`, save build results and hidden folders.
    pub(crate) fn of_workspace(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        read_folder(root, "", &mut files);
        assert!(files.len() > 200, "only {} files", files.len());
        Self { files }
    }

    /// Made-up files: path and text.
    pub(crate) fn from_texts(texts: &[(&str, &str)]) -> Self {
        let parse = |(path, text): &(&str, &str)| ((*path).to_owned(), parse(path, text));
        Self {
            files: texts.iter().map(parse).collect(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Option<&syn::File> {
        self.files.get(path)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &syn::File)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }
}

/// The first file of each library, program and example of the workspace, as cargo names them.
pub(crate) fn crate_roots(workspace: &Path) -> Vec<String> {
    let workspace = workspace.canonicalize().unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(&workspace)
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let targets = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|package| package["targets"].as_array().unwrap());
    let mut roots = Vec::new();
    for target in targets {
        let kind = target["kind"][0].as_str().unwrap();
        if ["lib", "bin", "example"].contains(&kind) {
            let path = Path::new(target["src_path"].as_str().unwrap());
            let path = path.strip_prefix(&workspace).unwrap();
            roots.push(path.to_str().unwrap().to_owned());
        }
    }
    roots
}

fn read_folder(folder: &Path, prefix: &str, files: &mut BTreeMap<String, syn::File>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{prefix}{name}");
        if entry.file_type().unwrap().is_dir() {
            if name != "target" && !name.starts_with('.') {
                read_folder(&entry.path(), &format!("{path}/"), files);
            }
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(entry.path()).unwrap();
            let file = parse(&path, &text);
            files.insert(path, file);
        }
    }
}

fn parse(path: &str, text: &str) -> syn::File {
    syn::parse_file(text).unwrap_or_else(|error| panic!("failed to parse {path}: {error}"))
}
