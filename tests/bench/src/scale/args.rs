//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use elector_api::parse_duration;
use elector_protocol::CandidateTiming;

/// Measures the elector with many leases: how soon all are led, and what it costs for each lease and for each event
///
/// The API server, `elector run` as it ships, as a process of its own, and the candidates share the machine; one process
/// plays all candidates over two watches. Each lease gets candidates of the same version; one of them is granted the lease, accepts
/// and renews it.
#[derive(Clone, Debug, Parser)]
pub struct ScaleArgs {
    /// How many leases; several numbers, such as 1000,100000, are measured one after the other and compared
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub leases: Vec<u32>,

    /// How many candidates each lease has, at most 64, which is how many an elector considers
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub candidates: u32,

    /// Measure the same in groups too: how many leases form one, in which one process has a candidate for each of them. At the
    /// end a further member joins the first group
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_024))]
    pub parts: Option<u32>,

    /// Measure the same with several electors too, each of which elects in its share of the namespaces
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=16))]
    pub electors: Option<u32>,

    /// The API server: the one of `elector dev`, in memory, or a real kube-apiserver with its etcd
    #[arg(long, value_enum, default_value = "embedded")]
    pub server: ServerName,

    /// Over how many namespaces the leases are spread [default: one for each 20000 candidates, as an elector keeps 30000 of
    /// one namespace, or 16 MiB]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub namespaces: Option<u32>,

    /// How many requests of the candidates are under way at the same time, each on a connection of its own
    #[arg(long, value_name = "N", default_value_t = CONNECTIONS, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub connections: u32,

    /// How many leases get their candidates in a second, at most; without it, the server sets the pace, which may be faster
    /// than an elector keeps up with, so that acks grow old in its queue and candidates have to be pinged again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,

    /// The lease duration of all candidates, from 15s to 1h [default: so that all leases together are renewed 100 times a
    /// second, within these bounds]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub lease_duration: Option<Duration>,

    /// For how long the leases are renewed and the elector is watched after the elections
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = parse_duration)]
    pub hold: Duration,

    /// How long the elections may take
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = parse_duration)]
    pub patience: Duration,

    /// The number of rounds in which elector and bare client run in turns, each on a new server; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=9))]
    pub rounds: u32,

    /// A further flag for `elector run`, such as --elector-flag=--concurrent-elections=32; repeatable
    #[arg(long = "elector-flag", value_name = "FLAG", allow_hyphen_values = true)]
    pub elector_flags: Vec<String>,

    /// Do not let etcd wait for the disk. With it, a real server is as fast as the disk
    #[arg(long)]
    pub no_fsync: bool,

    /// The cargo profile of `elector`
    #[arg(long, default_value = "release")]
    pub profile: String,

    /// Write all figures there too, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the tables into docs/scale.md, in the place of those of the same server
    #[arg(long)]
    pub record: bool,
}

/// What serves the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServerName {
    /// The API server in memory, on threads of its own.
    Embedded,
    /// kube-apiserver and etcd.
    Real,
}

/// One measurement.
#[derive(Clone, Debug)]
pub(crate) struct RunSize {
    pub(crate) leases: u32,
    /// Of each lease.
    pub(crate) candidates: u32,
    /// The leases of a group, where there are groups.
    pub(crate) parts: Option<u32>,
    pub(crate) namespaces: u32,
    /// Each has its share of the namespaces.
    pub(crate) electors: u32,
    pub(crate) connections: u32,
    /// The number of leases that get their candidates in a second, at most.
    pub(crate) rate: Option<u32>,
    pub(crate) timing: CandidateTiming,
}

/// The number of requests of the candidates under way by default.
const CONNECTIONS: u32 = 32;
/// The number of candidates of a namespace by default; the elector keeps 30 000 or 16 MiB of one.
const NAMESPACE_CANDIDATES: u32 = 20_000;
/// The number of candidates of one namespace that an elector keeps, as `docs/bounds.md` has it.
const MOST_CANDIDATES: u32 = 30_000;
/// The renewals of all leases together by default, per second.
const RENEWALS: u32 = 100;
/// The bounds of the lease duration.
const DURATIONS: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(3600));

// === impl ScaleArgs ===

impl ScaleArgs {
    /// The sizes to be measured.
    pub(crate) fn sizes(&self) -> Result<Vec<RunSize>> {
        let without = self.parts.is_some().then_some(None);
        let grouped = without.into_iter().chain([self.parts]);
        let each = self.leases.iter();
        let each = each.flat_map(|leases| grouped.clone().map(|parts| (*leases, parts)));
        let electors = [Some(1), self.electors].into_iter().flatten();
        each.flat_map(|(leases, parts)| {
            electors.clone().map(move |it| self.size(leases, parts, it))
        })
        .collect()
    }

    /// The name of the table in the document.
    pub(crate) fn table_name(&self) -> &'static str {
        if self.electors.is_some() {
            return "several electors";
        }
        match (self.server, self.parts) {
            (ServerName::Embedded, None) => "scale on the embedded API server",
            (ServerName::Embedded, Some(_)) => "groups on the embedded API server",
            (ServerName::Real, None) => "scale on kube-apiserver",
            (ServerName::Real, Some(_)) => "groups on kube-apiserver",
        }
    }

    /// The command line that measures the same.
    pub(crate) fn command(&self) -> String {
        let leases: Vec<String> = self.leases.iter().map(ToString::to_string).collect();
        let mut line = format!(
            "cargo xtask bench scale --leases {} --candidates {}",
            leases.join(","),
            self.candidates
        );
        let mut add = |flag: &str| {
            line.push(' ');
            line.push_str(flag);
        };
        if let Some(parts) = self.parts {
            add(&format!("--parts {parts}"));
        }
        if let Some(electors) = self.electors {
            add(&format!("--electors {electors}"));
        }
        if self.server == ServerName::Real {
            add("--server real");
        }
        if let Some(namespaces) = self.namespaces {
            add(&format!("--namespaces {namespaces}"));
        }
        if self.connections != CONNECTIONS {
            add(&format!("--connections {}", self.connections));
        }
        if let Some(rate) = self.rate {
            add(&format!("--rate {rate}"));
        }
        if let Some(duration) = self.lease_duration {
            add(&format!("--lease-duration {}s", duration.as_secs()));
        }
        if self.rounds != 3 {
            add(&format!("--rounds {}", self.rounds));
        }
        for flag in &self.elector_flags {
            add(&format!("--elector-flag={flag}"));
        }
        if self.no_fsync {
            add("--no-fsync");
        }
        line
    }

    fn size(&self, leases: u32, parts: Option<u32>, electors: u32) -> Result<RunSize> {
        let of_all = leases.saturating_mul(self.candidates);
        let namespaces = self
            .namespaces
            .unwrap_or_else(|| of_all.div_ceil(NAMESPACE_CANDIDATES));
        if let Some(parts) = parts {
            ensure!(
                leases.is_multiple_of(parts),
                "{leases} leases are no groups of {parts}: --leases must be a multiple of --parts"
            );
        }
        ensure!(
            electors <= namespaces,
            "{electors} electors for {namespaces} namespaces: --electors is more than --namespaces"
        );
        let of_one = leases.div_ceil(namespaces).saturating_mul(self.candidates);
        ensure!(
            of_one <= MOST_CANDIDATES,
            "{leases} leases with {} candidates in {namespaces} namespaces: an elector keeps at most {MOST_CANDIDATES} \
             candidates of a namespace, and this would be {of_one}",
            self.candidates
        );
        let (shortest, longest) = DURATIONS;
        let duration = match self.lease_duration {
            Some(duration) => {
                ensure!(
                    (shortest..=longest).contains(&duration) && duration.subsec_nanos() == 0,
                    "--lease-duration is {duration:?}: must be whole seconds from 15s to 1h"
                );
                duration
            }
            None => {
                let interval = u64::from(leases.div_ceil(RENEWALS));
                Duration::from_secs(interval * 9 / 2).clamp(shortest, longest)
            }
        };
        Ok(RunSize {
            leases,
            candidates: self.candidates,
            parts,
            namespaces,
            electors,
            connections: self.connections,
            rate: self.rate,
            timing: CandidateTiming::of(duration, duration * 2 / 3),
        })
    }
}

// === impl RunSize ===

impl RunSize {
    /// The namespaces with this prefix.
    pub(crate) fn namespaces(&self, prefix: &str) -> Vec<String> {
        (0..self.namespaces)
            .map(|number| format!("{prefix}-{number}"))
            .collect()
    }

    /// The group of a lease, where there are groups; all its leases are in one namespace.
    pub(crate) fn group(&self, lease: u32) -> Option<u32> {
        self.parts.map(|parts| lease / parts)
    }

    /// When the candidate of this number registers, counted from the first one.
    pub(crate) fn registers_after(&self, number: u32) -> Duration {
        self.rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs(1) / rate * (number / self.candidates)
        })
    }

    /// The number of leases, of those in a group, and of electors.
    pub(crate) fn name(&self) -> String {
        size_name(self.leases, self.parts, self.electors)
    }

    /// The number of candidates of all leases together.
    pub(crate) fn all_candidates(&self) -> u32 {
        self.leases * self.candidates
    }
}

/// The name of a size in sentences.
pub(crate) fn size_name(leases: u32, parts: Option<u32>, electors: u32) -> String {
    let groups = parts.map(|parts| format!(" in groups of {parts}"));
    let several = (electors > 1).then(|| format!(" by {electors} electors"));
    let [groups, several] = [groups, several].map(Option::unwrap_or_default);
    format!("{leases} leases{groups}{several}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(flags: &[&str]) -> Result<Vec<RunSize>, String> {
        let line = ["scale"].iter().chain(flags);
        let args = ScaleArgs::try_parse_from(line).map_err(|error| error.to_string())?;
        args.sizes().map_err(|error| error.to_string())
    }

    #[test]
    fn leases_are_spread_so_that_an_elector_keeps_all_candidates() {
        let sizes = sizes(&["--leases=1000,10000,100000"]).unwrap();
        let spread: Vec<_> = sizes
            .iter()
            .map(|size| (size.leases, size.namespaces))
            .collect();
        assert_eq!(spread, [(1_000, 1), (10_000, 2), (100_000, 15)]);
    }

    #[test]
    fn the_rate_of_renewals_does_not_grow_with_the_leases() {
        let sizes = sizes(&["--leases=100,1000,10000,100000"]).unwrap();
        let durations: Vec<_> = sizes
            .iter()
            .map(|size| size.timing.lease_duration.as_secs())
            .collect();
        assert_eq!(durations, [15, 45, 450, 3600]);
        for size in sizes {
            size.timing.validate().unwrap();
        }
    }

    #[test]
    fn what_cannot_be_measured_says_why() {
        for (flags, text) in [
            (
                &["--leases=20000", "--namespaces=1"][..],
                "an elector keeps at most 30000 candidates of a namespace, and this would be 60000",
            ),
            (
                &["--lease-duration=10s"][..],
                "--lease-duration is 10s: must be whole seconds from 15s to 1h",
            ),
            (&["--candidates=65"][..], "65 is not in 1..=64"),
            (
                &["--leases=1000", "--parts=16"][..],
                "1000 leases are no groups of 16: --leases must be a multiple of --parts",
            ),
            (
                &["--namespaces=2", "--electors=3"][..],
                "3 electors for 2 namespaces: --electors is more than --namespaces",
            ),
        ] {
            let error = sizes(flags).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
