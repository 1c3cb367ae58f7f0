//! The Pods of an overlay, and their start.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use elector_cluster::overlays;
use elector_tests::rig::TestAccount;
use serde_json::Value;

/// The Pods of an overlay.
pub(super) struct PodTemplate {
    pub(super) replicas: u64,
    /// There may be one more of them while they are replaced; a static Pod ends before the next one starts on its node.
    pub(super) surges: bool,
    namespace: String,
    command: Vec<String>,
    /// Each variable, and the field of the Pod that it has the value of.
    variables: Vec<(String, String)>,
}

// === impl PodTemplate ===

impl PodTemplate {
    /// Of the Deployment, or of the static Pod, one of which each node has.
    pub(super) fn of(objects: &[Value]) -> Result<Self> {
        let (object, replicas, surges) = match overlays::object(objects, "Deployment", "elector") {
            Ok(deployment) => {
                let surge = &deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"];
                let replicas = deployment["spec"]["replicas"].as_u64();
                (deployment, replicas, surge.as_u64() > Some(0))
            }
            Err(_) => (overlays::object(objects, "Pod", "elector")?, Some(2), false),
        };
        let namespace = object["metadata"]["namespace"].as_str();
        let pod = match &object["spec"]["template"]["spec"] {
            Value::Null => &object["spec"],
            template => template,
        };
        let container = &pod["containers"][0];
        let texts = |value: &Value| -> Vec<String> {
            let words = value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            words.map(str::to_owned).collect()
        };
        let variables = container["env"].as_array().context("no environment")?;
        let field = |variable: &Value| {
            let name = variable["name"].as_str()?.to_owned();
            let field = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str()?;
            Some((name, field.to_owned()))
        };
        Ok(Self {
            replicas: replicas.context("no replicas")?,
            surges,
            namespace: namespace.context("no namespace")?.to_owned(),
            command: [texts(&container["command"]), texts(&container["args"])].concat(),
            variables: variables
                .iter()
                .map(|variable| field(variable).context("a variable that is no field of the Pod"))
                .collect::<Result<_>>()?,
        })
    }

    /// The command as a Pod of that name has it, on other ports, and with the kubeconfig where this machine has it.
    pub(super) fn command(
        &self,
        program: &Path,
        account: &TestAccount,
        pod: &str,
    ) -> Result<Command> {
        let [name, arguments @ ..] = &self.command[..] else {
            bail!("the Pod has no command");
        };
        ensure!(name == "elector", "the Pod runs {name}");
        let mut command = account.command(program);
        for argument in arguments {
            match argument.split_once('=') {
                Some((flag, _)) if flag.ends_with("-bind-address") => {
                    command.arg(format!("{flag}=127.0.0.1:0"));
                }
                Some(("--kubeconfig", _)) => {
                    command.arg("--kubeconfig").arg(account.kubeconfig());
                }
                _ => {
                    command.arg(argument);
                }
            }
        }
        for (name, field) in &self.variables {
            match field.as_str() {
                "metadata.name" => command.env(name, pod),
                "metadata.namespace" => command.env(name, &self.namespace),
                other => bail!("{name} has the value of {other}"),
            };
        }
        Ok(command)
    }
}
