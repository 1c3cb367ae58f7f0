//! The deliveries of candidates to each elector, with the time by its own clock.
//!
//! A commit is not seen at once: watches are late, fall silent and end. What was read from a connection is all that its
//! process can know.

use std::collections::BTreeMap;
use std::time::Duration;

use elector_protocol::{Instant, Timestamp};
use serde_json::Value;

use crate::author::{Author, CandidateRevision, version};

/// Revisions of candidates that reached an elector together.
#[derive(Clone, Debug)]
pub(crate) struct CandidateDelivery {
    pub(crate) at: Duration,
    /// The elector's own clock at that moment.
    pub(crate) clock: Instant,
    pub(crate) source: DeliverySource,
    pub(crate) versions: Vec<u64>,
}

/// The way of revisions to an elector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliverySource {
    /// By a list, which shows what is there and not since when.
    List,
    /// By a watch.
    Watch,
    /// By the answer to a request for one object.
    Answer,
}

/// All deliveries, by the name and the incarnation of the elector.
#[derive(Debug, Default)]
pub(crate) struct DeliveryLog {
    all: BTreeMap<(String, u32), Vec<CandidateDelivery>>,
    /// The API that each elector asked last, and when it went over to another one.
    apis: BTreeMap<(String, u32), (String, Vec<Duration>)>,
}

/// A candidate's answers as an elector heard them (R15).
#[derive(Clone, Debug, Default)]
pub(crate) struct HeardAnswers {
    /// The newest ack: its version, and when it was seen.
    pub(crate) ack: Option<(u64, Instant)>,
    /// Each ping since the candidate was created: its version, and when it was seen.
    pub(crate) pings: Vec<(u64, Duration)>,
}

/// Reads the objects of an answer, or of a watch, as they come.
#[derive(Debug, Default)]
pub(crate) struct DeliveryReader(Vec<u8>);

// === impl DeliveryLog ===

impl DeliveryLog {
    pub(crate) fn add(&mut self, author: &Author, delivery: CandidateDelivery) {
        self.all.entry(key(author)).or_default().push(delivery);
    }

    /// An elector is shown all candidates of this API.
    pub(crate) fn list(&mut self, author: &Author, at: Duration, api: &str) {
        let (last, others) = self.apis.entry(key(author)).or_default();
        if last != api && !last.is_empty() {
            others.push(at);
        }
        api.clone_into(last);
    }

    /// The times by then at which an elector went over to another version.
    pub(crate) fn other_version(
        &self,
        author: &Author,
        by: Duration,
    ) -> impl Iterator<Item = Duration> {
        let others = self.apis.get(&key(author)).map(|(_, others)| others);
        others
            .into_iter()
            .flatten()
            .copied()
            .filter(move |at| *at <= by)
    }

    /// The candidates as this elector had been shown them before a moment.
    pub(crate) fn shown<'a>(
        &self,
        author: &Author,
        before: Duration,
        revisions: &BTreeMap<u64, &'a CandidateRevision>,
    ) -> impl Iterator<Item = &'a CandidateRevision> + use<'a> {
        let mut known: BTreeMap<_, (u64, Option<&'a CandidateRevision>)> = BTreeMap::new();
        let deliveries = self.all.get(&key(author)).into_iter().flatten();
        for delivery in deliveries.take_while(|it| it.at < before) {
            if delivery.source == DeliverySource::List {
                known.clear();
            }
            for version in &delivery.versions {
                let Some(revision) = revisions.get(version) else {
                    continue;
                };
                let name = revision.object.metadata.name.as_deref();
                let newest = known.entry(name).or_default();
                if newest.0 < *version {
                    *newest = (*version, Some(*revision).filter(|it| !it.deleted));
                }
            }
        }
        known.into_values().filter_map(|(_, shown)| shown)
    }

    /// The answers of a candidate that this elector had heard by then, newest first: of what came at that very moment it
    /// may have taken in a part when it acted. `revisions` are those of all candidates, by version.
    pub(crate) fn heard(
        &self,
        author: &Author,
        by: Duration,
        name: &str,
        revisions: &BTreeMap<u64, &CandidateRevision>,
    ) -> Vec<HeardAnswers> {
        let mut states = Vec::new();
        let mut heard = HeardAnswers::default();
        let mut known: Option<(u64, &CandidateRevision)> = None;
        let mut forgot = 0;
        let deliveries = self.all.get(&key(author)).into_iter().flatten();
        for delivery in deliveries.take_while(|it| it.at <= by) {
            if delivery.at == by {
                states.push(answers(&heard, known));
            }
            let mut shown = delivery.versions.iter().filter_map(|version| {
                let revision = revisions.get(version)?;
                let named = revision.object.metadata.name.as_deref() == Some(name);
                named.then_some((*version, *revision))
            });
            let list = delivery.source == DeliverySource::List;
            let others = self.other_version(author, delivery.at).count();
            // Over another version it begins anew: a ping that it is shown there is one of this round.
            if list && others > forgot {
                (known, forgot) = (None, others);
            }
            let Some((version, revision)) = shown.next_back() else {
                known = known.filter(|_| !list);
                continue;
            };
            if !list && known.is_some_and(|(newest, _)| version <= newest) {
                continue;
            }
            let times =
                |it: &CandidateRevision| (it.object.spec.renew_time, it.object.spec.ping_time);
            if revision.deleted {
                known = None;
                continue;
            }
            let (renewed, pinged) = times(revision);
            let uid = |it: &CandidateRevision| it.object.metadata.uid.clone();
            let before = known.filter(|(_, before)| uid(before) == uid(revision));
            let before = before.map(|(_, before)| times(before));
            if before.is_none() {
                heard = HeardAnswers::default();
            }
            let created = before.is_none() && delivery.source == DeliverySource::Watch;
            let answered = before.is_some_and(|(before, _)| before != renewed) && !list;
            if renewed.is_some() && (created || answered) {
                heard.ack = Some((version, delivery.clock));
            }
            if pinged.is_some()
                && before.is_none_or(|(_, before): (_, Option<Timestamp>)| before != pinged)
            {
                heard.pings.push((version, delivery.at));
            }
            known = Some((version, revision));
        }
        states.push(answers(&heard, known));
        states.reverse();
        states
    }
}

/// The answers that count: a candidate without a renewTime, which a stranger spoilt, has none.
fn answers(heard: &HeardAnswers, known: Option<(u64, &CandidateRevision)>) -> HeardAnswers {
    match known {
        Some((_, last)) if last.object.spec.renew_time.is_some() => heard.clone(),
        _ => HeardAnswers::default(),
    }
}

fn key(author: &Author) -> (String, u32) {
    (author.name.clone(), author.incarnation)
}

// === impl DeliveryReader ===

impl DeliveryReader {
    /// Takes in a piece of a body, and returns what is whole by then.
    pub(crate) fn read(&mut self, piece: &[u8]) -> Vec<(DeliverySource, Vec<u64>)> {
        self.0.extend_from_slice(piece);
        let mut values = serde_json::Deserializer::from_slice(&self.0).into_iter::<Value>();
        let mut read = Vec::new();
        let mut whole = 0;
        while let Some(Ok(value)) = values.next() {
            whole = values.byte_offset();
            let of = |object: &Value| version(object["metadata"]["resourceVersion"].as_str());
            read.push(match (&value["items"], &value["object"]) {
                (Value::Array(items), _) => (DeliverySource::List, items.iter().map(of).collect()),
                (_, Value::Null) => (DeliverySource::Answer, vec![of(&value)]),
                (_, object) => (DeliverySource::Watch, vec![of(object)]),
            });
        }
        self.0.drain(..whole);
        read
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::Identity;

    use super::*;
    use crate::history::Role;

    #[test]
    fn an_ack_is_what_a_watch_or_an_answer_shows_changed() {
        let revision = |version: u64, renewed: i64, deleted| {
            let mut object = elector_api::LeaseCandidate::default();
            object.metadata.name = Some("a".to_owned());
            object.metadata.resource_version = Some(version.to_string());
            object.spec.renew_time = Timestamp::from_micros(renewed).filter(|_| renewed > 0);
            object.spec.ping_time = Timestamp::from_micros(11).filter(|_| version > 1);
            CandidateRevision {
                at: Duration::ZERO,
                object,
                deleted,
            }
        };
        let all = [
            revision(1, 10, false),
            revision(2, 10, false),
            revision(3, 20, false),
            revision(4, 20, true),
            revision(5, 0, false),
            revision(6, 20, false),
        ];
        let revisions: BTreeMap<u64, &CandidateRevision> = (1..).zip(&all).collect();
        let author = Author {
            name: "e".to_owned(),
            role: Role::Elector { rate: 1 },
            identity: Identity::new("e"),
            incarnation: 1,
            born: Duration::ZERO,
        };
        let log_of = |steps: &[(DeliverySource, u64)]| {
            let mut log = DeliveryLog::default();
            for ((source, version), second) in steps.iter().zip(1..) {
                let at = Duration::from_secs(second);
                let delivery = CandidateDelivery {
                    at,
                    clock: Instant::from_epoch(at),
                    source: *source,
                    versions: vec![*version],
                };
                log.add(&author, delivery);
            }
            log
        };
        let heard_by = |by: u64, steps: &[(DeliverySource, u64)]| {
            log_of(steps).heard(&author, Duration::from_secs(by), "a", &revisions)
        };
        let shown = |steps: &[(DeliverySource, u64)]| {
            let shown = log_of(steps).shown(&author, Duration::from_secs(3), &revisions);
            shown.map(CandidateRevision::version).collect::<Vec<_>>()
        };
        let heard = |steps: &[(DeliverySource, u64)]| {
            let states = heard_by(9, steps);
            assert_eq!(states.len(), 1);
            let ack = states.first().and_then(|it| it.ack);
            ack.map(|(version, at)| (version, at.since_epoch().as_secs()))
        };
        let (list, watch, answer) = (
            DeliverySource::List,
            DeliverySource::Watch,
            DeliverySource::Answer,
        );
        assert_eq!(heard(&[(list, 1)]), None);
        assert_eq!(heard(&[(watch, 1)]), Some((1, 1)));
        assert_eq!(heard(&[(watch, 1), (watch, 2)]), Some((1, 1)));
        assert_eq!(heard(&[(list, 1), (list, 3)]), None);
        assert_eq!(heard(&[(list, 1), (watch, 3)]), Some((3, 2)));
        assert_eq!(heard(&[(list, 1), (answer, 3)]), Some((3, 2)));
        assert_eq!(shown(&[(watch, 1), (watch, 3)]), [3]);
        assert_eq!(shown(&[(watch, 1), (watch, 2), (watch, 3)]), [2], "in time");
        assert_eq!(shown(&[(watch, 4), (answer, 3)]), [0; 0]);
        assert_eq!(shown(&[(watch, 3), (list, 1)]), [1]);
        // An old cache repeats itself.
        let again = [(watch, 1), (watch, 3), (watch, 1), (watch, 3)];
        assert_eq!(heard(&again), Some((3, 2)));
        assert_eq!(heard(&[(watch, 3), (watch, 4)]), None);
        // A candidate that is gone at the very moment of a decision may have answered just before it.
        let states = heard_by(2, &[(watch, 3), (watch, 4)]);
        let acks = states.iter().map(|it| it.ack.map(|(version, _)| version));
        assert!(acks.eq([None, Some(3)]));
        // A candidate that was spoilt has no answer until it writes again, and then one to the ping that it had.
        let spoilt = [(watch, 1), (watch, 2), (watch, 5)];
        assert_eq!(heard(&spoilt), None);
        let states = heard_by(9, &[&spoilt[..], &[(watch, 6)]].concat());
        let heard = states
            .first()
            .map(|it| (it.ack.map(|(version, _)| version), it.pings.clone()));
        assert_eq!(heard, Some((Some(6), vec![(2, Duration::from_secs(2))])));
        // Over another version of the API the ping that it had seen is a new one.
        let mut log = log_of(&[(watch, 1), (watch, 2), (list, 2), (watch, 3)]);
        log.list(&author, Duration::from_secs(1), "v1");
        log.list(&author, Duration::from_secs(3), "v2");
        let states = log.heard(&author, Duration::from_secs(9), "a", &revisions);
        let pings = states.first().map(|it| it.pings.clone());
        assert_eq!(pings, Some(vec![(2, Duration::from_secs(3))]));
    }

    #[test]
    fn objects_are_read_in_pieces() {
        let mut reader = DeliveryReader::default();
        let event = br#"{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}}"#;
        let (one, other) = event.split_at(20);
        assert_eq!(reader.read(one), []);
        let watch = (DeliverySource::Watch, vec![7]);
        assert_eq!(
            reader.read(&[other, b"\n", one].concat()),
            std::slice::from_ref(&watch)
        );
        assert_eq!(reader.read(other), [watch]);
        let list = br#"{"items":[{"metadata":{"resourceVersion":"8"}}]}"#;
        assert_eq!(reader.read(list), [(DeliverySource::List, vec![8])]);
        let answer = br#"{"metadata":{"resourceVersion":"9"}}"#;
        assert_eq!(reader.read(answer), [(DeliverySource::Answer, vec![9])]);
    }
}
