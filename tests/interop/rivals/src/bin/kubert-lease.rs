//! A leader by the lease of the crate kubert, used as Linkerd's policy controller uses it, with a lease of 15 s that is renewed
//! every 5 s. It asks the claim, which ends by the wall clock; kubert hands out no token.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi_of_kubert::api::coordination::v1::{Lease, LeaseSpec};
use kube_client::api::{Api, ObjectMeta, PostParams};
use kube_client::{Client, Error};
use kubert::lease::{Claim, ClaimParams, LeaseManager};
use rivals::{LEASE_DURATION, RENEWAL, RegisterClient, RivalArgs, work};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The claim as it changes, and the task that keeps it.
type SpawnedClaim = (
    watch::Receiver<Arc<Claim>>,
    JoinHandle<Result<(), kubert::lease::Error>>,
);

/// The pause after a claim that failed, and the time that a vacation may take.
const PAUSE: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<()> {
    let args = RivalArgs::read()?;
    let mut terminated = signal(SignalKind::terminate())?;
    let leases: Api<Lease> = Api::namespaced(Client::try_default().await?, &args.namespace);
    let mut client = RegisterClient::new(&args.register, 0)?;
    loop {
        let (claims, mut task) = match claim(&leases, &args).await {
            Ok(spawned) => spawned,
            Err(error) => {
                eprintln!("{error:?}");
                sleep(PAUSE).await;
                continue;
            }
        };
        let leads = || {
            let claim = claims.borrow();
            let period = claim.expiry.timestamp_micros().unsigned_abs();
            claim.is_current_for(&args.name).then_some((period, 0))
        };
        let ended = tokio::select! {
            biased;
            _ = terminated.recv() => None,
            ended = &mut task => Some(ended),
            () = work(&mut client, leads) => None,
        };
        // Without a receiver the task vacates the lease.
        drop(claims);
        match ended {
            Some(ended) => eprintln!("{ended:?}"),
            None => return Ok(timeout(PAUSE, task).await???),
        }
    }
}

/// Claims the lease, which has to exist, and keeps claiming it until the API server has refused a few times.
async fn claim(leases: &Api<Lease>, args: &RivalArgs) -> Result<SpawnedClaim> {
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(args.lease.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec::default()),
    };
    match leases.create(&PostParams::default(), &lease).await {
        Err(Error::Api(answer)) if answer.code == 409 => {}
        created => drop(created?),
    }
    let manager = LeaseManager::init(leases.clone(), &args.lease).await?;
    let params = ClaimParams {
        lease_duration: LEASE_DURATION,
        renew_grace_period: LEASE_DURATION - RENEWAL,
    };
    Ok(manager.spawn(&args.name, params).await?)
}
