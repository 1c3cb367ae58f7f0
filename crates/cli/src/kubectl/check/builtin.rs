//! The check for elections by the controller that is built into kube-apiserver.

use elector_api::{Lease, age};
use elector_protocol::Identity;

use super::line::CheckLine;
use super::place::CheckedPlace;

const CHECK: &str = "builtin";
const PATH: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/leader-election-controller";

/// Looks at its lock.
pub(super) async fn check(place: &CheckedPlace, lines: &mut Vec<CheckLine>) {
    let lock = ("kube-system", "leader-election-controller");
    let key = (Some(lock.0), Some(lock.1));
    let read = place
        .read::<Lease>("leases.coordination.k8s.io", key, PATH)
        .await;
    lines.push(match read {
        Ok(lease) => judge(&lease, place),
        Err(error) if error.code() == Some(404) => {
            CheckLine::ok(CHECK, "the controller that is built into kube-apiserver does not run")
        }
        Err(error) => CheckLine::warning(
            CHECK,
            format!("failed to {error}"),
            "use an account with this permission: kubectl -n kube-system get lease leader-election-controller",
        ),
    });
}

fn judge(lease: &Lease, place: &CheckedPlace) -> CheckLine {
    let record = match lease.snapshot() {
        Ok(lease) => lease.record,
        Err(fault) => {
            return CheckLine::error(
                CHECK,
                format!("the lock of the built-in controller cannot be read: {fault}"),
                "fix it, or delete it where kube-apiserver runs without CoordinatedLeaderElection: kubectl -n kube-system \
                 delete lease leader-election-controller",
            );
        }
    };
    let Some(holder) = &record.holder else {
        return CheckLine::ok(
            CHECK,
            "no process holds the lock of the built-in controller",
        );
    };
    let (Some(renewed), Some(duration)) = (record.renew_time, record.duration()) else {
        return CheckLine::ok(CHECK, "the lock of the built-in controller is not renewed");
    };
    let seconds = (place.now.as_micros() - renewed.as_micros()).div_euclid(1_000_000);
    if u64::try_from(seconds).is_ok_and(|seconds| seconds > duration.as_secs()) {
        let text = format!(
            "the built-in controller has not renewed its lock for {}",
            age(seconds)
        );
        return CheckLine::ok(CHECK, text);
    }
    if Identity::is_elector(holder) {
        let text = format!("the lock of the built-in controller is held by the elector {holder}");
        return CheckLine::ok(CHECK, text);
    }
    CheckLine::warning(
        CHECK,
        format!(
            "the built-in controller is alive, in {holder}, and electors leave leases of the built-in strategy to it"
        ),
        "to have them elected by Elector, apply the overlay replace-builtin, or the chart with mode=replace-builtin",
    )
}
