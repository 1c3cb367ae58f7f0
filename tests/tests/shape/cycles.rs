//! Cycles among the imports of a crate.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::imports::Imports;

/// For each import that is in a cycle the shortest cycle through it, each cycle once.
///
/// A cycle is its files in order, the first of the alphabet first.
pub(crate) fn all(imports: &Imports) -> BTreeSet<Vec<&str>> {
    let mut needed = BTreeMap::<&str, Vec<&str>>::new();
    for (from, to) in imports.keys() {
        needed.entry(from).or_default().push(to);
    }
    let back = |(from, to)| shortest_way(&needed, to, from);
    imports
        .keys()
        .map(|(from, to)| (from.as_str(), to.as_str()))
        .filter_map(back)
        .map(|mut cycle| {
            let first = (0..cycle.len()).min_by_key(|at| cycle[*at]);
            cycle.rotate_left(first.unwrap_or_default());
            cycle
        })
        .collect()
}

/// The cycle as lines, each an import with its place.
pub(crate) fn describe(cycle: &[&str], imports: &Imports) -> String {
    let mut text = format!("  cycle of {}:\n", cycle.len());
    for (at, from) in cycle.iter().enumerate() {
        let to = cycle[(at + 1) % cycle.len()];
        let import = &imports[&((*from).to_owned(), to.to_owned())];
        let (line, path) = (import.line, &import.path);
        text.push_str(&format!("    {from}:{line} needs {path} of {to}\n"));
    }
    text
}

fn shortest_way<'a>(
    needed: &BTreeMap<&'a str, Vec<&'a str>>,
    from: &'a str,
    to: &'a str,
) -> Option<Vec<&'a str>> {
    let mut came_from = BTreeMap::from([(from, from)]);
    let mut next = VecDeque::from([from]);
    while let Some(at) = next.pop_front() {
        if at == to {
            let mut way = vec![to];
            while way[way.len() - 1] != from {
                way.push(came_from[way[way.len() - 1]]);
            }
            way.reverse();
            return Some(way);
        }
        for after in needed.get(at).into_iter().flatten() {
            came_from.entry(after).or_insert_with(|| {
                next.push_back(after);
                at
            });
        }
    }
    None
}
