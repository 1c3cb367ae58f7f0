//! Plans that once failed, as they were cut down, each under the name of what was wrong. They are written out, since a
//! change of the drawing gives every seed another meaning.

use std::time::Duration;

use crate::plan::{
    Applied, CandidateTampering, ElectorLocks, FaultKind, LeaseTampering, PlannedCandidate,
    PlannedFault, PlannedMode, PlannedWord, ProcessHost, ProcessIndex, Requests, RunPlan, Setup,
};

/// All of them.
#[must_use]
pub fn regressions() -> Vec<(&'static str, RunPlan)> {
    vec![
        (
            "electors that remember a failed grant differently take each other's word back",
            failed_grant(),
        ),
        (
            "an elector whose clock stood prefers whom another one knows not to answer",
            stopped_clock(),
        ),
        (
            "an elector behind an old cache prefers whom another one knows not to answer",
            old_cache(),
        ),
        (
            "a question that comes while a candidate reads its object is never answered",
            overtaken_read(),
        ),
        (
            "a candidate that cannot be asked is preferred and withdrawn in turn",
            unaskable(),
        ),
        (
            "a candidate with times at the end of time is never asked again",
            end_of_time(),
        ),
        (
            "a candidate that cannot be read stays out of every election",
            unreadable(),
        ),
        (
            "an elector grants a record that looks as before a term that it missed (MC-Q1)",
            hidden_term(),
        ),
        (
            "an elector that does not see the candidates takes back what another one prefers",
            blind_elector(),
        ),
        (
            "a candidate that never saw the Lease forgets how long its like lead (R18)",
            own_duration(),
        ),
        (
            "electors whose clocks differ fight over an operator's word (R16, R23)",
            minute_apart(),
        ),
    ]
}

/// The clocks of the electors are a minute apart, so for a minute a word is over for one of them alone. The holder that
/// is asked to make room takes long to stop. Then an operator prefers the other candidate, when the budget is used up.
fn minute_apart() -> RunPlan {
    let setup = Setup {
        feature_gate: false,
        custom: true,
        unserved: false,
        leases: 1,
        electors: vec![
            host(1_000_000, 0, 5, 1_000),
            host(1_000_000, 60_000, 5, 1_000),
        ],
        locks: ElectorLocks::default(),
        candidates: vec![
            candidate(0, (1, 2), (15, 10), 1_000, host(1_000_000, 0, 5, 2_000)),
            candidate(0, (2, 2), (15, 10), 25_000, host(1_000_000, 0, 5, 2_000)),
        ],
    };
    let prefer = |candidate| PlannedWord::Prefer(ProcessIndex(candidate));
    let faults = vec![
        fault(60_000, FaultKind::Say(0, prefer(3), millis(180_000))),
        fault(260_000, FaultKind::Say(0, prefer(2), millis(120_000))),
    ];
    plan(23, setup, faults, 400_000)
}

/// All candidates use a longer W than anybody was told of. The leader is cut off when its Lease is deleted, and the one
/// that starts then has its own W alone to tell for how long a leader may believe.
fn own_duration() -> RunPlan {
    let plain = |host| PlannedCandidate {
        mode: PlannedMode::Plain,
        ..candidate(0, (1, 2), (40, 30), 1_000, host)
    };
    let setup = Setup {
        feature_gate: false,
        custom: false,
        unserved: true,
        leases: 1,
        electors: vec![host(1_000_000, 0, 5, 1_000)],
        locks: ElectorLocks::default(),
        candidates: vec![
            plain(host(1_000_000, 0, 5, 1_000)),
            plain(host(1_000_000, 0, 5, 91_000)),
        ],
    };
    let faults = vec![
        fault(
            90_000,
            FaultKind::Partition(ProcessIndex(1), millis(60_000)),
        ),
        fault(
            90_500,
            FaultKind::TamperWithLease(0, LeaseTampering::Delete),
        ),
    ];
    plan(18, setup, faults, 150_000)
}

fn failed_grant() -> RunPlan {
    let setup = Setup {
        feature_gate: false,
        custom: false,
        unserved: false,
        leases: 2,
        electors: vec![
            host(1_012_230, -89_946, 9, 11_845),
            host(1_068_882, -167_085, 9, 1_317),
        ],
        locks: ElectorLocks::default(),
        candidates: vec![
            candidate(
                0,
                (3, 4),
                (15, 10),
                9_487,
                host(1_000_000, -461_591, 36, 531),
            ),
            candidate(
                0,
                (1, 2),
                (15, 10),
                1_557,
                host(1_014_238, 331_556, 9, 16_984),
            ),
            candidate(
                0,
                (2, 3),
                (15, 10),
                1_465,
                host(1_042_556, 87_522, 7, 9_721),
            ),
            candidate(
                1,
                (2, 3),
                (15, 10),
                1_253,
                host(900_000, 313_089, 2, 12_629),
            ),
            candidate(
                1,
                (1, 2),
                (15, 10),
                1_983,
                host(712_589, -382_570, 44, 1_947),
            ),
            candidate(
                1,
                (2, 3),
                (15, 10),
                1_259,
                host(915_727, -389_913, 130, 19_772),
            ),
        ],
    };
    let faults = vec![fault(
        8_456,
        FaultKind::Freeze(ProcessIndex(3), millis(41_524)),
    )];
    plan(180, setup, faults, 78_796)
}

fn stopped_clock() -> RunPlan {
    let setup = Setup {
        feature_gate: false,
        custom: true,
        unserved: false,
        leases: 2,
        electors: vec![
            host(900_000, 233_740, 4, 12_580),
            host(1_000_000, -132_116, 8, 6_525),
        ],
        locks: ElectorLocks::default(),
        candidates: vec![
            candidate(0, (3, 4), (10, 8), 1_289, host(950_995, 78_206, 10, 4_762)),
            candidate(
                0,
                (3, 4),
                (10, 8),
                1_503,
                host(1_000_000, 459_025, 76, 9_372),
            ),
            candidate(
                0,
                (2, 2),
                (10, 8),
                10_575,
                host(1_100_000, 498_229, 7, 5_441),
            ),
            candidate(
                1,
                (1, 2),
                (10, 8),
                1_501,
                host(900_000, -536_625, 9, 18_317),
            ),
            candidate(1, (2, 2), (10, 8), 783, host(1_000_000, 460_639, 6, 11_754)),
            candidate(
                1,
                (1, 1),
                (10, 8),
                10_557,
                host(1_018_560, -324_046, 8, 9_984),
            ),
        ],
    };
    let faults = vec![
        fault(
            2_786,
            FaultKind::Lose(ProcessIndex(5), Requests::Updates, Applied::No, 4),
        ),
        fault(8_770, FaultKind::StopClock(ProcessIndex(1), millis(34_802))),
        fault(24_795, FaultKind::Pause(ProcessIndex(7), millis(30_196))),
    ];
    plan(285, setup, faults, 60_516)
}

fn old_cache() -> RunPlan {
    let setup = Setup {
        feature_gate: true,
        custom: true,
        unserved: false,
        leases: 2,
        electors: vec![
            host(1_100_000, 561_306, 9, 12_471),
            host(1_000_000, 471_675, 7, 11_049),
            host(900_000, -535_503, 3, 891),
        ],
        locks: ElectorLocks::default(),
        candidates: vec![
            candidate(0, (2, 2), (6, 4), 1_944, host(900_000, 492_275, 2, 6_926)),
            candidate(0, (1, 2), (6, 4), 780, host(1_100_000, -252_991, 1, 10_285)),
            candidate(0, (3, 4), (6, 4), 1_592, host(733_334, -2_737, 1, 4_469)),
            candidate(0, (3, 4), (6, 4), 909, host(900_000, 395_997, 2, 17_965)),
            candidate(1, (3, 4), (6, 4), 9_027, host(900_000, 119_443, 3, 7_554)),
            candidate(1, (3, 3), (6, 4), 1_936, host(900_000, 69_071, 5, 457)),
            candidate(
                1,
                (3, 4),
                (6, 4),
                1_517,
                host(1_089_989, -102_392, 1, 12_183),
            ),
            candidate(
                1,
                (1, 1),
                (6, 4),
                1_225,
                host(1_100_000, 258_194, 10, 3_019),
            ),
        ],
    };
    let faults = vec![
        fault(
            20_580,
            FaultKind::OldCache(ProcessIndex(0), 4, millis(22_809)),
        ),
        fault(33_030, FaultKind::Pause(ProcessIndex(4), millis(42_967))),
    ];
    plan(1055, setup, faults, 140_035)
}

fn overtaken_read() -> RunPlan {
    let setup = Setup {
        feature_gate: false,
        custom: false,
        unserved: false,
        leases: 2,
        electors: vec![
            host(1_000_000, 129_484, 2, 13_402),
            host(1_000_000, 275_038, 9, 2_584),
        ],
        locks: ElectorLocks::default(),
        candidates: vec![
            candidate(
                0,
                (2, 3),
                (15, 12),
                1_270,
                host(1_100_000, 368_342, 7, 7_886),
            ),
            candidate(0, (1, 2), (15, 12), 320, host(967_753, 407_228, 4, 5_100)),
            candidate(
                0,
                (3, 4),
                (15, 12),
                11_672,
                host(800_001, -406_105, 6, 11_807),
            ),
            candidate(1, (1, 2), (15, 12), 35, host(1_078_064, 341_811, 2, 18_720)),
            candidate(
                1,
                (2, 3),
                (15, 12),
                1_244,
                host(1_100_000, 326_501, 10, 8_242),
            ),
            candidate(
                1,
                (1, 2),
                (15, 12),
                1_016,
                host(1_082_892, -272_457, 4, 17_280),
            ),
        ],
    };
    plan(2216, setup, Vec::new(), 235_677)
}

fn unaskable() -> RunPlan {
    let setup = Setup {
        feature_gate: true,
        custom: false,
        unserved: false,
        leases: 1,
        electors: vec![
            host(1_100_000, 301_729, 2, 18_329),
            host(900_000, -303_419, 7, 2_543),
        ],
        locks: ElectorLocks::default(),
        candidates: vec![
            candidate(
                0,
                (2, 3),
                (15, 10),
                11_353,
                host(1_056_710, -51_422, 2, 13_192),
            ),
            candidate(
                0,
                (1, 2),
                (15, 10),
                1_606,
                host(733_334, -579_949, 5, 6_127),
            ),
        ],
    };
    let faults = vec![
        fault(
            21_128,
            FaultKind::Partition(ProcessIndex(1), millis(41_982)),
        ),
        fault(33_079, FaultKind::Pause(ProcessIndex(2), millis(40_991))),
        fault(
            43_767,
            FaultKind::TamperWithCandidate(ProcessIndex(2), CandidateTampering::Version),
        ),
        fault(
            53_048,
            FaultKind::TamperWithCandidate(ProcessIndex(2), CandidateTampering::Times),
        ),
    ];
    plan(5601, setup, faults, 94_788)
}

fn end_of_time() -> RunPlan {
    let setup = Setup {
        feature_gate: true,
        custom: false,
        unserved: false,
        leases: 2,
        electors: vec![host(900_000, 175_611, 1, 16_955)],
        locks: ElectorLocks::default(),
        candidates: vec![
            candidate(0, (2, 3), (15, 12), 453, host(900_000, -340_658, 9, 4_584)),
            candidate(
                0,
                (1, 2),
                (10, 8),
                1_799,
                host(900_000, 346_961, 91, 10_589),
            ),
            candidate(
                1,
                (3, 4),
                (10, 8),
                256,
                host(1_000_000, 562_426, 198, 14_884),
            ),
            candidate(1, (2, 2), (15, 10), 852, host(908_631, 216_886, 10, 4_385)),
        ],
    };
    let tampering = FaultKind::TamperWithCandidate(ProcessIndex(1), CandidateTampering::Times);
    plan(159, setup, vec![fault(47_059, tampering)], 221_431)
}

fn unreadable() -> RunPlan {
    let setup = Setup {
        feature_gate: true,
        custom: false,
        unserved: false,
        leases: 2,
        electors: vec![
            host(900_000, 362_722, 7, 9_391),
            host(1_016_229, -138_578, 1, 13_611),
            host(900_000, -166_850, 9, 8_058),
        ],
        locks: ElectorLocks::default(),
        candidates: vec![
            candidate(
                0,
                (1, 1),
                (15, 10),
                9_183,
                host(1_000_000, 332_917, 3, 5_639),
            ),
            candidate(0, (1, 2), (15, 10), 863, host(1_100_000, 188_590, 6, 4_910)),
            candidate(1, (2, 2), (15, 10), 195, host(929_494, -58_677, 1, 6_267)),
            candidate(1, (3, 3), (10, 8), 131, host(812_984, -323_034, 1, 10_073)),
        ],
    };
    let tampering = FaultKind::TamperWithCandidate(ProcessIndex(6), CandidateTampering::Unreadable);
    plan(96, setup, vec![fault(43_168, tampering)], 249_854)
}

fn hidden_term() -> RunPlan {
    let setup = Setup {
        feature_gate: false,
        custom: true,
        unserved: false,
        leases: 1,
        electors: vec![
            host(1_100_000, 303_116, 4, 14_719),
            host(1_100_000, -295_326, 10, 17_181),
        ],
        locks: ElectorLocks::default(),
        candidates: vec![
            candidate(0, (2, 2), (15, 10), 576, host(733_334, 538_784, 4, 15_299)),
            candidate(
                0,
                (3, 4),
                (15, 10),
                10_617,
                host(1_100_000, -588_989, 1, 4_643),
            ),
            candidate(
                0,
                (2, 3),
                (15, 10),
                1_586,
                host(1_000_000, 548_600, 105, 18_715),
            ),
            candidate(
                0,
                (2, 3),
                (15, 10),
                834,
                host(1_065_263, -442_864, 1, 19_558),
            ),
        ],
    };
    let faults = vec![
        fault(
            28_346,
            FaultKind::Partition(ProcessIndex(0), millis(22_390)),
        ),
        fault(
            50_269,
            FaultKind::TamperWithLease(0, LeaseTampering::Restore),
        ),
    ];
    plan(76, setup, faults, 219_137)
}

fn blind_elector() -> RunPlan {
    let setup = Setup {
        feature_gate: false,
        custom: false,
        unserved: false,
        leases: 2,
        electors: vec![
            host(1_000_000, 142_128, 6, 17_979),
            host(1_088_621, 52_912, 6, 10_973),
            host(900_000, -150_331, 187, 17_113),
        ],
        locks: ElectorLocks::default(),
        candidates: vec![
            candidate(0, (3, 4), (10, 8), 1_767, host(1_100_000, 596_067, 2, 180)),
            candidate(
                0,
                (2, 2),
                (10, 8),
                1_934,
                host(1_000_000, 481_324, 147, 2_000),
            ),
            candidate(0, (3, 3), (10, 8), 338, host(900_000, -322_699, 2, 12_219)),
            candidate(1, (2, 2), (10, 8), 1_085, host(870_897, 276_976, 3, 17_466)),
            candidate(1, (3, 4), (10, 8), 10_342, host(900_000, 283_476, 8, 7_021)),
            candidate(
                1,
                (3, 4),
                (10, 8),
                1_585,
                host(870_897, -301_134, 137, 1_835),
            ),
        ],
    };
    let faults = vec![
        fault(
            46_845,
            FaultKind::Refuse(ProcessIndex(1), Requests::Reads, 409, Applied::No, 1),
        ),
        fault(
            50_521,
            FaultKind::Partition(ProcessIndex(6), millis(20_828)),
        ),
    ];
    plan(4128, setup, faults, 71_349)
}

fn plan(seed: u64, setup: Setup, faults: Vec<PlannedFault>, faults_end: u64) -> RunPlan {
    RunPlan {
        seed,
        setup,
        faults,
        faults_end: millis(faults_end),
    }
}

/// A clock's rate in millionths and its offset in milliseconds, the latency, and the start.
const fn host(rate: u64, offset: i64, latency: u64, start: u64) -> ProcessHost {
    ProcessHost {
        rate,
        offset,
        latency,
        start: millis(start),
    }
}

const fn candidate(
    lease: usize,
    version: (u64, u64),
    timing: (u64, u64),
    stop: u64,
    host: ProcessHost,
) -> PlannedCandidate {
    PlannedCandidate {
        host,
        lease,
        version,
        timing,
        stop: millis(stop),
        mode: PlannedMode::Elected,
    }
}

const fn fault(at: u64, kind: FaultKind) -> PlannedFault {
    PlannedFault {
        at: millis(at),
        kind,
    }
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
