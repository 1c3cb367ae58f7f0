//! Drawing a plan from a seed.

use std::time::Duration;

use super::draw_wishes::{draw_wishes, stand_downs};
use super::{
    Applied, CandidateTampering, ElectorLocks, FaultKind, LeaseTampering, PlannedCandidate,
    PlannedFault, PlannedMode, PlannedStrategy, PlannedWord, ProcessHost, ProcessIndex, Requests,
    RestartName, RunPlan, Setup, WatchClose, WorkEnd,
};
use crate::random::Random;

/// The limit on the difference of clocks in a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockBound {
    /// Within the bound W ≥ κ · H; equality is drawn too.
    #[default]
    Within,
    /// Beyond it: two may believe at once.
    Beyond,
}

/// W and H in seconds: the usual, the shortest that is sensible, and the least margin that is accepted.
pub(super) const TIMINGS: [(u64, u64); 4] = [(15, 10), (6, 4), (10, 8), (15, 12)];

const ELECTED: &[PlannedMode] = &[PlannedMode::Elected];
const AUTO: &[PlannedMode] = &[PlannedMode::Auto];
const PLAIN: &[PlannedMode] = &[PlannedMode::Plain];

/// Which kinds of candidates stand for a lease together. Each is drawn as often as it stands here.
const MIXTURES: [&[PlannedMode]; 10] = [
    ELECTED,
    ELECTED,
    ELECTED,
    AUTO,
    AUTO,
    AUTO,
    &[PlannedMode::Elected, PlannedMode::Auto],
    PLAIN,
    PLAIN,
    &[PlannedMode::Elected, PlannedMode::Auto, PlannedMode::Plain],
];

/// The same where no candidate can be registered.
const UNSERVED: [&[PlannedMode]; 3] = [AUTO, PLAIN, &[PlannedMode::Auto, PlannedMode::Plain]];

/// The status codes of storms.
const STATUSES: [u16; 6] = [409, 410, 429, 500, 503, 504];

// === impl RunPlan ===

impl RunPlan {
    /// The plan of a seed.
    #[must_use]
    pub fn draw(seed: u64, reach: ClockBound) -> Self {
        let mut setup = draw_setup(&mut Random::stream(seed, 1), reach);
        let mut locks = Random::stream(seed, 5);
        draw_locks(&mut locks, &mut setup, reach);
        let mut random = Random::stream(seed, 2);
        let horizon = random.between(40_000, 240_000);
        let count = random.between(0, 20);
        let mut faults: Vec<PlannedFault> = (0..count)
            .map(|_| PlannedFault {
                at: random.millis(0, horizon),
                kind: draw_fault(&mut random, &setup),
            })
            .collect();
        let stream = |label| Random::stream(seed, label);
        if reach == ClockBound::Beyond {
            faults = cut_off(&setup);
        } else {
            let mut wishes = stream(12);
            draw_wishes(&mut wishes, &mut setup);
            let mut random = stream(3);
            if random.percent(5) {
                faults.extend(hide_a_term(&mut random, &setup));
            }
            faults.extend(without_electors(&mut stream(4), &setup, horizon));
            faults.extend(around_the_lock(&mut locks, &setup, horizon));
            faults.extend(idle_candidate(&mut stream(6), &setup, horizon));
            faults.extend(operators_words(&mut stream(7), &setup, horizon));
            faults.extend(spoilt_work(&mut stream(9), &setup, horizon));
            faults.extend(set_back(&mut stream(10), &setup, horizon));
            faults.extend(flood(&mut stream(11), horizon));
            faults.extend(restored(&mut stream(14), horizon));
            faults.extend(client_go(&mut stream(13), &setup, horizon));
            faults.extend(forgotten(&mut stream(15), &setup, horizon));
            faults.extend(outages(&mut stream(16), &setup, horizon));
            faults.extend(stand_downs(&mut wishes, &setup, horizon));
        }
        faults.sort_by_key(|fault| fault.at);
        let last = faults.iter().map(|fault| fault.at + fault.kind.lasts());
        let horizon = Duration::from_millis(horizon);
        let faults_end = last.max().unwrap_or_default().max(horizon);
        Self {
            seed,
            setup,
            faults,
            faults_end,
        }
    }
}

/// The faults that show a broken bound: each candidate in turn is cut off, so that the leader is too, then each elector.
fn cut_off(setup: &Setup) -> Vec<PlannedFault> {
    let candidates = setup.electors.len()..setup.processes();
    candidates
        .chain(0..setup.electors.len())
        .zip(1..)
        .map(|(index, turn)| PlannedFault {
            at: Duration::from_secs(60 * turn),
            kind: FaultKind::Partition(ProcessIndex(index), Duration::from_secs(45)),
        })
        .collect()
}

/// Faults that hide a term from an elector, or from a candidate that may acquire: it is cut off soon after its start,
/// and before it is back the Lease looks as it did then, the holder does not hear of it, and the server has forgotten
/// what happened in between (MC-Q1). Single faults hardly ever come together like that.
fn hide_a_term(random: &mut Random, setup: &Setup) -> [PlannedFault; 4] {
    let timer = draw_timer(random, setup);
    let holder = setup.electors.len() + random.index(setup.candidates.len());
    let started = setup.host(timer).map(|host| host.start);
    let from = started.unwrap_or_default() + random.millis(1_000, 14_000);
    let lasts = random.millis(8_000, 45_000);
    let back = from + lasts;
    let before = |millis| back.saturating_sub(Duration::from_millis(millis));
    let lease = setup.candidates[holder - setup.electors.len()].lease;
    let holder = FaultKind::Partition(ProcessIndex(holder), Duration::from_secs(20));
    let restore = FaultKind::TamperWithLease(lease, LeaseTampering::Restore);
    let faults = [
        (from, FaultKind::Partition(timer, lasts)),
        (before(random.between(500, 2_000)), holder),
        (before(random.between(100, 500)), restore),
        (before(50), FaultKind::Compact),
    ];
    faults.map(|(at, kind)| PlannedFault { at, kind })
}

/// Times without an elector: all of them are away for long, or one may not write. While they are away a candidate dies
/// as a rule, since otherwise the leader may well outlast them. Where a Lease is deleted just before they return, they have
/// never seen its duration, and know what candidates announce (R6).
fn without_electors(random: &mut Random, setup: &Setup, horizon: u64) -> Vec<PlannedFault> {
    let mut faults = Vec::new();
    if random.percent(36) {
        let (from, lasts) = (random.millis(0, horizon), random.between(30_000, 200_000));
        let away = FaultKind::ElectorsAway(Duration::from_millis(lasts));
        faults.push((from, away));
        for _ in 0..random.index(4) {
            let candidate = setup.electors.len() + random.index(setup.candidates.len());
            let dead = random.millis(100, 40_000);
            let crash = FaultKind::Crash(ProcessIndex(candidate), dead, RestartName::New);
            faults.push((from + random.millis(0, lasts), crash));
        }
        if random.percent(50) {
            let of = random.index(setup.leases);
            let delete = FaultKind::TamperWithLease(of, LeaseTampering::Delete);
            let before = random.between(0, 3_000);
            faults.push((from + Duration::from_millis(lasts - before), delete));
        }
    }
    if random.percent(35) {
        let elector = ProcessIndex(random.index(setup.electors.len()));
        let at = random.millis(0, horizon);
        faults.push((
            at,
            FaultKind::Forbid(elector, random.millis(20_000, 120_000)),
        ));
    }
    let faults = faults.into_iter();
    faults.map(|(at, kind)| PlannedFault { at, kind }).collect()
}

/// The locks of the electors. The slowest of them may be as slow as W and H of their own allow, and is slower beyond
/// the bound.
fn draw_locks(random: &mut Random, setup: &mut Setup, reach: ClockBound) {
    let beyond = reach == ClockBound::Beyond;
    let several = setup.electors.len() > 1;
    if several && (beyond || random.percent(60)) || random.percent(20) {
        let (w, h) = random.pick(&TIMINGS);
        setup.locks.leader_election = Some((w, h));
        let fastest = setup.electors.iter().map(|host| host.rate).max();
        let slow = random.index(setup.electors.len());
        if let Some((host, fastest)) = setup.electors.get_mut(slow).zip(fastest)
            && (beyond || random.percent(15))
        {
            let slowest = fastest * h / w;
            host.rate = if beyond {
                slowest * 9 / 10
            } else {
                slowest + 1
            };
        }
    }
    setup.locks.builtin = random.percent(25) && !setup.custom && !setup.unserved;
}

/// Faults of the electors where one of them leads the others: any of them may be the one.
fn around_the_lock(random: &mut Random, setup: &Setup, horizon: u64) -> Vec<PlannedFault> {
    let mut faults = Vec::new();
    if setup.locks.leader_election.is_none() {
        return faults;
    }
    for _ in 0..random.index(4) {
        let elector = ProcessIndex(random.index(setup.electors.len()));
        let lasts = random.millis(1_000, 45_000);
        let kind = match random.index(5) {
            0 => FaultKind::Crash(elector, lasts, RestartName::New),
            1 => FaultKind::ShutDown(elector, lasts),
            2 => FaultKind::Partition(elector, lasts),
            _ => FaultKind::Pause(elector, lasts),
        };
        let at = random.millis(0, horizon);
        faults.push(PlannedFault { at, kind });
    }
    if random.percent(85) {
        let at = random.millis(0, horizon);
        let kind = FaultKind::TamperWithLock(draw_tampering(random));
        faults.push(PlannedFault { at, kind });
    }
    faults
}

/// A candidate for which holders make room in vain.
fn idle_candidate(random: &mut Random, setup: &Setup, horizon: u64) -> Option<PlannedFault> {
    let keeps = Duration::from_secs(random.pick(&[3, 20, 90]));
    let lease = random.index(setup.leases);
    let at = random.millis(0, horizon);
    let kind = FaultKind::IdleCandidate(lease, keeps, random.millis(30_000, 300_000));
    (random.percent(35) && !setup.unserved).then_some(PlannedFault { at, kind })
}

/// An operator's words: most preferences are for candidates of the lease.
fn operators_words(random: &mut Random, setup: &Setup, horizon: u64) -> Vec<PlannedFault> {
    let some = random.percent(50);
    let count = if some { random.index(4) } else { 0 };
    let draw = |_| {
        let lease = random.index(setup.leases);
        let word = if random.percent(50) {
            PlannedWord::Freeze
        } else {
            PlannedWord::Prefer(ProcessIndex(random.index(setup.processes())))
        };
        PlannedFault {
            at: random.millis(0, horizon),
            kind: FaultKind::Say(lease, word, random.millis(1_000, 120_000)),
        }
    };
    (0..count).map(draw).collect()
}

/// Work that does not follow its orders, a server that serves no candidates for a while, and a built-in controller that
/// keeps its lock, most often from the beginning.
fn spoilt_work(random: &mut Random, setup: &Setup, horizon: u64) -> Vec<PlannedFault> {
    let mut faults = Vec::new();
    let mut add = |at, kind| faults.push(PlannedFault { at, kind });
    for (end, often) in [
        (WorkEnd::Returns, 80),
        (WorkEnd::Fails, 80),
        (WorkEnd::Panics, 80),
        (WorkEnd::Never, 100),
    ] {
        let (at, lasts) = (random.millis(0, horizon), random.millis(10_000, 45_000));
        let lease = random.index(setup.leases);
        if random.percent(often) {
            add(at, FaultKind::SpoilWork(lease, end, lasts));
            // Work of that kind shows only when it is asked to stop.
            if end == WorkEnd::Never {
                let candidates = setup.candidates.iter().zip(setup.electors.len()..);
                let rivals = candidates.filter(|(it, _)| it.lease == lease);
                let rivals = rivals.map(|(_, index)| ProcessIndex(index));
                let rival = PlannedWord::Prefer(random.pick(&rivals.collect::<Vec<_>>()));
                add(at + lasts / 8, FaultKind::Say(lease, rival, lasts));
                let delete = FaultKind::TamperWithLease(lease, LeaseTampering::Delete);
                add(at + lasts / 2, delete);
            }
        }
    }
    if random.percent(50) {
        let at = random.millis(0, horizon);
        add(at, FaultKind::HideCandidates(random.millis(500, 45_000)));
    }
    if random.percent(35) {
        let at = random.either(70, Duration::ZERO, random.clone().millis(0, horizon));
        add(at, FaultKind::HoldLock(random.millis(5_000, 90_000)));
    }
    if random.percent(50) {
        let at = random.millis(0, horizon);
        let lasts = random.millis(500, 45_000);
        add(at, FaultKind::DowngradeCandidates(lasts));
    }
    faults
}

/// A candidate that is cut off, whose time of day is set back before it has to step down.
fn set_back(random: &mut Random, setup: &Setup, horizon: u64) -> Vec<PlannedFault> {
    if !random.percent(40) {
        return Vec::new();
    }
    let candidate = setup.electors.len() + random.index(setup.candidates.len());
    let candidate = ProcessIndex(candidate);
    let (from, step) = (random.millis(0, horizon), -draw_step(random).abs());
    let faults = [
        (
            from,
            FaultKind::Partition(candidate, random.millis(20_000, 45_000)),
        ),
        (
            from + random.millis(100, 6_000),
            FaultKind::StepClock(candidate, step),
        ),
    ];
    faults.map(|(at, kind)| PlannedFault { at, kind }).into()
}

/// A server that forgets what a process needs to hear once it is no longer cut off.
fn forgotten(random: &mut Random, setup: &Setup, horizon: u64) -> Vec<PlannedFault> {
    if !random.percent(60) {
        return Vec::new();
    }
    let who = ProcessIndex(random.index(setup.processes()));
    let (from, lasts) = (random.millis(0, horizon), random.millis(8_000, 30_000));
    let cut = random.millis(0, 1_000);
    let faults = [
        (Duration::ZERO, FaultKind::Partition(who, lasts)),
        (cut, FaultKind::EndWatches(who, WatchClose::Broken)),
        (lasts - cut, FaultKind::Compact),
    ];
    let faults = faults.map(|(after, kind)| PlannedFault {
        at: from + after,
        kind,
    });
    faults.into()
}

/// A server that is away for all, so that a leader lapses and nobody comes between (R20), and a crash of all candidates of a
/// lease, which start again at once: the leader among them may rejoin (R21).
fn outages(random: &mut Random, setup: &Setup, horizon: u64) -> Vec<PlannedFault> {
    let mut faults = Vec::new();
    if random.percent(90) {
        let (at, lasts) = (random.millis(0, horizon), random.millis(8_000, 25_000));
        let all = (0..setup.processes()).map(ProcessIndex);
        let cut = all.map(|who| FaultKind::Partition(who, lasts));
        faults.extend(cut.map(|kind| PlannedFault { at, kind }));
    }
    if random.percent(90) {
        let (at, lasts) = (random.millis(0, horizon), random.millis(0, 2_000));
        let name = random.either(50, RestartName::Same, RestartName::New);
        let lease = random.index(setup.leases);
        let candidates = setup.candidates.iter().zip(setup.electors.len()..);
        let candidates = candidates.filter(|(it, _)| it.lease == lease);
        let crash = candidates.map(|(_, index)| FaultKind::Crash(ProcessIndex(index), lasts, name));
        faults.extend(crash.map(|kind| PlannedFault { at, kind }));
    }
    faults
}

/// A hostile tenant of another namespace.
fn flood(random: &mut Random, horizon: u64) -> Option<PlannedFault> {
    let at = random.millis(0, horizon);
    let kind = FaultKind::FloodNamespace(random.millis(20_000, 120_000));
    random.percent(35).then_some(PlannedFault { at, kind })
}

/// A store that is restored from a backup.
fn restored(random: &mut Random, horizon: u64) -> Option<PlannedFault> {
    let at = random.millis(2_000, horizon);
    let kind = FaultKind::RestoreStore(at.min(random.millis(500, 90_000)), random.percent(50));
    random.percent(35).then_some(PlannedFault { at, kind })
}

/// A candidate as client-go's is one, which stays long enough to lead.
fn client_go(random: &mut Random, setup: &Setup, horizon: u64) -> Option<PlannedFault> {
    let (lease, at) = (random.index(setup.leases), random.millis(0, horizon));
    let kind = FaultKind::ClientGoCandidate(lease, random.millis(60_000, 300_000));
    (random.percent(60) && !setup.unserved).then_some(PlannedFault { at, kind })
}

fn draw_setup(random: &mut Random, reach: ClockBound) -> Setup {
    let leases = random.index(2) + 1;
    let count = random.index(3) + 2;
    let timing = |random: &mut Random| random.pick(&TIMINGS);
    let common = timing(random);
    let mixed = random.percent(20);
    let electors = random.index(3) + 1;
    let elector = |_| {
        let rate = draw_rate(random.bits());
        draw_host(random, rate)
    };
    let electors: Vec<_> = (0..electors).map(elector).collect();
    // Beyond the bound it is the electors whose clocks are too fast, or that of one candidate of each lease.
    let acquired = random.percent(50);
    let unserved = reach == ClockBound::Within && random.percent(8);
    let mixtures = (0..leases)
        .map(|_| match reach {
            ClockBound::Within if unserved => random.pick(&UNSERVED),
            ClockBound::Within => random.pick(&MIXTURES),
            ClockBound::Beyond if acquired => PLAIN,
            ClockBound::Beyond => ELECTED,
        })
        .collect::<Vec<_>>();
    let hosts = electors.iter().map(|host| host.rate);
    // Each candidate that may acquire has a stop-watch of its own, and any of them may be the fastest.
    let rates = (0..leases * count).map(|_| (random.percent(15), draw_rate(random.bits())));
    let rates = rates.collect::<Vec<_>>();
    let ordinary = rates
        .iter()
        .filter(|(slow, _)| !slow)
        .map(|(_, rate)| *rate);
    let fastest = match reach {
        ClockBound::Within => hosts.chain(ordinary).max().unwrap_or(0),
        ClockBound::Beyond => hosts.max().unwrap_or(0),
    };
    let candidates = (0..leases)
        .flat_map(|lease| (0..count).map(move |_| lease))
        .zip(rates)
        .enumerate()
        .map(|(index, (lease, (slow, ordinary)))| {
            let (w, h) = if mixed { timing(random) } else { common };
            let rate = match reach {
                ClockBound::Within if slow => fastest * h / w + 1,
                ClockBound::Within => ordinary,
                ClockBound::Beyond if acquired && index % count == 0 => fastest,
                ClockBound::Beyond => fastest * h / w * 9 / 10,
            };
            let mode = random.pick(mixtures[lease]);
            let emulation = random.between(1, 3);
            PlannedCandidate {
                host: draw_host(random, rate),
                lease,
                parts: 1,
                version: (emulation, emulation + random.between(0, 1)),
                timing: (w, h),
                stop: if random.percent(10) {
                    random.millis(9_000, 12_000)
                } else {
                    random.millis(0, 2_000)
                },
                mode,
                strategy: PlannedStrategy::default(),
                priority: 0,
                keeps_lock: false,
            }
        })
        .collect::<Vec<_>>();
    let frugal = random.percent(40);
    let preemptions = electors.iter().filter(|_| frugal);
    let preemptions = preemptions.map(|_| random.pick(&[1, 2, 3])).collect();
    // Candidates announce a lease duration above that of an elector, but for plain ones.
    let plain = |it: &&PlannedCandidate| it.mode == PlannedMode::Plain;
    let plain = candidates.iter().filter(plain).map(|it| it.timing.0).max();
    let allowed = [6, 10, 15].into_iter().filter(|it| plain <= Some(*it));
    let allowed: Vec<u64> = allowed.collect();
    let frugal = random.percent(50);
    let allows = electors.iter().filter(|_| frugal);
    let allows = allows.map(|_| random.pick(&allowed)).collect();
    Setup {
        preemptions,
        allows,
        feature_gate: random.percent(50),
        custom: random.percent(30) && !unserved,
        unserved,
        leases,
        electors,
        locks: ElectorLocks::default(),
        candidates,
    }
}

/// A rate within a tenth of the true one, often at the very edge.
pub(super) fn draw_rate(bits: u64) -> u64 {
    match bits % 5 {
        0 => 900_000,
        1 => 1_100_000,
        2 => 1_000_000,
        _ => 900_000 + (bits >> 8) % 200_001,
    }
}

pub(super) fn draw_host(random: &mut Random, rate: u64) -> ProcessHost {
    let offset = random.between(0, 1_200_000);
    ProcessHost {
        rate,
        offset: i64::try_from(offset).unwrap_or(0) - 600_000,
        latency: if random.percent(80) {
            random.between(1, 10)
        } else {
            random.between(10, 200)
        },
        start: random.millis(0, 20_000),
    }
}

fn draw_fault(random: &mut Random, setup: &Setup) -> FaultKind {
    let anybody = ProcessIndex(random.index(setup.processes()));
    let candidate = ProcessIndex(setup.electors.len() + random.index(setup.candidates.len()));
    let timer = draw_timer(random, setup);
    let lease = random.index(setup.leases);
    let times = u32::try_from(random.between(1, 12)).unwrap_or(1);
    let requests = random.pick(&[
        Requests::All,
        Requests::Reads,
        Requests::Writes,
        Requests::Updates,
        Requests::Creates,
    ]);
    let applied = random.either(50, Applied::Yes, Applied::No);
    let short = random.millis(100, 20_000);
    let long = random.millis(1_000, 45_000);
    // Each kind is drawn so often that it takes effect in a few dozen of a hundred seeds, also where it often meets nothing.
    match random.between(0, 119) {
        0..5 => {
            let name = random.either(30, RestartName::Same, RestartName::New);
            FaultKind::Crash(anybody, short, name)
        }
        5..8 => FaultKind::ShutDown(anybody, short),
        8..14 => FaultKind::Pause(anybody, long),
        14..20 => FaultKind::Partition(anybody, long),
        20..26 => FaultKind::Slow(anybody, random.between(50, 3_000), long),
        26..32 => FaultKind::Freeze(anybody, long),
        32..35 => {
            let ending = random.either(50, WatchClose::Closed, WatchClose::Broken);
            FaultKind::EndWatches(anybody, ending)
        }
        35..42 => FaultKind::OldCache(anybody, random.between(0, 30), long),
        42..50 => {
            let status = random.pick(&STATUSES);
            let applied = if status >= 500 { applied } else { Applied::No };
            FaultKind::Refuse(anybody, requests, status, applied, times)
        }
        50..56 => {
            // Of the refusals only a conflict may be the answer to the second try of a request that was carried out.
            let requests = random.either(50, Requests::Writes, Requests::Updates);
            FaultKind::Refuse(anybody, requests, 409, Applied::Yes, times)
        }
        56..62 => FaultKind::Lose(anybody, requests, applied, times),
        62..68 => FaultKind::Delay(anybody, requests, random.millis(100, 40_000), times),
        68..75 => FaultKind::Repeat(anybody, requests, random.millis(1, 40_000), times),
        75..79 => FaultKind::Compact,
        79..83 => FaultKind::StepClock(anybody, draw_step(random)),
        83..88 => FaultKind::StopClock(timer, long),
        88..94 => FaultKind::TamperWithLease(lease, draw_tampering(random)),
        94..101 => {
            let how = random.pick(&[
                CandidateTampering::Delete,
                CandidateTampering::Version,
                CandidateTampering::Times,
                CandidateTampering::Unreadable,
            ]);
            FaultKind::TamperWithCandidate(candidate, how)
        }
        101..105 => FaultKind::Twin(candidate, long),
        105..112 => FaultKind::Plain(lease, 2 * long),
        _ => FaultKind::Builtin(lease, long),
    }
}

/// A process with a stop-watch for other processes' terms: an elector, or a candidate that may acquire.
fn draw_timer(random: &mut Random, setup: &Setup) -> ProcessIndex {
    let acquirers = setup.candidates.iter().zip(setup.electors.len()..);
    let acquirers = acquirers.filter(|(it, _)| it.mode != PlannedMode::Elected);
    let timers = (0..setup.electors.len()).chain(acquirers.map(|(_, index)| index));
    let timers: Vec<usize> = timers.collect();
    ProcessIndex(random.pick(&timers))
}

fn draw_step(random: &mut Random) -> i64 {
    let size = match random.index(3) {
        0 => random.between(1, 1_000),
        1 => random.between(1_000, 20_000),
        _ => random.between(20_000, 600_000),
    };
    let size = i64::try_from(size).unwrap_or(0);
    if random.percent(50) { size } else { -size }
}

fn draw_tampering(random: &mut Random) -> LeaseTampering {
    random.pick(&[
        LeaseTampering::Delete,
        LeaseTampering::Delete,
        LeaseTampering::Blank,
        LeaseTampering::Bare,
        LeaseTampering::Restore,
        LeaseTampering::Seize,
        LeaseTampering::Shorten,
        LeaseTampering::Nonsense,
        LeaseTampering::Unreadable,
        LeaseTampering::Strategy,
    ])
}
