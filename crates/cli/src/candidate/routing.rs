//! Traffic to the leader: an EndpointSlice that names it, and a label on its Pod. Both are routing, and no fence.

mod leader_slice;
mod pod_label;

use std::convert::Infallible;
use std::env;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use elector_candidate::Leadership;
use elector_runtime::{Cluster, RequestError, Target, Verb};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::{info, warn};

use self::leader_slice::{AddressFamily, RoutedService, SliceStep, WantedSlice};
use self::pod_label::PodLabel;

/// Where traffic to the leader is sent.
#[derive(Args, Debug)]
pub(super) struct RoutingArgs {
    /// Send the traffic of this Service, which has no selector, to the leader: in the EndpointSlices SERVICE-leader-ipv4 and
    /// SERVICE-leader-ipv6 of the lease's namespace, written with the fencing token of the term, and emptied before the
    /// lease is given away. Routing, and not a fence
    #[arg(
        long,
        value_name = "SERVICE",
        requires = "pod_ips",
        env = "ELECTOR_ENDPOINT_SLICE"
    )]
    endpoint_slice: Option<String>,

    /// The addresses of this Pod, as status.podIPs of the downward API has them
    #[arg(
        long,
        value_name = "IP,IP",
        value_delimiter = ',',
        env = "ELECTOR_POD_IPS"
    )]
    pod_ips: Vec<IpAddr>,

    /// Label the Pod of the leader, which the environment variable POD_NAME names, with elector.dev/leader=LEASE, for
    /// kubectl logs -l. After a crash the label stays until the next leader has removed it
    #[arg(long, env = "ELECTOR_LABEL_POD")]
    label_pod: bool,
}

/// Sends traffic to this process while it leads. Clones do the same.
#[derive(Clone, Debug)]
pub(super) struct LeaderRouting {
    cluster: Cluster,
    service: Option<String>,
    addresses: Vec<IpAddr>,
    /// The name of the Pod, where it is known.
    pod: Option<String>,
    label: Option<PodLabel>,
}

/// A write that has to be tried again.
#[derive(Debug, thiserror::Error)]
enum RoutingError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("use {what}: {why}")]
    Unusable { what: String, why: String },
}

/// The pause after a write that failed.
const RETRY: Duration = Duration::from_millis(500);

/// The same for what only somebody's change can mend.
const LONG_RETRY: Duration = Duration::from_secs(10);

/// The time after which a leader looks whether its slice still says so.
const CHECK: Duration = Duration::from_secs(30);

const SLICES: &str = "endpointslices.discovery.k8s.io";

// === impl RoutingArgs ===

impl RoutingArgs {
    /// The routing for a lease, if any is wanted.
    ///
    /// # Errors
    ///
    /// Where a part of what it takes is missing or cannot be.
    pub(super) fn routing(
        &self,
        cluster: Option<&Cluster>,
        lease: &elector_protocol::LeaseKey,
    ) -> anyhow::Result<Option<LeaderRouting>> {
        if self.endpoint_slice.is_none() && !self.label_pod {
            return Ok(None);
        }
        let pod = env::var("POD_NAME").ok().filter(|name| !name.is_empty());
        let Some(cluster) = cluster else {
            anyhow::bail!("use --endpoint-slice or --label-pod: there is no cluster in this mode");
        };
        if let Some(service) = &self.endpoint_slice {
            let fits =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            ensure!(
                !service.is_empty() && service.len() <= 63 && service.bytes().all(fits),
                "use --endpoint-slice {service}: no Service can have this name"
            );
        }
        let label = self.label_pod.then(|| PodLabel::new(lease, pod.as_deref()));
        Ok(Some(LeaderRouting {
            cluster: cluster.clone(),
            service: self.endpoint_slice.clone(),
            addresses: self.pod_ips.clone(),
            label: label.transpose()?,
            pod,
        }))
    }
}

// === impl LeaderRouting ===

impl LeaderRouting {
    /// Removes what an earlier process of this Pod has left behind.
    pub(super) async fn tidy(&self) {
        if let Some(label) = &self.label
            && let Err(error) = label.remove_own(&self.cluster).await
        {
            warn!("failed to {error}");
        }
    }

    /// Sends traffic here from now on, until the term is to stop or its work is `done`, and takes it back then: before the
    /// lease is given away, if the API server answers within the time that the work has.
    pub(super) async fn route(self, leadership: Leadership, done: oneshot::Receiver<Infallible>) {
        tokio::select! {
            biased;
            _ = done => {}
            _ = leadership.stopped() => {}
            () = self.announce(&leadership) => {}
        }
        let limit = Instant::now() + leadership.time_to_stop();
        while Instant::now() < limit {
            match self.write(&leadership, false).await {
                Ok(()) => return,
                Err(error) => warn!("failed to {error}"),
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Writes what is to be written, and looks again from time to time.
    async fn announce(&self, leadership: &Leadership) {
        loop {
            let pause = match self.write(leadership, true).await {
                Ok(()) => CHECK,
                Err(error) => {
                    warn!("failed to {error}");
                    match error {
                        RoutingError::Request(_) => RETRY,
                        RoutingError::Unusable { .. } => LONG_RETRY,
                    }
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn write(&self, leadership: &Leadership, serves: bool) -> Result<(), RoutingError> {
        if let Some(service) = &self.service {
            self.write_slices(service, leadership, serves).await?;
        }
        if let Some(label) = &self.label {
            label.write(&self.cluster, serves).await?;
        }
        Ok(())
    }

    async fn write_slices(
        &self,
        service: &str,
        leadership: &Leadership,
        serves: bool,
    ) -> Result<(), RoutingError> {
        let namespace = &*leadership.lease().namespace;
        let services = format!("/api/v1/namespaces/{namespace}/services/{service}");
        let target = target(Verb::Get, "services", namespace, service);
        let read: Value = self.cluster.request(target, &services, None).await?;
        let service = RoutedService::of(&read).map_err(|why| RoutingError::Unusable {
            what: format!("the Service {namespace}/{service}"),
            why,
        })?;
        for family in AddressFamily::ALL {
            let wanted = WantedSlice {
                service: &service,
                family,
                addresses: &self.addresses,
                pod: self.pod.as_deref(),
                holder: leadership.identity().as_str(),
                token: leadership.token(),
                serves,
            };
            self.write_slice(&wanted, leadership).await?;
        }
        Ok(())
    }

    /// Writes a slice, on the revision that was looked at.
    async fn write_slice(
        &self,
        wanted: &WantedSlice<'_>,
        leadership: &Leadership,
    ) -> Result<(), RoutingError> {
        let namespace = wanted.service.namespace.as_str();
        let name = RoutedService::slice_name(&wanted.service.name, wanted.family);
        let all = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
        let one = format!("{all}/{name}");
        loop {
            let read = target(Verb::Get, SLICES, namespace, &name);
            let current = match self.cluster.request::<Value>(read, &one, None).await {
                Ok(current) => Some(current),
                Err(error) if error.code() == Some(404) => None,
                Err(error) => return Err(error.into()),
            };
            let step = wanted.step(current.as_ref());
            let step = step.map_err(|why| RoutingError::Unusable {
                what: format!("the EndpointSlice {namespace}/{name}"),
                why,
            })?;
            // Reading takes time; a leader that is none any more adds nothing.
            if wanted.serves && !leadership.is_leader() {
                return Ok(());
            }
            let (verb, path, object) = match step {
                SliceStep::Nothing | SliceStep::Superseded => return Ok(()),
                SliceStep::Create(object) => (Verb::Create, &all, object),
                SliceStep::Replace(object) => (Verb::Update, &one, object),
            };
            let write = target(verb, SLICES, namespace, &name);
            let written = self.cluster.request::<Value>(write, path, Some(&object));
            match written.await {
                Ok(_) => {
                    let (token, serves) = (wanted.token, wanted.serves);
                    info!(slice = name, token, serves, "wrote the EndpointSlice");
                    return Ok(());
                }
                // Another revision came first: look at that.
                Err(error) if error.code() == Some(409) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn target(verb: Verb, resource: &'static str, namespace: &str, name: &str) -> Target {
    Target {
        verb,
        resource: resource.into(),
        namespace: Some(Arc::from(namespace)),
        name: Some(Arc::from(name)),
    }
}

#[cfg(test)]
mod tests;
