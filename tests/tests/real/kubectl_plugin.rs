//! `kubectl elector`, as an operator uses it: kubectl finds the plugin in $PATH.

mod check;
mod drain;
mod status;
mod words;

use elector_tests::rig::Suite;

use crate::{EVERYWHERE, GATE_OFF, OURS};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(OURS, EVERYWHERE);
    shared.add("kubectl_elector_tells_who_leads", 15, status::shown);
    let obeyed = words::obeyed;
    shared.add("kubectl_elector_says_what_an_operator_wants", 15, obeyed);
    let mut own = suite.own(OURS, GATE_OFF);
    own.add("kubectl_elector_checks_a_cluster", 60, check::faults);
    own.add("kubectl_elector_drains_a_node", 60, drain::drained);
}
