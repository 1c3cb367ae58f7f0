//! Paths as the sources write them: of `use` declarations and of everything else.

use std::fmt;

use syn::{ItemUse, UseTree};

/// The segments of a path, without generic arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Path(Vec<String>);

/// One name that a `use` declaration brings in.
pub(crate) struct ImportedName {
    pub(crate) path: Path,
    /// The name that it gets; none for `as _`.
    pub(crate) name: Option<String>,
    pub(crate) is_glob: bool,
    pub(crate) line: usize,
}

// === impl Path ===

impl Path {
    /// None for a path that begins outside every crate (`::std`), and for a part of a type's own (`Self`).
    pub(crate) fn of(path: &syn::Path) -> Option<Self> {
        let segments = path.segments.iter().map(|part| part.ident.to_string());
        let segments: Vec<String> = segments.collect();
        let is_own = segments.first().is_some_and(|first| first == "Self");
        (path.leading_colon.is_none() && !is_own).then_some(Self(segments))
    }

    pub(crate) fn segments(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("::"))
    }
}

/// Everything that a `use` declaration names, nested groups flattened.
pub(crate) fn imported(item: &ItemUse) -> Vec<ImportedName> {
    let mut imports = Vec::new();
    if item.leading_colon.is_none() {
        flatten(&item.tree, &mut Vec::new(), &mut imports);
    }
    imports
}

fn flatten(tree: &UseTree, before: &mut Vec<String>, imports: &mut Vec<ImportedName>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, imports);
            before.pop();
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                flatten(tree, before, imports);
            }
        }
        UseTree::Name(leaf) => {
            let path = extended(before, &leaf.ident);
            imports.push(ImportedName {
                name: path.0.last().cloned(),
                path,
                is_glob: false,
                line: leaf.ident.span().start().line,
            });
        }
        UseTree::Rename(leaf) => {
            let name = leaf.rename.to_string();
            imports.push(ImportedName {
                path: extended(before, &leaf.ident),
                name: (name != "_").then_some(name),
                is_glob: false,
                line: leaf.ident.span().start().line,
            });
        }
        UseTree::Glob(leaf) => imports.push(ImportedName {
            path: Path(before.clone()),
            name: None,
            is_glob: true,
            line: leaf.star_token.spans[0].start().line,
        }),
    }
}

/// `self` at the end of a path is the path.
fn extended(before: &[String], last: &syn::Ident) -> Path {
    let mut segments = before.to_vec();
    if last != "self" || segments.is_empty() {
        segments.push(last.to_string());
    }
    Path(segments)
}
