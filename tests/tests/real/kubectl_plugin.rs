//! `kubectl elector`, as an operator uses it: kubectl finds the plugin in $PATH.

mod check;
mod status;
mod words;

use std::time::Duration;

use elector_tests::rig::{ClusterChoice, ClusterMode, Suite};

use crate::{EVERYWHERE, OURS};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "kubectl_elector_tells_who_leads",
        ClusterChoice::Shared,
        OURS,
        EVERYWHERE,
        Duration::from_secs(15),
        |testbed| Box::pin(status::told(testbed)),
    );
    suite.add(
        "kubectl_elector_checks_a_cluster",
        ClusterChoice::Own,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(40),
        |testbed| Box::pin(check::faults(testbed)),
    );
    suite.add(
        "kubectl_elector_says_what_an_operator_wants",
        ClusterChoice::Shared,
        OURS,
        EVERYWHERE,
        Duration::from_secs(15),
        |testbed| Box::pin(words::obeyed(testbed)),
    );
}
