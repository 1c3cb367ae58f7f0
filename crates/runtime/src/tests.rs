//! The Debug output of types that hold more than can be shown, for the logs and failed tests of programs that use them.

use std::net::Ipv4Addr;
use std::time::Duration;

use super::*;
use crate::testing::Script;

#[tokio::test]
async fn the_debug_output_of_a_type_begins_with_what_can_be_shown() {
    let cluster = Script::new([]).cluster();
    let discovery = ApiDiscovery::new(cluster.clone(), Duration::from_secs(1), 0);
    let leases: Watch<elector_api::Lease> =
        watch_leases(&cluster, &Scope::Cluster, &WatchOptions::elector(1));
    let reflection = reflect_leases(&cluster, None);
    let slot = RequestSlot::<()>::default();
    let address = BindAddress::Socket((Ipv4Addr::LOCALHOST, 0).into());
    let server = HttpServer::bind(address, |_: &str, _: Option<&str>| ServerReply::not_found());
    let server = server.await.unwrap().unwrap();
    let silent = ServerAnswer::events(futures::stream::pending());
    for (shown, start) in [
        (format!("{cluster:?}"), "Cluster { url: \"http"),
        (format!("{discovery:?}"), "ApiDiscovery { current: None"),
        (format!("{leases:?}"), "Watch { watches: 1"),
        (format!("{reflection:?}"), "Reflection { target: Target"),
        (format!("{slot:?}"), "RequestSlot(false)"),
        (format!("{server:?}"), "HttpServer { listener: "),
        (format!("{silent:?}"), "Events"),
        (
            format!("{:?}", HealthCheck::ping()),
            "HealthCheck(\"ping\")",
        ),
        (format!("{:?}", MetricSet::default()), "MetricSet"),
        (
            format!("{:?}", HistogramBuckets(&[0.5])),
            "HistogramBuckets([0.5])",
        ),
    ] {
        assert!(shown.starts_with(start), "{shown}");
    }
}
