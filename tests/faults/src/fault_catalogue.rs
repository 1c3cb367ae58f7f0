//! The faults of the matrix.

use std::time::Duration;

use crate::fault::{AWAY, ElectorStart, FaultScenario, FaultScript, LeaderCondition, LeaseEdit};
use crate::network::NetworkCondition;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn fault(
    name: &'static str,
    description: &'static str,
    script: FaultScript,
    window: u64,
) -> FaultScenario {
    FaultScenario {
        name,
        description,
        script,
        window: seconds(window),
        phases: 1,
        in_slice: false,
    }
}

const fn at_leader(
    name: &'static str,
    description: &'static str,
    network: NetworkCondition,
    lasts: u64,
) -> FaultScenario {
    let script = FaultScript::AtLeader(network, seconds(lasts));
    fault(name, description, script, lasts + AFTERWARDS)
}

/// The time for which the subject is watched after a fault is over: longer than any lease.
const AFTERWARDS: u64 = 40;

/// Every fault, in the order of the table.
pub const FAULTS: &[FaultScenario] = &[
    fault("none", "no fault", FaultScript::Nothing, 60),
    fault(
        "first-start",
        "three processes start on an empty cluster, the elector with them",
        FaultScript::FirstStart(ElectorStart::Along),
        60,
    )
    .sliced(),
    fault(
        "first-start-beside-elector",
        "three processes start on an empty cluster, whose elector has been up for 30 s",
        FaultScript::FirstStart(ElectorStart::Before),
        60,
    ),
    fault(
        "killed",
        "leader killed, for good",
        FaultScript::Kill { back_after: None },
        60,
    )
    .sliced(),
    fault(
        "killed-and-back",
        "leader killed, started again after 5 s",
        FaultScript::Kill {
            back_after: Some(AWAY),
        },
        60,
    ),
    fault(
        "stop-5",
        "leader stopped for 5 s (SIGSTOP)",
        FaultScript::Stop(seconds(5)),
        45,
    )
    .phases(4),
    fault(
        "stop-20",
        "leader stopped for 20 s",
        FaultScript::Stop(seconds(20)),
        60,
    )
    .phases(4)
    .sliced(),
    fault(
        "stop-60",
        "leader stopped for 60 s",
        FaultScript::Stop(seconds(60)),
        100,
    )
    .phases(4),
    fault(
        "stop-5-in-flight",
        "leader stopped for 5 s, the answer to a renewal on its way",
        FaultScript::StopInFlight(seconds(5)),
        45,
    ),
    fault(
        "stop-20-in-flight",
        "leader stopped for 20 s, the answer to a renewal on its way",
        FaultScript::StopInFlight(seconds(20)),
        60,
    )
    .sliced(),
    fault(
        "stop-60-in-flight",
        "leader stopped for 60 s, the answer to a renewal on its way",
        FaultScript::StopInFlight(seconds(60)),
        100,
    ),
    fault(
        "stop-holder-20",
        "leader's `elector candidate` alone stopped for 20 s, and not its command",
        FaultScript::StopHolder(seconds(20)),
        60,
    )
    .phases(4)
    .sliced(),
    at_leader(
        "replies-5",
        "replies to the leader 5 s late, for 40 s",
        NetworkCondition::LateReplies(seconds(5)),
        40,
    ),
    at_leader(
        "replies-10",
        "replies to the leader 10 s late, for 40 s",
        NetworkCondition::LateReplies(seconds(10)),
        40,
    )
    .sliced(),
    at_leader(
        "replies-20",
        "replies to the leader 20 s late, for 40 s",
        NetworkCondition::LateReplies(seconds(20)),
        40,
    ),
    at_leader(
        "replies-lost",
        "the leader's requests are served, their replies are lost, for 40 s",
        NetworkCondition::LostReplies,
        40,
    ),
    at_leader(
        "one-way",
        "the leader's requests are served, not a byte comes back, for 40 s",
        NetworkCondition::OneWay,
        40,
    ),
    at_leader(
        "requests-5",
        "requests of the leader 5 s late, for 40 s",
        NetworkCondition::LateRequests(seconds(5)),
        40,
    ),
    at_leader(
        "requests-20",
        "requests of the leader 20 s late, for 40 s",
        NetworkCondition::LateRequests(seconds(20)),
        40,
    )
    .sliced(),
    at_leader(
        "partition-8",
        "leader cut off from the API server for 8 s, healed",
        NetworkCondition::Partition,
        8,
    ),
    at_leader(
        "partition-20",
        "leader cut off from the API server for 20 s, healed",
        NetworkCondition::Partition,
        20,
    )
    .sliced(),
    at_leader(
        "partition-60",
        "leader cut off from the API server for 60 s, healed",
        NetworkCondition::Partition,
        60,
    ),
    fault(
        "cut-off-20",
        "leader cut off from everything for 20 s, its work too",
        FaultScript::CutOff(seconds(20)),
        60,
    ),
    fault(
        "cut-off-60",
        "leader cut off from everything for 60 s, its work too",
        FaultScript::CutOff(seconds(60)),
        100,
    ),
    at_leader(
        "black-hole",
        "what the leader sends to the API server vanishes, for 40 s",
        NetworkCondition::BlackHole,
        40,
    ),
    at_leader(
        "refused",
        "the leader's connections are reset, for 40 s",
        NetworkCondition::Reject,
        40,
    ),
    at_leader(
        "429",
        "429 with Retry-After 1 for the leader, for 40 s",
        NetworkCondition::TooManyRequests(1),
        40,
    ),
    at_leader(
        "500",
        "500 for the leader, for 40 s",
        NetworkCondition::ServerErrors,
        40,
    ),
    fault(
        "watches-frozen",
        "watches of all candidates silent for 40 s, leader killed after 2 s",
        FaultScript::AtAllAndKill(NetworkCondition::FrozenWatches, seconds(40)),
        80,
    )
    .sliced(),
    fault(
        "watches-broken",
        "watches of all candidates broken for 40 s, leader killed after 2 s",
        FaultScript::AtAllAndKill(NetworkCondition::BrokenWatches, seconds(40)),
        80,
    ),
    fault(
        "lease-deleted",
        "Lease deleted by a stranger",
        FaultScript::Stranger(LeaseEdit::Delete, LeaderCondition::Undisturbed),
        60,
    )
    .sliced(),
    fault(
        "lease-deleted-partitioned",
        "Lease deleted while the leader is cut off from the API server for 20 s",
        FaultScript::Stranger(LeaseEdit::Delete, LeaderCondition::Partitioned(seconds(20))),
        60,
    )
    .sliced(),
    fault(
        "lease-deleted-stopped",
        "Lease deleted while the leader is stopped for 20 s",
        FaultScript::Stranger(LeaseEdit::Delete, LeaderCondition::Stopped(seconds(20))),
        60,
    ),
    fault(
        "lease-emptied",
        "Lease emptied by a stranger",
        FaultScript::Stranger(LeaseEdit::Empty, LeaderCondition::Undisturbed),
        60,
    )
    .sliced(),
    fault(
        "lease-emptied-partitioned",
        "Lease emptied while the leader is cut off from the API server for 20 s",
        FaultScript::Stranger(LeaseEdit::Empty, LeaderCondition::Partitioned(seconds(20))),
        60,
    ),
    fault(
        "three-electors",
        "three electors; one and the leader killed",
        FaultScript::KillElector { electors: 3 },
        60,
    )
    .sliced(),
    fault(
        "elector-killed",
        "the only elector and the leader killed, the elector back after 5 s",
        FaultScript::KillElector { electors: 1 },
        60,
    ),
    fault(
        "elector-late",
        "requests of the elector 10 s late for 40 s, leader killed after 2 s",
        FaultScript::AtElector {
            network: NetworkCondition::LateRequests(seconds(10)),
            lasts: seconds(40),
            kill: true,
        },
        80,
    ),
    fault(
        "elector-blind",
        "watches of the elector silent for 40 s, the leader lives",
        FaultScript::AtElector {
            network: NetworkCondition::FrozenWatches,
            lasts: seconds(40),
            kill: false,
        },
        80,
    ),
];
