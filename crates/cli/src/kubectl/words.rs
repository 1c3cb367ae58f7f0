//! `kubectl elector words`: all that operators have said of leases and candidates, and until when it counts.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use elector_api::{
    Lease, LeaseCandidate, Rfc3339, age, annotation, parse_freeze, parse_prefer, parse_time,
};
use elector_protocol::{Instant, OutOfTime, StandDown, Timestamp};
use elector_runtime::{ClientArgs, connect};
use serde::Serialize;

use crate::explain::cluster::{self, ListedObjects};
use crate::explain::present;
use crate::namespace::NamespaceArgs;
use crate::output::{self, ListFormat, YELLOW};

/// Lists all freezes, preferences and stand-downs, with their ends, and what undoes each.
///
/// A word that is over, or that electors ignore, stays in its annotation until it is removed, and has no effect.
#[derive(Args, Debug)]
pub(super) struct WordsArgs {
    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Print a table, or a list whose form is stable
    #[arg(short = 'o', long, value_enum, default_value_t = ListFormat::Table)]
    output: ListFormat,

    #[command(flatten)]
    client: ClientArgs,
}

/// One word of an operator. The form is stable: fields may be added, none is renamed or removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WordRow {
    pub(super) namespace: String,
    pub(super) lease: String,
    /// `freeze`, `prefer` or `stand-down`.
    pub(super) word: &'static str,
    /// The candidate that it is about, where it is about one.
    pub(super) candidate: Option<String>,
    pub(super) state: WordState,
    /// When it ends; `None` where it names no time.
    pub(super) until: Option<String>,
    /// Why it is ignored; `None` where it is not.
    pub(super) why: Option<String>,
    /// The command that removes it.
    pub(super) undo: String,
    #[serde(skip)]
    left: Option<i64>,
}

/// The effect of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WordState {
    Counts,
    Over,
    Ignored,
}

/// Runs the sub-command.
pub(super) async fn run(args: WordsArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.client).await?;
    let namespace = args.namespace.in_cluster(&cluster);
    let objects = cluster::list(&cluster, namespace).await?;
    let now = cluster.server_time().await?.unwrap_or_else(present);
    let rows = rows(&objects, now);
    if rows.is_empty() && args.output == ListFormat::Table {
        output::print_nothing_found(namespace);
        return Ok(ExitCode::SUCCESS);
    }
    let print = || table(&rows, namespace.is_none());
    output::print_list(args.output, &rows, print).context("print the words")?;
    Ok(ExitCode::SUCCESS)
}

/// All words in these objects, sorted by namespace and lease.
pub(super) fn rows(objects: &ListedObjects, now: Timestamp) -> Vec<WordRow> {
    let name = |candidate: &LeaseCandidate| {
        let metadata = &candidate.metadata;
        (metadata.namespace.clone(), metadata.name.clone())
    };
    let known: BTreeSet<_> = objects.candidates.iter().map(name).collect();
    let mut rows = Vec::new();
    for lease in &objects.leases {
        rows.extend(WordRow::freeze(lease, now));
        let preference = WordRow::preference(lease, now).map(|row| {
            let preferred = (Some(row.namespace.clone()), row.candidate.clone());
            row.with_candidate(known.contains(&preferred))
        });
        rows.extend(preference);
    }
    let stand_downs = objects.candidates.iter();
    rows.extend(stand_downs.filter_map(|each| WordRow::stand_down(each, now)));
    rows.sort();
    rows
}

fn table(rows: &[WordRow], with_namespace: bool) -> String {
    let header = [
        "NAMESPACE",
        "LEASE",
        "WORD",
        "CANDIDATE",
        "STATE",
        "UNTIL",
        "LEFT",
        "UNDO",
    ];
    let cells = |row: &WordRow| {
        let none = || "<none>".to_owned();
        let undo = match &row.why {
            Some(why) => format!("{} ({why})", row.undo),
            None => row.undo.clone(),
        };
        [
            row.namespace.clone(),
            row.lease.clone(),
            row.word.to_owned(),
            row.candidate.clone().unwrap_or_else(none),
            row.state.as_str().to_owned(),
            row.until.clone().unwrap_or_else(none),
            row.left.map_or_else(none, age),
            undo,
        ]
    };
    let lines = [header.map(str::to_owned)]
        .into_iter()
        .chain(rows.iter().map(cells));
    let skipped = usize::from(!with_namespace);
    let lines: Vec<_> = lines.map(|line| line[skipped..].to_vec()).collect();
    let colours = rows
        .iter()
        .map(|row| (row.state == WordState::Counts).then_some(YELLOW));
    output::coloured(
        output::columns(&lines, 3),
        [None].into_iter().chain(colours),
    )
}

// === impl WordRow ===

impl WordRow {
    fn freeze(lease: &Lease, now: Timestamp) -> Option<Self> {
        let text = annotated(lease.metadata.annotations.as_ref(), annotation::FREEZE)?;
        let key = lease.key();
        let row = Self {
            undo: format!("kubectl elector unfreeze {} -n {}", key.name, key.namespace),
            ..Self::new(&key.namespace, &key.name, "freeze")
        };
        Some(match parse_freeze(text) {
            Ok(until) => row.until(until, now),
            Err(why) => row.unreadable(text, why),
        })
    }

    fn preference(lease: &Lease, now: Timestamp) -> Option<Self> {
        let text = annotated(lease.metadata.annotations.as_ref(), annotation::PREFER)?;
        let key = lease.key();
        let row = Self {
            undo: format!(
                "kubectl elector prefer {} --undo -n {}",
                key.name, key.namespace
            ),
            ..Self::new(&key.namespace, &key.name, "prefer")
        };
        Some(match parse_prefer(text) {
            Ok(preference) => Self {
                candidate: Some(preference.candidate.as_str().to_owned()),
                ..row.until(preference.until, now)
            },
            Err(why) => row.unreadable(text, why),
        })
    }

    fn stand_down(candidate: &LeaseCandidate, now: Timestamp) -> Option<Self> {
        let metadata = &candidate.metadata;
        let text = annotated(metadata.annotations.as_ref(), annotation::STAND_DOWN)?;
        let name = metadata.name.as_deref().unwrap_or_default();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let row = Self {
            candidate: Some(name.to_owned()),
            undo: format!("kubectl elector stand-down {name} --undo -n {namespace}"),
            ..Self::new(namespace, &candidate.spec.lease_name, "stand-down")
        };
        Some(match (text, parse_time(text)) {
            // It counts for a day from when each elector first saw it, which no object tells.
            ("true", _) => row,
            (_, Ok(until)) => row.until(until, now),
            (_, Err(why)) => row.unreadable(text, why),
        })
    }

    fn new(namespace: &str, lease: &str, word: &'static str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            lease: lease.to_owned(),
            word,
            candidate: None,
            state: WordState::Counts,
            until: None,
            why: None,
            undo: String::new(),
            left: None,
        }
    }

    /// The same with its end, by which it counts or not.
    fn until(self, until: Timestamp, now: Timestamp) -> Self {
        let first_seen = Instant::default();
        // One rule says of all words when they count.
        let left = StandDown::Until(until).remaining(first_seen, first_seen, now);
        let until = Some(Rfc3339(until).to_string());
        match left {
            Ok(left) => Self {
                left: i64::try_from(left.as_secs()).ok(),
                until,
                ..self
            },
            Err(OutOfTime::Over) => Self {
                state: WordState::Over,
                until,
                ..self
            },
            Err(why) => Self {
                state: WordState::Ignored,
                until,
                why: Some(why.to_string()),
                ..self
            },
        }
    }

    fn unreadable(self, text: &str, why: impl std::fmt::Display) -> Self {
        Self {
            state: WordState::Ignored,
            why: Some(format!("{text:?} {why}")),
            ..self
        }
    }

    /// The same, with a note where nothing has the name of its candidate.
    fn with_candidate(self, is_known: bool) -> Self {
        let is_in_vain = self.state == WordState::Counts && !is_known;
        let why = is_in_vain.then(|| "there is no such candidate".to_owned());
        Self {
            why: why.or(self.why),
            ..self
        }
    }
}

// === impl WordState ===

impl WordState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Over => "over",
            Self::Ignored => "ignored",
        }
    }
}

/// The value of an annotation. An empty one says nothing.
fn annotated<'a>(annotations: Option<&'a BTreeMap<String, String>>, name: &str) -> Option<&'a str> {
    let text = annotations?.get(name)?.as_str();
    Some(text).filter(|text| !text.is_empty())
}
