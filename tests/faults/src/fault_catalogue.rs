//! The faults of the matrix, as a table.

use std::time::Duration;

use rustix::process::Signal;

use crate::fault::ElectorStart::{Along, Before};
use crate::fault::FaultScript::{
    Annotate, AtAllAndEnd, AtElector, AtLeader, AtServer, CutOff, FirstStart, Kill, KillElector,
    Nothing, Roll, Stop, StopHolder, StopInFlight, Stranger,
};
use crate::fault::LeaderCondition::{Partitioned, Stopped, Undisturbed};
use crate::fault::LeaseEdit::{Delete, Empty};
use crate::fault::{AWAY, FaultScenario};
use crate::network::NetworkCondition::{
    BlackHole, BrokenWatches, ForgottenRequests, FrozenWatches, HalfPartition, LateReplies,
    LateRequests, LostReplies, OneWay, Partition, Reject, ServerErrors, TooManyRequests,
};
use crate::server_fault::ServerFault::{PauseEtcd, Restart};

/// Seconds.
const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A row: its name, its description, what is done, and for how many seconds the subject is watched from then on, which is
/// longer than any lease after the end of the fault; then what differs from [`FaultScenario::USUAL`].
macro_rules! faults {
    ($($name:literal $description:literal: $script:expr, $window:literal $(, $field:ident = $value:expr)*;)*) => {
        &[$(FaultScenario {
            $($field: $value,)*
            name: $name,
            description: $description,
            script: $script,
            window: s($window),
            ..FaultScenario::USUAL
        }),*]
    };
}

/// Every fault, in the order of the table.
pub const FAULTS: &[FaultScenario] = faults! {
    "none" "no fault": Nothing, 60;
    "first-start" "three processes start on an empty cluster, the elector with them": FirstStart(Along), 60, sliced = true;
    "first-start-beside-elector" "three processes start on an empty cluster, whose elector has been up for 30 s": FirstStart(Before), 60;
    "killed" "leader killed, for good": Kill { back_after: None }, 60, runs = 3, sliced = true, compared = true;
    "killed-and-back" "leader killed, started again after 5 s": Kill { back_after: Some(AWAY) }, 60, runs = 3, compared = true;
    "rolling-update" "three replicas replaced one by one, each ended by SIGTERM": Roll, 60, runs = 3, compared = true;
    "stop-5" "leader stopped for 5 s (SIGSTOP)": Stop(s(5)), 45, runs = 4;
    "stop-20" "leader stopped for 20 s": Stop(s(20)), 60, runs = 4, sliced = true;
    "stop-60" "leader stopped for 60 s": Stop(s(60)), 100, runs = 4;
    "stop-5-in-flight" "leader stopped for 5 s, the answer to a renewal on its way": StopInFlight(s(5)), 45;
    "stop-20-in-flight" "leader stopped for 20 s, the answer to a renewal on its way": StopInFlight(s(20)), 60, sliced = true;
    "stop-60-in-flight" "leader stopped for 60 s, the answer to a renewal on its way": StopInFlight(s(60)), 100;
    "stop-holder-20" "leader's `elector candidate` alone stopped for 20 s, and not its command": StopHolder(s(20)), 60, runs = 4, sliced = true;
    "replies-5" "replies to the leader 5 s late, for 40 s": AtLeader(LateReplies(s(5)), s(40)), 80, runs = 3, compared = true;
    "replies-10" "replies to the leader 10 s late, for 40 s": AtLeader(LateReplies(s(10)), s(40)), 80, sliced = true;
    "replies-20" "replies to the leader 20 s late, for 40 s": AtLeader(LateReplies(s(20)), s(40)), 80;
    "replies-lost" "the leader's requests are served, their replies are lost, for 40 s": AtLeader(LostReplies, s(40)), 80;
    "one-way" "the leader's requests are served, not a byte comes back, for 40 s": AtLeader(OneWay, s(40)), 80;
    "requests-5" "requests of the leader 5 s late, for 40 s": AtLeader(LateRequests(s(5)), s(40)), 80, runs = 3, compared = true;
    "requests-20" "requests of the leader 20 s late, for 40 s": AtLeader(LateRequests(s(20)), s(40)), 80, sliced = true;
    "forgotten-3" "requests of the leader 3 s late and dropped if their client has gone, for 60 s": AtLeader(ForgottenRequests(s(3)), s(60)), 100, runs = 3, compared = true;
    "half-silent" "every other connection of the leader silent for 40 s, as one of two API servers": AtLeader(HalfPartition, s(40)), 80, runs = 3, compared = true;
    "partition-8" "leader cut off from the API server for 8 s, healed": AtLeader(Partition, s(8)), 48, runs = 4, compared = true;
    "partition-20" "leader cut off from the API server for 20 s, healed": AtLeader(Partition, s(20)), 60, sliced = true;
    "partition-60" "leader cut off from the API server for 60 s, healed": AtLeader(Partition, s(60)), 100;
    "cut-off-20" "leader cut off from everything for 20 s, its work too": CutOff(s(20)), 60;
    "cut-off-60" "leader cut off from everything for 60 s, its work too": CutOff(s(60)), 100;
    "black-hole" "what the leader sends to the API server vanishes, for 40 s": AtLeader(BlackHole, s(40)), 80;
    "refused" "the leader's connections are reset, for 40 s": AtLeader(Reject, s(40)), 80;
    "429" "429 with Retry-After 1 for the leader, for 40 s": AtLeader(TooManyRequests(1), s(40)), 80;
    "500" "500 for the leader, for 40 s": AtLeader(ServerErrors, s(40)), 80;
    "watches-frozen" "watches of all candidates silent for 40 s, leader killed after 2 s": AtAllAndEnd(FrozenWatches, s(40), Signal::KILL), 80, explains = s(9), sliced = true;
    "watches-broken" "watches of all candidates broken for 40 s, leader killed after 2 s": AtAllAndEnd(BrokenWatches, s(40), Signal::KILL), 80, explains = s(9);
    "hand-over-late" "replies to all candidates 3 s late for 40 s, leader ended by SIGTERM after 2 s": AtAllAndEnd(LateReplies(s(3)), s(40), Signal::TERM), 80, runs = 3, compared = true;
    "apiserver-restarts" "the API server killed and started again at once, all clients on it": AtServer(Restart), 60, runs = 3, sliced = true, compared = true;
    "etcd-stopped-12" "etcd stopped for 12 s (SIGSTOP of the only member), as without a quorum": AtServer(PauseEtcd(s(12))), 60, runs = 3, compared = true;
    "annotated" "a stranger annotates the Lease ten times a second, for 40 s": Annotate(s(40)), 60, runs = 3;
    "lease-deleted" "Lease deleted by a stranger": Stranger(Delete, Undisturbed), 60, runs = 3, sliced = true, compared = true;
    "lease-deleted-partitioned" "Lease deleted while the leader is cut off from the API server for 20 s": Stranger(Delete, Partitioned(s(20))), 60, sliced = true;
    "lease-deleted-stopped" "Lease deleted while the leader is stopped for 20 s": Stranger(Delete, Stopped(s(20))), 60;
    "lease-emptied" "Lease emptied by a stranger": Stranger(Empty, Undisturbed), 60, runs = 3, sliced = true;
    "lease-emptied-partitioned" "Lease emptied while the leader is cut off from the API server for 20 s": Stranger(Empty, Partitioned(s(20))), 60;
    "three-electors" "three electors; one and the leader killed": KillElector { electors: 3 }, 60, sliced = true;
    "elector-killed" "the only elector and the leader killed, the elector back after 5 s": KillElector { electors: 1 }, 60, explains = s(5);
    "elector-late" "requests of the elector 10 s late for 40 s, leader killed after 2 s": AtElector { network: LateRequests(s(10)), lasts: s(40), kill: true }, 80, explains = s(10);
    "elector-blind" "watches of the elector silent for 40 s, the leader lives": AtElector { network: FrozenWatches, lasts: s(40), kill: false }, 80;
};
