//! The check that the clocks of this machine and of the server agree.

use elector_protocol::Timestamp;
use elector_runtime::Cluster;

use super::line::CheckLine;
use crate::explain::present;

/// The tolerated clock skew, in seconds. Elections compare no clocks of different machines (R4), but what operators see
/// and say does: ages, and the end of a freeze or of a preference. The server tells whole seconds.
const TOLERATED: i64 = 5;

/// The server's time, and what is to be said about it.
pub(super) async fn compare(cluster: &Cluster) -> anyhow::Result<(Timestamp, Vec<CheckLine>)> {
    const CHECK: &str = "clocks";
    let before = present();
    let told = cluster.server_time().await?;
    let after = present();
    let Some(server) = told else {
        let text = "the server does not report its time";
        let fix = "compare the clocks of this machine and of the control plane by hand";
        return Ok((after, vec![CheckLine::warning(CHECK, text, fix)]));
    };
    let seconds = distance(before, after, server);
    let line = if seconds.abs() <= TOLERATED {
        CheckLine::ok(CHECK, "the clocks of this machine and of the server agree")
    } else {
        let side = if seconds > 0 { "ahead of" } else { "behind" };
        CheckLine::warning(
            CHECK,
            format!(
                "the clock of the server is {}s {side} that of this machine",
                seconds.abs()
            ),
            "synchronize both by NTP: ages here, and the ends of freezes and preferences, are wrong by that much",
        )
    };
    Ok((server, vec![line]))
}

/// The least lead of the server's clock, in seconds: its time was taken between two of ours, and is cut to a second.
fn distance(before: Timestamp, after: Timestamp, server: Timestamp) -> i64 {
    let seconds = |time: Timestamp| time.as_micros().div_euclid(1_000_000);
    let (least, most) = (seconds(before), seconds(after));
    seconds(server) - seconds(server).clamp(least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_an_answer_takes_is_no_distance() {
        let at = |millis: i64| Timestamp::from_micros(millis * 1000).unwrap();
        assert_eq!(distance(at(10_900), at(14_100), at(10_000)), 0);
        assert_eq!(distance(at(10_900), at(14_100), at(14_000)), 0);
        assert_eq!(distance(at(10_900), at(14_100), at(8_000)), -2);
        assert_eq!(distance(at(10_900), at(14_100), at(19_000)), 5);
    }
}
