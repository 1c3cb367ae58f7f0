//! The rules that hold for every request alike: its own timeout, and one meaning for each answer.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A bound that a caller sets is that of every request, reads and deletions too: a candidate sets what is left of its
/// belief.
#[tokio::test(start_paused = true)]
async fn every_request_is_given_up_after_the_timeout_of_its_writer() {
    for request in 0..9 {
        let script = Script::new([]);
        let writer = writer(&script).with_timeout(SECOND);
        let name = Identity::new("c").unwrap();
        let start = Instant::now();
        let error = match request {
            0 => writer
                .put_lease(&judged(), &record())
                .await
                .error()
                .cloned(),
            1 => writer.post_lease(&key(), None).await.error().cloned(),
            2 => writer.put_candidate(&candidate()).await.error().cloned(),
            3 => writer.post_candidate(&candidate()).await.error().cloned(),
            4 => writer.delete_candidate(&candidate()).await.error().cloned(),
            5 => writer.read_lease(&key()).await.err(),
            6 => writer.read_candidate("ns", &name).await.err(),
            7 => {
                let outcome = writer.collect_candidate(&judged_candidate()).await;
                outcome.error().cloned()
            }
            _ => {
                let judged = judged_candidate();
                let outcome = writer.ping_candidate(&judged, Timestamp::MIN).await;
                outcome.error().cloned()
            }
        };
        assert_eq!(
            error.map(|error| error.cause),
            Some(Cause::TimedOut(SECOND)),
            "{request}"
        );
        assert_eq!(start.elapsed(), SECOND, "{request}");
        assert_eq!(script.lines().len(), 1, "never tried twice");
    }
}

/// An object that is gone is what a deletion was for; one that has changed is to be judged again.
#[tokio::test(start_paused = true)]
async fn each_answer_to_a_deletion_has_its_outcome() {
    let deleted = || Reply::Json(200, json!({"kind": "Status", "status": "Success"}));
    for (reply, kind) in [
        (deleted(), WriteOutcomeKind::Done),
        (
            failure(404, "NotFound", "not found"),
            WriteOutcomeKind::Gone,
        ),
        (
            failure(409, "Conflict", "the precondition failed"),
            WriteOutcomeKind::Conflict,
        ),
        (failure(403, "Forbidden", "no"), WriteOutcomeKind::Refused),
        (
            failure(429, "TooManyRequests", "later"),
            WriteOutcomeKind::Refused,
        ),
        (
            failure(500, "InternalError", "etcd"),
            WriteOutcomeKind::Unknown,
        ),
        (failure(504, "Timeout", "late"), WriteOutcomeKind::Unknown),
        (Reply::Break, WriteOutcomeKind::Unknown),
        (Reply::Silence, WriteOutcomeKind::Unknown),
    ] {
        let script = Script::new([reply]);
        let writer = writer(&script);
        let outcome = writer.delete_candidate(&candidate()).await;
        assert_eq!(outcome.kind(), kind, "{outcome:?}");
        let counted: Vec<_> = writer.counts().iter().collect();
        assert_eq!(counted, [(Written::Candidate, Verb::Delete, kind, 1)]);
        let preconditions = &script.seen()[0].body["preconditions"];
        assert_eq!(*preconditions, json!({"uid": "u", "resourceVersion": "7"}));
    }
}

/// Only a 404 says that there is no such object; any other failure says nothing of it (R10).
#[tokio::test(start_paused = true)]
async fn a_read_that_fails_otherwise_is_no_absence() {
    for code in [400, 401, 403, 410, 429, 500, 504] {
        let script = Script::new([
            failure(code, "Reason", "why"),
            failure(code, "Reason", "why"),
        ]);
        let writer = writer(&script);
        let name = Identity::new("c").unwrap();
        assert!(writer.read_lease(&key()).await.is_err(), "{code}");
        assert!(writer.read_candidate("ns", &name).await.is_err(), "{code}");
    }
}

/// A POST that timed out in the server may have been made all the same (R2).
#[tokio::test(start_paused = true)]
async fn a_server_error_to_a_post_leaves_its_outcome_open() {
    for (code, kind) in [
        (400, WriteOutcomeKind::Refused),
        (422, WriteOutcomeKind::Refused),
        (429, WriteOutcomeKind::Refused),
        (500, WriteOutcomeKind::Unknown),
        (502, WriteOutcomeKind::Unknown),
        (503, WriteOutcomeKind::Unknown),
        (504, WriteOutcomeKind::Unknown),
    ] {
        let script = Script::new([failure(code, "Reason", "why")]);
        let outcome = writer(&script).post_lease(&key(), None).await;
        assert_eq!(outcome.kind(), kind, "{code}");
    }
}

/// A ping of a revision that is not the newest any more changes nothing.
#[tokio::test(start_paused = true)]
async fn each_answer_to_a_ping_has_its_outcome() {
    let pinged = || Reply::Json(200, serde_json::to_value(candidate()).unwrap());
    let mut other = serde_json::to_value(candidate()).unwrap();
    other["metadata"]["uid"] = "another".into();
    for (reply, kind) in [
        (pinged(), WriteOutcomeKind::Done),
        (Reply::Json(200, other), WriteOutcomeKind::Unknown),
        (failure(404, "NotFound", "gone"), WriteOutcomeKind::Gone),
        (
            failure(409, "Conflict", "newer"),
            WriteOutcomeKind::Conflict,
        ),
        (failure(403, "Forbidden", "no"), WriteOutcomeKind::Refused),
        (
            failure(500, "InternalError", "etcd"),
            WriteOutcomeKind::Unknown,
        ),
        (Reply::Silence, WriteOutcomeKind::Unknown),
    ] {
        let script = Script::new([reply]);
        let writer = writer(&script);
        let judged = judged_candidate();
        let outcome = writer.ping_candidate(&judged, Timestamp::MIN).await;
        assert_eq!(outcome.kind(), kind);
        let counted: Vec<_> = writer.counts().iter().collect();
        assert_eq!(counted, [(Written::Candidate, Verb::Patch, kind, 1)]);
    }
}
