//! An elector's liveness, and its readiness to act: the answers to probes.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use elector_protocol::{Instant, Timestamp};
use elector_runtime::{Clock, HealthCheck, HealthChecks, RequestError, ServerContact};

/// The health of one elector, as it reports it itself. Clones are the same one.
///
/// | check | of | fails |
/// |---|---|---|
/// | `ping` | live, ready | never: the process answers |
/// | `loop` | live | when the elector's loop has not turned for [`Health::LOOP_BOUND`] |
/// | `credentials` | live | when the client certificate in use has expired, or the server has taken the credentials for unknown (401) for [`Health::REFUSED_BOUND`] |
/// | `discovery` | ready | as long as no API of LeaseCandidates has been found |
/// | `lease-sync`, `candidate-sync` | ready | until all Leases, or candidates, are listed, and again after a gap |
/// | `permissions` | ready | for 90 s after the server refused a request for lack of rights or of credentials |
/// | `shutdown` | ready | once it was stopped |
///
/// Being alive does not depend on an API server that answers nothing, and neither of the two on leadership among electors: a standby is
/// ready.
///
/// ```
/// use elector::Health;
///
/// let health = Health::default();
/// let answer = health.checks().answer("/livez", Some("verbose"));
/// assert_eq!(answer.body(), "[+]ping ok\n[+]loop ok\n[+]credentials ok\nlivez check passed\n");
/// assert_eq!(health.checks().answer("/readyz", None).code(), 500); // no elector runs yet
/// ```
#[derive(Clone, Default)]
pub struct Health(Arc<HealthState>);

#[derive(Default)]
struct HealthState {
    /// That of the elector, from its start on.
    clock: OnceLock<Arc<dyn Clock>>,
    /// The server of the elector that began last.
    contact: Mutex<Option<ServerContact>>,
    /// When the loop last turned, in nanoseconds of that clock.
    turned: AtomicU64,
    readiness: Mutex<Readiness>,
}

/// The basis of readiness.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    pub(crate) discovered: bool,
    pub(crate) leases_synced: bool,
    pub(crate) candidates_synced: bool,
    pub(crate) ending: bool,
    /// The newest refusal for lack of rights: when, and what was refused.
    refused: Option<(Instant, String)>,
}

/// The period of an idle loop.
const LOOP_PERIOD: Duration = Duration::from_secs(5);

/// For how long a refusal counts. What is refused is tried again more often: a watch every 2 s, a write after a minute at
/// the latest (`--retry-max`).
const REFUSAL_COUNTS: Duration = Duration::from_secs(90);

// === impl Health ===

impl Health {
    /// The longest pause of the loop: six turns of an idle one. 30 s.
    pub const LOOP_BOUND: Duration = Duration::from_secs(30);

    /// For how long a server may answer 401, and nothing else, before a restart is worth a try. 5 min.
    pub const REFUSED_BOUND: Duration = Duration::from_secs(300);

    /// The checks.
    pub fn checks(&self) -> HealthChecks {
        let check = |name, check: fn(&HealthState) -> Result<(), String>| {
            let state = Arc::clone(&self.0);
            HealthCheck::new(name, move || check(&state))
        };
        HealthChecks {
            live: vec![
                HealthCheck::ping(),
                check("loop", HealthState::check_loop),
                check("credentials", HealthState::check_credentials),
            ],
            ready: vec![
                HealthCheck::ping(),
                check("discovery", |state| {
                    let found = state.readiness().discovered;
                    pass_if(found, "no API of LeaseCandidates has been found yet")
                }),
                check("lease-sync", |state| {
                    pass_if(state.readiness().leases_synced, "Leases are not all listed")
                }),
                check("candidate-sync", |state| {
                    let synced = state.readiness().candidates_synced;
                    pass_if(synced, "LeaseCandidates are not all listed")
                }),
                check("permissions", HealthState::check_permissions),
                check("shutdown", |state| {
                    pass_if(!state.readiness().ending, "the elector is ending")
                }),
            ],
        }
    }

    /// True if an elector is ready, as `/readyz` has it.
    pub(crate) fn is_ready(&self) -> bool {
        let readiness = self.readiness();
        let synced = readiness.leases_synced && readiness.candidates_synced;
        let is_there = readiness.discovered && synced && !readiness.ending;
        drop(readiness);
        is_there && self.0.check_permissions().is_ok()
    }

    /// An elector with that clock begins, on that server.
    pub(crate) fn begin(&self, clock: &Arc<dyn Clock>, contact: &ServerContact) {
        // A poisoned lock holds a valid state: every update is a single assignment.
        let known = self.0.contact.lock();
        *known.unwrap_or_else(PoisonError::into_inner) = Some(contact.clone());
        // A value that served an elector before goes on with the clock of that one.
        let clock = self.0.clock.get_or_init(|| Arc::clone(clock));
        self.turn(clock.monotonic());
        *self.readiness() = Readiness::default();
    }

    /// The loop has turned. Says when it is to turn again, if nothing happens before.
    pub(crate) fn turn(&self, now: Instant) -> Instant {
        self.0.turned.store(nanos(now), Ordering::Relaxed);
        now.after(LOOP_PERIOD)
    }

    pub(crate) fn readiness(&self) -> MutexGuard<'_, Readiness> {
        self.0.readiness()
    }

    /// A request failed.
    pub(crate) fn note_failure(&self, now: Instant, error: &RequestError) {
        if error.is_refusal_of_rights() {
            let (verb, resource) = (error.target.verb.as_str(), &error.target.resource);
            self.readiness().refused = Some((now, format!("{verb} {resource}")));
        }
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Health").field(&*self.readiness()).finish()
    }
}

// === impl HealthState ===

impl HealthState {
    fn check_loop(&self) -> Result<(), String> {
        let Some(clock) = self.clock.get() else {
            return Ok(());
        };
        let still = nanos(clock.monotonic()).saturating_sub(self.turned.load(Ordering::Relaxed));
        let still = Duration::from_nanos(still);
        if still <= Health::LOOP_BOUND {
            return Ok(());
        }
        let bound = Health::LOOP_BOUND;
        Err(format!(
            "the loop of the elector has not turned for {still:?}, the limit is {bound:?}"
        ))
    }

    fn check_credentials(&self) -> Result<(), String> {
        let contact = self.contact.lock();
        let contact = contact.unwrap_or_else(PoisonError::into_inner);
        let (Some(contact), Some(clock)) = (&*contact, self.clock.get()) else {
            return Ok(());
        };
        judge_credentials(
            contact.certificate_expires(),
            contact.refused_for(),
            clock.wall(),
        )
    }

    fn check_permissions(&self) -> Result<(), String> {
        let readiness = self.readiness();
        match (&readiness.refused, self.clock.get()) {
            (Some((at, what)), Some(clock)) if clock.monotonic().since(*at) < REFUSAL_COUNTS => {
                Err(format!("the API server forbids this elector to {what}"))
            }
            _ => Ok(()),
        }
    }

    fn readiness(&self) -> MutexGuard<'_, Readiness> {
        // A poisoned lock holds a valid state: every update is a single assignment.
        self.readiness
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The check of a client certificate that expires then, where the server has answered 401 for `refused`.
fn judge_credentials(
    expires: Option<Timestamp>,
    refused: Option<Duration>,
    now: Timestamp,
) -> Result<(), String> {
    let since = expires.map(|expires| now.as_micros() - expires.as_micros());
    if let Some(since) = since.filter(|since| *since >= 0) {
        let since = since / 1_000_000;
        return Err(format!(
            "the client certificate expired {since} s ago: renew it in its file, which is read anew"
        ));
    }
    match refused.filter(|refused| *refused >= Health::REFUSED_BOUND) {
        None => Ok(()),
        Some(refused) => Err(format!(
            "the API server has answered 401 for {} s: these credentials are none",
            refused.as_secs()
        )),
    }
}

fn pass_if(passes: bool, otherwise: &str) -> Result<(), String> {
    match passes {
        true => Ok(()),
        false => Err(otherwise.to_owned()),
    }
}

fn nanos(instant: Instant) -> u64 {
    u64::try_from(instant.since_epoch().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_none_from_the_expiry_of_their_certificate_on_or_after_five_minutes_of_401() {
        let at = |micros| Timestamp::from_micros(micros).unwrap();
        let expired = "the client certificate expired 2 s ago";
        let refused = "the API server has answered 401 for 300 s";
        for (expires, refused_for, expected) in [
            (Some(5_000_001), None, None),
            (
                Some(5_000_000),
                None,
                Some("the client certificate expired 0 s ago"),
            ),
            (Some(2_000_001), Some(300), Some(expired)),
            (Some(5_000_001), Some(299), None),
            (None, Some(300), Some(refused)),
        ] {
            let refused = refused_for.map(Duration::from_secs);
            let checked = judge_credentials(expires.map(at), refused, at(5_000_000));
            let starts = |text: &str| text.starts_with(expected.unwrap_or("no fault"));
            assert!(checked.map_or_else(|text| starts(&text), |()| expected.is_none()));
        }
    }
}
