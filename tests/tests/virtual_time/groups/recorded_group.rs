//! Processes that share the parts of a group, and the record of all that happens to these.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use elector::{Config as ElectorConfig, Elector};
use elector_api::CandidateApi;
use elector_candidate::{Config, Error, GroupCandidate, GroupHandle, Leadership, Parts};
use elector_protocol::{ResourceVersion, Timestamp, Token};
use elector_runtime::{
    Clock as _, Cluster, Scope, TokioClock, Watch, WatchEvent, WatchOptions, watch_candidates,
    watch_leases,
};
use elector_testing::{BackgroundTask, TestCluster, TestProgram, eventually, millis};
use elector_verify::{
    EntryContent, Event, EventKind, History, HistoryEntry, Limits, Participants, TraceCoverage,
    verify,
};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{ELECTOR, NAMESPACE};

/// The processes of a group.
pub(super) struct RecordedGroup {
    pub(super) cluster: TestCluster,
    pub(super) members: BTreeMap<String, RunningMember>,
    record: Record,
    /// The number of processes that have been started.
    lives: u32,
    _background: Vec<BackgroundTask>,
}

/// A process of the group.
pub(super) struct RunningMember {
    pub(super) program: TestProgram<Result<(), Error>>,
    pub(super) handle: GroupHandle,
    /// True while the process runs, false while it stands still.
    runs: watch::Sender<bool>,
}

/// The leader of a part: the process and its token.
pub(super) type PartLeader = (String, u64);

/// The record of the world. Clones are the same one.
#[derive(Clone)]
struct Record {
    entries: Arc<Mutex<Vec<HistoryEntry>>>,
    clock: Arc<TokioClock>,
}

/// Work that goes on until this is dropped.
struct RecordedWork {
    record: Record,
    event: Event,
    acted: Timestamp,
}

/// The group.
pub(super) const GROUP: &str = "web";
/// Its parts.
pub(super) const PARTS: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

// === impl RecordedGroup ===

impl RecordedGroup {
    /// A cluster, with an elector or without, before its first process.
    pub(super) fn new(has_elector: bool) -> Self {
        let cluster = TestCluster::new();
        let record = Record {
            entries: Arc::default(),
            clock: cluster.clock(),
        };
        let observer = observe(cluster.connect("observer"), record.clone());
        let mut background = vec![BackgroundTask::spawn(async { match observer.await {} })];
        if has_elector {
            let elector = Elector::new(ElectorConfig::default(), cluster.connect(ELECTOR)).unwrap();
            let run = elector.with_clock(cluster.clock());
            background.push(BackgroundTask::spawn(run.run(std::future::pending::<()>())));
        }
        Self {
            cluster,
            members: BTreeMap::new(),
            record,
            lives: 0,
            _background: background,
        }
    }

    /// Starts a process, whose name is that of no other, and says which.
    pub(super) fn start(&mut self) -> String {
        let record = self.record.clone();
        self.start_working(move |leadership| {
            let record = record.clone();
            async move {
                act(leadership, record).await;
                Ok(())
            }
        })
    }

    /// The same with work of the test's own.
    pub(super) fn start_working<F>(
        &mut self,
        mut work: impl FnMut(Leadership) -> F + Send + 'static,
    ) -> String
    where
        F: Future<Output = Result<(), &'static str>> + Send + 'static,
    {
        self.lives += 1;
        let name = format!("member-{}", self.lives);
        let (runs, standing) = watch::channel(true);
        let config = Config::new(GROUP, "1.0.0").identity(&name);
        let connection = self.cluster.cluster(&name);
        let candidate = GroupCandidate::new(config, Parts::named(PARTS), connection).unwrap();
        let handle = candidate.handle();
        let program = self.cluster.start(&name, |shutdown| {
            let gate = standing.clone();
            let work = move |leadership| standing_still(gate.clone(), work(leadership));
            standing_still(standing, candidate.run(work, shutdown))
        });
        let member = RunningMember {
            program,
            handle,
            runs,
        };
        self.members.insert(name.clone(), member);
        name
    }

    /// The leader of each part that has one.
    pub(super) fn leaders(&self) -> BTreeMap<&'static str, PartLeader> {
        let leader = |part: &&'static str| {
            let members = self.members.iter();
            let mut led = members.filter_map(|(name, member)| Some((name, member.led(part)?)));
            led.next()
                .map(|(name, token)| (*part, (name.clone(), token)))
        };
        PARTS.iter().filter_map(leader).collect()
    }

    /// The process that leads the most parts.
    pub(super) fn busiest(&self) -> String {
        let leaders = self.leaders();
        let led = |name: &String| {
            leaders
                .values()
                .filter(|(leader, _)| leader == name)
                .count()
        };
        let busiest = self.members.keys().max_by_key(|name| led(name));
        busiest.unwrap().clone()
    }

    /// Waits until each part has a leader other than that one.
    pub(super) async fn all_are_led_by_others_than(&self, who: &str, within: Duration) {
        let led = eventually(|| {
            let leaders = self.leaders();
            leaders.len() == PARTS.len() && leaders.values().all(|(leader, _)| leader != who)
        });
        let led = tokio::time::timeout(within, led).await;
        assert!(led.is_ok(), "{:?} after {within:?}", self.leaders());
    }

    /// Has a process stand still, its work included, or go on. Its clock goes on all the time.
    pub(super) fn stand_still(&self, name: &str, stands: bool) {
        self.members[name].runs.send_replace(!stands);
    }

    /// Judges everything that has happened.
    pub(super) fn verify(&self) {
        let mut entries = self.record.entries.lock().clone();
        entries.sort_by_key(|entry| entry.at);
        let mut history = History::default().with_trace_coverage(TraceCoverage::Partial);
        for entry in entries {
            history.record(entry.at, entry.content);
        }
        let participants = Participants::deduce(&history, Limits::default());
        let verdict = verify(&history, &participants);
        let breaches: Vec<_> = verdict
            .promised_breaches()
            .map(ToString::to_string)
            .collect();
        assert!(breaches.is_empty(), "{breaches:#?}");
        assert_eq!(verdict.leases.len(), PARTS.len(), "each part is judged");
        for (lease, verdict) in &verdict.leases {
            assert!(verdict.extent.traced && verdict.extent.terms > 0, "{lease}");
        }
    }
}

// === impl RunningMember ===

impl RunningMember {
    /// The token under which it leads that part, if it does.
    fn led(&self, part: &str) -> Option<u64> {
        let parts = self.handle.parts().iter();
        let handle = parts.zip(PARTS).find(|(_, name)| *name == part)?.0;
        handle.leadership().map(|leadership| leadership.token())
    }
}

// === impl RecordedWork ===

impl Drop for RecordedWork {
    fn drop(&mut self) {
        self.event.kind = EventKind::WorkStopped;
        let content = EntryContent::Event(self.event.clone());
        self.record.note(self.acted, content);
    }
}

// === impl Record ===

impl Record {
    fn note(&self, at: Timestamp, content: EntryContent) {
        self.entries.lock().push(HistoryEntry { at, content });
    }
}

/// Acts ten times a second for as long as it may: what it says of itself is when it did.
async fn act(leadership: Leadership, record: Record) {
    let mut event = Event::new(leadership.identity().as_str(), EventKind::Leading);
    event.lease = Some(leadership.lease().clone());
    event.term = Some(leadership.term().into());
    event.token = Some(Token(ResourceVersion(leadership.token())));
    let clock = Arc::clone(&record.clock);
    record.note(clock.wall(), EntryContent::Event(event.clone()));
    let mut span = RecordedWork {
        record,
        event,
        acted: clock.wall(),
    };
    let mut tick = tokio::time::interval(millis(100));
    loop {
        tokio::select! {
            biased;
            _ = leadership.stopped() => break,
            _ = tick.tick() => {}
        }
        if leadership.is_leader() {
            span.acted = clock.wall();
        }
    }
    // A little late, as work is.
    tokio::time::sleep(millis(300)).await;
    if leadership.is_leader() {
        span.acted = clock.wall();
    }
}

/// The future, which stands still while the gate says so.
async fn standing_still<F: Future>(mut gate: watch::Receiver<bool>, future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        let open = gate.wait_for(|runs| *runs).await.is_ok();
        tokio::select! {
            biased;
            _ = gate.wait_for(|runs| !*runs), if open => {}
            output = &mut future => return output,
        }
    }
}

/// Writes down every revision of the Leases and the candidates.
async fn observe(cluster: Cluster, record: Record) -> Infallible {
    let (scope, options) = (Scope::of_namespaces([NAMESPACE]), WatchOptions::elector(0));
    let mut leases: Watch<_> = watch_leases(&cluster, &scope, &options);
    let api = CandidateApi::V1Beta1;
    let mut candidates: Watch<_> = watch_candidates(&cluster, api, &scope, &options);
    loop {
        let content = tokio::select! {
            biased;
            event = leases.next() => revision(event, EntryContent::lease),
            event = candidates.next() => revision(event, EntryContent::candidate),
        };
        if let Some(content) = content {
            record.note(record.clock.wall(), content);
        }
    }
}

/// The revision that an event tells of. There was nothing before the first.
fn revision<T>(event: WatchEvent<T>, of: fn(T, bool) -> EntryContent) -> Option<EntryContent> {
    match event {
        WatchEvent::Applied(object) => Some(of(object, false)),
        WatchEvent::Deleted(object) => Some(of(object, true)),
        _ => None,
    }
}
