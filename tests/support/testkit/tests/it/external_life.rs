//! The whole life of a cluster on externally managed infrastructure, with credentials for machines only.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_api_ext::infrastructure::DevMachine;
use windlass_infra_dev::{Call, Cloud, Privileges};
use windlass_testkit::faults::Faults;
use windlass_testkit::{ByHand, Env, ExternalSystem, Life, NAMESPACE, Version};

use crate::life::wait_nodes;

/// The provider's caller name in the simulated cloud.
const PROVIDER: &str = "provider";
/// The finalizer that the external system removes after deleting its infrastructure.
const HOLD: &str = "terraform.example.com/network";

/// The number of allowed calls by a caller for a cluster.
fn calls(cloud: &Cloud, caller: &str, cluster: &ByHand, call: Call) -> u64 {
    let counts = cloud.calls();
    let mut found = counts
        .iter()
        .filter(|(key, _)| key.caller == caller && key.cluster == cluster.key() && key.call == call);
    found.next().map_or(0, |(_, count)| count.allowed)
}

fn phase(cluster: &Cluster) -> &str {
    let status = cluster.status.as_ref();
    status.and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether a Cluster has this reason for not being deleted yet.
fn is_deleting_because(cluster: &Cluster, reason: &str) -> bool {
    let status = cluster.status.as_ref();
    status.is_some_and(|status| {
        let mut conditions = status.conditions.iter();
        conditions.any(|condition| condition.type_ == "Deleting" && condition.reason == reason)
    })
}

/// Asserts that only the external system, the core and the test have written to the DevCluster.
async fn is_untouched(env: &Env, life: &Life, cluster: &ByHand) {
    let known: BTreeSet<String> = [ExternalSystem::MANAGER, "capi-manager", windlass_testkit::MANAGER]
        .map(str::to_owned)
        .into();
    let managers = life.managers();
    assert!(managers.is_subset(&known), "{managers:?}");
    for (write, _) in env.writes_to("DevCluster", cluster.name()) {
        let is_core = write.manager == "capi-manager" && write.subresource.is_empty();
        assert!(is_core || write.verb == "delete", "{write:?}");
    }
    for version in life.versions() {
        assert!(
            version.finalizers().iter().all(|name| name == HOLD),
            "{:?}",
            version.finalizers()
        );
        let status = version.status();
        assert!(
            status.is_null() || *status == json!({"initialization": {"provisioned": true}}),
            "{status}"
        );
    }
    // EX-028, EX-030: not even reconciled.
    for series in [
        "workqueue_adds_total",
        "workqueue_retries_total",
        "controller_runtime_reconcile_total",
        "controller_runtime_reconcile_errors_total",
    ] {
        assert!(env.metric(series, "devcluster").abs() < f64::EPSILON, "{series}");
    }
    // EX-026
    let events: Api<Event> = Api::namespaced(env.client().clone(), NAMESPACE);
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let about = events
        .iter()
        .filter(|event| event.involved_object.kind.as_deref() == Some("DevCluster"));
    assert_eq!(about.count(), 0);
}

/// T1 and T2: the object alone, then with its Cluster, which waits as long as necessary.
async fn waits(env: &Env, system: &ExternalSystem, cluster: &ByHand, life: &Life) {
    system.create(cluster).await;
    system.merge("ext", &json!({"metadata": {"finalizers": [HOLD]}})).await;
    let alone = life.until("held", |version| !version.finalizers().is_empty()).await;
    cluster.apply_rest(env).await;
    let adopted = life
        .until("adopted", |version| {
            let metadata = &version.object.metadata;
            let label = metadata.labels.iter().flatten().any(|(_, value)| value == "ext");
            let mut owners = metadata.owner_references.iter().flatten();
            label && owners.any(|owner| owner.kind == "Cluster")
        })
        .await;
    assert_eq!(
        adopted.generation(),
        alone.generation(),
        "the specification is not touched"
    );
    let is_provisioning = |cluster: &Cluster| phase(cluster) == "Provisioning";
    for touch in ["once", "again"] {
        env.prod(touch).await;
        let waiting = env
            .wait_for::<Cluster>(&cluster.key(), "Provisioning", is_provisioning)
            .await;
        assert!(waiting.spec.control_plane_endpoint.is_none());
    }
    assert_eq!(env.list::<DevMachine>().await.len(), 0, "machines wait");
    assert_eq!(*life.now().await.status(), Value::Null);
    is_untouched(env, life, cluster).await;
}

/// T4: machines come, go and are replaced, with a restart in between. For all managers of the infrastructure.
async fn machines_live(env: &mut Env, cluster: ByHand, life: &Life) -> ByHand {
    cluster.wait_running(env).await;
    let cluster = cluster.workers(3);
    env.apply(&cluster.object("MachineDeployment")).await;
    cluster.wait_running(env).await;
    let cluster = cluster.control_plane(3);
    env.apply(&cluster.object("KubeadmControlPlane")).await;
    cluster.wait_running(env).await;
    wait_nodes(env, cluster.shape()).await;

    let cluster = cluster.version("v1.36.0");
    env.apply(&cluster.object("KubeadmControlPlane")).await;
    env.wait_all::<Machine>("a new machine", |all| all.len() > 6).await;
    env.stop_controllers().await;
    let before = life.now().await;
    env.start_controllers(&Faults::none());
    env.looked(&["cluster", "machine", "devmachine"]).await;
    assert_eq!(life.now().await.resource_version(), before.resource_version(), "T10");
    env.apply(&cluster.object("MachineDeployment")).await;
    cluster.wait_running(env).await;
    wait_nodes(env, cluster.shape()).await;
    let name = cluster.name();
    for paused in [true, false] {
        env.merge("Cluster", name, &json!({"spec": {"paused": paused}})).await;
        let one = machine(env).await;
        let follows = |machine: &DevMachine| is_paused(machine) == paused;
        env.wait_for::<DevMachine>(&one, "paused with its Cluster", follows)
            .await;
    }
    cluster.wait_running(env).await;
    cluster
}

/// T9: machines are deleted first, then the DevCluster when its external system releases it.
async fn goes(env: &Env, system: &ExternalSystem, cluster: &ByHand, life: &Life, cloud: &Cloud) {
    env.delete("Cluster", "ext").await;
    env.wait_for::<Cluster>(&cluster.key(), "waits for the infrastructure", |cluster| {
        is_deleting_because(cluster, "WaitingForInfrastructureDeletion")
    })
    .await;
    assert_eq!(env.list::<Machine>().await.len(), 0, "machines go first");
    assert!(cloud.machines(&cluster.key()).is_empty());
    let held = life
        .until("deleted", |version| {
            version.object.metadata.deletion_timestamp.is_some()
        })
        .await;
    assert_eq!(held.finalizers(), [HOLD]);
    is_untouched(env, life, cluster).await;
    system.release("ext").await;
    life.until_gone().await;
    env.wait_gone("ext").await;
    is_untouched(env, life, cluster).await;
}

// The lifecycle table's T1 to T4, T9 and T10.
// EX-005, EX-007, EX-009, EX-012, EX-021, EX-023, EX-024, EX-025, EX-026, EX-028, EX-030, EX-031, EX-032, EX-033, EX-050, EX-057,
// EX-058, EX-059, EX-062, EX-063, EX-067, EX-071, EX-072, EX-073, EX-077
#[tokio::test]
async fn the_provider_never_touches_externally_managed_infrastructure() {
    let cloud = Cloud::new();
    let terraform = cloud.handle(ExternalSystem::MANAGER, Privileges::All);
    let mut env = Env::builder()
        .cloud(&cloud.handle(PROVIDER, Privileges::MachinesOnly))
        .start()
        .await;
    let system = ExternalSystem::new(&env);
    let cluster = ByHand::new("ext", 1, 0);
    let stored = env.stored().await;
    let life = env.record("DevCluster", "ext").await;
    waits(&env, &system, &cluster, &life).await;
    assert_eq!(cloud.calls().len(), 0, "no calls to the cloud");

    // T3: the external system creates the load balancer and reports it.
    let address = ([127, 0, 0, 1], 0).into();
    let address = terraform.create_load_balancer(&cluster.key(), address).await.unwrap();
    system.provision("ext", "127.0.0.1", address.port()).await;
    let is_provisioned = |cluster: &Cluster| phase(cluster) == "Provisioned";
    let provisioned = env
        .wait_for::<Cluster>(&cluster.key(), "Provisioned", is_provisioned)
        .await;
    let endpoint = provisioned.spec.control_plane_endpoint.unwrap();
    assert_eq!(endpoint.host.as_deref(), Some("127.0.0.1"));
    assert_eq!(endpoint.port, Some(i32::from(address.port())));

    let cluster = machines_live(&mut env, cluster, &life).await;
    env.prod("resync").await;
    is_untouched(&env, &life, &cluster).await;
    let running = life.now().await;
    assert_eq!(*running.status(), json!({"initialization": {"provisioned": true}}));
    assert_eq!(running.spec()["controlPlaneEndpoint"]["port"], json!(address.port()));
    goes(&env, &system, &cluster, &life, &cloud).await;

    // The infrastructure is as the external system created it, and no other caller created any.
    assert_eq!(cloud.load_balancer(&cluster.key()), Some(address));
    for (key, count) in cloud.calls() {
        assert_eq!(count.refused, 0, "{key:?}");
        assert!(key.caller != PROVIDER || !key.call.is_cluster_level(), "{key:?}");
    }
    let machines = calls(&cloud, PROVIDER, &cluster, Call::RegisterMember);
    assert!(machines >= 6, "{machines}");
    assert_eq!(calls(&cloud, PROVIDER, &cluster, Call::DeregisterMember), machines);
    assert_eq!(
        calls(&cloud, ExternalSystem::MANAGER, &cluster, Call::CreateLoadBalancer),
        1
    );
    let left = env.stored().await;
    let left: Vec<&String> = left
        .difference(&stored)
        .filter(|name| !name.contains("template"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    env.stop().await;
}

// EX-009, EX-011, EX-019, CL-055, CL-056, CL-066: the same machines, with a provider that manages the infrastructure.
#[tokio::test]
async fn machines_live_the_same_on_infrastructure_that_the_provider_manages() {
    let cloud = Cloud::new();
    let mut env = Env::builder()
        .cloud(&cloud.handle(PROVIDER, Privileges::All))
        .start()
        .await;
    let cluster = ByHand::new("own", 1, 0).managed();
    let life = env.record("DevCluster", "own").await;
    cluster.apply(&env).await;
    let cluster = machines_live(&mut env, cluster, &life).await;
    let there = life.now().await;
    assert_eq!(there.status()["initialization"], json!({"provisioned": true}));
    // CL-056: no reader sees it provisioned without its endpoint.
    let whole = |seen: &Version| {
        let provisioned = seen.status()["initialization"]["provisioned"] == json!(true);
        !provisioned || seen.spec()["controlPlaneEndpoint"]["port"].is_u64()
    };
    assert!(life.versions().iter().all(whole));
    let managers = there.managers();
    assert!(
        managers.contains("capd-manager") && managers.contains("capd-manager-status"),
        "{managers:?}"
    );
    assert!(calls(&cloud, PROVIDER, &cluster, Call::CreateLoadBalancer) > 0);
    env.delete("Cluster", "own").await;
    env.wait_gone("own").await;
    assert_eq!(cloud.load_balancer(&cluster.key()), None);
    assert!(calls(&cloud, PROVIDER, &cluster, Call::DeleteLoadBalancer) > 0);
    env.stop().await;
}

async fn machine(env: &Env) -> windlass_meta::ObjectKey {
    let all = env.list::<DevMachine>().await;
    let name = all[0].metadata.name.clone().unwrap();
    windlass_meta::ObjectKey::new(NAMESPACE, &name)
}

fn is_paused(machine: &DevMachine) -> bool {
    let status = machine.status.as_ref();
    status.is_some_and(|status| {
        let mut conditions = status.conditions.iter();
        conditions.any(|condition| condition.type_ == "Paused" && condition.status == "True")
    })
}
