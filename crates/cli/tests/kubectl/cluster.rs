//! The parts of a cluster that the embedded server has no kinds for, as a server answers them.

use http::StatusCode;
use serde_json::{Value, json};

use crate::server::TestServer;

/// A list as a server answers it.
pub(crate) fn list(items: &[Value]) -> Value {
    json!({"metadata": {}, "items": items})
}

/// A Pod that runs on a node under the service account `web`.
pub(crate) fn pod((namespace, name): (&str, &str), node: &str) -> Value {
    json!({
        "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{name}")},
        "spec": {"nodeName": node, "serviceAccountName": "web", "containers": [{"name": "web"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// A Pod of an elector.
pub(crate) fn elector_pod(name: &str, node: &str, version: &str) -> Value {
    let mut pod = pod(("elector-system", name), node);
    pod["metadata"]["labels"] = json!({"app.kubernetes.io/version": version});
    pod
}

/// Has the server say who may do what: `lacks` answers for a user, `""` for the caller, and the attributes of a question.
pub(crate) fn authorize(
    server: &TestServer,
    lacks: impl Fn(&str, &Value) -> bool + Clone + Send + 'static,
) {
    for review in ["selfsubjectaccessreviews", "subjectaccessreviews"] {
        let lacks = lacks.clone();
        let path = format!("/apis/authorization.k8s.io/v1/{review}");
        server.answer(&path, move |question| {
            let user = question["spec"]["user"].as_str().unwrap_or_default();
            let lacks = lacks(user, &question["spec"]["resourceAttributes"]);
            (StatusCode::CREATED, json!({"status": {"allowed": !lacks}}))
        });
    }
}
