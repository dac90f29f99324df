//! Attributes of class and topology, and where each of them arrives.

use serde_json::{Value, json};

use crate::env::{Env, assert_has, cluster, example, is_random, name};

const BIG: &str = "big-pool-of-machines-1";
const SMALL: &str = "small-pool-of-machines-1";
const WINDOWS: &str = "microsoft-1";
const POOL: &str = "mp-0";

fn taint(key: &str) -> Value {
    json!([{"key": key, "effect": "NoSchedule", "propagation": "Always"}])
}

fn gates(of: &str) -> Value {
    json!([{"conditionType": of}])
}

/// A class that sets every attribute that it can.
fn class(class: &mut Value) {
    let spec = &mut class["spec"];
    spec["infrastructure"]["naming"] = json!({"template": "infra-{{ .cluster.name }}-{{ .random }}"});
    let control_plane = spec["controlPlane"].as_object_mut().unwrap();
    control_plane.insert(
        "metadata".to_owned(),
        json!({"labels": {"a": "1", "b": "1"}, "annotations": {"of": "class"}}),
    );
    control_plane.insert(
        "deletion".to_owned(),
        json!({"nodeDrainTimeoutSeconds": 600, "nodeVolumeDetachTimeoutSeconds": 20, "nodeDeletionTimeoutSeconds": 30}),
    );
    control_plane.insert("taints".to_owned(), taint("class"));
    control_plane.insert("readinessGates".to_owned(), gates("class"));
    control_plane.insert(
        "naming".to_owned(),
        json!({"template": "cp-{{ .cluster.name }}-{{ .random }}"}),
    );
    let worker = spec["workers"]["machineDeployments"][0].as_object_mut().unwrap();
    for (field, value) in [
        (
            "metadata",
            json!({"labels": {"a": "1", "b": "1"}, "annotations": {"of": "class"}}),
        ),
        (
            "deletion",
            json!({"order": "Oldest", "nodeDrainTimeoutSeconds": 600, "nodeVolumeDetachTimeoutSeconds": 20,
                "nodeDeletionTimeoutSeconds": 30}),
        ),
        ("minReadySeconds", json!(5)),
        ("failureDomain", json!("a")),
        ("taints", taint("class")),
        ("readinessGates", gates("class")),
        ("rollout", json!({"strategy": {"type": "OnDelete"}})),
        (
            "naming",
            json!({"template": "{{ .cluster.name }}.{{ .machineDeployment.topologyName }}.{{ .random }}"}),
        ),
    ] {
        worker.insert(field.to_owned(), value);
    }
    let reference =
        |api: &str, kind: &str, name: &str| json!({"templateRef": {"apiVersion": api, "kind": kind, "name": name}});
    spec["workers"]["machinePools"] = json!([{
        "class": "linux-worker",
        "bootstrap": reference("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate", "existing-boot-ref"),
        "infrastructure": reference("infrastructure.cluster.x-k8s.io/v1beta2", "DevMachinePoolTemplate", "pool"),
        "metadata": {"labels": {"a": "1", "b": "1"}, "annotations": {"of": "class"}},
        "deletion": {"nodeDrainTimeoutSeconds": 600, "nodeVolumeDetachTimeoutSeconds": 20, "nodeDeletionTimeoutSeconds": 30},
        "failureDomains": ["a"], "minReadySeconds": 5,
        "naming": {"template": "{{ .cluster.name }}.{{ .machinePool.topologyName }}.{{ .random }}"},
    }]);
}

/// A topology that overrides what the class says for its control plane, its first worker set and its pool.
fn overriding() -> Value {
    let metadata = json!({"labels": {"b": "2", "c": "2"}, "annotations": {"of": "cluster",
        "topology.cluster.x-k8s.io/hold-upgrade-sequence": "", "topology.cluster.x-k8s.io/defer-upgrade": ""}});
    let mut cluster = cluster();
    let topology = &mut cluster["spec"]["topology"];
    topology["controlPlane"] = json!({
        "replicas": 3, "metadata": {"labels": {"b": "2", "c": "2"}, "annotations": {"of": "cluster"}},
        "deletion": {"nodeDrainTimeoutSeconds": 300}, "taints": taint("cluster"), "readinessGates": gates("cluster"),
    });
    let workers = topology["workers"]["machineDeployments"].as_array_mut().unwrap();
    workers[0] = json!({
        "class": "linux-worker", "name": BIG, "replicas": 5, "metadata": metadata, "minReadySeconds": 7,
        "failureDomain": "b", "taints": taint("cluster"), "readinessGates": gates("cluster"),
        "deletion": {"order": "Newest", "nodeDrainTimeoutSeconds": 300},
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}},
    });
    workers[2] = json!({"class": "windows-worker", "name": WINDOWS});
    topology["workers"]["machinePools"] = json!([{
        "class": "linux-worker", "name": POOL, "replicas": 2, "metadata": metadata, "minReadySeconds": 7,
        "failureDomains": ["b", "c"], "deletion": {"nodeDrainTimeoutSeconds": 300},
    }]);
    cluster
}

async fn start() -> Env {
    let env = Env::start().await;
    env.apply(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachinePoolTemplate",
        "metadata": {"name": "pool", "namespace": "bar"},
        "spec": {"template": {"spec": {"backend": {"inMemory": {}}}}},
    }))
    .await;
    for mut object in example(class) {
        if object["kind"] == "KubeadmControlPlaneTemplate" {
            object["spec"]["template"]["spec"]["machineTemplate"] =
                json!({"metadata": {"labels": {"own": "x", "b": "own"}}});
        }
        env.apply(object).await;
    }
    env.apply(overriding()).await;
    env.reconciled("ReconcileSucceeded").await;
    env
}

/// Whether the topology controller owns a field of the specification.
fn owns(object: &Value, field: &str) -> bool {
    let managers = object["metadata"]["managedFields"].as_array().unwrap();
    let ours = managers
        .iter()
        .find(|entry| entry["manager"] == "capi-topology")
        .unwrap();
    ours["fieldsV1"]["f:spec"].get(format!("f:{field}")).is_some()
}

fn is_named(object: &Value, prefix: &str) {
    let suffix = name(object).strip_prefix(prefix);
    assert!(suffix.is_some_and(is_random), "{} is no {prefix}*", name(object));
}

async fn control_plane(env: &Env) -> Value {
    env.generated("KubeadmControlPlane").await.remove(0)
}

/// Annotations of a worker set that the topology has more of.
fn annotations() -> Value {
    json!({"of": "cluster", "topology.cluster.x-k8s.io/hold-upgrade-sequence": null,
        "topology.cluster.x-k8s.io/defer-upgrade": null})
}

async fn has_worker_sets(env: &Env) {
    let annotations = annotations();
    let overridden = env.deployment(BIG).await;
    is_named(&overridden, &format!("foo.{BIG}."));
    let labels = json!({"a": "1", "b": "2", "c": "2", "topology.cluster.x-k8s.io/deployment-name": BIG});
    let deletion =
        json!({"nodeDrainTimeoutSeconds": 300, "nodeVolumeDetachTimeoutSeconds": 20, "nodeDeletionTimeoutSeconds": 30});
    assert_has(
        &overridden,
        &json!({
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": {
                "replicas": 5,
                "deletion": {"order": "Newest"},
                "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}},
                "template": {
                    "metadata": {"labels": labels, "annotations": annotations},
                    "spec": {"failureDomain": "b", "minReadySeconds": 7, "deletion": deletion, "taints": taint("cluster"),
                        "readinessGates": gates("cluster")},
                },
            },
        }),
    );
    let of_class = env.deployment(SMALL).await;
    is_named(&of_class, &format!("foo.{SMALL}."));
    let labels = json!({"a": "1", "b": "1", "c": null});
    let deletion =
        json!({"nodeDrainTimeoutSeconds": 600, "nodeVolumeDetachTimeoutSeconds": 20, "nodeDeletionTimeoutSeconds": 30});
    assert_has(
        &of_class,
        &json!({
            "metadata": {"labels": labels, "annotations": {"of": "class"}},
            "spec": {
                "deletion": {"order": "Oldest"},
                "rollout": {"strategy": {"type": "OnDelete", "rollingUpdate": null}},
                "template": {
                    "metadata": {"labels": labels, "annotations": {"of": "class"}},
                    "spec": {"failureDomain": "a", "minReadySeconds": 5, "deletion": deletion, "taints": taint("class"),
                        "readinessGates": gates("class")},
                },
            },
        }),
    );
    let unset = env.deployment(WINDOWS).await;
    is_named(&unset, &format!("foo-{WINDOWS}-"));
    assert_has(
        &unset["spec"]["template"]["spec"],
        &json!({"failureDomain": null, "minReadySeconds": null, "deletion": null, "taints": null}),
    );
}

async fn has_pool(env: &Env) {
    let annotations = annotations();
    let pool = env.of_entry("MachinePool", POOL).await.remove(0);
    is_named(&pool, &format!("foo.{POOL}."));
    let labels = json!({"a": "1", "b": "2", "c": "2", "topology.cluster.x-k8s.io/pool-name": POOL});
    let deletion =
        json!({"nodeDrainTimeoutSeconds": 300, "nodeVolumeDetachTimeoutSeconds": 20, "nodeDeletionTimeoutSeconds": 30});
    assert_has(
        &pool,
        &json!({
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": {
                "clusterName": "foo", "replicas": 2, "failureDomains": ["b", "c"], "selector": null, "strategy": null,
                "template": {
                    "metadata": {"labels": labels, "annotations": annotations},
                    "spec": {"clusterName": "foo", "version": "v1.31.1", "minReadySeconds": 7, "deletion": deletion,
                        "bootstrap": {"configRef": {"kind": "KubeadmConfig"}},
                        "infrastructureRef": {"kind": "DevMachinePool"}},
                },
            },
        }),
    );
    for (kind, field) in [
        ("KubeadmConfig", "/spec/template/spec/bootstrap/configRef/name"),
        ("DevMachinePool", "/spec/template/spec/infrastructureRef/name"),
    ] {
        let made = env.of_entry(kind, POOL).await.remove(0);
        is_named(&made, &format!("foo-{POOL}-"));
        assert_eq!(pool.pointer(field), Some(&made["metadata"]["name"]));
    }
    assert!(env.get("MachineHealthCheck", name(&pool)).await.is_none());
}

// TO-007, TO-008, TO-009, TO-011, TO-016, TO-017, TO-018, TO-020, TO-021, TO-024, TO-025, TO-040, TO-047, TO-049, TO-050, TO-053, TO-054, TO-057,
// TO-059, TO-060, TO-245, TO-246, TO-252, TO-271, TO-272, TO-274, TO-278, TO-279, TO-280, TO-281, TO-283, TO-354
#[tokio::test]
async fn every_attribute_arrives_and_the_topology_wins_over_the_class() {
    let env = start().await;
    let infrastructure = env.generated("VSphereCluster").await.remove(0);
    is_named(&infrastructure, "infra-foo-");
    let found = control_plane(&env).await;
    is_named(&found, "cp-foo-");
    let merged = json!({"a": "1", "b": "2", "c": "2"});
    assert_has(
        &found,
        &json!({
            "metadata": {"labels": merged, "annotations": {"of": "cluster"}},
            "spec": {"machineTemplate": {
                "metadata": {"labels": {"a": "1", "b": "2", "c": "2", "own": "x"}, "annotations": {"of": "cluster"}},
                "spec": {
                    "deletion": {"nodeDrainTimeoutSeconds": 300, "nodeVolumeDetachTimeoutSeconds": 20, "nodeDeletionTimeoutSeconds": 30},
                    "taints": taint("cluster"), "readinessGates": gates("cluster"),
                },
            }},
        }),
    );
    let machines = env.generated("VSphereMachineTemplate").await;
    let reference = &found["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"];
    let machines = machines
        .iter()
        .find(|one| one["metadata"]["name"] == *reference)
        .unwrap();
    is_named(machines, "foo-");

    has_worker_sets(&env).await;
    has_pool(&env).await;

    // What the topology leaves to the class, and then the class to the defaults, follows.
    env.topology(|topology| topology["controlPlane"]["deletion"] = Value::Null)
        .await;
    let deletion = |seconds: Value| json!({"spec": {"machineTemplate": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": seconds}}}}});
    env.becomes("KubeadmControlPlane", name(&found), deletion(json!(600)))
        .await;
    env.merge(
        "ClusterClass",
        "mixed",
        json!({"spec": {"controlPlane": {"deletion": {"nodeDrainTimeoutSeconds": null}}}}),
    )
    .await;
    env.becomes("KubeadmControlPlane", name(&found), deletion(Value::Null))
        .await;
    env.stop().await;
}

// TO-048, TO-056, TO-251, TO-277, TO-372, TO-374: what is not set belongs to others, and names stay.
#[tokio::test]
async fn replicas_that_are_not_set_and_names_are_left_alone() {
    let env = start().await;
    let (control_plane, scaled) = (control_plane(&env).await, env.deployment(WINDOWS).await);
    assert!(owns(&control_plane, "replicas"));
    assert!(owns(&env.deployment(BIG).await, "replicas"));
    assert!(!owns(&scaled, "replicas"));
    env.merge("MachineDeployment", name(&scaled), json!({"spec": {"replicas": 4}}))
        .await;
    let set = env.deployment(BIG).await;
    env.merge("MachineDeployment", name(&set), json!({"spec": {"replicas": 9}}))
        .await;
    env.becomes("MachineDeployment", name(&set), json!({"spec": {"replicas": 5}}))
        .await;

    // Other names for what is made later, and no replicas of the control plane.
    let other = json!({"template": "later-{{ .cluster.name }}-{{ .random }}"});
    let names = json!({"spec": {"controlPlane": {"naming": other}, "infrastructure": {"naming": other}}});
    env.merge("ClusterClass", "mixed", names).await;
    env.topology(|topology| {
        topology["controlPlane"]["replicas"] = Value::Null;
        topology["controlPlane"]["metadata"]["labels"]["seen"] = "yes".into();
        topology["workers"]["machineDeployments"][1]["replicas"] = 6.into();
    })
    .await;
    let kept = env
        .becomes(
            "KubeadmControlPlane",
            name(&control_plane),
            json!({"metadata": {"labels": {"seen": "yes"}}}),
        )
        .await;
    assert!(!owns(&kept, "replicas"));
    env.becomes(
        "MachineDeployment",
        name(&env.deployment(SMALL).await),
        json!({"spec": {"replicas": 6}}),
    )
    .await;
    env.reconciled("ReconcileSucceeded").await;
    assert_eq!(env.generated("KubeadmControlPlane").await.len(), 1);
    assert_eq!(env.generated("VSphereCluster").await.len(), 1);
    assert_eq!(env.deployment(WINDOWS).await["spec"]["replicas"], 4);
    env.stop().await;
}
