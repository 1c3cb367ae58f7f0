//! The check that the client certificate of the caller is good, and for how long. `--kubeconfig` asks for that of an
//! elector or of a candidate outside of the cluster.

use elector_api::Rfc3339;
use elector_protocol::Timestamp;
use elector_runtime::Cluster;

use super::line::CheckLine;
use crate::explain::present;

const CHECK: &str = "credentials";

/// The time before the expiry from which on it is a warning, in seconds: that of the alert `ElectorCertificateExpires`.
const SOON: i64 = 7 * 24 * 60 * 60;

/// The line on the certificate, by the clock of this machine, the only one that tells before a request succeeds. `None`
/// where there is none: a token or a credential plugin.
pub(super) fn check(cluster: &Cluster) -> Option<CheckLine> {
    let expires = cluster.contact().certificate_expires()?;
    Some(line(expires, present()))
}

fn line(expires: Timestamp, now: Timestamp) -> CheckLine {
    let seconds = |time: Timestamp| time.as_micros().div_euclid(1_000_000);
    let left = seconds(expires) - seconds(now);
    let expires = Rfc3339(expires);
    let fix = "write the kubeconfig anew: `kubeadm kubeconfig user` for a cluster of kubeadm";
    if left <= 0 {
        let text = format!("the client certificate of this kubeconfig expired at {expires}");
        CheckLine::error(CHECK, text, fix)
    } else {
        let text = format!("the client certificate of this kubeconfig is good until {expires}");
        match left < SOON {
            true => CheckLine::warning(CHECK, text, fix),
            false => CheckLine::ok(CHECK, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::CheckLevel;
    use super::*;

    #[test]
    fn an_expiry_is_an_error_and_a_warning_in_the_week_before() {
        let at = |second: i64| Timestamp::from_micros(second * 1_000_000).unwrap();
        for (left, level) in [
            (-1, CheckLevel::Error),
            (0, CheckLevel::Error),
            (1, CheckLevel::Warning),
            (SOON - 1, CheckLevel::Warning),
            (SOON, CheckLevel::Ok),
        ] {
            let found = line(at(1_800_000_000 + left), at(1_800_000_000));
            assert_eq!(found.level, level, "{left}: {found:?}");
        }
        let expired = line(at(1_800_000_000), at(1_900_000_000));
        assert_eq!(
            expired.result,
            "the client certificate of this kubeconfig expired at 2027-01-15T08:00:00.000000Z"
        );
    }
}
