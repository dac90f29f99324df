//! What a topology waits for, what it leaves alone, and control planes of other providers.

use serde_json::{Value, json};

use crate::env::{DEFINITIONS, Env, assert_has, cluster, condition, documents, example, is_random, name};
use crate::templates::add_newer_version;

const WINDOWS: &str = "microsoft-1";

async fn says(env: &Env, part: &str) {
    env.wait(&format!("a message with {part:?}"), async || {
        let cluster = env.get("Cluster", "foo").await?;
        let found = condition(&cluster, "TopologyReconciled")?;
        (found["status"] == "False" && found["message"].as_str()?.contains(part)).then_some(())
    })
    .await;
}

async fn succeeds(env: &Env, cluster: &str) {
    env.wait(&format!("{cluster} is reconciled"), async || {
        let cluster = env.get("Cluster", cluster).await?;
        (condition(&cluster, "TopologyReconciled")?["status"] == "True").then_some(())
    })
    .await;
}

// TO-031, TO-033, TO-034, TO-239, TO-240, TO-241: what the class says about itself, and a Cluster that waits for it.
#[tokio::test]
async fn a_cluster_waits_for_its_class_and_while_it_is_paused() {
    let env = Env::start().await;
    env.apply_example().await;
    let variable =
        |name: &str| json!({"name": name, "required": false, "schema": {"openAPIV3Schema": {"type": "string"}}});
    env.merge(
        "ClusterClass",
        "mixed",
        json!({"spec": {"variables": [variable("second"), variable("first")]}}),
    )
    .await;
    let of = |name: &str| json!({"name": name, "definitions": [{"from": "inline", "required": false, "schema": {"openAPIV3Schema": {"type": "string"}}}]});
    let class = env
        .becomes(
            "ClusterClass",
            "mixed",
            json!({"status": {"variables": [of("first"), of("second")]}}),
        )
        .await;
    assert_eq!(class["status"]["observedGeneration"], class["metadata"]["generation"]);

    // A newer version of a kind is reported, and the reference stays as it is.
    add_newer_version(&env).await;
    let class = env
        .wait("a report on the older version", async || {
            let class = env.get("ClusterClass", "mixed").await?;
            let found = condition(&class, "RefVersionsUpToDate")?;
            (found["status"] == "False").then_some(class)
        })
        .await;
    let found = condition(&class, "RefVersionsUpToDate").unwrap();
    assert!(
        found["message"]
            .as_str()
            .unwrap()
            .contains("current: v1beta1, latest: v1beta2"),
        "{found}"
    );
    let kept = &class["spec"]["controlPlane"]["machineInfrastructure"]["templateRef"]["apiVersion"];
    assert_eq!(kept, "infrastructure.cluster.x-k8s.io/v1beta1");

    // A paused Cluster is left as it is.
    let replicas =
        |n: u32| move |topology: &mut Value| topology["workers"]["machineDeployments"][2]["replicas"] = n.into();
    env.merge("Cluster", "foo", json!({"spec": {"paused": true}})).await;
    env.topology(replicas(7)).await;
    env.reconciled("Paused").await;
    env.quiet().await;
    let windows = env.deployment(WINDOWS).await;
    assert_eq!(windows["spec"]["replicas"], 3);
    env.merge("Cluster", "foo", json!({"spec": {"paused": null}})).await;
    env.becomes("MachineDeployment", name(&windows), json!({"spec": {"replicas": 7}}))
        .await;

    // So is one whose class is paused, and has changed since.
    let paused = |value: Value| json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}});
    env.merge("ClusterClass", "mixed", paused(json!(""))).await;
    env.merge("ClusterClass", "mixed", json!({"spec": {"variables": null}}))
        .await;
    env.topology(replicas(8)).await;
    says(&env, "observedGeneration").await;
    assert_eq!(env.deployment(WINDOWS).await["spec"]["replicas"], 7);
    env.merge("ClusterClass", "mixed", paused(Value::Null)).await;
    env.becomes("MachineDeployment", name(&windows), json!({"spec": {"replicas": 8}}))
        .await;

    // A template that is missing stops everything, and its class is not observed.
    env.delete("VSphereMachineTemplate", "windows-vsphere-template").await;
    env.merge(
        "ClusterClass",
        "mixed",
        json!({"spec": {"variables": [variable("third")]}}),
    )
    .await;
    env.topology(|topology| topology["workers"]["machineDeployments"][0]["replicas"] = 9.into())
        .await;
    says(&env, "windows-vsphere-template").await;
    let big = env.deployment("big-pool-of-machines-1").await;
    assert_eq!(big["spec"]["replicas"], 5);
    env.stop().await;
}

// TO-012, TO-042, TO-276, TO-292, TO-391: Clusters without workers, with a long name and without a topology beside one
// another.
#[tokio::test]
async fn clusters_of_other_forms_are_made_or_left_alone() {
    let env = Env::start().await;
    let endpoint = json!({"host": "", "port": 0});
    for mut object in example(|_| {}) {
        if object["kind"] == "VSphereClusterTemplate" {
            object["spec"]["template"]["spec"]["controlPlaneEndpoint"] = endpoint.clone();
        }
        env.apply(object).await;
    }
    let plain = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "plain", "namespace": "bar"},
        "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "VSphereCluster", "name": "plain"}},
    });
    let of_plain = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "VSphereCluster",
        "metadata": {"name": "plain", "namespace": "bar",
            "labels": {"topology.cluster.x-k8s.io/owned": "", "cluster.x-k8s.io/cluster-name": "plain"}},
    });
    env.apply(of_plain).await;
    env.apply(plain).await;
    let before = env.get("Cluster", "plain").await.unwrap();
    let mut without_workers = cluster();
    without_workers["spec"]["topology"]
        .as_object_mut()
        .unwrap()
        .remove("workers");
    env.apply(without_workers).await;
    succeeds(&env, "foo").await;
    assert!(env.generated("MachineDeployment").await.is_empty());
    let long = "a-name-of-sixty-characters-which-is-as-long-as-it-may-be-for-us";
    assert_eq!(long.len(), 63);
    let mut with_long_name = cluster();
    with_long_name["metadata"]["name"] = long.into();
    with_long_name["spec"]["topology"]["workers"]["machineDeployments"]
        .as_array_mut()
        .unwrap()
        .truncate(1);
    env.apply(with_long_name).await;
    succeeds(&env, long).await;
    for kind in [
        "VSphereCluster",
        "KubeadmControlPlane",
        "VSphereMachineTemplate",
        "KubeadmConfigTemplate",
        "MachineDeployment",
    ] {
        let mut all = env.generated(kind).await;
        all.retain(|object| object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == long);
        assert!(!all.is_empty(), "{kind}");
        for object in &all {
            let (kept, suffix) = name(object).split_at(58);
            assert!(
                name(object).len() == 63 && long.starts_with(kept) && is_random(suffix),
                "{kind} {}",
                name(object)
            );
        }
    }
    // The provider's endpoint is not reset by an empty one of the template.
    let mut all = env.generated("VSphereCluster").await;
    all.retain(|object| object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "foo");
    let set = json!({"spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}}});
    env.merge("VSphereCluster", name(&all[0]), set.clone()).await;
    let patch = json!({"spec": {"template": {"spec": {"server": "other.example.com"}}}});
    env.merge("VSphereClusterTemplate", "vsphere-prod-cluster-template", patch)
        .await;
    let changed = env
        .becomes(
            "VSphereCluster",
            name(&all[0]),
            json!({"spec": {"server": "other.example.com"}}),
        )
        .await;
    assert_has(&changed, &set);
    // The Cluster without a topology was not touched.
    let after = env.get("Cluster", "plain").await.unwrap();
    assert_eq!(before["metadata"], after["metadata"]);
    assert_eq!(condition(&after, "TopologyReconciled"), None);
    env.stop().await;
}

/// The vSphere kinds and control planes of other providers: one whose machines are not its own, and one with machines.
fn with_control_planes() -> Vec<Value> {
    let mut all = documents(DEFINITIONS);
    for kind in ["VSphereHosted", "VSphereManual"] {
        for suffix in ["", "Template"] {
            let kind = format!("{kind}{suffix}");
            let plural = format!("{}s", kind.to_lowercase());
            let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            all.push(json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.infrastructure.cluster.x-k8s.io"), "labels": {"cluster.x-k8s.io/v1beta1": "v1beta1"}},
                "spec": {
                    "group": "infrastructure.cluster.x-k8s.io", "scope": "Namespaced",
                    "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
                    "versions": [{"name": "v1beta1", "served": true, "storage": true, "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}}],
                },
            }));
        }
    }
    all
}

/// A class whose control plane is of this kind.
fn class_of(kind: &str, change: impl FnOnce(&mut Value)) -> Vec<Value> {
    let api = "infrastructure.cluster.x-k8s.io/v1beta1";
    let template = format!("{kind}Template");
    let mut all = example(|class| {
        class["metadata"]["name"] = kind.to_lowercase().into();
        let control_plane = &mut class["spec"]["controlPlane"];
        control_plane["templateRef"] = json!({"apiVersion": api, "kind": template, "name": "cp"});
        change(control_plane);
    });
    all.push(json!({
        "apiVersion": api, "kind": template, "metadata": {"name": "cp", "namespace": "bar"},
        "spec": {"template": {"spec": {"tier": "small"}}},
    }));
    all
}

// TO-007, TO-048, TO-069, TO-155, TO-156, TO-305, TO-328, TO-329, TO-330, TO-350: providers without machines and replicas, and of the older contract.
#[tokio::test]
async fn control_planes_need_neither_machines_nor_replicas() {
    let env = Env::start_with(with_control_planes()).await;
    let hosted = class_of("VSphereHosted", |control_plane| {
        let control_plane = control_plane.as_object_mut().unwrap();
        control_plane.remove("machineInfrastructure");
        control_plane.remove("healthCheck");
    });
    let with_machines = class_of("VSphereManual", |control_plane| {
        control_plane["deletion"] = json!({"nodeDrainTimeoutSeconds": 60});
        control_plane["metadata"] = json!({"labels": {"team": "a"}});
    });
    for object in hosted.into_iter().chain(with_machines) {
        env.apply(object).await;
    }
    let mut of_hosted = cluster();
    of_hosted["spec"]["topology"]["classRef"]["name"] = "vspherehosted".into();
    of_hosted["spec"]["topology"]
        .as_object_mut()
        .unwrap()
        .remove("controlPlane");
    let mut of_manual = cluster();
    of_manual["metadata"]["name"] = "manual".into();
    of_manual["spec"]["topology"]["classRef"]["name"] = "vspheremanual".into();
    for cluster in [of_hosted, of_manual] {
        let made = name(&cluster).to_owned();
        env.apply(cluster).await;
        succeeds(&env, &made).await;
    }
    let hosted = env.generated("VSphereHosted").await.remove(0);
    assert_eq!(hosted["spec"], json!({"tier": "small", "version": "v1.31.1"}));
    assert!(env.get("MachineHealthCheck", name(&hosted)).await.is_none());
    let mut machines = env.generated("VSphereMachineTemplate").await;
    machines.retain(|one| {
        let labels = &one["metadata"]["labels"];
        labels["cluster.x-k8s.io/cluster-name"] == "foo"
            && labels.get("topology.cluster.x-k8s.io/deployment-name").is_none()
    });
    assert_eq!(machines, Vec::<Value>::new());

    // The places of the older contract.
    let manual = env.generated("VSphereManual").await.remove(0);
    assert_has(
        &manual["spec"],
        &json!({
            "tier": "small", "version": "v1.31.1", "replicas": 3,
            "machineTemplate": {
                "metadata": {"labels": {"team": "a"}}, "nodeDrainTimeout": "1m0s", "spec": null,
                "infrastructureRef": {"kind": "VSphereMachineTemplate", "namespace": "bar", "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1"},
            },
        }),
    );

    // Without a version in its status, a control plane is still on its way.
    let version = |version: &str| {
        json!({"metadata": {"annotations": {"unsafe.topology.cluster.x-k8s.io/disable-update-version-check": ""}},
        "spec": {"topology": {"version": version}}})
    };
    env.merge("Cluster", "foo", version("v1.31.2")).await;
    says(&env, "provisioned").await;
    assert_eq!(
        env.get("VSphereHosted", name(&hosted)).await.unwrap()["spec"]["version"],
        "v1.31.1"
    );
    env.status("VSphereHosted", name(&hosted), json!({"version": "v1.31.1"}))
        .await;
    env.becomes("VSphereHosted", name(&hosted), json!({"spec": {"version": "v1.31.2"}}))
        .await;
    env.status("VSphereHosted", name(&hosted), json!({"version": "v1.31.2"}))
        .await;
    succeeds(&env, "foo").await;
    env.stop().await;
}
