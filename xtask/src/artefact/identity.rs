//! The identity of a Pod of the manifests.

use std::ffi::OsString;
use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};

/// The name of the Pod.
pub(super) const POD: &str = "elector-in-an-empty-root";

/// Where the API server is, who a Pod is there, and what it runs.
pub(super) struct PodIdentity {
    pub(super) server: SocketAddr,
    pub(super) authority: Vec<u8>,
    pub(super) token: String,
    pub(super) namespace: String,
    pub(super) command: Vec<String>,
}

// === impl PodIdentity ===

impl PodIdentity {
    /// The command of the manifests, with these addresses in the place of its own.
    pub(super) fn command_on(
        &self,
        health: SocketAddr,
        metrics: SocketAddr,
    ) -> Result<Vec<OsString>> {
        let mut command = self.command.clone();
        for (flag, address) in [
            ("--health-probe-bind-address=", health),
            ("--metrics-bind-address=", metrics),
        ] {
            let argument = command.iter_mut().find(|word| word.starts_with(flag));
            *argument.with_context(|| format!("the manifests give no {flag}"))? =
                format!("{flag}{address}");
        }
        ensure!(!command.is_empty(), "the manifests give no command");
        Ok(command.into_iter().map(OsString::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_the_manifests_is_run_on_other_addresses() {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let mut identity = PodIdentity {
            server: address(1),
            authority: Vec::new(),
            token: String::new(),
            namespace: String::new(),
            command: words(
                "elector run --leader-elect --health-probe-bind-address=:8081 --metrics-bind-address=8080",
            ),
        };
        let command = identity.command_on(address(2), address(3)).unwrap();
        let expected = "elector run --leader-elect --health-probe-bind-address=127.0.0.1:2 --metrics-bind-address=127.0.0.1:3";
        assert_eq!(command.join(" ".as_ref()), expected);
        identity.command = words("elector run");
        assert!(identity.command_on(address(2), address(3)).is_err());
    }
}
