//! Following a cluster whose LeaseCandidates change: an API that is switched on or off, a CRD that comes or goes.

use std::fmt;
use std::time::Duration;

use elector_api::CandidateApi;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::cluster::{Cluster, DiscoveryError};
use crate::failure_log::FailureLog;
use crate::request::RequestError;

/// Finds out when LeaseCandidates are to be used from another API than before.
///
/// Once in a while it asks for those that are preferred to the one in use, with one small request; nothing is asked
/// while there are none. When that one seems to be gone ([`suspect`](Self::suspect)) it asks for all, and names
/// another only if that is served: with nothing to change to, nothing changes.
///
/// ```no_run
/// use std::time::Duration;
///
/// use elector_api::CandidateApi;
/// use elector_runtime::{Cluster, ApiDiscovery};
///
/// # async fn example(cluster: Cluster, seed: u64) {
/// let mut api_discovery = ApiDiscovery::new(cluster, CandidateApi::Elector, Duration::from_secs(30), seed);
/// println!("use {} from now on", api_discovery.moved().await);
/// # }
/// ```
pub struct ApiDiscovery {
    cluster: Cluster,
    current: CandidateApi,
    period: Duration,
    /// Whether the current API seems to be gone.
    suspected: bool,
    /// How often in a row it was not found since then, or could not be asked for.
    failures: u32,
    next: Instant,
    last: Option<Instant>,
    asking: Option<BoxFuture<'static, Result<Option<CandidateApi>, DiscoveryError>>>,
    log: FailureLog,
    /// The beginning of time for the log of failures.
    start: Instant,
}

/// What its failures are filed under.
const SUBJECT: &str = "the search for LeaseCandidates";

/// The least time between two requests, and the first pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

// === impl ApiDiscovery ===

impl ApiDiscovery {
    /// Looks out from `current` on, every `period` and up to a quarter longer; `seed` spreads many of them.
    pub fn new(cluster: Cluster, current: CandidateApi, period: Duration, seed: u64) -> Self {
        // A share of a quarter, in 256 parts.
        let share = u32::try_from(seed % 256).unwrap_or_default();
        let period = period + period / 4 * share / 256;
        Self {
            cluster,
            current,
            period,
            suspected: false,
            failures: 0,
            next: Instant::now() + period,
            last: None,
            asking: None,
            log: FailureLog::default(),
            start: Instant::now(),
        }
    }

    /// A request for LeaseCandidates failed. If it did as it would were the API not served, that is looked into soon.
    pub fn suspect(&mut self, error: &RequestError) {
        if self.suspected || error.code() != Some(404) {
            return;
        }
        self.suspected = true;
        self.failures = 0;
        self.next = self
            .last
            .map_or_else(Instant::now, |last| (last + PAUSE).max(Instant::now()));
    }

    /// LeaseCandidates were listed: the API is there.
    pub fn trust(&mut self) {
        if self.suspected {
            self.suspected = false;
            self.log.end(self.now(), SUBJECT, None);
            self.next = Instant::now() + self.period;
        }
    }

    /// Waits until another API is to be used. Dropping this future loses nothing; once it has told, it looks out from
    /// there.
    pub async fn moved(&mut self) -> CandidateApi {
        loop {
            let asking = match &mut self.asking {
                Some(asking) => asking,
                None => {
                    if !self.suspected && self.current.better().next().is_none() {
                        return std::future::pending().await;
                    }
                    tokio::time::sleep_until(self.next).await;
                    self.asking
                        .insert(ask(self.cluster.clone(), self.current, self.suspected))
                }
            };
            let answer = asking.await;
            self.asking = None;
            if let Some(api) = self.take(answer) {
                return api;
            }
        }
    }

    fn take(
        &mut self,
        answer: Result<Option<CandidateApi>, DiscoveryError>,
    ) -> Option<CandidateApi> {
        let now = Instant::now();
        self.last = Some(now);
        match answer {
            Ok(None) => {
                // It is served after all, for all that this server knows: whoever lists will see.
                self.trust();
                self.next = now + self.period;
                None
            }
            Ok(Some(api)) => {
                self.current = api;
                self.suspected = false;
                self.log.end(self.now(), SUBJECT, None);
                self.next = now + self.period;
                Some(api)
            }
            Err(error) => {
                let pause = PAUSE.saturating_mul(1 << self.failures.min(16));
                self.failures = self.failures.saturating_add(1);
                self.next = now + pause.min(self.period);
                let text = format!("failed to {error}");
                if self.suspected {
                    self.log.note(self.now(), SUBJECT, &text);
                } else {
                    tracing::debug!("{text}");
                }
                None
            }
        }
    }

    fn now(&self) -> elector_protocol::Instant {
        elector_protocol::Instant::from_epoch(self.start.elapsed())
    }
}

/// The API to use in place of `current`, if there is one.
fn ask(
    cluster: Cluster,
    current: CandidateApi,
    suspected: bool,
) -> BoxFuture<'static, Result<Option<CandidateApi>, DiscoveryError>> {
    async move {
        if suspected {
            let found = cluster.candidate_api().await?;
            return Ok((found != current).then_some(found));
        }
        Ok(cluster.better_candidate_api(current).await?)
    }
    .boxed()
}

impl fmt::Debug for ApiDiscovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiDiscovery")
            .field("current", &self.current)
            .field("suspected", &self.suspected)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod spread;
#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::request::{Cause, Target, Verb};
    use crate::testing::{Reply, Script};

    pub(super) const PERIOD: Duration = Duration::from_secs(30);

    fn error(code: u16) -> RequestError {
        RequestError {
            target: Box::new(Target {
                verb: Verb::List,
                resource: Cow::Borrowed("leasecandidates.elector.dev"),
                namespace: None,
                name: None,
            }),
            url: Arc::from("https://script"),
            cause: Cause::Status {
                code,
                reason: String::new(),
                message: String::new(),
            },
        }
    }

    pub(super) fn absent() -> Reply {
        Reply::Text(404, "404 page not found")
    }

    fn resources(api: CandidateApi) -> Reply {
        let resource = json!({
            "name": "leasecandidates", "kind": "LeaseCandidate", "namespaced": true, "singularName": "", "verbs": [],
        });
        Reply::Json(
            200,
            json!({"groupVersion": api.api_version(), "resources": [resource]}),
        )
    }

    fn versions(of: &[&str]) -> Reply {
        let versions: Vec<_> = of
            .iter()
            .map(|version| json!({"version": version, "groupVersion": format!("coordination.k8s.io/{version}")}))
            .collect();
        Reply::Json(
            200,
            json!({"kind": "APIGroup", "apiVersion": "v1", "name": "coordination.k8s.io", "versions": versions}),
        )
    }

    fn api_discovery(script: &Script, current: CandidateApi) -> ApiDiscovery {
        ApiDiscovery::new(script.cluster(), current, PERIOD, 0)
    }

    #[tokio::test(start_paused = true)]
    async fn a_better_one_is_found_by_one_request_a_period() {
        let script = Script::new([
            versions(&["v1"]),
            Reply::Break,
            versions(&["v1"]),
            versions(&["v1", "v1alpha2"]),
            resources(CandidateApi::V1Alpha2),
        ]);
        let mut api_discovery = api_discovery(&script, CandidateApi::Elector);
        assert_eq!(api_discovery.moved().await, CandidateApi::V1Alpha2);
        let times: Vec<_> = script.seen().iter().map(|seen| seen.at.as_secs()).collect();
        // A failure is repeated soon.
        assert_eq!(times, [30, 60, 61, 91, 91]);
        assert_eq!(
            script.lines()[3..],
            [
                "GET /apis/coordination.k8s.io",
                "GET /apis/coordination.k8s.io/v1alpha2"
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_best_one_asks_for_nothing() {
        let script = Script::new([]);
        let mut api_discovery = api_discovery(&script, CandidateApi::V1Beta1);
        let hour = Duration::from_secs(3600);
        assert!(
            tokio::time::timeout(hour, api_discovery.moved())
                .await
                .is_err()
        );
        api_discovery.suspect(&error(500));
        assert!(
            tokio::time::timeout(hour, api_discovery.moved())
                .await
                .is_err()
        );
        assert_eq!(script.lines(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_gone_is_replaced_as_soon_as_there_is_another() {
        let nothing = || (0..4).map(|_| absent());
        let script = Script::new(nothing().chain(nothing()).chain([
            absent(),
            absent(),
            resources(CandidateApi::V1Alpha1),
        ]));
        let mut api_discovery = api_discovery(&script, CandidateApi::V1Beta1);
        api_discovery.suspect(&error(404));
        assert_eq!(api_discovery.moved().await, CandidateApi::V1Alpha1);
        let times: Vec<_> = script.seen().iter().map(|seen| seen.at.as_secs()).collect();
        assert_eq!(times, [0, 0, 0, 0, 1, 1, 1, 1, 3, 3, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_there_after_all_is_kept() {
        let script = Script::new([resources(CandidateApi::V1Beta1)]);
        let mut api_discovery = api_discovery(&script, CandidateApi::V1Beta1);
        api_discovery.suspect(&error(404));
        let hour = Duration::from_secs(3600);
        assert!(
            tokio::time::timeout(hour, api_discovery.moved())
                .await
                .is_err()
        );
        assert_eq!(script.lines().len(), 1);
        // Listed in the meantime: nothing is asked any more.
        api_discovery.suspect(&error(404));
        api_discovery.trust();
        assert!(
            tokio::time::timeout(hour, api_discovery.moved())
                .await
                .is_err()
        );
        assert_eq!(script.lines().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn giving_up_a_wait_gives_up_no_request() {
        let script = Script::new([
            versions(&["v1", "v1beta1"]),
            resources(CandidateApi::V1Beta1),
        ]);
        let mut api_discovery = api_discovery(&script, CandidateApi::Elector);
        let found = loop {
            // Shorter than any request, again and again.
            let moved = api_discovery.moved();
            if let Some(api) = moved.now_or_never() {
                break api;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert_eq!(found, CandidateApi::V1Beta1);
        assert_eq!(script.lines().len(), 2);
    }
}
