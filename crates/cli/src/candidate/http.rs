//! Answers over HTTP for a program in any language: who leads, is it this process, and until when.
//!
//! ```text
//!   program ── GET /, /leader ──────────> LeaderApi ── LeaderSource ──> CandidateHandle: belief, Lease, by the clock
//!           <─ /sse, /events ── LeaderFollower            └───────────> CurrentTerm: the work of the term
//!           ── POST /release, /unwell, /well ──> HttpReports ───────> the candidate gives the lease up
//! ```

mod follower;
mod http_reports;
mod leader_api;
mod leader_view;
mod post_token;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use elector_candidate::{Candidate, CandidateHandle, Metrics};
use elector_runtime::{BindAddress, HealthChecks};
use futures::StreamExt as _;

use self::http_reports::HttpReports;
use self::leader_api::LeaderApi;
use self::leader_view::LeaderSource;
use self::post_token::PostToken;
use super::current_term::CurrentTerm;
use crate::endpoints::Endpoints;

/// The place where a program beside this process asks and reports.
#[derive(Args, Debug)]
pub(super) struct HttpArgs {
    /// Answer there who leads: / ("name" is the Pod of the leader), /leader, and as server-sent events /sse and /events;
    /// take POST /release, /unwell and /well; and probes and figures as below. An address as below: 4040 or 127.0.0.1:4040
    /// is for this Pod alone. The command finds it in ELECTOR_GET_URL, ELECTOR_SSE_URL and ELECTOR_PATH. Without a
    /// command, the program beside has the grace period to stop, or until it says POST /release, before the lease is
    /// given away
    #[arg(long, value_name = "ADDRESS", default_value_t = BindAddress::Off, env = "ELECTOR_HTTP")]
    http: BindAddress,

    /// A file with the token that each POST carries, as Authorization: Bearer TOKEN; made with a random one where it does
    /// not exist. Without it nothing can be posted
    #[arg(
        long,
        value_name = "FILE",
        requires = "http",
        env = "ELECTOR_HTTP_TOKEN_FILE"
    )]
    http_token_file: Option<PathBuf>,

    /// SIGTERM comes once the program beside has ended, as to a native sidecar (an init container with restartPolicy:
    /// Always): the lease is given up at once then. On a hand-over the program has its time all the same
    #[arg(
        long,
        requires = "http",
        conflicts_with = "command",
        env = "ELECTOR_NATIVE_SIDECAR"
    )]
    native_sidecar: bool,

    /// Start the command at once and let it run on, as a standby too: it asks who leads, as a program beside a sidecar does.
    /// When a term is to stop it says POST /release in time, or is killed with all that it has started, and this process
    /// ends with it
    #[arg(
        long,
        requires_all = ["http", "http_token_file", "command"],
        conflicts_with_all = ["group", "after_failure"],
        env = "ELECTOR_WARM"
    )]
    warm: bool,
}

/// The answers of a candidate, ready to be served.
pub(super) struct HttpAnswers {
    source: LeaderSource,
    reports: HttpReports,
    token: Option<PostToken>,
}

// === impl HttpArgs ===

impl HttpArgs {
    /// True if a program beside this process asks.
    pub(super) fn is_on(&self) -> bool {
        self.http != BindAddress::Off
    }

    /// True if this process is asked to end only once the program has.
    pub(super) const fn ends_after_program(&self) -> bool {
        self.native_sidecar
    }

    /// True if the command is not that of a term.
    pub(super) const fn keeps_command_warm(&self) -> bool {
        self.warm
    }

    /// The answers that are to be served; none without the flag.
    ///
    /// # Errors
    ///
    /// Where the token cannot be read or made.
    pub(super) fn answers(
        &self,
        handle: CandidateHandle,
        current: CurrentTerm,
    ) -> anyhow::Result<Option<HttpAnswers>> {
        if !self.is_on() {
            return Ok(None);
        }
        let token = self.http_token_file.as_deref().map(PostToken::open);
        Ok(Some(HttpAnswers {
            source: LeaderSource::new(handle, current),
            reports: HttpReports::new(),
            token: token.transpose()?,
        }))
    }

    /// Serves them from now on, beside those endpoints; the variables for a command.
    pub(super) async fn serve(
        &self,
        answers: HttpAnswers,
        time_out: Duration,
        checks: Arc<HealthChecks>,
        metrics: Metrics,
        endpoints: &mut Endpoints,
    ) -> anyhow::Result<Vec<(&'static str, String)>> {
        let HttpAnswers {
            source,
            reports,
            token,
        } = answers;
        let file = token.as_ref().map(|token| token.file().to_owned());
        let followed = source.clone();
        let api = LeaderApi {
            source,
            reports,
            token,
            time_out,
            checks,
            metrics,
        };
        let answer = move |request: &elector_runtime::ServerRequest<'_>| api.answer(request);
        let served = endpoints
            .serve_all_methods("who leads", "--http", self.http, answer)
            .await?;
        let Some(address) = served else {
            return Ok(Vec::new());
        };
        if !address.ip().is_loopback() {
            tracing::warn!(%address, "--http answers other machines too: each reads who leads, and posts with the token");
        }
        // The time of a change is that of the change, and not that of the next request.
        endpoints.spawn(async move {
            let mut changes = followed.handle().changes();
            while changes.next().await.is_some() {
                followed.view();
            }
        });
        let mut variables = variables(reachable(address));
        if let Some(file) = file {
            let file = std::path::absolute(&file).unwrap_or(file);
            variables.push(("ELECTOR_HTTP_TOKEN_FILE", file.display().to_string()));
        }
        Ok(variables)
    }
}

// === impl HttpAnswers ===

impl HttpAnswers {
    /// The candidate, which hears what programs report.
    pub(super) fn reporting_to(&self, candidate: Candidate) -> Candidate {
        candidate.with_health_reports(self.reports.watch())
    }

    /// True for a process that is well and stays out for a while, of its program's will.
    pub(super) fn stays_out(&self) -> impl Fn() -> bool + Send + Sync + 'static + use<> {
        let reports = self.reports.clone();
        move || reports.is_out()
    }
}

/// The variables of nais/elector.
fn variables(address: SocketAddr) -> Vec<(&'static str, String)> {
    vec![
        ("ELECTOR_GET_URL", format!("http://{address}/")),
        ("ELECTOR_SSE_URL", format!("http://{address}/sse")),
        ("ELECTOR_PATH", address.to_string()),
    ]
}

/// An address at which a process of this Pod reaches a server that listens there.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests;
