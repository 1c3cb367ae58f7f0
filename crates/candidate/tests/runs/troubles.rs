//! Servers that do not answer, answers that are lost, watches that show nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector_candidate::{Event, Leadership, TermEnd};
use elector_protocol::holder::{Loss, StopReason};
use tokio::time::Instant;

use crate::log::Log;
use crate::server::{Fault, Server};
use crate::{config, eventually, obedient, start};

#[tokio::test(start_paused = true)]
async fn without_an_answer_the_work_is_told_at_the_deadline_and_nothing_is_written_after() {
    let server = Server::start();
    let stopped = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&stopped);
    let running = start(&server, config(), move |leadership: Leadership| {
        let seen = Arc::clone(&seen);
        async move {
            let why = leadership.stopped().await;
            assert!(!leadership.is_leader());
            *seen.lock().unwrap() = Some((why, Instant::now()));
            Ok(0)
        }
    });
    running.registered().await;
    server.grant("me");
    running.leads(1).await;
    let accepted = Instant::now();
    server.break_by(Fault::Hangs);
    eventually(|| stopped.lock().unwrap().is_some()).await;
    let (why, at) = stopped.lock().unwrap().take().unwrap();
    assert_eq!(why, StopReason::Lost(Loss::DeadlinePassed));
    let after = at.duration_since(accepted);
    assert!(
        (Duration::from_millis(9_950)..=Duration::from_millis(10_010)).contains(&after),
        "{after:?}"
    );
    server.break_by(Fault::None);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(running.story(), ["register", "grant me", "accept"]);
    // The same process leads again when it is granted a new term.
    server.grant("me");
    running.leads(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_the_accept_is_found() {
    let server = Server::start();
    let running = start(&server, config(), obedient);
    running.registered().await;
    server.break_by(Fault::AnswersLost);
    server.grant("me");
    eventually(|| running.story().contains(&"accept".to_owned())).await;
    server.break_by(Fault::None);
    running.leads(1).await;
    assert_eq!(running.story(), ["register", "grant me", "accept"]);
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_a_dead_watch_does_not_show_is_found_by_a_read() {
    let server = Server::start();
    let running = start(&server, config(), obedient);
    running.registered().await;
    server.break_by(Fault::WatchesFrozen);
    let asked = Instant::now();
    server.grant("me");
    running.leads(1).await;
    // Two renewals of silence.
    assert!(
        asked.elapsed() <= Duration::from_millis(6_700),
        "{:?}",
        asked.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_that_a_dead_watch_does_not_show_is_found_by_a_read() {
    let server = Server::start();
    let running = start(&server, config(), obedient);
    running.registered().await;
    server.break_by(Fault::WatchesFrozen);
    let asked = Instant::now();
    server.ping("me");
    eventually(|| running.story().last().unwrap() == "answer").await;
    assert!(
        asked.elapsed() <= Duration::from_millis(6_700),
        "{:?}",
        asked.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_stops_the_work_at_once() {
    let server = Server::start();
    let running = start(&server, config(), obedient);
    running.registered().await;
    server.grant("me");
    running.leads(1).await;
    let deleted = Instant::now();
    server.delete_lease();
    let lost = TermEnd::Lost(Loss::Deleted);
    let is_end = |event: &Event| matches!(event, Event::Ended { end, .. } if *end == lost);
    eventually(|| running.events.lock().unwrap().iter().any(is_end)).await;
    assert!(deleted.elapsed() < Duration::from_millis(20));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(running.story().last().unwrap(), "delete lease");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_at_the_start_is_waited_for() {
    let server = Server::start();
    server.break_by(Fault::Hangs);
    let running = start(&server, config(), obedient);
    tokio::time::sleep(Duration::from_secs(45)).await;
    server.break_by(Fault::None);
    let back = Instant::now();
    running.registered().await;
    // The longest pause, and a request that was still under way.
    assert!(
        back.elapsed() <= Duration::from_secs(8),
        "{:?}",
        back.elapsed()
    );
}

/// Found by the simulation: such a candidate stayed out of every election for good.
#[tokio::test(start_paused = true)]
async fn an_object_that_somebody_spoilt_is_written_anew() {
    let server = Server::start();
    let running = start(&server, config(), obedient);
    running.registered().await;
    let own = server.candidate("me").unwrap()["spec"].clone();
    for (field, value) in [
        ("binaryVersion", "0.0.1"),
        ("renewTime", "now"),
        ("renewTime", "9999-12-31T23:59:59.999999Z"),
        ("pingTime", "9999-12-31T23:59:59.999999Z"),
        ("strategy", "example.com/other"),
    ] {
        server.spoil("me", field, value.into());
        let spoilt = Instant::now();
        eventually(|| {
            let spec = &server.candidate("me").unwrap()["spec"];
            let same = |name: &str| spec[name] == own[name];
            same("binaryVersion") && same("strategy") && !spec.to_string().contains(value)
        })
        .await;
        assert!(spoilt.elapsed() <= Duration::from_secs(31), "{field}");
    }
    let story = running.story().len();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(running.story().len(), story, "and then left alone");
}

/// Each revision that cannot be read, and each that somebody else wrote, was a line: millions a day.
#[tokio::test(start_paused = true)]
async fn objects_that_a_stranger_spoils_all_the_time_have_few_lines_and_a_count() {
    let (log, server) = (Log::capture(), Server::start());
    let running = start(&server, config(), obedient);
    running.registered().await;
    let spoil = |turn: usize| {
        let text = format!("nonsense {}", turn % 2);
        server.spoil("me", "binaryVersion", text.as_str().into());
        server.spoil_lease("renewTime", text.into());
    };
    for turn in 0..50 * 100 {
        spoil(turn);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_secs(61)).await;
    for part in ["ignored the Lease", "somebody else changed"] {
        let lines = log.lines(part);
        assert!((2..=15).contains(&lines.len()), "{} lines", lines.len());
        let counted = |line: &String| {
            let count = line.split_once("left_out=").map(|(_, count)| count);
            count.map_or(0, |count| count.parse::<u64>().unwrap())
        };
        let left_out: u64 = lines.iter().map(counted).sum();
        assert!(left_out > 1000, "{lines:?}");
    }
    assert!(log.lines("WARN").len() < 30, "{:?}", log.lines("WARN"));
}
