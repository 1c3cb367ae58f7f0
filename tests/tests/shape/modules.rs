//! The modules of a crate, and to what each name in them leads.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Attribute, Item, ItemMod, ItemUse, Meta, Token, Visibility};

use crate::paths::{self, Path};
use crate::sources::Sources;

/// The modules of one crate that are no tests; the first is its root.
pub(crate) struct Modules<'a> {
    modules: Vec<Module<'a>>,
}

/// A module: a file, or a part of one.
pub(crate) struct Module<'a> {
    pub(crate) file: String,
    pub(crate) items: &'a [Item],
    parent: Option<usize>,
    names: BTreeMap<String, Vec<Named>>,
    globs: Vec<Path>,
}

/// What a name in a module stands for. It may stand for several: a module and a function, for instance.
enum Named {
    Module(usize),
    /// Declared here.
    Item,
    /// Brought in by `use`.
    Import(Path),
}

/// To what a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Module(usize),
    /// Something that this module declares.
    ItemOf(usize),
}

// === impl Modules ===

impl<'a> Modules<'a> {
    /// The modules of the crate that begins at the file `root`.
    pub(crate) fn of_crate(sources: &'a Sources, root: &str) -> Self {
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut modules = Self {
            modules: Vec::new(),
        };
        modules.add_file(sources, root, folder, None);
        modules
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Module<'a>)> {
        self.modules.iter().enumerate()
    }

    pub(crate) fn file(&self, module: usize) -> &str {
        &self.modules[module].file
    }

    /// To what a path in `module` leads; nowhere, if it leaves the crate.
    pub(crate) fn resolve(&self, module: usize, path: &Path) -> Vec<Destination> {
        self.resolve_unless_seen(module, path, &mut BTreeSet::new())
    }

    /// Whether a `use` in `module` hands on what it names instead of needing it: at the root, or from below.
    pub(crate) fn is_reexport(&self, module: usize, item: &ItemUse, target: Destination) -> bool {
        let (Destination::Module(of) | Destination::ItemOf(of)) = target;
        let mut above = std::iter::successors(Some(of), |of| self.modules[*of].parent);
        !matches!(item.vis, Visibility::Inherited) && above.any(|above| above == module)
    }

    fn add_file(
        &mut self,
        sources: &'a Sources,
        file: &str,
        folder: &str,
        parent: Option<usize>,
    ) -> usize {
        let Some(syntax) = sources.get(file) else {
            panic!("there is no file {file}");
        };
        self.add(sources, file, folder, parent, &syntax.items)
    }

    fn add(
        &mut self,
        sources: &'a Sources,
        file: &str,
        folder: &str,
        parent: Option<usize>,
        items: &'a [Item],
    ) -> usize {
        let this = self.modules.len();
        self.modules.push(Module {
            file: file.to_owned(),
            items,
            parent,
            names: BTreeMap::new(),
            globs: Vec::new(),
        });
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            match item {
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let child = self.add_child(sources, file, folder, this, child);
                    self.modules[this].name(name, Named::Module(child));
                }
                Item::Use(item) => self.modules[this].add_imports(item),
                _ => {
                    if let Some(name) = declared_name(item) {
                        self.modules[this].name(name, Named::Item);
                    }
                }
            }
        }
        this
    }

    fn add_child(
        &mut self,
        sources: &'a Sources,
        file: &str,
        folder: &str,
        parent: usize,
        child: &'a ItemMod,
    ) -> usize {
        let is_path = |attribute: &Attribute| attribute.path().is_ident("path");
        assert!(!child.attrs.iter().any(is_path), "#[path] in {file}");
        let folder = format!("{folder}/{}", child.ident);
        if let Some((_, items)) = &child.content {
            return self.add(sources, file, &folder, Some(parent), items);
        }
        let beside = format!("{folder}.rs");
        let within = format!("{folder}/mod.rs");
        let file = if sources.get(&within).is_some() {
            &within
        } else {
            &beside
        };
        self.add_file(sources, file, &folder, Some(parent))
    }

    fn resolve_unless_seen(
        &self,
        module: usize,
        path: &Path,
        seen: &mut BTreeSet<(usize, String)>,
    ) -> Vec<Destination> {
        let mut targets = Vec::new();
        for (at, segment) in path.segments().iter().enumerate() {
            targets = match (at, segment.as_str()) {
                (0, "crate") => vec![Destination::Module(0)],
                (0, "self") => vec![Destination::Module(module)],
                (0, "super") => self.parents(&[Destination::Module(module)]),
                (0, _) => self.look_up(module, segment, seen),
                (_, "super") => self.parents(&targets),
                _ => self.step_into(&targets, segment, seen),
            };
        }
        targets
    }

    /// What `segment` is in what the path has led to so far.
    fn step_into(
        &self,
        targets: &[Destination],
        segment: &str,
        seen: &mut BTreeSet<(usize, String)>,
    ) -> Vec<Destination> {
        let is_module = |target: &&Destination| matches!(target, Destination::Module(_));
        let Some(Destination::Module(module)) = targets.iter().find(is_module) else {
            // A variant or an associated item.
            return targets.to_vec();
        };
        let found = self.look_up(*module, segment, seen);
        if found.is_empty() {
            // Made by a macro.
            vec![Destination::ItemOf(*module)]
        } else {
            found
        }
    }

    fn look_up(
        &self,
        module: usize,
        name: &str,
        seen: &mut BTreeSet<(usize, String)>,
    ) -> Vec<Destination> {
        if !seen.insert((module, name.to_owned())) {
            return Vec::new();
        }
        let mut targets = Vec::new();
        for named in self.modules[module].names.get(name).into_iter().flatten() {
            match named {
                Named::Module(child) => targets.push(Destination::Module(*child)),
                Named::Item => targets.push(Destination::ItemOf(module)),
                Named::Import(path) => {
                    let found = self.resolve_unless_seen(module, path, seen);
                    if found.is_empty() {
                        // Of another crate: this module is where the crate has it from.
                        targets.push(Destination::ItemOf(module));
                    }
                    targets.extend(found);
                }
            }
        }
        if targets.is_empty() {
            for glob in &self.modules[module].globs {
                for target in self.resolve_unless_seen(module, glob, seen) {
                    if let Destination::Module(from) = target {
                        targets.extend(self.look_up(from, name, seen));
                    }
                }
            }
        }
        seen.remove(&(module, name.to_owned()));
        targets
    }

    fn parents(&self, targets: &[Destination]) -> Vec<Destination> {
        let parent = |target: &Destination| match target {
            Destination::Module(module) => self.modules[*module].parent.map(Destination::Module),
            Destination::ItemOf(_) => None,
        };
        targets.iter().filter_map(parent).collect()
    }
}

// === impl Module ===

impl Module<'_> {
    fn name(&mut self, name: String, named: Named) {
        self.names.entry(name).or_default().push(named);
    }

    fn add_imports(&mut self, item: &ItemUse) {
        for import in paths::imported(item) {
            if import.is_glob {
                self.globs.push(import.path);
            } else if let Some(name) = import.name {
                self.name(name, Named::Import(import.path));
            }
        }
    }
}

/// Whether an item exists in tests only.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<Meta>()
                    .is_ok_and(|condition| requires_test(&condition))
    })
}

fn requires_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(syn::punctuated::Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|all| all.iter().any(requires_test)),
        _ => false,
    }
}

/// The attributes of an item that can declare or need something.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn declared_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
