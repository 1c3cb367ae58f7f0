//! The paths that are served, and the answer to each.

use std::sync::Arc;
use std::time::Duration;

use elector_api::parse_duration;
use elector_candidate::Metrics;
use elector_runtime::{HealthChecks, ServerAnswer, ServerReply, ServerRequest};
use futures::Stream;
use serde::Serialize;

use super::follower::LeaderFollower;
use super::http_reports::HttpReports;
use super::leader_view::{LeaderSource, SeenLeader};
use super::post_token::PostToken;

/// The answers of a candidate about its lease.
pub(super) struct LeaderApi {
    pub(super) source: LeaderSource,
    pub(super) reports: HttpReports,
    /// Without one nothing can be changed.
    pub(super) token: Option<PostToken>,
    /// For how long a process stays out that has released, unless the request says otherwise.
    pub(super) time_out: Duration,
    pub(super) checks: Arc<HealthChecks>,
    pub(super) metrics: Metrics,
}

/// The longest time that a process stays out after a release.
const LONGEST_TIME_OUT: Duration = Duration::from_secs(3600);

// === impl LeaderApi ===

impl LeaderApi {
    pub(super) fn answer(&self, request: &ServerRequest<'_>) -> ServerAnswer {
        match request.path() {
            "/release" | "/unwell" | "/well" => self.change(request).into(),
            _ if !request.is_read() => ServerReply::method_not_allowed("GET, HEAD").into(),
            "/" => json(&self.source.named(true)).into(),
            "/leader" => json(&self.source.view()).into(),
            "/sse" => ServerAnswer::events(self.named_events()),
            "/events" => ServerAnswer::events(self.events()),
            "/metrics" => ServerReply::typed(Metrics::CONTENT_TYPE, self.metrics.encode()).into(),
            path => self.checks.answer(path, request.query()).into(),
        }
    }

    /// The change that is asked for, where it is allowed.
    fn change(&self, request: &ServerRequest<'_>) -> ServerReply {
        if !request.is_post() {
            return ServerReply::method_not_allowed("POST");
        }
        let Some(token) = &self.token else {
            return ServerReply::forbidden("403 only with --http-token-file\n");
        };
        if let Some(refusal) = token.refusal(request) {
            return refusal;
        }
        match request.path() {
            "/unwell" => self.reports.unwell(),
            "/well" => self.reports.well(),
            _ => match self.time_out(request.query()) {
                Ok(time_out) if self.source.current().note_program_done() => {
                    self.reports.stay_out(time_out);
                }
                Ok(_) => return ServerReply::conflict("409 this process does not lead\n"),
                Err(rule) => return ServerReply::bad_request(format!("400 {rule}\n")),
            },
        }
        json(&self.source.view())
    }

    fn time_out(&self, query: Option<&str>) -> Result<Duration, &'static str> {
        const RULE: &str = "?for= must be a duration such as 30s, of at most 1h";
        let Some(query) = query.filter(|query| !query.is_empty()) else {
            return Ok(self.time_out);
        };
        let given = query.strip_prefix("for=").ok_or(RULE)?;
        let given = parse_duration(given).map_err(|_| RULE)?;
        (given <= LONGEST_TIME_OUT).then_some(given).ok_or(RULE)
    }

    /// Each leader in the words of nais/elector.
    fn named_events(&self) -> impl Stream<Item = String> + Send + use<> {
        let source = self.source.clone();
        let follower = LeaderFollower::new(self.source.clone(), |seen| seen.name.clone());
        follower.events(move || data(&source.named(false)))
    }

    /// Each change, and each renewal of this process.
    fn events(&self) -> impl Stream<Item = String> + Send + use<> {
        let source = self.source.clone();
        let follower = LeaderFollower::new(self.source.clone(), SeenLeader::clone);
        follower.events(move || data(&source.view()))
    }
}

fn json(body: &impl Serialize) -> ServerReply {
    match serde_json::to_string(body) {
        Ok(text) => ServerReply::typed("application/json", text + "\n"),
        Err(error) => ServerReply::failed(format!("500 {error}\n")),
    }
}

/// An event without a name.
fn data(body: &impl Serialize) -> String {
    let text = serde_json::to_string(body).unwrap_or_default();
    format!("data: {text}\n\n")
}
