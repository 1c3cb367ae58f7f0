//! The names of types, and where each is declared.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Ident, ItemEnum, ItemStruct, ItemTrait, ItemType, ItemUnion};

use crate::sources::Sources;

/// The names that are declared more than once, each with its places (`file:line`).
pub(crate) fn met_twice(sources: &Sources) -> BTreeMap<String, Vec<String>> {
    let mut places = BTreeMap::new();
    for (file, syntax) in sources.iter() {
        let mut declarations = Declarations {
            file,
            places: &mut places,
        };
        declarations.visit_file(syntax);
    }
    places.retain(|_, places| places.len() > 1);
    places
}

/// Collects the declarations of a file, those inside functions too.
struct Declarations<'a> {
    file: &'a str,
    places: &'a mut BTreeMap<String, Vec<String>>,
}

// === impl Declarations ===

impl Declarations<'_> {
    fn add(&mut self, name: &Ident) {
        let place = format!("{}:{}", self.file, name.span().start().line);
        self.places.entry(name.to_string()).or_default().push(place);
    }
}

impl<'ast> Visit<'ast> for Declarations<'_> {
    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.add(&item.ident);
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.add(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.add(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast ItemType) {
        self.add(&item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast ItemUnion) {
        self.add(&item.ident);
    }
}
