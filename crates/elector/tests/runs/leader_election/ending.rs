//! The end of an elector that acts, or of its belief.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector::{Event, LeaderElection};
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_protocol::{Instant, Timestamp};
use elector_runtime::{Clock, TokioClock};
use elector_testing::{
    CapturedLog, LEASES, ScriptedCandidate, SentRequest, TestCluster, eventually, millis, pass,
    seconds,
};
use futures::future::BoxFuture;

use super::{Replica, electing, lock_holder, replacing_and_electing};

/// The clocks of a machine that can be suspended: the holder's goes on meanwhile, the elector's does not.
struct SuspendedClock {
    awake: Arc<TokioClock>,
    /// The machine's sleep so far, in milliseconds.
    asleep: AtomicU64,
    /// From when on, and after how many readings of the time of day, the machine falls asleep for half a minute.
    sleeps_at: Mutex<Option<(Instant, usize)>>,
}

// === impl SuspendedClock ===

impl SuspendedClock {
    fn of(cluster: &TestCluster) -> Arc<Self> {
        Arc::new(Self {
            awake: cluster.clock(),
            asleep: AtomicU64::new(0),
            sleeps_at: Mutex::default(),
        })
    }

    fn sleep(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap();
        self.asleep.fetch_add(millis, Ordering::SeqCst);
    }

    fn sleep_at(&self, at: Instant, readings: usize) {
        *self.sleeps_at.lock().unwrap() = Some((at, readings));
    }
}

impl Clock for SuspendedClock {
    fn monotonic(&self) -> Instant {
        self.awake.monotonic()
    }

    fn holder(&self) -> Instant {
        let asleep = millis(self.asleep.load(Ordering::SeqCst));
        self.awake.holder().after(asleep)
    }

    fn wall(&self) -> Timestamp {
        let mut sleeps_at = self.sleeps_at.lock().unwrap();
        match &mut *sleeps_at {
            Some((at, _)) if self.awake.holder() < *at => {}
            Some((_, readings @ 1..)) => *readings -= 1,
            Some(_) => {
                *sleeps_at = None;
                self.sleep(seconds(30));
            }
            None => {}
        }
        self.awake.wall()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        self.awake.sleep_until(deadline)
    }

    fn sleep_until_holder(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            while self.holder() < deadline {
                pass(deadline.since(self.holder()).min(seconds(1))).await;
            }
        })
    }
}

/// Registers more candidates than may be pinged at the same time, none of which answers, and waits until the first of all
/// of them have been pinged; an answer of the server takes `delay`.
async fn ping_many(cluster: &TestCluster, active: &Replica, delay: Duration) {
    for number in 0..40 {
        cluster.register("ns", &format!("c{number:02}"), "l", "1.0.0");
    }
    let slow = Rule::new(Fault::Delay(delay)).verb(RequestVerb::Patch);
    cluster.faults(active.name).inject(slow.namespace("ns"));
    let start = cluster.now();
    let pings = || {
        let writes = active.writes_since(start);
        let ping = |request: &&SentRequest| request.path().contains("/leasecandidates/");
        writes.iter().filter(ping).count()
    };
    eventually(|| pings() >= 10).await;
    assert!(pings() < 40, "{}", pings());
}

/// A stop releases the lock, and a standby acts in the same moment.
#[tokio::test(start_paused = true)]
async fn a_stop_gives_the_lock_to_a_standby_at_once() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    let (active, standby) = Replica::pair(&cluster, "standby").await;
    let took = active.elector.stop().await;
    assert!(took < millis(100), "{took:?}");
    let expected = ["INFO released the lock of the electors lease=elector-system/elector"];
    assert_eq!(log.lines("released the lock of the electors"), expected);
    pass(millis(100)).await;
    assert!(standby.leads() && standby.says_that_it_leads());
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    assert!(cluster.held_by("ns", "l", "a").await < millis(200));
}

/// Stopped, or with another elector preferred, an elector begins nothing new, and lets the lock go after the last answer.
#[tokio::test(start_paused = true)]
async fn the_lock_is_let_go_after_the_last_request() {
    for stopped in [true, false] {
        let cluster = TestCluster::with_gate();
        let active = Replica::start(&cluster, "active");
        pass(seconds(20)).await;
        ping_many(&cluster, &active, millis(300)).await;
        if !stopped {
            cluster.edit(LEASES, "elector-system", "elector", |lease| {
                lease["spec"]["preferredHolder"] = "other".into();
            });
        }
        pass(millis(10)).await;
        let end = cluster.now();
        if stopped {
            active.elector.stop().await;
            assert_eq!(lock_holder(&cluster), "");
        } else {
            eventually(|| lock_holder(&cluster) == "other").await;
        }
        let mut sent = cluster.requests_of("active");
        sent.retain(|request| request.at >= end && !request.is_read());
        assert_eq!(sent.len(), 1, "the lock: {sent:?}");
        let after = sent[0].at.since(end);
        let holds = after > millis(150) && after < millis(400);
        assert!(holds, "stopped {stopped}: {after:?}, {sent:?}");
    }
}

/// The renewal of the lock of the built-in controller is such a request.
#[tokio::test(start_paused = true)]
async fn the_lock_is_let_go_after_the_last_renewal_of_the_builtin_lock() {
    let cluster = TestCluster::with_gate();
    let active = Replica::start_with(&cluster, "active", replacing_and_electing());
    pass(seconds(40)).await;
    let slow = Rule::new(Fault::Delay(seconds(1))).verb(RequestVerb::Update);
    let faults = cluster.faults("active");
    faults.inject(slow.namespace("kube-system"));
    let start = cluster.now();
    eventually(|| !active.acts_since(start).is_empty()).await;
    let sent = cluster.now();
    cluster.edit(LEASES, "elector-system", "elector", |lease| {
        lease["spec"]["preferredHolder"] = "other".into();
    });
    eventually(|| lock_holder(&cluster) == "other").await;
    let after = cluster.now().since(sent);
    assert!(after > millis(900) && after < millis(1_200), "{after:?}");
}

/// The server may still carry out what has no answer: then the lock is left to expire.
#[tokio::test(start_paused = true)]
async fn a_lock_with_requests_under_way_is_not_released() {
    let cluster = TestCluster::with_gate();
    let active = Replica::start(&cluster, "active");
    pass(seconds(20)).await;
    let hangs = Rule::new(Fault::HangBefore).verb(RequestVerb::Create);
    cluster.faults("active").inject(hangs.namespace("ns"));
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(millis(100)).await;
    let took = active.elector.stop().await;
    assert!(took < seconds(1), "{took:?}");
    assert!(lock_holder(&cluster).starts_with("elector_active_"));
}

/// An elector that cannot renew gives up what is under way when its belief ends, and says why; the standby acts when
/// the lock has expired, and the first one stands by from then on.
#[tokio::test(start_paused = true)]
async fn an_elector_that_cannot_renew_stops_acting_before_another_takes_over() {
    let cluster = TestCluster::with_gate();
    let (active, standby) = Replica::pair(&cluster, "standby").await;
    // Its writes are not carried out, while it hears of all that happens.
    for verb in [RequestVerb::Update, RequestVerb::Patch, RequestVerb::Create] {
        let hangs = Rule::new(Fault::HangBefore).verb(verb);
        cluster.faults("active").inject(hangs);
    }
    let cut = cluster.now();
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    cluster.held_by("ns", "l", "a").await;
    let granted = cluster.now();
    assert!(standby.leads());
    assert!(granted.since(cut) > seconds(10) && granted.since(cut) < millis(15_500));
    let acts = active.acts_since(cut);
    assert!(!acts.is_empty());
    let late = |request: &&SentRequest| request.at.since(cut) > seconds(10);
    assert_eq!(acts.iter().find(late), None);
    let lost = active
        .elector
        .events()
        .into_iter()
        .find_map(|event| match event {
            Event::StandingBy { reason, .. } => Some(reason),
            _ => None,
        });
    let expected = Some("lost: no renewal succeeded within the renew deadline");
    assert_eq!(lost.as_deref(), expected);
    cluster.faults("active").clear();
    pass(seconds(60)).await;
    assert!(standby.leads() && active.says_that_it_stands_by());
    assert_eq!(active.writes_since(granted.after(seconds(5))), []);
}

/// A machine that slept for half a minute wakes up in the middle of a burst of requests: not one more of them is sent
/// before it leads in a new term (R20).
#[tokio::test(start_paused = true)]
async fn an_elector_that_wakes_up_sends_nothing_before_it_resumes() {
    let cluster = TestCluster::with_gate();
    let clock = SuspendedClock::of(&cluster);
    let active = Replica::start_by(clock.clone(), &cluster, "active", electing("active"));
    pass(seconds(23)).await;
    ping_many(&cluster, &active, millis(200)).await;
    let slept = cluster.now();
    clock.sleep(seconds(30));
    pass(seconds(14)).await;
    assert!(resumed_first(&active.writes_since(slept.after(millis(1)))));
    assert!(active.leads());
}

/// True if the first of these writes begins a term.
fn resumed_first(writes: &[SentRequest]) -> bool {
    let spec = |write: &SentRequest| write.body["spec"].clone();
    let first = writes.first().map(spec).unwrap_or_default();
    first["leaseTransitions"] == 2 && first["acquireTime"] == first["renewTime"]
}

/// A machine falls asleep between the decision to renew a lock and the request. The renewal is never sent, and the elector
/// leads in a new term before it sends anything else, also where another request has no answer.
#[tokio::test(start_paused = true)]
async fn what_was_decided_before_a_sleep_is_not_sent_after_it() {
    let (electors, builtin) = ("/leases/elector", "/leases/leader-election-controller");
    // The time of day is read for the lock of the electors first, then for the built-in controller's.
    for (path, readings, is_idle) in [
        (electors, 0, true),
        (electors, 0, false),
        (builtin, 1, true),
    ] {
        let cluster = TestCluster::with_gate();
        let clock = SuspendedClock::of(&cluster);
        let active = Replica::start_by(clock.clone(), &cluster, "active", replacing_and_electing());
        pass(seconds(40)).await;
        let hangs = Rule::new(Fault::HangBefore).verb(RequestVerb::Patch);
        cluster.faults("active").inject(hangs);
        let awake = cluster.now();
        let renewed = || {
            let mut writes = active.writes_since(awake).into_iter();
            writes.find(|write| write.path().ends_with(path))
        };
        eventually(|| renewed().is_some()).await;
        if !is_idle {
            cluster.register("ns", "silent", "l", "1.0.0");
        }
        let due = renewed().unwrap().at.after(seconds(10) / 3);
        clock.sleep_at(due, readings);
        pass(due.since(cluster.now()) + millis(11_500)).await;
        let writes = active.writes_since(due);
        assert!(resumed_first(&writes), "{path} {is_idle}: {writes:?}");
    }
}

/// An elector whose belief is over leaves the lock of the built-in controller alone when it is stopped: another one may
/// act by then.
#[tokio::test(start_paused = true)]
async fn an_elector_that_lost_the_lock_releases_nothing() {
    let cluster = TestCluster::with_gate();
    let active = Replica::start_with(&cluster, "active", replacing_and_electing());
    pass(seconds(40)).await;
    let hangs = Rule::new(Fault::HangBefore).verb(RequestVerb::Update);
    cluster
        .faults("active")
        .inject(hangs.namespace("elector-system"));
    eventually(|| active.says_that_it_stands_by()).await;
    let lost = cluster.now();
    active.elector.stop().await;
    let mut writes = cluster.requests_of("active");
    writes.retain(|request| request.at >= lost && !request.is_read());
    assert_eq!(writes, []);
}

/// The belief of a lock that is held for shorter than a request may take bounds the request.
#[tokio::test(start_paused = true)]
async fn a_request_takes_no_longer_than_the_belief() {
    let cluster = TestCluster::with_gate();
    let mut config = electing("active");
    config.leader_election = Some(LeaderElection {
        lease_duration: seconds(3),
        renew_deadline: seconds(2),
        retry_period: millis(500),
        ..LeaderElection::new("active")
    });
    let active = Replica::start_with(&cluster, "active", config);
    pass(seconds(20)).await;
    // Everything is served, and answered never.
    let hangs = Rule::new(Fault::HangAfter).verb(RequestVerb::Create);
    cluster.faults("active").inject(hangs.resource(LEASES));
    let log = CapturedLog::capture();
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(3)).await;
    assert!(active.leads());
    let lines = log.lines("failed to create leases.coordination.k8s.io ns/l: no answer");
    assert_eq!(lines.len(), 1, "{lines:?}");
}
