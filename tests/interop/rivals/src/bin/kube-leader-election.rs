//! A leader by the crate kube-leader-election, used as its example `shared-lease` uses it: a task tries every 5 s and shares the
//! result, which an error leaves as it is.

use anyhow::Result;
use kube::Client;
use kube_leader_election::{LeaseLock, LeaseLockParams, LeaseLockResult};
use rivals::{LEASE_DURATION, RENEWAL, RegisterClient, RivalArgs, work};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::sleep;

#[tokio::main]
async fn main() -> Result<()> {
    let args = RivalArgs::read()?;
    let mut terminated = signal(SignalKind::terminate())?;
    let params = LeaseLockParams {
        holder_id: args.name,
        lease_name: args.lease,
        lease_ttl: LEASE_DURATION,
    };
    let lock = LeaseLock::new(Client::try_default().await?, &args.namespace, params);
    let (share, leads) = watch::channel(None);
    let elect = async {
        for period in 1.. {
            match lock.try_acquire_or_renew().await {
                Ok(LeaseLockResult::Acquired(lease)) => {
                    let transitions = lease.spec.and_then(|spec| spec.lease_transitions);
                    let token = transitions.unwrap_or_default().unsigned_abs();
                    share.send_replace(Some((period, token.into())));
                }
                Ok(LeaseLockResult::NotAcquired(_)) => drop(share.send_replace(None)),
                Err(error) => eprintln!("{error:?}"),
            }
            sleep(RENEWAL).await;
        }
    };
    let mut client = RegisterClient::new(&args.register, 0)?;
    tokio::select! {
        biased;
        _ = terminated.recv() => {}
        () = elect => {}
        () = work(&mut client, || *leads.borrow()) => {}
    }
    lock.step_down().await?;
    Ok(())
}
