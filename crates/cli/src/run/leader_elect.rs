//! Leader election among electors as flags, named as those of the components of Kubernetes.

use std::env;
use std::fs;
use std::time::Duration;

use clap::{ArgAction, Args};
use elector::LeaderElection;
use elector_api::parse_duration;
use elector_protocol::LeaseKey;

/// Which of several electors acts.
#[derive(Args, Debug)]
#[command(next_help_heading = "Leader election among electors")]
pub(crate) struct LeaderElectArgs {
    /// Let one elector act, and the others stand by: they watch, write nothing, and the first of them takes over when the
    /// active one ends or has not renewed its lease for the lease duration. Without this all electors act at the same
    /// time, which is safe too and costs conflicts
    #[arg(
        long,
        value_name = "BOOL",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        hide_possible_values = true
    )]
    leader_elect: bool,

    /// How long the standbys wait for a renewal before one takes over; whole seconds, from 2s to 1h
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parse_duration)]
    leader_elect_lease_duration: Duration,

    /// How long the active elector acts after its newest successful renewal; from 1s to 4/5 of the lease duration and
    /// one second below it. Renewals are due every third of this
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    leader_elect_renew_deadline: Duration,

    /// The longest pause between failed requests for the lease; from 250ms to a third of the renew deadline
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    leader_elect_retry_period: Duration,

    /// Name of the Lease that the active elector holds
    #[arg(long, value_name = "NAME", default_value = LeaderElection::DEFAULT_NAME)]
    leader_elect_resource_name: String,

    /// Namespace of that Lease [default: the namespace of the pod, or elector-system outside of one]
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_namespace: Option<String>,
}

/// Where Kubernetes tells a pod its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

// === impl LeaderElectArgs ===

impl LeaderElectArgs {
    /// The leader election that is asked for, if one is. `host` says what to call this process.
    pub(crate) fn election(self, host: impl FnOnce() -> String) -> Option<LeaderElection> {
        let namespace = self.leader_elect_resource_namespace;
        self.leader_elect.then(|| LeaderElection {
            lease: LeaseKey::new(
                namespace
                    .or_else(pod_namespace)
                    .unwrap_or_else(|| LeaderElection::DEFAULT_NAMESPACE.to_owned()),
                self.leader_elect_resource_name,
            ),
            host: host(),
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
        })
    }
}

/// The namespace of the pod that this process runs in.
fn pod_namespace() -> Option<String> {
    let told = env::var("POD_NAMESPACE").ok();
    let namespace = told.or_else(|| fs::read_to_string(NAMESPACE_FILE).ok())?;
    let namespace = namespace.trim();
    (!namespace.is_empty()).then(|| namespace.to_owned())
}
