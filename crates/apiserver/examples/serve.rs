//! Serves an empty store over TCP until Ctrl-C, for kubectl and for curiosity:
//!
//! ```text
//! cargo run -p elector-apiserver --example serve -- 127.0.0.1:8090
//! kubectl --server http://127.0.0.1:8090 get leases --all-namespaces
//! ```

use std::env;
use std::error::Error;

use elector_apiserver::{ApiServer, Config, NativeCandidates};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    let config = Config {
        gate: true,
        native: NativeCandidates::V1Beta1AndV1Alpha2,
        custom_candidates: true,
        ..Config::default()
    };
    let interrupted = async {
        // Without a handler there is nothing to wait for; then it ends with the process.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    ApiServer::new(config).serve(listener, interrupted).await?;
    Ok(())
}
