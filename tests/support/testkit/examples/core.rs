//! What the core controllers cost: `cargo xtask bench core`. Prints figures beside their targets, asserts nothing.
//!
//! All controllers run with the embedded API server in this process. So allocations of a reconcile are the difference between touching every
//! object with the controllers and without them. Memory of a drain is the peak of the whole process above what it had before, and includes what
//! the API servers need for the same requests.

use std::alloc::System;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use windlass_api::core::Machine;
use windlass_testkit::{CLASS, ClusterOf, Env};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

type Failure = Box<dyn Error + Send + Sync>;

/// Machines of each cluster of the fleet: one of the control plane and two workers.
const WORKERS: usize = 2;
/// How long the settled fleet is left alone.
const IDLE: Duration = Duration::from_mins(2);
/// Machines that are drained at once, and Pods on each.
const DRAINED: usize = 200;
const PODS: usize = 30;
/// How often memory is looked at while Machines are drained.
const LOOK: Duration = Duration::from_millis(2);
/// Pods that are created at a time.
const AT_ONCE: usize = 32;

fn main() -> Result<(), Failure> {
    let count: usize = std::env::args().nth(1).unwrap_or_else(|| "100".to_owned()).parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        fleet(count).await?;
        drain().await
    })
}

fn say(text: &str) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

/// A number of something for each of `of`, with two decimals.
fn each(number: u64, of: usize) -> String {
    let hundredths = number.saturating_mul(100) / u64::try_from(of.max(1)).unwrap_or(1);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// What was added to counts.
fn added(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let differences = after.iter().map(|(name, count)| {
        let before = before.get(name).copied().unwrap_or_default();
        (name.clone(), count.saturating_sub(before))
    });
    differences.filter(|(_, count)| *count > 0).collect()
}

async fn fleet(count: usize) -> Result<(), Failure> {
    let mut env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let clusters: Vec<ClusterOf> = (0..count)
        .map(|number| ClusterOf::new(&format!("c{number}"), 1, WORKERS))
        .collect();
    let started = Instant::now();
    for cluster in &clusters {
        cluster.apply(&env).await;
    }
    for cluster in &clusters {
        cluster.wait_running(&env).await;
    }
    let took = started.elapsed();
    env.rest().await;
    let machines = count * (1 + WORKERS);
    say(&format!(
        "{count} clusters, {machines} Machines: all running after {took:.1?}"
    ))?;
    say("\nreconciles per Machine, by controller:")?;
    for (controller, number) in &env.load().reconciles {
        say(&format!("  {:>8}  {controller}", each(*number, machines)))?;
    }
    let writes = env.writes_by_kind();
    say("\nwrites per Machine, by verb and resource:")?;
    for (what, number) in &writes {
        say(&format!("  {:>8}  {what}", each(*number, machines)))?;
    }
    let all: u64 = writes.values().sum();
    say(&format!(
        "  {:>8}  all of them, Events included (target 15)",
        each(all, machines)
    ))?;
    say(&format!(
        "  {:>8}  requests but watches",
        each(env.requests(), machines)
    ))?;

    let (before, asked) = (env.load().reconciles, env.requests());
    tokio::time::sleep(IDLE).await;
    let (wrote, asked) = (added(&writes, &env.writes_by_kind()), env.requests() - asked);
    say(&format!("\nleft alone for {IDLE:?} (targets 0):"))?;
    say(&format!("  {:>8}  writes {wrote:?}", wrote.values().sum::<u64>()))?;
    say(&format!("  {asked:>8}  requests but watches"))?;
    let looked = added(&before, &env.load().reconciles);
    say(&format!("  {:>8}  reconciles {looked:?}", looked.values().sum::<u64>()))?;

    // The first time fills what is kept between reconciles.
    env.prod("first").await;
    let (before, with) = (env.load().reconciles, Region::new(ALLOCATOR));
    env.prod("second").await;
    let with = with.change();
    let reconciles: u64 = added(&before, &env.load().reconciles).values().sum();
    env.stop_controllers().await;
    env.prod("third").await;
    let without = Region::new(ALLOCATOR);
    env.prod("fourth").await;
    let without = without.change();
    let reconciles = usize::try_from(reconciles)?;
    let difference = |with: usize, without: usize| u64::try_from(with.saturating_sub(without)).unwrap_or(u64::MAX);
    say(&format!("\na settled reconcile, of {reconciles}, its events included:"))?;
    let blocks = difference(with.allocations, without.allocations);
    say(&format!("  {:>8}  allocations", each(blocks, reconciles)))?;
    let bytes = difference(with.bytes_allocated, without.bytes_allocated);
    say(&format!("  {:>8}  bytes allocated", each(bytes, reconciles)))?;
    env.stop().await;
    Ok(())
}

/// The bytes that the process has allocated and not given back.
fn live() -> usize {
    let now = ALLOCATOR.stats();
    now.bytes_allocated.saturating_sub(now.bytes_deallocated)
}

async fn drain() -> Result<(), Failure> {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("drained", 1, DRAINED);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let secret = env.api::<Secret>().get("drained-kubeconfig").await?;
    let data = secret.data.unwrap_or_default();
    let text = data.get("value").ok_or("there is no kubeconfig")?;
    let kubeconfig: Kubeconfig = serde_saphyr::from_slice(&text.0)?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = kube::Client::try_from(config)?;
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
    let names = nodes.items.into_iter().filter_map(|node| node.metadata.name);
    let workers: Vec<String> = names.filter(|name| name.contains("md-0")).collect();
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let all = workers
        .iter()
        .flat_map(|node| (0..PODS).map(move |number| (node, number)));
    let made: Vec<Result<(), Failure>> = stream::iter(all)
        .map(|(node, number)| {
            let pods = pods.clone();
            async move {
                let pod = json!({
                    "metadata": {"name": format!("{node}-{number}")},
                    "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
                });
                pods.create(&PostParams::default(), &serde_json::from_value(pod)?)
                    .await?;
                Ok(())
            }
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    made.into_iter().collect::<Result<Vec<()>, Failure>>()?;
    env.rest().await;
    let before = live();
    let (most, over) = (Arc::new(AtomicUsize::new(before)), Arc::new(AtomicBool::new(false)));
    let watching = {
        let (most, over) = (Arc::clone(&most), Arc::clone(&over));
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(live(), Ordering::Relaxed);
                std::thread::park_timeout(LOOK);
            }
        })
    };
    let started = Instant::now();
    cluster.clone().workers(0).apply(&env).await;
    let are_gone = |machines: &[Machine]| machines.len() == 1;
    env.wait_all::<Machine>("drained", are_gone).await;
    let took = started.elapsed();
    over.store(true, Ordering::Relaxed);
    watching.join().map_err(|_| "the watch of memory has ended")?;
    let peak = most.load(Ordering::Relaxed).saturating_sub(before);
    let machines = workers.len();
    say(&format!(
        "\n{machines} Machines of {PODS} Pods drained and deleted in {took:.1?}:"
    ))?;
    let peak = u64::try_from(peak / 1024)?;
    say(&format!(
        "  {:>8}  KiB of memory per drain, at the peak (target 1024)",
        each(peak, machines)
    ))?;
    env.stop().await;
    Ok(())
}
