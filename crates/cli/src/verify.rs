//! `elector verify`: whether a recorded history proves that at most one candidate led at a time.

mod report;
mod text;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use elector_api::parse_duration;
use elector_protocol::{LeaseKey, ResourceVersion};
use elector_verify::{
    EntryContent, History, LeasePurpose, Limits, Participants, RecordingReader, Times, verify,
};

use self::report::{LeaseReport, ProofStatus};
use crate::{input, output};

/// Proves or refutes, from a recorded history, that at most one candidate led at a time and that each change was a legal move.
///
/// Reads what `kubectl get leases -A -w -o json --output-watch-events` prints, the same for leasecandidates, and the
/// lines of `elector candidate --events`, in any mix. The exit status is 0 if it is proven, 1 if it is refuted, and 2
/// if the history cannot tell.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// A recorded history or a work trace; `-` is standard input. May be given several times
    #[arg(short = 'f', long, value_name = "FILE", required = true)]
    filename: Vec<PathBuf>,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = VerifyFormat::Text)]
    output: VerifyFormat,

    /// Only this namespace [default: all]
    #[arg(short = 'n', long)]
    namespace: Option<String>,

    /// Only this lease
    #[arg(long, value_name = "NAME")]
    lease: Option<String>,

    /// The longest lease duration that any client of the cluster uses
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parse_duration)]
    max_lease_duration: Duration,

    /// How long a candidate leads after its last renewal [default: two thirds of the lease duration]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    renew_deadline: Option<Duration>,

    /// How far clocks may be apart, and how late a change may have been recorded
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    clock_tolerance: Duration,

    /// The lease by which electors choose the active one of them; they need not wait for it as work does
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "elector-system/elector", value_parser = parse_lease)]
    elector_lock: LeaseKey,

    /// A revision that a person wrote by hand, which breaks no rule. May be given several times
    #[arg(long, value_name = "RESOURCE_VERSION")]
    foreign: Vec<u64>,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VerifyFormat {
    Text,
    Json,
}

/// The history is refuted.
const REFUTED: u8 = 1;
/// The history cannot tell, or could not be read in full.
const CANNOT_TELL: u8 = 2;

/// Runs the sub-command. What cannot be read is named on standard error and the rest judged all the same.
pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let mut reader = RecordingReader::default();
    for path in &args.filename {
        let (name, text) = match read(path) {
            Ok(read) => read,
            Err(error) => {
                output::print_error(format_args!("failed to {error:#}"));
                return Ok(ExitCode::from(CANNOT_TELL));
            }
        };
        reader.read(&name, &text);
    }
    let (history, errors) = reader.finish();
    for error in &errors {
        output::print_error(error);
    }
    let participants = args.participants(&history);
    let verdict = verify(&history, &participants);
    let reports: Vec<LeaseReport> = verdict
        .leases
        .iter()
        .map(|(lease, lease_verdict)| LeaseReport::new(lease, lease_verdict))
        .collect();
    match args.output {
        VerifyFormat::Json => output::print_json(&reports).context("print the verdict")?,
        VerifyFormat::Text if reports.is_empty() => {
            eprintln!("No lease of this history is named by a candidate or carries a token.");
        }
        VerifyFormat::Text => {
            let mut text = text::of(&history, args.clock_tolerance, &verdict, &reports);
            text.push_str(&text::left_out(args.left_out(&history, &participants)));
            output::print(&text).context("print the verdict")?;
        }
    }
    let status = |wanted| reports.iter().any(|report| report.verdict == wanted);
    Ok(if status(ProofStatus::Refuted) {
        ExitCode::from(REFUTED)
    } else if reports.is_empty() || status(ProofStatus::Unproven) || !errors.is_empty() {
        ExitCode::from(CANNOT_TELL)
    } else {
        ExitCode::SUCCESS
    })
}

// === impl VerifyArgs ===

impl VerifyArgs {
    /// The participants, and how exact this history is.
    fn participants(&self, history: &History) -> Participants {
        let limits = Limits {
            longest_lease: self.max_lease_duration,
            // The time of receipt is that of one clock; what was written is compared only where there is nothing else.
            clock_difference: (history.times() == Times::Written).then_some(self.clock_tolerance),
            recording_delay: self.clock_tolerance,
            trace_clock_difference: self.clock_tolerance,
            renew_deadline: self.renew_deadline,
            ..Limits::default()
        };
        let mut participants = Participants::deduce(history, limits);
        participants.retain(|lease| self.wants(lease));
        participants.add_lock(self.elector_lock.clone(), LeasePurpose::ElectorLock);
        for version in &self.foreign {
            participants.add_foreign(ResourceVersion(*version));
        }
        participants
    }

    /// True where the filters let this lease pass.
    fn wants(&self, lease: &LeaseKey) -> bool {
        let namespace = self.namespace.as_deref();
        let name = self.lease.as_deref();
        namespace.is_none_or(|wanted| wanted == &*lease.namespace)
            && name.is_none_or(|wanted| wanted == &*lease.name)
    }

    /// The number of leases of this history that pass the filters and are not judged.
    fn left_out(&self, history: &History, participants: &Participants) -> usize {
        let judged: BTreeSet<&LeaseKey> = participants.leases().collect();
        let leases = history
            .entries()
            .iter()
            .filter_map(|entry| match &entry.content {
                EntryContent::Lease(_, lease) => Some(lease.key()),
                _ => None,
            });
        let others = leases.filter(|lease| self.wants(lease) && !judged.contains(lease));
        others.collect::<BTreeSet<_>>().len()
    }
}

/// A lease as it is named on the command line.
fn parse_lease(text: &str) -> Result<LeaseKey, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok(LeaseKey::new(namespace, name))
        }
        _ => Err("not of the form namespace/name".to_owned()),
    }
}

/// The name of a file for messages, and its text.
fn read(path: &Path) -> anyhow::Result<(String, String)> {
    let (name, bytes) = input::read(path)?;
    // A recording that ended in the midst of a character is still one.
    Ok((name, String::from_utf8_lossy(&bytes).into_owned()))
}
