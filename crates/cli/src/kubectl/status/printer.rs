//! The forms that the status is printed in.

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use elector_runtime::printable_json;

use super::query::StatusQuery;
use super::row::StatusRow;
use super::table::StatusTable;
use crate::explain::group::{GroupsByName, group_lines};
use crate::explain::{in_place, present};
use crate::output;
use crate::yaml::to_yaml;

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StatusFormat {
    Wide,
    Json,
    Yaml,
}

/// Prints rows in the form that is asked for.
#[derive(Debug)]
pub(super) struct Printer {
    format: Option<StatusFormat>,
    table: StatusTable,
}

// === impl Printer ===

impl Printer {
    pub(super) fn new(
        format: Option<StatusFormat>,
        query: &StatusQuery,
        without_headers: bool,
    ) -> Self {
        let wide = format == Some(StatusFormat::Wide);
        let table = StatusTable {
            namespaces: query.namespace.is_none(),
            wide,
            candidates: wide || query.lease.is_some(),
            headers: !without_headers,
            ..StatusTable::default()
        };
        Self { format, table }
    }

    /// Prints all that there is, once.
    pub(super) fn print_all(
        &mut self,
        rows: &[StatusRow],
        query: &StatusQuery,
    ) -> anyhow::Result<()> {
        let namespace = query.namespace.as_deref();
        if let Some(lease) = query.lease.as_ref().filter(|_| rows.is_empty()) {
            bail!("find lease {}", in_place(lease, namespace));
        }
        match self.format {
            Some(StatusFormat::Json) => output::print_json(&rows),
            Some(StatusFormat::Yaml) => output::print(&to_yaml(&serde_json::to_value(rows)?)?),
            None | Some(StatusFormat::Wide) => {
                if rows.is_empty() {
                    output::print_nothing_found(namespace);
                }
                output::print(&self.table.text(rows, present()))
            }
        }
        .context("print the status")
    }

    /// Prints below a table how the groups among these rows are spread.
    pub(super) fn print_groups(
        &self,
        rows: &[StatusRow],
        groups: &GroupsByName,
        query: &StatusQuery,
    ) -> anyhow::Result<()> {
        if !matches!(self.format, None | Some(StatusFormat::Wide)) {
            return Ok(());
        }
        let is_shown = |namespace: &str, name: &str| {
            rows.iter().any(|row| {
                let group = row.group.as_ref();
                row.namespace == namespace && group.is_some_and(|group| group.name == name)
            })
        };
        let lines = group_lines(groups, query.namespace.is_none(), is_shown);
        if lines.is_empty() {
            return Ok(());
        }
        let text = output::columns(&lines, 3).join("\n");
        output::print(&format!("\n{text}\n")).context("print the groups")
    }

    /// Prints rows that are new or have changed, each in JSON or YAML as a document of its own.
    pub(super) fn print_changed(&mut self, rows: &[StatusRow]) -> anyhow::Result<()> {
        let mut text = String::new();
        match self.format {
            None | Some(StatusFormat::Wide) => text = self.table.text(rows, present()),
            Some(StatusFormat::Json) => {
                for row in rows {
                    text.push_str(&printable_json(&serde_json::to_string_pretty(row)?));
                    text.push('\n');
                }
            }
            Some(StatusFormat::Yaml) => {
                for row in rows {
                    text.push_str("---\n");
                    text.push_str(&to_yaml(&serde_json::to_value(row)?)?);
                }
            }
        }
        output::print_or_end(&text).context("print the status")
    }
}
