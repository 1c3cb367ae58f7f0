//! The target of a request, and why it failed: one line that says where to look.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Status;

use crate::line::{cut, one_line};
use crate::secrets::{auth_failure_within, setup_failure};

/// The verbs of the API, as RBAC names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// A read of one object.
    Get,
    /// A read of all of them.
    List,
    /// A stream of changes.
    Watch,
    /// A POST.
    Create,
    /// A PUT.
    Update,
    /// A PATCH.
    Patch,
    /// A DELETE.
    Delete,
}

/// The subject of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The action.
    pub verb: Verb,
    /// With what, such as `leases.coordination.k8s.io`.
    pub resource: Cow<'static, str>,
    /// Where, `None` for all namespaces.
    pub namespace: Option<Arc<str>>,
    /// With which one, `None` for all.
    pub name: Option<Arc<str>>,
}

/// A request that failed.
///
/// The text fits after "failed to": `list leases.coordination.k8s.io in namespace a: no answer from https://… in 5s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestError {
    /// The target of the request.
    pub target: Box<Target>,
    /// The address of the server.
    pub url: Arc<str>,
    /// Why it failed.
    pub cause: Cause,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// No connection, or one that broke. The text is the innermost reason. Check the URL, the network, the CA.
    Unreachable(String),
    /// No complete answer within the time that the request had.
    TimedOut(Duration),
    /// 401: the credentials are missing, wrong or expired.
    Unauthorized,
    /// 403, with the server's message: RBAC, or admission.
    Forbidden(String),
    /// Any other failure that the server reports.
    Status {
        /// The HTTP status.
        code: u16,
        /// The machine-readable reason, often empty.
        reason: String,
        /// The server's message.
        message: String,
    },
    /// An answer that is not what was asked for.
    Unreadable(String),
    /// The request was never sent: a credential plugin failed, for instance.
    NotSent(String),
}

/// The longest name that is shown, in characters. No server serves a longer one.
const LONGEST_NAME: usize = 253;

// === impl Verb ===

impl Verb {
    /// The verb as RBAC names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

// === impl Target ===

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb.as_str(), self.resource)?;
        let [namespace, name] = [&self.namespace, &self.name]
            .map(|name| name.as_ref().map(|name| cut(name, LONGEST_NAME)));
        match (namespace, name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (Some(namespace), None) => write!(f, " in namespace {namespace}"),
            (None, Some(name)) => write!(f, " {name}"),
            (None, None) => f.write_str(" in all namespaces"),
        }
    }
}

// === impl RequestError ===

impl RequestError {
    /// True if the server may have carried the request out although it failed: only a re-read can tell.
    pub fn may_have_been_applied(&self) -> bool {
        match &self.cause {
            Cause::Unreachable(_) | Cause::TimedOut(_) | Cause::Unreadable(_) => true,
            Cause::Status { code, .. } => *code >= 500,
            Cause::Unauthorized | Cause::Forbidden(_) | Cause::NotSent(_) => false,
        }
    }

    /// True if the server refused for lack of rights or of credentials, which no other attempt by the same account
    /// changes. Admission, a quota for instance, refuses with the same code and is not meant.
    pub fn is_refusal_of_rights(&self) -> bool {
        match &self.cause {
            Cause::Unauthorized => true,
            Cause::Forbidden(message) => names_missing_right(message),
            _ => false,
        }
    }

    /// The status code of the answer, where there was one.
    pub const fn code(&self) -> Option<u16> {
        match &self.cause {
            Cause::Unauthorized => Some(401),
            Cause::Forbidden(_) => Some(403),
            Cause::Status { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, url, cause } = self;
        match cause {
            Cause::Unreachable(why) => write!(f, "{target}: {url} is unreachable: {why}"),
            Cause::TimedOut(after) => write!(f, "{target}: no answer from {url} in {after:?}"),
            Cause::Unauthorized => write!(
                f,
                "{target}: {url} refused the credentials (401 Unauthorized): is the token expired?"
            ),
            Cause::Forbidden(message) if names_missing_right(message) => {
                write!(
                    f,
                    "{target}: RBAC does not grant the verb {}: {message}",
                    target.verb.as_str()
                )
            }
            Cause::Forbidden(message) => write!(f, "{target}: forbidden: {message}"),
            Cause::Status {
                code,
                reason,
                message,
            } => {
                let gap = if reason.is_empty() { "" } else { " " };
                write!(f, "{target}: {url} answered {code}{gap}{reason}: {message}")
            }
            Cause::Unreadable(why) => write!(f, "{target}: unreadable answer from {url}: {why}"),
            Cause::NotSent(why) => write!(f, "{target}: nothing was sent to {url}: {why}"),
        }
    }
}

impl Error for RequestError {}

// === impl Cause ===

impl Cause {
    /// The cause in one word, for labels.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::TimedOut(_) => "timed_out",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden(_) => "forbidden",
            Self::Status { code: 429, .. } => "throttled",
            Self::Status {
                code: 400..=499, ..
            } => "rejected",
            Self::Status { .. } => "server_error",
            Self::Unreadable(_) => "unreadable",
            Self::NotSent(_) => "not_sent",
        }
    }

    /// Sorts the client's errors.
    pub(crate) fn of(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_status(*status),
            kube::Error::Service(error) => match auth_failure_within(&*error) {
                Some(why) => Self::NotSent(why),
                None => Self::Unreachable(innermost(&*error)),
            },
            kube::Error::HyperError(error) => Self::Unreachable(innermost(&error)),
            kube::Error::ReadEvents(error) => Self::Unreachable(innermost(&error)),
            kube::Error::SerdeError(error) => Self::Unreadable(one_line(&error.to_string())),
            kube::Error::FromUtf8(error) => Self::Unreadable(error.to_string()),
            other => Self::NotSent(setup_failure(&other)),
        }
    }

    /// Sorts the failures that the server reports.
    pub(crate) fn of_status(status: Status) -> Self {
        match status.code {
            // Any JSON reads as a Status where every field may be missing.
            0 => Self::Unreadable("it is neither an object nor a status".to_owned()),
            401 => Self::Unauthorized,
            403 => Self::Forbidden(one_line(&status.message)),
            code => Self::Status {
                code,
                // The client's own words when the answer was no Status; the code is all there is then.
                reason: Some(status.reason)
                    .filter(|reason| !reason.contains(' '))
                    .map(|reason| one_line(&reason))
                    .unwrap_or_default(),
                message: one_line(&status.message),
            },
        }
    }
}

/// True if a 403 is that of an authorizer, which says what the user cannot do.
fn names_missing_right(message: &str) -> bool {
    message.contains(" cannot ")
}

/// The reason at the end of the chain, which is the one that names the cause.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    one_line(&error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(cause: Cause) -> RequestError {
        let target = Target {
            verb: Verb::List,
            resource: "leases.coordination.k8s.io".into(),
            namespace: Some("a".into()),
            name: None,
        };
        RequestError {
            target: Box::new(target),
            url: "https://host:6443".into(),
            cause,
        }
    }

    fn status(code: u16, reason: &str, message: &str) -> Cause {
        Cause::of_status(Status::failure(message, reason).with_code(code))
    }

    #[test]
    fn each_failure_is_one_line_that_names_verb_resource_and_namespace() {
        let what = "list leases.coordination.k8s.io in namespace a: ";
        let rbac = "leases.coordination.k8s.io is forbidden: User \"u\" cannot list resource \"leases\" in API group \
                    \"coordination.k8s.io\" in the namespace \"a\"";
        let refusals: Vec<_> = [
            status(401, "Unauthorized", "Unauthorized"),
            status(403, "Forbidden", rbac),
            status(403, "Forbidden", "exceeded quota: one"),
            Cause::NotSent("no plugin".into()),
        ]
        .map(|cause| error(cause).is_refusal_of_rights())
        .into();
        assert_eq!(refusals, [true, true, false, false]);
        let codes = [
            status(401, "Unauthorized", "Unauthorized"),
            status(403, "Forbidden", rbac),
            status(422, "Invalid", "spec.x: Required value"),
            Cause::NotSent("no plugin".into()),
        ]
        .map(|cause| error(cause).code());
        assert_eq!(codes, [Some(401), Some(403), Some(422), None]);
        for (cause, applied, text) in [
            (
                Cause::Unreachable("Connection refused (os error 111)".into()),
                true,
                "https://host:6443 is unreachable: Connection refused (os error 111)".to_owned(),
            ),
            (Cause::TimedOut(Duration::from_secs(5)), true, "no answer from https://host:6443 in 5s".to_owned()),
            (
                status(401, "Unauthorized", "Unauthorized"),
                false,
                "https://host:6443 refused the credentials (401 Unauthorized): is the token expired?".to_owned(),
            ),
            (status(403, "Forbidden", rbac), false, format!("RBAC does not grant the verb list: {rbac}")),
            (
                status(403, "Forbidden", "admission webhook\nsays no"),
                false,
                "forbidden: admission webhook".to_owned(),
            ),
            (
                status(422, "Invalid", "spec.x: Required value"),
                false,
                "https://host:6443 answered 422 Invalid: spec.x: Required value".to_owned(),
            ),
            (
                status(503, "Failed to parse error data", "no backend"),
                true,
                "https://host:6443 answered 503: no backend".to_owned(),
            ),
            (Cause::Unreadable("EOF".into()), true, "unreadable answer from https://host:6443: EOF".to_owned()),
            (
                Cause::NotSent("no plugin".into()),
                false,
                "nothing was sent to https://host:6443: no plugin".to_owned(),
            ),
        ] {
            let error = error(cause);
            assert_eq!(error.to_string(), format!("{what}{text}"));
            assert_eq!(error.may_have_been_applied(), applied, "{error}");
        }
    }

    #[test]
    fn a_cause_has_a_word_for_labels() {
        for (cause, word) in [
            (Cause::Unreachable(String::new()), "unreachable"),
            (Cause::TimedOut(Duration::ZERO), "timed_out"),
            (status(401, "", ""), "unauthorized"),
            (status(403, "", ""), "forbidden"),
            (status(429, "", ""), "throttled"),
            (status(400, "", ""), "rejected"),
            (status(499, "", ""), "rejected"),
            (status(500, "", ""), "server_error"),
            (Cause::Unreadable(String::new()), "unreadable"),
            (Cause::NotSent(String::new()), "not_sent"),
        ] {
            assert_eq!(cause.as_str(), word, "{cause:?}");
        }
    }

    #[test]
    fn what_a_credential_plugin_printed_is_not_repeated() {
        use std::os::unix::process::ExitStatusExt as _;

        let failed = kube::client::AuthError::AuthExecRun {
            cmd: "KEY=\"s3cret\" \"sh\"".into(),
            out: Box::new(std::process::Output {
                status: std::process::ExitStatus::from_raw(256),
                stdout: b"token: s3cret".to_vec(),
                stderr: b"no session\nmore".to_vec(),
            }),
        };
        let cause = Cause::of(kube::Error::Service(failed.into()));
        let expected = "the credential plugin failed with exit status: 1: no session";
        assert_eq!(cause, Cause::NotSent(expected.into()));
    }

    #[test]
    fn a_target_says_where() {
        let target = |namespace: Option<&str>, name: Option<&str>| {
            Target {
                verb: Verb::Get,
                resource: "x".into(),
                namespace: namespace.map(Into::into),
                name: name.map(Into::into),
            }
            .to_string()
        };
        assert_eq!(target(Some("a"), Some("b")), "get x a/b");
        assert_eq!(target(Some("a"), None), "get x in namespace a");
        assert_eq!(target(None, Some("b")), "get x b");
        assert_eq!(target(None, None), "get x in all namespaces");
    }

    #[test]
    fn a_megabyte_in_a_name_or_an_answer_is_no_megabyte_in_a_message() {
        let megabyte = "x".repeat(1 << 20);
        let unreadable = serde_json::from_str::<u8>(&format!("\"{megabyte}\"")).unwrap_err();
        for cause in [
            Cause::of(kube::Error::SerdeError(unreadable)),
            status(422, &megabyte, &megabyte),
        ] {
            let mut error = error(cause);
            error.target.namespace = Some(megabyte.as_str().into());
            error.target.name = Some(megabyte.as_str().into());
            let length = error.to_string().len();
            assert!(length < 2000, "{length} bytes");
        }
    }

    #[test]
    fn the_innermost_reason_counts() {
        let inner = std::io::Error::other("inner\nmore");
        let outer = std::io::Error::other(inner);
        assert_eq!(innermost(&outer), "inner");
        assert_eq!(one_line(&"x".repeat(500)), format!("{}…", "x".repeat(400)));
    }
}
