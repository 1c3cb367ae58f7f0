//! A candidate in a few lines: it registers, acknowledges, accepts, renews and hands over, until it is dropped.

use elector_api::{Carrier, GROUP_LABEL, Lease, MEMBER_ANNOTATION};
use elector_protocol::{Identity, LeaseRecord, ResourceVersion, Token};
use elector_runtime::Clock as _;
use tokio::time::Instant;

use crate::actors::BackgroundTask;
use crate::test_cluster::LEASES;
use crate::test_cluster::TestCluster;
use crate::time::{millis, seconds};

/// A candidate; dropping it is a crash.
#[derive(Debug)]
pub struct ScriptedCandidate {
    _task: BackgroundTask,
}

struct CandidateScript {
    cluster: TestCluster,
    namespace: String,
    name: String,
    lease: String,
    version: String,
    /// Where it registered.
    resource: &'static str,
    /// True if it speaks our protocol; a client-go candidate never hands over here.
    marked: bool,
    renewed: Option<Instant>,
}

// === impl ScriptedCandidate ===

impl ScriptedCandidate {
    /// Registers for a lease. `version` is both its binary and its emulation version.
    pub fn start(
        cluster: &TestCluster,
        namespace: &str,
        name: &str,
        lease: &str,
        version: &str,
    ) -> Self {
        cluster.register(namespace, name, lease, version);
        Self::run(cluster, namespace, name, lease, version, true)
    }

    /// The same as the candidate for one part of a group, of a process of this name.
    pub fn start_member(
        cluster: &TestCluster,
        namespace: &str,
        group: &str,
        member: &str,
        part: &str,
        version: &str,
    ) -> Self {
        let name = format!("{member}.{part}");
        let object = cluster.unmarked(namespace, &name, part, version);
        let mut object = object.marked(seconds(15));
        let labels = object.metadata.labels.get_or_insert_default();
        labels.insert(GROUP_LABEL.to_owned(), group.to_owned());
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert(MEMBER_ANNOTATION.to_owned(), member.to_owned());
        cluster.put_candidate(cluster.candidates(), &object);
        Self::run(cluster, namespace, &name, part, version, true)
    }

    /// The same as client-go does it: unmarked, without tokens, and deaf to an annotation.
    pub fn start_unmarked(
        cluster: &TestCluster,
        namespace: &str,
        name: &str,
        lease: &str,
        version: &str,
    ) -> Self {
        let object = cluster.unmarked(namespace, name, lease, version);
        cluster.put_candidate(cluster.candidates(), &object);
        Self::run(cluster, namespace, name, lease, version, false)
    }

    fn run(
        cluster: &TestCluster,
        namespace: &str,
        name: &str,
        lease: &str,
        version: &str,
        marked: bool,
    ) -> Self {
        let mut script = CandidateScript {
            cluster: cluster.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            lease: lease.to_owned(),
            version: version.to_owned(),
            resource: cluster.candidates(),
            marked,
            renewed: None,
        };
        let task = BackgroundTask::spawn(async move {
            loop {
                script.act();
                let server = script.cluster.server();
                let changed = server.changed(server.revision());
                let _ = tokio::time::timeout(seconds(1), changed).await;
                tokio::time::sleep(millis(1)).await;
            }
        });
        Self { _task: task }
    }
}

// === impl CandidateScript ===

impl CandidateScript {
    fn act(&mut self) {
        self.register_where_served();
        self.cluster
            .acknowledge_once(self.resource, &self.namespace, &self.name);
        let Some(lease) = self.cluster.lease(&self.namespace, &self.lease).object() else {
            return;
        };
        let record = lease.record().unwrap();
        if record.holder != Identity::new(self.name.as_str()) {
            self.renewed = None;
            return;
        }
        let wall = self.cluster.clock().wall();
        let due = self
            .renewed
            .is_none_or(|renewed| renewed.elapsed() >= seconds(3));
        match &record.preferred_holder {
            Some(preferred) if self.marked && self.renewed.is_some() => {
                let next = record.granted(preferred.clone(), seconds(5), wall);
                self.write(&lease, &next);
            }
            _ if due => {
                let accepts = self.renewed.is_none();
                let mut next = LeaseRecord {
                    duration_seconds: Some(15),
                    renew_time: Some(wall.differing_from(record.renew_time)),
                    ..record
                };
                if accepts && self.marked {
                    let version = lease.metadata.resource_version.clone().unwrap();
                    next.token = Some(Token(ResourceVersion(version.parse().unwrap())));
                    next.token_term = Some(next.term);
                }
                self.write(&lease, &next);
                self.renewed = Some(Instant::now());
            }
            _ => {}
        }
    }

    /// Registers again where the cluster serves candidates now.
    fn register_where_served(&mut self) {
        let resource = self.cluster.candidates();
        if resource != self.resource {
            self.resource = resource;
            self.cluster
                .register(&self.namespace, &self.name, &self.lease, &self.version);
        }
    }

    fn write(&self, lease: &Lease, record: &LeaseRecord) {
        let written = lease.with_record(record, Carrier::Unknown);
        let written = serde_json::to_value(written).unwrap();
        self.cluster
            .edit(LEASES, &self.namespace, &self.lease, |fields| {
                for part in ["metadata", "spec"] {
                    fields[part] = written[part].clone();
                }
            });
    }
}
