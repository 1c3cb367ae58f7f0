//! Leads with a client of another version of kube, by a bridge of ten lines.

use std::error::Error;

use elector_candidate::{Candidate, Cluster, Config, Leadership, shutdown_signal};
use kube::client::Body;

fn bridge(client: kube::Client) -> Cluster {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move { client.send(request).await }
    });
    Cluster::over(service).in_namespace(namespace)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = bridge(kube::Client::try_default().await?);
    let config = Config::new("kube4", env!("CARGO_PKG_VERSION"));
    let work = |leadership: Leadership| async move {
        println!("leading, token {}", leadership.token());
        leadership.stopped().await;
        Ok::<(), std::io::Error>(())
    };
    let candidate = Candidate::new(config, cluster)?;
    println!("{:?}", candidate.run(work, shutdown_signal()?).await?);
    Ok(())
}
