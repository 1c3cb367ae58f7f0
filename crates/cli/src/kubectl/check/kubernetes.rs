//! The version of Kubernetes, and the API of LeaseCandidates that a later one leaves out.

use elector_api::CandidateApi;
use elector_runtime::RequestError;
use serde::Deserialize;

use super::line::CheckLine;
use super::place::CheckedPlace;

/// The answer to `GET /version`, as far as it matters here.
#[derive(Debug, Deserialize)]
struct ServerVersion {
    major: String,
    minor: String,
    #[serde(rename = "gitVersion", default)]
    full: String,
}

const CHECK: &str = "kubernetes";

/// The first minor version that Elector runs on: validating admission policies are stable from 1.30 on, and of those before
/// nothing was tried.
const FIRST: u32 = 31;

/// Looks at the version of the server, beside the API that it serves.
pub(super) async fn check(
    place: &CheckedPlace,
    api: Option<CandidateApi>,
    lines: &mut Vec<CheckLine>,
) {
    let read: Result<ServerVersion, RequestError> = place
        .read("the version", (None, Some("of the server")), "/version")
        .await;
    match read {
        Ok(version) => lines.push(version.judge(api)),
        Err(error) => lines.push(CheckLine::warning(
            CHECK,
            format!("failed to {error}"),
            "kubectl version",
        )),
    }
}

/// The first minor version of Kubernetes 1 that does not serve an API any more. A `--runtime-config` that names it keeps
/// that version's kube-apiserver from starting.
fn gone_in(api: CandidateApi) -> Option<u32> {
    match api {
        CandidateApi::V1Beta1 => Some(39),
        CandidateApi::V1Alpha2 => Some(38),
        CandidateApi::V1Alpha1 => Some(32),
        _ => None,
    }
}

// === impl ServerVersion ===

impl ServerVersion {
    fn judge(&self, api: Option<CandidateApi>) -> CheckLine {
        // Distributions add a sign to it, `31+`.
        let minor: String = self
            .minor
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let (Ok(minor), "1") = (minor.parse::<u32>(), self.major.as_str()) else {
            let text = format!(
                "the server is of the version {}, which is not understood",
                self.full
            );
            return CheckLine::warning(CHECK, text, "kubectl version");
        };
        if minor < FIRST {
            let text =
                format!("the server is of Kubernetes 1.{minor}; Elector needs 1.{FIRST} or later");
            return CheckLine::error(CHECK, text, "upgrade the control plane");
        }
        let going = api.and_then(|api| Some((api, gone_in(api)?)));
        match going {
            // It is deprecated three versions before it goes.
            Some((api, gone)) if minor + 3 >= gone => {
                let served = api.api_version();
                let text = format!(
                    "the server is of Kubernetes 1.{minor}, and LeaseCandidates of {served} are not served from 1.{gone} on"
                );
                let way = match api {
                    CandidateApi::V1Beta1 => "install the custom resource, by the overlay crd",
                    _ => {
                        "serve coordination.k8s.io/v1beta1, or install the custom resource, by the overlay crd"
                    }
                };
                let fix = format!(
                    "before the upgrade to 1.{gone} {way}, and take {served} out of --runtime-config; electors and \
                     candidates follow, and leaders lead on"
                );
                CheckLine::warning(CHECK, text, fix)
            }
            _ => CheckLine::ok(CHECK, format!("the server is of Kubernetes 1.{minor}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::CheckLevel;
    use super::*;

    #[test]
    fn an_api_that_goes_soon_and_a_server_that_is_too_old_are_named() {
        let judge = |minor: &str, api| {
            let version = ServerVersion {
                major: "1".to_owned(),
                minor: minor.to_owned(),
                full: format!("v1.{minor}"),
            };
            version.judge(api)
        };
        let beta = Some(CandidateApi::V1Beta1);
        assert_eq!(judge("35", beta).fix, None);
        let soon = judge("36+", beta);
        assert!(
            soon.result
                .ends_with("coordination.k8s.io/v1beta1 are not served from 1.39 on")
        );
        assert!(soon.fix.unwrap().contains("the overlay crd"));
        assert_eq!(judge("39", Some(CandidateApi::Elector)).fix, None);
        let old = judge("30", None);
        assert_eq!(old.level, CheckLevel::Error);
        assert!(judge("x", None).result.contains("not understood"));
    }
}
