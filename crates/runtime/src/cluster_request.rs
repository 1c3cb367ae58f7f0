//! Requests by their path, for objects that no type of this crate stands for.

use std::borrow::Cow;
use std::sync::Arc;

use elector_protocol::Timestamp;
use http::Request;
use http::header::{CONTENT_TYPE, DATE};
use kube::client::Body;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::request::{RequestError, Target, Verb};

// === impl Cluster ===

impl Cluster {
    /// Asks for a path with the method of the target's verb, and with a body where one is to be sent: a merge patch where
    /// the verb is [`Verb::Patch`], an object elsewhere.
    ///
    /// # Errors
    ///
    /// When there is no usable answer within the request timeout.
    pub async fn request<T: DeserializeOwned>(
        &self,
        target: Target,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, RequestError> {
        let content = match target.verb {
            Verb::Patch => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method(target.verb))
            .uri(path)
            .header(CONTENT_TYPE, content)
            .body(body.map_or_else(Vec::new, |body| body.to_string().into_bytes()));
        let answer = async {
            let request = request.map_err(kube::Error::HttpError)?;
            self.client().request::<T>(request).await
        };
        self.call(target, self.request_timeout(), answer).await
    }

    /// The text at a path, such as the log of a Pod.
    ///
    /// # Errors
    ///
    /// When there is no answer within the request timeout, or one that is no text.
    pub async fn request_text(&self, target: Target, path: &str) -> Result<String, RequestError> {
        let request = Request::builder()
            .method(method(target.verb))
            .uri(path)
            .body(Vec::new());
        let answer = async {
            let request = request.map_err(kube::Error::HttpError)?;
            self.client().request_text(request).await
        };
        self.call(target, self.request_timeout(), answer).await
    }

    /// The time on the server's clock as it answers, in whole seconds; `None` where it does not say.
    ///
    /// # Errors
    ///
    /// When it gives no answer within the request timeout.
    pub async fn server_time(&self) -> Result<Option<Timestamp>, RequestError> {
        let target = Target {
            verb: Verb::Get,
            resource: Cow::Borrowed("the version"),
            namespace: None,
            name: Some(Arc::from("of the server")),
        };
        let answer = async {
            let request = Request::get("/version")
                .body(Body::empty())
                .map_err(kube::Error::HttpError)?;
            self.client().send(request).await
        };
        let answer = self.call(target, self.request_timeout(), answer).await?;
        let date = answer
            .headers()
            .get(DATE)
            .and_then(|date| date.to_str().ok());
        Ok(date.and_then(http_date))
    }
}

fn method(verb: Verb) -> http::Method {
    match verb {
        Verb::Get | Verb::List | Verb::Watch => http::Method::GET,
        Verb::Create => http::Method::POST,
        Verb::Update => http::Method::PUT,
        Verb::Patch => http::Method::PATCH,
        Verb::Delete => http::Method::DELETE,
    }
}

/// A time as HTTP writes it.
fn http_date(text: &str) -> Option<Timestamp> {
    let time = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()?;
    Timestamp::from_micros(time.as_microsecond())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderValue, Response};
    use http_body_util::Full;
    use serde_json::json;

    use super::*;
    use crate::request::Cause;
    use crate::testing::{Reply, Script, failure};

    fn target(verb: Verb) -> Target {
        Target {
            verb,
            resource: "pods".into(),
            namespace: Some("a".into()),
            name: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_verb_is_the_method_and_failures_name_what_was_asked_for() {
        let script = Script::new([
            Reply::Json(200, json!({"items": []})),
            Reply::Json(201, json!({"ok": 1})),
            failure(403, "Forbidden", "u cannot patch"),
        ]);
        let cluster = script.cluster();
        let read: Value = cluster
            .request(target(Verb::List), "/a", None)
            .await
            .unwrap();
        assert_eq!(read, json!({"items": []}));
        let body = json!({"spec": 1});
        let made: Value = cluster
            .request(target(Verb::Create), "/b", Some(&body))
            .await
            .unwrap();
        assert_eq!(made, json!({"ok": 1}));
        let refused = cluster
            .request::<Value>(target(Verb::Patch), "/c?dryRun=All", Some(&body))
            .await
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "patch pods in namespace a: RBAC does not grant the verb patch: u cannot patch"
        );
        assert_eq!(script.lines(), ["GET /a", "POST /b", "PATCH /c?dryRun=All"]);
        assert_eq!(script.seen()[1].body, body);
        let silent = cluster
            .request::<Value>(target(Verb::Delete), "/d", None)
            .await;
        assert_eq!(script.lines()[3], "DELETE /d");
        let expected = Cause::TimedOut(cluster.request_timeout());
        assert_eq!(silent.unwrap_err().cause, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_text_is_read_as_it_is() {
        let script = Script::new([Reply::Text(200, "a\nb"), failure(404, "NotFound", "no")]);
        let cluster = script.cluster();
        let read = cluster.request_text(target(Verb::Get), "/log").await;
        assert_eq!(read.unwrap(), "a\nb");
        let missing = cluster.request_text(target(Verb::Get), "/log").await;
        assert_eq!(missing.unwrap_err().code(), Some(404));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_server_is_the_date_of_its_answer() {
        for (date, expected) in [
            (
                Some("Sun, 06 Nov 1994 08:49:37 GMT"),
                Some(784_111_777_000_000),
            ),
            (Some("soon"), None),
            (None, None),
        ] {
            let service = tower::service_fn(move |request: Request<Full<Bytes>>| async move {
                assert_eq!(request.uri(), "/version");
                let dated = date.map(|date| (DATE, HeaderValue::from_static(date)));
                let mut answer = Response::new(Full::<Bytes>::default());
                answer.headers_mut().extend(dated);
                Ok::<_, tower::BoxError>(answer)
            });
            let time = Cluster::over(service).server_time().await.unwrap();
            assert_eq!(time.map(Timestamp::as_micros), expected, "{date:?}");
        }
        let silent = Script::new([]).cluster().server_time().await;
        let expected = "get the version of the server: no answer from https://script in 5s";
        assert_eq!(silent.unwrap_err().to_string(), expected);
    }
}
