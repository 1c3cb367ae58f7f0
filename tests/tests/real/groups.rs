//! A group of eight parts in three processes: each is killed, ended, stopped and cut off in turn. What it costs.

mod replaced;

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{LoadBalancer, StartedCandidate, Suite, Testbed, eventually};
use kube::ResourceExt as _;
use kube::api::ListParams;
use rustix::process::Signal;
use tokio::time::sleep;

use crate::{FALLBACK, GATE_OFF, LEASE_DURATION, OURS};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, GATE_OFF);
    own.add("group_of_eight_parts_in_three_processes", 300, eight_parts);
    own.add_long(
        "group_replaced_by_a_kill_each_minute",
        1_900,
        replaced::killed,
    );
    own.add_long("group_replaced_by_an_update", 300, replaced::updated);
}

/// The parts of the group.
const PARTS: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

/// The time in which the parts of a process that is gone are led by others: without an elector a lease, the time of one,
/// and eight turns of 250 ms; on a machine that has a lot else to do. With a short lease, one that stands still for 3 s
/// ends the terms of the others too.
const LED_AGAIN: Duration = LEASE_DURATION
    .saturating_mul(2)
    .saturating_add(FALLBACK.saturating_mul(2));

/// The time in which connections that were opened beside another one have idled, 90 s after a machine that stood still for
/// some seconds opened them once more.
const IDLED: Duration = Duration::from_secs(240);

/// The time over which requests are counted.
const COUNTED: Duration = Duration::from_secs(30);

/// A process of the group, and its way to the API server.
struct GroupProcess {
    candidate: StartedCandidate,
    way: LoadBalancer,
}

/// The holder of each part, and its term.
pub(crate) type PartHolders = BTreeMap<String, (String, i32)>;

async fn eight_parts(testbed: Arc<Testbed>) -> Result<()> {
    let leases = PARTS.map(|part| format!("{}-{part}", testbed.lease_name()));
    testbed.admit_group(&leases).await?;
    let audit = testbed.site().audit().await?;
    let mut members = Vec::new();
    for name in ["a", "b", "c"] {
        members.push(GroupProcess::start(&testbed, name).await?);
    }
    // The first start waits for the longest lease.
    let first = LED_AGAIN + Duration::from_secs(20);
    led_by_others(&testbed, PARTS.len(), "nobody", first).await?;
    for (blow, next) in [("kill", "d"), ("end", "e"), ("stop", ""), ("cut off", "")] {
        let before = holders(&testbed).await?;
        let led = |member: &GroupProcess| member.led(&before).count();
        let victim = (0..members.len()).max_by_key(|index| led(&members[*index]));
        let victim = victim.context("a group without processes")?;
        let (name, lost) = (
            members[victim].candidate.name().to_owned(),
            led(&members[victim]),
        );
        let begun = testbed.note(&format!("{blow} {name}, which leads {lost} parts"));
        let member = &mut members[victim];
        match blow {
            "kill" => drop(member.candidate.kill()?),
            "end" => drop(member.candidate.ends().await?),
            "stop" => {
                let candidates =
                    PARTS.map(|part| format!("{name}.{}-{part}", testbed.lease_name()));
                candidates
                    .iter()
                    .for_each(|name| testbed.judge_by_lease(name));
                member.candidate.process.signal(Signal::STOP)?;
            }
            _ => member.way.route(Vec::new()),
        }
        let after = led_by_others(&testbed, PARTS.len(), &name, LED_AGAIN).await?;
        testbed.figure(
            &format!("{blow}: until all parts are led by others"),
            begun.elapsed(),
        );
        let others = before
            .iter()
            .filter(|(_, (holder, _))| !is_of(holder, &name));
        for (part, term) in others {
            ensure!(
                after.get(part) == Some(term),
                "{blow} {name}: {part} went from {term:?} to {after:?}"
            );
        }
        match blow {
            "stop" => member.candidate.process.signal(Signal::CONT)?,
            "cut off" => member.way.route(vec![server(&testbed)?]),
            _ => members[victim] = GroupProcess::start(&testbed, next).await?,
        }
    }
    let namespace = testbed.namespace().to_owned();
    cost(&testbed, &members, || audit.requests_in(&namespace)).await
}

/// In quiet times a process has two watches and its writes: a connection for these, and one more for each further part that it
/// leads where renewals met within the last 90 s. The requests are the renewals of its parts.
async fn cost(
    testbed: &Testbed,
    members: &[GroupProcess],
    requests: impl Fn() -> Result<usize>,
) -> Result<()> {
    let few = async || {
        let holders = holders(testbed).await?;
        let open: Vec<usize> = members.iter().map(|member| member.way.open()).collect();
        for (member, open) in members.iter().zip(&open) {
            let led = member.led(&holders).count();
            let most = 2 + led.max(1);
            let holds = (2..=most).contains(open);
            ensure!(holds, "{open} connections for {led} parts");
        }
        // One that leads nothing writes nothing.
        ensure!(open.iter().any(|open| *open >= 3), "{open:?} connections");
        Ok(open)
    };
    let open = eventually(IDLED, few).await?;
    testbed.amount("connections of each process", format!("{open:?}"));
    let (before, start) = (requests()?, tokio::time::Instant::now());
    sleep(COUNTED).await;
    let sent = requests()? - before;
    let second = f64::from(u32::try_from(sent)?) / start.elapsed().as_secs_f64();
    testbed.amount("requests a second for eight parts", format!("{second:.2}"));
    // A part is renewed after each third of the renew deadline of 10 s.
    ensure!((2.1..=2.64).contains(&second), "{second} requests a second");
    Ok(())
}

/// Waits until that number of parts has a leader, and none of them is of that process.
pub(crate) async fn led_by_others(
    testbed: &Testbed,
    parts: usize,
    who: &str,
    within: Duration,
) -> Result<PartHolders> {
    let led = async || {
        let holders = holders(testbed).await?;
        let others = holders.values().filter(|(holder, _)| !is_of(holder, who));
        let holds = others.count() == parts;
        ensure!(holds, "not led by others than {who}: {holders:?}");
        Ok(holders)
    };
    eventually(within, led).await
}

pub(crate) async fn holders(testbed: &Testbed) -> Result<PartHolders> {
    let leases = testbed.leases().list(&ListParams::default()).await?;
    let held = leases.into_iter().filter_map(|lease| {
        let name = lease.name_any();
        let holder = lease
            .spec
            .holder_identity
            .filter(|holder| !holder.is_empty())?;
        Some((
            name,
            (holder, lease.spec.lease_transitions.unwrap_or_default()),
        ))
    });
    Ok(held.collect())
}

/// True if the candidate of that name belongs to that process.
fn is_of(candidate: &str, process: &str) -> bool {
    candidate
        .split_once('.')
        .is_some_and(|(member, _)| member == process)
}

fn server(testbed: &Testbed) -> Result<SocketAddr> {
    let address = testbed.site().url().strip_prefix("https://");
    Ok(address.context("a site without an address")?.parse()?)
}

// === impl GroupProcess ===

impl GroupProcess {
    /// Starts a process with a way of its own to the API server.
    async fn start(testbed: &Testbed, name: &str) -> Result<Self> {
        let way =
            LoadBalancer::listen((Ipv4Addr::LOCALHOST, 0).into(), vec![server(testbed)?]).await?;
        let kubeconfig = fs::read_to_string(testbed.candidate_kubeconfig())?;
        let own = kubeconfig.replace(testbed.site().url(), &format!("https://{}", way.address()));
        ensure!(
            own != kubeconfig,
            "a kubeconfig without {}",
            testbed.site().url()
        );
        let path = testbed.folder().join(format!("{name}.kubeconfig"));
        fs::write(&path, own)?;
        let candidate = testbed.candidate(name).parts(&PARTS);
        let candidate = candidate.kubeconfig(&path).start()?;
        Ok(Self { candidate, way })
    }

    /// The parts that it holds.
    fn led<'a>(&self, holders: &'a PartHolders) -> impl Iterator<Item = &'a String> {
        let name = self.candidate.name().to_owned();
        let held = holders
            .iter()
            .filter(move |(_, (holder, _))| is_of(holder, &name));
        held.map(|(part, _)| part)
    }
}
