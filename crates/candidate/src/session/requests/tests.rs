use elector_api::{CandidateApi, Carrier};
use elector_apiserver::{ApiServer, Config as ServerConfig};
use elector_protocol::holder::WriteKind;
use elector_protocol::{Identity, LeaseKey, ResourceVersion};
use elector_runtime::Cluster;
use kube::Client;

use super::*;

fn config() -> Config {
    let key = LeaseKey::new("default", "web");
    Config::new(key, Identity::new("me").unwrap(), "1.0.0")
}

/// A write is made of the very object that was judged (R2): where the shell holds another revision, nothing is sent,
/// and the holder looks again.
#[tokio::test(start_paused = true)]
async fn a_write_without_the_very_object_that_was_judged_is_a_conflict_and_not_sent() {
    let server = ApiServer::new(ServerConfig::default());
    let client = Client::new(server.service("me"), "default");
    let cluster = Cluster::new(client, "server", Duration::from_secs(5));
    let writer = Writer::new(cluster, CandidateApi::V1Beta1);
    let born = writer.post_lease(&config().lease, None).await;
    let born = born.done().unwrap();
    let judged = born.snapshot().unwrap();
    let write = judged.replace(judged.record.clone());
    let older = ResourceVersion(judged.version.0 - 1);
    let mut other = Lease::born(&config().lease, None, Carrier::Unknown);
    other.metadata.uid = Some("other".to_owned());
    other.metadata.resource_version = born.metadata.resource_version.clone();
    let before = server.revision();
    for (held, version) in [
        (Some(&born), older),
        (Some(&other), judged.version),
        (None, judged.version),
    ] {
        let mut write = write.clone();
        write.version = version;
        let kind = WriteKind::Renew;
        let effect = Effect::Write { kind, write };
        let timeout = Duration::from_secs(1);
        let request = lease_request(effect, held, &config(), &writer, timeout).unwrap();
        let LeaseResponse::Wrote(outcome) = request.await else {
            panic!("a write has the outcome of one");
        };
        assert_eq!(outcome, WriteOutcome::Conflict);
    }
    assert_eq!(server.revision(), before);
    assert_eq!(
        writer.counts().iter().count(),
        1,
        "the POST, and nothing since"
    );
}
