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
        let expected = Some(Cause::TimedOut(SECOND));
        assert_eq!(error.map(|error| error.cause), expected, "{request}");
        assert_eq!(start.elapsed(), SECOND, "{request}");
        assert_eq!(script.lines().len(), 1, "never tried twice");
    }
}

/// An object that is gone is what a deletion was for; one that has changed is to be judged again; and a write that timed
/// out in the server may have been made all the same (R2).
#[tokio::test(start_paused = true)]
async fn each_answer_has_its_outcome() {
    let status = |code, reason, kind| (failure(code, reason, "why"), kind);
    let other = json!({"metadata": {"name": "l", "uid": "v", "resourceVersion": "8"}});
    let of_all = [
        status(400, "BadRequest", WriteOutcomeKind::Refused),
        status(401, "Unauthorized", WriteOutcomeKind::Refused),
        status(403, "Forbidden", WriteOutcomeKind::Refused),
        status(422, "Invalid", WriteOutcomeKind::Refused),
        status(429, "TooManyRequests", WriteOutcomeKind::Refused),
        status(500, "InternalError", WriteOutcomeKind::Unknown),
        status(503, "ServiceUnavailable", WriteOutcomeKind::Unknown),
        status(504, "Timeout", WriteOutcomeKind::Unknown),
        (Reply::Text(502, "<html>"), WriteOutcomeKind::Unknown),
        (Reply::Break, WriteOutcomeKind::Unknown),
        (Reply::Silence, WriteOutcomeKind::Unknown),
    ];
    let of_revisions = [
        status(404, "NotFound", WriteOutcomeKind::Gone),
        status(409, "Conflict", WriteOutcomeKind::Conflict),
    ];
    let of_objects = [
        (Reply::Text(200, "<html>"), WriteOutcomeKind::Unknown),
        (Reply::Json(200, json!({})), WriteOutcomeKind::Unknown),
        (Reply::Json(200, other), WriteOutcomeKind::Unknown),
    ];
    let done = |object: Value| [(Reply::Json(200, object), WriteOutcomeKind::Done)];
    let whole = || serde_json::to_value(candidate()).unwrap();
    let deleted = done(json!({"kind": "Status", "status": "Success"}));
    for (verb, replies) in [
        (Verb::Create, of_all.to_vec()),
        (
            Verb::Update,
            [&of_all[..], &of_revisions, &of_objects].concat(),
        ),
        (
            Verb::Delete,
            [&of_all[..], &of_revisions, &deleted].concat(),
        ),
        (
            Verb::Patch,
            [&of_all[..], &of_revisions, &of_objects, &done(whole())].concat(),
        ),
    ] {
        for (reply, kind) in replies {
            let said = format!("{verb:?} {reply:?}");
            let script = Script::new([reply]);
            let writer = writer(&script).with_timeout(SECOND);
            let judged_candidate = judged_candidate();
            let start = Instant::now();
            let (written, outcome) = match verb {
                Verb::Create => (Written::Lease, writer.post_lease(&key(), None).await.kind()),
                Verb::Update => {
                    let put = writer.put_lease(&judged(), &record()).await;
                    (Written::Lease, put.kind())
                }
                Verb::Delete => {
                    let delete = writer.delete_candidate(&candidate()).await;
                    (Written::Candidate, delete.kind())
                }
                _ => {
                    let ping = writer
                        .ping_candidate(&judged_candidate, Timestamp::MIN)
                        .await;
                    (Written::Candidate, ping.kind())
                }
            };
            assert_eq!(outcome, kind, "{said}");
            assert!(start.elapsed() <= SECOND, "{said}");
            assert_eq!(script.lines().len(), 1, "never tried twice: {said}");
            let counted: Vec<_> = writer.counts().iter().collect();
            assert_eq!(counted, [(written, verb, kind, 1)], "{said}");
        }
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
