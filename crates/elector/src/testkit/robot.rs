//! A candidate in a few lines: it registers, answers, accepts, renews and hands over, until it is dropped.

use elector_api::{Carrier, Lease, LeaseCandidate, Rfc3339};
use elector_protocol::{Identity, LeaseRecord, ResourceVersion, Timestamp, Token};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{FakeApi, LEASES, millis, seconds, wall};

/// A candidate; dropping it is a crash.
pub(crate) struct Robot {
    task: JoinHandle<()>,
}

struct Mind {
    api: FakeApi,
    namespace: String,
    name: String,
    lease: String,
    version: String,
    /// Where it registered.
    home: &'static str,
    /// Whether it speaks our protocol; a client-go candidate makes room for nobody here.
    marked: bool,
    start: Instant,
    renewed: Option<Instant>,
}

// === impl Robot ===

impl Robot {
    /// Registers for a lease. `version` is both its binary and its emulation version.
    pub(crate) fn start(
        api: &FakeApi,
        namespace: &str,
        name: &str,
        lease: &str,
        version: &str,
    ) -> Self {
        register(api, namespace, name, lease, version);
        Self::live(api, namespace, name, lease, version, true)
    }

    /// The same as client-go does it: unmarked, without tokens, and deaf to an annotation.
    pub(crate) fn start_unmarked(
        api: &FakeApi,
        namespace: &str,
        name: &str,
        lease: &str,
        version: &str,
    ) -> Self {
        api.put(api.candidates(), namespace, name, |object| {
            object["spec"] = spec(lease, version);
        });
        Self::live(api, namespace, name, lease, version, false)
    }

    fn live(
        api: &FakeApi,
        namespace: &str,
        name: &str,
        lease: &str,
        version: &str,
        marked: bool,
    ) -> Self {
        let mut mind = Mind {
            api: api.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            lease: lease.to_owned(),
            version: version.to_owned(),
            home: api.candidates(),
            marked,
            start: Instant::now(),
            renewed: None,
        };
        let mut changes = api.changes();
        let task = tokio::spawn(async move {
            loop {
                mind.act();
                changes.mark_unchanged();
                let _ = tokio::time::timeout(seconds(1), changes.changed()).await;
                tokio::time::sleep(millis(1)).await;
            }
        });
        Self { task }
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Creates a candidate that does nothing more.
pub(crate) fn register(api: &FakeApi, namespace: &str, name: &str, lease: &str, version: &str) {
    api.put(api.candidates(), namespace, name, |object| {
        object["metadata"]["annotations"] = json!({"elector.dev/protocol": "1"});
        object["spec"] = spec(lease, version);
    });
}

fn spec(lease: &str, version: &str) -> Value {
    json!({
        "leaseName": lease, "binaryVersion": version, "emulationVersion": version,
        "strategy": "OldestEmulationVersion", "renewTime": Rfc3339(wall()).to_string(),
    })
}

// === impl Mind ===

impl Mind {
    fn act(&mut self) {
        self.move_house();
        self.answer();
        let Some(lease) = self.api.lease(&self.namespace, &self.lease) else {
            return;
        };
        let record = lease.record().unwrap();
        if record.holder != Identity::new(self.name.as_str()) {
            self.renewed = None;
            return;
        }
        let due = self
            .renewed
            .is_none_or(|renewed| renewed.elapsed() >= seconds(3));
        match &record.preferred_holder {
            Some(preferred) if self.marked && self.renewed.is_some() => {
                let next = record.granted(preferred.clone(), seconds(5), self.wall());
                self.write(&lease, &next);
            }
            _ if due => {
                let accepts = self.renewed.is_none();
                let mut next = LeaseRecord {
                    duration_seconds: Some(15),
                    renew_time: Some(self.wall().differing_from(record.renew_time)),
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
    fn move_house(&mut self) {
        let home = self.api.candidates();
        if home != self.home {
            self.home = home;
            let (namespace, name) = (&self.namespace, &self.name);
            register(&self.api, namespace, name, &self.lease, &self.version);
        }
    }

    fn answer(&self) {
        let object = self.api.read(self.home, &self.namespace, &self.name);
        let Some(candidate) = object.map(LeaseCandidate::from_value) else {
            return;
        };
        let (ping, renew) = (candidate.spec.ping_time, candidate.spec.renew_time);
        if let Some(ping) = ping
            && Some(ping) > renew
        {
            let answered = candidate.with_renewal(ping.max(self.wall()));
            self.api
                .put(self.home, &self.namespace, &self.name, |object| {
                    *object = serde_json::to_value(answered).unwrap();
                });
        }
    }

    fn write(&self, lease: &Lease, record: &LeaseRecord) {
        let written: Value =
            serde_json::to_value(lease.with_record(record, Carrier::Unknown)).unwrap();
        self.api
            .put(LEASES, &self.namespace, &self.lease, |object| {
                *object = written;
            });
    }

    fn wall(&self) -> Timestamp {
        let elapsed = i64::try_from(self.start.elapsed().as_micros()).unwrap();
        Timestamp::from_micros(wall().as_micros() + 1 + elapsed).unwrap()
    }
}
