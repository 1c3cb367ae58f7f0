use elector_protocol::{ResourceVersion, Timestamp, Uid};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::testing::{Reply, Script, SeenRequest, failure};
use crate::write_outcome::WriteOutcomeKind;

mod each_request;

fn key() -> LeaseKey {
    LeaseKey::new("ns", "l")
}

#[expect(clippy::needless_pass_by_value, reason = "json! literals read better")]
fn stored(version: &str, spec: Value) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": "l", "uid": "u", "resourceVersion": version, "labels": {"a": "b"}},
        "spec": spec,
    })
}

fn judged() -> Lease {
    Lease::from_value(stored(
        "7",
        json!({"holderIdentity": "a", "ofTheFuture": 1}),
    ))
}

fn candidate() -> LeaseCandidate {
    LeaseCandidate::from_value(json!({
        "metadata": {"namespace": "ns", "name": "c", "uid": "u", "resourceVersion": "7"},
        "spec": {"leaseName": "l", "binaryVersion": "1.0.0", "strategy": "a/b"},
    }))
}

fn judged_candidate() -> JudgedCandidate {
    JudgedCandidate {
        namespace: "ns".into(),
        name: Identity::new("c").unwrap(),
        uid: Uid::new("u"),
        version: ResourceVersion(7),
    }
}

fn record() -> LeaseRecord {
    let now = Timestamp::from_micros(0).unwrap();
    let electee = Identity::new("b").unwrap();
    let strategy = Some(StrategyName::parse("a/b").unwrap());
    LeaseRecord::born(strategy).granted(electee, Duration::from_secs(5), now)
}

fn writer(script: &Script) -> Writer {
    Writer::new(script.cluster(), CandidateApi::V1Beta1)
}

#[tokio::test(start_paused = true)]
async fn a_put_carries_what_was_judged_and_returns_what_was_stored() {
    let script = Script::new([Reply::Json(
        200,
        stored("8", json!({"holderIdentity": "b"})),
    )]);
    let WriteOutcome::Done(lease) = writer(&script).put_lease(&judged(), &record()).await else {
        panic!("not done");
    };
    assert_eq!(lease.metadata.resource_version.as_deref(), Some("8"));
    let [SeenRequest { line, body, .. }] = &script.seen()[..] else {
        panic!("one request");
    };
    let expected = "PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/l?";
    assert_eq!(line, expected);
    assert_eq!(
        body["metadata"],
        json!({
            "namespace": "ns", "name": "l", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"},
            "annotations": {"elector.dev/protocol": "1", "elector.dev/strategy": "a/b"},
        })
    );
    assert_eq!(
        body["spec"],
        json!({
            "holderIdentity": "b", "leaseDurationSeconds": 5, "leaseTransitions": 1, "strategy": "a/b",
            "acquireTime": "1970-01-01T00:00:00.000000Z", "renewTime": "1970-01-01T00:00:00.000000Z",
            "ofTheFuture": 1,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn the_carrier_is_learned_from_the_answers() {
    let kept = json!({"holderIdentity": "", "strategy": "a/b"});
    let script = Script::new([
        Reply::Json(201, stored("1", kept.clone())),
        Reply::Json(200, stored("8", kept)),
        Reply::Json(200, stored("9", json!({"holderIdentity": "b"}))),
        Reply::Json(200, stored("10", json!({"holderIdentity": "b"}))),
    ]);
    let writer = writer(&script);
    let same = writer.with_timeout(Duration::from_secs(1));
    let strategy = StrategyName::parse("a/b").unwrap();
    assert_eq!(writer.carrier(), Carrier::Unknown);
    let _ = writer.post_lease(&key(), Some(&strategy)).await;
    assert_eq!(same.carrier(), Carrier::Fields);
    let _ = writer.put_lease(&judged(), &record()).await;
    assert_eq!(writer.carrier(), Carrier::Fields);
    let _ = writer.put_lease(&judged(), &record()).await;
    assert_eq!(writer.carrier(), Carrier::Annotations);
    let _ = writer.put_lease(&judged(), &record()).await;
    let specs: Vec<_> = script.seen().into_iter().map(|seen| seen.body).collect();
    let written = |body: &Value| {
        (
            body["spec"]["strategy"] == "a/b",
            body["metadata"]["annotations"]["elector.dev/strategy"] == "a/b",
        )
    };
    let written: Vec<_> = specs.iter().map(written).collect();
    let expected = [(true, true), (true, false), (true, false), (false, true)];
    assert_eq!(written, expected);
    assert_eq!(specs[0]["spec"]["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_no_conflict_and_a_missing_namespace_no_missing_object() {
    let script = Script::new([
        failure(
            409,
            "AlreadyExists",
            "leases.coordination.k8s.io \"l\" already exists",
        ),
        failure(404, "NotFound", "namespaces \"ns\" not found"),
        failure(
            409,
            "AlreadyExists",
            "leasecandidates.coordination.k8s.io \"c\" already exists",
        ),
    ]);
    let writer = writer(&script);
    let expected = WriteOutcome::AlreadyExists;
    assert_eq!(writer.post_lease(&key(), None).await, expected);
    let outcome = writer.post_lease(&key(), None).await;
    assert_eq!(
        outcome.error().unwrap().to_string(),
        "create leases.coordination.k8s.io ns/l: https://script answered 404 NotFound: namespaces \"ns\" not found"
    );
    let expected = WriteOutcomeKind::AlreadyExists;
    assert_eq!(writer.post_candidate(&candidate()).await.kind(), expected);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_without_uid_and_version() {
    let script = Script::new([]);
    let writer = writer(&script);
    for spoil in [
        |meta: &mut kube::core::ObjectMeta| meta.uid = None,
        |meta: &mut kube::core::ObjectMeta| meta.resource_version = Some(String::new()),
        // An update of version 0 would be one of any version.
        |meta: &mut kube::core::ObjectMeta| meta.resource_version = Some("0".into()),
    ] {
        let (mut lease, mut candidate) = (judged(), candidate());
        spoil(&mut lease.metadata);
        spoil(&mut candidate.metadata);
        let any = JudgedCandidate {
            version: ResourceVersion(0),
            ..judged_candidate()
        };
        let kinds = [
            writer.put_lease(&lease, &record()).await.kind(),
            writer.put_candidate(&candidate).await.kind(),
            writer.delete_candidate(&candidate).await.kind(),
            writer.ping_candidate(&any, Timestamp::MIN).await.kind(),
        ];
        assert_eq!(kinds, [WriteOutcomeKind::Refused; 4]);
    }
    assert_eq!(script.lines(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn candidates_are_written_to_the_api_that_is_served() {
    let reply = || Reply::Json(200, serde_json::to_value(candidate()).unwrap());
    let deleted = Reply::Json(200, json!({"kind": "Status", "status": "Success"}));
    let script = Script::new([reply(), reply(), reply(), deleted, reply()]);
    let writer = Writer::new(script.cluster(), CandidateApi::V1Beta1)
        .with_candidate_api(CandidateApi::Elector);
    let done = writer.post_candidate(&candidate()).await.done().unwrap();
    assert_eq!(done.api, CandidateApi::Elector);
    let done = writer.put_candidate(&candidate()).await.done().unwrap();
    assert_eq!(done.api, CandidateApi::Elector);
    let name = Identity::new("c").unwrap();
    let read = writer.read_candidate("ns", &name).await.unwrap().unwrap();
    assert_eq!(read.api, CandidateApi::Elector);
    let expected = WriteOutcome::Done(());
    assert_eq!(writer.delete_candidate(&candidate()).await, expected);
    let judged = judged_candidate();
    let pinged = writer.ping_candidate(&judged, Timestamp::MIN).await;
    assert_eq!(pinged.done().unwrap().api, CandidateApi::Elector);
    let path = "/apis/elector.dev/v1alpha1/namespaces/ns/leasecandidates";
    let lines = "POST {path}?|PUT {path}/c?|GET {path}/c|DELETE {path}/c?|PATCH {path}/c?";
    let lines = lines.replace("{path}", path);
    assert_eq!(script.lines().join("|"), lines);
    let bodies: Vec<_> = script.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(
        [&bodies[0]["apiVersion"], &bodies[1]["apiVersion"]],
        ["elector.dev/v1alpha1"; 2]
    );
    let expected = json!({"uid": "u", "resourceVersion": "7"});
    assert_eq!(bodies[3]["preconditions"], expected);
    let patch = LeaseCandidate::ping_patch(&Uid::new("u"), ResourceVersion(7), Timestamp::MIN);
    assert_eq!(bodies[4], patch);
}

#[tokio::test(start_paused = true)]
async fn a_read_tells_absent_from_unknown() {
    let script = Script::new([
        Reply::Json(200, stored("7", json!({}))),
        failure(404, "NotFound", "not found"),
        Reply::Json(200, json!({"some": "page"})),
        Reply::Silence,
    ]);
    let writer = writer(&script);
    assert_eq!(
        writer.read_lease(&key()).await.unwrap().unwrap().key(),
        key()
    );
    assert_eq!(writer.read_lease(&key()).await, Ok(None));
    for text in [
        "get leases.coordination.k8s.io ns/l: unreadable answer from https://script: the object has no uid",
        "get leases.coordination.k8s.io ns/l: no answer from https://script in 5s",
    ] {
        let error = writer.read_lease(&key()).await.unwrap_err();
        assert_eq!(error.to_string(), text);
    }
    // Without a version: a read of the newest, by quorum.
    let expected = "GET /apis/coordination.k8s.io/v1/namespaces/ns/leases/l";
    assert_eq!(script.lines()[0], expected);
}
