//! The outputs: the effects of a decision become bounded requests, those of one lease side by side, each with its
//! response.

use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::elector::{Decision, Effect};
use elector_protocol::{
    Identity, LeaseKey, LeaseRecord, ResourceVersion, StrategyName, Timestamp, Uid,
};
use elector_runtime::{JudgedCandidate, RequestError, WriteOutcome, Writer, panic_text};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, SelectAll};
use futures::{FutureExt, StreamExt};

use crate::active_belief::ActiveBelief;
use crate::leadership_change::ExpectedGrant;
use crate::session::batches::{RacingWrite, RequestBatch, RequestBatches};
use crate::session::races::WriteRaces;
use crate::session::turns::{RequestTurns, SIDE_BY_SIDE};
use crate::view::{LeaseVersion, View};

/// One request of an election, with all that it takes.
#[derive(Debug)]
pub(crate) enum ElectionRequest {
    /// POST a born Lease, as a part of that group.
    Create(Option<StrategyName>, Option<Arc<str>>),
    /// PUT a Lease.
    Write {
        judged: Box<Lease>,
        version: ResourceVersion,
        record: LeaseRecord,
        /// True if it was sent before, and lost its race.
        again: bool,
    },
    /// PATCH a candidate with a ping.
    Ping(JudgedCandidate, Timestamp),
    /// DELETE a candidate.
    Collect(JudgedCandidate),
    /// GET the Lease, whose newest known revision is this.
    Read(ResourceVersion),
}

/// The response to a request, or what stands in its place.
#[derive(Debug)]
pub(crate) enum ElectionResponse {
    Created(WriteOutcome<Lease>),
    Wrote {
        outcome: WriteOutcome<Lease>,
        /// The read, since the write was perhaps not applied.
        read: Option<Box<LeaseRead>>,
    },
    Pinged(Identity, WriteOutcome<LeaseCandidate>),
    Collected(Identity, WriteOutcome<()>),
    Read(Box<LeaseRead>),
    /// The code failed; the text is the panic's.
    Panicked(String),
    /// This elector does not act any more, so the request was not sent, or its end was not waited for.
    GivenUp,
}

/// The response to a GET of a Lease.
#[derive(Debug)]
pub(crate) struct LeaseRead {
    /// The newest revision that was known when it was sent.
    pub(crate) asked_at: ResourceVersion,
    pub(crate) response: Result<Option<Lease>, RequestError>,
}

/// The response to one request of a batch.
#[derive(Debug)]
pub(crate) struct BatchResponse {
    pub(crate) batch: RequestBatch,
    pub(crate) response: Box<ElectionResponse>,
    /// True if there have been responses to all the others.
    pub(crate) is_last: bool,
}

/// The requests under way. Dropping them gives them up; the server may carry them out all the same.
pub(crate) struct ElectionRequests {
    streams: SelectAll<BoxStream<'static, BatchResponse>>,
    pub(crate) batches: RequestBatches,
    turns: RequestTurns,
    /// Until when this elector may send anything.
    belief: ActiveBelief,
}

// === impl ElectionRequest ===

impl ElectionRequest {
    /// True if it counts against the budget of its namespace: all attempts at one write count once.
    pub(crate) const fn is_counted(&self) -> bool {
        !matches!(self, Self::Write { again: true, .. })
    }

    fn racing_write(&self) -> Option<RacingWrite> {
        match self {
            Self::Write {
                version, record, ..
            } => Some(RacingWrite {
                version: *version,
                record: record.clone(),
            }),
            _ => None,
        }
    }
}

// === impl ElectionResponse ===

impl ElectionResponse {
    /// A write has come to its end, or may have.
    pub(crate) const fn is_of_write(&self) -> bool {
        matches!(self, Self::Wrote { .. } | Self::Panicked(_) | Self::GivenUp)
    }
}

// === impl LeaseRead ===

impl LeaseRead {
    /// The revision that was read.
    pub(crate) fn version(&self) -> Option<ResourceVersion> {
        LeaseVersion::of(self.response.as_ref().ok()?.as_ref()?).version
    }
}

// === impl ElectionRequests ===

impl ElectionRequests {
    /// None, and room for those of `limit` leases. None is sent but under that belief.
    pub(crate) fn new(limit: NonZeroUsize, belief: ActiveBelief) -> Self {
        Self {
            streams: SelectAll::new(),
            batches: RequestBatches::new(limit),
            turns: RequestTurns::new(Arc::clone(belief.clock())),
            belief,
        }
    }

    /// True if none is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.batches.is_idle()
    }

    /// True if no other lease may have requests now.
    pub(crate) fn is_full(&self) -> bool {
        self.batches.is_full()
    }

    /// Sends the requests of a lease, started in this order. A panic is a response too.
    pub(crate) fn send(&mut self, writer: &Writer, key: LeaseKey, requests: Vec<ElectionRequest>) {
        let mut writes = requests.iter().filter_map(ElectionRequest::racing_write);
        let write = writes.next();
        let others = requests.len() - usize::from(write.is_some());
        let batch = self.batches.begin(key.clone(), write, others);
        let turns = self.turns.of(&key.namespace);
        let requests: Vec<_> = requests
            .into_iter()
            .map(|request| {
                let is_ping = matches!(request, ElectionRequest::Ping(..));
                (is_ping && self.turns.is_patient(&key.namespace), request)
            })
            .collect();
        let (writer, belief) = (writer.clone(), self.belief.clone());
        let requests = requests.into_iter().map(move |(is_patient, request)| {
            // A request that waited for its turn is begun when it is first polled.
            let (writer, belief, key) = (writer.clone(), belief.clone(), key.clone());
            let turns = Arc::clone(&turns);
            let request = async move {
                let turn = turns.take(is_patient).await;
                if !belief.may_begin() {
                    return ElectionResponse::GivenUp;
                }
                let writer = belief.limit(&writer);
                let response = belief.guard(perform(writer, key, request)).await;
                if let Some(ElectionResponse::Pinged(_, outcome)) = &response {
                    turn.pinged(matches!(outcome, WriteOutcome::Done(_)));
                }
                response.unwrap_or(ElectionResponse::GivenUp)
            };
            AssertUnwindSafe(request).catch_unwind()
        });
        let mut left = requests.len();
        let requests = stream::iter(requests);
        // Most batches are one request.
        let responses = match left {
            1 => requests.then(|request| request).left_stream(),
            _ => requests.buffer_unordered(SIDE_BY_SIDE).right_stream(),
        };
        let responses = responses.map(move |response| {
            left -= 1;
            let response =
                response.unwrap_or_else(|panic| ElectionResponse::Panicked(panic_text(&*panic)));
            BatchResponse {
                batch: batch.clone(),
                response: Box::new(response),
                is_last: left == 0,
            }
        });
        self.streams.push(responses.boxed());
    }

    /// Waits for the next response; forever, while no request is under way.
    pub(crate) async fn next(&mut self) -> BatchResponse {
        match self.streams.next().await {
            Some(next) => next,
            None => std::future::pending().await,
        }
    }

    /// Gives up all of them, and names the leases whose newest batch was under way.
    pub(crate) fn give_up(&mut self) -> impl Iterator<Item = LeaseKey> + use<> {
        self.streams.clear();
        self.batches.give_up()
    }
}

/// The requests that a decision asks for, each with the object of the very revision that was judged. Whether dead
/// candidates are deleted depends on whether the built-in controller does that.
pub(crate) fn requests_of(
    view: &mut View,
    races: &mut WriteRaces,
    key: &LeaseKey,
    decision: Decision,
    collects: bool,
) -> Vec<ElectionRequest> {
    let judged = |name: Identity, uid: Uid, version: ResourceVersion| JudgedCandidate {
        namespace: key.namespace.clone(),
        name,
        uid,
        version,
    };
    let mut requests = Vec::with_capacity(decision.effects.len());
    let mut writes = false;
    for effect in decision.effects {
        match effect {
            Effect::Create(record) => {
                let group = view.group_of(key);
                requests.push(ElectionRequest::Create(record.strategy, group));
            }
            Effect::Write(write) => {
                let (version, record) = (write.version, write.record);
                let held = view
                    .lease(key)
                    .is_some_and(|lease| lease.record.holder.is_some());
                let again = races.note_sent(key, version, held, &record);
                writes = true;
                let Some(judged) = view.take_lease_object(key, version) else {
                    requests.push(ElectionRequest::Read(version));
                    continue;
                };
                if let Some(expected) = ExpectedGrant::of(&decision.reason, &record) {
                    view.expect_grant(key, expected);
                }
                requests.push(ElectionRequest::Write {
                    again,
                    judged: Box::new(judged),
                    version,
                    record,
                });
            }
            Effect::Ping {
                name,
                uid,
                version,
                ping,
            } => requests.push(ElectionRequest::Ping(judged(name, uid, version), ping)),
            // The built-in controller collects as long as it elects.
            Effect::Collect { .. } if !collects => {}
            Effect::Collect { name, uid, version } => {
                requests.push(ElectionRequest::Collect(judged(name, uid, version)));
            }
        }
    }
    if !writes {
        races.end(key);
    }
    requests
}

fn perform(
    writer: Writer,
    key: LeaseKey,
    request: ElectionRequest,
) -> BoxFuture<'static, ElectionResponse> {
    async move {
        match request {
            ElectionRequest::Create(strategy, group) => {
                let born = Lease::born(&key, strategy.as_ref(), writer.carrier());
                let born = born.in_group(group.as_deref());
                ElectionResponse::Created(writer.post_born_lease(&born).await)
            }
            ElectionRequest::Write {
                judged,
                version,
                record,
                ..
            } => {
                let outcome = writer.put_lease(&judged, &record).await;
                // Judge again what is there now, not what the watch will bring some day.
                let read = match outcome {
                    WriteOutcome::Unknown(_) => Some(read(&writer, &key, version).await),
                    _ => None,
                };
                ElectionResponse::Wrote { outcome, read }
            }
            ElectionRequest::Ping(judged, ping) => {
                let outcome = writer.ping_candidate(&judged, ping).await;
                ElectionResponse::Pinged(judged.name, outcome)
            }
            ElectionRequest::Collect(judged) => {
                let outcome = writer.collect_candidate(&judged).await;
                ElectionResponse::Collected(judged.name, outcome)
            }
            ElectionRequest::Read(version) => {
                ElectionResponse::Read(read(&writer, &key, version).await)
            }
        }
    }
    .boxed()
}

async fn read(writer: &Writer, key: &LeaseKey, asked_at: ResourceVersion) -> Box<LeaseRead> {
    Box::new(LeaseRead {
        asked_at,
        response: writer.read_lease(key).await,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use elector_api::CandidateApi;
    use elector_apiserver::{Fault, RequestVerb, Rule};
    use elector_runtime::Clock as _;
    use elector_testing::{TestCluster, millis, pass, seconds};
    use serde_json::json;

    use super::*;

    /// The requests of an elector that believes for two seconds, at a server that takes its time for each.
    struct LimitedRequests {
        cluster: TestCluster,
        belief: ActiveBelief,
        requests: ElectionRequests,
    }

    impl LimitedRequests {
        fn new(answer: Duration) -> Self {
            let cluster = TestCluster::with_gate();
            cluster.inject(Rule::new(Fault::Delay(answer)).verb(RequestVerb::Create));
            let belief = ActiveBelief::none(cluster.clock());
            belief.set(Some(cluster.clock().holder().after(seconds(2))));
            Self {
                requests: ElectionRequests::new(NonZeroUsize::MIN, belief.clone()),
                cluster,
                belief,
            }
        }

        fn send(&mut self, namespace: &'static str, requests: Vec<ElectionRequest>) {
            let writer = Writer::new(self.cluster.connected(), CandidateApi::default());
            self.requests
                .send(&writer, LeaseKey::new(namespace, "l"), requests);
        }

        /// The numbers of those that come to an answer and that are given up, and the time that all of it takes.
        async fn finish(&mut self) -> ([usize; 2], Duration) {
            let (start, mut ends) = (self.cluster.now(), [0; 2]);
            while !self.requests.is_idle() {
                let BatchResponse {
                    batch,
                    response,
                    is_last,
                } = self.requests.next().await;
                ends[usize::from(matches!(*response, ElectionResponse::GivenUp))] += 1;
                if is_last {
                    self.requests.batches.finish(&batch);
                }
            }
            (ends, self.cluster.now().since(start))
        }
    }

    fn key() -> LeaseKey {
        LeaseKey::new("ns", "l")
    }

    fn write(judged: Lease, again: bool) -> ElectionRequest {
        let snapshot = judged.snapshot().unwrap();
        ElectionRequest::Write {
            judged: Box::new(judged),
            version: snapshot.version,
            record: snapshot.record,
            again,
        }
    }

    /// (R2) Against the budget of a namespace.
    #[test]
    fn all_attempts_at_one_write_count_once() {
        let cluster = TestCluster::with_gate();
        cluster.put_lease("ns", "l", json!({"holderIdentity": ""}));
        let judged = cluster.lease("ns", "l").object().unwrap();
        let counted = [false, true].map(|again| write(judged.clone(), again).is_counted());
        assert_eq!(counted, [true, false]);
    }

    /// (R2) The server keeps the record as it was sent, so the watch shows that it was applied before the answer does.
    #[tokio::test(start_paused = true)]
    async fn a_write_that_the_watch_brings_before_its_answer_has_not_lost() {
        let mut limited = LimitedRequests::new(Duration::ZERO);
        let cluster = limited.cluster.clone();
        cluster.put_lease("ns", "l", json!({"holderIdentity": ""}));
        cluster.slow(Duration::ZERO, seconds(1));
        let judged = cluster.lease("ns", "l").object().unwrap();
        let electee = Identity::new("a").unwrap();
        let record = judged
            .record()
            .unwrap()
            .granted(electee, seconds(5), cluster.clock().wall());
        let version = judged.snapshot().unwrap().version;
        let write = ElectionRequest::Write {
            judged: Box::new(judged),
            version,
            record,
            again: false,
        };
        limited.send("ns", vec![write]);
        let watch = async {
            pass(millis(1)).await;
            cluster
                .lease("ns", "l")
                .object()
                .unwrap()
                .snapshot()
                .unwrap()
        };
        let applied = tokio::select! {
            biased;
            _ = limited.requests.next() => panic!("the answer takes a second"),
            applied = watch => applied,
        };
        assert!(applied.version > version);
        let batches = &mut limited.requests.batches;
        batches.note_revision(&key(), &applied);
        assert_eq!(batches.overtake(), None);
    }

    fn many() -> Vec<ElectionRequest> {
        (0..40)
            .map(|_| ElectionRequest::Create(None, None))
            .collect()
    }

    /// The second sixteen of a namespace are sent after 1.5 s and would be answered after 3 s; the others would begin then.
    #[tokio::test(start_paused = true)]
    async fn no_answer_is_waited_for_and_nothing_is_sent_after_the_belief() {
        let mut limited = LimitedRequests::new(millis(1_500));
        for namespace in ["ns", "ns", "other"] {
            limited.send(namespace, many());
        }
        assert_eq!(limited.finish().await, ([32, 88], seconds(2)));
        assert_eq!(limited.cluster.requests().len(), 64);
    }

    #[tokio::test(start_paused = true)]
    async fn once_the_belief_is_closed_the_rest_is_not_begun() {
        let mut limited = LimitedRequests::new(millis(1_500));
        limited.send("ns", many());
        let belief = limited.belief.clone();
        let close = async {
            pass(seconds(1)).await;
            belief.set_closed(true);
        };
        let ((ends, _), ()) = tokio::join!(limited.finish(), close);
        assert_eq!(ends, [16, 24]);
        assert_eq!(limited.cluster.requests().len(), 16);
    }

    /// Beyond those which a namespace has at once; the first sixteen show that the server is slow now.
    #[tokio::test(start_paused = true)]
    async fn the_pings_of_a_namespace_give_a_slow_server_rest() {
        let mut limited = LimitedRequests::new(Duration::ZERO);
        let cluster = limited.cluster.clone();
        limited
            .belief
            .set(Some(cluster.clock().holder().after(seconds(100))));
        cluster.register("ns", "c", "l", "1.0.0");
        let stored = cluster.get("leasecandidates", "ns", "c").unwrap();
        let (uid, version) = (
            &stored["metadata"]["uid"],
            &stored["metadata"]["resourceVersion"],
        );
        let judged = JudgedCandidate {
            namespace: "ns".into(),
            name: Identity::new("c").unwrap(),
            uid: Uid::new(uid.as_str().unwrap()),
            version: ResourceVersion(version.as_str().unwrap().parse().unwrap()),
        };
        let ping = cluster.clock().wall();
        let pings = |count| {
            let ping = || ElectionRequest::Ping(judged.clone(), ping);
            std::iter::repeat_with(ping).take(count).collect()
        };
        limited.send("ns", pings(500));
        assert_eq!(limited.finish().await.1.as_secs(), 0);
        cluster.inject(Rule::new(Fault::Delay(seconds(1))).verb(RequestVerb::Patch));
        limited.send("ns", pings(26));
        let (ends, took) = limited.finish().await;
        assert_eq!((ends, took.as_secs()), ([26, 0], 21));
    }

    /// A write that may have been applied is followed by a read, which is not sent after the belief either.
    #[tokio::test(start_paused = true)]
    async fn what_a_write_calls_for_is_not_sent_after_the_belief() {
        let mut limited = LimitedRequests::new(Duration::ZERO);
        let cluster = limited.cluster.clone();
        cluster.put_lease("ns", "l", json!({"holderIdentity": ""}));
        cluster.inject(Rule::new(Fault::HangAfter).verb(RequestVerb::Update));
        let judged = cluster.lease("ns", "l").object().unwrap();
        limited.send("ns", vec![write(judged, false)]);
        assert_eq!(limited.finish().await, ([0, 1], seconds(2)));
        assert_eq!(cluster.requests().len(), 1, "the write");
    }
}
