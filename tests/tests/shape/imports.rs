//! Which file of a crate needs something of which other file, and where it says so.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{
    Attribute, Field, ImplItem, Item, ItemMod, ItemUse, Local, Macro, TraitItem, Visibility,
};

use crate::modules::{self, Destination, Modules};
use crate::paths::{self, Path};

/// Where a file first needs another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) line: usize,
    pub(crate) path: String,
}

/// Imports by the file that needs and the file that is needed.
pub(crate) type Imports = BTreeMap<(String, String), Import>;

/// Every import between files of a crate. A module that is named is none; something in it that is named is one.
pub(crate) fn between_files(modules: &Modules<'_>) -> Imports {
    let mut imports = Imports::new();
    for (module, syntax) in modules.iter() {
        let mut collector = ImportCollector {
            modules,
            module,
            imports: &mut imports,
        };
        for item in syntax.items {
            collector.visit_item(item);
        }
    }
    imports
}

/// Reads the code of one module.
struct ImportCollector<'a> {
    modules: &'a Modules<'a>,
    module: usize,
    imports: &'a mut Imports,
}

// === impl ImportCollector ===

impl ImportCollector<'_> {
    fn add(&mut self, path: &Path, line: usize, target: Destination) {
        let Destination::ItemOf(target) = target else {
            return;
        };
        let from = self.modules.file(self.module);
        let to = self.modules.file(target);
        if from != to {
            let path = path.to_string();
            self.imports
                .entry((from.to_owned(), to.to_owned()))
                .or_insert(Import { line, path });
        }
    }
}

impl<'ast> Visit<'ast> for ImportCollector<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !modules::is_test(modules::attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            _ => &[],
        };
        if !modules::is_test(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        let attributes: &[Attribute] = match item {
            TraitItem::Const(item) => &item.attrs,
            TraitItem::Fn(item) => &item.attrs,
            TraitItem::Type(item) => &item.attrs,
            _ => &[],
        };
        if !modules::is_test(attributes) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if !modules::is_test(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if !modules::is_test(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for import in paths::imported(item) {
            for target in self.modules.resolve(self.module, &import.path) {
                let target = match target {
                    Destination::Module(of) if import.is_glob => Destination::ItemOf(of),
                    target => target,
                };
                if !self.modules.is_reexport(self.module, item, target) {
                    self.add(&import.path, import.line, target);
                }
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(needed) = Path::of(path) {
            let line = path.segments[0].ident.span().start().line;
            for target in self.modules.resolve(self.module, &needed) {
                self.add(&needed, line, target);
            }
        }
        visit::visit_path(self, path);
    }

    /// A module of its own, be it in this file.
    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_macro(&mut self, _: &'ast Macro) {}

    /// `pub(in path)` restricts, it needs nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}
