//! MachinePools: with a Machine for each machine, as the dev provider has them, and with a provider that has none.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine, MachineHealthCheck, MachinePool};
use windlass_api::owner;
use windlass_api_ext::infrastructure::{DevMachine, DevMachinePool};
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_meta::ObjectKey;
use windlass_testkit::wait::until;
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

use crate::life::workload;

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// A MachinePool of the dev provider, with its KubeadmConfig and its DevMachinePool.
pub(crate) fn dev_pool(cluster: &str, name: &str, replicas: i32, version: &str) -> [Value; 3] {
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    [
        json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig", "metadata": metadata,
            "spec": {"joinConfiguration": {"nodeRegistration": {"name": "{{ ds.meta_data.local_hostname }}"}}},
        }),
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachinePool", "metadata": metadata,
            "spec": {"backend": {"inMemory": {}}},
        }),
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "metadata": metadata,
            "spec": {
                "clusterName": cluster, "replicas": replicas,
                "template": {
                    "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
                    "spec": {
                        "clusterName": cluster, "version": version,
                        "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name}},
                        "infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": "DevMachinePool", "name": name},
                    },
                },
            },
        }),
    ]
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(NAMESPACE, name)
}

/// Whether a pool is complete: this many machines, all Ready, Available and up to date, at this version.
fn is_whole(pool: &MachinePool, replicas: i32, version: &str) -> bool {
    let status = pool.status.clone().unwrap_or_default();
    let counts = [
        status.replicas,
        status.ready_replicas,
        status.available_replicas,
        status.up_to_date_replicas,
    ];
    let versions: Vec<(String, Option<i32>)> = status
        .versions
        .into_iter()
        .map(|entry| (entry.version, entry.replicas))
        .collect();
    counts.iter().all(|count| *count == Some(replicas))
        && versions == [(version.to_owned(), Some(replicas))]
        && status.node_refs.len() == usize::try_from(replicas).unwrap()
        && status.phase.as_deref() == Some("Running")
        && status.observed_generation == pool.metadata.generation
}

pub(crate) async fn wait_whole(env: &Env, name: &str, replicas: i32, version: &str) -> MachinePool {
    let what = format!("{replicas} machines at {version}");
    env.wait_for::<MachinePool>(&key(name), &what, |pool| is_whole(pool, replicas, version))
        .await
}

/// A running cluster with one control plane machine and no workers.
async fn site(name: &str) -> (Env, ClusterOf) {
    let env = Env::start().await;
    let cluster = ClusterOf::new(name, 1, 0);
    env.apply_yaml(CLASS).await;
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    (env, cluster)
}

/// The Machines of a pool, by name.
async fn machines_of(env: &Env, pool: &str) -> Vec<Machine> {
    let mut machines = env.list::<Machine>().await;
    machines.retain(|machine| is_of(machine, pool));
    machines
}

fn is_of(machine: &Machine, pool: &str) -> bool {
    let labels = machine.metadata.labels.as_ref().unwrap();
    labels.get("cluster.x-k8s.io/pool-name").map(String::as_str) == Some(pool)
}

fn names<'a>(machines: impl IntoIterator<Item = &'a Machine>) -> BTreeSet<String> {
    machines
        .into_iter()
        .map(|machine| machine.metadata.name.clone().unwrap())
        .collect()
}

/// The names and versions of the Nodes of the workload cluster that a pool owns.
async fn nodes_of(client: &kube::Client, pool: &str) -> Vec<(String, String)> {
    let nodes = Api::<Node>::all(client.clone())
        .list(&ListParams::default())
        .await
        .unwrap();
    let owned = nodes.items.into_iter().filter(|node| {
        let annotations = node.metadata.annotations.clone().unwrap_or_default();
        annotations.get("cluster.x-k8s.io/owner-kind").map(String::as_str) == Some("MachinePool")
            && annotations.get("cluster.x-k8s.io/owner-name").map(String::as_str) == Some(pool)
    });
    let version = |node: &Node| node.status.clone().unwrap().node_info.unwrap().kubelet_version;
    owned
        .map(|node| (node.metadata.name.clone().unwrap(), version(&node)))
        .collect()
}

#[tokio::test]
async fn a_pool_with_machines_lives_from_creation_to_deletion() {
    let (env, cluster) = site("pools").await;
    for object in dev_pool("pools", "mp", 2, "v1.35.0") {
        env.apply(&object).await;
    }
    let pool = wait_whole(&env, "mp", 2, "v1.35.0").await;
    let client = workload(&env, &cluster).await;
    let uid = pool.metadata.uid.clone().unwrap();

    // What it refers to belongs to it, and it to its Cluster.
    assert_eq!(
        pool.metadata.labels.as_ref().unwrap()["cluster.x-k8s.io/cluster-name"],
        "pools"
    );
    let owner = owner::owner_of_kind(&pool.metadata, "cluster.x-k8s.io", "Cluster").unwrap();
    assert_eq!((owner.name.as_str(), owner.controller), ("pools", None));
    let config = env.api::<KubeadmConfig>().get("mp").await.unwrap();
    assert!(owner::is_controlled_by(&config.metadata, &uid));
    let infrastructure = env.api::<DevMachinePool>().get("mp").await.unwrap();
    assert!(owner::is_controlled_by(&infrastructure.metadata, &uid));
    let data = &pool.spec.template.spec.bootstrap.data_secret_name;
    assert_eq!(data.as_deref(), Some("mp"));
    let mut ids = pool.spec.provider_id_list.clone();
    assert_eq!(ids, infrastructure.spec.unwrap().provider_id_list);

    // Each machine has a Machine, which its pool controls.
    let machines = machines_of(&env, "mp").await;
    assert_eq!(machines.len(), 2);
    for machine in &machines {
        assert!(owner::is_controlled_by(&machine.metadata, &uid));
        assert_eq!(machine.spec.bootstrap.data_secret_name.as_deref(), Some(""));
        assert_eq!(machine.spec.version.as_deref(), Some("v1.35.0"));
        let labels = machine.metadata.labels.as_ref().unwrap();
        assert!(labels.contains_key("node-role.kubernetes.io/worker"));
        ids.retain(|id| Some(id) != machine.spec.provider_id.as_ref());
    }
    assert!(ids.is_empty(), "{ids:?}");
    assert_eq!(nodes_of(&client, "mp").await.len(), 2);

    // The Cluster counts them, and its conditions leave them to the pool.
    let counts = |cluster: &Cluster| {
        let workers = cluster.status.clone().unwrap_or_default().workers.unwrap_or_default();
        workers.desired_replicas == Some(2) && workers.available_replicas == Some(2)
    };
    env.wait_for::<Cluster>(&cluster.key(), "two workers", counts).await;

    // At rest nothing is written.
    env.rest().await;
    let before = env.writes_by_kind();
    env.prod("pool").await;
    assert_eq!(before, env.writes_by_kind());

    // The machine that is marked goes first, when the pool gets smaller.
    env.merge("MachinePool", "mp", &json!({"spec": {"replicas": 3}})).await;
    wait_whole(&env, "mp", 3, "v1.35.0").await;
    let marked = names(&machines).pop_first().unwrap();
    let mark = json!({"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}});
    env.merge("Machine", &marked, &mark).await;
    env.merge("MachinePool", "mp", &json!({"spec": {"replicas": 2}})).await;
    wait_whole(&env, "mp", 2, "v1.35.0").await;
    assert!(!names(&machines_of(&env, "mp").await).contains(&marked));

    env.delete("MachinePool", "mp").await;
    let gone = |all: &[MachinePool]| all.is_empty();
    env.wait_all::<MachinePool>("gone", gone).await;
    // The pool goes with its DevMachinePool, which goes with the last machine; the Machine of that one is a step behind.
    let gone = |all: &[Machine]| all.iter().all(|machine| !is_of(machine, "mp"));
    env.wait_all::<Machine>("gone", gone).await;
    assert!(env.list::<DevMachinePool>().await.is_empty());
    assert!(env.api::<KubeadmConfig>().get_opt("mp").await.unwrap().is_none());
    assert!(nodes_of(&client, "mp").await.is_empty());
    env.stop().await;
}

#[tokio::test]
async fn machines_of_another_version_are_replaced_and_enough_stay() {
    let (env, cluster) = site("rolled").await;
    for object in dev_pool("rolled", "mp", 2, "v1.35.0") {
        env.apply(&object).await;
    }
    wait_whole(&env, "mp", 2, "v1.35.0").await;
    let old = names(&machines_of(&env, "mp").await);
    let life = env.record("DevMachinePool", "mp").await;
    env.merge(
        "MachinePool",
        "mp",
        &json!({"spec": {"template": {"spec": {"version": "v1.35.1"}}}}),
    )
    .await;
    wait_whole(&env, "mp", 2, "v1.35.1").await;
    let new = names(&machines_of(&env, "mp").await);
    assert!(old.is_disjoint(&new), "{old:?} {new:?}");
    let listed = life.versions().into_iter().map(|version| {
        let ids = version.spec()["providerIDList"].as_array().map_or(0, Vec::len);
        (ids, version.status()["ready"] == json!(true))
    });
    assert!(
        listed.clone().all(|(ids, ready)| ids >= 2 && ready),
        "{:?}",
        listed.collect::<Vec<_>>()
    );
    let client = workload(&env, &cluster).await;
    let versions: BTreeSet<String> = nodes_of(&client, "mp")
        .await
        .into_iter()
        .map(|(_, version)| version)
        .collect();
    assert_eq!(versions, BTreeSet::from(["v1.35.1".to_owned()]));
    env.stop().await;
}

// CL-071
#[tokio::test]
async fn a_deleted_machine_of_a_pool_is_replaced_and_a_deleted_cluster_takes_its_pools_along() {
    let (env, _) = site("whole").await;
    for object in dev_pool("whole", "mp", 2, "v1.35.0") {
        env.apply(&object).await;
    }
    wait_whole(&env, "mp", 2, "v1.35.0").await;
    let lost = names(&machines_of(&env, "mp").await).pop_first().unwrap();
    env.delete("Machine", &lost).await;
    let is_gone = |all: &[Machine]| {
        all.iter()
            .all(|machine| machine.metadata.name.as_deref() != Some(&lost))
    };
    env.wait_all::<Machine>("another Machine", is_gone).await;
    wait_whole(&env, "mp", 2, "v1.35.0").await;
    assert_eq!(env.list::<DevMachine>().await.len(), 3);

    // A machine that is deleted in the infrastructure takes its Machine along.
    let lost = names(&machines_of(&env, "mp").await).pop_first().unwrap();
    env.delete("DevMachine", &lost).await;
    let is_gone = |all: &[Machine]| {
        all.iter()
            .all(|machine| machine.metadata.name.as_deref() != Some(&lost))
    };
    env.wait_all::<Machine>("another Machine", is_gone).await;
    wait_whole(&env, "mp", 2, "v1.35.0").await;

    // Another process goes on with what this one has left.
    env.merge("MachinePool", "mp", &json!({"spec": {"replicas": 3}})).await;
    let env = env.restart().await;
    wait_whole(&env, "mp", 3, "v1.35.0").await;

    env.delete("Cluster", "whole").await;
    env.wait_gone("whole").await;
    env.stop().await;
}

/// Defines a kind of pools whose provider has no objects for single machines.
async fn define_cloud_pools(env: &Env) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("cloudmachinepools.{INFRASTRUCTURE}"),
            "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"},
        },
        "spec": {
            "group": INFRASTRUCTURE, "scope": "Namespaced",
            "names": {"kind": "CloudMachinePool", "plural": "cloudmachinepools", "singular": "cloudmachinepool", "listKind": "CloudMachinePoolList"},
            "versions": [{
                "name": "v1beta2", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let all: Api<CustomResourceDefinition> = Api::all(env.client().clone());
    let definition = serde_json::from_value(definition).unwrap();
    all.create(&PostParams::default(), &definition).await.unwrap();
    let is_served = |all: &[CustomResourceDefinition]| {
        let conditions = all
            .iter()
            .filter_map(|one| one.status.as_ref()?.conditions.as_ref())
            .flatten();
        conditions
            .into_iter()
            .any(|condition| condition.type_ == "Established" && condition.status == "True")
    };
    let name = format!("cloudmachinepools.{INFRASTRUCTURE}");
    assert!(until(all, Some(&name), is_served).await.is_some(), "not served");
}

/// Plays the provider: these machines are there.
async fn report(env: &Env, ids: &[&str]) {
    let pools: Api<kube::api::DynamicObject> = cloud_api(env);
    let how = PatchParams::default();
    let spec = Patch::Merge(json!({"spec": {"providerIDList": ids}}));
    pools.patch("mp", &how, &spec).await.unwrap();
    let status = Patch::Merge(json!({"status": {"initialization": {"provisioned": true}, "replicas": ids.len()}}));
    pools.patch_status("mp", &how, &status).await.unwrap();
}

fn cloud_api(env: &Env) -> Api<kube::api::DynamicObject> {
    let gvk = kube::core::GroupVersionKind::gvk(INFRASTRUCTURE, "v1beta2", "CloudMachinePool");
    Api::namespaced_with(env.client().clone(), NAMESPACE, &kube::api::ApiResource::from_gvk(&gvk))
}

/// Registers a Node, ready.
async fn register(nodes: &Api<Node>, name: &str, id: &str) {
    let node = json!({
        "metadata": {"name": name},
        "spec": {"providerID": id, "taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]},
    });
    nodes
        .create(&PostParams::default(), &serde_json::from_value(node).unwrap())
        .await
        .unwrap();
    let now = now();
    let status = json!({"status": {
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now, "lastHeartbeatTime": now}],
        "nodeInfo": {"architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
            "kubeletVersion": "v1.35.0", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": ""},
    }});
    nodes
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[tokio::test]
async fn a_pool_without_machines_follows_the_nodes_of_its_provider_ids() {
    let (env, cluster) = site("cloud").await;
    let client = workload(&env, &cluster).await;
    let nodes: Api<Node> = Api::all(client.clone());
    define_cloud_pools(&env).await;
    let secrets: Api<Secret> = env.api();
    let secret = json!({"metadata": {"name": "data"}, "stringData": {"value": "x"}});
    secrets
        .create(&PostParams::default(), &serde_json::from_value(secret).unwrap())
        .await
        .unwrap();
    let [_, _, mut pool] = dev_pool("cloud", "mp", 2, "v1.35.0");
    pool["spec"]["template"]["spec"]["bootstrap"] = json!({"dataSecretName": "data"});
    pool["spec"]["template"]["spec"]["infrastructureRef"]["kind"] = json!("CloudMachinePool");
    env.apply(&pool).await;
    // The pool may come before its infrastructure.
    let missing = |pool: &MachinePool| {
        let mut all = pool.status.iter().flat_map(|status| &status.conditions);
        all.any(|condition| {
            condition.type_ == "InfrastructureReady" && condition.message == "CloudMachinePool does not exist"
        })
    };
    env.wait_for::<MachinePool>(&key("mp"), "missing infrastructure", missing)
        .await;
    let object = json!({
        "apiVersion": format!("{INFRASTRUCTURE}/v1beta2"), "kind": "CloudMachinePool",
        "metadata": {"name": "mp", "namespace": NAMESPACE},
    });
    let object: kube::api::DynamicObject = serde_json::from_value(object).unwrap();
    cloud_api(&env).create(&PostParams::default(), &object).await.unwrap();
    register(&nodes, "one", "cloud:///1").await;
    report(&env, &["cloud:///1", "cloud:///2"]).await;
    let scaling = |pool: &MachinePool| {
        let status = pool.status.clone().unwrap_or_default();
        let old = status.deprecated.and_then(|old| old.v1beta1).unwrap_or_default();
        status.phase.as_deref() == Some("ScalingUp")
            && old.ready_replicas == Some(1)
            && old.unavailable_replicas == Some(1)
    };
    env.wait_for::<MachinePool>(&key("mp"), "one of two", scaling).await;
    register(&nodes, "two", "cloud:///2").await;
    let pool = wait_whole(&env, "mp", 2, "v1.35.0").await;
    let references = pool.status.clone().unwrap().node_refs;
    let listed: Vec<_> = references.iter().filter_map(|node| node.name.as_deref()).collect();
    assert_eq!(listed, ["one", "two"]);
    let is_marked = |node: &Node| {
        let annotations = node.metadata.annotations.clone().unwrap_or_default();
        let taints = node.spec.clone().unwrap_or_default().taints.unwrap_or_default();
        annotations.get("cluster.x-k8s.io/owner-name").map(String::as_str) == Some("mp")
            && annotations.get("cluster.x-k8s.io/cluster-name").map(String::as_str) == Some("cloud")
            && annotations
                .get("cluster.x-k8s.io/cluster-namespace")
                .map(String::as_str)
                == Some(NAMESPACE)
            && taints
                .iter()
                .all(|taint| taint.key != "node.cluster.x-k8s.io/uninitialized")
    };
    let all_marked = |all: &[Node]| all.iter().filter(|node| is_marked(node)).count() == 2;
    assert!(
        until(nodes.clone(), None, all_marked).await.is_some(),
        "Nodes are not marked"
    );

    // The provider removes a machine: its Node goes. A Node of no machine of the pool stays.
    register(&nodes, "other", "cloud:///9").await;
    env.merge("MachinePool", "mp", &json!({"spec": {"replicas": 1}})).await;
    report(&env, &["cloud:///2"]).await;
    wait_whole(&env, "mp", 1, "v1.35.0").await;
    assert!(nodes.get_opt("one").await.unwrap().is_none());
    assert!(nodes.get_opt("other").await.unwrap().is_some());

    // Replicas that another system decides make no direction of scaling.
    let managed = json!({"metadata": {"annotations": {"cluster.x-k8s.io/replicas-managed-by": "autoscaler"}}, "spec": {"replicas": 4}});
    env.merge("MachinePool", "mp", &managed).await;
    let phase = |pool: &MachinePool| pool.status.clone().unwrap_or_default().phase.as_deref() == Some("Scaling");
    env.wait_for::<MachinePool>(&key("mp"), "Scaling", phase).await;

    // The infrastructure goes before the pool, and the Nodes last.
    env.delete("MachinePool", "mp").await;
    env.wait_all::<MachinePool>("gone", <[MachinePool]>::is_empty).await;
    assert!(cloud_api(&env).get_opt("mp").await.unwrap().is_none());
    assert!(nodes.get_opt("two").await.unwrap().is_none());
    assert!(nodes.get_opt("other").await.unwrap().is_some());
    env.stop().await;
}

/// Templates of MachinePools, and a class for them in the usual ClusterClass.
pub(crate) async fn add_pool_class(env: &Env) {
    let template = |api: &str, kind: &str, spec: Value| {
        json!({
            "apiVersion": api, "kind": kind, "metadata": {"name": "pool", "namespace": NAMESPACE},
            "spec": {"template": {"spec": spec}},
        })
    };
    let (bootstrap, infrastructure) = (
        "bootstrap.cluster.x-k8s.io/v1beta2",
        "infrastructure.cluster.x-k8s.io/v1beta2",
    );
    let config = json!({"joinConfiguration": {"nodeRegistration": {"name": "{{ ds.meta_data.local_hostname }}"}}});
    env.apply(&template(bootstrap, "KubeadmConfigTemplate", config)).await;
    let machines = json!({"backend": {"inMemory": {}}});
    env.apply(&template(infrastructure, "DevMachinePoolTemplate", machines))
        .await;
    let reference = |api: &str, kind: &str| json!({"templateRef": {"apiVersion": api, "kind": kind, "name": "pool"}});
    let class = json!({
        "class": "pool",
        "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
        "bootstrap": reference(bootstrap, "KubeadmConfigTemplate"),
        "infrastructure": reference(infrastructure, "DevMachinePoolTemplate"),
    });
    let patch = json!({"spec": {"workers": {"machinePools": [class]}}});
    env.merge("ClusterClass", "quick-start", &patch).await;
}

pub(crate) async fn set_pools(env: &Env, cluster: &str, version: &str, pools: Value) {
    let topology = json!({"version": version, "workers": {"machinePools": pools}});
    env.merge("Cluster", cluster, &json!({"spec": {"topology": topology}}))
        .await;
}

/// The name of the only MachinePool.
pub(crate) async fn pool_name(env: &Env) -> String {
    let pools = env.wait_all::<MachinePool>("one pool", |all| all.len() == 1).await;
    pools[0].metadata.name.clone().unwrap()
}

// TO-022, TO-023, TO-059, TO-265, TO-274, TO-283, TO-332, TO-354; rows 282, 290, 291.
#[tokio::test]
async fn a_topology_makes_upgrades_and_removes_pools() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    add_pool_class(&env).await;
    let cluster = ClusterOf::new("pooled", 1, 1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let entry = |replicas: i32| json!([{"class": "pool", "name": "mp-0", "replicas": replicas}]);
    set_pools(&env, "pooled", "v1.35.0", entry(2)).await;
    let name = pool_name(&env).await;
    assert!(name.starts_with("pooled-mp-0-"), "{name}");
    let pool = wait_whole(&env, &name, 2, "v1.35.0").await;
    let labels = pool.metadata.labels.clone().unwrap();
    assert_eq!(labels["topology.cluster.x-k8s.io/pool-name"], "mp-0");
    let infrastructure = pool.spec.template.spec.infrastructure_ref.name.clone();
    let checks = env.list::<MachineHealthCheck>().await;
    assert!(
        checks.iter().all(|check| check.metadata.name != pool.metadata.name),
        "{checks:?}"
    );
    set_pools(&env, "pooled", "v1.35.0", entry(3)).await;
    wait_whole(&env, &name, 3, "v1.35.0").await;
    let before = names(&machines_of(&env, &name).await);
    // The control plane, the MachineDeployment, then the pool.
    set_pools(&env, "pooled", "v1.36.0", entry(3)).await;
    wait_whole(&env, &name, 3, "v1.36.0").await;
    let deployments = env.list::<windlass_api::core::MachineDeployment>().await;
    let versions = &deployments[0].status.as_ref().unwrap().versions;
    assert_eq!((versions.len(), versions[0].version.as_str()), (1, "v1.36.0"));
    let after = names(&machines_of(&env, &name).await);
    assert!(before.is_disjoint(&after), "{before:?} {after:?}");
    // Bootstrap and infrastructure keep their names when their templates change.
    let labels = json!({"spec": {"template": {"metadata": {"labels": {"of": "template"}}}}});
    env.merge("DevMachinePoolTemplate", "pool", &labels).await;
    let key = ObjectKey::new(NAMESPACE, infrastructure.as_str());
    let is_labelled = |pool: &DevMachinePool| pool.metadata.labels.as_ref().is_some_and(|all| all.contains_key("of"));
    let labelled = env.wait_for::<DevMachinePool>(&key, "label", is_labelled).await;
    assert_eq!(
        labelled.metadata.labels.unwrap()["topology.cluster.x-k8s.io/pool-name"],
        "mp-0"
    );
    env.merge(
        "DevMachinePoolTemplate",
        "pool",
        &json!({"spec": {"template": {"metadata": null}}}),
    )
    .await;
    set_pools(&env, "pooled", "v1.36.0", Value::Null).await;
    env.wait_all::<MachinePool>("no pool", <[_]>::is_empty).await;
    env.wait_all::<DevMachine>("only the other machines", |all| all.len() == 2)
        .await;
    env.wait_all::<DevMachinePool>("no infrastructure of the pool", <[_]>::is_empty)
        .await;
    let is_of_pool = |config: &KubeadmConfig| {
        config
            .metadata
            .name
            .as_deref()
            .is_some_and(|name| name.contains("mp-0"))
    };
    env.wait_all::<KubeadmConfig>("no bootstrap object of the pool", |all| !all.iter().any(is_of_pool))
        .await;
    // A pool goes with its Cluster as well.
    set_pools(&env, "pooled", "v1.36.0", entry(1)).await;
    wait_whole(&env, &pool_name(&env).await, 1, "v1.36.0").await;
    env.delete("Cluster", "pooled").await;
    env.wait_gone("pooled").await;
    env.wait_all::<DevMachinePool>("no pool", <[_]>::is_empty).await;
    env.stop().await;
}
