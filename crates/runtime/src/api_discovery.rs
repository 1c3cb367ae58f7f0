//! Which API of LeaseCandidates is to be used: found at the start, and followed when it changes, as when an API is
//! switched on or off or a CRD comes or goes.

use std::fmt;
use std::time::Duration;

use elector_api::CandidateApi;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::cluster::{Cluster, DiscoveryError};
use crate::failure_log::FailureLog;
use crate::request::RequestError;

/// Finds out which API of LeaseCandidates is to be used: first once, for as long as that takes, and then each time that
/// it is another one.
///
/// A server that is away, or that serves none, is asked again until one is found; each cause is one line in the log.
/// From then on it asks once in a while for those APIs that are preferred to the one in use, with one small request;
/// nothing is asked while there are none. When the one in use seems to be gone ([`suspect`](Self::suspect)) it asks for
/// all, and names another only if that is served: with nothing to change to, nothing changes.
///
/// ```no_run
/// use std::time::Duration;
///
/// use elector_runtime::{ApiDiscovery, Cluster};
///
/// # async fn example(cluster: Cluster, seed: u64) {
/// let mut api_discovery = ApiDiscovery::new(cluster, Duration::from_secs(30), seed);
/// println!("use {}", api_discovery.next().await);
/// println!("use {} from now on", api_discovery.next().await);
/// # }
/// ```
pub struct ApiDiscovery {
    cluster: Cluster,
    /// The API in use, `None` until one has been found.
    current: Option<CandidateApi>,
    /// Which share of a quarter each pause is longer than it need be, in 256 parts.
    spread: u32,
    period: Duration,
    /// True if the current API seems to be gone.
    suspected: bool,
    /// The number of searches in a row that found none, or failed.
    failures: u32,
    next: Instant,
    last: Option<Instant>,
    request: Option<BoxFuture<'static, Result<Option<CandidateApi>, DiscoveryError>>>,
    log: FailureLog,
    /// The beginning of time for the log of failures.
    start: Instant,
}

/// The subject of its failures in the log.
const SUBJECT: &str = "the search for LeaseCandidates";

/// The first pause after a failure while no API has been found; doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The least time between two requests once an API is in use, and the first pause after a failure then.
const PAUSE: Duration = Duration::from_secs(1);

// === impl ApiDiscovery ===

impl ApiDiscovery {
    /// Looks for an API, and then for another one every `period` and up to a quarter longer; `seed` spreads many of
    /// them.
    pub fn new(cluster: Cluster, period: Duration, seed: u64) -> Self {
        let spread = u32::try_from(seed % 256).unwrap_or_default();
        Self {
            cluster,
            current: None,
            spread,
            period: spread_by(period, spread),
            suspected: false,
            failures: 0,
            next: Instant::now(),
            last: None,
            request: None,
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

    /// Waits for the next API to use: the first one that is found, and later each one that replaces it. Dropping this
    /// future loses nothing.
    pub async fn next(&mut self) -> CandidateApi {
        loop {
            let request = match &mut self.request {
                Some(request) => request,
                None => {
                    let is_best = |current: CandidateApi| current.better().next().is_none();
                    if !self.suspected && self.current.is_some_and(is_best) {
                        return std::future::pending().await;
                    }
                    tokio::time::sleep_until(self.next).await;
                    self.request
                        .insert(ask(self.cluster.clone(), self.current, self.suspected))
                }
            };
            let response = request.await;
            self.request = None;
            if let Some(api) = self.handle_response(response) {
                return api;
            }
        }
    }

    fn handle_response(
        &mut self,
        response: Result<Option<CandidateApi>, DiscoveryError>,
    ) -> Option<CandidateApi> {
        let now = Instant::now();
        self.last = Some(now);
        match response {
            Ok(None) => {
                // It is served after all, for all that this server knows: the next list will show.
                self.trust();
                self.next = now + self.period;
                None
            }
            Ok(Some(api)) => {
                self.current = Some(api);
                self.suspected = false;
                let text = format!("found LeaseCandidates of {api}");
                self.log.end(self.now(), SUBJECT, Some(&text));
                self.next = now + self.period;
                Some(api)
            }
            Err(error) => {
                self.next = now + self.pause();
                self.failures = self.failures.saturating_add(1);
                let text = format!("failed to {error}");
                if self.suspected || self.current.is_none() {
                    self.log.note(self.now(), SUBJECT, &text);
                } else {
                    tracing::debug!("{text}");
                }
                None
            }
        }
    }

    /// The pause after a failure.
    fn pause(&self) -> Duration {
        let doubled = |pause: Duration| pause.saturating_mul(1 << self.failures.min(16));
        match self.current {
            None => spread_by(doubled(FIRST_PAUSE).min(LONGEST_PAUSE), self.spread),
            Some(_) => doubled(PAUSE).min(self.period),
        }
    }

    fn now(&self) -> elector_protocol::Instant {
        elector_protocol::Instant::from_epoch(self.start.elapsed())
    }
}

/// A pause, and up to a quarter more: processes that start together do not ask together.
fn spread_by(pause: Duration, share: u32) -> Duration {
    pause + pause / 4 * share / 256
}

/// The API to use in place of `current`, if there is one.
fn ask(
    cluster: Cluster,
    current: Option<CandidateApi>,
    suspected: bool,
) -> BoxFuture<'static, Result<Option<CandidateApi>, DiscoveryError>> {
    async move {
        match current {
            Some(current) if !suspected => Ok(cluster.better_candidate_api(current).await?),
            _ => {
                let found = cluster.candidate_api().await?;
                Ok((Some(found) != current).then_some(found))
            }
        }
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

    pub(super) fn api_discovery(script: &Script, current: CandidateApi, seed: u64) -> ApiDiscovery {
        let mut api_discovery = ApiDiscovery::new(script.cluster(), PERIOD, seed);
        api_discovery.current = Some(current);
        api_discovery.next = Instant::now() + api_discovery.period;
        api_discovery
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_away_at_the_start_is_asked_until_it_answers() {
        let nothing = (0..4).map(|_| absent());
        let breaks = (0..6).map(|_| Reply::Break);
        let found = [absent(), resources(CandidateApi::V1Alpha2)];
        let script = Script::new(breaks.chain(nothing).chain(found));
        let mut api_discovery = ApiDiscovery::new(script.cluster(), PERIOD, 0);
        assert_eq!(api_discovery.next().await, CandidateApi::V1Alpha2);
        let times: Vec<_> = script
            .seen()
            .iter()
            .map(|seen| seen.at.as_millis())
            .collect();
        assert_eq!(times[..6], [0, 250, 750, 1750, 3750, 5750]);
        // The pauses grow to 2 s. A server without LeaseCandidates is asked again as well.
        assert_eq!(times[6..], [7750, 7750, 7750, 7750, 9750, 9750]);
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
        let mut api_discovery = api_discovery(&script, CandidateApi::Elector, 0);
        assert_eq!(api_discovery.next().await, CandidateApi::V1Alpha2);
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
    async fn a_better_one_is_asked_for_a_period_after_this_one_was_there() {
        let script = Script::new([absent(), resources(CandidateApi::V1Alpha2)]);
        let mut api_discovery = ApiDiscovery::new(script.cluster(), PERIOD, 0);
        assert_eq!(api_discovery.next().await, CandidateApi::V1Alpha2);
        for (seconds, requests) in [(29, 2), (29, 2), (31, 3)] {
            let wait = Duration::from_secs(seconds);
            let next = tokio::time::timeout(wait, api_discovery.next());
            assert!(next.await.is_err());
            assert_eq!(script.lines().len(), requests);
            api_discovery.suspect(&error(404));
            api_discovery.trust();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_best_one_asks_for_nothing() {
        let script = Script::new([]);
        let mut api_discovery = api_discovery(&script, CandidateApi::V1Beta1, 0);
        let hour = Duration::from_secs(3600);
        assert!(
            tokio::time::timeout(hour, api_discovery.next())
                .await
                .is_err()
        );
        api_discovery.suspect(&error(500));
        assert!(
            tokio::time::timeout(hour, api_discovery.next())
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
        let mut api_discovery = api_discovery(&script, CandidateApi::V1Beta1, 0);
        api_discovery.suspect(&error(404));
        assert_eq!(api_discovery.next().await, CandidateApi::V1Alpha1);
        let times: Vec<_> = script.seen().iter().map(|seen| seen.at.as_secs()).collect();
        assert_eq!(times, [0, 0, 0, 0, 1, 1, 1, 1, 3, 3, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_there_after_all_is_kept() {
        let served = || resources(CandidateApi::V1Beta1);
        let script = Script::new([served(), served()]);
        let mut api_discovery = api_discovery(&script, CandidateApi::V1Beta1, 0);
        let hour = Duration::from_secs(3600);
        for wait in [Duration::from_millis(600), hour] {
            api_discovery.suspect(&error(404));
            let next = tokio::time::timeout(wait, api_discovery.next());
            assert!(next.await.is_err());
        }
        let times: Vec<_> = script.seen().iter().map(|seen| seen.at.as_secs()).collect();
        assert_eq!(times, [0, 1], "once a second at most");
        // Listed in the meantime: nothing is asked any more.
        api_discovery.suspect(&error(404));
        api_discovery.trust();
        assert!(
            tokio::time::timeout(hour, api_discovery.next())
                .await
                .is_err()
        );
        assert_eq!(script.lines().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn giving_up_a_wait_gives_up_no_request() {
        let script = Script::new([
            versions(&["v1", "v1beta1"]),
            resources(CandidateApi::V1Beta1),
        ]);
        let mut api_discovery = api_discovery(&script, CandidateApi::Elector, 0);
        let found = loop {
            // Shorter than any request, again and again.
            let next = api_discovery.next();
            if let Some(api) = next.now_or_never() {
                break api;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert_eq!(found, CandidateApi::V1Beta1);
        assert_eq!(script.lines().len(), 2);
    }
}
