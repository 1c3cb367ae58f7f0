//! The command lines of etcd and kube-apiserver.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context as _, Result, bail};

use super::layout::ClusterLayout;
use super::options::Options;
use crate::release::Release;

/// The loopback ports of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) apiserver: u16,
    pub(super) etcd_client: u16,
    pub(super) etcd_peer: u16,
}

// === impl Ports ===

impl Ports {
    /// Free ones; another process may take one of them before the servers do.
    pub(super) fn free(apiserver: Option<u16>) -> Result<Self> {
        // Held together, so that the three differ.
        let listen =
            || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("failed to find a free port");
        let (first, second, third) = (listen()?, listen()?, listen()?);
        let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
        Ok(Self {
            apiserver: apiserver.map_or_else(|| port(&first), Ok)?,
            etcd_client: port(&second)?,
            etcd_peer: port(&third)?,
        })
    }
}

/// Checks that the release can do what the options ask for.
pub(super) fn check(release: Release, options: &Options) -> Result<()> {
    if options.gate && release.candidate_api().is_none() {
        bail!("Kubernetes {release} has no feature gate CoordinatedLeaderElection");
    }
    if options.gate && !options.serve_candidates {
        bail!(
            "the gate needs the LeaseCandidate API: with the gate on and the API off, kube-apiserver never becomes ready"
        );
    }
    Ok(())
}

pub(super) fn etcd(layout: &ClusterLayout, ports: Ports, fsync: bool) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd_client);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    let mut flags = vec![
        "--name=elector".to_owned(),
        format!("--data-dir={}", layout.etcd_data().display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=elector={peer}"),
        "--log-level=warn".to_owned(),
    ];
    if !fsync {
        flags.push("--unsafe-no-fsync".to_owned());
    }
    flags
}

pub(super) fn apiserver(
    layout: &ClusterLayout,
    ports: Ports,
    release: Release,
    options: &Options,
) -> Vec<String> {
    let mut flags = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd_client),
        format!("--secure-port={}", ports.apiserver),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", layout.pki("").display()),
        format!("--tls-cert-file={}", layout.pki("server.crt").display()),
        format!(
            "--tls-private-key-file={}",
            layout.pki("server.key").display()
        ),
        format!(
            "--service-account-key-file={}",
            layout.pki("service-accounts.pub").display()
        ),
        format!(
            "--service-account-signing-key-file={}",
            layout.pki("service-accounts.key").display()
        ),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--token-auth-file={}", layout.tokens().display()),
        format!("--client-ca-file={}", layout.pki("ca.crt").display()),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--allow-privileged".to_owned(),
        // There is no controller manager that would make the service accounts this plugin wants.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
    ];
    if options.serve_candidates
        && let Some(api) = release.candidate_api()
    {
        flags.push(format!("--runtime-config=coordination.k8s.io/{api}=true"));
    }
    if options.gate {
        flags.push("--feature-gates=CoordinatedLeaderElection=true".to_owned());
    }
    flags.extend(options.apiserver_flags.iter().cloned());
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports {
        apiserver: 1,
        etcd_client: 2,
        etcd_peer: 3,
    };

    fn flags(release: &str, options: &Options) -> Result<Vec<String>> {
        let (layout, release) = (ClusterLayout::at("/cluster".as_ref())?, release.parse()?);
        check(release, options)?;
        Ok(apiserver(&layout, PORTS, release, options))
    }

    #[test]
    fn gate_and_api_follow_the_options_and_the_release() {
        let wanted = |flag: &String| flag.starts_with("--feature") || flag.starts_with("--runtime");
        let gate = "--feature-gates=CoordinatedLeaderElection=true";
        let api = |version: &str| format!("--runtime-config=coordination.k8s.io/{version}=true");
        for (release, gate_on, serve, expected) in [
            ("1.36", false, false, vec![]),
            ("1.36", false, true, vec![api("v1beta1")]),
            ("1.36", true, true, vec![api("v1beta1"), gate.to_owned()]),
            ("1.32", false, true, vec![api("v1alpha2")]),
            ("1.31", true, true, vec![api("v1alpha1"), gate.to_owned()]),
            ("1.30", false, true, vec![]),
        ] {
            let options = Options {
                gate: gate_on,
                serve_candidates: serve,
                ..Options::default()
            };
            let flags: Vec<_> = flags(release, &options)
                .unwrap()
                .into_iter()
                .filter(wanted)
                .collect();
            assert_eq!(flags, expected, "{release} {gate_on} {serve}");
        }
    }

    #[test]
    fn impossible_combinations_are_refused() {
        let gate_without_api = Options {
            gate: true,
            serve_candidates: false,
            ..Options::default()
        };
        assert!(
            flags("1.36", &gate_without_api)
                .unwrap_err()
                .to_string()
                .contains("never becomes ready")
        );
        let gate = Options {
            gate: true,
            ..Options::default()
        };
        assert!(
            flags("1.30", &gate)
                .unwrap_err()
                .to_string()
                .contains("1.30 has no feature gate")
        );
    }

    #[test]
    fn only_etcd_without_fsync_is_told_so() {
        let layout = ClusterLayout::at("/cluster".as_ref()).unwrap();
        let unsafe_flag = "--unsafe-no-fsync".to_owned();
        assert!(etcd(&layout, PORTS, false).contains(&unsafe_flag));
        assert!(!etcd(&layout, PORTS, true).contains(&unsafe_flag));
    }

    #[test]
    fn free_ports_differ_and_a_given_one_is_kept() {
        let ports = Ports::free(None).unwrap();
        assert!(ports.apiserver != ports.etcd_client && ports.etcd_client != ports.etcd_peer);
        assert!(ports.apiserver != ports.etcd_peer);
        assert_eq!(Ports::free(Some(6443)).unwrap().apiserver, 6443);
    }
}
