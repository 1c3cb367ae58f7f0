//! The work of the program while it leads, and tests that it stops in time.

use std::io::Error;
use std::time::Duration;

use elector_candidate::Leadership;

/// The time that it takes to end in good order.
const FAREWELL: Duration = Duration::from_secs(1);

/// Counts the seconds for which it leads.
pub async fn count(
    leadership: Leadership,
    mut say: impl FnMut(String) + Send,
) -> Result<(), Error> {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    let mut seconds = 0;
    loop {
        tokio::select! {
            biased;
            _ = leadership.stopped() => break,
            _ = tick.tick() => {
                say(format!("leading for {seconds} s, token {}", leadership.token()));
                seconds += 1;
            }
        }
    }
    tokio::time::sleep(FAREWELL).await;
    say("bye".to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use elector_candidate::{Config, Loss, StopReason, TestTerm};
    use elector_testing::{TestCluster, TestProgram, pass};

    use super::*;

    async fn leader(cluster: &TestCluster) -> TestProgram<impl Sized> {
        let config = Config::new("kube5-ring", "1.2.0");
        let program = cluster.run(config, |leadership, lines| {
            count(leadership, move |line| lines.record(line))
        });
        program.leads().await;
        program
    }

    /// Does my controller stop in time?
    #[tokio::test(start_paused = true)]
    async fn it_stops_in_time_when_the_lease_is_lost() {
        let cluster = TestCluster::new();
        let mut program = leader(&cluster).await;
        let rival = program.start_rival();
        program.faults().partition(true);
        let report = program.term_report().await;
        report.assert_nothing_late();
        report.assert_returned();
        assert_eq!(report.effects.last().unwrap().1, "bye");
        rival.leads().await;
    }

    /// The work while the API server is silent for 30 s, or the lease is overwritten.
    #[tokio::test(start_paused = true)]
    async fn it_leads_again_after_a_silence_and_says_nothing_once_the_lease_is_taken() {
        let cluster = TestCluster::new();
        let mut program = leader(&cluster).await;
        program.faults().partition(true);
        pass(Duration::from_secs(30)).await;
        program.heal();
        let silent = program.term_report().await;
        program.leads().await;
        program.lease().overwrite_holder("another");
        let taken = program.term_report().await;
        assert!(silent.token < taken.token);
        taken.assert_nothing_late();
        assert!(taken.effects.iter().all(|(_, line)| line != "bye"));
    }

    /// A test of a function that takes a guard.
    #[tokio::test(start_paused = true)]
    async fn it_says_its_token_until_it_is_told_to_stop() {
        let term = TestTerm::new().with_token(42);
        let (send, mut lines) = tokio::sync::mpsc::channel(100);
        let say = move |line| send.try_send(line).unwrap();
        let work = tokio::spawn(count(term.leadership(), say));
        pass(Duration::from_millis(4_500)).await;
        term.stop(StopReason::Lost(Loss::Deleted));
        work.await.unwrap().unwrap();
        assert_eq!(lines.recv().await.unwrap(), "leading for 0 s, token 42");
        assert_eq!(lines.len(), 5, "four seconds more, and a farewell");
    }
}
