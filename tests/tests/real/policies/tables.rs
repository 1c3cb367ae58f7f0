//! The tables of `manifests/components/policies/README.md`, cell by cell.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::paths;
use kube::Client;
use serde_json::Value;

use super::accounts::Accounts;
use super::requests::{Collection, ObjectWrite};

/// A row of a table: what an account finds, and what it writes.
pub(super) struct TableRow {
    /// The first cell.
    pub(super) name: &'static str,
    /// The object that is there, if there is one.
    pub(super) before: fn() -> Option<Value>,
    /// The write of an account that acts under this name.
    pub(super) write: fn(Option<Value>, &str) -> ObjectWrite,
}

/// Plays every cell of the table whose first heading is `heading`; how many there are.
pub(super) async fn play(
    heading: &str,
    rows: &[TableRow],
    (admin, accounts): (&Client, &Accounts),
    collection: &Collection,
) -> Result<usize> {
    let path = paths::workspace().join("manifests/components/policies/README.md");
    let document = fs::read_to_string(path)?;
    let mut table = table(&document, heading)?;
    let columns = table.remove(0);
    let (mut wrong, mut cells) = (String::new(), 0);
    ensure!(
        table.len() == rows.len(),
        "{} rows are documented and {} are played",
        table.len(),
        rows.len()
    );
    for documented in table {
        let name = documented[0];
        let row = rows.iter().find(|row| row.name == name);
        let row = row.with_context(|| format!("nothing is known of the row {name:?}"))?;
        let before = match (row.before)() {
            Some(object) => Some(collection.reset(admin, &object).await?),
            None => {
                collection.remove(admin, "work").await?;
                None
            }
        };
        for (column, cell) in columns.iter().zip(&documented).skip(1) {
            let actor = accounts.of(column)?;
            let write = (row.write)(before.clone(), actor.identity);
            let answer = collection.send(&actor.client, &write, true).await?;
            if answer.is_accepted() != (*cell == "yes") {
                wrong.push_str(&format!("{name} by {column}: {cell}, but {answer:?}\n"));
            }
            cells += 1;
        }
    }
    ensure!(wrong.is_empty(), "cells that are not true:\n{wrong}");
    Ok(cells)
}

/// The cells of a table, its heading first.
fn table<'d>(document: &'d str, heading: &str) -> Result<Vec<Vec<&'d str>>> {
    let rows: Vec<Vec<&str>> = document
        .lines()
        .skip_while(|line| !line.starts_with(&format!("| {heading} |")))
        .take_while(|line| line.starts_with('|'))
        .filter(|line| !line.starts_with("|---"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    ensure!(rows.len() > 1, "there is no table about {heading:?}");
    Ok(rows)
}
