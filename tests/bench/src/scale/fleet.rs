//! All candidates of all leases, in one process and over two watches.
//!
//! ```text
//!   watch of Leases ───────────> accept, when a candidate is granted a lease ──┐
//!   watch of LeaseCandidates ──> ack, when one is pinged ──────────────────────┼──> requests, a limited number at a time
//!   deadlines ─────────────────> renewals ─────────────────────────────────────┤
//!                                registrations, lease by lease ────────────────┘
//! ```
//!
//! A candidate writes as `elector-candidate` does; it has no watches of its own, no work and no belief. The
//! events that are counted here are those that the elector gets: both watch everything.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Result;
use elector_api::{Lease, LeaseCandidate};
use elector_protocol::LeaseRecord;
use elector_runtime::{
    Scope, Watch, WatchEvent, WatchOptions, WriteOutcome, Writer, watch_candidates, watch_leases,
};
use elector_tests::rig::now as wall_clock;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::scale::args::RunSize;
use crate::scale::follower::{
    accept, ack, candidate, is_grant, lease_key, lease_number, of_member, renewal, snapshot,
    successor,
};

/// The candidates of a measurement.
pub(crate) struct Fleet {
    size: RunSize,
    writer: Writer,
    lease_watch: Watch<Lease>,
    candidate_watch: Watch<LeaseCandidate>,
    leases: Vec<LeaseProgress>,
    /// The requests to be sent, the most urgent first: nothing but a renewal waits behind a registration.
    urgent: VecDeque<Request>,
    /// True if a registration has the next turn. Renewals alone may be all that a slow server can take.
    registers_next: bool,
    /// The next candidate to register.
    next: u32,
    registered: u32,
    running: JoinSet<Response>,
    /// When each lease that is led is renewed next, the earliest first.
    renewals: VecDeque<(Instant, u32)>,
    pub(crate) counts: FleetCounts,
    led: u32,
    began: Instant,
    last_event: Instant,
    registered_all: Option<Duration>,
    /// When a lease was handed over last.
    handed_over: Option<Instant>,
}

/// The events received and the writes sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FleetCounts {
    /// Events of Leases.
    pub lease_events: u64,
    /// Events of LeaseCandidates.
    pub candidate_events: u64,
    /// Candidates that were registered.
    pub registrations: u64,
    /// Grants that were accepted.
    pub accepts: u64,
    /// Pings that were acked.
    pub acks: u64,
    /// Renewals.
    pub renewals: u64,
    /// Leases that their holder handed over to the candidate that the elector preferred.
    pub hand_overs: u64,
    /// Writes that were not carried out; they are repeated where they still have a purpose.
    pub failures: u64,
    /// Lists after a gap: events before them were not counted.
    pub gaps: u64,
    /// Grants of a lease that had been led before: it was not renewed in time.
    pub further_terms: u64,
}

/// The progress of a lease.
#[derive(Debug, Default)]
struct LeaseProgress {
    /// When the registration of its first candidate was sent.
    began: Option<Instant>,
    /// When a grant was seen.
    granted: Option<Instant>,
    /// When its accept was known to be written.
    led: Option<Instant>,
    /// The newest revision, while it is led.
    held: Option<Lease>,
    /// True while a write of the holder waits or is under way.
    writing: bool,
    /// True once the next renewal has its time.
    scheduled: bool,
}

/// A write that is to be sent.
enum Request {
    /// A lease, and the number of a candidate of it.
    Register(u32, u32),
    Ack(Box<LeaseCandidate>),
    Hold(u32, Box<Lease>, HolderWrite),
}

/// A write of the holder of a lease.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HolderWrite {
    Accept,
    Renew,
    HandOver,
}

/// The outcome of a write.
enum Response {
    Registered(u32, u32, WriteOutcome<LeaseCandidate>),
    Acked(WriteOutcome<LeaseCandidate>),
    Held(u32, Box<Lease>, HolderWrite, WriteOutcome<Lease>),
}

/// The times of the elections.
#[derive(Clone, Debug)]
pub(crate) struct ElectionTimes {
    /// The number of leases that are led.
    pub(crate) leases_led: u32,
    /// From the first registration until the last one was answered.
    pub(crate) registered: Option<Duration>,
    /// From the first registration until the last of these was led.
    pub(crate) led: Duration,
    /// For each lease, from the registration of its first candidate until its grant was seen.
    pub(crate) to_grant: Vec<Duration>,
    /// The same until the accept was answered.
    pub(crate) to_lead: Vec<Duration>,
}

/// The moves that even out the members of groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoveTimes {
    /// The leases that were handed over.
    pub(crate) moves: u64,
    /// From the begin of the phase until the last of them was written.
    pub(crate) last: Duration,
}

/// The time limit until all is quiet.
const SETTLES: Duration = Duration::from_secs(30);
/// The interval of progress reports.
const PROGRESS: Duration = Duration::from_secs(10);
/// For how long nothing must happen until all is reported.
const QUIET: Duration = Duration::from_millis(1500);
/// Groups are balanced where no lease has moved for this long: [`LeaseGroup::SETTLING`](elector_protocol::LeaseGroup::SETTLING)
/// and some seconds.
const BALANCED: Duration = Duration::from_secs(45);

// === impl FleetCounts ===

impl FleetCounts {
    /// The counts since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            lease_events: self.lease_events - before.lease_events,
            candidate_events: self.candidate_events - before.candidate_events,
            registrations: self.registrations - before.registrations,
            accepts: self.accepts - before.accepts,
            acks: self.acks - before.acks,
            renewals: self.renewals - before.renewals,
            hand_overs: self.hand_overs - before.hand_overs,
            failures: self.failures - before.failures,
            gaps: self.gaps - before.gaps,
            further_terms: self.further_terms - before.further_terms,
        }
    }
}

// === impl Fleet ===

impl Fleet {
    /// The prefix of the namespaces.
    pub(crate) const PREFIX: &str = "scale";

    /// Candidates that have not registered, whose watches are open. The server holds nothing of theirs.
    pub(crate) async fn new(size: RunSize, writer: Writer) -> Self {
        let options = WatchOptions::candidate(0);
        let (cluster, api) = (writer.cluster(), writer.candidate_api());
        let mut lease_watch = watch_leases(cluster, &Scope::Cluster, &options);
        let mut candidate_watch = watch_candidates(cluster, api, &Scope::Cluster, &options);
        while !matches!(lease_watch.next().await, WatchEvent::Synced) {}
        while !matches!(candidate_watch.next().await, WatchEvent::Synced) {}
        let now = Instant::now();
        Self {
            leases: (0..size.leases).map(|_| LeaseProgress::default()).collect(),
            size,
            writer,
            lease_watch,
            candidate_watch,
            urgent: VecDeque::new(),
            registers_next: false,
            next: 0,
            registered: 0,
            running: JoinSet::new(),
            renewals: VecDeque::new(),
            counts: FleetCounts::default(),
            led: 0,
            began: now,
            last_event: now,
            registered_all: None,
            handed_over: None,
        }
    }

    /// Registers all candidates, and goes on until all leases are led and all is quiet, but no longer than `patience`.
    pub(crate) async fn elect(&mut self, patience: Duration) -> Result<ElectionTimes> {
        self.began = Instant::now();
        let deadline = self.began + patience;
        let mut reported = self.began;
        while !self.is_led() && Instant::now() < deadline {
            self.turn(deadline).await?;
            if reported.elapsed() >= PROGRESS {
                reported = Instant::now();
                eprintln!(
                    "{:.0} s: {} candidates are registered, {} leases are led, {} pings were acked",
                    self.began.elapsed().as_secs_f64(),
                    self.registered,
                    self.led,
                    self.counts.acks
                );
            }
        }
        self.settle().await?;
        Ok(self.times())
    }

    /// Renews for a while, and then never again. The renewals are spread evenly, as they are long after the elections.
    pub(crate) async fn hold(&mut self, time: Duration) -> Result<()> {
        let deadline = Instant::now() + time;
        self.spread_renewals();
        while Instant::now() < deadline {
            self.turn(deadline).await?;
        }
        self.renewals.clear();
        self.settle().await
    }

    /// A further member registers in the first group, of this number of leases, and gets its share.
    pub(crate) async fn join(&mut self, parts: u32, patience: Duration) -> Result<MoveTimes> {
        let newcomer = self.size.candidates;
        self.urgent
            .extend((0..parts).map(|lease| Request::Register(lease, newcomer)));
        self.balance(patience).await
    }

    /// Renews until no lease has moved for a while, but no longer than `patience`.
    pub(crate) async fn balance(&mut self, patience: Duration) -> Result<MoveTimes> {
        let (began, before) = (Instant::now(), self.counts.hand_overs);
        self.spread_renewals();
        loop {
            let last = self.handed_over.map_or(began, |last| last.max(began));
            let deadline = (last + BALANCED).min(began + patience);
            if Instant::now() >= deadline {
                break;
            }
            self.turn(deadline).await?;
        }
        self.renewals.clear();
        self.settle().await?;
        let last = self.handed_over.filter(|last| *last > began);
        Ok(MoveTimes {
            moves: self.counts.hand_overs - before,
            last: last.map_or(Duration::ZERO, |last| last - began),
        })
    }

    fn spread_renewals(&mut self) {
        let (now, interval) = (Instant::now(), self.size.timing.renew_interval);
        let scheduled = self
            .leases
            .iter()
            .zip(0..)
            .filter(|(lease, _)| lease.scheduled);
        self.renewals = scheduled
            .map(|(_, number)| (now + interval * number / self.size.leases, number))
            .collect();
    }

    /// Goes on until all is quiet, but not for long.
    async fn settle(&mut self) -> Result<()> {
        let deadline = Instant::now() + SETTLES;
        while self.last_event.elapsed() < QUIET && Instant::now() < deadline {
            self.turn(deadline.min(self.last_event + QUIET)).await?;
        }
        Ok(())
    }

    fn is_led(&self) -> bool {
        self.led == self.size.leases && self.registered_all.is_some()
    }

    fn times(&self) -> ElectionTimes {
        let last = self.leases.iter().filter_map(|lease| lease.led).max();
        let since_began = |end: fn(&LeaseProgress) -> Option<Instant>| {
            let all = self.leases.iter();
            let all = all.filter_map(|lease| Some(end(lease)?.duration_since(lease.began?)));
            all.collect::<Vec<_>>()
        };
        ElectionTimes {
            leases_led: self.led,
            registered: self.registered_all,
            led: last.map_or(Duration::ZERO, |last| last.duration_since(self.began)),
            to_grant: since_began(|lease| lease.granted),
            to_lead: since_began(|lease| lease.led),
        }
    }

    /// Sends what there is to send, and takes in one thing, if one comes before the deadline.
    async fn turn(&mut self, deadline: Instant) -> Result<()> {
        self.send();
        let renewal = self.renewals.front().map(|(due, _)| *due);
        let registration = (self.next < self.size.all_candidates()).then(|| self.registers_at());
        // One that is due already waits for a connection.
        let registration = registration.filter(|due| *due > Instant::now());
        let wakes = [renewal, registration].into_iter().flatten();
        let wake = wakes.fold(deadline, Instant::min);
        tokio::select! {
            biased;
            event = self.lease_watch.next() => self.handle_lease_event(event),
            event = self.candidate_watch.next() => self.handle_candidate_event(event),
            Some(response) = self.running.join_next() => self.handle_response(response?),
            () = sleep_until(wake) => {}
        }
        Ok(())
    }

    // ---- what goes out ----

    fn send(&mut self) {
        let now = Instant::now();
        while let Some((due, lease)) = self.renewals.front().copied()
            && due <= now
        {
            self.renewals.pop_front();
            self.renew(lease);
        }
        while self.running.len() < self.size.connections as usize {
            let registers = self.next < self.size.all_candidates() && self.registers_at() <= now;
            let has_turn = std::mem::take(&mut self.registers_next) && registers;
            let request = match self.urgent.pop_front_if(|_| !has_turn) {
                Some(request) => request,
                None if registers => {
                    let number = self.next;
                    self.next += 1;
                    let of_each = self.size.candidates;
                    Request::Register(number / of_each, number % of_each)
                }
                None => return,
            };
            self.registers_next = matches!(request, Request::Hold(_, _, HolderWrite::Renew));
            self.perform(now, request);
        }
    }

    /// When the next candidate registers.
    fn registers_at(&self) -> Instant {
        self.began + self.size.registers_after(self.next)
    }

    fn renew(&mut self, number: u32) {
        let lease = &mut self.leases[number as usize];
        lease.scheduled = false;
        if lease.writing {
            return;
        }
        if let Some(held) = &lease.held {
            lease.writing = true;
            let held = Box::new(held.clone());
            self.urgent
                .push_back(Request::Hold(number, held, HolderWrite::Renew));
        }
    }

    fn perform(&mut self, now: Instant, request: Request) {
        let writer = self.writer.clone();
        match request {
            Request::Register(lease, turn) => {
                self.leases[lease as usize].began.get_or_insert(now);
                let key = lease_key(Self::PREFIX, &self.size, lease);
                let timing = &self.size.timing;
                let object = candidate(writer.candidate_api(), &key, turn, timing, wall_clock());
                let object = match self.size.group(lease) {
                    Some(group) => object.map(|object| of_member(object, group, turn)),
                    None => object,
                };
                self.running.spawn(async move {
                    let outcome = match object {
                        Some(object) => writer.post_candidate(&object).await,
                        None => WriteOutcome::Gone,
                    };
                    Response::Registered(lease, turn, outcome)
                });
            }
            Request::Ack(candidate) => {
                self.running
                    .spawn(async move { Response::Acked(writer.put_candidate(&candidate).await) });
            }
            Request::Hold(number, lease, write) => {
                let record = self.holder_record(&lease, write);
                self.running.spawn(async move {
                    let outcome = match record {
                        Some(record) => writer.put_lease(&lease, &record).await,
                        None => WriteOutcome::Gone,
                    };
                    Response::Held(number, lease, write, outcome)
                });
            }
        }
    }

    fn holder_record(&self, lease: &Lease, write: HolderWrite) -> Option<LeaseRecord> {
        let snapshot = snapshot(lease)?;
        Some(match write {
            HolderWrite::Accept => accept(&snapshot, &self.size.timing, wall_clock()),
            HolderWrite::Renew => renewal(&snapshot.record, wall_clock()),
            HolderWrite::HandOver => {
                let to = successor(&snapshot.record)?.clone();
                let window = self.size.timing.accept_window;
                snapshot.record.granted(to, window, wall_clock())
            }
        })
    }

    // ---- what comes in ----

    fn handle_lease_event(&mut self, event: WatchEvent<Lease>) {
        self.last_event = Instant::now();
        match event {
            WatchEvent::Applied(lease) => {
                self.counts.lease_events += 1;
                self.see_lease(lease);
            }
            WatchEvent::Listed { items, .. } => {
                for lease in items {
                    self.see_lease(lease);
                }
            }
            WatchEvent::Gap { .. } => self.counts.gaps += 1,
            _ => {}
        }
    }

    fn handle_candidate_event(&mut self, event: WatchEvent<LeaseCandidate>) {
        self.last_event = Instant::now();
        match event {
            WatchEvent::Applied(candidate) => {
                self.counts.candidate_events += 1;
                self.see_candidate(&candidate);
            }
            WatchEvent::Listed { items, .. } => {
                for candidate in items {
                    self.see_candidate(&candidate);
                }
            }
            WatchEvent::Gap { .. } => self.counts.gaps += 1,
            _ => {}
        }
    }

    fn see_candidate(&mut self, candidate: &LeaseCandidate) {
        if let Some(ack) = ack(candidate, wall_clock()) {
            self.urgent.push_back(Request::Ack(Box::new(ack)));
        }
    }

    fn see_lease(&mut self, lease: Lease) {
        let (Some(number), Some(snapshot)) = (lease_number(&lease.key().name), snapshot(&lease))
        else {
            return;
        };
        let Some(progress) = self.leases.get_mut(number as usize) else {
            return;
        };
        if is_grant(&snapshot.record) {
            if progress.led.is_some() && progress.held.take().is_some() {
                self.counts.further_terms += 1;
            }
            progress.granted.get_or_insert_with(Instant::now);
            if !std::mem::replace(&mut progress.writing, true) {
                let lease = Box::new(lease);
                self.urgent
                    .push_front(Request::Hold(number, lease, HolderWrite::Accept));
            }
        } else if snapshot.record.has_token() && !progress.writing {
            self.keep(number, lease);
        }
    }

    /// Keeps the newest revision of a lease that is led.
    fn keep(&mut self, number: u32, lease: Lease) {
        let now = Instant::now();
        let progress = &mut self.leases[number as usize];
        if progress.led.is_none() {
            progress.led = Some(now);
            self.led += 1;
        }
        if !std::mem::replace(&mut progress.scheduled, true) {
            let due = now + self.size.timing.renew_interval;
            self.renewals.push_back((due, number));
        }
        let newer = |lease: &Lease| snapshot(lease).map(|snapshot| snapshot.version);
        if progress.held.as_ref().and_then(newer) < newer(&lease) {
            progress.held = Some(lease);
        }
        // A lease that is handed over is not held any more: its next term is no sign of a holder that was late.
        let held = progress.held.as_ref();
        if held.is_some_and(|held| {
            snapshot(held).is_some_and(|held| successor(&held.record).is_some())
        }) && let Some(held) = progress.held.take()
        {
            progress.writing = true;
            let request = Request::Hold(number, Box::new(held), HolderWrite::HandOver);
            self.urgent.push_front(request);
        }
    }

    fn handle_response(&mut self, response: Response) {
        match response {
            Response::Registered(_, _, WriteOutcome::Done(_) | WriteOutcome::AlreadyExists) => {
                self.counts.registrations += 1;
                self.registered += 1;
                if self.registered == self.size.all_candidates() {
                    self.registered_all = Some(self.began.elapsed());
                }
            }
            Response::Registered(lease, turn, _) => {
                self.counts.failures += 1;
                self.urgent.push_back(Request::Register(lease, turn));
            }
            // The watch brings what was acked in between.
            Response::Acked(WriteOutcome::Done(_)) => self.counts.acks += 1,
            Response::Acked(_) => self.counts.failures += 1,
            Response::Held(number, judged, write, outcome) => {
                self.leases[number as usize].writing = false;
                self.handle_held(number, judged, write, outcome);
            }
        }
    }

    fn handle_held(
        &mut self,
        number: u32,
        judged: Box<Lease>,
        write: HolderWrite,
        outcome: WriteOutcome<Lease>,
    ) {
        match outcome {
            WriteOutcome::Done(lease) if write == HolderWrite::HandOver => {
                self.counts.hand_overs += 1;
                self.handed_over = Some(Instant::now());
                // The watch may have brought the grant already.
                self.see_lease(lease);
            }
            WriteOutcome::Done(lease) => {
                match write {
                    HolderWrite::Accept => self.counts.accepts += 1,
                    _ => self.counts.renewals += 1,
                }
                self.keep(number, lease);
            }
            // It may have been carried out; if so, this one is a conflict.
            WriteOutcome::Unknown(_) => {
                self.counts.failures += 1;
                self.leases[number as usize].writing = true;
                self.urgent.push_back(Request::Hold(number, judged, write));
            }
            _ => {
                self.counts.failures += 1;
                let progress = &mut self.leases[number as usize];
                if write == HolderWrite::Renew && !std::mem::replace(&mut progress.scheduled, true)
                {
                    // The watch brings the revision that was written in between.
                    let due = Instant::now() + self.size.timing.retry_period;
                    self.renewals.push_front((due, number));
                }
            }
        }
    }
}
