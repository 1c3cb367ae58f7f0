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

/// The query of a release.
#[derive(Debug, Default)]
struct ReleaseQuery {
    /// The term that is meant.
    token: Option<u64>,
    /// For how long the process is no candidate.
    time_out: Option<Duration>,
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
            _ => {
                let release = match ReleaseQuery::parse(request.query()) {
                    Ok(release) => release,
                    Err(rule) => return ServerReply::bad_request(format!("400 {rule}\n")),
                };
                match self.source.current().note_program_done(release.token) {
                    None => {
                        let refusal = "409 this process does not lead, or not in that term\n";
                        return ServerReply::conflict(refusal);
                    }
                    // It is the answer to the order to stop.
                    Some(true) => {}
                    Some(false) => {
                        let time_out = release.time_out.unwrap_or(self.time_out);
                        self.reports.stay_out(time_out);
                    }
                }
            }
        }
        json(&self.source.view())
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

// === impl ReleaseQuery ===

impl ReleaseQuery {
    fn parse(query: Option<&str>) -> Result<Self, &'static str> {
        const RULE: &str =
            "only token=N, the token of the term, and for=30s, a duration of at most 1h, are taken";
        let mut this = Self::default();
        let parts = query.unwrap_or_default().split('&');
        for part in parts.filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("token", token)) => this.token = Some(token.parse().map_err(|_| RULE)?),
                Some(("for", time)) => {
                    let time = parse_duration(time).map_err(|_| RULE)?;
                    this.time_out = Some(time).filter(|time| *time <= LONGEST_TIME_OUT);
                    this.time_out.ok_or(RULE)?;
                }
                _ => return Err(RULE),
            }
        }
        Ok(this)
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
