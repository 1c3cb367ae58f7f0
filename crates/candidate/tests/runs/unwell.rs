//! A process that says of itself whether it is well: it leads, and stands for election, only while it is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector_candidate::{Candidate, Config, Event, Leadership, Mode, TermEnd};
use elector_protocol::Instant;
use elector_protocol::holder::StopReason;
use elector_runtime::Clock as _;
use elector_testing::{OneLease, eventually, seconds};

use crate::{
    RunOutcome, RunningCandidate, V1BETA1, config, elected, obedient, pass, start_changed,
};

/// The behaviour of the probe when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeAnswer {
    Well,
    Fails,
    Panics,
    /// It takes so many milliseconds, and is well then.
    After(u64),
}

/// A probe that answers as the test says, and counts how often it was asked.
#[derive(Clone)]
struct TestProbe {
    answer: Arc<Mutex<ProbeAnswer>>,
    asked: Arc<AtomicUsize>,
}

// === impl TestProbe ===

impl TestProbe {
    fn new(answer: ProbeAnswer) -> Self {
        Self {
            answer: Arc::new(Mutex::new(answer)),
            asked: Arc::default(),
        }
    }

    fn set(&self, answer: ProbeAnswer) {
        *self.answer.lock().unwrap() = answer;
    }

    /// The number of times that it was asked since the last call.
    fn take_asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }

    fn of(&self, candidate: Candidate) -> Candidate {
        let probe = self.clone();
        candidate.with_health(move || {
            probe.asked.fetch_add(1, Ordering::SeqCst);
            let answer = *probe.answer.lock().unwrap();
            async move {
                match answer {
                    ProbeAnswer::Well => {}
                    ProbeAnswer::Fails => return Err("no cloud\n"),
                    ProbeAnswer::Panics => panic!("at line 3"),
                    ProbeAnswer::After(millis) => pass(millis).await,
                }
                Ok(())
            }
        })
    }

    /// Starts a candidate with this probe.
    fn start(&self, cluster: &OneLease, config: Config) -> RunningCandidate {
        start_changed(cluster, config, obedient, |candidate| self.of(candidate))
    }

    /// The same, which leads.
    async fn leader(&self, cluster: &OneLease, config: Config) -> RunningCandidate {
        let running = self.start(cluster, config);
        running.is_granted(cluster).await;
        running
    }
}

/// The error of each report that it was unwell, and the time.
fn unwell(running: &RunningCandidate) -> Vec<(String, Instant)> {
    let events = running.events.lock().unwrap();
    let unwell = events.iter().filter_map(|(event, at)| match event {
        Event::Unwell { reason, .. } => Some((reason.clone(), *at)),
        _ => None,
    });
    unwell.collect()
}

fn times_well(running: &RunningCandidate) -> usize {
    running.count(|event| *event == Event::Well)
}

/// In good order: stop, withdraw, release. Then it stays out until it is well, and begins anew.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_unwell_gives_its_lease_up_and_stays_out_until_it_is_well() {
    let (cluster, probe) = (OneLease::new(&[V1BETA1]), TestProbe::new(ProbeAnswer::Well));
    let running = probe.leader(&cluster, elected()).await;
    pass(60_000).await;
    assert!(!running.is_disturbed());
    assert_eq!(running.handle.check_ready(), Ok(()));

    probe.set(ProbeAnswer::Fails);
    let failing = cluster.now();
    let (end, ended) = running.end().await;
    assert_eq!(end, TermEnd::Released);
    let took = ended.since(failing);
    let holds = (seconds(20)..seconds(32)).contains(&took);
    assert!(holds, "three failures, one each 10 s: {took:?}");
    assert_eq!(unwell(&running)[0].0, "no cloud");
    let error = running.handle.check_ready().unwrap_err().to_string();
    assert_eq!(error, "unwell: no cloud");
    let told: Vec<_> = {
        let events = running.events.lock().unwrap();
        let later = events.iter().map(|(event, _)| event.clone());
        later
            .skip_while(|event| !matches!(event, Event::Unwell { .. }))
            .collect()
    };
    assert!(
        matches!(
            &told[1..],
            [
                Event::Stopping {
                    reason: StopReason::ShutDown,
                    ..
                },
                Event::WorkStopped { .. },
                Event::Ended { .. }
            ]
        ),
        "{told:?}"
    );
    let history = cluster.history();
    assert_eq!(history[history.len() - 2..], ["withdraw", "release"]);

    // It is asked on, and is no candidate meanwhile.
    probe.take_asked();
    pass(300_000).await;
    assert!((29..=31).contains(&probe.take_asked()));
    assert_eq!(cluster.candidate(V1BETA1), None);
    assert_eq!((unwell(&running).len(), times_well(&running)), (1, 0));

    probe.set(ProbeAnswer::Well);
    let mended = cluster.now();
    eventually(|| cluster.candidate(V1BETA1).is_some()).await;
    assert!(cluster.now().since(mended) < seconds(11));
    assert_eq!(times_well(&running), 1);
    assert_eq!(running.handle.check_ready(), Ok(()));
    cluster.grant("me");
    running.leads(2).await;
    pass(60_000).await;
    assert!(running.guard().is_leader());
}

#[tokio::test(start_paused = true)]
async fn no_answer_in_time_and_a_panic_are_failures_that_say_so() {
    for (answer, text) in [
        (ProbeAnswer::After(1_100), "no answer within 1s"),
        (ProbeAnswer::Panics, "panic: at line 3"),
    ] {
        let (cluster, probe) = (OneLease::new(&[V1BETA1]), TestProbe::new(ProbeAnswer::Well));
        let running = probe.leader(&cluster, config()).await;
        probe.set(answer);
        assert_eq!(running.end().await.0, TermEnd::Released);
        assert_eq!(unwell(&running)[0].0, text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_never_well_is_no_candidate_in_any_mode() {
    for mode in [Mode::Auto, Mode::Elected, Mode::Plain, Mode::Disabled] {
        let (cluster, probe) = (
            OneLease::new(&[V1BETA1]),
            TestProbe::new(ProbeAnswer::Fails),
        );
        let running = probe.start(&cluster, config().mode(mode));
        pass(120_000).await;
        assert_eq!(cluster.requests().len(), 0, "{mode}");
        assert_eq!(unwell(&running).len(), 1, "told once");
        probe.set(ProbeAnswer::Well);
        eventually(|| times_well(&running) == 1).await;
        if mode == Mode::Elected {
            running.registered().await;
            cluster.grant("me");
        }
        running.leads(1).await;
        running.releases().await;
    }
}

/// New work has a period until it is asked for, and the threshold of failures from then on.
#[tokio::test(start_paused = true)]
async fn work_that_takes_its_time_to_start_is_not_unwell() {
    let cluster = OneLease::new(&[V1BETA1]);
    let serves_from = Arc::new(Mutex::new(None::<Instant>));
    let (clock, starts) = (cluster.clock(), Arc::clone(&serves_from));
    let work = move |leadership: Leadership| {
        *starts.lock().unwrap() = Some(clock.holder().after(seconds(29)));
        obedient(leadership)
    };
    let clock = cluster.clock();
    let running = start_changed(&cluster, elected(), work, |candidate| {
        let handle = candidate.handle();
        candidate.with_health(move || {
            let serves = serves_from
                .lock()
                .unwrap()
                .is_some_and(|from| from <= clock.holder());
            let passes = serves || !handle.is_leader();
            async move { passes.then_some(()).ok_or("not up yet") }
        })
    });
    running.registered().await;
    // A moment before it would be asked again.
    pass(9_900).await;
    cluster.grant("me");
    running.leads(1).await;
    pass(120_000).await;
    assert!(!running.is_disturbed());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_with_its_term_says_that_it_was_unwell() {
    let (cluster, probe) = (OneLease::new(&[V1BETA1]), TestProbe::new(ProbeAnswer::Well));
    let running = probe.start(&cluster, elected().one_term(true));
    running.registered().await;
    // As a standby it had no term that could end.
    cluster.grant("other");
    probe.set(ProbeAnswer::Fails);
    eventually(|| cluster.candidate(V1BETA1).is_none()).await;
    probe.set(ProbeAnswer::Well);
    eventually(|| cluster.candidate(V1BETA1).is_some()).await;
    cluster.grant("me");
    running.leads(1).await;
    probe.set(ProbeAnswer::Fails);
    let outcome = running.outcome().await;
    let (error, term) = ("no cloud".to_owned(), TermEnd::Released);
    assert_eq!(outcome, RunOutcome::Unwell { error, term });
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_a_process_that_stays_out() {
    for first in [ProbeAnswer::Fails, ProbeAnswer::Well] {
        let (cluster, probe) = (OneLease::new(&[V1BETA1]), TestProbe::new(first));
        let mut running = probe.start(&cluster, config());
        if first == ProbeAnswer::Well {
            running.registered().await;
            probe.set(ProbeAnswer::After(3_600_000));
        }
        eventually(|| unwell(&running).len() == 1).await;
        eventually(|| cluster.candidate(V1BETA1).is_none()).await;
        pass(5_000).await;
        let told = cluster.now();
        running.shut_down();
        assert_eq!(running.outcome().await, RunOutcome::ShutDown(None));
        assert!(cluster.now().since(told) < Duration::from_millis(100));
    }
}

/// The pause is that of work that fails, however soon the probe passes.
#[tokio::test(start_paused = true)]
async fn a_process_that_is_soon_well_again_stays_out_for_a_pause() {
    let (cluster, probe) = (OneLease::new(&[V1BETA1]), TestProbe::new(ProbeAnswer::Well));
    let config = elected()
        .health_period(Duration::from_millis(100))
        .health_failures(1);
    let running = probe.leader(&cluster, config).await;
    probe.set(ProbeAnswer::Fails);
    eventually(|| unwell(&running).len() == 1).await;
    probe.set(ProbeAnswer::Well);
    let (_, at) = unwell(&running).remove(0);
    eventually(|| times_well(&running) == 1).await;
    let out = cluster.now().since(at).as_millis();
    assert!((500..1_200).contains(&out), "{out} ms");
}

/// At once, without a period and a number of failures, and with a probe that still passes; a standby withdraws as well.
#[tokio::test(start_paused = true)]
async fn a_report_of_the_program_counts_at_once_and_until_it_is_taken_back() {
    let (cluster, probe) = (OneLease::new(&[V1BETA1]), TestProbe::new(ProbeAnswer::Well));
    let (report, reports) = tokio::sync::watch::channel(None);
    let running = start_changed(&cluster, elected(), obedient, |candidate| {
        probe.of(candidate).with_health_reports(reports)
    });
    running.is_granted(&cluster).await;

    report.send_replace(Some("the disk\nis full".to_owned()));
    let reported = cluster.now();
    let (end, ended) = running.end().await;
    assert_eq!(end, TermEnd::Released);
    assert!(ended.since(reported) < seconds(1), "not at once");
    assert_eq!(unwell(&running)[0].0, "the disk\\nis full");
    pass(300_000).await;
    assert_eq!((unwell(&running).len(), times_well(&running)), (1, 0));
    assert_eq!(cluster.candidate(V1BETA1), None);

    // The probe has to pass too.
    probe.set(ProbeAnswer::Fails);
    report.send_replace(None);
    pass(60_000).await;
    assert_eq!(cluster.candidate(V1BETA1), None);
    probe.set(ProbeAnswer::Well);
    eventually(|| cluster.candidate(V1BETA1).is_some()).await;
    assert_eq!(times_well(&running), 1);

    // A probe that is not asked any more says nothing of its health.
    drop(report);
    pass(60_000).await;
    cluster.grant("me");
    running.leads(2).await;
}
